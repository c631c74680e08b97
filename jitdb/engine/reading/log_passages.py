"""Answers among the records around them: chosen from indexes at once, read some passages at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.engine.answering.neighbours import Neighbours, line_of, neighbours
from jitdb.engine.answering.order import Order
from jitdb.engine.manager import IndexManager
from jitdb.engine.reading.paging import changed_meanwhile, decoded, located, reading
from jitdb.engine.records import Records
from jitdb.indexes.kinds.roaring import bitmap_of
from jitdb.operators.passages import Passages, Seen
from jitdb.operators.question import Context, Question

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PORTION: Final = 1000  # records read at a time, about


class _Found(NamedTuple):
    """Which records are to be shown, by the seqs that these records have."""

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
            assert order is None or isinstance(order, Order)
            line = line_of(universe, chosen, context, order, column)
            turned = question.descending and isinstance(question.order, bool)
            found = neighbours(line, chosen, context, turned)
            return _Found(records, answer.total, found)

        return manager.ask(question.operation, question.order, self._cancel, look, also)

    def _read(self, found: _Found) -> None:
        """The next passages: ready, but those of which nothing is left."""
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
        """Of each of these records that is still there what is given of it, and where it lies."""
        at = located(self._manager, found.records, lambda: seqs)
        offsets = at.offsets.tolist()
        question = self._question
        data = offsets if question.as_offsets else decoded(found.records, at.live, at.offsets, question.select)
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
