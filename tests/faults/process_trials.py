# A rank of a run that saves is killed, stopped or asked to end at a random moment; what is there then, and goes on?
import collections
import os
import pathlib
import random
import signal
import threading
import time

import launched

KINDS = ("SIGKILL", "SIGSTOP", "SIGTERM", "SIGTERM, --save-at-exit")
STEPS, MORE_STEPS = 8, 10  # of the run that is disturbed; of the one that goes on
DEADLINE = 5  # seconds, of the run that is disturbed
GRACE = 20  # seconds from SIGTERM to the end, on a machine that has other trials to do
MODEL = ["--model", "gpt2-nano", "--data", "random", "--sequence", "16", "--json"]
SAVE = ["--save", "saved", "--save-every", "1", "--keep", "2"]

Plan = collections.namedtuple("Plan", "kind how ranks rank words moment")
# What was tried: `hit` whether the signal came before the end, `codes` what each process of the trial's own ended with.
Seen = collections.namedtuple("Seen", "plan hit codes")
# Whether a checkpoint that had been announced is gone, whether bits differ, exit codes that are not those of the help,
# and what is still there.
Found = collections.namedtuple("Found", "lost wrong code left")


def batch(ranks: int) -> list[str]:
    """One class of numbers for 1, 2 and 4 ranks; three are one by themselves (docs/agreement.md)."""
    return ["--global-batch", "3" if ranks == 3 else "4"]


def strategy(draw: random.Random) -> list[str]:
    return ["--stage", str(draw.randrange(4)), "--unit", draw.choice(["tensor", "bucket", "module", "chunk"]),
            "--placement", draw.choice(["device", "host"])]


def plan_of(number: int, draw: random.Random) -> Plan:
    """Kinds, launchers and numbers of ranks in turn, all else at random."""
    kind, rest = KINDS[number % 4], number // 4
    how, ranks = launched.HOW[rest % 3], 1 + rest // 3 % 4
    # Half of them anywhere in the time of a run, half near a step's save.
    moment = ("time", draw.random()) if draw.random() < 0.5 else ("step", draw.randint(1, STEPS), draw.random() * 0.04)
    words = strategy(draw) + (["--save-at-exit"] if "exit" in kind else [])
    return Plan(kind, how, ranks, draw.randrange(ranks), words, moment)


class States:
    """The states that runs end with which nobody disturbs, each made when it is asked for first."""

    def __init__(self, program: str, folder: pathlib.Path):
        self.program, self.folder, self.known, self.lock = program, folder, {}, threading.Lock()

    def of(self, ranks: int, words: list[str], steps: int) -> str:
        if ranks != 3:
            ranks, words = 1, []
        with self.lock:
            key = (ranks, *words, steps)
            if key not in self.known:
                run = launched.Run(self.program, self.folder, f"whole{len(self.known)}", "train", ranks,
                                   [*MODEL, *batch(ranks), *words, "--steps", str(steps)], 0)
                if not run.wait(120) or run.codes() != [0]:
                    raise RuntimeError(f"an undisturbed run ends with {run.codes()}: {run.text('err')}")
                self.known[key] = run.sha()
            return self.known[key]


def duration(program: str, folder: pathlib.Path, how: str, ranks: int) -> float:
    run = launched.Run(program, folder, f"time-{how}-{ranks}", how, ranks,
                       [*MODEL, *batch(ranks), "--steps", str(STEPS), *SAVE], 0)
    if not run.wait(120) or any(run.codes()):
        raise RuntimeError(f"an undisturbed run by {how} on {ranks} ranks ends with {run.codes()}: {run.text('err')}")
    return run.ended - run.started


def hit(run: launched.Run, plan: Plan, lasts: float) -> int | None:
    """Waits for the moment and signals the rank; its process, or None where the run was over before."""
    if plan.moment[0] == "time":
        time.sleep(plan.moment[1] * lasts)
    else:
        while f"step {plan.moment[1]}/" not in run.text("err") and not run.is_over():
            time.sleep(0.002)
        time.sleep(plan.moment[2])
    while not run.is_over():
        process = run.process_of(plan.rank)
        if process is not None:
            try:
                os.kill(process, getattr(signal, plan.kind.split(",")[0]))
                return process
            except ProcessLookupError:
                pass
        time.sleep(0.002)
    return None


def codes_of(plan: Plan) -> tuple[set[int], set[int]]:
    """What the help and docs/launching.md allow of the process that was hit (or the launcher above it) and of others.
    0 is always one of them: the signal may come behind the rank's last word."""
    by = -getattr(signal, plan.kind.split(",")[0])
    if plan.kind == "SIGSTOP":
        return ({0}, {0}) if plan.ranks == 1 else ({0, 75}, {0, 75})
    if plan.how == "torchrun":
        return {0, by}, ({0, 75, by} if plan.kind.startswith("SIGTERM") else {0, 75})
    if plan.how == "mpirun":
        return {0, 75, 128 - by, by}, set()
    if plan.ranks == 1:
        return {0, by}, set()
    return ({0, 75, by} if plan.kind.startswith("SIGTERM") else {0, 75}), set()


def check_codes(run: launched.Run, plan: Plan, state: str, signalled: float) -> tuple[list[str], list[str]]:
    """What is wrong with codes, and with the bits of a run that came to its end."""
    codes, wrong = [], []
    of_hit, of_others = codes_of(plan)
    for rank, code in enumerate(run.codes()):
        if code not in (of_hit if plan.how != "torchrun" or rank == plan.rank else of_others):
            codes.append(f"ended with {code}" + (f" (rank {rank})" if plan.how == "torchrun" else ""))
    said = run.text("err")
    if run.codes()[0] == 0 and run.sha() != state:
        wrong.append(f"ended with 0 and state {run.sha()}")
    if "exit" in plan.kind and "is saved behind this step" in said and run.codes()[0] != 0:
        if "; saved saved/step-" not in said:
            codes.append("heard SIGTERM, said that it would save, and did not")
        if run.ended - signalled > GRACE:
            codes.append(f"took {run.ended - signalled:.1f} s from SIGTERM to its end")
    return codes, wrong


def go_on(program: str, folder: pathlib.Path, draw: random.Random, plan: Plan, announced: int, state: str) -> Found:
    """Resumes with another strategy, or on three ranks with the same, saves on, and looks at what is in the folder then."""
    lost, wrong, code, left = [], [], [], []
    steps = sorted(int(p.name.split("-")[1]) for p in (folder / "saved").glob("step-*"))
    if announced > (steps[-1] if steps else 0):
        lost.append(f"step {announced} was announced as saved; there are {steps}")
    ranks = 3 if plan.ranks == 3 else draw.choice([1, 2, 4])
    words = [*MODEL, *batch(ranks), "--steps", str(MORE_STEPS), *(plan.words[:6] if ranks == 3 else strategy(draw)),
             *SAVE, *(["--resume", "saved"] if steps else [])]
    run = launched.Run(program, folder, "resumed", "train", ranks, words, 0)
    try:
        if not run.wait(120):
            lost.append("what goes on does not end")
        elif run.codes() != [0]:
            lost.append(f"what goes on ends with {run.codes()}")
        elif run.sha() != state:
            wrong.append(f"goes on to {run.sha()}, not to {state}")
        elif steps and f'"step": {steps[-1]}' not in run.text("out") and f'"step":{steps[-1]}' not in run.text("out"):
            lost.append(f"goes on from another one than step {steps[-1]}")
    finally:
        if alive := run.left(2):
            left.append(f"processes {alive} of what went on")
        run.kill()
    if (folder / "saved").exists():
        left += [f"saved/{p.name}" for p in (folder / "saved").iterdir() if p.name.startswith(".")]
    return Found(lost, wrong, code, left)


def trial(program: str, folder: pathlib.Path, number: int, seed: int, lasts: dict,
          states: States) -> tuple[Seen, Found]:
    draw = random.Random(f"{seed} {number}")
    plan = plan_of(number, draw)
    words = [*MODEL, *batch(plan.ranks), "--steps", str(STEPS), *SAVE, "--timeout", str(DEADLINE), *plan.words]
    run = launched.Run(program, folder, "hit", plan.how, plan.ranks, words, number)
    left = []
    try:
        process = hit(run, plan, lasts[plan.how, plan.ranks])
        signalled = time.monotonic()
        stopped = plan.kind == "SIGSTOP" and process is not None
        if stopped and plan.ranks == 1:  # nobody waits for it: it goes on, and nothing has happened
            time.sleep(0.3)
            os.kill(process, signal.SIGCONT)
        if stopped and plan.how == "torchrun" and plan.ranks > 1:
            ended = run.wait(60, but=plan.rank)
            run.all[plan.rank].kill()  # as torchrun does once another rank has failed
            run.all[plan.rank].wait()
        else:
            ended = run.wait(60)
            if not ended and stopped and run.programs() == [process]:
                # Every other rank has ended well: mpirun waits for the one that is stopped, however long that takes.
                os.kill(process, signal.SIGCONT)
                ended = run.wait(60) and run.codes() == [0]
        if run.ended is None:
            run.ended = time.monotonic()
        if alive := run.left(2):
            left.append(f"processes {alive}")
        codes, wrong = check_codes(run, plan, states.of(plan.ranks, plan.words[:6], STEPS), signalled)
        if stopped and plan.how == "torchrun" and plan.ranks > 1:
            codes = [c for c in codes if f"(rank {plan.rank})" not in c]
        if not ended:
            codes.append("had not ended after 60 s")
    finally:
        run.kill()
    state = states.of(plan.ranks, plan.words[:6], MORE_STEPS)
    found = go_on(program, folder, draw, plan, run.announced(), state)
    shell = tuple(code if code >= 0 else 128 - code for code in run.codes())  # 137 is 128 and SIGKILL's 9
    return Seen(plan, process is not None, shell), Found(found.lost, wrong + found.wrong, codes + found.code,
                                                         left + found.left)
