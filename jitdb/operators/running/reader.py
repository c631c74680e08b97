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

from jitdb.common.forking import fork_safe
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.question import Pages, Question
from jitdb.operators.running.answer import answer, log

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
            if question.counting:
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
