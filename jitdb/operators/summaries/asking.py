"""The questions for a summary, as methods: of a database, of a set of logs, and of a query."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.summaries.aggregations import (
    AUTO,
    BINS,
    QUANTILES,
    SERIES,
    Summary,
    groups_asked,
    histogram_asked,
    stats_asked,
    timeline_asked,
    values_asked,
)

if TYPE_CHECKING:
    from jitdb.operators.summaries.histograms import Histogram
    from jitdb.operators.summaries.stats import Stats, StatsBy
    from jitdb.operators.summaries.timelines import Timeline
    from jitdb.operators.summaries.value_counts import GroupCounts, ValueCounts


class Summaries:
    """Each reads no record: what it needs is indexed by the scan of the first question, and kept up to date.

    `where`: only records that match it. Raises QueryError, LogError.
    """

    __slots__ = ()

    def value_counts(self, path: PathLike, where: Operation | None = None, *, limit: int | None = None) -> ValueCounts:
        """How many records have which value of the field, the most frequent first; with `limit`, only so many values.

        db.value_counts("level", limit=10)
        """
        found: ValueCounts = self._summarized(values_asked(path, limit), where)
        return found

    def group_count(self, *paths: PathLike, where: Operation | None = None, limit: int | None = None) -> GroupCounts:
        """How many records have which values of several fields together, the most frequent first.

        db.group_count("carrier", "origin")
        """
        found: GroupCounts = self._summarized(groups_asked(paths, limit), where)
        return found

    def histogram(
        self, path: PathLike, where: Operation | None = None, *, bins: int | Sequence[float] = BINS
    ) -> Histogram:
        """How many records have numbers of which size.

        bins: how many at most, of one width, which is a round number; or where each begins and the last one ends

        db.histogram("duration", bins=[0, 10, 100, 1000])
        """
        found: Histogram = self._summarized(histogram_asked(path, bins), where)
        return found

    def timeline(
        self,
        where: Operation | None = None,
        *,
        every: str | timedelta = AUTO,
        by: PathLike | None = None,
        limit: int = SERIES,
        tz: str | None = None,
    ) -> Timeline:
        """How many records are of which time, by the time that they declare.

        every: 10s, 15m, 1h, 1d, 1w, 1mo, 1q, 1y, …, or a timedelta; auto: about as many steps as a screen has lines
        by:    another field, whose `limit` most frequent values are counted one by one
        tz:    the zone by whose clocks steps begin, such as Europe/Berlin; None is UTC. An hour that they show twice is
               one step

        db.timeline(field("level") == "error", every="1h", by="host")
        """
        found: Timeline = self._summarized(timeline_asked(every, by, limit, tz), where)
        return found

    def stats(self, path: PathLike, where: Operation | None = None, *, quantiles: Sequence[float] = QUANTILES) -> Stats:
        """What the numbers of the field are like: how many, from, to, sum, mean, deviation and quantiles."""
        found: Stats = self._summarized(stats_asked(path, None, None, quantiles), where)
        return found

    def stats_by(
        self,
        path: PathLike,
        by: PathLike,
        where: Operation | None = None,
        *,
        limit: int | None = None,
        quantiles: Sequence[float] = QUANTILES,
    ) -> StatsBy:
        """The same for each value of another field, that of most records first; with `limit`, only so many values.

        db.stats_by("duration", "host")
        """
        found: StatsBy = self._summarized(stats_asked(path, by, limit, quantiles), where)
        return found

    def _summarized(self, asked: Summary, where: Operation | None) -> Any:
        raise NotImplementedError
