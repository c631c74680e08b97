"""What comes back of a summary: small values that do not change, and know the whole that they are a part of.

`total` is always how many records were asked about: those that match, `missing` how many of them said nothing, because
they have no such field (or no number, or no time). So `sum(counts) + others + missing == total`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from jitdb.common.immutable import Immutable
from jitdb.common.libraries import library
from jitdb.common.paths import Path
from jitdb.common.values import hashable
from jitdb.display.shown import Shown
from jitdb.errors import QueryError
from jitdb.operators.tabular import Tabular

if TYPE_CHECKING:
    from jitdb.display.parts import Display
    from jitdb.operators.question import Arrow

R = TypeVar("R", bound="ValueCount | GroupCount | Bin | TimeBin")


class ValueCount(NamedTuple):
    """A value, and how many records have it."""

    value: Any
    count: int  # type: ignore[assignment]  # not what tuples call so


class GroupCount(NamedTuple):
    """A value of each field, and how many records have all of them."""

    values: tuple[Any, ...]
    count: int  # type: ignore[assignment]


class Bin(NamedTuple):
    """How many records have a number of at least `low` and below `high`."""

    low: float
    high: float
    count: int  # type: ignore[assignment]


class TimeBin(NamedTuple):
    """How many records are of the time from `start` on, up to the next one's; and of these, how many have each of the
    timeline's `values`.
    """

    start: datetime
    count: int  # type: ignore[assignment]
    counts: tuple[int, ...] = ()


class Result(Immutable, Tabular, Shown):
    """What shows itself as the table of it."""

    __slots__ = ()

    def _display(self) -> Display:
        from jitdb.operators.summaries.sheets import display_of

        return display_of(self)

    def _arrow(self) -> Arrow:
        library("pyarrow")
        from jitdb.operators.summaries.tables import ResultTable

        return ResultTable(self)

    def __repr__(self) -> str:
        return str(self)


class _Rows(Result, Generic[R]):
    """Rows to be gone through, and what they are parts of."""

    __slots__ = ()

    rows: tuple[R, ...]
    total: int
    missing: int

    def __iter__(self) -> Iterator[R]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> R:
        return self.rows[number]

    def __bool__(self) -> bool:
        return bool(self.rows)

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(row.count for row in self.rows)

    @property
    def shares(self) -> tuple[float, ...]:
        """Of all records that were asked about, those of each row."""
        return tuple(row.count / self.total for row in self.rows)

    @property
    def others(self) -> int:
        """How many records have something that is in no row; 0 where a record is in several rows."""
        return max(0, self.total - self.missing - sum(self.counts))


class _Drawn(_Rows[R]):
    """What can be drawn."""

    __slots__ = ()

    def plot(self, ax: Any = None) -> Any:
        """A labelled picture, on these axes or on a new figure; gives the matplotlib Axes.

        Raises MissingLibrary without matplotlib: pip install 'jitdb[plot]'.
        """
        from jitdb.operators.summaries.pictures import plotted

        return plotted(self, ax)


class ValueCounts(_Drawn[ValueCount]):
    """How many records have which value of a field: the most frequent first, of equal ones the smaller.

    path:     the field
    rows:     values and counts, all or as many as were asked for
    total:    records that were asked about
    missing:  those of them that lack the field
    distinct: how many values there are, those without a row too

    Of elements of arrays (`tags[]`) a record counts once for each value that it has.

    >>> counts = ValueCounts((ValueCount("info", 3), ValueCount("error", 1)), 5, 1, ("level",), 2)
    >>> dict(counts), counts.shares, counts.top(1).others
    ({'info': 3, 'error': 1}, (0.6, 0.2), 1)
    """

    __slots__ = __match_args__ = ("rows", "total", "missing", "path", "distinct")

    path: Path
    distinct: int

    def top(self, count: int) -> ValueCounts:
        """The first rows alone."""
        return self.changed(rows=self.rows[:count])

    def as_dict(self) -> dict[Any, int]:
        """The counts by value. Raises QueryError where values are maps."""
        return _as_dict((hashable(row.value), row.count) for row in self.rows)


class GroupCounts(_Drawn[GroupCount]):
    """How many records have which values of several fields: as ValueCounts, with a tuple for each value.

    missing: records that lack one of the fields, or several
    """

    __slots__ = __match_args__ = ("rows", "total", "missing", "paths", "distinct")

    paths: tuple[Path, ...]
    distinct: int

    def top(self, count: int) -> GroupCounts:
        """The first rows alone."""
        return self.changed(rows=self.rows[:count])

    def as_dict(self) -> dict[tuple[Any, ...], int]:
        """The counts by values. Raises QueryError where some are maps."""
        return _as_dict((tuple(map(hashable, row.values)), row.count) for row in self.rows)


class Histogram(_Drawn[Bin]):
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


class Timeline(_Drawn[TimeBin]):
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


class Stats(Result):
    """What numbers are like. What there is none of, without any number, is None.

    count:     records that have one
    total:     records that were asked about
    min, max:  exact, integers of 64 bits too
    sum:       exact: an int of whole numbers; else the double nearest to the true sum (inf beyond all)
    mean:      the double nearest to the true mean
    stddev:    of a sample (n - 1), by exact sums, or two passes in doubles; None of fewer than two
    quantiles: pairs of a share and the smallest number that so many of them do not exceed: always one of a record

    >>> stats = Stats(("n",), 2, 3, 1, 9, 10, 5.0, 5.656854249492381, ((0.5, 1),))
    >>> stats.missing, stats.median
    (1, 1)
    """

    __slots__ = __match_args__ = ("path", "count", "total", "min", "max", "sum", "mean", "stddev", "quantiles")

    path: Path
    count: int
    total: int
    min: int | float | None
    max: int | float | None
    sum: int | float | None
    mean: float | None
    stddev: float | None
    quantiles: tuple[tuple[float, int | float], ...]

    @property
    def missing(self) -> int:
        """Records without a number there."""
        return self.total - self.count

    @property
    def median(self) -> int | float | None:
        """The quantile of one half, which must be among those asked for."""
        return self.quantile(0.5)

    def quantile(self, share: float) -> int | float | None:
        """One of the quantiles. Raises QueryError where it was not asked for."""
        if not self.count:
            return None
        found = dict(self.quantiles)
        if share not in found:
            raise QueryError(f"the quantile {share} was not asked for", remedy=f"stats(..., quantiles=[{share}])")
        return found[share]


class GroupStats(NamedTuple):
    """A value of the field that stats were asked by, and what the numbers are like where it stands."""

    value: Any
    stats: Stats

    @property
    def count(self) -> int:  # type: ignore[override]
        """Records that have the value; `stats.count` of them a number, too."""
        return self.stats.total


class StatsBy(_Rows[GroupStats]):  # type: ignore[type-var]  # a row has a count
    """What the numbers of a field are like for each value of another one: that of most records first.

    missing:  records that lack the other field
    distinct: how many values there are, those without a row too
    """

    __slots__ = __match_args__ = ("rows", "total", "missing", "path", "by", "distinct")

    path: Path
    by: Path
    distinct: int


def _as_dict(pairs: Iterator[tuple[Any, int]]) -> dict[Any, int]:
    try:
        return dict(pairs)
    except TypeError:
        raise QueryError("values that are maps are no keys of a dict", remedy="go through the rows") from None
