# The tables of trials, in Markdown.
import collections

import file_trials
import launched
import process_trials

HEAD = "lost | silently wrong | wrong exit code | left behind |"


class Rows:
    """Trials of processes and files: how many by kind, launcher and number of ranks, and in how many what was found."""

    def __init__(self):
        self.trials = collections.Counter()  # of (kind, how, ranks)
        self.found = collections.Counter()  # of (kind, how, place in Found)
        self.codes = collections.Counter()  # of (kind, how, code)
        self.late = collections.Counter()  # of (kind, how)
        self.memory = 0

    def add(self, seen: process_trials.Seen, found: process_trials.Found) -> None:
        plan = seen.plan
        self.late[plan.kind, plan.how] += not seen.hit
        for code in seen.codes:
            self.codes[plan.kind, plan.how, code] += 1
        self.trials[plan.kind, plan.how, plan.ranks] += 1
        for place, what in enumerate(found):
            self.found[plan.kind, plan.how, place] += bool(what)

    def left_memory(self) -> None:
        self.memory += 1


def text(in_process: dict[str, list[int]], rows: Rows) -> str:
    lines = []
    if in_process:
        lines += ["| fault, in one process | trials | lost, silently wrong or another error than promised |",
                  "|---|---:|---:|"]
        lines += [f"| {name} | {count:,} | {failed} |" for name, (count, failed) in in_process.items()] + [""]
    lines += [f"| fault of a run | launched by | trials on 1, 2, 3, 4 ranks | of them behind its end | exit codes | {HEAD}",
              "|---|---|---|---:|---|---:|---:|---:|---:|"]
    totals = [0] * 4
    for kind in process_trials.KINDS + file_trials.KINDS:
        for how in launched.HOW:
            counts = [rows.trials[kind, how, ranks] for ranks in range(1, 5)]
            if not any(counts):
                continue
            found = [rows.found[kind, how, place] for place in range(4)]
            totals = [a + b for a, b in zip(totals, found)]
            codes = ", ".join(f"{number} x {code}" for (*key, code), number in sorted(rows.codes.items())
                              if key == [kind, how])
            lines.append(f"| {kind} | {how} | {', '.join(map(str, counts))} | {rows.late[kind, how]} | {codes} | "
                         f"{' | '.join(map(str, found))} |")
    totals[3] += rows.memory
    of_runs, inside = sum(rows.trials.values()), sum(count for count, _ in in_process.values())
    lines.append(f"| all | | {of_runs} | {sum(rows.late.values())} | | {' | '.join(map(str, totals))} |")
    failed = sum(bad for _, bad in in_process.values())
    lines += ["", f"{inside + of_runs:,} trials, {sum(totals) + failed} with findings."]
    return "\n".join(lines)
