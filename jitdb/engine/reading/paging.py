"""From an answer to its records: one page, or one after the other of an answer that stays as it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from pyroaring import BitMap

from jitdb.engine.answering.order import Answer, SomeOrder
from jitdb.engine.cursor import Cursor
from jitdb.engine.manager import IndexManager
from jitdb.engine.reading.page import Page
from jitdb.engine.records import Records, gather
from jitdb.errors import IndexDamaged, LogCorrupt, LogError, LogSuperseded
from jitdb.indexes.kinds.offsets import load_offsets
from jitdb.indexes.kinds.remap import Renumbering
from jitdb.indexes.kinds.roaring import bitmap_of, members_of
from jitdb.log.codecs.fields.constants import LIVE
from jitdb.operators.nodes.operation import EVERYTHING
from jitdb.operators.question import Question

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.reading.selecting import FieldBatch, Selector
    from jitdb.indexes.segment import Segment
    from jitdb.log.codecs.fields.located import RecordBatch, Scratch
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.selection import Selection

T = TypeVar("T")


class Located(NamedTuple):
    """Records of an answer, and where those of them lie that are still there."""

    seqs: NDArray[np.uint32]
    live: NDArray[np.uint32]
    offsets: NDArray[np.int64]


def located(
    manager: IndexManager, records: Records, choose: Callable[[], NDArray[np.uint32]], cancel: threading.Event | None
) -> Located | None:
    """The records that `choose()` names, with the lock held; None when the question must be asked again.

    Then these seqs mean nothing any more: the log is another one, or was compacted; or an index was damaged.
    """
    try:
        with manager.lock:
            if manager.changed(records):
                return None
            records.note_deletions()
            seqs = choose()
            live, deleted = seqs, records.deleted
            if deleted and deleted.intersect(bitmap_of(np.sort(seqs))):
                live = seqs[np.array([seq not in deleted for seq in seqs.tolist()], np.bool_)]
            offsets = records.offsets_of(live)
        return None if manager.changed(records) else Located(seqs, live, offsets)  # offsets are answers, too
    except LogSuperseded:
        records.log.refresh()
    except IndexDamaged as damage:
        manager.drop_damaged(damage, cancel)
    return None


def decoded(
    manager: IndexManager, records: Records, seqs: NDArray[np.uint32], offsets: NDArray[np.int64],
    select: Selection | None = None,
) -> list[Any] | None:  # fmt: skip
    """The records, or what is selected of them; None when the question must be asked again, see read_raw."""
    if select is not None:
        from jitdb.engine.reading.selecting import Selector

        batch = read_fields(manager, Selector(records, select), seqs, offsets)
        return None if batch is None else batch.rows()
    found = read_raw(manager, records, seqs, offsets)
    if found is None:
        return None
    return [records.decode(record, offset) for record, offset in zip(found, offsets.tolist(), strict=True)]


def read_raw(
    manager: IndexManager, records: Records, seqs: NDArray[np.uint32], offsets: NDArray[np.int64]
) -> list[bytes] | None:
    """The bytes of records; None when the question must be asked again: some are deleted, damaged, or the log is
    another.
    """
    found = _read(manager, records, lambda: records.read(offsets))
    if found is None:
        return None
    gone = [number for number, record in enumerate(found) if record is None]
    if gone:
        _take_out(manager, records, seqs[gone])
        return None
    return found  # type: ignore[return-value]  # none of them is None


def read_fields(
    manager: IndexManager, selector: Selector, seqs: NDArray[np.uint32], offsets: NDArray[np.int64]
) -> FieldBatch | None:
    """What the selector finds in records; None as read_raw has it. Raises DecodeError, QueryError."""
    from jitdb.engine.reading.selecting import Malformed

    records = selector.records
    found = _read(manager, records, lambda: records.read_batch(offsets, selector.scratch))
    if found is None:
        return None
    if found.states.any():
        _take_out(manager, records, seqs[found.states != LIVE])
        return None
    try:
        return selector.batch(found, seqs, offsets)
    except Malformed as malformed:
        _take_out(manager, records, malformed.seqs)
        return None


def read_records(
    manager: IndexManager, records: Records, offsets: NDArray[np.int64], scratch: Scratch
) -> RecordBatch | None:
    """The records at these offsets in one buffer, deleted ones marked so; None as read_raw has it."""
    return _read(manager, records, lambda: records.read_batch(offsets, scratch))


def _read(manager: IndexManager, records: Records, read: Callable[[], T]) -> T | None:
    """What is read; None where that is damaged, or of another log."""
    try:
        found = read()
    except LogCorrupt as fault:
        if not manager.changed(records):
            manager.set_aside(fault)
        return None
    except IndexDamaged as damage:
        manager.drop_damaged(damage, None, records)
        return None
    except LogSuperseded:
        manager.log.refresh()
        return None
    except (LogError, OSError):
        if manager.changed(records):
            return None  # it was read while it changed
        raise
    return None if manager.changed(records) else found


def _take_out(manager: IndexManager, records: Records, seqs: NDArray[np.uint32]) -> None:
    """These are deleted, as the log turned out."""
    with manager.lock:
        records.add_deleted(bitmap_of(np.sort(seqs)))


def one_page(manager: IndexManager, question: Question, cancel: threading.Event | None) -> Page:
    """At most `limit` answers (all, if None) after the first `start_from`."""
    begin = time.perf_counter()
    order, start, operation = question.order, question.start_from, question.operation

    def look(end: int) -> tuple[Records, int, NDArray[np.uint32], NDArray[np.int64]]:
        answer = manager.answer(operation, manager.records.horizon(question.as_of, end), order)
        seqs = answer.page(start, question.limit, question.descending)
        return manager.records, answer.total, seqs, manager.records.offsets_of(seqs)

    while True:
        records, total, seqs, offsets = manager.ask(operation, order, cancel, look)
        data = offsets.tolist() if question.as_offsets else decoded(manager, records, seqs, offsets, question.select)
        if data is not None:
            took = 1e3 * (time.perf_counter() - begin)
            return Page(data, total, start + len(data), took, question.select)


def offsets_of(manager: IndexManager, question: Question, cancel: threading.Event | None) -> NDArray[np.int64]:
    """Where all answers begin in the log."""

    def look(end: int) -> NDArray[np.int64]:
        answer = manager.answer(question.operation, manager.records.horizon(question.as_of, end), question.order)
        return manager.records.offsets_of(answer.page(0, None, question.descending))

    return manager.ask(question.operation, question.order, cancel, look)


def changed_meanwhile(log: LogSource) -> LogError:
    return LogError(
        "the log was truncated, replaced or damaged while its records were read page by page",
        remedy="ask again",
        path=log.path,
    )


class Snapshot(NamedTuple):
    """An answer, and the records that its seqs speak of; those below `end` were asked."""

    end: int
    records: Records
    answer: Answer
    identity: bytes
    generation: int
    places: list[Segment]  # where those records lie


class Pages(Iterator[Page]):
    """Pages of the answer as it stands when the first one is read; records deleted since are left out.

    The log may change under it. Raises LogError where it turns out to be another one meanwhile; one that was compacted
    is still the same.

    is_timed: whether `times` is to say of the records of the page that was read last what orders them: whoever merges
              answers of several logs sets it before the first read()
    portion:  records of a page, at most; it may be changed between two of them
    tell: is called once it is known whether no record matches
    """

    is_timed = False
    times: Sequence[Any] = ()

    def __init__(
        self,
        manager: IndexManager,
        question: Question,
        cancel: threading.Event | None,
        tell: Callable[[Question, bool], object],
    ) -> None:
        self._manager = manager
        self._tell = tell
        self._question = question
        self.portion = question.portion
        self._cancel = cancel
        self._start = question.start_from  # in the answer in hand
        self._before = 0  # answers before it
        self._held: Snapshot | None = None
        self._total = 0
        self._closed = False

    def __next__(self) -> Page:
        page = self.read()
        if page is None:
            raise StopIteration
        return page

    def read(self) -> Page | None:
        """The next page, never an empty one; None after the last, and after close()."""
        if self._closed:
            return None
        begin = time.perf_counter()
        if self._held is None:
            self._held = self._ask()
            self._total = self._held.answer.total
            self._tell(self._question, not self._total)
        while self._start < self._held.answer.total:
            data = self._next(self._held)
            if data:
                took = 1e3 * (time.perf_counter() - begin)
                return Page(data, self._total, self._before + self._start, took, self._question.select)
        self.close()
        return None

    def close(self) -> None:
        self._closed = True
        self._held = None

    def place(self) -> str:
        """The end of what was asked, as a cursor for `as_of`; to be asked for after the first page. Raises LogError."""
        held, manager = self._held, self._manager
        with manager.lock:
            if held is None or manager.changed(held.records):
                raise changed_meanwhile(manager.log)
            offset = held.records.place_of(held.end)
        return str(Cursor(held.identity, held.generation, held.end, offset))

    def _next(self, held: Snapshot) -> list[Any] | None:
        """The next records; None when it must be called again."""
        manager, question, records = self._manager, self._question, held.records
        times: dict[int, Any] = {}

        def choose() -> NDArray[np.uint32]:
            seqs = held.answer.page(self._start, self.portion, question.descending)
            order = held.answer.order
            if self.is_timed and order is not None:
                times.update(zip(seqs.tolist(), order.times(seqs, question.descending), strict=True))
            self._note(order, seqs)
            return seqs

        found = located(manager, records, choose, self._cancel)
        if found is None:
            self._go_on(held)
            return None
        data = self._data(records, found)
        if data is not None:  # else some were deleted just now: look again
            self._start += len(found.seqs)
            self.times = [times[seq] for seq in found.live.tolist()] if self.is_timed else ()
        return data

    def _note(self, order: SomeOrder | None, seqs: NDArray[np.uint32]) -> None:
        """These are the next ones; with the lock held."""

    def _data(self, records: Records, found: Located) -> list[Any] | None:
        if self._question.as_offsets:
            return list(found.offsets.tolist())
        return decoded(self._manager, records, found.live, found.offsets, self._question.select)

    def _ask(self) -> Snapshot:
        manager, question = self._manager, self._question

        def look(end: int) -> Snapshot:
            end = manager.records.horizon(question.as_of, end)
            answer = manager.answer(question.operation, end, question.order)
            answer.page(0, self._start, question.descending)  # so that it is known which are skipped
            return self._hold(answer, end)

        also = manager.context_needs(question.context)
        return manager.ask(question.operation, question.order, self._cancel, look, also)

    def _hold(self, answer: Answer, end: int) -> Snapshot:
        records = self._manager.records
        log = records.log
        return Snapshot(end, records, answer, log.identity, log.generation, records.offset_segments())

    def _go_on(self, held: Snapshot) -> None:
        """Go on with an answer of what is still to come.

        What orders it, or tells where its records lie, was built again, or the records have other seqs. Raises LogError
        where it is not known which.
        """
        manager, by = self._manager, self._question.order
        rest = held.answer.rest(self._start, self._question.descending)

        def look(end: int) -> Snapshot:
            return self._hold(Answer(self._moved(held, rest), manager.order(by)), end)

        self._held = manager.ask(EVERYTHING, by, self._cancel, look)
        self._before += self._start
        self._start = 0

    def _moved(self, held: Snapshot, seqs: BitMap) -> BitMap:
        """Those of these records of the answer in hand that are still there, by the seqs that they have now."""
        log = held.records.log
        if self._manager.records is held.records:
            return seqs
        if log.identity == held.identity and log.generation == held.generation:
            with suppress(IndexDamaged, OSError):  # what told where they lie may have been dropped
                offsets = gather(held.places, load_offsets, members_of(seqs), np.int64)
                return self._manager.records.seqs_at(offsets)
        removals = log.removals(held.generation)  # by compactions of that log
        if not removals:
            raise changed_meanwhile(log)
        return Renumbering(removals).of_set(seqs)
