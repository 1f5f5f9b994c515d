# Recordings of real GPUs, and whether a program that does the same allocates the same under `dryrun`: every allocation
# and free of the recording in order and size, one behind the other, and the peaks to the byte.
import json
import lzma
import pathlib
import pickle
import struct
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# Name of the recording: program, options, the PyTorch that it was made with, peak allocated and reserved. Of the first one
# a single step is recorded, the sixth, with 68,711,221,760 bytes at its peak; an earlier step takes 360,448 more, as other
# tails are not split off.
KNOWN = {
    "transformer_3.4b_step_fp32": ("decoder_step", ["--cluster", str(HERE / "cards" / "rtx-pro-6000.json")], "2.11",
                                   68711582208, 74637639680),
    "transformer_small_from_start": ("decoder_from_start", ["--cluster", "rtx4090-24gb-x1", "--addresses", "up"], "2.6",
                                     695675904, 786432000)}


def events_of(snapshot):
    """Sizes of what was allocated, and of what was freed, negative."""
    signs = {"alloc": 1, "free_completed": -1}
    traces = max(snapshot["device_traces"], key=len)
    return [signs[e["action"]] * e["size"] for e in traces if e["action"] in signs]


def found(needle, stack):
    """The place of one list of integers in another; none where it is not there in one piece."""
    whole, part = (struct.pack(f"{len(each)}q", *each) for each in (stack, needle))
    at = whole.find(part)
    while at > 0 and at % 8 != 0:
        at = whole.find(part, at + 1)
    return None if at < 0 else at // 8


def loaded(path):
    data = path.read_bytes()
    return pickle.loads(lzma.decompress(data) if path.suffix == ".xz" else data)


def compare(shardscope, python, version, path):
    """What is to be said of a recording, and whether all is equal (None: not asked of this PyTorch)."""
    name = path.name.split(".pickle")[0]
    if name not in KNOWN:
        return "no program does the same", None
    program, options, torch, allocated, reserved = KNOWN[name]
    if not version.startswith(torch + "."):
        return f"made with PyTorch {torch}", None
    with tempfile.TemporaryDirectory() as folder:
        written = pathlib.Path(folder) / "dry.pickle"
        run = subprocess.run([shardscope, "dryrun", "--json", "--trace", str(written), *options, "--", python,
                              str(HERE / "programs" / f"{program}.py")], capture_output=True, text=True, timeout=600)
        if run.returncode != 0:
            return run.stderr.strip()[-200:], False
        answer, own = json.loads(run.stdout), events_of(loaded(written))
    recorded = events_of(loaded(path))
    faults = []
    if found(recorded, own) is None:
        faults.append("events differ")
    for key, value in (("peak_allocated_bytes", allocated), ("peak_reserved_bytes", reserved)):
        if answer[key] != value:
            faults.append(f"{key} is {answer[key]}, not {value}")
    return "; ".join(faults) or f"{len(recorded):,} events in order and size, both peaks to the byte", not faults
