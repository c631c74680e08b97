"""What the numbers of a field are like, and for each value of another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.arguments import is_list
from jitdb.common.paths import Path, format_path
from jitdb.common.values import value_of_key
from jitdb.common.words import counted, shown
from jitdb.display.sheet import Sheet
from jitdb.errors import QueryError
from jitdb.operators.nodes.field_ref import PathLike, as_single_path
from jitdb.operators.summaries.summary import QUANTILES, Ranked, Result, Rows, S, Summary, View, limit_of
from jitdb.operators.summaries.value_counts import added

if TYPE_CHECKING:
    from jitdb.operators.summaries.numbers import Numbers

_SHARES: Final = (0.5, 0.95)  # quantiles of a row
_PARTS: Final = ("min", "max", "sum", "mean", "stddev")


class Stats(Result):
    """What numbers are like; without any number, all but the counts are None.

    count:     records that have one
    total:     records that were asked about
    min, max:  exact, integers of 64 bits too
    sum:       exact: an int of whole numbers; else the double nearest to the true sum (inf beyond all)
    mean:      the double nearest to the true mean
    stddev:    of a sample (n - 1), by exact sums, or two passes in doubles; None of fewer than two
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
    """A value of the field that stats were asked by, and what the numbers are like where it stands."""

    value: Any
    stats: Stats

    @property
    def count(self) -> int:  # type: ignore[override]
        """Records that have the value; `stats.count` of them a number, too."""
        return self.stats.total


class StatsBy(Rows[GroupStats]):
    """What the numbers of a field are like for each value of another one: that of most records first.

    missing:  records that lack the other field
    distinct: how many values there are, those without a row too
    """

    __slots__ = __match_args__ = ("rows", "total", "missing", "path", "by", "distinct")

    path: Path
    by: Path
    distinct: int

    def sheet(self) -> Sheet:
        """The quantiles are the median and p95, or those asked for."""
        asked = next((tuple(share for share, _ in row.stats.quantiles) for row in self if row.stats.count), QUANTILES)
        shares = _SHARES if asked == QUANTILES else asked
        rows = [
            [
                row.value, row.count, row.stats.count, *(getattr(row.stats, name) for name in _PARTS),
                *(dict(row.stats.quantiles).get(share) for share in shares),
            ]
            for row in self
        ]  # fmt: skip
        by = format_path(self.by)
        about = {"field": format_path(self.path), "by": by, "total": self.total, "missing": self.missing}
        notes = [counted(self.total, "record", "records"), counted(self.distinct, "value", "values")]
        if self.missing:
            notes.append(f"{self.missing:,} without `{by}`")
        names = [by, "records", "count", *_PARTS, *map(_share_name, shares)]
        return Sheet(names, rows, None, about, "; ".join(notes))


def _share_name(share: float) -> str:
    """What a quantile is called.

    >>> _share_name(0.5), _share_name(0.99), _share_name(0.999)
    ('median', 'p99', 'p99.9')
    """
    return "median" if share == 0.5 else f"p{100 * share:.10g}"


class _OfNumbers(Summary[S]):
    """Counted from the numbers of a field."""

    __slots__ = ()

    path: Path
    quantiles: tuple[float, ...]

    @property
    def column(self) -> Path:
        return self.path


class StatsAsked(_OfNumbers[Stats]):
    """What the numbers of a field are like."""

    __slots__ = __match_args__ = ("path", "quantiles")
    name = "stats"

    def __init__(self, path: PathLike, quantiles: Sequence[float] = QUANTILES) -> None:
        self._keep(as_single_path(self.name, path), _quantiles(quantiles))

    def count(self, view: View, settled: object) -> tuple[int, Numbers]:
        from jitdb.operators.summaries.numbers import joined, known

        return len(view.matches), joined([known(part) for part in view.numbers(self.path)])

    def result(self, counts: Sequence[tuple[int, Numbers]], settled: object) -> Stats:
        from jitdb.operators.summaries.numbers import described_each, joined

        (found,) = described_each([joined([numbers for _, numbers in counts])], self.quantiles)
        return Stats(self.path, found.count, sum(total for total, _ in counts), *found[1:])


class StatsByAsked(_OfNumbers[StatsBy]):
    """The same for each value of another field: the most frequent values are found first, then their numbers."""

    __slots__ = __match_args__ = ("path", "by", "limit", "quantiles")
    name = "stats_by"

    by: Path
    limit: int | None

    def __init__(
        self, path: PathLike, by: PathLike, limit: int | None = None, quantiles: Sequence[float] = QUANTILES
    ) -> None:
        fields = (as_single_path(self.name, field) for field in (path, by))
        self._keep(*fields, limit_of(limit), _quantiles(quantiles))

    @property
    def values_of(self) -> tuple[Path, ...]:
        return (self.by,)

    @property
    def surveys(self) -> bool:
        return True

    def survey(self, view: View) -> Ranked:
        return view.ranked((self.by,), self.limit)

    def settled(self, surveys: Sequence[Ranked]) -> Ranked:
        return added(surveys, self.limit)

    def count(self, view: View, settled: Ranked) -> list[Numbers]:
        from jitdb.operators.summaries.numbers import joined, parted

        return parted(joined(list(view.numbers(self.path))), view.places(self.by, _keys(settled)), len(settled.pairs))

    def result(self, counts: Sequence[list[Numbers]], settled: Ranked) -> StatsBy:
        from jitdb.operators.summaries.numbers import described_each, joined

        pairs, distinct, total, missing = settled
        numbers = [joined([part[place] for part in counts]) for place in range(len(pairs))]
        rows = [
            GroupStats(value_of_key(key), Stats(self.path, found.count, count, *found[1:]))
            for ((key,), count), found in zip(pairs, described_each(numbers, self.quantiles), strict=True)
        ]
        return StatsBy(tuple(rows), total, missing, self.path, self.by, distinct)


def _keys(values: Ranked) -> list[bytes]:
    return [key for (key,), _ in values.pairs]


def _quantiles(shares: Sequence[float]) -> tuple[float, ...]:
    if not is_list(shares) or not all(map(_is_share, shares)):
        raise QueryError(f"quantiles are shares from 0 to 1, such as [0.5, 0.99], not {shown(shares)}")
    return tuple(map(float, shares))


def _is_share(share: Any) -> bool:
    try:
        return not isinstance(share, (bool, str)) and 0 <= share <= 1
    except TypeError:
        return False
