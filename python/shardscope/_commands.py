"""The functions: one for each command that answers with JSON."""

from __future__ import annotations

import os
import sys
from typing import Any, Sequence, Union

from ._program import Error, ask
from ._results import DryRun, Inspection, Search, Simulation, Sweep

PathLike = Union[str, "os.PathLike[str]"]


def simulate(**options: Any) -> Simulation:
    """Predicts memory, communication and time of one strategy: `shardscope simulate`.

    simulate(model="gpt2-medium", world_size=8, stage=3) is --model gpt2-medium --world-size 8 --stage 3; True is a flag,
    None leaves an option out, and a list is joined by commas or repeats the option, whichever the option takes. Raises
    Error; that it does not fit is an answer (fits is False).
    """
    return Simulation.of(*ask("simulate", (), options))


def search(**options: Any) -> Search:
    """Finds the chunk size that wastes least: `shardscope search`. Options as for simulate()."""
    return Search.of(*ask("search", (), options))


def sweep(**options: Any) -> Sweep:
    """Predicts many strategies, from lists in any option: `shardscope sweep`; sweep(stage=[2, 3], world_size=[8, 16])."""
    return Sweep.of(*ask("sweep", (), options))


def dryrun(program: Union[PathLike, Sequence[str], None] = None, **options: Any) -> DryRun:
    """Runs a PyTorch program on a GPU that is not there and says what memory it takes: `shardscope dryrun`.

    The program is a process of its own, with its own PyTorch: nothing of this one is seen, and what is defined here is not
    there. program is its command line (["torchrun", "train.py"]), or one script, which this Python runs; without it,
    recipe= runs what is installed. Its output is captured, and in an Error's stderr where it fails (code is its exit code).
    That it ran out of memory is an answer.
    """
    if program is None:
        behind: Sequence[str] = ()
    elif isinstance(program, (str, os.PathLike)):
        behind = [sys.executable, os.fspath(program)]
    else:
        behind = [os.fspath(word) for word in program]
    try:
        return DryRun.of(*ask("dryrun", (), options, behind))
    except Error as error:
        if error.raw and error.raw.get("out_of_memory"):
            return DryRun.of(error.raw, error.stderr)
        raise


def inspect(*files: PathLike, **options: Any) -> Inspection:
    """Says what is in a trace, a recording or a model: `shardscope inspect FILE...`."""
    return Inspection.of(*ask("inspect", [os.fspath(file) for file in files], options))
