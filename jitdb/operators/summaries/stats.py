"""What the numbers of a field are like: of all records, or of each group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.arguments import is_list
from jitdb.common.paths import Path, format_path
from jitdb.common.words import counted, shown
from jitdb.display.sheet import Sheet
from jitdb.errors import QueryError
from jitdb.operators.nodes.field_ref import PathLike, as_single_path
from jitdb.operators.summaries.arithmetic.described import Described, quantiles_of
from jitdb.operators.summaries.groups import (
    RECORDS,
    By,
    Every,
    Grouping,
    GroupRows,
    GroupsAsked,
    Part,
    Settled,
    order_of,
    ranked,
    without_direction,
)  # fmt: skip
from jitdb.operators.summaries.summary import QUANTILES, Lazy, Ranked, Result, Summary, View

if TYPE_CHECKING:
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from jitdb.operators.summaries.arithmetic.numbers import Moments, Numbers
    from jitdb.operators.summaries.arithmetic.quantiles import Measured, Stream

_SHARES: Final = (0.5, 0.95, 0.99)  # quantiles of a row
_AT_ONCE: Final = ("count", "min", "max", "span")  # orders of View.leading()
_KEPT: Final = 1 << 20  # records whose numbers and groups are kept for the next pass: 18 MB
_TOGETHER: Final = 64  # groups whose stats are made at once
_PARTS: Final = ("min", "max", "sum", "mean", "stddev")
_WEIGHTS: Final = ("count", *_PARTS, "span")  # by which groups are ordered


class Stats(Result):
    """What numbers are like; without any number, all but the counts are None.

    count:     records that have one
    total:     records that were asked about
    min, max:  exact, integers of 64 bits too
    sum:       exact: an int of whole numbers; else the double nearest to the true sum (inf beyond all)
    mean:      the double nearest to the true mean
    stddev:    of a sample (n - 1): the root of the double nearest to the true variance; None of fewer than two
    quantiles: pairs of a share and its quantile, which is always the number of a record

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
    def span(self) -> int | float | None:
        """From the smallest number to the largest."""
        return None if self.min is None or self.max is None else self.max - self.min

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

    def sheet(self) -> Sheet:
        rows: list[list[Any]] = [["count", self.count]]
        rows += [[name, getattr(self, name)] for name in _PARTS]
        rows += [[_share_name(share), value] for share, value in self.quantiles]
        about = {"field": format_path(self.path), "total": self.total, "missing": self.missing}
        missing = f"; {self.missing:,} without a number" if self.missing else ""
        footer = counted(self.total, "record", "records") + missing
        return Sheet(["", format_path(self.path)], rows if self.count else rows[:1], None, about, footer)

    def _columns(self) -> tuple[list[str], list[Sequence[Any]]]:
        """One row."""
        rows = self.sheet().rows
        return [name for name, _ in rows], [[value] for _, value in rows]


class GroupStats(NamedTuple):
    """What the numbers of a group are like.

    value: of the field that stats were asked by, or a tuple of several
    start: of the step, where they were asked by time
    """

    value: Any
    stats: Stats
    start: datetime | None = None

    @property
    def count(self) -> int:  # type: ignore[override]
        """Records of the group; `stats.count` of them have a number, too."""
        return self.stats.total


class StatsBy(GroupRows[GroupStats]):
    """What the numbers of a field are like in each group: see GroupRows."""

    __slots__ = ()

    def sheet(self) -> Sheet:
        """The quantiles are the median and p95, or those asked for."""
        asked = next((tuple(share for share, _ in row.stats.quantiles) for row in self if row.stats.count), QUANTILES)
        shares = _SHARES if asked == QUANTILES else asked
        cells = [
            [
                row.count, row.stats.count, *(getattr(row.stats, name) for name in _PARTS),
                *(dict(row.stats.quantiles).get(share) for share in shares),
            ]
            for row in self
        ]  # fmt: skip
        return self.grouped([RECORDS, "count", *_PARTS, *map(_share_name, shares)], cells)


def _share_name(share: float) -> str:
    """What a quantile is called.

    >>> _share_name(0.5), _share_name(0.99), _share_name(0.999)
    ('median', 'p99', 'p99.9')
    """
    return "median" if share == 0.5 else f"p{100 * share:.10g}"


class StatsAsked(Summary[Stats]):
    """What the numbers of a field are like."""

    __slots__ = __match_args__ = ("path", "quantiles")
    name = "stats"

    path: Path
    quantiles: tuple[float, ...]

    def __init__(self, path: PathLike, quantiles: Sequence[float] = QUANTILES) -> None:
        self._keep(as_single_path(self.name, path), _quantiles(quantiles))

    @property
    def columns(self) -> tuple[Path, ...]:
        return (self.path,)

    def count(self, view: View, settled: object, tallies: bool = True) -> tuple[int, Measured]:
        import numpy as np

        from jitdb.operators.summaries.arithmetic.numbers import Moments
        from jitdb.operators.summaries.arithmetic.ordered import Tally
        from jitdb.operators.summaries.arithmetic.quantiles import measured

        def stream() -> Stream:
            return ((numbers, None) for part in view.parts() for numbers in part.numbers(self.path))

        tally = Tally.of(view.extent(self.path), 1, len(view.matches)) if self.quantiles and tallies else None
        moments = Moments(1)
        for numbers, _ in stream():
            (tally or moments).add(numbers, None)
        if tally is not None and not tally.is_right:
            return self.count(view, settled, tallies=False)
        moments = tally.moments() if tally else moments
        chosen = np.arange(1) if view.is_whole else None
        return len(view.matches), measured(stream, moments, self.quantiles, chosen, tally)

    def result(self, counts: Sequence[tuple[int, Measured]], settled: object) -> Stats:
        import numpy as np

        from jitdb.operators.summaries.arithmetic.quantiles import merged

        found = merged([part for _, part in counts], [np.zeros(1, np.int64)] * len(counts), 1, self.quantiles)
        return _Found(self.path, self.quantiles, found, [sum(total for total, _ in counts)])[0]

    def of_counts(self, counts: Mapping[int | float, int], total: int) -> Stats:
        """The result where of so many records this many have each number."""
        found, held = Described.of_counts(counts), quantiles_of(counts, self.quantiles)
        return Stats(self.path, found.count, total, *found[1:], tuple(zip(self.quantiles, held, strict=bool(held))))


class _Found(Sequence[Stats]):
    """The stats of each group, made when they are looked at: a few together, for the next ones are looked at next."""

    def __init__(self, path: Path, shares: Sequence[float], found: Measured, totals: Sequence[int]) -> None:
        self._path, self._shares, self._found, self._totals = path, shares, found, totals
        self._begin, self._some = 0, list[Stats]()

    def __len__(self) -> int:
        return len(self._totals)

    def __getitem__(self, group: int) -> Stats:  # type: ignore[override]  # of no slices
        if not self._begin <= group < self._begin + len(self._some):
            self._begin = group - group % _TOGETHER
            self._some = self._made(self._begin, self._begin + _TOGETHER)
        return self._some[group - self._begin]

    def _made(self, begin: int, end: int) -> list[Stats]:
        shares, totals = list(map(float, self._shares)), self._totals[begin:end]
        each = zip(self._found.moments.described(begin, end), totals, self._found.values(begin, end), strict=True)
        return [
            Stats(self._path, found.count, total, *found[1:], tuple(zip(shares, held, strict=bool(held))))
            for found, total, held in each
        ]

    def weights(self, order: str) -> Sequence[Any] | NDArray[np.float64]:
        """What the groups have of this; None, or NaN, where they have nothing."""
        if order == RECORDS:
            return self._totals
        shares = {_share_name(share): at for at, share in enumerate(self._shares)}
        return self._found.column(shares[order]) if order in shares else self._found.moments.weights(order)


class StatsByAsked(GroupsAsked[StatsBy]):
    """The same of each group."""

    __slots__ = __match_args__ = ("path", "by", "limit", "quantiles", "every", "tz", "order")
    name = "stats_by"

    quantiles: tuple[float, ...]

    def __init__(
        self,
        path: PathLike,
        by: By = None,
        limit: int | None = None,
        quantiles: Sequence[float] = QUANTILES,
        every: Every = None,
        tz: str | None = None,
        order: str | None = None,
    ) -> None:
        fields, step, most, zone = self._grouped(by, every, limit, tz)
        shares = _quantiles(quantiles)
        order = order_of(order, (RECORDS, *_WEIGHTS, *map(_share_name, shares)), fields)
        weighed_by = without_direction(order)
        leading = [share for share in shares if _share_name(share) == weighed_by and share not in _SHARES]
        if shares == QUANTILES and leading:  # of these few are shown: then this one, too
            shares = tuple(sorted([*_SHARES, *leading]))
        self._keep(as_single_path(self.name, path), fields, most, shares, step, zone, order)

    @property
    def columns(self) -> tuple[str | Path, ...]:
        return (*super().columns, self.path)

    def ranked_in(self, view: View) -> Ranked:
        """Of a field with many values only the few that are shown, where one number of each tells which these are."""
        found = None
        if len(self.by) == 1 and self.limit and view.is_whole and self.every is None and self.weighed_by in _AT_ONCE:
            found = view.leading(self.by[0], self.path, self.weighed_by, self.limit, self.is_ascending)
        return super().ranked_in(view) if found is None else found

    def part(self, view: View, grouping: Grouping, tallies: bool = True) -> Part:
        import numpy as np

        from jitdb.operators.summaries.arithmetic.numbers import Moments, joined
        from jitdb.operators.summaries.arithmetic.ordered import Tally
        from jitdb.operators.summaries.arithmetic.quantiles import measured

        def passed() -> Iterator[tuple[Numbers, NDArray[np.int64]]]:
            return ((joined(list(part.numbers(self.path))), grouping.of(part)) for part in view.parts())

        is_once = bool(self.quantiles) and tallies and self.every is None  # else groups come while this goes on
        tally = Tally.of(view.extent(self.path), len(grouping), len(view.matches)) if is_once else None
        kept = list(passed()) if tally is None and len(view.matches) <= _KEPT else []

        def stream() -> Iterable[tuple[Numbers, NDArray[np.int64]]]:
            return kept or passed()

        moments = Moments()
        totals: NDArray[np.int64] = np.zeros(2, np.int64)
        for numbers, own in stream():
            counts = np.bincount(own + 2, minlength=len(grouping) + 2)
            counts[: len(totals)] += totals
            totals = counts
            if tally is not None:
                tally.add(numbers, own)
            else:
                moments.grow(len(grouping))
                moments.add(numbers, own)
        if tally is not None and not tally.is_right:
            return self.part(view, grouping, tallies=False)
        moments = moments if tally is None else tally.moments()
        moments.grow(len(grouping))
        totals = np.append(totals, np.zeros(len(grouping) + 2 - len(totals), np.int64))  # of a log without records
        found = measured(stream, moments, self.quantiles, self._chosen(view, moments), tally)
        return Part(grouping.steps, grouping.places, totals[2:], found, len(view.matches), int(totals[0]))

    def _chosen(self, view: View, moments: Moments) -> NDArray[np.int64] | None:
        """The groups whose quantiles are shown; None where they follow from more than this."""
        import numpy as np

        if not view.is_whole or (self.every is not None and self.order != RECORDS):
            return None
        if self.limit is None or self.weighed_by not in _WEIGHTS:
            return np.arange(len(moments))
        weights = moments.weights(self.weighed_by)
        return np.array(ranked(weights, self.limit, ascending=self.is_ascending), np.int64)

    def summed(self, parts: Sequence[Part], to: Sequence[NDArray[np.int64]], groups: int) -> _Found:
        import numpy as np

        from jitdb.operators.summaries.arithmetic.quantiles import merged

        totals = np.zeros(groups, np.int64)
        for part, numbers in zip(parts, to, strict=True):
            np.add.at(totals, numbers, part.counts)
        found = merged([part.measured for part in parts], to, groups, self.quantiles)
        return _Found(self.path, self.quantiles, found, totals.tolist())

    def weights(self, found: Any) -> Sequence[Any] | NDArray[np.float64]:
        held: _Found = found
        return held.weights(self.weighed_by)

    def result(self, counts: Sequence[Part], settled: Settled) -> StatsBy:
        found = self.rows_of(counts, settled)
        rows = Lazy(len(found), lambda row: GroupStats(*found[row]))
        return StatsBy(rows, *self.about(counts, settled))


def _quantiles(shares: Sequence[float]) -> tuple[float, ...]:
    if not is_list(shares) or not all(map(_is_share, shares)):
        raise QueryError(f"quantiles are shares from 0 to 1, such as [0.5, 0.99], not {shown(shares)}")
    return tuple(map(float, shares))


def _is_share(share: Any) -> bool:
    try:
        return not isinstance(share, (bool, str)) and 0 <= share <= 1
    except TypeError:
        return False
