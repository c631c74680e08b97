"""A question is handed to its database, to be answered in one piece."""

from __future__ import annotations

import threading
import time
from typing import Any

from jitdb.errors import QueryError
from jitdb.operators.question import Question
from jitdb.operators.tasks.deferred import resolved_async


def log(message: str, *values: object) -> None:
    """Say something for debug() to the logger `jitdb`."""
    import logging  # here: most questions never need it

    logging.getLogger("jitdb").debug(message, *values)


def answer(question: Question, cancel: threading.Event | None = None) -> Any:
    """An int after count(), a Page after paginate(n), else a list."""
    if question.debugging:
        return _answer_loudly(question, cancel)
    return _answer(question, cancel)


async def answer_async(question: Question) -> Any:
    """The same; the database works in a thread."""
    import asyncio  # here, because importing it takes longer than a question that needs no loop

    question = await resolved_async(question)
    cancel = threading.Event()
    try:
        return await asyncio.to_thread(answer, question, cancel)
    finally:
        cancel.set()  # a thread cannot be stopped from outside: the scan looks at this now and then


def answerable(question: Question, consumer: str) -> Question:
    """The question; QueryError where it has no database, or never ends."""
    _ = question.database
    if question.live is not None:
        raise QueryError(
            f"{consumer} gives the answer in one piece, and a live query never ends",
            remedy="end it with to_iter(), or in an async program with to_async_iter()",
        )
    return question


def _answer(question: Question, cancel: threading.Event | None) -> Any:
    if question.counting:
        return question.database.count(question, cancel=cancel)
    page = question.database.paginate(question, cancel=cancel)
    return page.data if question.limit is None else page


def _answer_loudly(question: Question, cancel: threading.Event | None) -> Any:
    log("asking: %r", question)
    started = time.perf_counter()
    try:
        result = _answer(question, cancel)
    except BaseException as error:
        log("failed after %.3f ms: %r", (time.perf_counter() - started) * 1000, error)
        raise
    log("answered in %.3f ms: %s", (time.perf_counter() - started) * 1000, _size(question, result))
    return result


def _size(question: Question, result: Any) -> str:
    if question.counting:
        return f"a count of {result}"
    if question.limit is not None:
        return f"{len(result.data)} of {result.total} records"
    return f"{len(result)} records"
