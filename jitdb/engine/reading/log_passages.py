"""Answers among the records around them: chosen from indexes at once, read some passages at a time.

Around an answer are the records before and after it in the log's order or in time, among all records or among those
that have the same value in a field. The records are put in a line, by value first where one is asked for. Around each
answer's place in it a range is taken, within its value; ranges that overlap or touch are one passage. This takes arrays
of seqs and codes, which indexes have, and reads no record. For few answers, only some zones of the line are looked at:
those that hold an answer, and by their extremes all others that could hold what stands around it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.engine.answering.members import Members
from jitdb.engine.answering.order import Order
from jitdb.engine.manager import IndexManager
from jitdb.engine.reading.paging import changed_meanwhile, decoded, located, reading
from jitdb.engine.records import Records
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_range, members_of, union_of
from jitdb.indexes.segment import ZONE
from jitdb.operators.passages import Passages, Seen
from jitdb.operators.question import Context, Question

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.engine.answering.coded_column import CodedColumn

_SPARSE: Final = 4  # more than one zone in 4 to be looked at: then all are


class Line(NamedTuple):
    """Records in order (seqs), and the code of each one's value, which then ascends; None where there is one line."""

    seqs: NDArray[np.uint32]
    codes: NDArray[np.uint32] | None


class Neighbours(NamedTuple):
    """Passages, one behind the other, in the order of the first answer in each.

    seqs:   of all their records
    marked: which of them are answers
    starts: where each passage begins; its end is the next one's beginning
    """

    seqs: NDArray[np.uint32]
    marked: NDArray[np.bool_]
    starts: NDArray[np.int64]


def line_of(
    universe: BitMap, chosen: NDArray[np.uint32], context: Context, order: Order | None, column: CodedColumn | None
) -> Line:
    """The records of the universe that may stand around the chosen ones, which are among them.

    order:  None for that of the log
    column: of the field whose value they share; None where they need not

    Guarded by the engine's lock; raises IndexDamaged, IndexBehind.
    """
    if column is None:
        near = _near(universe, chosen, context, order)
        return Line(_ordered(members_of(universe), order) if near is None else near, None)
    seqs, codes = members_of(universe), column.codes(Members(universe))
    wanted = np.zeros(len(column), np.bool_)
    wanted[codes[seqs.searchsorted(chosen)]] = True
    kept = wanted[codes]
    seqs, codes = seqs[kept], codes[kept]
    line = _ordered(seqs, order)
    codes = codes[seqs.searchsorted(line)]
    by_value = np.argsort(codes, kind="stable")
    return Line(line[by_value], codes[by_value])


def _ordered(seqs: NDArray[np.uint32], order: Order | None) -> NDArray[np.uint32]:
    return seqs if order is None else order.first(bitmap_of(seqs), len(seqs), False)


def _near(
    universe: BitMap, chosen: NDArray[np.uint32], context: Context, order: Order | None
) -> NDArray[np.uint32] | None:
    """A part of the line, in order: all that stands around the chosen records, and one more on either side, which shows
    what touches. None where that takes many zones.
    """
    if not len(chosen):
        return chosen
    starts, lowest, highest = _zones(universe, order)
    taken = np.zeros(len(starts), np.bool_)
    taken[starts.searchsorted(chosen, side="right") - 1] = True
    step = 1
    while _SPARSE * max(int(np.count_nonzero(taken)), len(chosen)) < len(starts):
        line = _ordered(_members_in(universe, starts, taken), order)
        numbers = line if order is None else order.keys(line)[0]
        numbers = np.where(np.isnan(numbers), -np.inf, numbers)
        places = _places(line, chosen)
        first, last = places - context.before - 1, places + context.after + 1
        low = np.where(first < 0, -np.inf, numbers[np.maximum(first, 0)])
        high = np.where(last >= len(line), np.inf, numbers[np.minimum(last, len(line) - 1)])
        lacking = ~taken & ((lowest <= high[:, None]) & (highest >= low[:, None])).any(axis=0)
        if not lacking.any():
            return line
        if (first < 0).any() or (last >= len(line)).any():  # too few are here to know how far they go
            taken = _widened(taken, step)
            step *= 2
        else:
            taken |= lacking
    return None


def _zones(universe: BitMap, order: Order | None) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Where zones of the log begin, and the least and the greatest number of their records: a seq, or a time."""
    if order is not None:
        zones = order.zones()
        return zones.starts, zones.low, zones.high
    starts = np.arange(0, universe.max() + 1, ZONE)
    return starts, starts, starts + (ZONE - 1)


def _members_in(universe: BitMap, starts: NDArray[Any], taken: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """The records of the universe in these zones."""
    bounds = np.append(starts.astype(np.int64), universe.max() + 1)
    edges = bounds[np.flatnonzero(np.diff(taken, prepend=False, append=False))].reshape(-1, 2)
    return members_of(universe & union_of(bitmap_of_range(begin, end) for begin, end in edges.tolist()))


def _widened(taken: NDArray[np.bool_], step: int) -> NDArray[np.bool_]:
    """These zones, and `step` more on either side of each."""
    edges = np.zeros(len(taken) + 1, np.int64)
    at = np.flatnonzero(taken)
    np.add.at(edges, np.maximum(at - step, 0), 1)
    np.add.at(edges, np.minimum(at + step + 1, len(taken)), -1)
    return np.cumsum(edges[:-1]) > 0


def _places(line: NDArray[np.uint32], chosen: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Where in the line these records stand."""
    place_of = np.empty(int(line.max()) + 1, np.int64)
    place_of[line] = np.arange(len(line))
    return place_of[chosen]


def neighbours(line: Line, chosen: NDArray[np.uint32], context: Context, descending: bool) -> Neighbours:
    """The chosen records (all of them are in the line) with those before and after each.

    chosen:     in the order of the answer
    descending: the answer's order is the reverse of the line's, and each passage comes so, too
    """
    if not len(chosen):
        return Neighbours(chosen, np.empty(0, np.bool_), np.empty(0, np.int64))
    seqs, codes = line
    places = _places(seqs, chosen)
    rank = np.argsort(places)  # of the answers in the line
    places = places[rank]
    first, stop = np.maximum(places - context.before, 0), np.minimum(places + context.after + 1, len(seqs))
    begins = first[1:] > stop[:-1]
    if codes is not None:
        own = codes[places]
        first = np.maximum(first, codes.searchsorted(own))
        stop = np.minimum(stop, codes.searchsorted(own, side="right"))
        begins = (first[1:] > stop[:-1]) | (own[1:] != own[:-1])
    heads = np.append(0, np.flatnonzero(begins) + 1)
    low, high = first[heads], stop[np.append(heads[1:], len(places)) - 1]
    turn = np.argsort(np.minimum.reduceat(rank, heads))
    low, high = low[turn], high[turn]
    starts = np.cumsum(high - low) - (high - low)
    total = int((high - low).sum())
    if descending:
        chain = np.repeat(high - 1 + starts, high - low) - np.arange(total)
    else:
        chain = np.repeat(low - starts, high - low) + np.arange(total)
    is_answer = np.zeros(len(seqs), np.bool_)
    is_answer[places] = True
    return Neighbours(seqs[chain], is_answer[chain], starts)


_PORTION: Final = 1000  # records read at a time, about


class _Found(NamedTuple):
    """The records to show, as seqs."""

    records: Records
    total: int
    chosen: Neighbours


class LogPassages(Passages):
    """The passages of an answer as it stands when the first one is asked for, in the order of their first answers.

    Records that were deleted since are left out. Raises LogError where the log was compacted or replaced meanwhile.
    """

    def __init__(
        self,
        manager: IndexManager,
        question: Question,
        cancel: threading.Event,
        tell: Callable[[Question, bool], object],
    ) -> None:
        assert question.context is not None
        super().__init__(cancel)
        self._manager, self._question = manager, question
        self._tell = tell
        self._context: Context = question.context
        self._held: _Found | None = None
        self._next = 0  # passage that is to be read
        self._ready: deque[list[Seen]] = deque()

    @property
    def total(self) -> int:
        return self._found().total

    def __next__(self) -> list[Seen]:
        while not self._ready:
            found = self._found()
            if self._next >= len(found.chosen.starts):
                raise StopIteration
            self._read(found)
        return self._ready.popleft()

    def _found(self) -> _Found:
        if self._held is None:
            self._held = self._ask()
            self._tell(self._question, not self._held.total)
        return self._held

    def _ask(self) -> _Found:
        manager, question, context = self._manager, self._question, self._context
        by_time = question.order is not False  # which a sorted answer's surroundings are, too
        also = manager.context_needs(context) + manager.order_needs(by_time)

        def look(end: int) -> _Found:
            records = manager.records
            end = records.horizon(question.as_of, end)
            answer = manager.answer(question.operation, end, question.order)
            chosen = answer.page(question.start_from, question.limit, question.descending)
            universe = records.live(end)
            if context.among is not None:
                universe = manager.evaluator.matches(context.among, end) | bitmap_of(np.sort(chosen))
            column = None
            if context.same is not None:
                column = manager.coded.get(manager.catalog.get(also[0].spec))
            order = manager.order(by_time)
            line = line_of(universe, chosen, context, order, column)
            turned = question.descending and isinstance(question.order, bool)
            found = neighbours(line, chosen, context, turned)
            return _Found(records, answer.total, found)

        return manager.ask(question.operation, question.order, self._cancel, look, also)

    def _read(self, found: _Found) -> None:
        """Read the next passages into `_ready`, without those of which nothing is left."""
        starts = found.chosen.starts
        begin = int(starts[self._next])
        last = max(self._next + 1, int(starts.searchsorted(begin + _PORTION)))
        stop = int(starts[last]) if last < len(starts) else len(found.chosen.seqs)
        seqs = found.chosen.seqs[begin:stop]
        read = reading(self._manager, found.records, lambda: self._rows(found, seqs), self._cancel)
        if read is None:
            if self._manager.changed(found.records):
                self._begin_anew()
            return
        for number in range(self._next, last):
            high = int(starts[number + 1]) if number + 1 < len(starts) else stop
            self._add(found.chosen, int(starts[number]), high, read)
        self._next = last

    def _rows(self, found: _Found, seqs: NDArray[np.uint32]) -> dict[int, tuple[Any, int]]:
        """For each of these records that is still there: what is given of it, and where it lies."""
        at = located(self._manager, found.records, lambda: seqs)
        offsets = at.offsets.tolist()
        question = self._question
        data = offsets if question.as_offsets else decoded(found.records, at.live, at.offsets, question)
        return dict(zip(at.live.tolist(), zip(data, offsets, strict=True), strict=True))

    def _add(self, chosen: Neighbours, low: int, high: int, seen: dict[int, tuple[Any, int]]) -> None:
        pairs = zip(chosen.seqs[low:high].tolist(), chosen.marked[low:high].tolist(), strict=True)
        passage = [Seen(seen[seq][0], marked, seen[seq][1]) for seq, marked in pairs if seq in seen]
        if any(each.is_match for each in passage):
            self._ready.append(passage)

    def _begin_anew(self) -> None:
        """The records have other seqs now. Raises LogError where some passages were given already."""
        if self._next:
            raise changed_meanwhile(self._manager.log)
        self._held = None
