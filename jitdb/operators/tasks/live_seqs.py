"""Seqs that keep coming from an index outside: a leaf that becomes true of more and more records.

The source, an iterable or async iterable, belongs to the user and may block: an event loop in a thread of its own reads
it, and a live query takes what has come since it last looked. Reading pauses while too many seqs wait to be taken.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jitdb.common.arguments import failure
from jitdb.common.asyncio_bridge import LoopEvent, call_in_loop
from jitdb.common.forking import fork_safe
from jitdb.common.words import shown
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.nodes.literals import function_name, pack_positions, unpack_positions
from jitdb.operators.nodes.operation import LIVE_SEQS, Identity, Operation
from jitdb.operators.nodes.positions import Seqs

if TYPE_CHECKING:
    import asyncio

SeqItem: TypeAlias = int | Iterable[int]

MOST_WAITING: Final = 65_536  # seqs that were given and not taken yet, before the source has to wait: 2 MiB or so


def live_seqs(source: Iterable[SeqItem] | AsyncIterable[SeqItem]) -> Operation:
    """The records whose ordinals `source` has given so far; not below `not_`.

    `source` is an iterable or async iterable of integers, or of lists of them. It is read once, by one live query,
    in a thread of its own. Questions that are not live take what it has given by then: of a list all, of what is read
    while it comes (a generator) what the live query was given.

    >>> from jitdb.operators import and_, batch, equal, from_db, live, query, to_iter, where
    >>> found_elsewhere = live_seqs(iter([[0, 1], 3]))
    >>> posts = where(and_(found_elsewhere, equal("value.content.type", "post")))
    >>> with query(from_db(db), posts, live(old=True), to_iter()) as stream:
    ...     [next(stream)["timestamp"], next(stream)["timestamp"]]
    [1, 4]
    """
    return LiveSeqs(SeqSource(source))


class SeqSource:
    """Reads seqs in a thread of its own, once `start`ed. Its methods may be called from any thread."""

    def __init__(self, values: Iterable[SeqItem] | AsyncIterable[SeqItem]) -> None:
        shapeless = getattr(values, "ndim", 1) == 0  # a NumPy scalar says that it is iterable
        if shapeless or isinstance(values, (str, bytes)) or not isinstance(values, (Iterable, AsyncIterable)):
            raise QueryError(f"live_seqs() takes an iterable or async iterable of integers, not {shown(values)}")
        self.name = function_name(values)
        self.error: BaseException | None = None  # what the source raised
        self._values = values
        # Re-entrant: an allocation may collect garbage, and so call close() inside of a method.
        self._lock = fork_safe(threading.RLock())
        self._came: list[int] = []
        self._given = array("Q")  # all of them, those that were taken too
        self._started = self._closed = False
        self._wake: Callable[[], object] = _nobody  # called when there is something to take
        self._room: LoopEvent | None = None  # set when something was taken
        self._task: asyncio.Task[None] | None = None  # that reads

    def start(self) -> None:
        """Begin to read. QueryError the second time: what was read is not there for another."""
        with self._lock:
            if self._started or self._closed:
                raise QueryError(
                    f"live_seqs({self.name}) was given to a live query before, and a source is read once",
                    remedy="make a live_seqs() with a new source for each",
                )
            self._started = True
        threading.Thread(target=self._run, name=f"jitdb live_seqs({self.name})", daemon=True).start()

    def take(self) -> list[int]:
        """The seqs that came since the last call, without waiting. At the end raises what the source raised."""
        with self._lock:
            came, self._came = self._came, []
            room, error, wake = self._room, self.error, self._wake
        if room is not None:
            room.set()
        if error is not None:
            if not came:
                raise error
            wake()  # the error is still to be taken
        return came

    def given(self) -> Sequence[int]:
        """The seqs that it has given by now, without reading on; of a list, all."""
        if isinstance(self._values, Collection):
            return [seq for item in self._values for seq in _seqs_of(item)]
        with self._lock:
            return self._given[:]

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back, from any thread, whenever take() has something again; the function given back ends it.

        Only the last watcher is called back.
        """
        with self._lock:
            self._wake = callback

        def end() -> None:
            with self._lock:
                self._wake = _nobody if self._wake is callback else self._wake

        return end

    def close(self) -> None:
        """Take no more. Returns at once; a source that is busy finding its next seq is left alone until it has."""
        with self._lock:
            self._closed = True
            self._came, self._wake = [], _nobody
            room, task = self._room, self._task
        if room is not None and task is not None:
            call_in_loop(room.loop, task.cancel)

    def _run(self) -> None:
        import asyncio

        try:
            asyncio.run(self._read())
        except BaseException as error:
            if self._closed:
                raise  # no reader is left: report it as an error of the thread
            raised = error.__cause__ if isinstance(error.__cause__, StopIteration) else error  # a generator wraps it
            with self._lock:
                self.error, wake = failure(f"the source of live_seqs({self.name})", raised), self._wake
            wake()

    async def _read(self) -> None:
        import asyncio

        values = self._values if isinstance(self._values, AsyncIterable) else _one_by_one(self._values)
        room = LoopEvent()
        with self._lock:
            self._room, self._task = room, asyncio.current_task()
            if self._closed:
                return
        try:
            async for item in values:
                if not self._add(item):
                    return
                while self._is_full():
                    await room.wait()
                    room.clear()
        except asyncio.CancelledError as error:
            if not self._closed:  # else close() did that
                raise QueryCancelled(f"the source of live_seqs({self.name}) was cancelled") from error

    def _add(self, item: SeqItem) -> bool:
        """Keep what the source gave; False once it is closed."""
        seqs = _seqs_of(item)
        with self._lock:
            if self._closed:
                return False
            wake = _nobody if self._came or not seqs else self._wake
            self._came += seqs
            self._given.extend(seqs)
        wake()
        return True

    def _is_full(self) -> bool:
        with self._lock:
            return len(self._came) > MOST_WAITING and not self._closed


async def _one_by_one(values: Iterable[SeqItem]) -> AsyncIterator[SeqItem]:
    """The items of a plain source, in an event loop of its own, which it may block."""
    try:
        for item in values:
            yield item
    finally:
        if isinstance(values, Generator):
            values.close()


def _nobody() -> object:
    return None


class LiveSeqs(Operation):
    """The record's ordinal is among those that the source has given. Two are equal when they share the source."""

    __slots__ = __match_args__ = ("source",)

    source: SeqSource

    unresolved = LIVE_SEQS

    def _identify(self) -> Identity:
        return ("live_seqs", id(self.source))

    @property
    def function(self) -> tuple[str, str]:
        """The source."""
        return "a source of seqs", "write seqs(...) that are known by now"

    def __repr__(self) -> str:
        return f"live_seqs({self.source.name})"


def sources_of(operation: Operation) -> list[SeqSource]:
    """The sources of all live_seqs() below, each once, in the order in which they stand."""
    if not operation.unresolved & LIVE_SEQS:
        return []
    return list(dict.fromkeys(leaf.source for leaf in operation.leaves() if isinstance(leaf, LiveSeqs)))


def with_seqs(operation: Operation, seqs_of: Callable[[SeqSource], Seqs]) -> Operation:
    """The operation with such seqs in the places of live_seqs()."""
    return operation.replaced(lambda leaf: seqs_of(leaf.source) if isinstance(leaf, LiveSeqs) else leaf, LIVE_SEQS)


def given_so_far(operation: Operation) -> Operation:
    """For a question that is answered once: with what the sources of live_seqs() have given by now."""
    return with_seqs(operation, lambda source: Seqs(pack_positions("live_seqs", source.given())))


def _seqs_of(item: Any) -> list[int]:
    """What a source gave, one seq or several, as plain integers."""
    if type(item) is int and 0 <= item < 2**64:
        return [item]
    alone = isinstance(item, (str, bytes)) or not isinstance(item, Iterable) or getattr(item, "ndim", 1) == 0
    return unpack_positions(pack_positions("live_seqs", [item] if alone else item)).tolist()
