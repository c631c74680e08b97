"""How many records have numbers of which size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jitdb.common.paths import Path, format_path
from jitdb.common.words import counted
from jitdb.display.parts import Display
from jitdb.display.sheet import Sheet, number_text
from jitdb.operators.summaries.pictures import columns_plot
from jitdb.operators.summaries.result import Drawn, charted


class Bin(NamedTuple):
    """How many records have a number of at least `low` and below `high`."""

    low: float
    high: float
    count: int  # type: ignore[assignment]


class Histogram(Drawn[Bin]):
    """How many records have numbers of which size, the smallest first; bins without any are there, too.

    missing:      records without a number there
    below, above: those whose number is in no bin, because bins were named, or infinite
    """

    __slots__ = __match_args__ = ("rows", "total", "missing", "path", "below", "above")

    path: Path
    below: int
    above: int

    @property
    def edges(self) -> tuple[float, ...]:
        """Where the bins begin, and the last one ends."""
        return (*(row.low for row in self.rows), self.rows[-1].high) if self.rows else ()

    def sheet(self) -> Sheet:
        rows: list[list[Any]] = [[_plain(row.low), _plain(row.high), row.count] for row in self]
        about = {
            "field": format_path(self.path), "total": self.total, "missing": self.missing, "below": self.below,
            "above": self.above,
        }  # fmt: skip
        told = [counted(self.total, "record", "records")]
        told += [f"{count:,} {where}" for count, where in ((self.below, "below"), (self.above, "above")) if count]
        if self.missing:
            told.append(f"{self.missing:,} without a number in `{format_path(self.path)}`")
        return Sheet(["from", "below", "count"], rows, 2, about, "; ".join(told))

    def _columns(self) -> tuple[list[str], list[Sequence[Any]]]:
        names, columns = super()._columns()
        return names, [[row.low for row in self], [row.high for row in self], *columns[2:]]

    def _display(self) -> Display:
        labels = [f"{number_text(row.low)} to {number_text(row.high)}" for row in self]
        return charted(labels, [("records", self.counts)], self.sheet())

    def _plot(self, ax: Any) -> Any:
        return columns_plot(ax, self.counts, self.edges, format_path(self.path), self.sheet().footer)


def _plain(edge: float) -> int | float:
    return int(edge) if edge.is_integer() and abs(edge) < 1e15 else edge
