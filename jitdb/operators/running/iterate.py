"""A loop over the records of an answer, plain or async.

A `Reader` has what was read and not taken yet; it never waits for news. The loops wait, each in its way, when there is
nothing to take: they clear their event, then `read()`, and wait only after that, so nothing that comes in between is
missed.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from operator import length_hint
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from jitdb.common.asyncio_bridge import LoopEvent, call_in_loop, say_stopped
from jitdb.common.forking import begins_anew, fork_safe
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.nodes.operation import DEFERRED, EVERYTHING
from jitdb.operators.question import Feed, Live, Pages, Portion, Question
from jitdb.operators.running.answer import answer, log
from jitdb.operators.tasks.deferred import resolved, resolved_async

if TYPE_CHECKING:
    import asyncio

_NOTHING: Final[Iterator[Any]] = iter(())


class Reader:
    """An answer that ends, read a portion at a time. Its methods may be called from any thread.

    rest:  the records that were read and not taken yet (after paginate: one list of them)
    ended: whether it was closed, came to its end, or an error ended it
    """

    __slots__ = (
        "__weakref__", "_cancel", "_error", "_lock", "_pages", "_reading", "_units", "ended", "question", "rest",
    )  # fmt: skip

    def __init__(self, question: Question) -> None:
        _ = question.database  # complain now, not at the first page
        self.question = question  # an async loop resolves it before it reads
        self.ended = False
        self.rest: Iterator[Any] = _NOTHING
        self._units = 0  # in `rest`, before any was taken
        self._cancel = threading.Event()  # a scan that is under way looks at it
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
        """Whether tasks must be asked before the database."""
        return bool(self.question.operation.unresolved & DEFERRED) and not self.ended

    def failure(self) -> BaseException | None:
        """What went wrong in reading, once: to be raised."""
        with self._lock:
            error, self._error = self._error, None
        return error

    def read(self) -> bool:
        """Fill `rest`, or end; False when nothing is there now."""
        with self._reading:
            if self.ended or length_hint(self.rest):
                return True
            try:
                found = self._next()
            except BaseException as error:
                closed = self._cancel.is_set()
                self.close()
                if not (closed and isinstance(error, QueryCancelled)):  # else that was wanted
                    self._error = error
                found = True
        self._let_go()
        return found

    def watch(self, callback: Callable[[], object]) -> None:
        """Call back, from any thread, when read() may have something, or it was closed; one callback at a time."""

    def close(self) -> None:
        """Read no more. Never waits; a read that is under way stops soon."""
        self._end()
        self._let_go()

    def _end(self) -> None:
        """Drop what was read and not taken."""
        with self._lock:
            self.ended = True
            self._cancel.set()
            self._units -= len(list(self.rest))  # a loop that holds it finds it empty

    def _let_go(self) -> None:
        """Close the pages if it has ended. A read that is running does so itself."""
        if self.ended and self._reading.acquire(blocking=False):
            try:
                pages, self._pages = self._pages, None
                if pages is not None:
                    pages.close()
            finally:
                self._reading.release()

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


class LiveReader(Reader):
    """The feed of a live question: it does not end by itself, and has a cursor.

    The question begins where the log ends when this is made. Nothing is read then, and nothing that takes long is done:
    naming that place, and asking tasks, is left to the first read(). Until these have answered, a feed of everything
    keeps the place.
    """

    __slots__ = ("_feed", "_forked", "_is_begun", "_place", "_portion", "_unwatch", "_wake")

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self._portion: Portion | None = None  # that was read last
        self._place: str | None = None  # the place before the portion; None is where it began
        self._wake: Callable[[], object] = _nobody
        self._unwatch: Callable[[], object] = _nobody
        self._is_begun = not self.unresolved
        self._feed = self._open(question if self._is_begun else question.changed(operation=EVERYTHING))
        self._forked = False
        begins_anew(self)

    def begin_anew(self) -> None:
        """In a forked child: the parent's thread that looks for news is not here."""
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

    def watch(self, callback: Callable[[], object]) -> None:
        with self._lock:
            unwatch, self._wake, self._unwatch = self._unwatch, callback, _nobody
            if not self.ended:
                self._unwatch = self._feed.watch(callback)
        unwatch()

    def close(self) -> None:
        self._end()
        with self._lock:
            unwatch, self._unwatch = self._unwatch, _nobody
            feed, wake = self._feed, self._wake
        unwatch()
        feed.close()
        wake()

    def _next(self) -> bool:
        self._named()
        if self._forked or not self._is_begun:
            self._forked = False
            self._begin()
        feed = self._feed
        portion = feed.read()
        # Where nothing came, all that was looked at is done with, also what did not match behind the last record.
        place = feed.cursor if portion is None else None
        with self._lock:
            if not self.ended:
                self._place, self._portion, self._units = place or self._cursor(), portion, 0
        if portion is None:
            return False
        if self.question.debugging:
            log("%d records came", len(portion.data))
        self._keep(portion.data)
        return True

    def _begin(self) -> None:
        """Have the question's tasks answered, and watch anew."""
        if not self._is_begun:
            self.question = resolved(self.question, self._cancel)
            feed = self._open(self.question.changed(live=Live(after=self._named())))
            with self._lock:
                before, self._feed, self._is_begun = self._feed, feed, True
            before.close()
            if self.ended:
                feed.close()
        self.watch(self._wake)

    def _cursor(self) -> str | None:
        taken = self._units - length_hint(self.rest)
        if self._portion is None or not taken:
            return self._place
        return self._portion.cursor(taken if self.question.limit is None else len(self._portion.data))

    def _named(self) -> str:
        """The place, named for the first time: where it began. Call it while reading."""
        if self._place is None:
            self._place = self._feed.cursor
        return self._place

    def _open(self, question: Question) -> Feed:
        return question.database.feed(question, cancel=self._cancel)


def _nobody() -> None:
    pass


class _Answer:
    """A loop that ends when it is closed or thrown away."""

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
                    try:
                        self._wake.wait()
                    except KeyboardInterrupt as stopped:
                        say_stopped(stopped)
                        raise

    def __iter__(self) -> Self:
        return self

    def awaited(self) -> AsyncResults:
        """The same for `async for`, in place of this."""
        self.close()
        return AsyncResults(self._reader.question)

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
        self._resolving: asyncio.Task[Question] | None = None
        super().__init__(question)
        self._wake: LoopEvent | None = None
        self._turn: asyncio.Lock  # one task reads, or waits for records; the others wait for it
        self._reading: asyncio.Future[bool] | None = None  # the read in a thread that was not awaited to its end
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
        import asyncio

        reader = self._reader
        asking = self._resolving = asyncio.ensure_future(resolved_async(reader.question))
        if reader.ended:  # close() may not have seen it
            asking.cancel()
        try:
            await asyncio.wait([asking])
        except asyncio.CancelledError:
            asking.cancel()
            await asyncio.wait([asking])
            if self._ends():
                reader.close()
            raise
        if asking.cancelled():
            return False
        if asking.exception() is not None:
            reader.close()
        reader.question = asking.result()
        return True

    async def _read(self, wake: LoopEvent) -> bool:
        """Read in a thread; False when nothing is there, and the event will tell when there may be."""
        import asyncio
        from contextvars import copy_context

        # Cancelling must lose nothing of a live query: the thread goes on and leaves what it reads in the reader, and
        # the next call waits for it. The event was cleared before it began, and has been kept since.
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
        """Whether the answer ends; then it was cancelled and cannot be read on."""
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
        super().close()
        asking = self._resolving
        if asking is not None:
            call_in_loop(asking.get_loop(), asking.cancel)

    async def aclose(self) -> None:
        """The same; waits for nothing."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
