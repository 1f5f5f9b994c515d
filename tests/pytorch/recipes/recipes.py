#!/usr/bin/env python3
# Runs the published recipes of recipes.toml under `shardscope dryrun`, and writes what they take into docs/recipes.md.
"""Runs the published recipes of recipes.toml under `shardscope dryrun`, and writes what they take into docs/recipes.md.

    recipes.py --shardscope PATH [--environments FOLDER] [--python NAME=PATH] [--clone NAME=DIR] [--install] [RECIPE ...]

A recipe runs in the environment that it names: FOLDER/NAME/bin/python3, or what --python says; --install makes those that
are not there. What is not installed is left out with the reason, and keeps the row that the table has of it. Files of a
framework's repository that pip does not install ({megatron}) are looked for in FOLDER/CLONE, or where --clone says.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

import table

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[2]
TIME_LIMIT_SECONDS = 300
# What an answer is asked for again on where the card was too small, to say how much would have been enough.
AMPLE_BYTES = 1 << 42
OUT_OF_MEMORY = "out of memory"


class LeftOut(Exception):
    """A recipe that cannot run here, and why."""


def places_of(options, said):
    """The interpreter and the folders of clones, by name."""
    pythons = dict(each.split("=", 1) for each in options.python)
    clones = dict(each.split("=", 1) for each in options.clone)
    for name, environment in said["environments"].items():
        python = pathlib.Path(pythons.get(name, options.environments / name / "bin" / "python3"))
        if options.install and not python.exists():
            print(f"installing {' '.join(environment['packages'])} into {options.environments / name}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", options.environments / name], check=True)
            pip = [python, "-m", "pip", "install", "--quiet"]
            subprocess.run([*pip, *environment["packages"]], check=True)
            # Their builds ask the PyTorch that is there what it can do.
            subprocess.run([*pip, "--no-build-isolation", *environment.get("built", ["pip"])], check=True)
        pythons[name] = str(python.absolute())
    for name in said["clones"]:
        clones.setdefault(name, str(options.environments / name))
    return pythons, clones


def versions_of(python, packages):
    """Of the packages in that environment, those first that a recipe is named after."""
    look = """import importlib.metadata as metadata, json, sys
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
print(json.dumps({name: version(name) for name in sys.argv[1:]}))"""
    return json.loads(subprocess.run([python, "-c", look, *packages], capture_output=True, text=True, check=True).stdout)


def commit_of(folder):
    """Of a clone, where git knows it."""
    run = subprocess.run(["git", "-C", folder, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True,
                         check=False)
    return run.stdout.strip() if run.returncode == 0 else None


def framework_of(recipe, said, pythons, clones):
    """Name and version, or why it cannot run here."""
    environment = said["environments"][recipe["environment"]]
    python = pythons[recipe["environment"]]
    if not os.path.exists(python):
        raise LeftOut(f"no {python}: run with --install, or --python {recipe['environment']}=PATH")
    versions = versions_of(python, environment["needs"])
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        raise LeftOut(f"{python} has no {missing[0]}")
    clone = environment.get("clone")
    if not clone:
        return f"{recipe['framework']} {versions[recipe['framework']]}", versions
    if not os.path.isdir(clones[clone]):
        raise LeftOut(f"no {clones[clone]}: clone {said['clones'][clone]['source']}, or --clone {clone}=DIR")
    return f"{recipe['framework']} {commit_of(clones[clone]) or said['clones'][clone]['commit']}", versions


def card_of(recipe, folder, memory_bytes):
    """The cluster's name, or a description of it with another memory."""
    if memory_bytes is None:
        return recipe["card"]
    described = json.loads((TOP / "examples" / "clusters" / f"{recipe['card']}.json").read_text())
    described["device_memory_bytes"] = memory_bytes
    path = pathlib.Path(folder) / "card.json"
    path.write_text(json.dumps(described))
    return str(path)


def last_error(text):
    """The line that says why a run ended."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [line for line in lines if "Error" in line.split(":")[0] or line.startswith("shardscope")]
    return (found or lines or ["it said nothing"])[-1]


def ask(options, recipe, places, rank, memory_bytes):
    """The answer of one rank, its seconds and its error."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [each.format(files=HERE, **places[1]) for each in recipe["arguments"]]
        if "training_args" in recipe:
            (pathlib.Path(folder) / "training.json").write_text(json.dumps(recipe["training_args"]))
            arguments += ["--training-args", f"{folder}/training.json"]
        command = [options.shardscope, "dryrun", "--json", "--timeout", str(TIME_LIMIT_SECONDS), "--cluster",
                   card_of(recipe, folder, memory_bytes), "--world-size", str(recipe["world_size"]), "--rank", str(rank),
                   "--python", places[0][recipe["environment"]], *arguments]
        begin = time.monotonic()
        run = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=2 * TIME_LIMIT_SECONDS)
        seconds = time.monotonic() - begin
    try:
        answer = json.loads(run.stdout[run.stdout.index("{\n"):])
    except ValueError:
        return None, seconds, last_error(run.stderr)
    if answer["timed_out"]:
        return answer, seconds, f"ran past {TIME_LIMIT_SECONDS} s"
    if answer["out_of_memory"]:
        return answer, seconds, OUT_OF_MEMORY
    if answer["signal"] == signal.SIGKILL:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
        return answer, seconds, f"killed: it asks for more host memory than the {memory} GiB of this machine"
    return answer, seconds, last_error(run.stderr) if answer["exit_code"] or not answer["steps_seen"] else ""


def run_rank(options, recipe, places, rank):
    """Verdict, peak, seconds and error of one rank; where memory was not enough, with what would have been."""
    stated = recipe.get("device_memory_bytes")
    answer, seconds, fault = ask(options, recipe, places, rank, stated)
    if fault == OUT_OF_MEMORY:
        ample, more, fault = ask(options, recipe, places, rank, AMPLE_BYTES)
        return "does not fit", (ample or answer)["peak_allocated_bytes"], seconds + more, fault
    if fault:
        return "error", None, seconds, fault
    return answer["verdict"].replace("_", " "), answer["peak_allocated_bytes"], seconds, ""


def row_of(options, said, places, recipe):
    """The recipe's row of the table."""
    framework, versions = framework_of(recipe, said, *places)
    ranks = sorted({0, recipe["world_size"] - 1})
    answers = [run_rank(options, recipe, places, rank) for rank in ranks]
    worst = max((each[0] for each in answers), key=table.VERDICTS.index)
    faults = [f"rank {rank}: {each[3]}" for rank, each in zip(ranks, answers) if each[3]]
    peaks = [each[1] for each in answers]
    return table.Row(name=recipe["name"], framework=framework, card=card_named(recipe), ranks=recipe["world_size"],
                     strategy=recipe["strategy"], first=peaks[0], last=peaks[-1], verdict=worst,
                     seconds=round(max(each[2] for each in answers)), date=options.date, error="; ".join(faults)), versions


def card_named(recipe):
    memory = recipe.get("device_memory_bytes")
    return recipe["card"] if memory is None else f"{recipe['card']} of {memory >> 30} GiB"


def not_run(recipe, why):
    """The row of a recipe that has not run yet."""
    return table.Row(name=recipe["name"], framework=recipe["framework"], card=card_named(recipe), ranks=recipe["world_size"],
                     strategy=recipe["strategy"], first=None, last=None, verdict="not run", seconds=0, date="-", error=why)


def write(path, said, known, versions):
    """The document, with a row for each recipe."""
    rows = [known.get(each["name"]) or not_run(each, "not asked for yet") for each in said["recipe"]]
    table.write(path, rows, {**table.environments(path), **versions}, said["recipe"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shardscope", default="shardscope")
    parser.add_argument("--environments", type=pathlib.Path, default=pathlib.Path.home() / ".cache/shardscope/recipes")
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH", help="of an environment")
    parser.add_argument("--clone", action="append", default=[], metavar="NAME=DIR", help="of a framework's repository")
    parser.add_argument("--install", action="store_true", help="make the environments that are not there")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--document", type=pathlib.Path, default=TOP / "docs" / "recipes.md")
    parser.add_argument("recipes", nargs="*", help="names; without, all")
    options = parser.parse_args()
    options.shardscope = os.path.abspath(options.shardscope) if "/" in options.shardscope else options.shardscope
    options.date = datetime.date.today().isoformat()
    said = tomllib.loads((HERE / "recipes.toml").read_text())
    all_recipes = {each["name"]: each for each in said["recipe"]}
    unknown = set(options.recipes) - set(all_recipes)
    if unknown:
        sys.exit(f"recipes.py: recipes.toml has no {', '.join(sorted(unknown))}")
    chosen = [all_recipes[name] for name in options.recipes or all_recipes]
    places = places_of(options, said)
    known = table.read(options.document)
    bad = 0

    def one(recipe):
        try:
            return recipe, *row_of(options, said, places, recipe)
        except LeftOut as why:
            return recipe, why, None

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for answered in concurrent.futures.as_completed([pool.submit(one, recipe) for recipe in chosen]):
            recipe, row, versions = answered.result()
            if versions is None:
                print(f"{recipe['name']:<40} left out: {row}", flush=True)
                known.setdefault(recipe["name"], not_run(recipe, str(row)))
                continue
            known[recipe["name"]] = row
            bad += row.verdict == "error"
            write(options.document, said, known, {recipe["environment"]: versions})
            peaks = f"{table.gib(row.first):>10} {table.gib(row.last):>10}"
            print(f"{recipe['name']:<40} {row.verdict:<12} {peaks} {row.seconds:>5} s {row.error}", flush=True)
    write(options.document, said, known, {})
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
