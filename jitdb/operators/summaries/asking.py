"""The summaries as methods: of a database, of a set of logs, and of a query."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from jitdb.operators.nodes.compare import Bound
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.summaries.distinct import DistinctAsked, DistinctCounts
from jitdb.operators.summaries.exploring.difference import FINDINGS, Difference, DifferenceAsked
from jitdb.operators.summaries.exploring.facets import VALUES, Facets, FacetsAsked
from jitdb.operators.summaries.exploring.patterns import Patterns, PatternsAsked
from jitdb.operators.summaries.groups import By
from jitdb.operators.summaries.histograms import Histogram, HistogramAsked
from jitdb.operators.summaries.shares import ShareAsked, Shares
from jitdb.operators.summaries.stats import Stats, StatsAsked, StatsBy, StatsByAsked
from jitdb.operators.summaries.summary import AUTO, BINS, QUANTILES, SERIES, S, Summary
from jitdb.operators.summaries.timelines import Timeline, TimelineAsked
from jitdb.operators.summaries.value_counts import GroupCounts, GroupsAsked, ValueCounts, ValuesAsked
from jitdb.operators.text.taken import operation_of


class Summaries:
    """Each reads no record: what it needs is indexed by the scan of the first question, and kept up to date.

    `where`: only records that match it: an operation, or an expression as text. Raises QueryError, LogError.
    """

    __slots__ = ()

    def value_counts(
        self, path: PathLike, where: str | Operation | None = None, *, limit: int | None = None
    ) -> ValueCounts:
        """How many records have which value of the field, the most frequent first; with `limit`, only so many values.

        db.value_counts("level", limit=10)
        """
        return self._summarized(ValuesAsked(path, limit), where)

    def group_count(
        self, *paths: PathLike, where: str | Operation | None = None, limit: int | None = None
    ) -> GroupCounts:
        """How many records have which values of several fields together, the most frequent first.

        db.group_count("carrier", "origin")
        """
        return self._summarized(GroupsAsked(paths, limit), where)

    def histogram(
        self, path: PathLike, where: str | Operation | None = None, *, bins: int | Sequence[float] = BINS
    ) -> Histogram:
        """How many records have numbers of which size.

        bins: how many at most, of one width, which is a round number; or where each begins and the last one ends

        db.histogram("duration", bins=[0, 10, 100, 1000])
        """
        return self._summarized(HistogramAsked(path, bins), where)

    def timeline(
        self,
        where: str | Operation | None = None,
        *,
        every: str | timedelta = AUTO,
        by: By = None,
        limit: int = SERIES,
        tz: str | None = None,
        per: str | timedelta | None = None,
    ) -> Timeline:
        """How many records are of which time, by the time that they declare.

        every: 10s, 15m, 1h, 1d, 1w, 1mo, 1q, 1y, …, or a timedelta; auto: about as many steps as a screen has lines
        by:    another field, or a list of several, whose `limit` most frequent values are counted one by one
        tz:    the zone by whose clocks steps begin, such as Europe/Berlin; None is UTC. An hour that they show twice is
               one step
        per:   rates, too: how many records in this time, such as 1s

        db.timeline('level == "error"', every="1h", by="host")
        """
        return self._summarized(TimelineAsked(every, by, limit, tz, per), where)

    def stats(
        self, path: PathLike, where: str | Operation | None = None, *, quantiles: Sequence[float] = QUANTILES
    ) -> Stats:
        """What the numbers of the field are like: how many, from, to, sum, mean, deviation and quantiles."""
        return self._summarized(StatsAsked(path, quantiles), where)

    def stats_by(
        self,
        path: PathLike,
        by: By = None,
        where: str | Operation | None = None,
        *,
        limit: int | None = None,
        quantiles: Sequence[float] = QUANTILES,
        every: str | timedelta | None = None,
        tz: str | None = None,
        order: str | None = None,
    ) -> StatsBy:
        """The same in groups: for each value of another field, for each step of time, or both.

        by:    another field, or a list of several
        every: the step, and `tz` its zone, as timeline() has them
        order: the values with the greatest of these first: records, count, min, max, sum, mean, stddev, median, or p95
               (any of the quantiles); "min asc": the least first
        limit: only so many values, the first in this order

        db.stats_by("duration", "host"), db.stats_by("duration", ["host", "status"], every="1h")
        db.stats_by("bytes", "user", order="sum", limit=10)
        """
        return self._summarized(StatsByAsked(path, by, limit, quantiles, every, tz, order), where)

    def count_distinct(
        self,
        path: PathLike,
        by: By = None,
        where: str | Operation | None = None,
        *,
        limit: int | None = None,
        every: str | timedelta | None = None,
        tz: str | None = None,
        order: str | None = None,
    ) -> DistinctCounts:
        """How many different values a field has, exactly: in all records, or in groups as stats_by() has them.

        order: the values of `by` with the greatest of these first: distinct, count

        db.count_distinct("user", every="1d"), db.count_distinct("user", "country", limit=10)
        """
        return self._summarized(DistinctAsked(path, by, limit, every, tz, order), where)

    def share(
        self,
        condition: str | Operation,
        by: By = None,
        where: str | Operation | None = None,
        *,
        limit: int | None = None,
        every: str | timedelta | None = None,
        tz: str | None = None,
        order: str | None = None,
    ) -> Shares:
        """Of how many of the records `condition` is true: of all, or in groups as stats_by() has them.

        order: the values of `by` with the greatest of these first: matching, share, count

        db.share("level == 'error'", every="1m"), db.share("status >= 500", "service", order="share", limit=10)
        """
        return self._summarized(ShareAsked(condition, by, limit, every, tz, order), where)

    def facets(
        self,
        where: str | Operation | None = None,
        *,
        fields: Sequence[PathLike] | None = None,
        limit: int = VALUES,
    ) -> Facets:
        """What is in the records: of each field the most frequent values, or how large its numbers are.

        fields: these; None: those worth it, by a sample of the records. Fields of which hardly two records have the
                same value are named, not counted
        limit:  of values, the most frequent

        db.facets('level == "error"')
        """
        return self._summarized(FacetsAsked(fields, limit), where)

    def difference(
        self,
        where: str | Operation | None = None,
        *,
        against: str | Operation | None = None,
        fields: Sequence[PathLike] | None = None,
        limit: int = FINDINGS,
    ) -> Difference:
        """What the records have more often than others: values, intervals of numbers, and which of these go together.

        against: which others: records of which this is true, less those that are asked about; None: all others
        fields:  only these; None: those worth it, as facets() has them. Fields that a condition is about are left out
        limit:   of findings

        db.difference("status >= 500"), db.query("status >= 500").difference(against="service == 'web'")
        """
        other = None if against is None else operation_of(against, "difference() takes operations")
        return self._summarized(DifferenceAsked(other, fields, limit), where)

    def patterns(
        self,
        where: str | Operation | None = None,
        *,
        field: PathLike | None = None,
        limit: int | None = None,
        every: str | timedelta | None = AUTO,
        new_since: Bound | None = None,
    ) -> Patterns:
        """What the texts of a field look like: patterns with placeholders for what varies, how many records have each,
        and when; the most frequent first.

        field:     the field of the texts; None: the one that says what happened, by its usual name (message, msg, …)
        every:     the step of the counts over time, as timeline() has it; None: none
        new_since: show first, and tell, which patterns no record of the log has that is of an earlier time: one as
                   since() takes it

        db.patterns(limit=10), db.patterns("level == 'error'", field="error.text", new_since="2h")
        """
        return self._summarized(PatternsAsked(field, limit, every, new_since), where)

    def _summarized(self, asked: Summary[S], where: str | Operation | None) -> S:
        raise NotImplementedError
