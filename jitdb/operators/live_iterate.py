"""A loop over the records that come: to_iter after live."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NoReturn

from jitdb.errors import QueryError
from jitdb.operators.live import NOTHING, LiveReader
from jitdb.operators.query import Query


class LiveResults(Iterator[Any]):
    """What `to_iter()` gives for a live query. Waits for more instead of ending, until it is closed.

    Closing it from any thread ends it at once, also while it waits; Ctrl-C comes out of waiting at once, and it may be
    read on. Several threads may read from one; each record goes to one of them.
    """

    __slots__ = ("_reader", "_turn", "_wake")

    def __init__(self, query: Query) -> None:
        self._reader = LiveReader(query)
        self._turn = threading.Lock()  # one thread waits for records, the others wait for it
        self._wake = threading.Event()
        # The event's method, not ours: who watches must not keep this object from being thrown away.
        self._reader.watch(self._wake.set)

    @property
    def cursor(self) -> str:
        """The place behind the last record handed out, for `live(after=cursor)`; it may be kept, as text."""
        return self._reader.cursor

    def __iter__(self) -> LiveResults:
        return self

    def __next__(self) -> Any:
        reader = self._reader
        while True:
            record = reader.take()
            if record is not NOTHING:
                return record
            if reader.ended():
                raise StopIteration
            with self._turn:
                self._wake.clear()
                if not reader.read():
                    self._wake.wait()

    def _not_async(self) -> NoReturn:
        raise QueryError(
            "to_iter() is for a plain loop, `for … in`; for `async for` end the query with to_async_iter()"
        )

    __aiter__ = __await__ = _not_async

    def close(self) -> None:
        """End it, from any thread; who waits for a record is released."""
        self._reader.close()

    def __enter__(self) -> LiveResults:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_reader"):  # not where __init__ raised
            self._reader.close()
