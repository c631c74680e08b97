"""The end of a query: it asks the database and hands over the answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from jitdb.common.arguments import function
from jitdb.operators.nodes.describe import function_name
from jitdb.operators.question import Question
from jitdb.operators.running.answer import answer, answer_async, answerable
from jitdb.operators.running.async_iterate import AsyncResults
from jitdb.operators.running.iterate import Results

R_co = TypeVar("R_co", covariant=True)


class Consumer(Generic[R_co]):
    """What ends a query, and what `query(...)` then gives."""

    __slots__ = ()

    def consume(self, question: Question) -> R_co:
        """Ask."""
        raise NotImplementedError


def to_result() -> Consumer[Any]:
    """The answer itself: an int after `count()`, a Page after `paginate(n)`, else a list.

    >>> from jitdb.operators import count, from_db, query
    >>> query(from_db(db), count(), to_result())
    5
    """
    return _TO_RESULT


def to_callback(callback: Callable[[Exception | None, Any], object]) -> Consumer[None]:
    """Call `callback(error, result)`, with one of the two None, before `query` returns None.

    What the callback itself raises comes out of `query`.

    >>> from jitdb.operators import count, from_db, query
    >>> query(from_db(db), count(), to_callback(lambda error, result: print(error, result)))
    None 5
    """
    function("to_callback() takes a function (error, result)", callback, 2)
    return _ToCallback(callback)


def to_awaitable() -> Consumer[Coroutine[Any, Any, Any]]:
    """A coroutine of what `to_result()` gives. The database works in a thread; cancelling stops it soon.

    >>> import asyncio
    >>> from jitdb.operators import count, from_db, query
    >>> asyncio.run(query(from_db(db), count(), to_awaitable()))
    5
    """
    return _TO_AWAITABLE


def to_iter() -> Consumer[Results]:
    """An iterator over the records, or after `paginate(n)` over lists of n. Pages are read when asked for.

    The answer is that of the moment of the first page, whatever happens to the log since. A loop that is
    left early should close the iterator (`with`, or `close()`); one that is thrown away closes itself.
    After `live()` it waits for more instead of ending (see Results).

    >>> from jitdb.operators import equal, from_db, query, where
    >>> with query(from_db(db), where(equal("value.content.type", "vote")), to_iter()) as votes:
    ...     [vote["value"]["sequence"] for vote in votes]
    [2]
    """
    return _TO_ITER


def to_async_iter() -> Consumer[AsyncResults]:
    """An async iterator over the records, or after `paginate(n)` over lists of n.

    The database works in a thread, one page at a time, and only when the loop asks for more. Cancelling the
    task, or `aclose()`, makes a scan that is under way stop soon, and waits for nothing.
    After `live()` it waits for more instead of ending, and needs no thread for that (see AsyncResults).

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


class _ToResult(Consumer[Any]):
    __slots__ = ()

    def consume(self, question: Question) -> Any:
        return answer(answerable(question, repr(self)))

    def __repr__(self) -> str:
        return "to_result()"


class _ToAwaitable(Consumer[Coroutine[Any, Any, Any]]):
    __slots__ = ()

    def consume(self, question: Question) -> Coroutine[Any, Any, Any]:
        return answer_async(answerable(question, repr(self)))

    def __repr__(self) -> str:
        return "to_awaitable()"


class _ToCallback(Consumer[None]):
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[Exception | None, Any], object]) -> None:
        self.callback = callback

    def consume(self, question: Question) -> None:
        answerable(question, repr(self))  # mistakes of the program, not of the database
        try:
            result = answer(question)
        except Exception as error:
            self.callback(error, None)
        else:
            self.callback(None, result)

    def __repr__(self) -> str:
        return f"to_callback({function_name(self.callback)})"


class _ToIter(Consumer[Results]):
    __slots__ = ()

    def consume(self, question: Question) -> Results:
        return Results(question)

    def __repr__(self) -> str:
        return "to_iter()"


class _ToAsyncIter(Consumer[AsyncResults]):
    __slots__ = ()

    def consume(self, question: Question) -> AsyncResults:
        return AsyncResults(question)

    def __repr__(self) -> str:
        return "to_async_iter()"


_TO_RESULT: Final = _ToResult()
_TO_AWAITABLE: Final = _ToAwaitable()
_TO_ITER: Final = _ToIter()
_TO_ASYNC_ITER: Final = _ToAsyncIter()
