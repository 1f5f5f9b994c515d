# Rows of published runs, words in cells, to typed columns: normalise.py ROWS.csv > TYPED.csv. The rules: README.md here.
import csv
import re
import sys

from rules import (ADAPTER_RANK, BLACKWELL, CARDS, LOWER_POWER, NAMED_SHAPES, NETWORK_GBIT, OWN_MICRO_BATCH, PCIE_POWER,
                   PYTORCH_RELEASES, chunked_since,
                   compiled_loss_since, cudnn_kept_since, cudnn_on_blackwell_since, cudnn_since, ends_apart_since,
                   fused_norms_since, newest_attention_since)

STATED, DEFAULT, ASSUMED = "stated", "framework default", "assumed"
# Said of a row, and no setting of its run: no companion.
PLAIN = ["id", "framework_name", "evidence", "outcome", "memory_of", "memory_kind", "memory_bytes", "memory2_kind",
         "memory2_bytes", "tokens_per_second"]
SETTINGS = ["month", "framework", "framework_version", "pytorch_version", "code", "model", "family", "layers", "hidden",
            "heads", "kv_heads", "head_dim", "ffn", "vocab", "tied", "mixture", "sequence", "gpu", "gpu_bytes", "ranks",
            "ranks_per_host", "host_link", "host_link_bytes_per_second", "network_bytes_per_second", "power_watts", "tensor_parallel", "pipeline_parallel", "pipeline_chunks", "context_parallel", "sequence_parallel", "asynchronous_tensor_parallel", "stage",
            "shard_degree", "reshard_after_forward", "wrapping", "precision", "compute_type", "autocast", "reduced_bits", "float8", "float8_scales",
            "micro_batch", "accumulation", "recompute", "recompute_keeps_attention", "compile", "fused_kernels", "attention", "attention_kernel", "loss", "norms", "optimizer",
            "optimizer_step", "optimizer_bits", "adapter", "adapter_rank", "weight_bits", "offload_parameters",
            "offload_optimizer", "offload_activations", "expandable_segments"]


class Row:
    """The words of one row, in small letters, and what has been made of them."""

    def __init__(self, cells):
        self.cells = {k: (v or "").strip() for k, v in cells.items() if k}
        self.words = {k: v.lower() for k, v in self.cells.items()}
        self.typed = {}

    def __getitem__(self, column):
        return self.words.get(column, "")

    def has(self, column, *parts):
        return any(p in self[column] for p in parts)

    def word(self, column, *words):
        return any(re.search(r"(?<![a-z0-9])" + re.escape(w) + r"(?![a-z0-9])", self[column]) for w in words)

    def number(self, column):
        found = re.match(r"[0-9]+(\.[0-9]+)?([eE][0-9]+)?", self.cells.get(column, ""))
        value = float(found.group()) if found else 0.0
        return int(value) if value == int(value) else value

    def put(self, setting, value, origin):
        self.typed[setting] = "yes" if value is True else "no" if value is False else str(value)
        self.typed[setting + "_from"] = origin

    def of(self, setting):
        return self.typed[setting]

    def whole(self, setting):
        return int(self.typed[setting] or 0)


def put_date(r):
    found = re.match(r"(\d{4})(?:-(\d{2})(?!\d))?", r["date"])
    r.put("month", f"{found[1]}-{found[2] or '01'}" if found else "", STATED if found and found[2] else ASSUMED)
    version = re.search(r"(?:\bv|core )(\d+\.\d+(?:\.\d+)?)", r["framework"]) or re.search(r"\bv(\d+\.\d+\.\d+)", r["notes"])
    r.put("framework_version", version[1] if version else "", STATED if version else ASSUMED)
    torch = re.search(r"torch (\d+\.\d+)", r["revision"] + " " + r["notes"])
    known = [v for since, v in PYTORCH_RELEASES if since <= r.of("month")]
    r.put("pytorch_version", torch[1] if torch else known[-1] if known else "", STATED if torch else ASSUMED)


def put_framework(r):
    """Whose rules of memory, and whose code the model is."""
    f, s = "framework", "sharding"
    first = [("graph_fsdp", r.has(f, "graph_trainer", "simplefsdp", "compiler_toolkit")),
             ("fsdp2", r.has(f, "fsdp2") or r.has(s, "fsdp2", "megatron-fsdp")),
             ("gemini", r.has(f, "patrickstar") or r.has(s, "gemini", "chunk")),
             ("low_level_zero", r.has(f, "colossalai")),
             ("deepspeed", r.has(f, "deepspeed", "bmtrain")),
             ("megatron", r.has(f, "megatron", "nanotron", "llm.c")),
             ("megatron", r.has(f, "internevo") and not r.has(s, "fsdp")),
             ("fsdp1", r.has(f, "fsdp") or r.has(s, "fsdp")),
             ("ddp", r.word(f, "ddp") and r.number("n_gpus") > 1),
             ("pytorch", r.has(f, "torchtune", "ddp") or r.number("n_gpus") == 1)]
    r.put("framework", next((name for name, holds in first if holds), "other"), STATED)
    code = [("torchtitan", "torchtitan"), ("torchtitan", "torchtrain"), ("llm_foundry", "composer"), ("litgpt", "litgpt"),
            ("torchtune", "torchtune"), ("internevo", "internevo"), ("nanotron", "nanotron"), ("llm_c", "llm.c"),
            ("fms", "fms-fsdp"), ("megatron", "megatron"), ("patrickstar", "patrickstar"), ("bmtrain", "bmtrain"),
            ("atorch", "atorch"), ("hugging_face", "llama-recipes"), ("hugging_face", "qlora")]
    stated = next((c for c, part in code if part in r[f]), "")
    if not stated and r.of("framework") == "deepspeed" and r.number("tp") > 1:
        r.put("code", "megatron", DEFAULT)  # DeepSpeed cuts no products: Megatron's model under it does
    else:
        r.put("code", stated or "hugging_face", STATED if stated else ASSUMED)


def put_parallel(r):
    for setting, column in [("tensor_parallel", "tp"), ("pipeline_parallel", "pp"), ("context_parallel", "cp"),
                            ("ranks", "n_gpus")]:
        r.put(setting, max(r.number(column), 1), STATED if r[column] else ASSUMED)
    chunks = r.number("vp")
    r.put("pipeline_chunks", max(chunks, 1), STATED if chunks else DEFAULT)
    r.put("ranks_per_host", r.number("gpus_per_node") or "", STATED if r["gpus_per_node"] else ASSUMED)
    model = r.whole("tensor_parallel") * r.whole("pipeline_parallel") * r.whole("context_parallel")
    data = max(r.whole("ranks") // model, 1)
    stated = r.number("dp_shard")
    r.put("shard_degree", stated or data, STATED if stated else DEFAULT)
    fsdp = r.of("framework") in ("fsdp1", "fsdp2", "graph_fsdp")
    if r["zero_stage"]:
        r.put("stage", r.number("zero_stage"), STATED)
    else:
        r.put("stage", 3 if fsdp else 0, DEFAULT)
    never = r.has("sharding", "never", "grad_op")
    r.put("reshard_after_forward", not never, STATED if never or r.has("sharding", "reshard") else DEFAULT)
    apart = r.of("code") == "torchtitan" and r.of("month") >= ends_apart_since
    r.put("wrapping", "none" if not fsdp else "block_and_ends" if apart else "block", DEFAULT)
    sequence = (r.of("framework") in ("fsdp2", "graph_fsdp") or r.has("framework", "core", "nanotron", "bridge"))
    stated = r.has("ac_mode", "seq") or r.has("sharding", "sequence parallel")
    r.put("sequence_parallel", r.whole("tensor_parallel") > 1 and (sequence or stated), STATED if stated else DEFAULT)
    pieces = r.whole("tensor_parallel") > 1 and bool(re.search(r"async ?tp|asynchronous tensor", r["notes"]))
    r.put("asynchronous_tensor_parallel", pieces, STATED if pieces else DEFAULT)


def family_of(r):
    m = "model"
    if r.has(m, "vlm"):
        return "vision"
    if r.word(m, "mlp"):
        return "mlp"
    if r.has(m, "bert"):
        return "bert"
    for family in ["qwen3", "qwen2", "mistral", "internlm", "llama", "mpt", "phi", "stablelm"]:
        if r.has(m, family):
            return {"internlm": "llama", "stablelm": "gpt_neox", "qwen2": "qwen2"}.get(family, family)
    return "qwen2" if r.has(m, "qwen") else "gpt2"


def parameters(r, tied):
    """Of the shape that has been settled, embeddings once or twice."""
    h, f, v, n = (r.whole(k) for k in ("hidden", "ffn", "vocab", "layers"))
    q, kv = r.whole("head_dim") * r.whole("heads"), r.whole("head_dim") * r.whole("kv_heads")
    gated = r.of("family") in ("llama", "qwen2", "qwen3", "mistral")
    block = 2 * h * q + 2 * h * kv + (3 if gated else 2) * h * f + 2 * h
    return n * block + (1 if tied else 2) * v * h + (0 if gated else r.whole("sequence") * h)


def put_model(r):
    r.put("model", r.cells.get("model", ""), STATED)
    r.put("family", family_of(r), STATED)
    mixture = r.has("model", "deepseek", "ds-v", "mixtral", "-a3b", "moe")
    r.put("mixture", mixture, STATED)
    shape = next((s for words, s in NAMED_SHAPES if words in r["model"]), {})
    for setting in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab"):
        stated = r.number(setting)
        r.put(setting, stated or shape.get(setting, ""), STATED if stated else ASSUMED)
    stated = r.number("seq_len")
    r.put("sequence", stated or "", STATED if stated else ASSUMED)
    if not r.of("hidden") or not r.of("layers"):
        for setting in ("head_dim", "tied"):
            r.put(setting, "", ASSUMED)
        return
    hidden = r.whole("hidden")
    usual = {"heads": max(1, hidden // 128), "ffn": 11008 if r.has("model", "internlm") else 4 * hidden, "vocab": 51200}
    for setting, value in usual.items():
        if not r.of(setting):
            r.put(setting, value, ASSUMED)
    if not r.of("kv_heads"):
        r.put("kv_heads", r.of("heads"), ASSUMED)
    r.put("head_dim", 128 if r.has("model", "qwen3") else hidden // r.whole("heads"), DEFAULT)
    put_tying(r)


def put_tying(r):
    """What comes nearer to the stated number of parameters; else as the family's configurations have it."""
    family, stated = r.of("family"), r.number("params")
    tied = family in ("gpt2", "mpt", "bert") or r.has("model", "3.2-")
    if r.has("model", "nanotron"):
        tied = r.whole("layers") < 32
    one, two = (abs(parameters(r, t) - stated) for t in (True, False))
    if stated > 0 and min(one, two) < 0.02 * stated:
        r.put("tied", one < two, STATED)
    else:
        r.put("tied", tied, DEFAULT)


def put_machine(r):
    card = next((c for c in CARDS if c in r["gpu"]), "")
    r.put("gpu", card, STATED if card else ASSUMED)
    gib = r.number("gpu_mem_gib")
    r.put("gpu_bytes", round(gib * 2**30) if gib else "", STATED if gib else ASSUMED)
    put_links(r, card)
    watts = re.search(r"(\d+)w\b", r["gpu"])
    lower = LOWER_POWER.get(card) if r.has("gpu", "power limited") else PCIE_POWER.get(card) if r.has("gpu", "pcie") else None
    r.put("power_watts", watts[1] if watts else lower or "", STATED if watts else ASSUMED)


def put_links(r, card):
    """Between the GPUs of a host, and from each to the network."""
    words = "interconnect"
    link = "none" if r.has(words, "no comm") else "pcie" if r.has(words, "pcie") and not re.match(r".*(?<!no )nvlink", r[words]) else "nvlink"
    r.put("host_link", link, STATED if r[words] else ASSUMED)
    stated = re.search(r"nvlink\((\d+)gb/s\)", r[words])
    r.put("host_link_bytes_per_second", int(stated[1]) * 10**9 if stated else "", STATED if stated else ASSUMED)
    adapters, all_together = re.search(r"(\d+)x(\d+)\s*gb", r[words]), re.search(r"(\d+)\s*gb/s", r[words])
    if adapters:
        gbit = int(adapters[1]) * int(adapters[2]) / 8
    elif all_together:
        gbit = int(all_together[1]) / (1 if "per gpu" in r[words] else 8)
    else:
        gbit = NETWORK_GBIT.get(card, 400)
    r.put("network_bytes_per_second", round(gbit * 1e9 / 8), STATED if adapters or all_together else ASSUMED)


def put_precision(r):
    p, framework = "precision", r.of("framework")
    fsdp = framework in ("fsdp1", "fsdp2", "graph_fsdp")
    low = r.has(p, "fp8", "float8", "mxfp8", "fp4")
    half = low or r.has(p, "bf16", "fp16")
    origin = STATED if r[p] else ASSUMED
    if r.has(p, "mixed_precision="):
        precision = "master_shards"  # Composer: PURE and DEFAULT differ in what ranks sum up; both rest in fp32
    elif r.has(p, "pure", "true", "lora", "adamw bf16"):
        precision = "all_16_bit"
    elif r.has(p, "fp32 grad") and not fsdp:
        precision = "fp32_gradients"
    elif fsdp:
        precision = "fp32" if r.word(p, "fp32") and not half else "master_shards"
    elif framework == "megatron" and r.has("framework", "megatron"):
        precision = "fp32_gradients"
    elif framework in ("pytorch", "ddp"):
        precision = "all_16_bit" if half else "fp32"
    else:
        precision = "beside_masters"
    r.put("precision", precision, origin)
    r.put("compute_type", "fp32" if precision == "fp32" else "fp16" if r.has(p, "fp16") else "bf16",
          origin if half or precision == "fp32" else ASSUMED)
    r.put("autocast", r.has(p, "amp", "autocast"), origin)
    gathered = r.has(p, "all-gather") and not r.has(p, "no fp8")
    r.put("float8", "none" if not low else "four_bits" if r.has(p, "fp4") else "gathered" if gathered else "inputs", origin)
    scales = ("block" if r.has(p, "mx", "fp4", "block") else "row" if r.has(p, "rowwise") else "tensor")
    r.put("float8_scales", scales if low else "none", STATED if low and r.has(p, "mx", "fp4", "block", "row", "tensorwise") else DEFAULT)
    wide = r.has(p, "fp32 reduce", "fp32 grad", "=default") or framework == "megatron" or r.of("code") == "torchtitan"
    r.put("reduced_bits", 32 if wide or precision == "fp32" else 16, STATED if r.has(p, "reduce", "grad", "mixed_precision=") else DEFAULT)
    bits = 4 if r.has(p, "qlora", "nf4") or r.has("notes", "qlora") else 16
    r.put("weight_bits", bits if bits == 4 else 32 if precision in ("fp32", "master_shards") else 16, origin)


def put_batch(r):
    stated, origin = r.number("micro_batch"), STATED
    accumulation = max(r.number("grad_accum"), 1)
    tensor = r.whole("tensor_parallel")
    data = max(r.whole("ranks") // (tensor * r.whole("pipeline_parallel") * r.whole("context_parallel")), 1)
    whole = re.search(r"global batch (\d+)", r["notes"])
    if whole and int(whole[1]) % (data * accumulation) == 0:
        batch = int(whole[1]) // (data * accumulation)
    elif not stated:
        batch, origin = 1, ASSUMED
    elif r.of("framework") == "megatron" or r.of("code") in OWN_MICRO_BATCH or r.has("notes", "batch per dp group"):
        batch = stated
    else:
        batch = stated * tensor  # of the tensor-parallel group
    if r.word("notes", "dpo", "simpo", "orpo"):
        batch, origin = 2 * batch, DEFAULT  # the chosen and the rejected answer are one batch
    r.put("micro_batch", batch, origin)
    r.put("accumulation", accumulation, STATED if r.number("grad_accum") else ASSUMED)


def recompute_of(r):
    a = "ac_mode"
    if r.has(a, "every-2nd"):
        return "every_other_block", STATED
    if r.has(a, "save gate", "ilp"):
        return "other", STATED
    if r.has(a, "full", "per-block"):
        return "block", STATED
    if r.has(a, "attn"):
        return "attention", STATED
    if r.has(a, "unspecified") and r.of("framework") in ("fsdp2", "graph_fsdp"):
        return "selective", DEFAULT  # torchtitan's configurations
    if r.has(a, "selective", "sac"):
        return "selective", STATED
    if not r[a] and r.has("framework", "llama-recipes"):
        return "block", DEFAULT  # configs/fsdp.py: fsdp_activation_checkpointing
    return "none", STATED if r.has(a, "none") else DEFAULT


def compile_of(r):
    c = "compile"
    if r.has(c, "graph", "toolkit", "deepcompile") or r.of("framework") == "graph_fsdp":
        return "model"
    return "block" if r[c].startswith("yes") or r.has(c, "inductor") else "none"


def loss_of(r):
    month, torchtitan = r.of("month"), r.of("code") == "torchtitan"
    if r.has("notes", "chunked"):
        return "chunked", STATED
    if r.of("framework") == "megatron":
        return "fused", DEFAULT
    if torchtitan and month >= chunked_since:
        return "chunked", DEFAULT
    if r.of("compile") != "none" and (not torchtitan or month >= compiled_loss_since):
        return "compiled", DEFAULT
    if r.of("code") == "llm_foundry" and r.of("family") == "mpt":
        return "one_pass", DEFAULT  # modeling_mpt.py: flash-attention's cross-entropy
    return "eager", DEFAULT


def attention_kernel(r):
    """FlashAttention's first version where code of its time calls it, PyTorch's second, or what came later."""
    if r.of("code") in ("llm_foundry", "internevo"):
        return "flash_1"
    newer = r.of("gpu") in BLACKWELL + ("h200",) or r.of("framework") == "megatron" and r.has("framework", "megatron")
    return "newest" if newer or r.of("code") == "torchtitan" and r.of("month") >= newest_attention_since else "flash_2"


def put_levers(r):
    r.put("recompute", *recompute_of(r))
    r.put("compile", compile_of(r), STATED if r["compile"] and not r.has("compile", "unspecified") else DEFAULT)
    # A graph that is captured and run operator by operator has eager's kernels.
    captured = r.of("framework") == "graph_fsdp" or r.has("compile", "aot_eager", "aot_fx")
    r.put("fused_kernels", r.of("compile") != "none" and (not captured or r.has("compile", "inductor", "yes")), DEFAULT)
    flash = r["flash_attn"]
    since = r.of("month") >= "2024-01"  # transformers 4.36 takes PyTorch's fused attention
    written = flash.startswith("no") or (not flash and r.of("framework") == "deepspeed" and not since)
    r.put("attention", "eager" if written else "flash", STATED if flash else DEFAULT)
    # cuDNN's attention is torchtitan's first choice, and was not in its policy's list at first.
    cudnn = r.of("code") == "torchtitan" and r.of("month") >= (
        cudnn_on_blackwell_since if r.of("gpu") in BLACKWELL else cudnn_since)
    kept = not cudnn or r.of("month") >= cudnn_kept_since
    r.put("recompute_keeps_attention", kept, DEFAULT)
    r.put("attention_kernel", attention_kernel(r), DEFAULT)
    r.put("loss", *loss_of(r))
    fused = (r.of("compile") != "none" or r.of("framework") == "megatron" or r.of("family") in ("gpt2", "mpt", "phi", "gpt_neox")
             or (r.of("code") == "torchtitan" and r.of("month") >= fused_norms_since))
    r.put("norms", "fused" if fused else "written_out", DEFAULT)
    r.put("optimizer", "adam" if r.has("sharding", "adam ddp") or r.has("sharding", "(adam)") else "adamw",
          STATED if r.has("precision", "adamw") else DEFAULT)
    put_optimizer_step(r)
    o, f = "offload", r.of("framework")
    parameters_too = r.has(o, "param") or (r.has(o, "fsdp") and r.has(o, "cpu"))
    origin = STATED if r[o] else DEFAULT
    r.put("offload_activations", r.has(o, "activation"), origin)
    r.put("offload_parameters", parameters_too, origin)
    r.put("offload_optimizer", parameters_too or r.has(o, "optimizer") or (f == "gemini" and r.has(o, "cpu", "auto")), origin)
    expandable = r.has("notes", "expandable_segments") and not r.has("notes", "without expandable")
    launched = r.of("code") == "torchtitan" and r.of("month") >= "2024-11"  # its run_train.sh sets it
    r.put("expandable_segments", expandable or launched, STATED if r.has("notes", "expandable_segments") else DEFAULT)


def put_optimizer_step(r):
    eight = r.has("notes", "8-bit adam")
    r.put("optimizer_bits", 8 if eight else 32, STATED if eight else DEFAULT)
    if r.has("notes", "optimizer in backward") or eight:
        r.put("optimizer_step", "in_backward", STATED)
    elif r.has("precision", "not fused") or r.has("notes", "foreach"):
        r.put("optimizer_step", "foreach", STATED)
    elif r.has("precision", "fused"):
        r.put("optimizer_step", "fused", STATED)
    elif r.of("code") == "llm_foundry":
        r.put("optimizer_step", "single", DEFAULT)  # composer's DecoupledAdamW: parameter by parameter
    else:
        r.put("optimizer_step", "fused" if r.of("code") == "torchtitan" or r.of("framework") == "megatron" else "foreach", DEFAULT)


def put_adapter(r):
    low_rank = any(r.has(c, "lora") for c in ("precision", "framework")) or r.word("notes", "lora", "qlora") or \
        r.has("notes", "lora_rank")
    quantised = r.of("weight_bits") == "4"
    rank = re.search(r"(?:lora_rank|rank|r)[ =](\d+)", r["notes"] + " " + r["precision"]) if low_rank else None
    r.put("adapter", "qlora" if low_rank and quantised else "lora" if low_rank else "none", STATED)
    r.put("adapter_rank", rank[1] if rank else ADAPTER_RANK if low_rank else 0, STATED if rank or not low_rank else ASSUMED)


def memory_kind(words):
    for kind, parts in [("states", ["model states"]), ("reserved", ["unspecified"]), ("nvidia_smi", ["smi"]),
                        ("reserved", ["reserved"]), ("active", ["active"]),
                        ("allocated", ["allocated", "torch peak", "activations"])]:
        if any(p in words for p in parts):
            return "not_stated" if parts == ["unspecified"] and "reserved" not in words else kind
    return "not_stated"


def put_figures(r):
    r.typed["memory_of"] = "host" if r.has("mem_kind", "host") else "device"
    for figure, kind, name in [("peak_mem_gib", "mem_kind", "memory"), ("peak_mem2_gib", "mem2_kind", "memory2")]:
        value = r.number(figure)
        known = 0 < value < 1e6 and r.typed["memory_of"] == "device"
        unit = 1e9 if r.word(kind, "gb") else 2**30
        r.typed[name + "_kind"] = memory_kind(r[kind]) if known else ""
        r.typed[name + "_bytes"] = str(round(value * unit)) if known else ""
    e = r["evidence"]
    r.typed["evidence"] = "measured" if not e or e.startswith("measured") else "maximum" if "maximum" in e else "analytic"
    outcome = r["outcome"]
    out_of_memory = outcome.startswith("oom") or "out of memory" in outcome
    bound = "upper bound" in outcome or (r.typed["evidence"] == "maximum" and not r.typed["memory_bytes"])
    r.typed["outcome"] = "out_of_memory" if out_of_memory else "fits" if bound else "ran"
    speed, step = r.number("tokens_s_gpu"), r.number("step_time_s")
    per_group = r.whole("micro_batch") * r.whole("sequence") * r.whole("accumulation") if r["micro_batch"] else 0
    group = r.whole("tensor_parallel") * r.whole("pipeline_parallel") * r.whole("context_parallel")
    if not speed and step and per_group:
        speed = round(per_group / group / step, 3)
    r.typed["tokens_per_second"] = str(speed or "")


def typed(cells):
    r = Row(cells)
    r.typed["id"] = r.cells.get("id", "")
    r.typed["framework_name"] = r.cells.get("framework", "")
    for rule in (put_date, put_framework, put_parallel, put_model, put_machine, put_precision, put_batch, put_levers,
                 put_adapter, put_figures):
        rule(r)
    return r.typed


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: normalise.py ROWS.csv > TYPED.csv")
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = PLAIN + [name for s in SETTINGS for name in (s, s + "_from")]
    out = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    out.writeheader()
    out.writerows(typed(row) for row in rows)


if __name__ == "__main__":
    main()
