"""How many records are of which time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from jitdb.common.paths import Path, format_path
from jitdb.common.words import counted
from jitdb.display.cells import cell
from jitdb.display.parts import Display
from jitdb.display.sheet import Sheet, Spark, cut
from jitdb.operators.summaries.pictures import steps_plot
from jitdb.operators.summaries.result import Drawn, charted

_THIN: Final = 40  # numbers of a small chart


class TimeBin(NamedTuple):
    """How many records are of the time from `start` on, up to the next one's; and of these, how many have each of the
    timeline's `values`.
    """

    start: datetime
    count: int  # type: ignore[assignment]
    counts: tuple[int, ...] = ()


class Timeline(Drawn[TimeBin]):
    """How many records are of which time, the oldest first; steps without any are there, too.

    every:    the step, as it is written
    rows:     where each begins (in UTC, or the zone asked for), its count, and those of the `values`
    missing:  records without a time, or with one that is not in the years 1 to 9999
    by:       another field, and `values` its most frequent values; a row's other records have another one, or none
    """

    __slots__ = __match_args__ = ("rows", "total", "missing", "every", "by", "values")

    every: str
    by: Path | None
    values: tuple[Any, ...]

    def sheet(self) -> Sheet:
        names = ["time", "count", *(cell(value) for value in self.values)]
        others = self._rest()
        starts = self._start_texts()
        rows: list[list[Any]] = []
        for number, row in enumerate(self):
            rest = [others[number]] if others else []
            rows.append([starts[number], row.count, *row.counts, *rest])
        about: dict[str, Any] = {"every": self.every, "total": self.total, "missing": self.missing}
        if self.by is not None:
            about["by"] = format_path(self.by)
        told = [counted(self.total, "record", "records"), f"{counted(len(self), 'step', 'steps')} of {self.every}"]
        if self.missing:
            told.append(f"{self.missing:,} without a time")
        return Sheet([*names, *(["others"] if others else [])], rows, 1, about, "; ".join(told))

    def _rest(self) -> list[int]:
        """For each step, how many records have none of the values; nothing where there are none anywhere."""
        rest = [row.count - sum(row.counts) for row in self] if self.by is not None else []
        return rest if any(rest) else []

    def _series(self) -> list[tuple[str, Sequence[int]]]:
        """A name and a count for each step: of all records, or of each value and of those that have none of them."""
        if self.by is None:
            return [("records", self.counts)]
        named = [(cut(cell(value)), [row.counts[at] for row in self]) for at, value in enumerate(self.values)]
        others = self._rest()
        return [*named, *([("others", others)] if others else [])]

    def _start_texts(self) -> list[str]:
        """Where each step begins, as RFC 3339 has it, no longer than it takes."""
        if all(row.start.time() == datetime.min.time() for row in self):
            return [row.start.strftime("%Y-%m-%d").rjust(10, "0") for row in self]
        return [
            row.start.isoformat(timespec="auto" if row.start.microsecond else "seconds").replace("+00:00", "Z")
            for row in self
        ]

    def _columns(self) -> tuple[list[str], list[Sequence[Any]]]:
        names, columns = super()._columns()
        return names, [[row.start for row in self], *columns[1:]]

    def _display(self) -> Display:
        """A chart; by another field, each of its values beside its own small one."""
        sheet, series = self.sheet(), self._series()
        if self.by is not None:
            rows = [[name, sum(counts), Spark(_thinned(counts))] for name, counts in series]
            sheet = Sheet([format_path(self.by), "count", ""], rows, 1, {}, sheet.footer)
        return charted(self._start_texts(), series, sheet)

    def _plot(self, ax: Any) -> Any:
        series, by = self._series(), None if self.by is None else format_path(self.by)
        named = 1 if by is None else len(self.values)
        return steps_plot(ax, [row.start for row in self], series, named, by, self.sheet().footer)


def _thinned(counts: Sequence[int]) -> list[int]:
    """Few numbers: the sums of neighbours."""
    step = -(-len(counts) // _THIN) or 1
    return [sum(counts[at : at + step]) for at in range(0, len(counts), step)]
