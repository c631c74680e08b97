"""A plain loop over the records of an answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NoReturn, Self

from jitdb.common.forking import fork_safe
from jitdb.errors import QueryError
from jitdb.operators.question import Question
from jitdb.operators.running.live import LiveReader
from jitdb.operators.running.reader import Reader


class Results(Iterator[Any]):
    """What a loop gets: records; after `paginate(n)` lists of n; after `count()` one number.

    That of a live query waits for more instead of ending, until it is closed. It ends with close(), from any thread and
    at once, also while one waits in it; with its `with`; or when it is thrown away. Ctrl-C comes out of waiting at
    once, and it may be read on. Several threads may read from one; each record goes to one of them.
    """

    __slots__ = ("_reader", "_turn", "_wake")

    def __init__(self, question: Question) -> None:
        self._reader = Reader(question) if question.live is None else LiveReader(question)
        self._turn = fork_safe(threading.Lock())  # one thread reads, or waits for records; the others wait for it
        self._wake = fork_safe(threading.Event())
        # The event's method, not ours: who watches must not keep this object from being thrown away.
        self._reader.watch(self._wake.set)

    @property
    def cursor(self) -> str:
        """Of a live query: the place behind the last record handed out, for `live(after=cursor)`; may be kept, as text.

        Raises QueryError for an answer that ends.
        """
        return self._reader.cursor

    def __next__(self) -> Any:
        for record in self._reader.rest:
            return record
        return self._wait()

    def _wait(self) -> Any:
        reader = self._reader
        with self._turn:
            while True:
                for record in reader.rest:
                    return record
                if (error := reader.failure()) is not None:
                    raise error
                if reader.ended:
                    raise StopIteration
                self._wake.clear()
                if not reader.read():
                    self._wake.wait()

    def __iter__(self) -> Self:
        return self

    def _not_async(self) -> NoReturn:
        raise QueryError(
            "to_iter() is for a plain loop, `for … in`", remedy="for `async for` end the query with to_async_iter()"
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
