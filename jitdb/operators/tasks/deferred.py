"""Operations that a task makes when the question is asked.

The leaf `Deferred` holds a task; consumers, and the engine where it is asked directly, put the operation that the task
gives in its place (`resolve`, `resolve_async`) before anything else sees the question. All tasks of a question run side
by side. An operation that a task gives may hold deferred ones again: these are the next round.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.arguments import function
from jitdb.common.asyncio_bridge import LoopEvent
from jitdb.common.forking import fork_safe
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.nodes.describe import function_name
from jitdb.operators.nodes.operations import DEFERRED, Everything, Identity, Operation
from jitdb.operators.question import Question
from jitdb.operators.tasks.round import Round, Task

if TYPE_CHECKING:
    import asyncio

MOST_ROUNDS: Final = 10  # tasks that give operations with tasks in them, within each other

_PATIENCE: Final = 0.05  # seconds between looks at `cancel`


def deferred(task: Task) -> Deferred:
    """The operation that `task` makes when the question is asked; a part of a query, or of an operation.

    `task(meta)` gives an operation, or None, which is everything(); or is an async function that does. `meta.db` is the
    database; `meta.live`, `descending`, `limit`, `start_from`, `sort_by` and `as_of` say how it is asked;
    `meta.aborted` and `meta.on_abort(callback)` tell that nobody waits any more.

    >>> from jitdb.operators import and_, equal, from_db, query, seqs, to_result, where
    >>> def in_my_index(meta):
    ...     return seqs([1, 3, 4])
    >>> query(from_db(db), deferred(in_my_index), where(equal("value.content.type", "post")), to_result()) == [
    ...     db.records[3]
    ... ]
    True
    >>> and_(deferred(in_my_index), equal("value.content.type", "post"))
    and_(deferred(in_my_index), equal('value.content.type', 'post'))
    """
    if isinstance(task, Operation):
        raise QueryError("deferred() takes a function (meta) that gives an operation; an operation needs no deferred()")
    function("deferred() takes a function (meta) that gives an operation", task, 1)
    return Deferred(task)


class Deferred(Operation):
    """What the task gives. Two are equal when they share the task, which is then asked once."""

    __slots__ = __match_args__ = ("task",)

    task: Task

    unresolved = DEFERRED

    def __init__(self, task: Task) -> None:
        self._keep(task)

    def _identify(self) -> Identity:
        return ("deferred", id(self.task))

    @property
    def function(self) -> tuple[str, str]:
        """The task."""
        return "a task", "write the operation that it gives"

    def __repr__(self) -> str:
        return f"deferred({function_name(self.task)})"


def resolve(question: Question, cancel: threading.Event | None = None) -> Operation:
    """The operation with what its tasks give in their places.

    Waits for the tasks: plain ones run in threads, async ones in one event loop, in a thread too. When `cancel` is set
    they are aborted, and QueryCancelled is raised. What a task raises comes out, and the others are aborted.
    """
    operation = question.operation
    for _ in range(MOST_ROUNDS):
        tasks = _tasks_of(operation)
        if not tasks:
            return operation
        operation = _put_in(operation, _results(tasks, question, cancel))
    return _resolved(operation)


async def resolve_async(question: Question) -> Operation:
    """The same for coroutines: async tasks are tasks of the running loop. When cancelled, it aborts the tasks."""
    operation = question.operation
    for _ in range(MOST_ROUNDS):
        tasks = _tasks_of(operation)
        if not tasks:
            return operation
        operation = _put_in(operation, await _results_async(tasks, question))
    return _resolved(operation)


def _results(tasks: Mapping[Identity, Task], question: Question, cancel: threading.Event | None) -> _Results:
    finished, loop = threading.Event(), _LoopThread()
    asked = Round(question, finished.set, loop.get)
    try:
        if cancel is None:
            asked.start(tasks)
            finished.wait()
        elif not cancel.is_set():
            asked.start(tasks)
            while not finished.wait(_PATIENCE) and not cancel.is_set():
                pass
        return _results_of(asked, finished.is_set())
    finally:
        asked.abort()
        loop.close()


async def _results_async(tasks: Mapping[Identity, Task], question: Question) -> _Results:
    import asyncio  # here, because importing it takes longer than a question that needs no loop

    finished = LoopEvent()
    asked = Round(question, finished.set, lambda: finished.loop)
    try:
        asked.start(tasks)
        await finished.wait()
        return _results_of(asked, True)
    finally:
        asked.abort()
        while asked.running:
            await asyncio.wait(asked.running)


def _results_of(asked: Round, finished: bool) -> _Results:
    if asked.error is not None:
        raise asked.error
    if not finished:
        raise QueryCancelled("the question was cancelled before its deferred operations were there")
    return asked.results


def _tasks_of(operation: Operation) -> dict[Identity, Task]:
    """The tasks below the operation, each once."""
    if not operation.unresolved & DEFERRED:
        return {}
    return {leaf.identity: leaf.task for leaf in operation.leaves() if isinstance(leaf, Deferred)}


def _put_in(operation: Operation, results: _Results) -> Operation:
    """The operation with the results in the places of their tasks."""

    def given(leaf: Operation) -> Operation:
        operation = results[leaf.identity]
        return Everything() if operation is None else operation

    return operation.replaced(given, DEFERRED)


def _resolved(operation: Operation) -> Operation:
    """The operation, in which no tasks may be left after so many rounds."""
    if operation.unresolved & DEFERRED:
        raise QueryError(f"deferred() tasks gave operations with deferred() in them, {MOST_ROUNDS} times over")
    return operation


class _LoopThread:
    """An event loop in a thread of its own, from when it is first wanted until it is closed."""

    def __init__(self) -> None:
        self._lock = fork_safe(threading.Lock())
        self._end: LoopEvent | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._end is None:
                ready = threading.Event()
                threading.Thread(target=self._run, args=(ready.set,), name="jitdb deferred", daemon=True).start()
                ready.wait()
            assert self._end is not None
            return self._end.loop

    def close(self) -> None:
        """Cancel what still runs in it; its thread ends when that has ended."""
        with self._lock:
            end = self._end
        if end is not None:
            end.set()

    def _run(self, ready: Callable[[], None]) -> None:
        import asyncio

        asyncio.run(self._serve(ready))

    async def _serve(self, ready: Callable[[], None]) -> None:
        self._end = LoopEvent()
        ready()
        await self._end.wait()


_Results = Mapping[Any, Operation | None]
