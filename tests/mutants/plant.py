#!/usr/bin/env python3
# Plants the bugs of its lists one by one, each in a copy of the sources, and says which test catches it.
"""Usage: tests/mutants/plant.py [--build DIR] [--part cpu|gpu] [--only NAME ...] [--table FILE] [--jobs N]

A bug is a text of a source file and what stands there instead. The text must occur exactly once: a change of the source
that moves it makes this script fail, not the bug vanish. Each part has its list and its suites; `first` of a bug names
what is likely to catch it, a suite and perhaps a filter of its tests, which is built and run before the others. A bug
counts as caught when a suite fails on it or runs longer than --limit seconds; one that does not compile, other than by
a static assertion of a test, is an error of the list. No GPU is needed: the GPU part runs on the emulated device.
Exit status: 0 all caught, 1 some survived, 2 the list or the build is wrong.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib

# Of each part, the quick ones first. The recipe's mlp trains 80 million parameters; nothing here needs it.
SUITES = {
    "cpu": [
        ("numeric_test", ""),
        ("kernels_test", ""),
        ("compile_test", ""),
        ("ir_test", ""),
        ("check_test", ""),
        ("comm_test", ""),
        ("agreement_random_test", ""),
        ("agreement_control_test", ""),
        ("agreement_test", "-Mlp.*"),
        ("agreement_sharding_test", ""),
    ],
    "gpu": [
        ("cuda_kernels_test", ""),
        ("cuda_bits_test", ""),
        ("same_device_test", ""),
        ("agreement_emulated_test", ""),
    ],
}
LISTS = {"cpu": "mutants.toml", "gpu": "gpu_mutants.toml"}
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def copy_sources(to: pathlib.Path) -> None:
    """Makes `to` equal to the tracked files, touching only what differs, so that builds stay incremental."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    for name in filter(None, names):
        source, target = ROOT / name, to / name
        if not source.is_file() or (target.is_file() and target.read_bytes() == source.read_bytes()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


class Build:
    def __init__(self, folder: pathlib.Path, jobs: int, limit: int, options: list[str]):
        self.source, self.build, self.jobs, self.limit = folder / "source", folder / "build", jobs, limit
        self.source.mkdir(parents=True, exist_ok=True)
        copy_sources(self.source)
        command = ["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                   "-DSHARDSCOPE_VIEWER=OFF", "-DSHARDSCOPE_CUDA=OFF", *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def make(self, suite: str) -> str:
        """Builds a suite; the compiler's complaint, or nothing."""
        done = subprocess.run(["cmake", "--build", self.build, "--parallel", str(self.jobs), "--target", suite],
                              capture_output=True, text=True)
        return "" if done.returncode == 0 else "\n".join(done.stdout.splitlines()[-15:])

    def first_failure(self, suites: list[tuple[str, str]]) -> str:
        """'suite: test' of the first test that fails, or nothing. Each suite is built when its turn comes."""
        for name, tests in suites:
            if error := self.make(name):
                # A test may look at constants while it is compiled.
                if failed := re.search(r"tests/(\S+?):\d+:\d+: error: static assertion failed", error):
                    return f"{failed[1]}: a static assertion"
                raise ValueError("does not build:\n" + error)
            command = [self.build / "tests" / name, "--gtest_fail_fast", "--gtest_brief=1", f"--gtest_filter={tests or '*'}"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=self.limit)
            except subprocess.TimeoutExpired:
                return f"{name}: still running after {self.limit} s"
            if done.returncode == 0:
                continue
            failed = re.search(r"\[  FAILED  \] ([^\s,]+)", done.stdout)
            return f"{name}: " + (failed[1] if failed else f"ended with status {done.returncode}")
        return ""


def suites_of(mutant: dict) -> list[tuple[str, str]]:
    """In the order that they are tried in."""
    first = [(name, tests) for name, _, tests in (one.partition(" ") for one in mutant.get("first", []))]
    return first + [suite for suite in SUITES[mutant["part"]] if suite not in first]


def text_of(folder: pathlib.Path, mutant: dict) -> str:
    """The file that the bug is planted in. It has the place once, or there is nothing to plant."""
    path = folder / mutant["file"]
    text = path.read_text() if path.is_file() else ""
    if text.count(mutant["old"]) != 1:
        raise ValueError(f"{mutant['file']} has its text {text.count(mutant['old'])} times")
    return text


def stand(mutants: list[dict]) -> int:
    """Whether every bug could be planted in the sources as they are."""
    lost = 0
    for mutant in mutants:
        try:
            text_of(ROOT, mutant)
        except ValueError as error:
            print(f"{mutant['name']}: {error}", file=sys.stderr)
            lost += 1
    print(f"{len(mutants) - lost} of {len(mutants)} bugs have their place")
    return 1 if lost else 0


def plant(build: Build, mutant: dict) -> str:
    path = build.source / mutant["file"]
    text = text_of(build.source, mutant)
    path.write_text(text.replace(mutant["old"], mutant["new"]))
    try:
        return build.first_failure(suites_of(mutant))
    finally:
        path.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(description="Plants the bugs of its lists one by one.")
    parser.add_argument("--build", default="build/mutants", help="folder of the copy and its build (=build/mutants)")
    parser.add_argument("--part", choices=SUITES, help="bugs of this part only")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these bugs only")
    parser.add_argument("--check", action="store_true", help="plant nothing: does every bug still have its place?")
    parser.add_argument("--table", help="write the result as Markdown")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at a time (=2)")
    parser.add_argument("--limit", type=int, default=300, help="seconds that a suite may take (=300)")
    parser.add_argument("--cmake", action="append", default=[], metavar="OPTION", help="a further option for CMake (--cmake=-D...)")
    arguments = parser.parse_args()
    mutants = [mutant | {"part": part} for part, name in LISTS.items() if arguments.part in (None, part)
               for mutant in tomllib.loads((HERE / name).read_text())["mutant"]]
    if arguments.only:
        unknown = set(arguments.only) - {m["name"] for m in mutants}
        if unknown:
            print(f"plant.py: there is no {', '.join(sorted(unknown))}", file=sys.stderr)
            return 2
        mutants = [m for m in mutants if m["name"] in arguments.only]
    if arguments.check:
        return stand(mutants)
    build = Build(pathlib.Path(arguments.build).resolve(), arguments.jobs, arguments.limit, arguments.cmake)
    print("building without a bug", flush=True)
    try:
        if failure := build.first_failure([suite for part in SUITES if any(m["part"] == part for m in mutants)
                                           for suite in SUITES[part]]):
            print(f"plant.py: without a bug {failure} fails", file=sys.stderr)
            return 2
    except ValueError as error:
        print(f"plant.py: the sources: {error}", file=sys.stderr)
        return 2
    rows, survived, broken = [], 0, 0
    for mutant in mutants:
        begin = time.monotonic()
        try:
            caught = plant(build, mutant)
        except ValueError as error:
            print(f"{mutant['name']}: {error}", file=sys.stderr, flush=True)
            broken += 1
            continue
        survived += not caught
        rows.append((mutant["name"], mutant["file"], caught or "**survived**"))
        print(f"{mutant['name']}: {caught or 'SURVIVED'} ({time.monotonic() - begin:.0f} s)", flush=True)
    summary = f"{len(rows) - survived} of {len(rows)} planted bugs caught"
    print(summary + (f", {broken} could not be planted" if broken else ""))
    if arguments.table:
        lines = ["| bug | planted in | caught first by |", "|---|---|---|"]
        lines += [f"| {name} | `{file}` | {caught} |" for name, file, caught in rows]
        pathlib.Path(arguments.table).write_text("\n".join(lines) + f"\n\n{summary}.\n")
    return 2 if broken else 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
