"""In which order the answers come, and the first of them without sorting all; field_order.py has that by fields.

*Declared* order goes by the timestamp column, then by seq; records without a timestamp come first. A log mostly grows
in the order of time, so the extremes of short zones tell which few zones can hold the next answers: the ten newest of a
million are found in some hundred of them, and the column is read in the spans of these alone. The extremes are those of
`hi`; a zone that could tie is looked at too, and then `lo` and the seq decide, so the order is exact for integers of 64
bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np
from pyroaring import BitMap

from jitdb.engine.records import require
from jitdb.indexes.kinds.numbers import load_extremes, load_numbers
from jitdb.indexes.kinds.roaring import bitmap_of, members_of
from jitdb.indexes.segment import ZONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.files.index import Index
    from jitdb.indexes.segment import Segment

_Extremes: TypeAlias = "tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.float64]]"  # starts, low, high

# What orders one record: whether it has a time, and that as a pair (jitdb.common.values).
Time: TypeAlias = tuple[int, float, int]
NO_TIME: Final[Time] = (0, 0.0, 0)


class Order:
    """The declared order of a column. Guarded by the engine's lock.

    lacking_last: of promising(), that records without a number come last, ascending too
    """

    def __init__(self, index: Index, *, lacking_last: bool = False) -> None:
        self._index = index
        self._zones = Zones([])
        self._lacking = np.inf if lacking_last else -np.inf

    def first(self, members: NDArray[np.uint32], wanted: int, descending: bool) -> NDArray[np.uint32]:
        """The first `wanted` of these records (ascending seqs) in declared order, or in its reverse.

        Raises IndexBehind where the index does not cover them, IndexDamaged.
        """
        require(self._index, members[-1:])
        if wanted <= 0 or not len(members):
            return members[:0]
        if wanted * 4 < len(members) and len(members) > ZONE:
            members = self.promising(members, wanted, descending)
        hi, lo = numbers_at(self._index.segments, members)
        missing = np.isnan(hi)
        # Members ascend, and a stable sort leaves equal ones in that order. The last key counts most.
        keys: list[NDArray[Any]] = [hi]
        if lo is not None:
            keys.insert(0, lo)
        if missing.any():
            keys.append(~missing)
        order = np.argsort(hi, kind="stable") if len(keys) == 1 else np.lexsort(keys)
        return members[order[::-1][:wanted] if descending else order[:wanted]]

    def times(self, seqs: NDArray[np.uint32], descending: bool) -> list[Time]:
        """What orders these records, in whatever order they are: smaller ones come first, those of other logs too;
        descending: greater ones.

        Raises IndexBehind where the index does not cover them, IndexDamaged.
        """
        ascending = np.argsort(seqs, kind="stable")
        require(self._index, seqs[ascending[-1:]])
        hi, lo = numbers_at(self._index.segments, seqs[ascending])
        rests = [0] * len(seqs) if lo is None else lo.tolist()
        found: list[Time] = [NO_TIME] * len(seqs)
        for place, number, rest in zip(ascending.tolist(), hi.tolist(), rests, strict=True):
            if number == number:
                found[place] = (1, number, rest)
        return found

    def keys(self, seqs: NDArray[np.uint32]) -> NDArray[np.float64]:
        """The same as arrays, [2, n]: hi, NaN where there is none, and lo. Raises as times() does."""
        ascending = np.argsort(seqs, kind="stable")
        require(self._index, seqs[ascending[-1:]])
        found = np.zeros((2, len(seqs)))
        hi, lo = numbers_at(self._index.segments, seqs[ascending])
        found[0, ascending] = hi
        if lo is not None:
            found[1, ascending] = lo
        return found

    def zones(self) -> Zones:
        """The extremes of its numbers. Raises IndexDamaged."""
        segments = self._index.segments
        if list(map(id, self._zones.segments)) != list(map(id, segments)):
            self._zones = Zones(segments, self._zones)
        return self._zones

    def numbers(self, seqs: NDArray[np.uint32]) -> NDArray[np.float64]:
        """The nearest doubles of these records, in whatever order they are; -inf of those without a number."""
        ascending = np.argsort(seqs)
        found = np.empty(len(seqs), np.float64)
        found[ascending] = numbers_at(self._index.segments, seqs[ascending])[0]
        found[np.isnan(found)] = -np.inf
        return found

    def promising(self, members: NDArray[np.uint32], wanted: int, descending: bool) -> NDArray[np.uint32]:
        """Those members, ascending, among which the first `wanted` are, and all that tie with them: some zones' worth.

        Raises IndexDamaged.
        """
        segments, zones = self._index.segments, self.zones()
        # The best that a zone may hold, smaller is better; -inf stands for "no timestamp" too.
        bound = -zones.high if descending else zones.low
        begins = np.searchsorted(members, zones.starts)
        ends = np.append(begins[1:], len(members))
        filled = np.flatnonzero(ends > begins)
        filled = filled[np.argsort(bound[filled], kind="stable")]
        chosen: list[NDArray[np.uint32]] = []
        best = np.empty(0, np.float64)
        taken, step = 0, 1
        while taken < len(filled):
            batch = np.sort(filled[taken : taken + step]).tolist()
            taken += step
            step *= 2
            found = np.concatenate([members[begins[zone] : ends[zone]] for zone in batch])
            chosen.append(found)
            hi = numbers_at(segments, found)[0]
            hi = np.where(np.isnan(hi), -np.inf if descending else self._lacking, hi)
            best = np.concatenate([best, -hi if descending else hi])
            if len(best) >= wanted:
                best = np.partition(best, wanted - 1)[:wanted]
                if taken < len(filled) and bound[filled[taken]] > best[wanted - 1]:
                    break
        return np.sort(np.concatenate(chosen))


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
    segments: list[Segment], seqs: NDArray[np.uint32]
) -> tuple[NDArray[np.float64], NDArray[np.int16] | None]:
    """hi and lo (None: all 0) of these records (ascending seqs); none without segments."""
    if not segments:
        return np.empty(0), None
    if len(segments) == 1:
        hi, lo = load_numbers(segments[0])
        return hi[seqs], None if lo is None else lo[seqs]
    bounds = np.searchsorted(seqs, [*(segment.first_seq for segment in segments), segments[-1].end_seq]).tolist()
    highs, lows = [], []
    for segment, start, stop in zip(segments, bounds, bounds[1:], strict=False):
        if start < stop:
            places = seqs[start:stop] - np.uint32(segment.first_seq)
            hi, lo = load_numbers(segment)
            highs.append(hi[places])
            lows.append(np.zeros(stop - start, np.int16) if lo is None else lo[places])
    lo = np.concatenate([np.empty(0, np.int16), *lows])
    return np.concatenate([np.empty(0), *highs]), lo if lo.any() else None


class SomeOrder(Protocol):
    """An order of the records of one log, beside that of their seqs. Order and FieldOrder are two."""

    def first(self, members: NDArray[np.uint32], wanted: int, descending: bool) -> NDArray[np.uint32]:
        """The first `wanted` of these records (ascending seqs)."""

    def times(self, seqs: NDArray[np.uint32], descending: bool) -> Sequence[Any]:
        """What orders each of these records among those of all logs."""


class Answer:
    """The records that a question is true of, as of one state of the log. Guarded by the engine's lock.

    order: what they are sorted by; None: they come in the order of the log
    """

    def __init__(self, bitmap: BitMap, order: SomeOrder | None) -> None:
        self.total = len(bitmap)
        self._bitmap = bitmap
        self.order = order
        self._members: NDArray[np.uint32] | None = None
        self._ordered: dict[bool, NDArray[np.uint32]] = {}

    def page(self, start: int, limit: int | None, descending: bool) -> NDArray[np.uint32]:
        """The seqs of the answers [start, start + limit), in order; all from `start` on without a limit."""
        if self._members is None:
            self._members = members_of(self._bitmap)
        stop = self.total if limit is None else min(start + limit, self.total)
        if start >= stop:
            return self._members[:0]
        if self.order is None:
            ordered = self._members[::-1] if descending else self._members
        else:
            ordered = self._sorted(self.order, stop, descending)
        return ordered[start:stop]

    def rest(self, start: int, descending: bool) -> BitMap:
        """The answers from `start` on, in no order, when those before were asked for with page(). Reads no index."""
        if start == 0:
            return self._bitmap
        if self.order is None:
            assert self._members is not None
            passed = self._members[::-1][:start] if descending else self._members[:start]
        else:
            passed = self._ordered[descending][:start]
        return self._bitmap - bitmap_of(passed)

    def _sorted(self, order: SomeOrder, stop: int, descending: bool) -> NDArray[np.uint32]:
        """At least the first `stop` answers in order. Each time four times as many are sorted.

        What was put in order once stays so, and the others come behind it: where the column was built again meanwhile,
        records that were deleted since have no time in it any more, and would stand elsewhere.
        """
        assert self._members is not None
        ordered = self._ordered.get(descending, self._members[:0])
        if len(ordered) < stop:
            wanted = min(max(stop, 4 * len(ordered)), self.total) - len(ordered)
            others = members_of(self._bitmap - bitmap_of(ordered)) if len(ordered) else self._members
            ordered = np.concatenate([ordered, order.first(others, wanted, descending)])
            self._ordered[descending] = ordered
        return ordered
