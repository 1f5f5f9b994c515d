#!/usr/bin/env python3
"""Runs rows of a table in tests/data/eager again, under PyTorch and transformers of here, and counts which are equal.

    shardscope dryrun --cluster h100-80gb-x8 --world-size 2 -- /opt/torch-2.8/bin/python same_in_version.py \
      tests/data/eager/dryruns.tsv --every 8

Says by framework how many of the rows' figures are as in the table, and the rows that are not. A version of which all
are is a release with the same rules: a number in its library's row (sim/like/eager/versions.cpp).
"""
import argparse, collections, csv, json, sys

import torch

import make_deepspeed_dryruns, make_dryruns, make_sharded_dryruns, make_step_dryruns

FIGURES = ["creation", "first", "second", "third", "reserved", "host", "pinned"]


def rows_of(table):
    with open(table, newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            run = {k: int(v) if v.isdigit() else v for k, v in row.items()}
            for key in {"config", "zero"} & run.keys():
                run[key] = json.loads(row[key])
            if "framework" not in run and "reduce_bucket_size" in run:  # as all rows of these tables
                run["framework"] = "deepspeed"
            written_out = run["config"].get("model_type") in make_dryruns.WITHOUT_SDPA
            run.setdefault("attention", "eager" if written_out else "sdpa")
            yield run, [int(row[f]) for f in FIGURES if f in row]


def maker_of(run):
    if "clip" in run:
        return make_step_dryruns.train
    if run.get("framework") == "deepspeed":
        return make_deepspeed_dryruns.train
    return make_sharded_dryruns.train if "framework" in run else make_dryruns.train


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table")
    parser.add_argument("--every", type=int, default=1, help="one row of so many")
    parser.add_argument("--framework", help="rows of this one alone")
    parser.add_argument("--families", nargs="*", help="rows of these model_type alone, of transformers")
    parser.add_argument("--out", help="write the rows there, with the figures of here")
    args = parser.parse_args()
    import transformers
    import transformers.models.gpt2.modeling_gpt2, transformers.models.llama.modeling_llama  # before the fork

    equal, count, here = collections.Counter(), collections.Counter(), []
    for number, (run, figures) in enumerate(rows_of(args.table)):
        framework = run.get("framework", "pytorch")
        if number % args.every or args.framework not in (None, framework):
            continue
        if args.families and (run.get("code") == "cs336" or run["config"].get("model_type") not in args.families):
            continue
        answer = make_dryruns.answer_of(maker_of(run), run)
        count[framework] += 1
        equal[framework] += answer == figures
        if answer:
            texts = {key: json.dumps(run[key]) for key in {"config", "zero"} & run.keys()}
            here.append(run | texts | dict(zip(FIGURES, answer)))
        if answer != figures:
            print("row", number + 2, framework, run["config"].get("model_type"), "table", figures, "here", answer)
    if args.out:
        with open(args.table) as lines:
            columns = lines.readline().rstrip("\n").split("\t")
        with open(args.out, "w", newline="") as out:
            rows = csv.DictWriter(out, columns, extrasaction="ignore", delimiter="\t", lineterminator="\n",
                                  quoting=csv.QUOTE_NONE, quotechar=None)
            rows.writeheader()
            rows.writerows(here)
    for framework, rows in count.items():
        print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}, {framework}:",
              f"{equal[framework]} of {rows} rows equal")


if __name__ == "__main__":
    main()
