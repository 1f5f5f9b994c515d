# Golden values of Megatron-LM's tests to typed columns: megatron_golden.py ROWS.csv CONFIGS.json > TYPED.csv. README.md here.
import collections
import csv
import json
import statistics
import sys

import normalise
from normalise import ASSUMED, DEFAULT, STATED

STEADY_POINTS = 10  # logged steps; with fewer, the middle may be no more than this above the fastest
STEADY_SPREAD = 1.05
GPT2_TOKENS = 50257  # of the tokenizers that read vocab.json


def whole(arguments, name, otherwise):
    value = arguments.get("--" + name, "")
    return int(value) if str(value).isdigit() else otherwise


def left_out(row, arguments):
    """Why a run is no row: what typed columns cannot say."""
    flag = lambda name: bool(arguments.get("--" + name))  # noqa: E731
    graphs = (flag("enable-cuda-graph") or flag("external-cuda-graph") or
              arguments.get("--cuda-graph-impl", "none") != "none")
    few = int(row["iteration_points"] or 0) < STEADY_POINTS
    for reason, holds in [
            ("no iteration time", not row["iteration_time_median_s"]),
            ("replaced by a later golden value", row["latest"] != "1"),
            ("no GPT", row["model"] not in ("gpt", "moe", "mixtral")),
            ("reinforcement learning: generation is in the iteration", flag("perform-rl-step")),
            ("distillation: a teacher runs too", flag("export-kd-teacher-load")),
            ("latent attention or predictions of several tokens",
             flag("multi-latent-attention") or flag("mtp-num-layers")),
            ("CUDA graphs", graphs),
            ("activations on the host", flag("fine-grained-activation-offloading")),
            ("Megatron's own FSDP", flag("use-megatron-fsdp") or flag("use-custom-fsdp") or flag("use-torch-fsdp2")),
            ("layers of a pipeline by a layout of their own", flag("pipeline-model-parallel-layout") or
             flag("decoder-first-pipeline-num-layers")),
            ("a precision by layer", flag("te-precision-config-file") or flag("fp4-format")),
            ("fp32", not flag("bf16") and not flag("fp16")),
            ("8 bits on an A100, which has none: not the run's card",
             flag("fp8-format") and card_of(row) == "a100"),
            ("no card stated", not card_of(row)),
            ("too few steps to call them steady", few and row["iteration_time_median_s"] and
             float(row["iteration_time_median_s"]) > STEADY_SPREAD * float(row["iteration_time_min_s"]))]:
        if holds:
            return reason
    return ""


def card_of(row):
    """The golden file's platform; before files had one, that of the test's name."""
    said = row["platform"] or row["golden"] + " " + row["test_case"]
    return next((card for card in ("gb200", "h100", "a100") if card in said), "")


def chunks_of(arguments, pipeline):
    """Runs of layers that a stage has: Megatron counts these, or the layers of one."""
    each = whole(arguments, "num-layers-per-virtual-pipeline-stage", 0)
    layers = whole(arguments, "num-layers", 0) // pipeline
    return whole(arguments, "num-virtual-stages-per-pipeline-rank", layers // each if each else 1)


def cells_of(row, arguments):
    """In the words of rows.csv."""
    n = lambda name, otherwise: whole(arguments, name, otherwise)  # noqa: E731
    card = card_of(row)
    per_host = int(row["gpus_per_node"] or 8)
    ranks = int(row["nodes"] or 1) * per_host
    tensor, pipeline = n("tensor-model-parallel-size", 1), n("pipeline-model-parallel-size", 1)
    context, micro = n("context-parallel-size", 1), n("micro-batch-size", 1)
    data = max(ranks // (tensor * pipeline * context), 1)
    hidden, heads = n("hidden-size", 0), n("num-attention-heads", 1)
    padding = n("make-vocab-size-divisible-by", 128) * tensor
    tokens = -(-n("vocab-size", GPT2_TOKENS) // padding) * padding
    gated = bool(arguments.get("--swiglu"))
    recompute = arguments.get("--recompute-granularity", "none")
    return dict(
        framework="Megatron-LM core", date=row["date"], model="llama" if gated else "gpt",
        layers=n("num-layers", 0), hidden=hidden, heads=heads,
        ffn=n("ffn-hidden-size", 8 * hidden // 3 if gated else 4 * hidden),
        kv_heads=n("num-query-groups", heads) if arguments.get("--group-query-attention") else heads, vocab=tokens,
        seq_len=n("seq-length", 0), gpu=card, n_gpus=ranks, gpus_per_node=per_host, tp=tensor, pp=pipeline, cp=context,
        vp=chunks_of(arguments, pipeline),
        zero_stage=1 if arguments.get("--use-distributed-optimizer") else 0,
        precision=("fp8 " if arguments.get("--fp8-format") else "") + ("bf16" if arguments.get("--bf16") else "fp16"),
        micro_batch=micro, grad_accum=max(n("global-batch-size", 1) // (micro * data), 1), ac_mode=recompute,
        evidence="measured", outcome="ok")


def put(typed, setting, value, origin):
    typed[setting], typed[setting + "_from"] = str(value), origin


def typed_of(row, arguments):
    flag = lambda name: "yes" if arguments.get("--" + name) else "no"  # noqa: E731
    typed = normalise.typed({k: str(v) for k, v in cells_of(row, arguments).items()})
    put(typed, "mixture", flag("num-experts"), STATED)
    put(typed, "tied", "no" if arguments.get("--untie-embeddings-and-output-weights") else "yes", STATED)
    put(typed, "sequence_parallel", flag("sequence-parallel") if typed["tensor_parallel"] != "1" else "no", STATED)
    put(typed, "head_dim", whole(arguments, "kv-channels", int(typed["head_dim"])), STATED)
    if row["gpus_per_node"] == "":
        typed["ranks_from"] = typed["ranks_per_host_from"] = ASSUMED
    stated = {"full": "block", "selective": "attention"}
    put(typed, "recompute", stated.get(arguments.get("--recompute-granularity"), "none"), STATED)
    engine = arguments.get("--transformer-impl", "transformer_engine") == "transformer_engine"
    backend = arguments.get("--attention-backend", "")
    written = backend == "unfused" or not engine and not arguments.get("--use-flash-attn")
    put(typed, "attention", "eager" if written else "flash", STATED if backend else DEFAULT)
    return typed


def speed(typed, seconds):
    tokens = int(typed["micro_batch"]) * int(typed["sequence"]) * int(typed["accumulation"])
    group = int(typed["tensor_parallel"]) * int(typed["pipeline_parallel"]) * int(typed["context_parallel"])
    return round(tokens / group / seconds, 3)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: megatron_golden.py ROWS.csv CONFIGS.json > TYPED.csv")
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with open(sys.argv[2], encoding="utf-8") as file:
        configs = json.load(file)
    reasons, runs, seen = collections.Counter(), collections.defaultdict(list), {}
    unsaid = ("id", "month", "month_from", "pytorch_version", "pytorch_version_from", "tokens_per_second",
              "ranks_from", "ranks_per_host_from", "attention_from")
    for row in sorted(rows, key=lambda r: (r["date"], r["golden"])):
        arguments = configs[row["config_blob"]].get("MODEL_ARGS", {})
        reason = left_out(row, arguments)
        if not reason and seen.setdefault((row["test_case"], row["iteration_time_median_s"]), row) is not row:
            reason = "the same time under another card or container: copied by hand"
        if reason:
            reasons[reason] += 1
            continue
        typed = typed_of(row, arguments)
        settings = tuple((k, v) for k, v in typed.items() if k not in unsaid)
        runs[settings].append((row["test_case"], typed, float(row["iteration_time_median_s"])))
    columns = normalise.PLAIN + [name for s in normalise.SETTINGS for name in (s, s + "_from")]
    out = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    out.writeheader()
    for number, same in enumerate(runs.values(), 1):
        typed = same[-1][1]
        seconds = statistics.median(seconds for _, _, seconds in same)
        typed["id"] = f"{number:03}, {len(same)} of {same[-1][0]}"
        typed["framework_name"] = "Megatron-LM golden values"
        typed["tokens_per_second"] = str(speed(typed, seconds))
        out.writerow(typed)
    for reason, count in reasons.most_common():
        print(f"left out: {count} {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
