#!/usr/bin/env python3
# Runs the programs of this folder under `shardscope dryrun`, and compares the answers with what each says of itself.
"""Runs the programs of this folder under `shardscope dryrun`, and compares the answers with what each says of itself.

    run.py --shardscope build/release/bin/shardscope --python VENV/bin/python3 [--recordings FOLDER] [PROGRAM ...]

A program's first comment says in lines `key: value` what comes out:
    dryrun         options of the run                       needs    packages; without them the program is left out
    arguments      the program's own; several runs by ";"   exit     its exit code (0)
    signal         that ended it (0)                        peak     bytes allocated at the peak; without it, some
    reserved       bytes reserved at the peak               pinned   pinned host memory was taken
    out_of_memory  a request got none                       says     what stands in what it prints
    steps          training steps seen                      kernels  at least, in the step that is priced
    phases         of the run, in the answer's order
What changed with a PyTorch has several values: `peak: 4194304; 2.14: 17825792` is the second one's from 2.14 on.
Recordings of GPUs in RECORDINGS are compared event by event (recordings.py).
"""
import argparse
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import recordings

HERE = pathlib.Path(__file__).resolve().parent
KEYS = {"dryrun", "needs", "arguments", "exit", "signal", "peak", "reserved", "pinned", "out_of_memory", "says",
        "steps", "phases", "kernels"}
TIME_LIMIT_SECONDS = 300


def of_version(value, version):
    """What `4194304; 2.14: 17825792` says for a version."""
    first, *later = value.split(";")
    numbers = [int(part) for part in re.findall(r"\d+", version)[:2]]
    for since, new in (each.split(":") for each in later):
        first = new if numbers >= [int(part) for part in since.split(".")] else first
    return first.strip()


def said_of(program, version):
    """What a program's first comment says of its run."""
    comment = itertools.takewhile(lambda line: line.startswith("#"), program.read_text().splitlines())
    said = dict(re.findall(r"^# ([a-z_]+): (.*)$", "\n".join(comment), re.MULTILINE))
    assert said.keys() <= KEYS, (program, said.keys() - KEYS)
    for key in ("peak", "reserved"):
        if key in said:
            said[key] = of_version(said[key], version)
    return said


def lacking(python, packages):
    """The first of the packages that this Python does not have."""
    look = """import importlib.util, sys
def has(name):
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:  # of what it stands in
        return None
print(next((name for name in sys.argv[1:] if not has(name)), ""))"""
    return subprocess.run([python, "-c", look, *packages], capture_output=True, text=True, check=True).stdout.strip()


def faults_of(said, answer, code, text):
    """What differs from what the program says of itself."""
    expected = {"exit_code": int(said.get("exit", 0)), "signal": int(said.get("signal", 0)),
                "out_of_memory": said.get("out_of_memory") == "1"}
    if "peak" in said:
        expected["peak_allocated_bytes"] = int(said["peak"])
    if "reserved" in said:
        expected["peak_reserved_bytes"] = int(said["reserved"])
    faults = [f"{key} is {answer.get(key)}, not {value}" for key, value in expected.items() if answer.get(key) != value]
    if code != expected["exit_code"]:
        faults.append(f"exit code {code}")
    killed = "reserved" in said
    if answer["peak_allocated_bytes"] <= 0 and not killed:
        faults.append("no memory was allocated")
    held = sum(each["bytes"] for each in answer["holders"]) + (answer.get("rest") or {}).get("bytes", 0)
    if not killed and held != answer["peak_allocated_bytes"]:
        faults.append(f"holders add up to {held}")
    if "steps" in said and answer.get("steps_seen") != int(said["steps"]):
        faults.append(f"{answer.get('steps_seen')} steps were seen")
    phases = [each["phase"] for each in answer.get("phases", [])]
    if "phases" in said and phases != said["phases"].split():
        faults.append(f"phases are {' '.join(phases)}")
    if "kernels" in said and (answer.get("step") or {}).get("kernels", 0) < int(said["kernels"]):
        faults.append(f"the step is {answer.get('step')}")
    if said.get("pinned") == "1" and answer.get("pinned_host_peak_bytes", 0) <= 0:
        faults.append("no pinned memory was seen")
    if said.get("says") and said["says"] not in text:
        faults.append(f"it does not say '{said['says']}'")
    return faults


def run_one(options, program, said, arguments):
    """One program's row of the table, and whether it is as expected."""
    command = [options.shardscope, "dryrun", "--json", "--timeout", str(TIME_LIMIT_SECONDS), *said.get("dryrun", "").split(),
               "--", options.python, str(program), *arguments.split()]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=2 * TIME_LIMIT_SECONDS)
    seconds = time.monotonic() - begin
    name = " ".join([program.stem, *arguments.split()])
    try:
        answer = json.loads(run.stdout)
    except ValueError:
        return name, None, seconds, [f"exit code {run.returncode}", run.stderr.strip()[-200:]], run
    return name, answer, seconds, faults_of(said, answer, run.returncode, run.stderr), run


def version_of(python):
    """Of PyTorch."""
    return subprocess.run([python, "-c", "from torch.version import __version__ as v; print(v)"], capture_output=True,
                          text=True, check=True).stdout.strip()


def main():
    # A program that the keyboard interrupts is to be interrupted, whoever runs this in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shardscope", default="shardscope")
    parser.add_argument("--python", required=True, help="of the environment that has PyTorch")
    parser.add_argument("--recordings", type=pathlib.Path, help="a folder of recordings of GPUs (.pickle, .pickle.xz)")
    parser.add_argument("--verbose", action="store_true", help="print what the programs print")
    parser.add_argument("programs", nargs="*", help="names; without, all")
    options = parser.parse_args()
    options.shardscope = os.path.abspath(options.shardscope) if "/" in options.shardscope else options.shardscope
    options.python = os.path.abspath(options.python)
    rows, bad, version = [], 0, version_of(options.python)
    for program in sorted((HERE / "programs").glob("*.py")):
        if options.programs and program.stem not in options.programs:
            continue
        said = said_of(program, version)
        missing = lacking(options.python, said.get("needs", "").split())
        if missing:
            rows.append((program.stem, f"left out: no {missing}"))
            continue
        for arguments in said.get("arguments", "").split(";"):
            name, answer, seconds, faults, run = run_one(options, program, said, arguments)
            peaks = f"{answer['peak_allocated_bytes']:>15,} {answer['peak_reserved_bytes']:>15,}" if answer else " " * 31
            rows.append((name, f"{peaks} {seconds:6.1f} s  {'; '.join(faults) or 'as expected'}"))
            bad += bool(faults)
            print(f"{name:<22} {rows[-1][1]}", flush=True)
            if options.verbose:
                print(run.stderr, file=sys.stderr)
    for path in sorted(options.recordings.glob("*.pickle*")) if options.recordings else []:
        text, good = recordings.compare(options.shardscope, options.python, version, path)
        rows.append((path.name.split(".pickle")[0], text))
        bad += good is False
    print(f"\nPyTorch {version}\n{'program':<22} {'peak allocated':>15} {'peak reserved':>15}     time")
    for name, text in rows:
        print(f"{name:<22} {text}")
    print(f"{len(rows)} programs and recordings, {bad} not as expected")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
