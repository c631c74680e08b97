"""An async loop over the records that come: to_async_iter after live."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from jitdb.common.asyncio_bridge import LoopEvent
from jitdb.errors import QueryError
from jitdb.operators.query import Query
from jitdb.operators.running.live import NOTHING, LiveReader
from jitdb.operators.running.resolve import Settling

if TYPE_CHECKING:
    import asyncio


class AsyncLiveResults(AsyncIterator[Any]):
    """What `to_async_iter()` gives for a live query. Waits for more instead of ending, until it is closed.

    Waiting takes no thread; the database is read in one, for as long as that takes. Cancelling a task that waits (or a
    timeout) ends the waiting at once and loses nothing: the next reader goes on. Several tasks of one event loop may
    read from one; each record goes to one of them.
    """

    __slots__ = ("_reader", "_reading", "_settling", "_turn", "_wake")

    def __init__(self, query: Query) -> None:
        self._settling = Settling()
        self._reader = LiveReader(query)
        self._wake: LoopEvent | None = None
        self._turn: asyncio.Lock  # one task waits for records, the others wait for it
        self._reading: asyncio.Future[bool] | None = None  # the read in a thread that nobody has seen the end of

    @property
    def cursor(self) -> str:
        """The place behind the last record handed out, for `live(after=cursor)`; it may be kept, as text."""
        return self._reader.cursor

    def __aiter__(self) -> AsyncLiveResults:
        return self

    async def __anext__(self) -> Any:
        reader = self._reader
        while True:
            record = reader.take()
            if record is not NOTHING:
                return record
            if reader.ended():
                raise StopAsyncIteration
            wake = self._in_loop()
            async with self._turn:
                if reader.ended():
                    continue
                if reader.unsettled() and not await self._settle():
                    continue
                if not await self._read(wake):
                    await wake.wait()

    def _in_loop(self) -> LoopEvent:
        """The event of the running loop that is set when there may be more."""
        import asyncio

        loop, wake = asyncio.get_running_loop(), self._wake
        if wake is not None and wake.loop is loop:
            return wake
        if wake is not None and wake.loop.is_running():
            raise QueryError(
                "this live query is read in another event loop; make one for each, or read it with to_iter()"
            )
        wake = self._wake = LoopEvent()
        self._turn, self._reading = asyncio.Lock(), None
        # The event's method, not ours: who watches must not keep this object from being thrown away.
        self._reader.watch(wake.set)
        return wake

    async def _settle(self) -> bool:
        """Have the tasks of the query make their parts; False when it was closed meanwhile."""
        try:
            query = await self._settling.settle(self._reader.query)
            if query is not None:
                self._reader.query = query
        except Exception:
            self._reader.close()
            raise
        return query is not None

    async def _read(self, wake: LoopEvent) -> bool:
        """Read in a thread; False when nothing is there, and the event will tell when there may be."""
        import asyncio

        # Cancelling must lose nothing: the thread goes on, leaves what it reads in the reader, and the next who asks
        # waits for it. The event was cleared before it began, and has been kept since.
        if self._reading is None or self._reading.done():
            wake.clear()
            self._reading = wake.loop.run_in_executor(None, self._reader.read)
        return await asyncio.shield(self._reading)

    def _only_async(self) -> NoReturn:
        raise QueryError("to_async_iter() is for `async for … in`; for a plain loop end the query with to_iter()")

    def _not_awaited(self) -> NoReturn:
        raise QueryError("to_async_iter() is for `async for … in`; a live query has no end to `await`")

    __iter__ = _only_async
    __await__ = _not_awaited

    def close(self) -> None:
        """End it, from any thread; who waits for a record is released."""
        self._settling.close()
        self._reader.close()

    async def aclose(self) -> None:
        """The same; waits for nothing."""
        self.close()

    async def __aenter__(self) -> AsyncLiveResults:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_reader"):  # not where __init__ raised
            self._reader.close()
