"""A loop over the records of an answer, plain or async."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, Self

from jitdb.common.asyncio_bridge import LoopEvent, say_stopped
from jitdb.common.forking import fork_safe
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.question import Question
from jitdb.operators.running.reader import LiveReader, Reader
from jitdb.operators.tasks.deferred import Resolving

if TYPE_CHECKING:
    import asyncio


class _Answer:
    """What is read, and ends when it is closed or thrown away."""

    __slots__ = ("_reader",)

    def __init__(self, question: Question) -> None:
        self._reader = Reader(question) if question.live is None else LiveReader(question)

    @property
    def cursor(self) -> str:
        """Of a live query: the place behind the last record handed out, for `live(after=cursor)`; may be kept, as text.

        Raises QueryError for an answer that ends.
        """
        return self._reader.cursor

    def close(self) -> None:
        """End it, from any thread: a scan in another one stops soon, and who waits for a record is released."""
        self._reader.close()

    def __del__(self) -> None:
        if hasattr(self, "_reader"):  # not where __init__ raised
            self._reader.close()


class Results(_Answer, Iterator[Any]):
    """What a loop gets: records; after `paginate(n)` lists of n; after `count()` one number.

    That of a live query waits for more instead of ending, until it is closed. It ends with close(), from any thread and
    at once, also while one waits in it; with its `with`; or when it is thrown away. Ctrl-C comes out of waiting at
    once, and it may be read on. Several threads may read from one; each record goes to one of them.
    """

    __slots__ = ("_turn", "_wake")

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self._turn = fork_safe(threading.Lock())  # one thread reads, or waits for records; the others wait for it
        self._wake = fork_safe(threading.Event())
        # The event's method, not ours: who watches must not keep this object from being thrown away.
        self._reader.watch(self._wake.set)

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
                    self._come()

    def _come(self) -> None:
        """Wait until there may be more."""
        try:
            self._wake.wait()
        except KeyboardInterrupt as stopped:
            say_stopped(stopped)
            raise

    def __iter__(self) -> Self:
        return self

    def _not_async(self) -> NoReturn:
        raise QueryError(
            "to_iter() is for a plain loop, `for … in`", remedy="for `async for` end the query with to_async_iter()"
        )

    __aiter__ = __await__ = _not_async

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncResults(_Answer, AsyncIterator[Any]):
    """What an async loop gets: records; after `paginate(n)` lists of n; after `count()` one number.

    The database is read in a thread, when the loop asks for more, for as long as that takes. Cancelling a task that
    reads an answer that ends makes the scan stop soon; half of it never looks like the whole: asking again raises
    QueryCancelled. A live query waits for more instead of ending, which takes no thread; cancelling a task that waits
    (or a timeout) ends the waiting at once and loses nothing: the next reader goes on. Several tasks of one event loop
    may read from one; each record goes to one of them.
    """

    __slots__ = ("_cancelled", "_reading", "_resolving", "_turn", "_wake")

    def __init__(self, question: Question) -> None:
        self._resolving = Resolving()
        super().__init__(question)
        self._wake: LoopEvent | None = None
        self._turn: asyncio.Lock  # one task reads, or waits for records; the others wait for it
        self._reading: asyncio.Future[bool] | None = None  # the read in a thread that nobody has seen the end of
        self._cancelled = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        for record in self._reader.rest:
            return record
        import asyncio

        try:
            return await self._wait()
        except asyncio.CancelledError as stopped:
            say_stopped(stopped)
            raise

    async def _wait(self) -> Any:
        reader, wake = self._reader, self._in_loop()
        async with self._turn:
            while True:
                for record in reader.rest:
                    return record
                if self._cancelled:
                    # Ending quietly here would make half an answer look like a whole one.
                    raise QueryCancelled("reading was cancelled before the last record", remedy="ask again")
                if (error := reader.failure()) is not None:
                    raise error
                if reader.ended:
                    raise StopAsyncIteration
                if (not reader.unresolved or await self._resolve()) and not await self._read(wake):
                    await wake.wait()

    def _in_loop(self) -> LoopEvent:
        """The event of the running loop that is set when there may be more."""
        import asyncio

        loop, wake = asyncio.get_running_loop(), self._wake
        if wake is not None and wake.loop is loop:
            return wake
        if wake is not None and wake.loop.is_running():
            raise QueryError(
                "this query is read in another event loop", remedy="make one for each, or read it with to_iter()"
            )
        wake = self._wake = LoopEvent()
        self._turn, self._reading = asyncio.Lock(), None
        # The event's method, not ours: who watches must not keep this object from being thrown away.
        self._reader.watch(wake.set)
        return wake

    async def _resolve(self) -> bool:
        """Have the tasks of the query make their parts; False when it was closed meanwhile."""
        reader = self._reader
        try:
            question = await self._resolving.resolve(reader.question)
        except BaseException as error:
            if isinstance(error, Exception) or self._ends():
                reader.close()
            raise
        if question is not None:
            reader.question = question
        return question is not None

    async def _read(self, wake: LoopEvent) -> bool:
        """Read in a thread; False when nothing is there, and the event will tell when there may be."""
        import asyncio
        from contextvars import copy_context

        # Cancelling must lose nothing of a live query: the thread goes on, leaves what it reads in the reader, and the
        # next who asks waits for it. The event was cleared before it began, and has been kept since.
        if self._reading is None or self._reading.done():
            wake.clear()
            self._reading = wake.loop.run_in_executor(None, copy_context().run, self._reader.read)
        try:
            return await asyncio.shield(self._reading)
        except asyncio.CancelledError:
            if self._ends():
                self._reader.close()
            raise

    def _ends(self) -> bool:
        """Whether the answer ends: then it was cancelled, and is not to be read on."""
        self._cancelled = self._reader.question.live is None
        return self._cancelled

    def _only_async(self) -> NoReturn:
        raise QueryError(
            "to_async_iter() is for `async for … in`", remedy="for a plain loop end the query with to_iter()"
        )

    def _not_awaited(self) -> NoReturn:
        live = self._reader.question.live is not None
        what = "a live query has no end to `await`" if live else "for `await` end the query with to_awaitable()"
        raise QueryError("to_async_iter() is for `async for … in`", remedy=what)

    __iter__ = _only_async
    __await__ = _not_awaited

    def close(self) -> None:
        self._resolving.close()
        super().close()

    async def aclose(self) -> None:
        """The same; waits for nothing."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
