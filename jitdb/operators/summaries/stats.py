"""What the numbers of a field are like, and for each value of another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from jitdb.common.paths import Path, format_path
from jitdb.common.words import counted
from jitdb.display.sheet import Sheet
from jitdb.errors import QueryError
from jitdb.operators.summaries.aggregations import QUANTILES
from jitdb.operators.summaries.result import Result, Rows

_SHARES: Final = (0.5, 0.95)  # quantiles of a row
_PARTS: Final = ("min", "max", "sum", "mean", "stddev")


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
        told = [counted(self.total, "record", "records"), counted(self.distinct, "value", "values")]
        if self.missing:
            told.append(f"{self.missing:,} without `{by}`")
        names = [by, "records", "count", *_PARTS, *map(_share_name, shares)]
        return Sheet(names, rows, None, about, "; ".join(told))


def _share_name(share: float) -> str:
    """What a quantile is called.

    >>> _share_name(0.5), _share_name(0.99), _share_name(0.999)
    ('median', 'p99', 'p99.9')
    """
    return "median" if share == 0.5 else f"p{100 * share:.10g}"
