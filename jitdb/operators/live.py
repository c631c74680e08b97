"""What a live query has read and not handed out yet, and the place behind what was handed out.

Free of waiting: the iterators wait, each in its way, when there is nothing to take. They must not miss what comes
between looking and waiting, so they clear their event, then `read()`, and wait only after that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from jitdb.errors import QueryCancelled
from jitdb.operators.answer import DEFAULT_BATCH, log
from jitdb.operators.database import Feed, Portion
from jitdb.operators.operations import DEFERRED
from jitdb.operators.query import EVERYTHING, Live, Query
from jitdb.operators.settle import ready, settled

NOTHING: Final = object()  # what take() gives when nothing is there


class LiveReader:
    """The feed of a live query, read a portion at a time. Its methods may be called from any thread."""

    __slots__ = (
        "_cancel", "_error", "_feed", "_given", "_lock", "_place", "_portion", "_reading", "_start", "_unwatch",
        "_wake", "query",
    )  # fmt: skip

    def __init__(self, query: Query) -> None:
        ready(query)
        assert query.live is not None
        self.query = query
        self._cancel = threading.Event()
        self._lock = threading.Lock()  # for what follows; held for moments
        self._reading = threading.Lock()  # one reads the feed at a time
        self._portion: Portion | None = None
        self._given = 0  # records of the portion that were handed out
        self._error: Exception | None = None  # to be raised by the next take()
        self._wake: Callable[[], object] = _nobody
        self._unwatch: Callable[[], object] = _nobody
        self._feed: Feed | None = None
        self._start = query.live
        if self.unsettled:
            # It begins where the log ends now, not where it will end when the tasks have answered.
            now = query.database.feed(EVERYTHING, limit=1, old=query.live.old, after=query.live.after)
            self._place = now.cursor
            self._start = Live(False, self._place)
            now.close()
        else:
            self._open()

    @property
    def cursor(self) -> str:
        """The place behind the last record that was taken: `live(after=cursor)` goes on there."""
        with self._lock:
            return self._cursor()

    def ended(self) -> bool:
        """Whether it was closed, or an error ended it."""
        return self._cancel.is_set()

    @property
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
                if self.unsettled:
                    self.settle(settled(self.query, self._cancel))
                feed = self._feed
                if feed is None:
                    return True  # closed meanwhile
                portion = feed.read()
                place = feed.cursor if portion is None else None
            except BaseException as error:
                self._fail(error)
                return True
            self._keep(portion, place)
            return portion is not None

    def settle(self, query: Query) -> None:
        """Go on with this query, the same without tasks."""
        self.query = query
        self._open()

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
            feed, self._feed = self._feed, None
            unwatch, self._unwatch = self._unwatch, _nobody
            wake = self._wake
        unwatch()
        if feed is not None:
            feed.close()
        wake()

    def _cursor(self) -> str:
        if self._portion is None or not self._given:
            return self._place
        return self._portion.cursor(self._given)

    def _has_some(self) -> bool:
        with self._lock:
            return self._portion is not None and self._given < len(self._portion.data)

    def _open(self) -> None:
        query = self.query
        feed = query.database.feed(
            query.operation,
            limit=query.limit or query.batch or DEFAULT_BATCH,
            old=self._start.old,
            after=self._start.after,
            as_offsets=query.as_offsets,
        )
        with self._lock:
            if not self.ended():
                self._feed, self._place = feed, feed.cursor
                if self._wake is not _nobody:
                    self._unwatch = feed.watch(self._wake)
                return
        feed.close()

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
