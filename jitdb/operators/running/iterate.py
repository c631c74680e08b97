"""The consumer for loops: to_iter."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Final

from jitdb.common.forking import fork_safe
from jitdb.operators.query import Consumer, Part, Query
from jitdb.operators.running.live_iterate import LiveResults
from jitdb.operators.running.reader import Loop, Reader


def to_iter() -> Part:
    """An iterator over the records, or after `paginate(n)` over lists of n. Pages are read when asked for.

    The answer is that of the moment of the first page, whatever happens to the log since. A loop that is
    left early should close the iterator (`with`, or `close()`); one that is thrown away closes itself.
    After `live()` it waits for more instead of ending (see LiveResults).

    >>> from jitdb.operators import equal, from_db, query, where
    >>> with query(from_db(db), where(equal("value.content.type", "vote")), to_iter()) as votes:
    ...     [vote["value"]["sequence"] for vote in votes]
    [2]
    """
    return _TO_ITER


class Results(Loop):
    """What `to_iter()` gives. Several threads may read from one; each record goes to one of them."""

    __slots__ = ("_lock", "_portion", "_whole_pages")

    def __init__(self, query: Query) -> None:
        self._reader: Reader = Reader(query)
        self._whole_pages = query.limit is not None
        self._portion: Iterator[Any] = iter(())
        self._lock = fork_safe(threading.Lock())

    def __next__(self) -> Any:
        for record in self._portion:
            return record
        with self._lock:
            for record in self._portion:  # another thread read a page while this one waited
                return record
            portion = self._reader.read()
            if portion is None:
                raise StopIteration
            if self._whole_pages:
                return portion
            rest = iter(portion)
            first = next(rest)
            self._portion = rest
            return first

    def close(self) -> None:
        """Read no more; a scan in another thread stops soon."""
        self._portion = iter(())
        super().close()


class _ToIter(Consumer):
    __slots__ = ()

    def consume(self, query: Query) -> Results | LiveResults:
        return Results(query) if query.live is None else LiveResults(query)

    def __repr__(self) -> str:
        return "to_iter()"


_TO_ITER: Final = _ToIter()
