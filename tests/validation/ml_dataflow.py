# Runs of ml_dataflow whose activations stay on the device, to typed columns: ml_dataflow.py ROWS.csv > TYPED.csv. README.md here.
import collections
import csv
import statistics
import sys

import normalise
from normalise import ASSUMED

# The recorded flops of a token without attention, over 6: 1.236e9 and 7.5e9, the parameters of these without an embedding.
SHAPES = {"1": dict(model="llama-3.2-1b", layers=16, hidden=2048, heads=32, kv_heads=8, ffn=8192, vocab=128256),
          "8": dict(model="llama-3-8b", layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, vocab=128256)}


def left_out(row):
    """Why a run is no row."""
    for reason, holds in [("did not run", row["ok"] != "1"),
                          ("of an older version", row["file"].startswith("prev_data")),
                          ("sizes that are not stated", row["model_size"] not in SHAPES),
                          ("no cluster has the card", row["gpu"] == "RTX5090"),
                          ("activations on the host", row["total_home_acts"] != "0")]:
        if holds:
            return reason
    return ""


def typed_of(row):
    rounds, sequences = int(row["num_rounds_per_step"]), int(row["seqs_per_step"])
    cells = dict(SHAPES[row["model_size"]], framework="ml_dataflow", gpu=row["gpu"], n_gpus=1, seq_len=row["seq_len"],
                 precision="bf16", micro_batch=sequences // rounds, grad_accum=rounds, ac_mode="none", date="2025-09",
                 evidence="measured", outcome="ok", flash_attn="yes", tp=1)
    typed = normalise.typed({k: str(v) for k, v in cells.items()})
    for setting, value in dict(code="llm_c", loss="fused", norms="fused", attention_kernel="newest" if row["gpu"] == "H100"
                               else "flash_2").items():
        typed[setting], typed[setting + "_from"] = value, ASSUMED
    return typed


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: ml_dataflow.py ROWS.csv > TYPED.csv")
    reasons, runs = collections.Counter(), collections.defaultdict(list)
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            reason = left_out(row)
            reasons[reason] += 1
            if not reason:
                runs[tuple(typed_of(row).items())].append(float(row["tok_per_sec"]))
    columns = normalise.PLAIN + [name for s in normalise.SETTINGS for name in (s, s + "_from")]
    out = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    out.writeheader()
    for number, (settings, speeds) in enumerate(runs.items(), 1):
        typed = dict(settings, id=f"{number:03}, {len(speeds)} limits of memory",
                     framework_name="ml_dataflow, states on the host", tokens_per_second=str(round(statistics.median(speeds), 3)))
        out.writerow(typed)
    for reason, count in reasons.most_common():
        print(f"left out: {count} {reason}" if reason else f"taken: {count}", file=sys.stderr)


if __name__ == "__main__":
    main()
