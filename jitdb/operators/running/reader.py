"""Pages read one at a time, from any thread, and let go of from any other.

A generator cannot be closed while another thread is inside it, and a scan cannot be stopped from outside.
So closing only sets the `cancel` event, which the scan looks at, and whoever is last out closes the pages.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from jitdb.common.forking import fork_safe
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.database import Page
from jitdb.operators.query import Query
from jitdb.operators.running.answer import answer, answer_pages, log
from jitdb.operators.running.resolve import ready, settled

if TYPE_CHECKING:
    from jitdb.operators.running.live import LiveReader


class Loop(Iterator[Any]):
    """What `to_iter()` gives, whatever it reads from. It ends with close(), with its `with`, or when thrown away."""

    __slots__ = ("_reader",)

    _reader: Reader | LiveReader

    def __iter__(self) -> Self:
        return self

    def _not_async(self) -> NoReturn:
        raise QueryError(
            "to_iter() is for a plain loop, `for … in`; for `async for` end the query with to_async_iter()"
        )

    __aiter__ = __await__ = _not_async

    def close(self) -> None:
        """End it, from any thread: a scan in another one stops soon, and who waits for a record is released."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_reader"):  # not where __init__ raised
            self._reader.close()


class Reader:
    """The answer to a query in portions: lists of records; or, after count(), one number in a list."""

    __slots__ = ("_lock", "_pages", "cancel", "finished", "query")

    def __init__(self, query: Query) -> None:
        ready(query)  # complain now, not at the first page
        self.cancel = threading.Event()
        self.finished = False
        self.query = query  # an async iterator settles it by itself, before it reads
        self._pages: Iterator[Page] | None = None
        self._lock = fork_safe(threading.Lock())

    def read(self) -> list[Any] | None:
        """The next portion, never empty; None after the last one and after close()."""
        try:
            with self._lock:
                if self.finished or self.cancel.is_set():
                    return None
                try:
                    portion = self._next()
                except BaseException as error:
                    self.finished = True
                    if isinstance(error, QueryCancelled) and self.cancel.is_set():
                        return None  # closed while it read: that is what was wanted
                    raise
                if portion is None:
                    self.finished = True
                return None if self.cancel.is_set() else portion
        finally:
            if self.finished or self.cancel.is_set():
                self.close()

    def close(self) -> None:
        """Stop reading. Returns at once, even while another thread reads; may be called again."""
        self.cancel.set()
        if self._lock.acquire(blocking=False):
            try:
                pages, self._pages = self._pages, None
                self.finished = True
                if pages is not None and hasattr(pages, "close"):
                    pages.close()
            finally:
                self._lock.release()

    def _next(self) -> list[Any] | None:
        self.query = settled(self.query, self.cancel)
        if self.query.counting:
            self.finished = True
            return [answer(self.query, self.cancel)]
        if self._pages is None:
            self._pages = iter(answer_pages(self.query, self.cancel))
        for page in self._pages:
            if self.query.debugging:
                log("a page in %.3f ms: %d of %d records", page.duration, len(page.data), page.total)
            if page.data:
                return page.data
        return None
