"""Operations that a task makes when the question is asked.

The leaf `Deferred` holds a task; consumers, and the engine where it is asked directly, put the operation that the task
gives in its place (`resolved`) before anything else sees the question. All tasks of a question run side
by side. An operation that a task gives may hold deferred ones again: these are the next round.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.arguments import function
from jitdb.common.asyncio_bridge import LoopEvent, call_in_loop
from jitdb.common.forking import fork_safe
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.nodes.describe import function_name
from jitdb.operators.nodes.operation import DEFERRED, Everything, Identity, Operation
from jitdb.operators.question import Question
from jitdb.operators.tasks.live_seqs import given_so_far
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

    def _identify(self) -> Identity:
        return ("deferred", id(self.task))

    @property
    def function(self) -> tuple[str, str]:
        """The task."""
        return "a task", "write the operation that it gives"

    def __repr__(self) -> str:
        return f"deferred({function_name(self.task)})"


def resolved(question: Question, cancel: threading.Event | None = None) -> Question:
    """The question with what its tasks give in their places. One that is not live takes live_seqs() as they stand.

    Waits for the tasks: plain ones run in threads, async ones in one event loop, in a thread too. When `cancel` is set
    they are aborted, and QueryCancelled is raised. What a task raises comes out, and the others are aborted.
    """
    for round in count():
        tasks = _tasks_of(question, round)
        if not tasks:
            break
        question = _put_in(question, _results(tasks, question, cancel))
    return _with_seqs(question)


async def resolved_async(question: Question) -> Question:
    """The same for coroutines: async tasks are tasks of the running loop. When cancelled, it aborts the tasks."""
    for round in count():
        tasks = _tasks_of(question, round)
        if not tasks:
            break
        question = _put_in(question, await _results_async(tasks, question))
    return _with_seqs(question)


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


def _tasks_of(question: Question, round: int) -> dict[Identity, Task]:
    """The tasks in the question, each once; of the round of this number, from 0."""
    if not question.operation.unresolved & DEFERRED:
        return {}
    if round == MOST_ROUNDS:
        raise QueryError(f"deferred() tasks gave operations with deferred() in them, {MOST_ROUNDS} times over")
    return {leaf.identity: leaf.task for leaf in question.operation.leaves() if isinstance(leaf, Deferred)}


def _put_in(question: Question, results: _Results) -> Question:
    """The question with the results in the places of their tasks."""
    given = {key: Everything() if operation is None else operation for key, operation in results.items()}
    return question.changed(operation=question.operation.replaced(lambda leaf: given[leaf.identity], DEFERRED))


def _with_seqs(question: Question) -> Question:
    if question.live is not None or not question.operation.unresolved:
        return question
    return question.changed(operation=given_so_far(question.operation))


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
