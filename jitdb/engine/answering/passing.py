"""An answer for who passes through it once, in memory that does not grow with it.

Zones are taken by the best that each may hold. What is better than the best of all others is next, and what is behind
is let go. In a log that grows about in the order of time a few zones are in memory; where the order has nothing to do
with it all numbers are, as for an answer that is sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyroaring import BitMap

from jitdb.engine.answering.order import Answer, numbers_at
from jitdb.engine.records import require
from jitdb.indexes.kinds.numbers import load_numbers
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_range, members_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.answering.order import Numbers, Order
    from jitdb.indexes.segment import Segment

FEW: Final = 1 << 16  # answers that are sorted at once
_STEP: Final = 32  # zones that are taken at a time, once the first answers were given
_FIRST: Final = 4


def passing(answer: Answer, descending: bool) -> Answer:
    """The same answer for pages that come one after the other; where it has to be sorted by more, that one itself."""
    order = answer.order
    if answer.total <= FEW or (order is not None and order.only_numbers() is None):
        return answer
    return _Passing(answer.rest(0, descending), order, descending)


class _Passing(Answer):
    """Answers from `_begin` on are known; no page begins before that. Guarded by the engine's lock."""

    def __init__(self, bitmap: BitMap, order: Order | None, descending: bool) -> None:
        super().__init__(bitmap, order)
        self._all, self._descending = bitmap, descending
        self._begin, self._passed = 0, BitMap()
        self._known = np.empty(0, np.uint32)
        self._next = self._in_order(bitmap)

    def page(self, start: int, limit: int | None, descending: bool) -> NDArray[np.uint32]:
        assert descending == self._descending
        assert start >= self._begin
        stop = self.total if limit is None else min(start + limit, self.total)
        while True:
            gone = min(start - self._begin, len(self._known))
            if gone:
                self._passed |= bitmap_of(np.sort(self._known[:gone]))
                self._known, self._begin = self._known[gone:], self._begin + gone
            if self._begin + len(self._known) >= stop:
                return self._known[: max(stop - start, 0)]
            more = next(self._next, None)
            if more is None:  # an error ended it
                self._next = self._in_order(self.rest(self._begin + len(self._known), descending))
            else:
                self._known = np.concatenate([self._known, more])

    def rest(self, start: int, descending: bool) -> BitMap:
        return self._all - self._passed - bitmap_of(np.sort(self._known[: start - self._begin]))

    def _in_order(self, left: BitMap) -> Iterator[NDArray[np.uint32]]:
        """These, some at a time. Raises IndexBehind where the index does not cover them, IndexDamaged."""
        found = None if self.order is None else self.order.only_numbers()
        if found is None:
            return _by_place(left, self._descending)
        column, falls, lacking_first = found
        return _by_number(left, _Sorted(column, falls != self._descending, lacking_first, self._descending))


def _by_place(left: BitMap, descending: bool) -> Iterator[NDArray[np.uint32]]:
    count = len(left)
    for begin in range(0, count, FEW):
        stop = min(begin + FEW, count)
        yield members_of(left[count - stop : count - begin])[::-1] if descending else members_of(left[begin:stop])


def _by_number(left: BitMap, numbers: _Sorted) -> Iterator[NDArray[np.uint32]]:
    starts, ends, best = numbers.zones(left.max())
    ranking = np.argsort(best, kind="stable")
    waiting, taken, step = np.empty(0, np.uint32), 0, _FIRST
    while taken < len(ranking):
        some = np.sort(ranking[taken : taken + step])
        taken += len(some)
        seqs, keys = numbers.sorted(np.concatenate([waiting, *_within(left, starts[some], ends[some])]))
        sure = int(keys.searchsorted(best[ranking[taken]])) if taken < len(ranking) else len(seqs)
        step = 2 * step if step < _STEP or 2 * sure < len(seqs) else _STEP
        waiting = seqs[sure:]
        yield seqs[:sure]


def _within(left: BitMap, starts: NDArray[Any], ends: NDArray[Any]) -> Iterator[NDArray[np.uint32]]:
    """Those in these zones, which ascend."""
    breaks = [0, *(np.flatnonzero(starts[1:] != ends[:-1]) + 1).tolist(), len(starts)]
    for low, high in pairwise(breaks):
        yield members_of(left & bitmap_of_range(int(starts[low]), int(ends[high - 1])))


class _Sorted:
    """Sorts records by a column, of which it holds the segment that was used last."""

    def __init__(self, column: Numbers, falls: bool, lacking_first: bool, descending: bool) -> None:
        self._column, self._segments = column, list(column.index.segments)
        self._falls, self._lacking_first, self._descending = falls, lacking_first and not falls, descending
        self._held: tuple[Segment, Any] | None = None

    def zones(self, last: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]:
        """Where zones begin and end, and the best number that each may hold. `last`: the index must cover it."""
        require(self._column.index, np.array([last], np.uint32))
        zones = self._column.zones()
        ends = np.append(zones.starts[1:], np.uint32(self._segments[-1].end_seq))
        return zones.starts, ends, -zones.high if self._falls else zones.low

    def sorted(self, seqs: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        """These records as Order.first() has them, and the number of each, smaller first: that of none is infinite."""
        seqs = np.sort(seqs)
        hi, lo = numbers_at(self._segments, seqs, self._load)
        if self._descending:
            seqs, hi, lo = seqs[::-1], hi[::-1], None if lo is None else lo[::-1]
        keys = -hi if self._falls else hi
        rests: Any = lo if lo is None or not self._falls else -lo
        missing = np.isnan(keys)
        if missing.any():
            keys[missing] = -np.inf if self._lacking_first else np.inf
            flag = ~missing if self._lacking_first else missing
            order = np.lexsort([keys, flag] if rests is None else [rests, keys, flag])
        else:
            order = np.argsort(keys, kind="stable")
            if rests is not None and _are_mixed(keys[order], rests[order]):
                order = np.lexsort([rests, keys])
        return seqs[order], keys[order]

    def _load(self, segment: Segment) -> Any:
        if self._held is None or self._held[0] is not segment:
            self._held = None  # before the next is read
            self._held = segment, load_numbers(segment, keep=False)
        return self._held[1]


def _are_mixed(keys: NDArray[np.float64], rests: NDArray[np.int16]) -> bool:
    """Whether the rests of equal numbers, which stand together, do not ascend: mostly such numbers are the same."""
    return bool(((keys[1:] == keys[:-1]) & (rests[1:] < rests[:-1])).any())
