"""How each summary is counted: of a log's records, and of those of several logs, whose counts add up.

    needs     which indexes it is counted from
    survey    what must be known of all logs before any is counted: from where to where, which values are the first
    settled   the counter that knows it
    count     of one log
    result    of all counts

A counter is made for one question, and reads what a `View` has.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from jitdb.common.paths import Path
from jitdb.common.times import NUMBER
from jitdb.common.values import NUMBER as A_NUMBER
from jitdb.common.values import kind_of, split_number, value_at, value_of_key
from jitdb.engine.counting import bins
from jitdb.engine.counting.bins import Extent, Series, Width, bins_of, round_width
from jitdb.engine.counting.coded import BitmapCodes, Coded, ConstantCodes
from jitdb.engine.counting.grouped_numbers import described_each
from jitdb.engine.counting.numbers import Numbers, chosen_numbers, joined, known
from jitdb.engine.counting.order import Ranked, added
from jitdb.engine.counting.ranking import ranked, ranked_groups
from jitdb.engine.serving import serving_spec
from jitdb.errors import QueryError
from jitdb.indexes.kinds.roaring import bitmap_of_range
from jitdb.indexes.spec import IndexSpec
from jitdb.operators.summaries.aggregations import (
    GroupsAsked,
    HistogramAsked,
    StatsAsked,
    Summary,
    TimelineAsked,
    ValuesAsked,
)
from jitdb.operators.summaries.calendar import Step, parse_step, usual_step
from jitdb.operators.summaries.histograms import Bin, Histogram
from jitdb.operators.summaries.stats import GroupStats, Stats, StatsBy
from jitdb.operators.summaries.timelines import TimeBin, Timeline
from jitdb.operators.summaries.value_counts import GroupCount, GroupCounts, ValueCount, ValueCounts
from jitdb.operators.summaries.zones import zone_called

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.engine.answering.coded_column import CodedColumns
    from jitdb.engine.catalog.catalog import Catalog
    from jitdb.engine.plan import CoreFields

S = TypeVar("S")
C = TypeVar("C")

_STEPS: Final = 50  # of a timeline whose step nobody named: what a screen has room for


class View(NamedTuple):
    """What is counted from. Guarded by the engine's lock.

    matches: the records that are asked about
    known:   fields that all records have, with their values: those of a log's path
    is_whole: this log is all that is asked
    rank:    how many records begin before a byte of the log
    """

    catalog: Catalog
    core: CoreFields
    columns: CodedColumns
    matches: BitMap
    known: Mapping[Any, Any]  # by the first steps of their paths
    is_whole: bool
    rank: Callable[[int], int]

    def within(self, parts: Sequence[tuple[int, int]]) -> View:
        """The same of the records alone that begin in these parts of the log, from a byte on up to another one."""
        chosen = bitmap_of_range(0, 0)
        for begin, end in parts:
            chosen |= bitmap_of_range(self.rank(begin), self.rank(end))
        return self._replace(matches=self.matches & chosen)

    def coded(self, path: Path) -> Coded:
        """The values of a field. Raises IndexDamaged."""
        if path[0] in self.known:
            return ConstantCodes(value_at(dict(self.known), path))
        spec = serving_spec(self.catalog, path)
        index = self.catalog.get(spec)
        return self.columns.get(index) if spec.form == "dictionary" else BitmapCodes(index.segments, spec.is_owned)

    def numbers(self, spec: IndexSpec) -> Iterator[Numbers]:
        """Those of a column, in some parts. Raises IndexDamaged."""
        if not is_known(spec, self.known):
            return chosen_numbers(self.catalog.get(spec).segments, self.matches)
        value = value_at(dict(self.known), spec.paths[0])
        hi, _ = split_number(value) if kind_of(value) == A_NUMBER else (math.nan, 0)
        return iter([Numbers(np.full(len(self.matches), hi), None)])


def is_known(column: IndexSpec, known: Mapping[Any, Any]) -> bool:
    """Whether its numbers are those of a field that all records have; the declared time is always a record's own."""
    return column.form == "column" and column.paths[0][0] in known


class Counter(ABC, Generic[S, C]):
    """See the head of this file."""

    surveys = False

    def values_of(self) -> tuple[Path, ...]:
        """The fields whose values are counted."""
        return ()

    def column(self, core: CoreFields) -> IndexSpec | None:
        """The column whose numbers are. Raises QueryError."""
        return None

    def survey(self, view: View) -> S:
        raise NotImplementedError

    def settled(self, surveys: Sequence[S]) -> Counter[S, C]:
        raise NotImplementedError

    @abstractmethod
    def count(self, view: View) -> C: ...

    @abstractmethod
    def result(self, counts: Sequence[C]) -> Any: ...


class ValueCounter(Counter[None, Ranked]):
    def __init__(self, asked: ValuesAsked) -> None:
        self._path, self._limit = asked.path, asked.limit

    def values_of(self) -> tuple[Path, ...]:
        return (self._path,)

    def count(self, view: View) -> Ranked:
        return _ranked(view, self._path, self._limit)

    def result(self, counts: Sequence[Ranked]) -> ValueCounts:
        pairs, distinct, total, missing = added(counts, self._limit)
        rows = tuple(ValueCount(value_of_key(key), count) for (key,), count in pairs)
        return ValueCounts(rows, total, missing, self._path, distinct)


class MatchCounter(Counter[None, int]):
    """How many they are."""

    def count(self, view: View) -> int:
        return len(view.matches)

    def result(self, counts: Sequence[int]) -> int:
        return sum(counts)


class GroupCounter(Counter[None, Ranked]):
    def __init__(self, asked: GroupsAsked) -> None:
        self._paths, self._limit = asked.paths, asked.limit

    def values_of(self) -> tuple[Path, ...]:
        return self._paths

    def count(self, view: View) -> Ranked:
        columns = [view.coded(path) for path in self._paths]
        codes = [column.codes(view.matches) for column in columns]
        return ranked_groups(columns, codes, self._limit if view.is_whole else None)

    def result(self, counts: Sequence[Ranked]) -> GroupCounts:
        pairs, distinct, total, missing = added(counts, self._limit)
        rows = tuple(GroupCount(tuple(map(value_of_key, keys)), count) for keys, count in pairs)
        return GroupCounts(rows, total, missing, self._paths, distinct)


class _Binned(NamedTuple):
    series: Series | None
    total: int
    missing: int
    below: int = 0
    above: int = 0


class HistogramCounter(Counter[Extent, _Binned]):
    def __init__(self, asked: HistogramAsked, width: Width | None = None) -> None:
        self._asked, self._width = asked, width
        self.surveys = isinstance(asked.bins, int) and width is None

    def column(self, core: CoreFields) -> IndexSpec:
        return core.column(self._asked.path)

    def survey(self, view: View) -> Extent:
        return reduce(Extent.with_, map(Extent.of, view.numbers(self.column(view.core))), Extent())

    def settled(self, surveys: Sequence[Extent]) -> HistogramCounter:
        assert isinstance(self._asked.bins, int)
        found = round_width(reduce(Extent.with_, surveys, Extent()), self._asked.bins)
        return HistogramCounter(self._asked, found or Width(1, 0))

    def count(self, view: View) -> _Binned:
        parts = [self._part(known(part)) for part in view.numbers(self.column(view.core))]
        below, above = sum(part[1] for part in parts), sum(part[2] for part in parts)
        series = bins.added([part[0] for part in parts])
        total = len(view.matches)
        inside = 0 if series is None else int(series.counts.sum())
        return _Binned(series, total, total - inside - below - above, below, above)

    def _part(self, numbers: Numbers) -> tuple[Series | None, int, int]:
        """The bins of these numbers, and how many are below and above all."""
        first, edges = 0, np.array(self._asked.bins if isinstance(self._asked.bins, tuple) else ())
        if self._width is not None:
            low, high, _ = Extent.of(numbers)
            if low > high:
                return None, int((numbers.hi < 0).sum()), int((numbers.hi > 0).sum())
            first, last = self._width.number(low) - 1, self._width.number(high) + 1  # rests may reach beyond
            bins.check(first, last)
            edges = np.array([self._width.edge(number) for number in range(first, last + 2)])
        found = bins_of(numbers, edges)
        below, above = int((found < 0).sum()), int((found == len(edges) - 1).sum())
        if below or above:
            found = found[(found >= 0) & (found < len(edges) - 1)]
        return Series.of(found + first, None, 1), below, above

    def result(self, counts: Sequence[_Binned]) -> Histogram:
        series = bins.added([part.series for part in counts])
        total, missing = sum(part.total for part in counts), sum(part.missing for part in counts)
        below, above = sum(part.below for part in counts), sum(part.above for part in counts)
        return Histogram(tuple(self._rows(series)), total, missing, self._asked.path, below, above)

    def _rows(self, series: Series | None) -> Iterator[Bin]:
        named = self._asked.bins
        if isinstance(named, tuple):
            counts = np.zeros(len(named) - 1, np.int64)
            if series is not None:
                counts[series.first : series.last + 1] = series.counts[:, 0]
            yield from map(Bin, named, named[1:], counts.tolist())
        elif series is not None:
            assert self._width is not None
            for number, count in enumerate(series.counts[:, 0].tolist(), series.first):
                yield Bin(self._width.edge(number), self._width.edge(number + 1), count)


class _Times(NamedTuple):
    first: float
    last: float
    values: Ranked | None


class TimeCounter(Counter[_Times, _Binned]):
    def __init__(self, asked: TimelineAsked, step: Step | None = None, keys: Sequence[bytes] = ()) -> None:
        self._asked, self._step, self._keys = asked, step or asked.every, keys
        self.surveys = step is None and (asked.every is None or asked.by is not None)

    def values_of(self) -> tuple[Path, ...]:
        return () if self._asked.by is None else (self._asked.by,)

    def column(self, core: CoreFields) -> IndexSpec:
        if core.unit == NUMBER:
            raise QueryError("the declared time is a number here, of which there is no timeline", remedy="histogram()")
        return core.column("timestamp")

    def survey(self, view: View) -> _Times:
        extent = Extent()
        if self._step is None:
            parts = view.numbers(self.column(view.core))
            extent = reduce(Extent.with_, map(bins.calendar_extent, parts), extent)
        by = self._asked.by
        return _Times(extent.low, extent.high, None if by is None else _ranked(view, by, self._asked.limit))

    def settled(self, surveys: Sequence[_Times]) -> TimeCounter:
        first = min((part.first for part in surveys), default=math.inf)
        last = max((part.last for part in surveys), default=-math.inf)
        step = self._step or (usual_step(first, last, _STEPS) if first <= last else parse_step("1d"))
        values = [part.values for part in surveys if part.values is not None]
        keys = [key for (key,), _ in added(values, self._asked.limit).pairs] if values else []
        return TimeCounter(self._asked, step, keys)

    def count(self, view: View) -> _Binned:
        assert self._step is not None
        columns, begin = self._columns(view), 0
        zone = None if self._asked.tz is None else zone_called(self._asked.tz)
        parts: list[Series | None] = []
        for times in view.numbers(self.column(view.core)):
            end = begin + len(times.hi)
            some = None if columns is None else columns[begin:end]
            parts.append(bins.by_clock(times, self._step, some, len(self._keys) + 1, zone))
            begin = end
        series = bins.added(parts)
        total = len(view.matches)
        return _Binned(series, total, total - (0 if series is None else int(series.counts.sum())))

    def _columns(self, view: View) -> NDArray[np.int64] | None:
        """Of each record the place of its value among the keys; behind the last that of the others."""
        if self._asked.by is None:
            return None
        coded = view.coded(self._asked.by)
        place = {key: number for number, key in enumerate(self._keys)}
        table = np.array([place.get(coded.key(code), len(place)) for code in range(len(coded))], np.int64)
        return np.asarray(table[coded.codes(view.matches)])

    def result(self, counts: Sequence[_Binned]) -> Timeline:
        assert self._step is not None
        series = bins.added([part.series for part in counts])
        total, missing = sum(part.total for part in counts), sum(part.missing for part in counts)
        rows: list[TimeBin] = []
        if series is not None:
            starts: Iterator[datetime] = map(self._step.start, range(series.first, series.last + 1))
            sums, columns = series.counts.sum(axis=1).tolist(), series.counts[:, :-1].tolist()
            if self._asked.tz is not None:
                zone = zone_called(self._asked.tz)
                starts = (start.replace(tzinfo=zone) for start in starts)
            rows = list(map(TimeBin, starts, sums, map(tuple, columns)))
        values = tuple(map(value_of_key, self._keys))
        return Timeline(tuple(rows), total, missing, self._step.text, self._asked.by, values)


class StatsCounter(Counter[None, tuple[int, Numbers]]):
    def __init__(self, asked: StatsAsked) -> None:
        self._asked = asked

    def column(self, core: CoreFields) -> IndexSpec:
        return core.column(self._asked.path)

    def count(self, view: View) -> tuple[int, Numbers]:
        return len(view.matches), joined([known(part) for part in view.numbers(self.column(view.core))])

    def result(self, counts: Sequence[tuple[int, Numbers]]) -> Stats:
        (found,) = described_each([joined([numbers for _, numbers in counts])], self._asked.quantiles)
        return Stats(self._asked.path, found.count, sum(total for total, _ in counts), *found[1:])


class StatsByCounter(Counter[Ranked, "dict[bytes, Numbers]"]):
    """First which values most records have, then the numbers of these."""

    def __init__(self, asked: StatsAsked, values: Ranked | None = None) -> None:
        assert asked.by is not None
        self._asked, self._by, self._values = asked, asked.by, values
        self.surveys = values is None

    def values_of(self) -> tuple[Path, ...]:
        return (self._by,)

    def column(self, core: CoreFields) -> IndexSpec:
        return core.column(self._asked.path)

    def survey(self, view: View) -> Ranked:
        return _ranked(view, self._by, self._asked.limit)

    def settled(self, surveys: Sequence[Ranked]) -> StatsByCounter:
        return StatsByCounter(self._asked, added(surveys, self._asked.limit))

    def count(self, view: View) -> dict[bytes, Numbers]:
        assert self._values is not None
        coded = view.coded(self._by)
        numbers = joined(list(view.numbers(self.column(view.core))))
        there = np.flatnonzero(numbers.hi == numbers.hi)
        codes = coded.codes(view.matches)[there]
        order = np.argsort(codes, kind="stable")
        hi, lo = numbers.hi[there][order], None if numbers.lo is None else numbers.lo[there][order]
        bounds = np.searchsorted(codes[order], np.arange(1, len(coded) + 1)).tolist()
        wanted = {key for (key,), _ in self._values.pairs}
        found = {}
        for code, (begin, end) in enumerate(pairwise(bounds), 1):
            if begin < end and (key := coded.key(code)) in wanted:
                found[key] = Numbers(hi[begin:end], None if lo is None else lo[begin:end])
        return found

    def result(self, counts: Sequence[dict[bytes, Numbers]]) -> StatsBy:
        assert self._values is not None
        pairs = self._values.pairs
        numbers = [joined([part[key] for part in counts if key in part]) for (key,), _ in pairs]
        rows = [
            GroupStats(value_of_key(key), Stats(self._asked.path, found.count, total, *found[1:]))
            for ((key,), total), found in zip(pairs, described_each(numbers, self._asked.quantiles), strict=True)
        ]
        _, distinct, total, missing = self._values
        return StatsBy(tuple(rows), total, missing, self._asked.path, self._by, distinct)


def _ranked(view: View, path: Path, limit: int | None) -> Ranked:
    """The first values of a field; all of them where other logs are asked too."""
    coded = view.coded(path)
    return ranked(coded, coded.counts(view.matches), len(view.matches), limit if view.is_whole else None)


def counter_of(asked: Summary) -> Counter[Any, Any]:
    """That of a summary."""
    if isinstance(asked, ValuesAsked):
        return ValueCounter(asked)
    if isinstance(asked, GroupsAsked):
        return GroupCounter(asked)
    if isinstance(asked, HistogramAsked):
        return HistogramCounter(asked)
    if isinstance(asked, TimelineAsked):
        return TimeCounter(asked)
    assert isinstance(asked, StatsAsked)
    return StatsCounter(asked) if asked.by is None else StatsByCounter(asked)
