#!/usr/bin/env python3
"""Peaks of random training programs under eager PyTorch, for tests/data/eager/dryruns.tsv.

    shardscope dryrun --cluster h100-80gb-x8 -- python3 make_dryruns.py --runs 300 --seed 1 --out dryruns.tsv

Needs PyTorch for CUDA and transformers; the tests that read the file need neither. Every run is a process of its own,
forked before CUDA is touched: an allocator that remembers other runs would answer for them, too. Columns: whose code the
model is, its config.json, batch, sequence, precision, the optimizer's implementation; then for creation and each of three
steps max_memory_allocated of that phase, and max_memory_reserved of the last; then what is recomputed: none, or every
block, without reentrance (--recompute block draws such programs alone).
"""
import argparse, csv, json, math, os, random, sys, traceback

import torch
import torch.nn as nn
import torch.nn.functional as F


class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_out, d_in))

    def forward(self, x):
        return torch.einsum("abi,oi->abo", x, self.weight)


class RMSNorm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        in_dtype = x.dtype
        x = x.to(torch.float32)
        rms = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        x = x * rms
        return (self.weight * x).to(in_dtype)


class Rotary(nn.Module):
    def __init__(self, context, dim):
        super().__init__()
        self.register_buffer("table", torch.zeros(2, context, dim // 2), persistent=False)

    def forward(self, x):
        b, h, s, d = x.shape
        x1, x2 = x.reshape(b, h, s, d // 2, 2).permute(4, 0, 1, 2, 3).unbind(0)
        cos, sin = self.table[:, : x.size(-2), :].unbind(0)
        x1_rot = cos * x1 - sin * x2
        x2_rot = sin * x1 + cos * x2
        return torch.concat((x1_rot, x2_rot), dim=-1)


def softmax(x):
    rescaled = x - torch.max(x, dim=-1, keepdim=True)[0]
    exponentiated = torch.exp(rescaled)
    return exponentiated / torch.sum(exponentiated, dim=-1, keepdim=True)


def attention(q, k, v, mask):
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(k.shape[-1])
    scores = torch.where(mask, scores, float("-inf"))
    weights = softmax(scores)
    output = torch.einsum("bhqk,bhkd->bhqd", weights, v)
    return output


class Attention(nn.Module):
    def __init__(self, hidden, heads, rotary):
        super().__init__()
        self.heads, self.rotary = heads, rotary
        self.q_proj, self.k_proj = Linear(hidden, hidden), Linear(hidden, hidden)
        self.v_proj, self.output_proj = Linear(hidden, hidden), Linear(hidden, hidden)

    def forward(self, x):
        *batch, s, hidden = x.size()
        h = self.heads
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        q, k, v = (t.reshape(t.shape[0], s, h, hidden // h).permute(0, 2, 1, 3) for t in (q, k, v))
        q = self.rotary(q)
        k = self.rotary(k)
        iota = torch.arange(s, device=x.device)
        qi, kj = iota.reshape(s, 1), iota.reshape(1, s)
        mask = qi >= kj
        mask = mask.__getitem__((None,) * len(batch) + (...,))
        output = attention(q, k, v, mask)
        output = output.permute(0, 2, 1, 3).reshape(output.shape[0], s, hidden).contiguous()
        output = self.output_proj(output)
        return output


class SwiGLU(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.w1, self.w2, self.w3 = Linear(hidden, ffn), Linear(ffn, hidden), Linear(hidden, ffn)

    def silu(self, x):
        return x * torch.sigmoid(x)

    def forward(self, x):
        return self.w2(self.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, hidden, heads, ffn, rotary):
        super().__init__()
        self.attn, self.ffn = Attention(hidden, heads, rotary), SwiGLU(hidden, ffn)
        self.ln1, self.ln2 = RMSNorm(hidden), RMSNorm(hidden)

    def forward(self, x):
        x_attn = self.attn(self.ln1(x))
        attended = x + x_attn
        x_ffn = self.ffn(self.ln2(attended))
        result = attended + x_ffn
        return result


class Course(nn.Module):
    """The CS336 course's transformer."""

    def __init__(self, c):
        super().__init__()
        hidden, heads = c["hidden_size"], c["num_attention_heads"]
        self.token_embeddings = nn.Module()
        self.token_embeddings.weight = nn.Parameter(torch.empty(c["vocab_size"], hidden))
        rotary = self.positional_encoder = Rotary(c["max_position_embeddings"], hidden // heads)
        self.layers = nn.ModuleList(
            [Block(hidden, heads, c["intermediate_size"], rotary) for _ in range(c["num_hidden_layers"])])
        self.ln_final, self.lm_head = RMSNorm(hidden), Linear(hidden, c["vocab_size"])

    def forward(self, tokens):
        embedded = self.token_embeddings.weight[tokens, :]
        x = embedded
        for layer in self.layers:
            x = layer(x)
        x = self.ln_final(x)
        logits = self.lm_head(x)
        return logits


def course_loss(model, tokens, targets):
    logits = model(tokens)
    loss = F.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), targets.reshape(-1))
    return logits, loss


def one_sequence(find):
    """transformers looks at values for where positions begin again; here kernels compute none, and they do not."""
    def found(positions):
        find(positions)
    return found


def hugging_face(c, dtype, attention="sdpa"):
    import transformers

    major, minor = (int(part) for part in transformers.__version__.split(".")[:2])
    if (major, minor) >= (4, 53):  # before, nobody looks
        import transformers.masking_utils as masks

        masks.find_packed_sequence_indices = one_sequence(masks.find_packed_sequence_indices)
    torch.backends.cuda.enable_cudnn_sdp(False)  # flash attention; cuDNN's workspaces only it knows

    torch.set_default_dtype(dtype)
    config = transformers.CONFIG_MAPPING[c["model_type"]](**{k: v for k, v in c.items() if k != "model_type"})
    config._attn_implementation = attention
    model = transformers.AutoModelForCausalLM.from_config(config, **{"dtype" if major > 4 else "torch_dtype": dtype})
    torch.set_default_dtype(torch.float32)
    return model


def train(run):
    c, dtype = run["config"], {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[run["precision"]]
    course = run["code"] == "cs336"
    model = (Course(c) if course else hugging_face(c, dtype, run["attention"])).to("cuda").train()
    if run["recompute"] == "block":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    shape = (run["batch"], run["sequence"])
    tokens = torch.randint(0, c["vocab_size"], shape, device="cuda")
    targets = torch.randint(0, c["vocab_size"], shape, device="cuda") if course else None
    how = {"foreach": {}, "fused": {"fused": True}, "for-loop": {"foreach": False}}[run["optimizer"]]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **how)

    def step():
        optimizer.zero_grad()
        if course:
            logits, loss = course_loss(model, tokens, targets)
        else:
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()

    peaks = [torch.cuda.max_memory_allocated()]
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        step()
        peaks.append(torch.cuda.max_memory_allocated())
    return peaks + [torch.cuda.max_memory_reserved()]


# Classes that have no attention by scaled_dot_product_attention.
WITHOUT_SDPA = {"gemma2", "gptj", "gpt_neo", "codegen", "bloom", "mpt"}


def sizes_of_family(r, family, head, heads, kv_heads):
    """Keys of config.json: the widths, under the family's names."""
    hidden, layers, ffn = head * heads, r.randint(1, 4), r.randint(16, 3000)
    if family == "gpt_bigcode":
        return {"n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": 1024,
                "n_inner": r.choice([4 * hidden, r.randint(16, 2000)]), "resid_pdrop": 0.0, "embd_pdrop": 0.0,
                "attn_pdrop": 0.0, "multi_query": r.choice([True, True, False]),
                "tie_word_embeddings": r.choice([True, True, False])}
    if family in ("gptj", "codegen"):
        return {"n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": 1024, "n_inner": ffn,
                "rotary_dim": min(head, r.choice([16, 32, 64])), "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
                "tie_word_embeddings": False}
    if family == "bloom":
        return {"hidden_size": hidden, "n_layer": layers, "n_head": heads, "hidden_dropout": 0.0,
                "attention_dropout": 0.0, "tie_word_embeddings": r.choice([True, True, False])}
    if family == "mpt":
        return {"d_model": hidden, "n_layers": layers, "n_heads": heads, "max_seq_len": 1024, "resid_pdrop": 0.0,
                "emb_pdrop": 0.0, "tie_word_embeddings": r.choice([True, True, False])}
    if family == "gpt_neo":
        return {"hidden_size": hidden, "num_layers": layers, "num_heads": heads, "intermediate_size": ffn,
                "max_position_embeddings": 1024, "attention_types": [[["global"], 1], [["local"], layers - 1]], "window_size": 256,
                "resid_dropout": 0.0, "embed_dropout": 0.0, "attention_dropout": 0.0,
                "tie_word_embeddings": r.choice([True, True, False])}
    if family == "opt":
        return {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "ffn_dim": ffn,
                "max_position_embeddings": 1024, "dropout": 0.0, "attention_dropout": 0.0,
                "word_embed_proj_dim": r.choice([hidden, hidden, 48]), "do_layer_norm_before": r.choice([True, True, False]),
                "enable_bias": r.choice([True, True, False]),
                "activation_function": r.choice(["relu", "relu", "gelu", "gelu_new"]),
                "tie_word_embeddings": r.choice([True, True, False])}
    if family == "falcon":
        c = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "ffn_hidden_size": ffn,
             "max_position_embeddings": 1024, "hidden_dropout": 0.0, "attention_dropout": 0.0,
             "bias": r.choice([False, False, True]), "alibi": False, "tie_word_embeddings": r.choice([True, True, False])}
        kind = r.choice(["new", "7b", "parallel", "1b"])
        if kind == "new":
            return c | {"new_decoder_architecture": True, "num_kv_heads": kv_heads,
                        "num_ln_in_parallel_attn": r.choice([1, 2])}
        return c | {"new_decoder_architecture": False, "multi_query": kind == "7b", "parallel_attn": kind != "1b"}
    c = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": ffn,
         "max_position_embeddings": 1024, "tie_word_embeddings": r.choice([False, False, True])}
    if family != "gpt_neox":
        c |= {"num_key_value_heads": kv_heads}
    return c


def details_of_family(r, family, head, half):
    """Keys that only the family has."""
    if family == "mistral":
        return {"sliding_window": r.choice([None, 4096])}
    if family == "qwen3":
        return {"head_dim": r.choice([head, 64, 128]), "attention_bias": r.choice([False, False, True])}
    if family == "stablelm":
        return {"use_qkv_bias": r.choice([False, True]), "use_parallel_residual": r.choice([False, False, True]),
                "partial_rotary_factor": r.choice([0.25, 0.25, 0.5, 1.0])}
    if family == "phi":
        return {"tie_word_embeddings": False, "partial_rotary_factor": r.choice([0.5, 0.5, 0.25])}
    if family == "gpt_neox":
        return {"attention_bias": r.choice([True, True, False]), "use_parallel_residual": r.choice([True, True, False]),
                "rotary_pct": r.choice([0.25, 0.25, 0.5, 1.0]), "hidden_act": r.choice(["gelu", "gelu", "gelu_new", "relu"])}
    if family == "phi3":
        return {"partial_rotary_factor": r.choice([1.0, 1.0, 0.5]), "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    if family in ("gemma", "gemma2", "gemma3_text"):
        c = {"head_dim": r.choice([head, 64, 256 if half else 128]), "attention_bias": r.choice([False, False, True])}
        return c | ({"num_hidden_layers": r.choice([2, 6, 7])} if family == "gemma3_text" else {})
    return {}


def draw_family(r, family):
    """Of the families beside gpt2 and llama."""
    head, heads = r.choice([16, 32, 40, 64, 96, 128]), r.choice([1, 2, 3, 4, 6, 8])
    sequence = r.choice([r.randint(2, 64), r.randint(64, 400), r.randint(400, 1024)])
    groups = r.choice([g for g in (1, 2, 3, 4, 8) if heads % g == 0])
    if family == "codegen":
        heads = max(4, heads // 4 * 4)
    precision = r.choice(["fp32", "bf16", "bf16", "fp16"])
    c = {"model_type": family, "vocab_size": r.randint(50, 6000)}
    c |= sizes_of_family(r, family, head, heads, heads // groups) | details_of_family(r, family, head, precision != "fp32")
    run = {"code": "hugging-face", "config": c, "batch": r.randint(1, max(1, min(8, 3072 // sequence))),
           "sequence": sequence, "precision": precision, "optimizer": r.choice(["foreach", "foreach", "fused", "for-loop"]),
           "recompute": r.choice(["none", "none", "block"])}
    return run | ({"attention": "eager"} if family in WITHOUT_SDPA else {})


def draw(r, recompute, families=()):
    if families:
        return draw_family(r, r.choice(families))
    code = "hugging-face" if recompute == "block" else r.choice(["hugging-face", "hugging-face", "cs336"])
    family = "llama" if code == "cs336" else r.choice(["gpt2", "llama"])
    precision = "fp32" if code == "cs336" else r.choice(["fp32", "bf16", "fp16"])
    head = r.choice([16, 32, 40, 64, 96, 128])
    heads = r.choice([1, 2, 3, 4, 6, 8])
    hidden, layers, vocab = head * heads, r.randint(1, 4), r.randint(50, 6000)
    sequence = r.choice([r.randint(2, 64), r.randint(64, 400), r.randint(400, 1024)])
    batch = r.randint(1, max(1, min(8, 3072 // sequence)))
    if family == "gpt2":
        c = {"model_type": "gpt2", "vocab_size": vocab, "n_embd": hidden, "n_layer": layers, "n_head": heads,
             "n_positions": 1024, "n_inner": r.choice([4 * hidden, r.randint(16, 2000)]), "resid_pdrop": 0.0,
             "embd_pdrop": 0.0, "attn_pdrop": 0.0, "tie_word_embeddings": r.choice([True, True, False])}
    else:
        groups = [g for g in (1, 2, 3, 4, 8) if heads % g == 0]
        c = {"model_type": "llama", "vocab_size": vocab, "hidden_size": hidden, "num_hidden_layers": layers,
             "num_attention_heads": heads, "intermediate_size": r.randint(16, 3000), "max_position_embeddings": 1024}
        if code != "cs336":
            c |= {"num_key_value_heads": heads // r.choice(groups), "tie_word_embeddings": r.choice([False, False, True]),
                  "attention_bias": r.choice([False, False, False, True]), "mlp_bias": r.choice([False, False, False, True])}
    return {"code": code, "config": c, "batch": batch, "sequence": sequence, "precision": precision,
            "optimizer": r.choice(["foreach", "foreach", "fused", "for-loop"]), "recompute": recompute}


def answer_of(train, run, *more):
    """train(run, *more) in a process of its own; None, and the run on stderr, where it ends without an answer."""
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            os.dup2(2, 1)  # DeepSpeed prints
            os.write(write, json.dumps(train(run, *more)).encode())
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    os.wait()
    if not answer:
        print("failed:", json.dumps(run), file=sys.stderr)
    return json.loads(answer) if answer else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recompute", choices=["none", "block"], default="none")
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    parser.add_argument("--families", nargs="*", default=[], help="model_type of programs to draw alone")
    parser.add_argument("--out", default="dryruns.tsv")
    args = parser.parse_args()
    import importlib
    for family in {"gpt2", "llama", *args.families}:  # before the fork
        package = family.removesuffix("_text")
        importlib.import_module(f"transformers.models.{package}.modeling_{package}")

    draws = random.Random(args.seed)
    with open(args.out, "w", newline="") as out:
        rows = csv.writer(out, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
        rows.writerow(["code", "config", "batch", "sequence", "precision", "optimizer", "creation", "first", "second",
                       "third", "reserved", "recompute"])
        for _ in range(args.runs):
            run = {"attention": args.attention} | draw(draws, args.recompute, args.families)
            answer = answer_of(train, run)
            if answer is None:
                continue
            rows.writerow([run["code"], json.dumps(run["config"]), run["batch"], run["sequence"], run["precision"],
                           run["optimizer"], *answer, run["recompute"]])
            out.flush()


if __name__ == "__main__":
    main()
