"""The tasks of deferred operations: how one is called, how its answer comes back, how it is told to stop.

A task is of one of two forms:

    task(meta) -> operation | None             runs in a thread
    async task(meta) -> operation | None       runs in an event loop

Tasks run side by side. A `Round` has those that were started together; each of them ends once, from any thread.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jitdb.common.arguments import failure
from jitdb.common.asyncio_bridge import call_in_loop
from jitdb.common.forking import fork_safe
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.nodes.describe import function_name, not_an_operation
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.question import Question

if TYPE_CHECKING:
    import asyncio

Task: TypeAlias = Callable[["Meta"], Operation | Awaitable[Operation | None] | None]

MOST_THREADS: Final = 32  # tasks of one round that run in threads at the same time


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
        """Whether the asker has gone away, or another task failed: nobody waits for this one any more."""
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
                import logging  # here: most questions never need it

                logging.getLogger("jitdb").exception("an abort callback of the task %s failed", self.name)


class Round:
    """Tasks that run side by side, each known by a key.

    `finished` is called, from any thread, when all have ended, and when one has failed.
    `loop` gives the event loop for async tasks; it is called, from any thread, when there is one.
    """

    def __init__(
        self, question: Question, finished: Callable[[], object], loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        self.results: dict[Any, Operation | None] = {}
        self.error: BaseException | None = None  # what the first that failed raised
        self.running: set[asyncio.Task[None]] = set()  # async tasks that have begun and not ended
        self._question = question
        self._finished = finished
        self._loop = loop
        self._lock = fork_safe(threading.Lock())
        self._aborted = False
        self._out: dict[Any, Meta] = {}  # those that have not ended
        self._waiting: deque[tuple[Any, Task, Meta]] = deque()  # for a thread

    def start(self, tasks: Mapping[Any, Task]) -> None:
        """Start them all."""
        from inspect import iscoroutinefunction

        self._out = {key: Meta(self._question, function_name(task)) for key, task in tasks.items()}
        for key, meta in list(self._out.items()):
            task = tasks[key]
            if iscoroutinefunction(task):
                self._spawn(key, partial(task, meta), meta)
            else:
                self._waiting.append((key, task, meta))
        for _ in range(min(len(self._waiting), MOST_THREADS)):
            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(self._work,), name="jitdb deferred", daemon=True).start()

    def abort(self) -> None:
        """Nobody waits any more: tell the tasks that have not ended. Those that have not begun never do."""
        with self._lock:
            self._aborted = True
            out, self._out = self._out, {}
        for meta in out.values():
            meta.abort()

    def _work(self) -> None:
        """Run tasks in this thread while there are any."""
        while not self._aborted:
            try:
                key, task, meta = self._waiting.popleft()
            except IndexError:
                return
            self._call(key, task, meta)

    def _call(self, key: Any, task: Task, meta: Meta) -> None:
        try:
            given = task(meta)
        except BaseException as error:
            self._end(key, error, None)
            return
        if isinstance(given, Awaitable):
            self._spawn(key, lambda: given, meta)
        else:
            self._end(key, None, given)

    def _spawn(self, key: Any, make: Callable[[], Awaitable[Any]], meta: Meta) -> None:
        """Have the event loop await what `make` gives."""

        async def run() -> None:
            import asyncio

            task = asyncio.current_task()
            assert task is not None
            meta.on_abort(lambda: call_in_loop(loop, task.cancel))
            try:
                given = await make()
            except asyncio.CancelledError as error:
                if meta.aborted:
                    raise
                cancelled = QueryCancelled("the task of a deferred() was cancelled, and not by who asked")
                cancelled.__cause__ = error
                self._end(key, cancelled, None)
            except BaseException as error:
                # Of StopIteration, Python makes a RuntimeError in a coroutine.
                ended = isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration)
                self._end(key, error.__cause__ if ended else error, None)
            else:
                self._end(key, None, given)

        def begin() -> None:
            if not meta.aborted:
                task = loop.create_task(run())
                self.running.add(task)
                task.add_done_callback(self.running.discard)

        with self._lock:
            if self._aborted:
                return
            loop = self._loop()
        call_in_loop(loop, begin)

    def _end(self, key: Any, error: BaseException | None, given: object) -> None:
        """Take the answer of a task."""
        with self._lock:
            meta = self._out.pop(key, None)
            if meta is None:
                return  # nobody waits for it any more
            if error is None and given is not None and not isinstance(given, Operation):
                error = QueryError(f"the task of a deferred() gives an operation or None: {not_an_operation(given)}")
            if error is None:
                self.results[key] = given  # type: ignore[assignment]
            else:
                failed = failure(f"the task {meta.name} of deferred()", error)
                self.error = failed if self.error is None else self.error
            finished = self.error is not None or not self._out
        if finished:
            self._finished()
