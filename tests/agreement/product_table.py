#!/usr/bin/env python3
# Makes the table of docs/agreement.md of what the parts of `make product` wrote (GoogleTest's JSON).
"""Usage: tests/agreement/product_table.py RESULT.json ... > table.md

A row per model, precision and M: how many cells ran, of how many, how many of their tests failed, and the SHA-256 that
all of them ended with. Exit status 1 when a test failed or two parts disagree about a class.
"""
import collections
import json
import sys


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 64
    # One test may be in several results; a run counts before a skip or an absence.
    tests = {}
    for path in sys.argv[1:]:
        with open(path) as file:
            for suite in json.load(file)["testsuites"]:
                for test in suite["testsuite"]:
                    if test["status"] == "RUN" and "sha256" in test:
                        tests[test["name"]] = test
    classes = collections.defaultdict(list)
    for test in tests.values():
        classes[test["model"], test["precision"], int(test["micro_batches"])].append(test)
    wrong = False
    print("| model | precision | M | cells | SHA-256 of the trained state |\n|---|---|---:|---:|---|")
    for (model, precision, micro_batches), members in sorted(classes.items()):
        failed = sum("failures" in t for t in members)
        digests = {t["sha256"] for t in members}
        wrong |= failed > 0 or len(digests) > 1
        shown = f"`{digests.pop()}`" if not failed and len(digests) == 1 else f"**{failed} tests failed**"
        print(f"| {model} | {precision} | {micro_batches} | {sum(int(t['cells']) for t in members)} | {shown} |")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
