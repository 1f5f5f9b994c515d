#!/usr/bin/env python3
# Plants the bugs of the CPU's list and asks `shardscope verify` what it says of a program that has one.
"""Usage: tests/mutants/verify_finds.py [--build DIR] [--only NAME ...] [--table FILE] [--jobs N]

`verify` runs each of the strategies below against stage 0 on one rank. What a bug comes to:
  found      bits differ: the first step, tensor and rank that do
  refused    the program's own checks end it before or in the run; with its message
  in both    the state differs from that of the program without the bug, and stage 0 has the same: a faulty kernel, say,
             which no comparison within one program can find (tests against references do: plant.py)
  no change  every state is that of the program without the bug
Exit status: 0; 2 where the program without a bug differs from itself, or the list or the build is wrong.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import plant  # noqa: E402

GPT = ["--model", "gpt2-nano", "--sequence", "16"]
LLAMA = ["--model", str(plant.ROOT / "tests/data/models/llama-nano.json"), "--sequence", "16"]
# Of sizes that no number of ranks divides.
ODD = {"model_type": "gpt2", "vocab_size": 67, "n_positions": 16, "n_embd": 21, "n_layer": 2, "n_head": 3,
       "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "tie_word_embeddings": True}
ODD_MODEL = "odd.json"  # in the build's folder
STRATEGIES = [
    [*GPT, "--ranks", "2", "--stage", "3", "--unit", "chunk", "--prefetch", "2"],
    ["--model", ODD_MODEL, "--ranks", "4", "--stage", "2", "--micro-batch", "1", "--global-batch", "16",
     "--clip-norm", "0.5"],
    [*GPT, "--ranks", "2", "--stage", "1", "--unit", "tensor", "--precision", "bf16", "--recompute", "block"],
    ["--model", ODD_MODEL, "--ranks", "4", "--stage", "3", "--shard-group", "2", "--precision", "fp16", "--clip-norm",
     "1", "--inject-overflow", "1:2"],
    [*GPT, "--ranks", "2", "--stage", "0", "--dropout", "0.1", "--recompute", "block", "--global-batch", "8",
     "--micro-batch", "1"],
    [*GPT, "--ranks", "4", "--stage", "1", "--tensor-parallel", "2", "--dropout", "0.1"],
    [*LLAMA, "--ranks", "2", "--stage", "3", "--placement", "host", "--unit", "chunk", "--global-batch", "4",
     "--micro-batch", "1"],
    [*GPT, "--ranks", "4", "--stage", "1", "--partition", "parameter", "--precision", "fp16", "--recompute", "selective",
     "--initial-scale", "1e30"],
    ["--model", ODD_MODEL, "--ranks", "8", "--stage", "3", "--unit", "tensor", "--prefetch", "1"],
]


def asked(build: plant.Build, strategy: list[str]) -> dict:
    """What `verify` says: its JSON, or {"error": ...}."""
    command = [build.build / "bin/shardscope", "verify", "--data", "random", "--steps", "3", "--lr", "0.01", *strategy,
               "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=build.limit,
                              cwd=build.build)
    except subprocess.TimeoutExpired:
        return {"error": f"still running after {build.limit} s"}
    if done.returncode in (0, 1) and done.stdout.startswith("{"):
        return json.loads(done.stdout)
    said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["nothing"]
    return {"error": f"exit {done.returncode}: {said[0][:200]}"}


def verdict(build: plant.Build, sound: list[dict]) -> tuple[str, str]:
    """The strongest that a strategy shows, and in words."""
    refused = both = ""
    for strategy, without in zip(STRATEGIES, sound):
        said = asked(build, strategy)
        if "error" in said:
            refused = refused or said["error"]
        elif not said["bit_identical"]:
            first = said["first_difference"]
            where = f"{first['tensor']}[{first['element']}]" if first.get("tensor") else "the loss"
            return "found", f"step {first['step']}, {first['what']} of {where}, rank {first['rank']}"
        elif said["state_sha256"] != without["state_sha256"]:
            both = "stage 0 on one rank has it too"
    if refused:
        return "refused", refused
    return ("in both", both) if both else ("no change", "")


def main() -> int:
    parser = argparse.ArgumentParser(description="What verify says of planted bugs.")
    parser.add_argument("--build", default="build/mutants", help="folder of the copy and its build (=build/mutants)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these bugs only")
    parser.add_argument("--table", help="write the result as Markdown")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at a time (=2)")
    parser.add_argument("--limit", type=int, default=60, help="seconds that a strategy may take (=60)")
    arguments = parser.parse_args()
    mutants = [m for m in tomllib.loads((plant.HERE / plant.LISTS["cpu"]).read_text())["mutant"]
               if not arguments.only or m["name"] in arguments.only]
    build = plant.Build(pathlib.Path(arguments.build).resolve(), arguments.jobs, arguments.limit, [])

    def made() -> str:
        return build.make("shardscope") or build.make("shardscope-train")

    (build.build / ODD_MODEL).write_text(json.dumps(ODD))
    if error := made():
        print(f"verify_finds.py: the sources: {error}", file=sys.stderr)
        return 2
    sound = [asked(build, strategy) for strategy in STRATEGIES]
    for strategy, said in zip(STRATEGIES, sound):
        if not said.get("bit_identical"):
            print(f"verify_finds.py: without a bug, {' '.join(strategy)}: {said.get('error', 'differs')}", file=sys.stderr)
            return 2
    rows = []
    for mutant in mutants:
        path = build.source / mutant["file"]
        text = plant.text_of(build.source, mutant)
        path.write_text(text.replace(mutant["old"], mutant["new"]))
        try:
            if error := made():
                print(f"{mutant['name']}: does not build:\n{error}", file=sys.stderr)
                return 2
            kind, words = verdict(build, sound)
        finally:
            path.write_text(text)
        rows.append((mutant["name"], kind, words))
        print(f"{mutant['name']}: {kind}{': ' if words else ''}{words}", flush=True)
    counts = collections.Counter(kind for _, kind, _ in rows)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    if arguments.table:
        lines = ["| bug | `verify` | what it says |", "|---|---|---|"] + [f"| {n} | {k} | {w} |" for n, k, w in rows]
        pathlib.Path(arguments.table).write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
