# A training run that a trial starts: by `shardscope train`, by mpirun, or rank by rank with torchrun's variables.
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

HOW = ("train", "mpirun", "torchrun")
MARK = "SHARDSCOPE_TEST_RUN"
SAVED = re.compile(r"^saved +\S*step-(\d+)", re.M)


def processes_with(*variables: str) -> list[int]:
    """Processes that live and have all of these in the environment that they were started with."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = pathlib.Path("/proc", name, "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # ended meanwhile, or another user's
        if all(v.encode() in environment for v in variables):
            found.append(int(name))
    return found


def is_program(process: int) -> bool:
    """Whether it is one of ours, not mpirun or a shell on the way to it."""
    try:
        return "shardscope" in pathlib.Path(f"/proc/{process}/comm").read_text()
    except OSError:
        return False


def free_port(number: int) -> int:
    """One below those that the system gives out by itself; trials beside each other begin at others."""
    for step in range(2000):
        port = 20000 + (number * 7 + step * 61) % 12000
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no free port")


class Run:
    """Runs in its own folder; what it prints goes to files there."""

    def __init__(self, program: str, folder: pathlib.Path, name: str, how: str, ranks: int, words: list[str], number: int):
        self.folder, self.name, self.how, self.ranks = folder, name, how, ranks
        self.mark = f"{MARK}={folder}/{name}"
        self.started = time.monotonic()
        self.ended = None
        common = {**os.environ, MARK: f"{folder}/{name}", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                  "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
        command = [program, "train", *words]
        if how == "train":
            self.all = [self._start(command + ["--ranks", str(ranks)], common, 0)]
        elif how == "mpirun":
            mpirun = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", "--quiet"]
            self.all = [self._start(mpirun + command, common, 0)]
        else:
            port = free_port(number)
            self.all = [self._start(command, {**common, "RANK": str(r), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(r),
                                              "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                                              "MASTER_PORT": str(port)}, r) for r in range(ranks)]

    def _start(self, command: list[str], environment: dict, rank: int) -> subprocess.Popen:
        with open(self.folder / f"{self.name}.{rank}.out", "wb") as out, \
             open(self.folder / f"{self.name}.{rank}.err", "wb") as err:
            return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=out, stderr=err,
                                    stdin=subprocess.DEVNULL, start_new_session=True)

    def text(self, which: str) -> str:
        return "".join((self.folder / f"{self.name}.{r}.{which}").read_text(errors="replace")
                       for r in range(len(self.all)))

    def announced(self) -> int:
        """The newest step that the run said it had saved; 0: none."""
        return max([int(step) for step in SAVED.findall(self.text("err"))] +
                   [int(s) for s in re.findall(r"; saved \S*step-(\d+)", self.text("err"))], default=0)

    def process_of(self, rank: int) -> int | None:
        """Of a rank, once it is one of ours."""
        if self.how == "torchrun":
            found = [self.all[rank].pid]
        elif self.how == "train" and self.ranks == 1:
            found = [self.all[0].pid]
        else:
            found = processes_with(self.mark, f"OMPI_COMM_WORLD_RANK={rank}")
        return next((p for p in found if is_program(p)), None)

    def is_over(self) -> bool:
        return all(p.poll() is not None for p in self.all)

    def wait(self, limit: float, but: int | None = None) -> bool:
        """Until all but one have ended; false where they have not within the limit."""
        end = time.monotonic() + limit
        while any(p.poll() is None for r, p in enumerate(self.all) if r != but):
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        self.ended = time.monotonic()
        return True

    def codes(self) -> list[int | None]:
        """As Python has them: negative, of a signal."""
        return [p.poll() for p in self.all]

    def sha(self) -> str | None:
        """Of the state that the run ended with, where it printed its report."""
        try:
            return json.loads((self.folder / f"{self.name}.0.out").read_text())["state_sha256"]
        except (ValueError, KeyError):
            return None

    def programs(self) -> list[int]:
        """Processes of ours that are there now."""
        return [p for p in processes_with(self.mark) if is_program(p)]

    def left(self, within: float) -> list[int]:
        """Processes of it that live on after it has ended."""
        end = time.monotonic() + within
        while (alive := processes_with(self.mark)) and time.monotonic() < end:
            time.sleep(0.02)
        return alive

    def kill(self) -> None:
        for process in processes_with(self.mark):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for p in self.all:
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                print(f"process {p.pid} does not end", file=sys.stderr)
