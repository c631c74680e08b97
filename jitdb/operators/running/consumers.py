"""Consumers that give the answer in one piece: to_result, to_callback, to_awaitable."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from jitdb.common.arguments import function
from jitdb.errors import QueryError
from jitdb.operators.nodes.operations import function_name
from jitdb.operators.query import Consumer, Part, Query
from jitdb.operators.running.answer import answer
from jitdb.operators.running.resolve import ready, settled_async


def to_result() -> Part:
    """The answer itself: an int after `count()`, a Page after `paginate(n)`, else a list.

    >>> from jitdb.operators import count, from_db, query
    >>> query(from_db(db), count(), to_result())
    5
    """
    return _TO_RESULT


def to_callback(callback: Callable[[Exception | None, Any], object]) -> Part:
    """Call `callback(error, result)`, with one of the two None, before `query` returns None.

    What the callback itself raises comes out of `query`.

    >>> from jitdb.operators import count, from_db, query
    >>> query(from_db(db), count(), to_callback(lambda error, result: print(error, result)))
    None 5
    """
    function("to_callback() takes a function (error, result)", callback, 2)
    return _ToCallback(callback)


def to_awaitable() -> Part:
    """A coroutine of what `to_result()` gives. The database works in a thread; cancelling stops it soon.

    >>> import asyncio
    >>> from jitdb.operators import count, from_db, query
    >>> asyncio.run(query(from_db(db), count(), to_awaitable()))
    5
    """
    return _TO_AWAITABLE


class _ToResult(Consumer):
    __slots__ = ()

    def consume(self, query: Query) -> Any:
        _answered_once(self, query)
        return answer(query)

    def __repr__(self) -> str:
        return "to_result()"


class _ToCallback(Consumer):
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[Exception | None, Any], object]) -> None:
        self.callback = callback

    def consume(self, query: Query) -> None:
        _answered_once(self, query)  # mistakes of the program, not of the database
        try:
            result = answer(query)
        except Exception as error:
            self.callback(error, None)
        else:
            self.callback(None, result)

    def __repr__(self) -> str:
        return f"to_callback({function_name(self.callback)})"


class _ToAwaitable(Consumer):
    __slots__ = ()

    def consume(self, query: Query) -> Any:
        _answered_once(self, query)
        return _answer_in_thread(query)

    def __repr__(self) -> str:
        return "to_awaitable()"


def _answered_once(consumer: Consumer, query: Query) -> None:
    ready(query)
    if query.live is not None:
        raise QueryError(
            f"{consumer!r} gives the answer in one piece, and a live query never ends: end it with to_iter(), or in an "
            "async program with to_async_iter()"
        )


async def _answer_in_thread(query: Query) -> Any:
    import asyncio  # here, because importing it takes longer than a question that needs no loop

    query = await settled_async(query)
    cancel = threading.Event()
    try:
        return await asyncio.to_thread(answer, query, cancel)
    finally:
        cancel.set()  # a thread cannot be stopped from outside: the scan looks at this now and then


_TO_RESULT: Final = _ToResult()
_TO_AWAITABLE: Final = _ToAwaitable()
