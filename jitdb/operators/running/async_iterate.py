"""The consumer for async loops: to_async_iter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Final, NoReturn

from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.query import Consumer, Part, Query
from jitdb.operators.running.live_async_iterate import AsyncLiveResults
from jitdb.operators.running.reader import Reader
from jitdb.operators.running.resolve import Settling


def to_async_iter() -> Part:
    """An async iterator over the records, or after `paginate(n)` over lists of n.

    The database works in a thread, one page at a time, and only when the loop asks for more. Cancelling the
    task, or `aclose()`, makes a scan that is under way stop soon, and waits for nothing.
    After `live()` it waits for more instead of ending, and needs no thread for that (see AsyncLiveResults).

    >>> import asyncio
    >>> from jitdb.operators import equal, from_db, paginate, query, where
    >>> async def sizes():
    ...     posts = where(equal("value.content.type", "post"))
    ...     async with query(from_db(db), posts, paginate(2), to_async_iter()) as pages:
    ...         return [len(page) async for page in pages]
    >>> asyncio.run(sizes())
    [2, 1]
    """
    return _TO_ASYNC_ITER


class AsyncResults(AsyncIterator[Any]):
    """What `to_async_iter()` gives. Several tasks may read from one; each record goes to one of them."""

    __slots__ = ("_cancelled", "_lock", "_portion", "_reader", "_settling", "_whole_pages")

    def __init__(self, query: Query) -> None:
        import asyncio  # here, because importing it takes longer than a question that needs no loop

        self._settling = Settling()
        self._reader = Reader(query)
        self._whole_pages = query.limit is not None
        self._portion: Iterator[Any] = iter(())
        self._lock = asyncio.Lock()
        self._cancelled = False

    def __aiter__(self) -> AsyncResults:
        return self

    async def __anext__(self) -> Any:
        for record in self._portion:
            return record
        async with self._lock:
            for record in self._portion:  # another task read a page while this one waited
                return record
            portion = await self._read()
            if portion is None:
                raise StopAsyncIteration
            if self._whole_pages:
                return portion
            self._portion = iter(portion)
            return next(self._portion)

    def _only_async(self) -> NoReturn:
        raise QueryError("to_async_iter() is for `async for … in`; for a plain loop end the query with to_iter()")

    def _not_awaited(self) -> NoReturn:
        raise QueryError("to_async_iter() is for `async for … in`; for `await` end the query with to_awaitable()")

    __iter__ = _only_async
    __await__ = _not_awaited

    async def _read(self) -> list[Any] | None:
        import asyncio

        if self._cancelled:
            # Ending quietly here would make half an answer look like a whole one.
            raise QueryCancelled("reading was cancelled before the last record; ask again")
        reader = self._reader
        try:
            if not reader.finished and reader.query.operation.unsettled:
                query = await self._settling.settle(reader.query)
                if query is None:
                    return None  # closed meanwhile
                reader.query = query
            # The reader's method, not ours: a thread must not keep this object from being thrown away.
            return await asyncio.to_thread(reader.read)
        except BaseException as error:
            self._cancelled = isinstance(error, asyncio.CancelledError)
            reader.close()
            raise

    async def aclose(self) -> None:
        """Read no more; a scan that is under way stops soon, and is not waited for."""
        self._portion = iter(())
        self._settling.close()
        self._reader.close()

    async def __aenter__(self) -> AsyncResults:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if hasattr(self, "_reader"):  # not where __init__ raised
            self._reader.close()


class _ToAsyncIter(Consumer):
    __slots__ = ()

    def consume(self, query: Query) -> AsyncResults | AsyncLiveResults:
        return AsyncResults(query) if query.live is None else AsyncLiveResults(query)

    def __repr__(self) -> str:
        return "to_async_iter()"


_TO_ASYNC_ITER: Final = _ToAsyncIter()
