#!/usr/bin/env python3
# Programs whose control flow reads other ranks' data: right with all ranks, with one an error that names the line, never
# a wrong answer with exit code 0.
"""
    run.py --shardscope build/release/bin/shardscope --python VENV/bin/python3 [--jobs N] [NAME ...]
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from programs import HEAD, PROGRAMS

WORLD = 4
SLACK = 2 ** 27  # workspaces


def bounds(width):
    """Parameters, gradients and two moments in fp32, and what a step takes beside them."""
    state = 4 * width * width * 4
    return state, 3 * state + SLACK


def asked(options, script, place, *words):
    command = [options.shardscope, "dryrun", "--cluster", "h100-80gb-x8", "--world-size", str(WORLD), "--timeout", "300",
               *words, "--json", "--", options.python, str(script)]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PLACE": str(place)}, timeout=700)
    try:
        return json.loads(run.stdout), run
    except ValueError:
        return {}, run


def faults_of(options, name):
    body, width = PROGRAMS[name]
    faults, told = [], 0
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / f"{name}.py"
        script.write_text(HEAD + body + "\n")
        answer, run = asked(options, script, folder, "--rank", "all")
        ranks = {each["rank"]: each for each in answer.get("ranks", [])}
        if run.returncode or sorted(ranks) != list(range(WORLD)):
            faults.append(f"all: exit code {run.returncode} {run.stderr.strip()[-300:]}")
        for rank, each in ranks.items():
            least, most = bounds(width(rank))
            trained = f"rank {rank} trains {width(rank)}." in run.stderr
            if not trained or not least <= each["peak_allocated_bytes"] <= most or each["steps_seen"] != 2:
                faults.append(f"all: rank {rank} took {each['peak_allocated_bytes']} in {each['steps_seen']} steps")
    for rank in (0, WORLD - 1):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / f"{name}.py"
            script.write_text(HEAD + body + "\n")
            answer, run = asked(options, script, folder, "--rank", str(rank))
            least, most = bounds(width(rank))
            right = (run.returncode == 0 and answer.get("steps_seen") == 2 and
                     least <= answer["peak_allocated_bytes"] <= most and f"rank {rank} trains {width(rank)}." in run.stderr)
            # Ours, or that of a file that another rank would have written.
            says = any(each in run.stderr for each in ("shardscope dryrun", "FileNotFoundError"))
            named = run.returncode != 0 and script.name in run.stderr and says
            told += named
            if not right and not named:
                faults.append(f"rank {rank}: exit code {run.returncode}, {answer.get('peak_allocated_bytes')} bytes, "
                              f"{answer.get('steps_seen')} steps {run.stderr.strip()[-200:]}")
    return faults, told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shardscope", default="shardscope")
    parser.add_argument("--python", required=True, help="of the environment that has PyTorch")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("names", nargs="*", help="programs; without, all")
    options = parser.parse_args()
    options.shardscope, options.python = os.path.abspath(options.shardscope), os.path.abspath(options.python)
    names, bad = options.names or list(PROGRAMS), 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, (faults, told) in zip(names, pool.map(lambda name: faults_of(options, name), names)):
            bad += bool(faults)
            print(f"{name:<24} {'; '.join(faults) or f'right with all ranks, {told} of 2 refused with one'}", flush=True)
    print(f"{len(names) - bad} of {len(names)} as they should be")
    return bad > 0


sys.exit(main())
