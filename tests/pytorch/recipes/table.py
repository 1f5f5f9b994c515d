# The table of docs/recipes.md: written from rows, and read back so that recipes that do not run here keep theirs.
import dataclasses
import re

VERDICTS = ["fits", "tight", "does not fit", "error", "not run"]  # from the best to the worst
HEADER = "| recipe | framework | card | ranks | strategy | first rank, GiB | last rank, GiB | | seconds | date |"
LINE = "|---|---|---|---:|---|---:|---:|---|---:|---|"
ERRORS = "## What did not run"
TOO_LARGE = "## What does not fit"
ENVIRONMENT = re.compile(r"^- `([a-z-]+)`: (.+)$", re.MULTILINE)
FAULT = re.compile(r"^- `([^`]+)`: (.*)$", re.MULTILINE)


@dataclasses.dataclass
class Row:
    """A recipe's answer. Peaks are in bytes, of the first and the last rank, None where the run ended with an error or was
    left out, which `error` gives the reason of."""
    name: str
    framework: str
    card: str
    ranks: int
    strategy: str
    first: int | None
    last: int | None
    verdict: str
    seconds: int
    date: str
    error: str


def gib(peak):
    return "-" if peak is None else f"{peak / 2**30:,.3f}"


def bytes_of(text):
    return None if text == "-" else round(float(text.replace(",", "")) * 2**30)


def section(text, heading):
    """What stands between a heading and the next."""
    _, found, rest = text.partition(f"\n{heading}\n")
    return rest.split("\n## ")[0] if found else ""


def read(path):
    """The rows of the table by the name of the recipe."""
    text = path.read_text() if path.exists() else ""
    # An error that is told with a row whose verdict is another was one of the second run, with ample memory.
    faults = dict(FAULT.findall(section(text, ERRORS)))
    rows = {}
    for line in text.partition(f"{HEADER}\n{LINE}\n")[2].splitlines():
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != HEADER.count("|") - 1:
            raise ValueError(f"{path}: a row has {len(cells)} columns: {line}")
        name, framework, card, ranks, strategy, first, last, verdict, seconds, date = cells
        if verdict not in VERDICTS:
            raise ValueError(f"{path}: '{verdict}' of {name} is none of {', '.join(VERDICTS)}")
        rows[name] = Row(name, framework, card, int(ranks), strategy, bytes_of(first), bytes_of(last), verdict,
                         int(seconds), date, faults.get(name, ""))
    return rows


def environments(path):
    """Versions by environment, as the head of the document lists them."""
    head = path.read_text().split("\n## ")[0] if path.exists() else ""
    return {name: dict(each.split(" ", 1) for each in listed.split(", ")) for name, listed in ENVIRONMENT.findall(head)}


def write(path, rows, versions, recipes):
    """The document."""
    notes = {each["name"]: each.get("note", "") for each in recipes}
    sources = {each["name"]: each["source"] for each in recipes}
    ran = [row.date for row in rows if row.verdict != "not run"]
    out = ["# Published recipes, dry", "",
           "What each rank of recipes that frameworks publish takes: `make recipes` runs those of",
           "[recipes.toml](../tests/pytorch/recipes/recipes.toml), which names the source of each, under",
           "[shardscope dryrun](dryrun.md), the first and the last rank alone, and writes this table. Nothing here was measured on a",
           "GPU. Peaks are of what PyTorch has allocated; the verdict counts in what is outside of its allocator. Where a recipe does",
           "not fit, the peak is what it takes on such a card with ample memory. Configurations that state no model, card or number of",
           "ranks (DeepSpeed's, accelerate's) have those of the table, which are ours. Seconds are those of the slower rank, beside",
           "other work. Megatron-LM's mean a clone and Transformer Engine, with parts of the dry run's own in place of apex's; axolotl's",
           "examples and Megatron-Bridge's tables are not here, for the latter there is no recipe.", "",
           f"Newest row: {max(ran, default='none')}. Versions:", ""]
    for name in sorted(versions):
        out.append(f"- `{name}`: " + ", ".join(f"{package} {version}" for package, version in versions[name].items()))
    count = {verdict: sum(row.verdict == verdict for row in rows) for verdict in VERDICTS}
    counted = ", ".join(f"{number} {verdict}" for verdict, number in count.items())
    out += ["", f"## {len(rows)} recipes: {counted}", "", HEADER, LINE]
    for row in rows:
        cells = [row.name, row.framework, row.card, row.ranks, row.strategy, gib(row.first), gib(row.last), row.verdict,
                 row.seconds, row.date]
        out.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    large = [row for row in rows if row.verdict == "does not fit"]
    out += ["", TOO_LARGE, "", "Worth a report upstream, after a look at the note:" if large else "Nothing.", ""]
    for row in large:
        note = f" {notes[row.name]}" if notes.get(row.name) else ""
        out.append(f"- `{row.name}` ({sources[row.name]}): {gib(max(filter(None, (row.first, row.last))))} GiB on {row.card}.{note}")
    failed = [row for row in rows if row.error]
    out += ["", ERRORS, "", "" if failed else "Nothing."]
    out += [f"- `{row.name}`: {row.error.replace(chr(10), ' ')}" for row in failed]
    path.write_text("\n".join(out).replace("\n\n\n", "\n\n").rstrip("\n") + "\n")
