"""Operations that a task makes when the question is asked.

The leaf `Deferred` holds a task. Before the database sees the question, `resolved` puts the operation that the task
gives in its place. All tasks of a question run side by side in one event loop: async ones as its tasks, others each in
a thread that the loop waits for. An operation that a task gives may hold deferred ones again: they are the next round.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jitdb.common.arguments import failure, function
from jitdb.common.asyncio_bridge import call_in_loop
from jitdb.common.forking import fork_safe
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.nodes.literals import function_name
from jitdb.operators.nodes.operation import DEFERRED, EVERYTHING, Identity, Operation
from jitdb.operators.question import Question
from jitdb.operators.tasks.live_seqs import given_so_far
from jitdb.operators.text.taken import operation_of

if TYPE_CHECKING:
    import asyncio  # elsewhere imported late: that takes longer than a question without tasks

Task: TypeAlias = Callable[["Meta"], str | Operation | Awaitable[str | Operation | None] | None]

MOST_THREADS: Final = 32  # tasks of a question that run in threads at the same time
MOST_ROUNDS: Final = 10  # of tasks that give operations with tasks in them

_PATIENCE: Final = 0.05  # seconds between looks at `cancel`
_LONGEST: Final = 1.0  # seconds to wait for aborted tasks to end


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


class Meta:
    """What a task is given: the database that is asked, how, and whether the answer is still wanted."""

    def __init__(self, question: Question, name: str) -> None:
        self.db = question.db
        self.live = question.live
        self.descending = question.descending
        self.limit = question.limit
        self.start_from = question.start_from
        self.sort_by = question.sort_by
        self.as_of = question.as_of
        self.name = name
        self._lock = fork_safe(threading.Lock())
        self._aborted = False
        self._callbacks: list[Callable[[], object]] = []

    def __repr__(self) -> str:
        return f"<Meta of {self.name}{', aborted' if self._aborted else ''}>"

    @property
    def aborted(self) -> bool:
        """Whether nobody waits for this task any more: the question was cancelled, or another task failed."""
        return self._aborted

    def on_abort(self, callback: Callable[[], object]) -> None:
        """Call back, once and from any thread, if the task is aborted before it is done; at once if it was."""
        with self._lock:
            if not self._aborted:
                self._callbacks.append(callback)
                return
        callback()

    def abort(self) -> None:
        """Tell the task. What a callback raises is logged, so that the other callbacks are called too."""
        with self._lock:
            self._aborted = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback()
            except Exception:
                import logging

                logging.getLogger("jitdb").exception("an abort callback of the task %s failed", self.name)


# --- resolving -------------------------------------------------------------------------------------------------------


def resolved(question: Question, cancel: threading.Event | None = None) -> Question:
    """The question with what its tasks give in their places. One that is not live takes live_seqs() as they stand.

    Waits for the tasks. When `cancel` is set they are aborted, and QueryCancelled is raised. What a task raises comes
    out, and the others are aborted.
    """
    if not question.operation.unresolved & DEFERRED:
        return _with_seqs(question)
    import asyncio

    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)  # in a thread: the caller's loop may be running
    loop = runner.get_loop()
    asking = loop.create_task(resolved_async(question))
    ended = fork_safe(threading.Event())

    async def wait() -> None:
        await asyncio.wait([asking])

    def run() -> None:
        with runner, suppress(KeyboardInterrupt, SystemExit):  # of a task: the caller gets it
            try:
                runner.run(wait())
            finally:
                ended.set()

    threading.Thread(target=run, name="jitdb deferred", daemon=True).start()
    try:
        while cancel is None or not cancel.is_set():
            if ended.wait(None if cancel is None else _PATIENCE):
                return asking.result()
        raise QueryCancelled("the question was cancelled before its deferred operations were there")
    finally:
        call_in_loop(loop, asking.cancel)
        ended.wait(_LONGEST)


async def resolved_async(question: Question) -> Question:
    """The same for coroutines: async tasks are tasks of the running loop. When cancelled, it aborts the tasks."""
    for round in count():
        if not question.operation.unresolved & DEFERRED:
            break
        if round == MOST_ROUNDS:
            raise QueryError(f"deferred() tasks gave operations with deferred() in them, {MOST_ROUNDS} times over")
        given = await _given(question)
        found = question.operation.replaced(lambda leaf: given[leaf.identity], DEFERRED)  # noqa: B023
        question = question.changed(operation=found)
    return _with_seqs(question)


def _with_seqs(question: Question) -> Question:
    if question.live is not None or not question.operation.unresolved:
        return question
    return question.changed(operation=given_so_far(question.operation))


async def _given(question: Question) -> dict[Identity, Operation]:
    """What the tasks in the question give, each asked once, by the identities of their leaves."""
    import asyncio

    threads, running = asyncio.Semaphore(MOST_THREADS), {}
    for task in dict.fromkeys(leaf.task for leaf in question.operation.leaves() if isinstance(leaf, Deferred)):
        meta = Meta(question, function_name(task))
        running[asyncio.ensure_future(_asked(task, meta, threads))] = Deferred(task).identity, meta
    given: dict[Identity, Operation] = {}
    try:
        while running:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                identity, meta = running.pop(ended)
                given[identity] = _operation_of(*ended.result(), meta)
        return given
    finally:
        for asked, (_, meta) in running.items():
            if not asked.done():
                meta.abort()
                asked.cancel()
        if running:
            await asyncio.wait(running)


def _operation_of(given: Any, error: BaseException | None, meta: Meta) -> Operation:
    if error is not None:
        raise failure(f"the task {meta.name} of deferred()", error)
    return EVERYTHING if given is None else operation_of(given, "the task of a deferred() gives an operation or None")


async def _asked(task: Task, meta: Meta, threads: asyncio.Semaphore) -> tuple[Any, BaseException | None]:
    """What the task gives, and what it raises: raised here, some errors would end the event loop."""
    import asyncio
    from inspect import iscoroutinefunction

    try:
        given, error = (task(meta), None) if iscoroutinefunction(task) else await _in_thread(task, meta, threads)
        return await given if isinstance(given, Awaitable) else given, error
    except asyncio.CancelledError as error:
        if meta.aborted:
            raise
        cancelled = QueryCancelled("the task of a deferred() was cancelled, and not by who asked")
        cancelled.__cause__ = error
        return None, cancelled
    except BaseException as error:
        # Of StopIteration, Python makes a RuntimeError in a coroutine.
        ended = isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration)
        return None, error.__cause__ if ended else error


async def _in_thread(task: Task, meta: Meta, threads: asyncio.Semaphore) -> tuple[Any, BaseException | None]:
    """The same in a thread of its own. When cancelled, it abandons the thread, which cannot be stopped."""
    import asyncio

    async with threads:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

        def run() -> None:
            found: tuple[Any, BaseException | None]
            try:
                found = task(meta), None
            except BaseException as error:
                found = None, error
            call_in_loop(loop, lambda: None if ended.done() else ended.set_result(found))

        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(run,), name="jitdb deferred", daemon=True).start()
        return await ended
