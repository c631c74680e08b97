"""What a live query has read and not handed out yet, and the place behind what was handed out.

Free of waiting: the iterators wait, each in its way, when there is nothing to take. They must not miss what comes
between looking and waiting, so they clear their event, then `read()`, and wait only after that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from jitdb.common.forking import begins_anew, fork_safe
from jitdb.errors import QueryCancelled
from jitdb.operators.database import Feed, Portion
from jitdb.operators.nodes.operations import DEFERRED, Operation
from jitdb.operators.query import EVERYTHING, Live, Query
from jitdb.operators.running.answer import DEFAULT_BATCH, log
from jitdb.operators.running.resolve import ready, settled

NOTHING: Final = object()  # what take() gives when nothing is there


class LiveReader:
    """The feed of a live query, read a portion at a time. Its methods may be called from any thread.

    The query begins where the log ends when this is made. Nothing is read then, and nothing that takes long is done:
    also naming that place is left to the first read().
    """

    __slots__ = (
        "__weakref__", "_begin", "_cancel", "_error", "_feed", "_forked", "_given", "_lock", "_place", "_portion",
        "_reading", "_unwatch", "_wake", "query",
    )  # fmt: skip

    def __init__(self, query: Query) -> None:
        ready(query)
        self.query = query
        self._cancel = threading.Event()
        self._lock = fork_safe(threading.Lock())  # for what follows; held for moments
        self._reading = fork_safe(threading.Lock())  # one reads the feed at a time
        self._portion: Portion | None = None
        self._given = 0  # records of the portion that were handed out
        self._place: str | None = None  # the place before the portion; None is where it began
        self._error: Exception | None = None  # to be raised by the next take()
        self._wake: Callable[[], object] = _nobody
        self._unwatch: Callable[[], object] = _nobody
        # Tasks may take their time: until they have answered, a feed of everything keeps the place.
        self._begin = self._open(EVERYTHING if self.unsettled() else query.operation, query.live)
        self._feed = None if self.unsettled() else self._begin
        self._forked = False
        begins_anew(self)

    def begin_anew(self) -> None:
        """In a forked child: who looks for news in the parent is not here."""
        self._forked = True

    @property
    def cursor(self) -> str:
        """The place behind the last record that was taken: `live(after=cursor)` goes on there."""
        with self._lock:
            place = self._cursor()
        if place is None:
            with self._reading:
                place = self._named()
        return place

    def ended(self) -> bool:
        """Whether it was closed, or an error ended it."""
        return self._cancel.is_set()

    def unsettled(self) -> bool:
        """Whether there are tasks to be asked before the database."""
        return bool(self.query.operation.unsettled & DEFERRED)

    def take(self) -> Any:
        """The next record (after paginate: list of records) of those that were read, or NOTHING.

        What went wrong in reading is raised here, once.
        """
        with self._lock:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            portion, given = self._portion, self._given
            if portion is None or given == len(portion.data):
                return NOTHING
            if self.query.limit is not None:
                self._given = len(portion.data)
                return portion.data
            self._given = given + 1
            return portion.data[given]

    def read(self) -> bool:
        """See to it that take() has something, or it has ended; False when nothing is there now."""
        with self._reading:
            if self.ended() or self._has_some():
                return True
            try:
                if self._forked:
                    self._forked = False
                    self.watch(self._wake)
                self._named()
                feed = self._settled_feed()
                portion = feed.read()
                place = feed.cursor if portion is None else None
            except BaseException as error:
                self._fail(error)
                return True
            self._keep(portion, place)
            return portion is not None

    def watch(self, callback: Callable[[], object]) -> None:
        """Call back, from any thread, when read() may have something, or it was closed; one callback at a time."""
        with self._lock:
            unwatch, self._wake, self._unwatch = self._unwatch, callback, _nobody
            if self._feed is not None and not self.ended():
                self._unwatch = self._feed.watch(callback)
        unwatch()

    def close(self) -> None:
        """Read no more. Never waits; a read that is under way stops soon."""
        with self._lock:
            self._place = self._cursor()
            self._portion, self._given = None, 0
            self._cancel.set()
            unwatch, self._unwatch = self._unwatch, _nobody
            feed, wake = self._feed, self._wake
        unwatch()
        self._begin.close()
        if feed is not None:
            feed.close()
        wake()

    def _cursor(self) -> str | None:
        if self._portion is None or not self._given:
            return self._place
        return self._portion.cursor(self._given)

    def _has_some(self) -> bool:
        with self._lock:
            return self._portion is not None and self._given < len(self._portion.data)

    def _named(self) -> str:
        """The place, for the first time: where it began. To be called by who reads."""
        if self._place is None:
            self._place = self._begin.cursor
        return self._place

    def _open(self, operation: Operation, live: Live | None) -> Feed:
        assert live is not None
        query = self.query
        limit = query.limit or query.batch or DEFAULT_BATCH
        offsets = query.as_offsets
        return query.database.feed(operation, limit=limit, old=live.old, after=live.after, as_offsets=offsets)

    def _settled_feed(self) -> Feed:
        """The feed; where tasks had to be asked, it begins at the place that was kept."""
        if self._feed is not None:
            return self._feed
        self.query = settled(self.query, self._cancel)
        feed = self._open(self.query.operation, Live(False, self._named()))
        with self._lock:
            self._feed = feed
            if self.ended():
                feed.close()
            elif self._wake is not _nobody:
                self._unwatch = feed.watch(self._wake)
        self._begin.close()
        return feed

    def _keep(self, portion: Portion | None, place: str | None) -> None:
        if self.query.debugging and portion is not None:
            log("%d records came", len(portion.data))
        with self._lock:
            if not self.ended():
                # Nothing more there: all that was looked at is done with, also what did not match behind the last.
                self._place = self._cursor() if place is None else place
                self._portion, self._given = portion, 0

    def _fail(self, error: BaseException) -> None:
        closed = self.ended()
        self.close()
        if not isinstance(error, Exception):
            raise error
        if not (closed and isinstance(error, QueryCancelled)):
            with self._lock:
                self._error = error


def _nobody() -> None:
    pass
