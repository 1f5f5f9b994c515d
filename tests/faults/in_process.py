# The trials of checkpoint_files_test, which tells how many each of its tests has made.
import json
import pathlib
import subprocess

TESTS = "CheckpointFaults.*:CheckpointDamage.Every*"
# The rows of the table, and the tests that are in each, by how their names begin.
ROWS = (
    ("an error of any call of a save", "CheckpointFaults.AnError", "ALoad"),
    ("a full disk at any call of a save", "CheckpointFaults.AFullDisk", None),
    ("writes and reads cut short from any call on", "CheckpointFaults.WhatIsCutShort", None),
    ("kill -9 at any call of a save", "CheckpointFaults.KilledAt", "ALoad"),
    ("an error, a full disk, a short read at any call of a load", "CheckpointFaults.AnErrorAtAnyCallOfALoad", None),
    ("kill -9 at any call of a load", "CheckpointFaults.KilledAtAnyCallOfALoad", None),
    ("an error, kill -9 at any call of removing old ones", "CheckpointFaults.KilledOrFailedWhilePruning", None),
    ("every bit of every file flipped", "CheckpointDamage.EveryFlippedBit", None),
    ("every file cut at every byte, and a byte longer", "CheckpointDamage.EveryCut", None),
    ("every file gone", "CheckpointDamage.EveryFile", None),
)


def row_of(name: str) -> str:
    for row, beginning, without in ROWS:
        if name.startswith(beginning) and not (without and without in name):
            return row
    return name


def run(test: pathlib.Path, folder: pathlib.Path) -> dict[str, list[int]]:
    """Trials of each row, and of how many something failed: a test that fails counts once for each expectation."""
    result = folder / "in_process.json"
    log = folder / "in_process.log"
    with open(log, "w") as out:
        done = subprocess.run([str(test.resolve()), f"--gtest_filter={TESTS}", "--gtest_brief=1",
                               f"--gtest_output=json:{result}"], stdout=out, stderr=out)
    if not result.exists():
        raise RuntimeError(f"{test} ended with {done.returncode} and wrote no result: {log.read_text()[-2000:]}")
    rows: dict[str, list[int]] = {row: [0, 0] for row, _, _ in ROWS}
    for suite in json.loads(result.read_text())["testsuites"]:
        for each in suite["testsuite"]:
            counts = rows.setdefault(row_of(f"{suite['name']}.{each['name']}"), [0, 0])
            counts[0] += int(each["trials"])
            counts[1] += len(each.get("failures", []))
    if done.returncode != 0 and not any(failed for _, failed in rows.values()):
        raise RuntimeError(f"{test} ended with {done.returncode}: {log.read_text()[-2000:]}")
    return rows
