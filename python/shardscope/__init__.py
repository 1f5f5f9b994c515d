"""Shardscope from Python: each function runs one command of the program `shardscope` and gives its JSON as an object.

    import shardscope
    answer = shardscope.simulate(model="llama-3.1-8b", world_size=8, stage=3, cluster="h100-80gb-x8")
    answer.fits, answer.peak_device_bytes, answer.raw["verdict"]

Options are those of the command (`shardscope simulate --help all`), with _ for -.
"""

from ._commands import dryrun, inspect, search, simulate, sweep
from ._program import Error, program
from ._results import DryRun, Inspection, Result, Search, Simulation, Sweep

__all__ = [
    "DryRun", "Error", "Inspection", "Result", "Search", "Simulation", "Sweep",
    "dryrun", "inspect", "program", "search", "simulate", "sweep",
]
