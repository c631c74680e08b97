"""In which order the answers come, and the first of them without sorting all.

*Declared* order goes by the timestamp column, then by seq; records without a timestamp come first. Sorted by fields,
records that have nothing to sort by come last. A field gives each record a number, and NaN where it has nothing: those
of its column where all its values are numbers, those of its column of times where all are times as text, else the ranks
of the values that its dictionary holds (coded.py). Which of these indexes serves makes no difference to the order; the
smallest one that holds all values does. A column that is built knows whether there are others; until then another index
of the field tells, or the first records.

A log mostly grows in the order of time, so the extremes of short zones tell which few zones can hold the next answers:
the ten newest of a million are found in some hundred of them, and the column is read in the spans of these alone. The
extremes are those of `hi`; a zone that could tie is looked at too, and then `lo` and the seq decide, so the order is
exact for integers of 64 bits. Where zones leave many records, those better than the k-th best number of the first field
are among the first k, and of those that tie with it as many as the other fields choose. Only these few are sorted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from pyroaring import BitMap

from jitdb.common.times import AUTO, NUMBER, time_of_text
from jitdb.common.values import number_of, value_at, value_key
from jitdb.engine.answering.members import Members
from jitdb.engine.answering.value_order import OF_NUMBERS, OF_TIMES, place_of_key
from jitdb.engine.records import require
from jitdb.errors import LogError
from jitdb.indexes.kinds.columns import HAS_RESTS, number_range, seen_by
from jitdb.indexes.kinds.kernels import seen
from jitdb.indexes.kinds.numbers import load_extremes, load_numbers
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_range, members_of, union_of
from jitdb.indexes.segment import ZONE
from jitdb.indexes.spec import IndexSpec
from jitdb.log.reading.sampling import first

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.common.paths import Path
    from jitdb.engine.answering.coded_column import CodedColumns
    from jitdb.engine.catalog.catalog import Catalog
    from jitdb.engine.declared_time import CoreFields
    from jitdb.indexes.files.index import Index
    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.selection import SortKey

_Extremes: TypeAlias = "tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.float64]]"  # starts, low, high
_Place: TypeAlias = tuple[Any, ...]  # what orders a value among those of all logs: coded.place_of_key

_NO_TIME: Final[_Place] = (-1,)
FEW: Final = 4 * ZONE  # records that are sorted without choosing the best first
_FIRST_ZONES: Final = 64  # that are looked at by what they may hold; of the others as many at a time
_LOOKED_AT: Final = 16  # records
_TEXTS_ONLY: Final = seen.TEXTS | seen.ZONELESS


class Order:
    """An order by some columns, beside that of the records' seqs. Guarded by the engine's lock.

    columns:     what is compared first, then where that is equal; and whether each falls
    is_declared: records without a number come first, and last only in the reverse
    """

    def __init__(self, columns: Sequence[tuple[Column, bool]], *, is_declared: bool = False) -> None:
        self._columns, self._is_declared = columns, is_declared

    def first(self, records: BitMap, wanted: int, descending: bool) -> NDArray[np.uint32]:
        """The first `wanted` of these records in this order, or in its reverse: then the greatest come first, of equal
        ones the newest; sorted by fields, those without a value come last, either way.

        Raises IndexBehind where an index does not cover them, IndexDamaged.
        """
        if wanted <= 0 or not records:
            return np.empty(0, np.uint32)
        for column, _ in self._columns:
            require(column.index, np.array([records.max()], np.uint32))
        if wanted * 4 < len(records):
            column, falls = self._columns[0]
            by_seq = 0 if len(self._columns) > 1 else -1 if descending else 1
            members = column.promising(records, wanted, falls != descending, self._is_declared, by_seq)
            if len(members) > FEW:
                members = np.sort(self._best(members, wanted, descending, 0))
        else:
            members = members_of(records)
        if descending:
            members = members[::-1]  # a stable sort leaves equal ones in that order
        keys: list[NDArray[Any]] = []  # the last counts most
        for column, falls in reversed(self._columns):
            keys += self._compared(column, members, falls != descending)[::-1]
        order = np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys)
        return members[order[:wanted]]

    def _best(self, members: NDArray[np.uint32], wanted: int, descending: bool, level: int) -> NDArray[np.uint32]:
        """The first `wanted` of these records (ascending seqs), in no order, by the fields from this one on."""
        if wanted >= len(members):
            return members
        if level == len(self._columns):
            return members[-wanted:] if descending else members[:wanted]
        column, falls = self._columns[level]
        if level:
            members = column.promising(bitmap_of(members), wanted, falls != descending, self._is_declared)
        sure, tied = [], np.arange(len(members))
        for number in self._compared(column, members, falls != descending):
            number = number[tied]
            bound = np.partition(number, wanted - 1)[wanted - 1]
            sure.append(members[tied[number < bound]])
            wanted -= len(sure[-1])
            tied = tied[number == bound]
        return np.concatenate([*sure, self._best(members[tied], wanted, descending, level + 1)])

    def _compared(self, column: Column, seqs: NDArray[np.uint32], falls: bool) -> list[NDArray[Any]]:
        """What of the numbers of these records is compared first, and what where that is equal; NaN tie."""
        hi, lo = column.numbers_of(seqs)
        numbers: list[NDArray[Any]] = [-hi if falls else hi]
        missing = np.isnan(hi)
        if missing.any():
            is_first = self._is_declared and not falls
            numbers = [~missing if is_first else missing, np.where(missing, 0.0, numbers[0])]
        return numbers if lo is None else [*numbers, -lo if falls else lo]

    def times(self, seqs: NDArray[np.uint32], descending: bool) -> list[Any]:
        """What orders these records, in whatever order they are: smaller ones come first, those of other logs too;
        descending: greater ones.

        Raises IndexBehind where an index does not cover them, IndexDamaged.
        """
        ascending = np.argsort(seqs, kind="stable")
        parts: list[list[Any]] = []
        for column, falls in self._columns:
            require(column.index, seqs[ascending[-1:]])
            found: list[Any] = [None] * len(seqs)
            for at, place in zip(ascending.tolist(), column.places_of(seqs[ascending]), strict=True):
                found[at] = (place or _NO_TIME) if self._is_declared else _merged_by(place, falls, descending)
            parts.append(found)
        return parts[0] if self._is_declared else list(zip(*parts, strict=True))

    def keys(self, seqs: NDArray[np.uint32]) -> NDArray[np.float64]:
        """The numbers of the first column as an array, [2, n]: hi, NaN where there is none, and lo, of records in
        whatever order. Raises as times() does.
        """
        column, ascending = self._columns[0][0], np.argsort(seqs, kind="stable")
        require(column.index, seqs[ascending[-1:]])
        found = np.zeros((2, len(seqs)))
        hi, lo = column.numbers_of(seqs[ascending])
        found[0, ascending] = hi
        if lo is not None:
            found[1, ascending] = lo
        return found

    def only_numbers(self) -> tuple[Numbers, bool, bool] | None:
        """Its column, where it is the only one, and one of numbers; whether it falls, and whether what has none is
        first, unless it falls.
        """
        (column, falls), *others = self._columns
        return None if others or not isinstance(column, Numbers) else (column, falls, self._is_declared)

    def zones(self) -> Zones:
        """The extremes of the first column, which is one of numbers."""
        column = self._columns[0][0]
        assert isinstance(column, Numbers)
        return column.zones()


def place_of(value: Any, key: SortKey, descending: bool) -> _Place:
    """What Order.times has for a record with this value in the field."""
    return _merged_by(place_of_key(value_key(value)), key.descending, descending)


def _merged_by(place: _Place | None, falls: bool, descending: bool) -> _Place:
    if place is None:
        return (-1,) if descending else (1,)
    return (0, _Falling(place) if falls else place)


class _Falling:
    """Wraps what is to be ordered the other way round."""

    __slots__ = ("place",)

    def __init__(self, place: Any) -> None:
        self.place = place

    def __lt__(self, other: _Falling) -> bool:
        return bool(other.place < self.place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Falling) and bool(self.place == other.place)

    __hash__ = None  # type: ignore[assignment]


# --- columns ---------------------------------------------------------------------------------------------------------


class Column(ABC):
    """A number a record."""

    def __init__(self, index: Index) -> None:
        self.index = index

    @abstractmethod
    def numbers_of(self, seqs: NDArray[np.uint32]) -> tuple[NDArray[np.float64], NDArray[np.int16] | None]:
        """hi and lo (None: all 0) of these records, in ascending or descending order; NaN: nothing to sort by."""

    @abstractmethod
    def places_of(self, seqs: NDArray[np.uint32]) -> list[_Place | None]:
        """What orders these records (ascending seqs) among those of any log."""

    def promising(
        self, records: BitMap, wanted: int, falls: bool, lacking_first: bool, by_seq: int = 0
    ) -> NDArray[np.uint32]:  # fmt: skip
        """Those of these records among which the first `wanted` are, and all that tie with these; ascending.

        lacking_first: unless it falls, records without a number come first
        by_seq:        1 where of records that tie those with the least seqs are wanted, -1 for the greatest: then not
                       all of them need be given
        """
        return members_of(records)


class Numbers(Column):
    """Those of a column of numbers, or of times."""

    def __init__(self, index: Index, group: int) -> None:
        super().__init__(index)
        self._group = group
        self._zones = Zones([])

    def numbers_of(self, seqs: NDArray[np.uint32]) -> tuple[NDArray[np.float64], NDArray[np.int16] | None]:
        if len(seqs) > 1 and seqs[0] > seqs[-1]:
            hi, lo = numbers_at(self.index.segments, seqs[::-1])
            return hi[::-1], None if lo is None else lo[::-1]
        return numbers_at(self.index.segments, seqs)

    def places_of(self, seqs: NDArray[np.uint32]) -> list[_Place | None]:
        hi, lo = self.numbers_of(seqs)
        pairs = zip(hi.tolist(), [0] * len(seqs) if lo is None else lo.tolist(), strict=True)
        return [(self._group, number, rest) if number == number else None for number, rest in pairs]

    def zones(self) -> Zones:
        """The extremes of its numbers. Raises IndexDamaged."""
        segments = self.index.segments
        if list(map(id, self._zones.segments)) != list(map(id, segments)):
            self._zones = Zones(segments, self._zones)
        return self._zones

    def promising(
        self, records: BitMap, wanted: int, falls: bool, lacking_first: bool, by_seq: int = 0
    ) -> NDArray[np.uint32]:  # fmt: skip
        """From the zones that may hold the best, some at a time. Raises IndexDamaged."""
        if len(records) <= ZONE:
            return members_of(records)
        zones = self.zones()
        # The best that a zone may hold, smaller is better; -inf stands for "no timestamp" too.
        bound = -zones.high if falls else zones.low
        ends = np.append(zones.starts[1:], self.index.end_seq)
        by_bound = np.lexsort((-zones.starts.astype(np.int64) if by_seq < 0 else zones.starts, bound))
        has_rests = any(number_range(segment)[2] & HAS_RESTS for segment in self.index.segments)
        best = _Best(wanted, 0 if has_rests else by_seq)  # what ties in hi may differ in lo

        def look(some: NDArray[np.int64]) -> None:
            each = zip(zones.starts[some].tolist(), ends[some].tolist(), strict=True)
            found = members_of(records & union_of(bitmap_of_range(*zone) for zone in each))
            hi = numbers_at(self.index.segments, found)[0]
            lacking = -np.inf if lacking_first and not falls else np.inf
            best.add(found, np.where(np.isnan(hi), lacking, -hi if falls else hi))

        taken, step = 0, 1

        def wanted_of(some: NDArray[np.int64]) -> NDArray[np.int64]:
            return some[best.may_be_in(bound[some], zones.starts[some], ends[some])]

        while taken < min(_FIRST_ZONES, len(by_bound)) and len(wanted_of(by_bound[taken : taken + 1])):
            look(np.sort(by_bound[taken : taken + step]))
            taken += step
            step *= 2
        rest = np.sort(by_bound[taken:])  # by segment, each of which is read once
        for begin in range(0, len(rest), _FIRST_ZONES):
            some = wanted_of(rest[begin : begin + _FIRST_ZONES])
            if len(some):
                look(some)
        return np.sort(best.members)


class _Best:
    """Records among which the first `wanted` are, by their numbers, of which smaller ones come first; and all that tie,
    or those of them that come first by their seqs (`by_seq`, see Column.promising).

    bound: the number of the last of them
    """

    def __init__(self, wanted: int, by_seq: int) -> None:
        self._wanted, self._by_seq = wanted, by_seq
        self.members, self._numbers = np.empty(0, np.uint32), np.empty(0)
        self.bound = np.inf
        self._last = -1  # the seq of the last of them, where all that come first by seq are known

    def may_be_in(
        self, bounds: NDArray[np.float64], starts: NDArray[np.uint32], ends: NDArray[np.uint32]
    ) -> NDArray[np.bool_]:  # fmt: skip
        """Whether zones that may hold such numbers may have one of them."""
        if self._last < 0:
            return bounds <= self.bound
        is_ahead = starts <= self._last if self._by_seq > 0 else ends > self._last + 1
        found: NDArray[np.bool_] = (bounds < self.bound) | ((bounds == self.bound) & is_ahead)
        return found

    def add(self, members: NDArray[np.uint32], numbers: NDArray[np.float64]) -> None:
        near = numbers <= self.bound
        members, numbers = np.append(self.members, members[near]), np.append(self._numbers, numbers[near])
        if len(numbers) >= self._wanted:
            self.bound = np.partition(numbers, self._wanted - 1)[self._wanted - 1]
            near = numbers <= self.bound
            members, numbers, self._last = members[near], numbers[near], -1
            if self._by_seq and np.isfinite(self.bound):  # infinities tie with what has no number
                members, numbers = self._first_by_seq(members, numbers)
        self.members, self._numbers = members, numbers

    def _first_by_seq(
        self, members: NDArray[np.uint32], numbers: NDArray[np.float64]
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        """Without those that tie and are not among the first."""
        tied = np.flatnonzero(numbers == self.bound)
        count = self._wanted - (len(numbers) - len(tied))
        order = np.argsort(members[tied])[:: self._by_seq][:count]
        self._last = int(members[tied[order[-1]]])
        kept = np.append(np.flatnonzero(numbers < self.bound), tied[order])
        return members[kept], numbers[kept]


class _Ranks(Column):
    """Where the values of a dictionary stand in the order of all."""

    def __init__(self, index: Index, coded: CodedColumns) -> None:
        super().__init__(index)
        self._coded = coded

    def numbers_of(self, seqs: NDArray[np.uint32]) -> tuple[NDArray[np.float64], NDArray[np.int16] | None]:
        column = self._coded.get(self.index)
        found = column.ranks[column.codes(Members(bitmap_of(seqs)))]
        return (found[::-1] if len(seqs) > 1 and seqs[0] > seqs[-1] else found), None

    def places_of(self, seqs: NDArray[np.uint32]) -> list[_Place | None]:
        column = self._coded.get(self.index)
        codes = column.codes(Members(bitmap_of(seqs))).tolist()
        known = {code: place_of_key(column.key(code)) for code in set(codes)}
        return [known[code] for code in codes]


def column_of(index: Index, coded: CodedColumns) -> Column:
    """What gives the numbers of a field that is sorted by, from the index that holds them."""
    if index.spec.form == "dictionary":
        return _Ranks(index, coded)
    return Numbers(index, OF_TIMES if index.spec.form == "time" else OF_NUMBERS)


class Zones:
    """The extremes of `hi` in each zone: `low` is -inf where a record has none; `high` where no record has one."""

    def __init__(self, segments: list[Segment], before: Zones | None = None) -> None:
        self.segments = list(segments)
        known: dict[int, _Extremes] = {} if before is None else before._of
        self._of: dict[int, _Extremes] = {}
        for segment in segments:
            self._of[id(segment)] = known.get(id(segment)) or _extremes(segment)
        parts = [self._of[id(segment)] for segment in segments]
        empty = np.empty(0)
        self.starts = np.concatenate([empty.astype(np.uint32), *(part[0] for part in parts)])
        self.low = np.concatenate([empty, *(part[1] for part in parts)])
        self.high = np.concatenate([empty, *(part[2] for part in parts)])


def _extremes(segment: Segment) -> _Extremes:
    low, high = load_extremes(segment)
    return (np.arange(0, segment.count, ZONE) + segment.first_seq).astype(np.uint32), low, high


def numbers_at(
    segments: list[Segment], seqs: NDArray[np.uint32], load: Callable[[Segment], Any] = load_numbers
) -> tuple[NDArray[np.float64], NDArray[np.int16] | None]:
    """hi and lo (None: all 0) of these records (ascending seqs); none without segments."""
    if not segments:
        return np.empty(0), None
    if len(segments) == 1:
        hi, lo = load(segments[0])
        return hi[seqs], None if lo is None else lo[seqs]
    bounds = np.searchsorted(seqs, [*(segment.first_seq for segment in segments), segments[-1].end_seq]).tolist()
    highs, lows = [], []
    for segment, start, stop in zip(segments, bounds, bounds[1:], strict=False):
        if start < stop:
            places = seqs[start:stop] - np.uint32(segment.first_seq)
            hi, lo = load(segment)
            highs.append(hi[places])
            lows.append(np.zeros(stop - start, np.int16) if lo is None else lo[places])
    lo = np.concatenate([np.empty(0, np.int16), *lows])
    return np.concatenate([np.empty(0), *highs]), lo if lo.any() else None


def sorting_spec(path: Path, core: CoreFields, catalog: Catalog, log: LogSource) -> IndexSpec:
    """The index to sort by this field from, which may not be there yet."""
    column = IndexSpec("column", (path,))
    time = IndexSpec("time", (path,), name=AUTO if core.unit == NUMBER else core.unit)
    dictionary = IndexSpec("dictionary", (path,))
    for spec in (column, time, dictionary):
        index = catalog.get(spec)
        if index.segments and _holds_all(index):
            return spec
    if catalog.get(column).segments or catalog.get(time).segments:
        return dictionary
    return {_is_number: column, _is_time: time}.get(_what_all_are(path, log), dictionary)


def _holds_all(index: Index) -> bool:
    """Whether it holds all values that the field has, as far as it reaches."""
    bits = 0
    if index.spec.form != "dictionary":
        for segment in index.segments:
            bits |= seen_by(segment)
    return not bits & ~_TEXTS_ONLY


def _what_all_are(path: Path, log: LogSource) -> Any:
    """_is_number or _is_time, where that is true of all values in the first records, and there are some."""
    try:
        found = [value_at(record, path) for record in first(log, _LOOKED_AT)]
    except LogError:  # it is raised where these records are read
        return None
    values = [value for value in found if value]  # empty values and 0 say little
    return next((kind for kind in (_is_number, _is_time) if values and all(map(kind, values))), None)


def _is_number(value: Any) -> bool:
    return number_of(value) is not None


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and time_of_text(value) is not None


# --- answers ---------------------------------------------------------------------------------------------------------


class Answer:
    """The records that a question is true of, as of one state of the log. Guarded by the engine's lock.

    order: what they are sorted by; None: they come in the order of the log
    """

    def __init__(self, bitmap: BitMap, order: Order | None) -> None:
        self.total = len(bitmap)
        self._bitmap = bitmap
        self.order = order
        self._members: NDArray[np.uint32] | None = None
        self._ordered: dict[bool, NDArray[np.uint32]] = {}

    def page(self, start: int, limit: int | None, descending: bool) -> NDArray[np.uint32]:
        """The seqs of the answers [start, start + limit), in order; all from `start` on without a limit."""
        stop = self.total if limit is None else min(start + limit, self.total)
        if start >= stop:
            return np.empty(0, np.uint32)
        if self.order is None:
            if self._members is None:
                self._members = members_of(self._bitmap)
            ordered = self._members[::-1] if descending else self._members
        else:
            ordered = self._sorted(self.order, stop, descending)
        return ordered[start:stop]

    def rest(self, start: int, descending: bool) -> BitMap:
        """The answers from `start` on, in no order, when those before were asked for with page(). Reads no index."""
        if start == 0 or (self._members is None and not self._ordered):
            return self._bitmap
        if self._members is not None:
            passed = self._members[::-1][:start] if descending else self._members[:start]
        else:
            passed = self._ordered[descending][:start]
        return self._bitmap - bitmap_of(passed)

    def _sorted(self, order: Order, stop: int, descending: bool) -> NDArray[np.uint32]:
        """At least the first `stop` answers in order. Each time four times as many are sorted.

        What was put in order once stays so, and the others come behind it: where the column was built again meanwhile,
        records that were deleted since have no time in it any more, and would stand elsewhere.
        """
        ordered = self._ordered.get(descending, np.empty(0, np.uint32))
        if len(ordered) < stop:
            wanted = min(max(stop, 4 * len(ordered)), self.total) - len(ordered)
            others = self._bitmap - bitmap_of(ordered) if len(ordered) else self._bitmap
            ordered = np.concatenate([ordered, order.first(others, wanted, descending)])
            self._ordered[descending] = ordered
        return ordered
