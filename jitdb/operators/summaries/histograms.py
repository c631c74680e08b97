"""How many records have numbers of which size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from jitdb.common.arguments import is_list, whole_number
from jitdb.common.paths import Path, format_path
from jitdb.common.words import counted, shown
from jitdb.display.parts import Display
from jitdb.display.sheet import Sheet, number_text
from jitdb.errors import QueryError
from jitdb.operators.nodes.field_ref import PathLike, as_single_path
from jitdb.operators.summaries.arithmetic.calendar import Extent
from jitdb.operators.summaries.pictures import columns_plot
from jitdb.operators.summaries.summary import BINS, Drawn, Summary, View, charted

if TYPE_CHECKING:
    from jitdb.operators.summaries.arithmetic.bins import Tally, Width


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
        said = [counted(self.total, "record", "records")]
        said += [f"{count:,} {where}" for count, where in ((self.below, "below"), (self.above, "above")) if count]
        if self.missing:
            said.append(f"{self.missing:,} without a number in `{format_path(self.path)}`")
        return Sheet(["from", "below", "count"], rows, 2, about, "; ".join(said))

    def _columns(self) -> tuple[list[str], list[Sequence[Any]]]:
        names, columns = super()._columns()
        return names, [[row.low for row in self], [row.high for row in self], *columns[2:]]

    def _display(self) -> Display:
        labels = [f"{number_text(row.low)} to {number_text(row.high)}" for row in self]
        return charted(labels, [("records", self.counts)], self.sheet())

    def _plot(self, ax: Any) -> Any:
        return columns_plot(ax, self.counts, self.edges, format_path(self.path), self.sheet().footer)


class HistogramAsked(Summary[Histogram]):
    """How many records have numbers of which size. `bins`: how many at most, or where they begin and the last ends."""

    __slots__ = __match_args__ = ("path", "bins")
    name = "histogram"

    path: Path
    bins: int | tuple[float, ...]

    def __init__(self, path: PathLike, bins: int | Sequence[float] = BINS) -> None:
        self._keep(as_single_path(self.name, path), _bins(bins))

    @property
    def columns(self) -> tuple[Path, ...]:
        return (self.path,)

    @property
    def surveys(self) -> bool:
        return isinstance(self.bins, int)

    def survey(self, view: View) -> Extent:
        from jitdb.operators.summaries.arithmetic.bins import extent_of

        return reduce(Extent.with_, map(extent_of, view.numbers(self.path)), Extent())

    def settled(self, surveys: Sequence[Extent], window: object) -> Width | None:
        """How wide the bins are, unless they were given."""
        from jitdb.operators.summaries.arithmetic.bins import Width, round_width

        if isinstance(self.bins, tuple):
            return None
        return round_width(reduce(Extent.with_, surveys, Extent()), self.bins) or Width(1, 0)

    def count(self, view: View, settled: Width | None) -> Tally:
        from jitdb.operators.summaries.arithmetic.bins import Tally, binned
        from jitdb.operators.summaries.arithmetic.numbers import known

        bins = self.bins if isinstance(self.bins, tuple) else settled
        assert bins is not None
        return Tally.of((binned(known(part), bins) for part in view.numbers(self.path)), len(view.matches))

    def result(self, counts: Sequence[Tally], settled: Width | None) -> Histogram:
        from jitdb.operators.summaries.arithmetic.bins import Tally

        series, total, missing, below, above = Tally.added(counts)
        edges: Sequence[float] = ()
        numbers: list[int] = []
        if isinstance(self.bins, tuple):
            edges, numbers = self.bins, [0] * (len(self.bins) - 1)
            if series is not None:
                numbers[series.first : series.last + 1] = series.counts[:, 0].tolist()
        elif series is not None and settled is not None:
            edges = [settled.edge(number) for number in range(series.first, series.last + 2)]
            numbers = series.counts[:, 0].tolist()
        return Histogram(tuple(map(Bin, edges, edges[1:], numbers)), total, missing, self.path, below, above)


def _bins(given: int | Sequence[float]) -> int | tuple[float, ...]:
    if not is_list(given):
        return whole_number("bins are a number of them, or where they begin", given, 1)
    edges = tuple(map(_edge, given))  # type: ignore[arg-type]  # it is a list
    if len(edges) < 2 or any(not low < high for low, high in pairwise(edges)):
        raise QueryError(f"bins are two or more numbers that ascend, not {shown(given)}")
    return edges


def _edge(number: Any) -> float:
    try:
        found = math.nan if isinstance(number, (bool, str)) else float(number)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found) or found != number:
        raise QueryError(f"a bin begins at a number that a double can hold, not {shown(number)}")
    return found


def _plain(edge: float) -> int | float:
    return int(edge) if edge.is_integer() and abs(edge) < 1e15 else edge
