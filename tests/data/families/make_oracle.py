# Writes oracle.json beside itself: random configurations of every family and what transformers builds from each.
# With transformers 5.23.0 and torch 2.11.0, on the meta device: python make_oracle.py
# A test tool: neither is a dependency of the program.
import hashlib, json, os, pathlib, random, sys

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

R = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 523)
PER_FAMILY = int(sys.argv[1]) if len(sys.argv) > 1 else 12


def pick(*values):
    return R.choice(values)


def some(**fields):
    """Each field with a probability: absent ones test the defaults."""
    return {k: v for k, v in fields.items() if R.random() < 0.7}


def flag():
    return R.random() < 0.5


def sizes(small_vocabulary=True):
    heads = pick(2, 4, 8)
    d = pick(4, 8, 16)
    return heads, d, heads * d


ROPES = [
    {},
    {"rope_scaling": {"type": "linear", "factor": 2.0}},
    {"rope_scaling": {"rope_type": "dynamic", "factor": 4.0}},
    {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}},
    {"rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 8192, "rope_type": "llama3"}},
    {"rope_theta": 500000.0},
    {"rope_scaling": None, "rope_theta": 1000000},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 250000.0}},
]


def llama_like(kv_null=True, **more):
    heads, d, hidden = sizes()
    c = dict(hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=R.randint(1, 3), vocab_size=pick(101, 500, 3000))
    c |= some(intermediate_size=pick(24, 96, 200), max_position_embeddings=pick(64, 256), tie_word_embeddings=flag(),
              rms_norm_eps=1e-5)
    kv = R.randint(0, 3)
    c["num_key_value_heads"] = pick(*[k for k in (1, 2, heads) if heads % k == 0])
    if kv == 0 and kv_null:
        c["num_key_value_heads"] = None
    if R.random() < 0.3:
        c["head_dim"] = pick(4, 8, 16, 32)
    return c | more


def llama():
    c = llama_like() | some(attention_bias=flag(), mlp_bias=flag()) | pick(*ROPES)
    if flag():
        del c["num_key_value_heads"]
    return c


def mistral():
    return llama_like() | some(sliding_window=pick(None, 32)) | pick(ROPES[0], ROPES[5])


def qwen2():
    return llama_like() | some(use_sliding_window=flag(), max_window_layers=1) | pick(ROPES[0], ROPES[3], ROPES[5])


def qwen3():
    return llama_like() | some(attention_bias=flag(), head_dim=pick(8, 64)) | pick(ROPES[0], ROPES[5])


def gemma():
    return llama_like(kv_null=False) | some(attention_bias=flag(), hidden_activation=None, head_dim=pick(8, 256))


def gemma2():
    return llama_like(kv_null=False) | some(attention_bias=flag(), head_dim=pick(8, 256), final_logit_softcapping=30.0)


def gemma3_text():
    return llama_like(kv_null=False) | some(attention_bias=flag(), head_dim=pick(8, 256), rope_theta=1000000,
                                            rope_local_base_freq=10000, sliding_window_pattern=2)


def gemma3():
    text = gemma3_text()
    text["model_type"] = "gemma3_text"
    text.setdefault("max_position_embeddings", 256)
    heads, d, hidden = sizes()
    vision = dict(hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=R.randint(1, 2))
    vision |= some(intermediate_size=pick(40, 88), image_size=pick(28, 56), patch_size=pick(7, 14), num_channels=pick(1, 3),
                   vision_use_head=flag(), model_type="siglip_vision_model")
    c = {"text_config": text, "vision_config": vision} | some(mm_tokens_per_image=4)
    return c | (some(tie_word_embeddings=flag()))


def phi():
    return llama_like() | some(qk_layernorm=flag(), partial_rotary_factor=0.5)


def phi3():
    c = llama_like() | some(pad_token_id=0, partial_rotary_factor=1.0)
    c["pad_token_id"] = 0
    return c


def gpt2_like():
    heads, d, hidden = sizes()
    c = dict(n_embd=hidden, n_head=heads, n_layer=R.randint(1, 3), vocab_size=pick(101, 500, 3000))
    return c | some(n_positions=pick(64, 100), n_inner=pick(None, 77, 128), tie_word_embeddings=flag(), n_ctx=64)


def gpt2():
    c = gpt2_like() | some(add_cross_attention=flag())
    if flag():
        c["num_hidden_layers"] = c.pop("n_layer")
    return c


def gpt_bigcode():
    c = gpt2_like() | some(multi_query=flag())
    if c.get("multi_query") is False:
        c |= some(add_cross_attention=flag())
    return c


def gpt_neo():
    heads, d, hidden = sizes()
    layers = R.randint(1, 2) * 2
    c = dict(hidden_size=hidden, num_heads=heads, num_layers=layers, vocab_size=pick(101, 500),
             attention_types=[[["global", "local"], layers // 2]])
    return c | some(intermediate_size=pick(None, 99), max_position_embeddings=pick(64, 100), tie_word_embeddings=flag())


def gpt_neox():
    heads, d, hidden = sizes()
    c = dict(hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=R.randint(1, 3), vocab_size=pick(101, 500))
    return c | some(intermediate_size=pick(99, 128), tie_word_embeddings=flag(), attention_bias=flag(), rotary_pct=0.25,
                    use_parallel_residual=flag(), rotary_emb_base=20000)


def gptj():
    return gpt2_like() | {"rotary_dim": 4}


codegen = gptj


def opt():
    heads, d, hidden = sizes()
    c = dict(hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=R.randint(1, 3), vocab_size=pick(101, 500))
    return c | some(ffn_dim=pick(99, 128), max_position_embeddings=pick(64, 100), tie_word_embeddings=flag(),
                    word_embed_proj_dim=pick(None, hidden, hidden // 2), do_layer_norm_before=flag(), enable_bias=flag(),
                    layer_norm_elementwise_affine=flag(), _remove_final_layer_norm=flag())


def bloom():
    heads, d, hidden = sizes()
    c = {"n_head": heads, "n_layer": R.randint(1, 3), "vocab_size": pick(101, 500)}
    c[pick("n_embed", "hidden_size")] = hidden
    if flag():
        c["num_attention_heads"] = c.pop("n_head")
    return c | some(tie_word_embeddings=flag())


def falcon():
    heads, d, hidden = sizes()
    c = dict(hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=R.randint(1, 3), vocab_size=pick(101, 500))
    return c | some(num_kv_heads=pick(None, 1, 2), new_decoder_architecture=flag(), multi_query=flag(), parallel_attn=flag(),
                    bias=flag(), alibi=flag(), ffn_hidden_size=pick(None, 99), num_ln_in_parallel_attn=pick(None, 1, 2),
                    tie_word_embeddings=flag())


def mpt():
    heads, d, hidden = sizes()
    c = dict(d_model=hidden, n_heads=heads, n_layers=R.randint(1, 3), vocab_size=pick(101, 500))
    return c | some(expansion_ratio=4, max_seq_len=64, no_bias=flag(), tie_word_embeddings=flag(),
                    attn_config={"alibi": True, "attn_impl": "torch"})


def stablelm():
    c = llama_like(kv_null=False) | some(use_qkv_bias=flag(), qk_layernorm=flag(), use_parallel_residual=flag())
    c.pop("head_dim", None)
    return c


def bert():
    heads, d, hidden = sizes()
    c = dict(hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=R.randint(1, 3), vocab_size=pick(101, 500))
    c |= some(intermediate_size=pick(99, 128), max_position_embeddings=pick(64, 100), type_vocab_size=pick(1, 2),
              tie_word_embeddings=flag(), is_decoder=flag())
    if c.get("is_decoder"):
        c |= some(add_cross_attention=flag())
    return c


roberta = bert


def t5():
    c = dict(d_model=pick(32, 48), num_heads=pick(2, 4), num_layers=R.randint(1, 3), vocab_size=pick(101, 500))
    return c | some(d_kv=pick(8, 16), d_ff=pick(99, 128), num_decoder_layers=pick(None, 1, 3), tie_word_embeddings=flag(),
                    feed_forward_proj=pick("relu", "gated-gelu", "gated-silu"), relative_attention_num_buckets=pick(8, 32))


def mixtral():
    return llama_like() | some(num_local_experts=pick(2, 4), num_experts_per_tok=1)


def qwen3_moe():
    return llama_like(kv_null=False) | some(num_experts=pick(2, 4, 16), decoder_sparse_step=pick(1, 2), mlp_only_layers=pick([], [0], [1, 2]),
                                moe_intermediate_size=pick(8, 24), attention_bias=flag(), num_experts_per_tok=2)


def deepseek(**more):
    heads, d, hidden = sizes()
    c = dict(hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=R.randint(1, 4), vocab_size=pick(101, 500))
    return c | some(intermediate_size=pick(99, 128), moe_intermediate_size=pick(8, 24), n_routed_experts=pick(4, 8),
                    n_shared_experts=pick(1, 2), q_lora_rank=pick(None, 12), kv_lora_rank=pick(8, 16),
                    qk_rope_head_dim=pick(4, 8), qk_nope_head_dim=pick(4, 8), v_head_dim=pick(4, 8),
                    first_k_dense_replace=pick(0, 1, 2), attention_bias=flag(), tie_word_embeddings=flag(), n_group=1,
                    topk_group=1, num_experts_per_tok=2, num_nextn_predict_layers=1) | more


def deepseek_v2():
    return deepseek(**some(mlp_bias=flag()))


deepseek_v3 = deepseek


def gpt_oss():
    return llama_like() | some(num_local_experts=pick(2, 4), attention_bias=flag(), num_experts_per_tok=1)


def phimoe():
    return llama_like() | some(num_local_experts=pick(2, 4), attention_bias=flag(), lm_head_bias=flag())


def dbrx():
    heads, d, hidden = sizes()
    c = dict(d_model=hidden, n_heads=heads, n_layers=R.randint(1, 3), vocab_size=pick(101, 500))
    c["attn_config"] = {"rope_theta": 10000} | some(kv_n_heads=pick(1, 2), clip_qkv=8)
    return c | some(ffn_config=some(ffn_hidden_size=pick(8, 24), moe_num_experts=pick(2, 4), moe_top_k=1))


FAMILIES = ["bert", "bloom", "codegen", "dbrx", "deepseek_v2", "deepseek_v3", "falcon", "gemma", "gemma2", "gemma3",
            "gemma3_text", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gpt_oss", "gptj", "llama", "mistral", "mixtral",
            "mpt", "opt", "phi", "phi3", "phimoe", "qwen2", "qwen3", "qwen3_moe", "roberta", "stablelm", "t5"]


def build(config):
    fields = dict(config)
    parsed = AutoConfig.for_model(fields.pop("model_type"), **fields)
    with torch.device("meta"):
        try:
            return AutoModelForCausalLM.from_config(parsed)
        except ValueError as fault:
            if "Unrecognized configuration class" not in str(fault):
                raise
            return AutoModelForSeq2SeqLM.from_config(parsed)


def answer(config):
    model = build(json.loads(json.dumps(config)))
    named = list(model.named_parameters())
    lines = "\n".join(n + " " + "x".join(map(str, p.shape)) for n, p in named)
    return {"class": type(model).__name__, "parameters": sum(p.numel() for _, p in named), "tensors": len(named),
            "list_sha256": hashlib.sha256(lines.encode()).hexdigest()}, lines


def main():
    cases, faults = [], 0
    for family in FAMILIES:
        n = 0
        while n < PER_FAMILY:
            config = {"model_type": family} | globals()[family]()
            # The defaults of a family are its first size where they build in a moment.
            if n == 0 and family != "dbrx":
                config = {"model_type": family}
            try:
                cases.append({"config": config} | answer(config)[0])
                n += 1
            except Exception as fault:  # transformers refuses some, which are no cases
                faults += 1
                print(family, type(fault).__name__, str(fault)[:150].replace("\n", " "), file=sys.stderr)
                if faults > 400:
                    raise
    out = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else pathlib.Path(__file__).with_name("oracle.json")
    with open(out, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
