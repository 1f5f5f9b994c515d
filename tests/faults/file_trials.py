# A file of a run's newest checkpoint is cut, changed or gone: do `checkpoint verify` and `train --resume` notice?
import pathlib
import random
import shutil
import subprocess

import launched
import process_trials
from process_trials import Found, MODEL, MORE_STEPS

KINDS = ("a file cut short", "a flipped bit", "a file gone")
SAVED_STEPS = 3


def make(program: str, folder: pathlib.Path) -> None:
    """`saved` with two checkpoints, which every trial copies."""
    words = [*MODEL, *process_trials.batch(1), "--steps", str(SAVED_STEPS), *process_trials.SAVE]
    run = launched.Run(program, folder, "made", "train", 1, words, 0)
    if not run.wait(120) or run.codes() != [0]:
        raise RuntimeError(f"no checkpoint to damage: {run.text('err')}")


def damage(file: pathlib.Path, kind: str, draw: random.Random) -> str:
    """Does it, and says what."""
    content = bytearray(file.read_bytes())
    if kind == "a file gone":
        file.unlink()
        return f"{file.name} gone"
    at = draw.randrange(len(content))
    if kind == "a file cut short":
        file.write_bytes(content[:at])
        return f"{file.name} cut to {at} bytes"
    bit = draw.randrange(8)
    content[at] ^= 1 << bit
    file.write_bytes(content)
    return f"bit {bit} of byte {at} of {file.name} flipped"


def trial(program: str, folder: pathlib.Path, number: int, seed: int, made: pathlib.Path,
          state: str) -> tuple[process_trials.Seen, Found]:
    draw = random.Random(f"{seed} {number} files")
    kind, by_name = KINDS[number % 3], draw.random() < 0.5
    ranks = (1, 2, 4)[number // 3 % 3]
    shutil.copytree(made, folder / "saved")
    newest = folder / "saved" / f"step-{SAVED_STEPS:08}"
    # More often where most is said in few bytes.
    files = sorted(newest.iterdir())
    file = newest / "manifest.json" if draw.random() < 0.3 else draw.choice(files)
    what = damage(file, kind, draw)
    lost, wrong, code, left = [], [], [], []
    verified = subprocess.run([program, "checkpoint", "verify", "saved"], cwd=folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=60)
    if verified.returncode == 0:
        wrong.append(f"{what}: verify says that all is right")
    elif verified.returncode != 65:
        code.append(f"{what}: verify ends with {verified.returncode}")
    words = [*MODEL, *process_trials.batch(ranks), "--steps", str(MORE_STEPS), *process_trials.strategy(draw),
             "--resume", str(newest.relative_to(folder)) if by_name else "saved"]
    run = launched.Run(program, folder, "resumed", "train", ranks, words, number)
    try:
        ended = run.wait(120)
        resumed, allowed = run.codes()[0], {0, 65, 66} if by_name and kind == "a file gone" else {0, 65}
        if not ended or resumed not in allowed:
            code.append(f"{what}: --resume of the {'checkpoint' if by_name else 'folder'} ends with {resumed}")
        # 0: it took the older one, or nothing that it read was changed.
        if resumed == 0 and run.sha() != state:
            wrong.append(f"{what}: --resume goes on to {run.sha()}, not to {state}")
        if alive := run.left(2):
            left.append(f"processes {alive}")
    finally:
        run.kill()
    plan = process_trials.Plan(kind, "train", ranks, None, words, None)
    return process_trials.Seen(plan, True, (resumed,)), Found(lost, wrong, code, left)
