"""Threads that work for one scan: as the library's pools, but loaded and started in a fraction of the time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")


class Task(Generic[T]):
    """A call that a worker makes."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._done = threading.Lock()
        self._done.acquire()
        self._is_cancelled = False
        self._result: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            if not self._is_cancelled:
                self._result = self._call()
        except BaseException as error:  # raised by result()
            self._error = error
        finally:
            self._done.release()

    def wait(self, seconds: float) -> bool:
        """Whether it is done, at the latest after so many seconds."""
        is_done = self._done.acquire(timeout=seconds)
        if is_done:
            self._done.release()
        return is_done

    def result(self) -> T:
        """What the call gave, once it is done. Raises what it raised."""
        with self._done:
            if self._error is not None:
                try:
                    raise self._error
                finally:
                    del self  # the traceback holds this frame, which must not hold the error
            return self._result  # type: ignore[return-value] # nobody asks a cancelled one

    def cancel(self) -> None:
        """Do not begin it any more."""
        self._is_cancelled = True


class Workers:
    """Up to `most` threads; each calls `start` first. Leaving waits until all have ended. With none, the caller works.

    Beside other scans of the process it has its share of the processors: more threads would wait for each other.
    """

    def __init__(self, most: int, name: str, start: Callable[[], object]) -> None:
        self._most = most
        self._name = name
        self._start = start
        self._threads: list[threading.Thread] = []
        self._at_work = 0  # of the threads
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[Task[Any] | None] = SimpleQueue()

    def submit(self, call: Callable[[], T]) -> Task[T]:
        task = Task(call)
        if not self._most:
            task.run()
            return task
        self._tasks.put(task)
        with self._lock:
            if self._at_work < self._share():
                # In this order: Ctrl-C between two lines, or while start() waits for the thread, leaves none unknown.
                thread = threading.Thread(target=self._work, name=f"{self._name}_{len(self._threads)}")
                self._threads.append(thread)
                thread.start()
                self._at_work += 1
        return task

    def _share(self) -> int:
        scans = len(_SCANS)
        return self._most if scans < 2 else max(1, min(self._most, (os.cpu_count() or 1) // scans))

    def _work(self) -> None:
        self._start()
        while (task := self._tasks.get()) is not None:
            task.run()
            del task  # and its result, while this waits for the next one
            with self._lock:
                if self._at_work > self._share():
                    self._at_work -= 1
                    return
        self._tasks.put(None)  # for the next one

    def __enter__(self) -> Workers:
        if self._most:
            _SCANS.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        _SCANS.discard(self)
        self._tasks.put(None)
        for thread in self._threads:
            with suppress(RuntimeError):  # its start was interrupted: if it begins at all, it ends at once
                thread.join()


_SCANS: Final[set[Workers]] = set()  # those that run in this process
os.register_at_fork(after_in_child=_SCANS.clear)  # a child has none of their threads
