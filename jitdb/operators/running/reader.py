"""What of an answer was read and not handed out yet: the core of all iterators.

Free of waiting: the iterators wait, each in its way, when there is nothing to take. They must not miss what comes
between looking and waiting, so they clear their event, then `read()`, and wait only after that.

A page that another thread reads cannot be taken away from it, and a scan cannot be stopped from outside. So closing
only sets the `cancel` event, which the scan looks at, and whoever is last out lets go of the answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from operator import length_hint
from typing import Any, Final

from jitdb.common.forking import begins_anew, fork_safe
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.nodes.operation import DEFERRED, EVERYTHING
from jitdb.operators.question import Feed, Live, Pages, Portion, Question
from jitdb.operators.running.answer import answer, log
from jitdb.operators.tasks.deferred import resolved

_NOTHING: Final[Iterator[Any]] = iter(())


class Reader:
    """The answer to a question, read a portion at a time. Its methods may be called from any thread.

    rest:  the records that were read (after paginate: one list of them), for whoever takes them
    ended: whether it was closed, came to its end, or an error ended it
    """

    __slots__ = (
        "__weakref__", "_cancel", "_error", "_lock", "_pages", "_reading", "_units", "ended", "question", "rest",
    )  # fmt: skip

    def __init__(self, question: Question) -> None:
        _ = question.database  # complain now, not at the first page
        self.question = question  # an async iterator resolves it by itself, before it reads
        self.ended = False
        self.rest: Iterator[Any] = _NOTHING
        self._units = 0  # in `rest`, before any was taken
        self._cancel = threading.Event()
        self._error: BaseException | None = None  # to be raised by the next failure()
        self._lock = fork_safe(threading.Lock())  # for what is above; held for moments
        self._reading = fork_safe(threading.Lock())  # one reads at a time
        self._pages: Pages | None = None

    @property
    def cursor(self) -> str:
        """The place behind the last record that was taken."""
        raise QueryError("an answer that ends has no cursor", remedy="add live() to the query")

    @property
    def unresolved(self) -> bool:
        """Whether there are tasks to be asked before the database."""
        return bool(self.question.operation.unresolved) and not self.ended

    def failure(self) -> BaseException | None:
        """What went wrong in reading, once: to be raised."""
        with self._lock:
            error, self._error = self._error, None
        return error

    def read(self) -> bool:
        """See to it that there is something in `rest`, or it has ended; False when nothing is there now."""
        with self._reading:
            if self.ended or length_hint(self.rest):
                return True
            try:
                found = self._next()
            except BaseException as error:
                found = self._fail(error)
        self._let_go()
        return found

    def watch(self, callback: Callable[[], object]) -> None:
        """Call back, from any thread, when read() may have something, or it was closed; one callback at a time."""

    def close(self) -> None:
        """Read no more. Never waits; a read that is under way stops soon."""
        self._end()
        self._let_go()

    def _let_go(self) -> None:
        """Where it has ended, close the pages, unless somebody reads them, who will do it."""
        if self.ended and self._reading.acquire(blocking=False):
            try:
                pages, self._pages = self._pages, None
                if pages is not None:
                    pages.close()
            finally:
                self._reading.release()

    def _end(self) -> None:
        """End it: what was read, and not taken by now, is not handed out."""
        with self._lock:
            self.ended = True
            self._cancel.set()
            rest, self.rest = self.rest, _NOTHING
            self._units -= len(list(rest))  # whoever took it out of us before finds it empty

    def _next(self) -> bool:
        question = self.question
        if self._pages is None:
            if question.is_one:
                self._keep([answer(question, self._cancel)])
                self.ended = True
                return True
            if question.debugging:
                log("asking page by page: %r", question)
            self._pages = question.database.pages(question, cancel=self._cancel)
        page = self._pages.read()
        if page is None:
            self.ended = True
            return True
        if question.debugging:
            log("a page in %.3f ms: %d of %d records", page.duration, len(page.data), page.total)
        self._keep(page.data)
        return True

    def _keep(self, data: list[Any]) -> None:
        with self._lock:
            if not self.ended:
                units = data if self.question.limit is None else [data]
                self.rest, self._units = iter(units), len(units)

    def _fail(self, error: BaseException) -> bool:
        closed = self._cancel.is_set()
        self.close()
        if not (closed and isinstance(error, QueryCancelled)):  # closed while it read: that is what was wanted
            with self._lock:
                self._error = error
        return True


class LiveReader(Reader):
    """The feed of a live question: a Reader that does not end by itself, and has a cursor.

    The question begins where the log ends when this is made. Nothing is read then, and nothing that takes long is done:
    also naming that place is left to the first read().
    """

    __slots__ = ("_begin", "_feed", "_forked", "_place", "_portion", "_unwatch", "_wake")

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self._portion: Portion | None = None
        self._place: str | None = None  # the place before the portion; None is where it began
        self._wake: Callable[[], object] = _nobody
        self._unwatch: Callable[[], object] = _nobody
        # Tasks may take their time: until they have answered, a feed of everything keeps the place.
        self._begin = self._open(question.changed(operation=EVERYTHING) if self.unresolved else question)
        self._feed = None if self.unresolved else self._begin
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

    @property
    def unresolved(self) -> bool:
        """Whether there are tasks to be asked before the database."""
        return bool(self.question.operation.unresolved & DEFERRED)

    def watch(self, callback: Callable[[], object]) -> None:
        """Call back, from any thread, when read() may have something, or it was closed; one callback at a time."""
        with self._lock:
            unwatch, self._wake, self._unwatch = self._unwatch, callback, _nobody
            if self._feed is not None and not self.ended:
                self._unwatch = self._feed.watch(callback)
        unwatch()

    def close(self) -> None:
        """Read no more. Never waits; a read that is under way stops soon."""
        self._end()
        with self._lock:
            unwatch, self._unwatch = self._unwatch, _nobody
            feed, wake = self._feed, self._wake
        unwatch()
        self._begin.close()
        if feed is not None:
            feed.close()
        wake()

    def _next(self) -> bool:
        if self._forked:
            self._forked = False
            self.watch(self._wake)
        self._named()
        feed = self._resolved_feed()
        portion = feed.read()
        if portion is None:
            place = feed.cursor
            with self._lock:
                if not self.ended:  # all that was looked at is done with, also what did not match behind the last
                    self._place, self._portion = place, None
            return False
        if self.question.debugging:
            log("%d records came", len(portion.data))
        with self._lock:
            if not self.ended:
                self._place, self._portion = self._cursor(), portion
                self._units = 0
        self._keep(portion.data)
        return True

    def _cursor(self) -> str | None:
        taken = self._units - length_hint(self.rest)
        if self._portion is None or not taken:
            return self._place
        return self._portion.cursor(taken if self.question.limit is None else len(self._portion.data))

    def _named(self) -> str:
        """The place, for the first time: where it began. To be called by who reads."""
        if self._place is None:
            self._place = self._begin.cursor
        return self._place

    def _open(self, question: Question) -> Feed:
        return question.database.feed(question, cancel=self._cancel)

    def _resolved_feed(self) -> Feed:
        """The feed; where tasks had to be asked, it begins at the place that was kept."""
        if self._feed is not None:
            return self._feed
        self.question = resolved(self.question, self._cancel)
        feed = self._open(self.question.changed(live=Live(after=self._named())))
        with self._lock:
            self._feed = feed
            if self.ended:
                feed.close()
            elif self._wake is not _nobody:
                self._unwatch = feed.watch(self._wake)
        self._begin.close()
        return feed


def _nobody() -> None:
    pass
