"""A database, or a query, for async programs: the same words, whose answers are awaited. The event loop goes on.

There is no second set of methods: what is not a query yet is asked in a thread, whatever it is.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from functools import partial, wraps
from typing import Any, Final

from jitdb.common.asyncio_bridge import in_thread
from jitdb.operators.running.iterate import AsyncResults, Results
from jitdb.operators.summaries.asking import Summaries
from jitdb.operators.tasks.deferred import resolved_async

_END: Final = object()
_QUERIES: Final = ("Query", "Self")  # what methods give that ask nothing


class Aio:
    """`await db.aio.count("level == 'error'")`, `await db.query(…).aio.descending().page(10)`,
    `async for page in db.aio.pages(limit=100)`: each word of the database or query that this is of, and what it
    takes. A word that gives a query gives one like this; any other gives an Answer, to be awaited or gone through.
    Attributes are as they are.

    Cancelling the task, or a timeout, makes a scan that is under way stop soon.
    """

    __slots__ = ("_of",)

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # what Python and IPython look for
        if hasattr(Summaries, name) and not hasattr(self._of, "question"):
            return getattr(Aio(self._of.query()), name)
        method = getattr(self._of, name)
        if not inspect.ismethod(method):
            return method
        if method.__annotations__.get("return") in _QUERIES:
            return wraps(method)(lambda *said, **named: Aio(method(*said, **named)))
        return wraps(method)(lambda *said, **named: Answer(partial(_asked, self._of, name, said, named)))

    def __dir__(self) -> list[str]:
        return dir(self._of)

    def __repr__(self) -> str:
        return f"<aio of {self._of!r}>"

    def __await__(self) -> Generator[Any, None, Any]:
        return self._of.__await__()  # type: ignore[no-any-return]

    def __aiter__(self) -> AsyncResults:
        return AsyncResults(self._of.question)

    async def __aenter__(self) -> Aio:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Answer(Coroutine[Any, Any, Any]):
    """What a word of an Aio gives: nothing was asked yet. `await` gives the answer, as asyncio.run() does; `async for`
    goes through it.
    """

    __slots__ = ("_ask", "_run")

    def __init__(self, ask: Callable[[threading.Event], Any]) -> None:
        self._ask = ask
        self._run: Coroutine[Any, Any, Any] | None = None  # what asyncio.run(), or a task, goes on with

    def __await__(self) -> Generator[Any, None, Any]:
        return self._asked(threading.Event()).__await__()

    def send(self, value: Any) -> Any:
        self._run = self._run or self._asked(threading.Event())
        return self._run.send(value)

    def throw(self, *error: Any) -> Any:
        self._run = self._run or self._asked(threading.Event())
        return self._run.throw(*error)

    def close(self) -> None:
        if self._run is not None:
            self._run.close()

    async def _asked(self, cancel: threading.Event) -> Any:
        try:
            return await self._ask(cancel)
        except BaseException:
            cancel.set()  # a thread cannot be stopped from outside: the scan looks at this now and then
            raise

    async def __aiter__(self) -> AsyncIterator[Any]:
        cancel = threading.Event()
        found = await self._asked(cancel)
        if isinstance(found, Results):
            async for record in found.awaited():
                yield record
            return
        parts = iter(found)
        try:
            while (part := await in_thread(partial(next, parts, _END))) is not _END:
                yield part
        finally:
            cancel.set()


async def _asked(of: Any, name: str, said: tuple[Any, ...], named: dict[str, Any], cancel: threading.Event) -> Any:
    """What the method gives. Async tasks of a query run in this loop, all else in a thread."""
    if hasattr(of, "question"):
        question = await resolved_async(of.question)
        method = getattr(type(of)(question.changed(db=_Cancelled(question.database, cancel))), name)
    else:
        method = getattr(of, name)
        if "cancel" in inspect.signature(method).parameters:
            named = {"cancel": cancel, **named}
    return await in_thread(partial(method, *said, **named))


class _Cancelled:
    """The database, whose questions end when `cancel` is set."""

    def __init__(self, db: Any, cancel: threading.Event) -> None:
        self._db, self._cancel = db, cancel

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._db, name)
        also = {"cancel": self._cancel} if "cancel" in inspect.signature(method).parameters else {}
        return lambda question, **named: method(question.changed(db=self._db), **{**named, **also})
