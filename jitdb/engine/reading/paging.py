"""From an answer to its records: one page, or one after the other of an answer that stays as it is.

An answer is held as seqs, and what these mean may change at any moment: the log grows, loses records, is compacted or
replaced, and indexes turn out to be damaged. So whatever is read goes through `reading`, which says whether that was
still the same answer. If not, Pages goes on with what is left of it, in seqs of now.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar, overload

import numpy as np
from pyroaring import BitMap, BitMap64

from jitdb.common import js_aliases, memory
from jitdb.display.shown import Shown
from jitdb.engine.answering.order import Answer
from jitdb.engine.cursor import Cursor
from jitdb.engine.manager import IndexManager
from jitdb.engine.records import Gone, Records
from jitdb.errors import IndexDamaged, JitdbError, LogCorrupt, LogError, LogSuperseded
from jitdb.indexes.kinds.offsets import offsets_at
from jitdb.indexes.kinds.remap import Renumbering
from jitdb.indexes.kinds.roaring import bitmap_of, members_of
from jitdb.operators.nodes.operation import EVERYTHING
from jitdb.operators.question import Question

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.display.parts import Display
    from jitdb.engine.plan import Needs
    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.selection import Selection

_ROWS: Final = 10  # records that a page shows of itself; the whole of it is in `data`
_WIDTH: Final = 100  # characters of one record in repr


@dataclass(frozen=True, slots=True, repr=False)
class Page(Shown):
    """A run of answers: a sequence of them, and where it stands in the whole.

    data:     the records (or offsets)
    total:    how many answers there are in all
    next_seq: the `start_from` of the page after this one
    duration: milliseconds from question to answer
    select:   the fields that are in the records, by name; None: they are whole

    >>> page = Page([{"type": "post", "text": "one"}, {"type": "vote"}], total=5, next_seq=2, duration=0.12)
    >>> page
    Page(total=5, next_seq=2, duration=0.12, data=[
        {'type': 'post', 'text': 'one'},
        {'type': 'vote'},
    ])
    >>> page[0]["text"], len(page), [record["type"] for record in page]
    ('one', 2, ['post', 'vote'])
    """

    data: list[Any]
    total: int
    next_seq: int
    duration: float
    select: Selection | None = field(default=None, compare=False)

    if not TYPE_CHECKING:  # a checker knows which names there are

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(js_aliases.no_such_name("a Page", name, js_aliases.PAGE, dir(type(self))), name=name)

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.data)

    @overload
    def __getitem__(self, position: int) -> Any: ...
    @overload
    def __getitem__(self, position: slice) -> list[Any]: ...
    def __getitem__(self, position: int | slice) -> Any:
        return self.data[position]

    def __repr__(self) -> str:
        head = f"Page(total={self.total}, next_seq={self.next_seq}, duration={self.duration:.3g}, data="
        if all(isinstance(record, int) for record in self.data[:_ROWS]):  # offsets, or nothing
            more = ", …" if len(self.data) > _ROWS else ""
            return f"{head}[{', '.join(map(repr, self.data[:_ROWS]))}{more}])"
        rows = [f"    {_short(repr(record), _WIDTH)},\n" for record in self.data[:_ROWS]]
        return f"{head}[\n{''.join(rows)}{_rest(len(self.data), '    … and {} more,', chr(10))}])"

    def _display(self) -> Display:
        """A table of the first records: the most telling columns, and how much is left out."""
        from jitdb.common.words import duration
        from jitdb.display.parts import Display, Note, Part, Records

        first = self.data[:_ROWS]
        about = f"{len(self.data):,} of {self.total:,} answers, in {duration(self.duration)}"
        parts: list[Part] = [Records(first, dict(self.select or ()), by_name=self.select is not None)] if first else []
        told = [f"the first {_ROWS} of {len(self.data):,} records; all are in .data"] if len(self.data) > _ROWS else []
        if len(self.data) < self.total:
            told.append(f"the next page is that of start_from({self.next_seq:,})".replace(",", "_"))
        return Display("Page", about, [*parts, *([Note("; ".join(told))] if told else [])])


class PagesOf(Iterator[Page]):
    """An answer that ends, page by page: see operators.question.Pages."""

    @abstractmethod
    def read(self) -> Page | None:
        """The next page, never an empty one; None after the last, and after close()."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the answer."""

    def __next__(self) -> Page:
        page = self.read()
        if page is None:
            raise StopIteration
        return page


def _rest(count: int, text: str, end: str) -> str:
    return text.format(f"{count - _ROWS:,}") + end if count > _ROWS else ""


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


T = TypeVar("T")

_NONE: Final = np.empty(0, np.uint32)
_MOST_BYTES: Final = 64 << 20  # of the lines that a page or a portion has, if it has several


def reading(
    manager: IndexManager, records: Records, work: Callable[[], T], cancel: threading.Event | None = None
) -> T | None:
    """What `work()` finds and reads of records; None: look for them again.

    So it is when the log is another one or was compacted, an index or a block of the log is damaged, or records were
    deleted just now. This takes note of which, so the next look finds other records, or raises the error itself.
    """
    try:
        found = work()
    except Gone as gone:
        with manager.lock:
            records.add_deleted(bitmap_of(np.sort(gone.seqs)))
        return None
    except LogCorrupt as fault:
        if not manager.changed(records):
            manager.set_aside(fault)
        return None
    except IndexDamaged as damage:
        manager.drop_damaged(damage, cancel, records)
        return None
    except LogSuperseded:
        manager.log.refresh()
        return None
    except (JitdbError, OSError):
        if manager.changed(records):
            return None  # it was read while it changed
        raise
    return None if manager.changed(records) else found


class Located(NamedTuple):
    """Records of an answer; which of them are live, and where those lie."""

    seqs: NDArray[np.uint32]
    live: NDArray[np.uint32]
    offsets: NDArray[np.int64]


def located(
    manager: IndexManager,
    records: Records,
    choose: Callable[[], NDArray[np.uint32]],
    *,
    are_read: bool = False,
    are_placed: bool = True,
) -> Located:
    """The records that `choose()` names, with the lock held. Call it in reading().

    are_read:   give fewer of them where they are long, so that memory stays bounded
    are_placed: look up where they lie; else -1 stands for it
    """
    with manager.lock:
        if manager.changed(records):
            raise Gone(_NONE)
        records.note_deletions()
        seqs = live = choose()
        deleted = records.deleted
        if deleted and deleted.intersect(bitmap_of(np.sort(seqs))):
            live = seqs[np.array([seq not in deleted for seq in seqs.tolist()], np.bool_)]
        if not are_placed:
            return Located(seqs, live, np.full(len(live), -1))
        at = Located(seqs, live, records.offsets_of(live))
        if are_read and len(live) > 1 and not records.log.framing.is_blocked:
            fit = int(records.sizes_of(live, at.offsets).cumsum().searchsorted(memory.work(_MOST_BYTES), "right")) or 1
            if fit < len(live):
                return Located(seqs[: int(np.flatnonzero(seqs == live[fit])[0])], live[:fit], at.offsets[:fit])
        return at


def decoded(records: Records, seqs: NDArray[np.uint32], offsets: NDArray[np.int64], question: Question) -> list[Any]:
    """The records, what is selected of them, or their text. Raises Gone where one was deleted, DecodeError."""
    if question.select is not None:
        from jitdb.engine.reading.selecting import Selector

        return Selector(records, question.select).read(seqs, offsets).rows()
    found = records.texts(offsets) if question.as_raw else records.read(offsets)
    if None in found:
        raise Gone(seqs[[record is None for record in found]])
    if question.as_raw:
        return found
    return records.decode_all(found, offsets)  # type: ignore[arg-type]  # none of them is None


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
        if question.as_offsets:
            data = offsets.tolist()
        else:
            data = reading(manager, records, partial(decoded, records, seqs, offsets, question), cancel)
        if data is not None:
            took = 1e3 * (time.perf_counter() - begin)
            return Page(data, total, start + len(data), took, question.select)


def offsets_of(manager: IndexManager, question: Question, cancel: threading.Event | None) -> BitMap64:
    """Where all answers begin in the log, in some two bytes each."""

    def look(end: int) -> BitMap64:
        until = manager.records.horizon(question.as_of, end)
        return manager.records.offset_set(manager.evaluator.matches(question.operation, until))

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


class Pages(PagesOf):
    """Pages of the answer as it stands when the first one is read; records deleted since are left out.

    The log may change under it. Raises LogError where it turns out to be another one meanwhile; one that was compacted
    is still the same.

    is_timed: set it before the first read() to have in `times` what orders the records of the last page, and in
              `offsets` where they begin, for merging answers of several logs
    portion:  most records of a page; it may be changed between two pages
    tell:     called with whether no record matches, once that is known
    """

    is_timed = False
    times: Sequence[Any] = ()
    offsets: Sequence[int] = ()

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
        self._times: dict[int, Any] = {}  # of the records that are read now
        self._closed = False

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
        found = reading(self._manager, held.records, lambda: self._rows(held), self._cancel)
        if found is None:
            self._go_on(held)
            return None
        at, data = found
        self._start += len(at.seqs)
        if self.is_timed:
            self.times = [self._times[seq] for seq in at.live.tolist()] if self._times else ()
            self.offsets = at.offsets.tolist()
        return data

    def _rows(self, held: Snapshot) -> tuple[Located, list[Any]]:
        """The next records of the answer, and what the page has of them."""
        are_read = not self._question.as_offsets
        at = located(self._manager, held.records, lambda: self._choose(held.answer), are_read=are_read)
        return at, self._data(held.records, at)

    def _choose(self, answer: Answer) -> NDArray[np.uint32]:
        descending = self._question.descending
        seqs = answer.page(self._start, self.portion, descending)
        if self.is_timed and answer.order is not None:
            self._times = dict(zip(seqs.tolist(), answer.order.times(seqs, descending), strict=True))
        return seqs

    def _data(self, records: Records, at: Located) -> list[Any]:
        if self._question.as_offsets:
            return list(at.offsets.tolist())
        return decoded(records, at.live, at.offsets, self._question)

    def _ask(self) -> Snapshot:
        manager, question = self._manager, self._question

        def look(end: int) -> Snapshot:
            end = manager.records.horizon(question.as_of, end)
            answer = manager.answer(question.operation, end, question.order)
            answer.page(0, self._start, question.descending)  # so that it is known which are skipped
            return self._hold(answer, end)

        return manager.ask(question.operation, question.order, self._cancel, look, self._also())

    def _also(self) -> Needs:
        """Indexes that it needs beside those of the question."""
        return self._manager.context_needs(self._question.context)

    def _hold(self, answer: Answer, end: int) -> Snapshot:
        records = self._manager.records
        log = records.log
        return Snapshot(end, records, answer, log.identity, log.generation, records.offset_segments())

    def _go_on(self, held: Snapshot) -> None:
        """Go on with the rest of the answer: the index of its order or of places was built again, or the records have
        other seqs. Raises LogError where these are not known.
        """
        manager, by = self._manager, self._question.order
        rest = held.answer.rest(self._start, self._question.descending)

        def look(end: int) -> Snapshot:
            return self._hold(Answer(self._moved(held, rest), manager.order(by)), end)

        self._held = manager.ask(EVERYTHING, by, self._cancel, look)
        self._before += self._start
        self._start = 0

    def _moved(self, held: Snapshot, seqs: BitMap) -> BitMap:
        """The seqs that these records of the answer in hand have now; without those that are gone."""
        log = held.records.log
        if self._manager.records is held.records:
            return seqs
        if log.identity == held.identity and log.generation == held.generation:
            with suppress(IndexDamaged, OSError):  # the index of their places may have been dropped
                offsets = offsets_at(held.places, members_of(seqs))
                return self._manager.records.seqs_at(offsets)
        removals = log.removals(held.generation)  # by compactions of that log
        if not removals:
            raise changed_meanwhile(log)
        return Renumbering(removals).of_set(seqs)
