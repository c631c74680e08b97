"""An answer for who passes through it once, in memory that does not grow with it.

Zones are taken by the best that each may hold. What is better than the best of all others is next, and what is behind
is let go. In a log that grows about in the order of time a few zones are in memory; where the order has nothing to do
with it all numbers are, as for an answer that is sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pyroaring import BitMap

from jitdb.engine.answering.order import Answer, numbers_at
from jitdb.engine.records import require
from jitdb.indexes.kinds.kernels.numbers import settle
from jitdb.indexes.kinds.numbers import load_numbers
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_range, members_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.answering.order import Numbers, Order
    from jitdb.indexes.segment import Segment

FEW: Final = 1 << 16  # answers that are sorted at once
_STEP: Final = 32  # zones that are taken at a time, once the first answers were given
_FIRST: Final = 4
_MOVES: Final = 50  # steps a record after which sorting what is nearly sorted costs more than sorting all
_LEAST, _MOST = -(2**15), 2**15 - 1  # beyond the rest of any number
_NONE: Final = np.empty(0, np.uint32)


def passing(answer: Answer, descending: bool) -> Answer:
    """The same answer for pages that come one after the other; where it has to be sorted by more, that one itself."""
    order = answer.order
    if answer.total <= FEW or (order is not None and order.only_numbers() is None):
        return answer
    return _Passing(answer.rest(0, descending), order, descending)


class _Portion(NamedTuple):
    """
    seqs:    what comes next
    ranges:  of seqs; all answers in these were looked at
    waiting: those of them that come later
    """

    seqs: NDArray[np.uint32]
    ranges: list[tuple[int, int]]
    waiting: NDArray[np.uint32]


class _Passing(Answer):
    """Answers from `_begin` on are known; no page begins before that. Guarded by the engine's lock."""

    def __init__(self, bitmap: BitMap, order: Order | None, descending: bool) -> None:
        super().__init__(bitmap, order)
        self._descending = descending
        self._begin, self._known = 0, _NONE
        self._set_out(bitmap)

    def _set_out(self, left: BitMap) -> None:
        """Go on with these."""
        self._left, self._looked_at, self._waiting = left, BitMap(), _NONE
        found = None if self.order is None else self.order.only_numbers()
        if found is None:
            self._next = _by_place(left, self._descending)
        else:
            column, falls, lacking_first = found
            sorting = _Sorting(column, falls != self._descending, lacking_first, self._descending)
            self._next = _by_number(left, sorting)

    def page(self, start: int, limit: int | None, descending: bool) -> NDArray[np.uint32]:
        assert descending == self._descending
        assert start >= self._begin
        stop = self.total if limit is None else min(start + limit, self.total)
        while True:
            gone = min(start - self._begin, len(self._known))
            self._known, self._begin = self._known[gone:], self._begin + gone
            if self._begin + len(self._known) >= stop:
                return self._known[: max(stop - start, 0)]
            portion = next(self._next, None)
            if portion is None:  # an error ended it
                self._set_out(self._others())
                continue
            for low, high in portion.ranges:
                self._looked_at.add_range(low, high)
            self._waiting = portion.waiting
            self._known = np.concatenate([self._known, portion.seqs])

    def rest(self, start: int, descending: bool) -> BitMap:
        return self._others() | bitmap_of(np.sort(self._known[start - self._begin :]))

    def _others(self) -> BitMap:
        """The answers behind those that are known."""
        return (self._left - self._looked_at) | bitmap_of(np.sort(self._waiting))


def _by_place(left: BitMap, descending: bool) -> Iterator[_Portion]:
    count = len(left)
    for begin in range(0, count, FEW):
        stop = min(begin + FEW, count)
        seqs = members_of(left[count - stop : count - begin] if descending else left[begin:stop])
        ranges = [(int(seqs[0]), int(seqs[-1]) + 1)]
        yield _Portion(seqs[::-1] if descending else seqs, ranges, _NONE)


def _by_number(left: BitMap, sorting: _Sorting) -> Iterator[_Portion]:
    """Raises IndexBehind where the index does not cover them, IndexDamaged."""
    starts, ends, best = sorting.zones(left.max())
    ranking = np.argsort(best, kind="stable")
    held, taken, step = _Numbered(_NONE, np.empty(0), np.empty(0, np.int16)), 0, _FIRST
    while taken < len(ranking):
        some = np.sort(ranking[taken : taken + step])
        taken += len(some)
        ranges = list(_joined(starts[some], ends[some]))
        seqs = np.concatenate([members_of(left & bitmap_of_range(low, high)) for low, high in ranges])
        held = sorting.merged(held, sorting.read(seqs))
        sure = int(held.keys.searchsorted(best[ranking[taken]])) if taken < len(ranking) else len(held.seqs)
        step = 2 * step if step < _STEP or 2 * sure < len(held.seqs) else _STEP
        found, held = held.seqs[:sure], held.at(slice(sure, None))
        yield _Portion(found, ranges, held.seqs)


def _joined(starts: NDArray[Any], ends: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Ranges that ascend, those that touch as one."""
    breaks = [0, *(np.flatnonzero(starts[1:] != ends[:-1]) + 1).tolist(), len(starts)]
    for low, high in pairwise(breaks):
        yield int(starts[low]), int(ends[high - 1])


class _Numbered(NamedTuple):
    """Records; what is compared first of their numbers, smaller first; and where that is equal."""

    seqs: NDArray[np.uint32]
    keys: NDArray[np.float64]
    rests: NDArray[np.int16]

    def at(self, places: Any) -> _Numbered:
        """Some of them, as copies."""
        return _Numbered(self.seqs[places].copy(), self.keys[places].copy(), self.rests[places].copy())


class _Sorting:
    """Sorts records by a column, of which it holds the segment that was used last."""

    def __init__(self, column: Numbers, falls: bool, lacking_first: bool, descending: bool) -> None:
        self._column, self._segments = column, list(column.index.segments)
        self._falls, self._descending = falls, descending
        # A record without a number is before or behind all that have one, infinite ones among them.
        is_first = lacking_first and not falls
        self._lacking = (-np.inf, _LEAST) if is_first else (np.inf, _MOST)
        self._held: tuple[Segment, Any] | None = None

    def zones(self, last: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]:
        """Where zones begin and end, and the best number that each may hold. `last`: the index must cover it."""
        require(self._column.index, np.array([last], np.uint32))
        zones = self._column.zones()
        ends = np.append(zones.starts[1:], np.uint32(self._segments[-1].end_seq))
        return zones.starts, ends, -zones.high if self._falls else zones.low

    def read(self, seqs: NDArray[np.uint32]) -> _Numbered:
        """These records (ascending seqs), in the order of the answer where all numbers are equal."""
        hi, lo = numbers_at(self._segments, seqs, self._load)
        rests = np.zeros(len(seqs), np.int16) if lo is None else lo
        if self._falls:
            hi, rests = -hi, -rests
        missing = np.isnan(hi)
        if missing.any():
            hi[missing], rests[missing] = self._lacking
        turned = slice(None, None, -1 if self._descending else 1)
        return _Numbered(seqs[turned], hi[turned], rests[turned])

    def merged(self, before: _Numbered, more: _Numbered) -> _Numbered:
        """All of them, sorted."""
        both = _Numbered(
            np.concatenate([before.seqs, more.seqs]),
            np.concatenate([before.keys, more.keys]),
            np.concatenate([before.rests, more.rests]),
        )
        sign = -1 if self._descending else 1
        if settle(both.keys, both.rests, both.seqs, sign, _MOVES * len(both.seqs)):
            return both
        compared: list[NDArray[Any]] = [sign * both.seqs.astype(np.int64), both.rests, both.keys]  # the last is first
        return both.at(np.lexsort(compared))

    def _load(self, segment: Segment) -> Any:
        if self._held is None or self._held[0] is not segment:
            self._held = None  # before the next is read
            self._held = segment, load_numbers(segment, keep=False)
        return self._held[1]
