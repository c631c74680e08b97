"""A question is handed to its database, to be answered in one piece."""

from __future__ import annotations

import threading
import time
from typing import Any

from jitdb.common.asyncio_bridge import in_thread
from jitdb.errors import QueryError
from jitdb.operators.question import Question
from jitdb.operators.tasks.deferred import resolved_async


def log(message: str, *values: object) -> None:
    """Say something for debug() to the logger `jitdb`."""
    import logging  # here: most questions never need it

    logging.getLogger("jitdb").debug(message, *values)


def answer(question: Question, cancel: threading.Event | None = None) -> Any:
    """An int after count(), what a summary gives, a Page after paginate(n), else a list."""
    if question.debugging:
        log("asking: %r", question)
    started = time.perf_counter()
    try:
        if question.counting:
            result: Any = question.database.count(question, cancel=cancel)
            size = f"a count of {result}"
        elif question.summary is not None:
            result = question.database.summarize(question, cancel=cancel)
            size = f"{question.summary.name} of {result.total} records"
        else:
            result = question.database.paginate(question, cancel=cancel)
            size = f"{len(result.data)} of {result.total} records"
    except BaseException as error:
        if question.debugging:
            log("failed after %.3f ms: %r", (time.perf_counter() - started) * 1000, error)
        raise
    if question.debugging:
        log("answered in %.3f ms: %s", (time.perf_counter() - started) * 1000, size)
    return result if question.is_one or question.limit is not None else result.data


async def answer_async(question: Question) -> Any:
    """The same; the database works in a thread."""
    question = await resolved_async(question)
    cancel = threading.Event()
    try:
        return await in_thread(lambda: answer(question, cancel))
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
