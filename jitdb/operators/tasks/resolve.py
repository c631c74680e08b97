"""A question is resolved when no task has to make a part of it any more: then its database can be asked."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from jitdb.common.asyncio_bridge import call_in_loop
from jitdb.operators.nodes.operations import Operation
from jitdb.operators.question import Question
from jitdb.operators.tasks.deferred import resolve, resolve_async
from jitdb.operators.tasks.live_seqs import given_so_far

if TYPE_CHECKING:
    import asyncio


def resolved(question: Question, cancel: threading.Event | None = None) -> Question:
    """The question with what its tasks give in their places; waits for them. One that is not live takes live_seqs() as
    they stand.
    """
    if not question.operation.unresolved:
        return question
    return _with(question, resolve(question, cancel))


async def resolved_async(question: Question) -> Question:
    """The same in the running event loop."""
    if not question.operation.unresolved:
        return question
    return _with(question, await resolve_async(question))


class Resolving:
    """Resolves the question of an async iterator, which may be closed meanwhile."""

    __slots__ = ("_closed", "_task")

    def __init__(self) -> None:
        self._task: asyncio.Task[Question] | None = None
        self._closed = False

    async def resolve(self, question: Question) -> Question | None:
        """The resolved question; None when it was closed before. Its tasks are aborted then, or when cancelled."""
        import asyncio

        if self._closed:
            return None
        task = self._task = asyncio.ensure_future(resolved_async(question))
        try:
            await asyncio.wait([task])
        finally:
            if task.cancel():
                await asyncio.wait([task])
        return None if task.cancelled() else task.result()

    def close(self) -> None:
        """Abort, from any thread."""
        self._closed = True
        task = self._task
        if task is not None:
            call_in_loop(task.get_loop(), task.cancel)


def _with(question: Question, operation: Operation) -> Question:
    return question.changed(operation=operation if question.live is not None else given_so_far(operation))
