"""What the commands answer: the most asked for keys of their JSON as typed fields, and all of it in raw."""

from __future__ import annotations

import dataclasses
import html
from typing import Any, ClassVar, Optional, Type, TypeVar

R = TypeVar("R", bound="Result")


@dataclasses.dataclass(frozen=True)
class Result:
    """An answer. raw is the command's JSON, whose keys the command's manual page names; notes are its remarks."""

    raw: dict[str, Any] = dataclasses.field(repr=False)
    notes: tuple[str, ...] = dataclasses.field(repr=False)

    table: ClassVar[str] = ""  # the key of raw whose list to_pandas() makes a frame of

    @classmethod
    def of(cls: Type[R], raw: dict[str, Any], stderr: str) -> R:
        notes = tuple(line[len("note: "):] for line in stderr.splitlines() if line.startswith("note: "))
        own = {field.name: raw.get(field.name) for field in dataclasses.fields(cls) if field.name not in ("raw", "notes")}
        return cls(raw=raw, notes=notes, **own)

    def __getitem__(self, key: str) -> Any:
        return self.raw[key]

    def rows(self, key: Optional[str] = None) -> list[dict[str, Any]]:
        """The list of objects that raw has under this key; without one, the answer's main table."""
        return list(self.raw.get(key or self.table) or ())

    def to_pandas(self, key: Optional[str] = None) -> Any:
        """rows() as a pandas.DataFrame, objects in them as columns "outer.inner"."""
        import pandas

        return pandas.json_normalize(self.rows(key))

    def _repr_html_(self) -> str:
        facts = [(field.name, getattr(self, field.name)) for field in dataclasses.fields(self) if field.repr]
        text = "<table>" + "".join(f"<tr><th>{name}</th><td>{_shown(name, value)}</td></tr>" for name, value in facts)
        text += "</table>"
        rows = self.rows()
        if rows:
            columns = [name for name, value in rows[0].items() if not isinstance(value, (dict, list))]
            text += "<table><tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in columns) + "</tr>"
            for row in rows[:20]:
                text += "<tr>" + "".join(f"<td>{_shown(name, row.get(name))}</td>" for name in columns) + "</tr>"
            text += "</table>" + (f"<p>... {len(rows) - 20} more</p>" if len(rows) > 20 else "")
        return text


def _shown(name: str, value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,} ({value / 2**20:,.2f} MiB)" if name.endswith("_bytes") else f"{value:,}"
    return html.escape(f"{value:.4g}" if isinstance(value, float) else str(value))


@dataclasses.dataclass(frozen=True)
class Simulation(Result):
    """What simulate answers. Times are None where another framework's memory is predicted (--like): that has own_executor."""

    model: Optional[str]
    cluster: Optional[str]
    world_size: Optional[int]
    verdict: Optional[str]
    fits: Optional[bool]
    peak_device_bytes: Optional[int]
    device_capacity_bytes: Optional[int]
    headroom_bytes: Optional[int]
    step_seconds: Optional[float]
    tokens_per_second: Optional[float]
    table: ClassVar[str] = "moments"

    @classmethod
    def of(cls, raw: dict[str, Any], stderr: str) -> Simulation:
        self = super().of(raw, stderr)
        assumed = raw.get("assumed", {}).get("cluster", {}).get("value")
        return self if self.cluster else dataclasses.replace(self, cluster=assumed)


@dataclasses.dataclass(frozen=True)
class Search(Result):
    """What search answers: chunk is the one that wastes least."""

    rule: Optional[str]
    world_size: Optional[int]
    total_elements: Optional[int]
    chunk: Optional[dict[str, Any]]
    why: Optional[str]
    try_command: Optional[str]
    table: ClassVar[str] = "curve"


@dataclasses.dataclass(frozen=True)
class Sweep(Result):
    """What sweep answers: one row for each strategy, in rows()."""

    row_count: Optional[int]
    fits_count: Optional[int]
    does_not_fit_count: Optional[int]
    front_count: Optional[int]
    table: ClassVar[str] = "rows"


@dataclasses.dataclass(frozen=True)
class DryRun(Result):
    """What dryrun answers: what the program took on a GPU that is not there."""

    cluster: Optional[str]
    world_size: Optional[int]
    rank: Optional[int]
    exit_code: Optional[int]
    verdict: Optional[str]
    out_of_memory: Optional[bool]
    peak_allocated_bytes: Optional[int]
    peak_reserved_bytes: Optional[int]
    capacity_bytes: Optional[int]
    headroom_bytes: Optional[int]
    steps_seen: Optional[int]
    step: Optional[dict[str, Any]] = None  # with time=True: seconds, low, high, coverage, parts
    table: ClassVar[str] = "phases"


@dataclasses.dataclass(frozen=True)
class Inspection(Result):
    """What inspect answers of a trace, a recording or a model."""

    format: Optional[str]
    kind: Optional[str]
    world_size: Optional[int]
    step_seconds: Optional[float]
    table: ClassVar[str] = "steps"
