"""Seqs that keep coming, from an index that others keep: a leaf that becomes true of more and more records.

The source (an iterable or an async iterable) belongs to the user, and may take its time: a thread of its own reads it,
an async one in an event loop of its own, and a live query takes what has come since it last looked. The thread pauses
while too many seqs wait to be taken.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import AsyncIterable, Callable, Collection, Generator, Iterable, Sequence
from typing import Any, Final, TypeAlias

from jitdb.common.arguments import failure
from jitdb.common.asyncio_bridge import LoopEvent, call_in_loop
from jitdb.common.forking import fork_safe
from jitdb.common.words import shown
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.nodes.describe import function_name
from jitdb.operators.nodes.literals import pack_positions, unpack_positions
from jitdb.operators.nodes.operation import LIVE_SEQS, Identity, Operation
from jitdb.operators.nodes.positions import Seqs

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
        # Re-entrant: whoever allocates may collect garbage, and so close what it is inside of.
        self._lock = fork_safe(threading.RLock())
        self._came: list[int] = []
        self._given = array("Q")  # all of them, those that were taken too
        self._started = self._closed = False
        # Called when there is something to take; when something was taken, and at the end; at the end.
        self._wake = self._make_room = self._stop = _nobody

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
        """The seqs that came since, without waiting for any. Behind the last of them raises what the source raised."""
        with self._lock:
            came, self._came = self._came, []
            make_room, error = self._make_room, self.error
            wake = self._wake if came and error is not None else _nobody
        make_room()
        wake()  # there is the error still to be taken
        if error is not None and not came:
            raise error
        return came

    def given(self) -> Sequence[int]:
        """What it has given by now, without reading on; a list is there as a whole."""
        if isinstance(self._values, Collection):
            return [seq for item in self._values for seq in _seqs_of(item)]
        with self._lock:
            return self._given[:]

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back, from any thread, whenever take() has something again; the function given back ends it.

        It has one reader: who watches last is called back.
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
            make_room, stop = self._make_room, self._stop
        make_room()
        stop()

    def _run(self) -> None:
        try:
            if isinstance(self._values, AsyncIterable):
                import asyncio

                asyncio.run(self._read_async(self._values))
            else:
                self._read(iter(self._values))
        except BaseException as error:
            if self._closed:
                raise  # nobody is left to take it: it goes where errors of threads go
            self._end(error)

    def _read(self, values: Any) -> None:
        room = threading.Event()
        self._make_room = room.set
        try:
            for item in values:
                if not self._add(item):
                    return
                while self._crowded():
                    room.wait()
                    room.clear()
        finally:
            if isinstance(values, Generator):
                values.close()

    async def _read_async(self, values: AsyncIterable[SeqItem]) -> None:
        import asyncio

        room, task = LoopEvent(), asyncio.current_task()
        assert task is not None
        with self._lock:
            if self._closed:
                return
            self._make_room, self._stop = room.set, lambda: call_in_loop(room.loop, task.cancel)
        try:
            async for item in values:
                if not self._add(item):
                    return
                while self._crowded():
                    await room.wait()
                    room.clear()
        except asyncio.CancelledError as error:
            if not self._closed:  # else close() did that
                raise QueryCancelled(f"the source of live_seqs({self.name}) was cancelled") from error

    def _add(self, item: SeqItem) -> bool:
        """Keep what the source gave; False when nobody wants it any more."""
        seqs = _seqs_of(item)
        with self._lock:
            if self._closed:
                return False
            wake = _nobody if self._came or not seqs else self._wake
            self._came += seqs
            self._given.extend(seqs)
        wake()
        return True

    def _crowded(self) -> bool:
        with self._lock:
            return len(self._came) > MOST_WAITING and not self._closed

    def _end(self, error: BaseException) -> None:
        with self._lock:
            self.error = failure(f"the source of live_seqs({self.name})", error)
            wake = self._wake
        wake()


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
