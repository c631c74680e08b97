"""The tasks of deferred operations: how one is called, how its answer comes back, how it is told to stop.

A task is of one of four forms, told apart by the parameters that it must be given:

    task(meta) -> operation | None             runs in a thread
    async task(meta) -> operation | None       runs in an event loop
    task(meta, cb)                             runs in a thread; cb(error, operation) is called later, from anywhere
    task(meta, cb, on_abort)                   the same; on_abort is meta.on_abort

Tasks run side by side. A `Round` has those that were started together; each of them settles once, from any thread.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from jitdb.common.arguments import failure
from jitdb.common.asyncio_bridge import call_in_loop
from jitdb.common.forking import fork_safe
from jitdb.common.words import shown
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators.nodes.operations import Operation, function_name, not_an_operation

if TYPE_CHECKING:
    import asyncio

    from jitdb.operators.database import AsOf, Database, SortBy
    from jitdb.operators.query import Live

Task: TypeAlias = Callable[..., Any]

MOST_THREADS: Final = 32  # tasks of one round that run in threads at the same time


class Shape(NamedTuple):
    """How the answer shall come to the question that a task makes a part of."""

    live: Live | None = None  # where a live query begins; None in a question that is answered once
    descending: bool = False
    limit: int | None = None  # records in a page
    start_from: int = 0
    sort_by: SortBy = "declared"
    as_of: AsOf = None


ONCE: Final = Shape()


class Meta:
    """What a task is given: the database that is asked, how, and whether the answer is still wanted."""

    def __init__(self, db: Database | None, name: str, shape: Shape) -> None:
        self.db = db
        self.live, self.descending, self.limit, self.start_from, self.sort_by, self.as_of = shape
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


def form_of(task: Any) -> int:
    """How many arguments the task is given, 1 to 3; QueryError where it cannot be called so."""
    if not callable(task):
        hint = "; an operation needs no deferred()" if isinstance(task, Operation) else ""
        raise QueryError(f"deferred() takes a function (meta) that gives an operation, not {shown(task)}{hint}")
    import inspect

    try:
        parameters = inspect.signature(task).parameters.values()
    except (TypeError, ValueError):
        return 1  # a function of C that does not tell
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = sum(each.default is each.empty for each in positional)
    takes = len(positional) or any(each.kind is each.VAR_POSITIONAL for each in parameters)
    wanting = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if not takes or needed > 3 or wanting:
        raise QueryError(
            f"the task of deferred() takes (meta), (meta, cb) or (meta, cb, on_abort); {function_name(task)} "
            f"takes {inspect.signature(task)}"
        )
    if needed > 1 and inspect.iscoroutinefunction(task):
        raise QueryError(
            f"the async task {function_name(task)} of deferred() takes (meta) alone, and returns its operation"
        )
    return max(1, needed)


class Round:
    """Tasks that run side by side, each known by a key.

    `finished` is called, from any thread, when all have settled, and when one has failed.
    `loop` gives the event loop for async tasks; it is called, from any thread, when there is one.
    """

    def __init__(
        self,
        db: Database | None,
        shape: Shape,
        finished: Callable[[], object],
        loop: Callable[[], asyncio.AbstractEventLoop],
    ) -> None:
        self.results: dict[Any, Operation | None] = {}
        self.error: BaseException | None = None  # what the first that failed raised
        self.running: set[asyncio.Task[None]] = set()  # async tasks that have begun and not ended
        self._db = db
        self._shape = shape
        self._finished = finished
        self._loop = loop
        self._lock = fork_safe(threading.Lock())
        self._aborted = False
        self._out: dict[Any, Meta] = {}  # those that have not settled
        self._waiting: deque[tuple[Any, Task, Meta]] = deque()  # for a thread

    def start(self, tasks: Mapping[Any, Task]) -> None:
        """Start them all."""
        from inspect import iscoroutinefunction

        self._out = {key: Meta(self._db, function_name(task), self._shape) for key, task in tasks.items()}
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
        """Nobody waits any more: tell the tasks that have not settled. Those that have not begun never do."""
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
        form = form_of(task)
        try:
            if form == 1:
                given = task(meta)
            elif form == 2:
                given = task(meta, partial(self._called_back, key))
            else:
                given = task(meta, partial(self._called_back, key), meta.on_abort)
        except BaseException as error:
            if self._settle(key, error, None):
                raise  # its answer came before: nobody would learn of this
            return
        if form == 1 and isinstance(given, Awaitable):
            self._spawn(key, lambda: given, meta)
        elif form == 1:
            self._settle(key, None, given)
        elif isinstance(given, Awaitable):
            self._settle(key, QueryError(_ONE_WAY.format(function_name(task))), None)

    def _called_back(self, key: Any, error: object = None, operation: object = None) -> None:
        """The callback of a task."""
        if error is not None and not isinstance(error, BaseException):
            error = QueryError(f"a task of deferred() failed: {error}")
        if self._settle(key, error, operation):
            raise QueryError("the callback of a deferred() task is called once, and this was the second time")

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
                self._settle(key, cancelled, None)
            except BaseException as error:
                # Of StopIteration, Python makes a RuntimeError in a coroutine.
                ended = isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration)
                self._settle(key, error.__cause__ if ended else error, None)
            else:
                self._settle(key, None, given)

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

    def _settle(self, key: Any, error: BaseException | None, given: object) -> bool:
        """Take the answer of a task; True if it had given one before."""
        with self._lock:
            meta = self._out.pop(key, None)
            if meta is None:
                return not self._aborted
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
        return False


_ONE_WAY: Final = "the task {} of deferred() calls back and is async too: an async task takes (meta) alone and returns"
