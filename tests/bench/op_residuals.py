#!/usr/bin/env python3
"""Predicted over measured, by kind of op: what `train --trace M --trace-predicted P` wrote, joined by `compare`.

    shardscope train --model gpt2-nano --data random --trace m.sst --trace-predicted p.sst --cluster here.json
    tests/bench/op_residuals.py --program build/release/bin/shardscope p.sst m.sst

Numbers in names (layers, units) are put together; steady steps only; of a collective the time while data moved.
"""
import argparse
import collections
import json
import re
import subprocess


def table(answer):
    """name without numbers -> [ops, predicted seconds, measured seconds]"""
    rows = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for name in answer["names"]:
        if name["phase"] != "steady_step":
            continue
        row = rows[re.sub(r"\b\d+\b", "#", name["name"])]
        row[0] += name["op_count"]
        row[1] += name["predicted_seconds"]
        row[2] += name["measured_seconds"]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/shardscope")
    parser.add_argument("--least", type=float, default=0.005, help="share of the step from which a row is shown")
    parser.add_argument("predicted")
    parser.add_argument("measured")
    o = parser.parse_args()
    done = subprocess.run([o.program, "compare", o.predicted, o.measured, "--json"], capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(done.stderr)
    answer = json.loads(done.stdout)
    rows = table(answer)
    whole = sum(row[2] for row in rows.values())
    print(f"step: predicted {answer['predicted_step_seconds'] * 1e3:.3f} ms, "
          f"measured {answer['measured_step_seconds'] * 1e3:.3f} ms")
    print(f"{'op':48} {'ops':>5} {'predicted':>10} {'measured':>10}  ratio")
    for name, (ops, predicted, measured) in sorted(rows.items(), key=lambda item: -item[1][2]):
        if measured >= o.least * whole:
            print(f"{name[:48]:48} {ops:5} {predicted * 1e3:8.3f}ms {measured * 1e3:8.3f}ms  {predicted / measured:5.2f}")


if __name__ == "__main__":
    main()
