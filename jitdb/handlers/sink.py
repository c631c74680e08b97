"""Values from any thread of a program become records of a log, durable soon, and nobody waits for the disk.

put() only puts into a queue. A thread takes all that is there, some ten times a second, and makes it durable. What
cannot be written (a full disk, another process that has the log) is kept and tried again; what finds the queue full is
counted, and the count becomes a record itself as soon as one can be written: nothing is dropped silently.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Self

from jitdb.common.arguments import file_path, whole_number
from jitdb.common.forking import begins_anew, fork_safe
from jitdb.common.words import counted
from jitdb.errors import InvalidArgument, LogClosed, LogWarning
from jitdb.handlers.batches import BatchWriter
from jitdb.handlers.plain import plain
from jitdb.log.writing.writer import check_interval

_AGAIN: Final = 1.0  # seconds until what could not be written is tried again


class RecordSink:
    """A log that a program writes beside its work. Safe for threads.

    path:     the log; it is made where there is none. `{pid}` in it stands for the number of the process: one process
              writes a log, so where several run (the workers of a server), each has its own
    codec, block_size: of a new log, as for Log
    capacity: records that may wait to be written; what finds so many is dropped, counted, and told of
    interval: seconds from a put() to the write

    A forked child goes on with a log of its own where the path has `{pid}`; else it finds the log locked, as any other
    process does. What waits at the end of the program is written then.

    Raises LogError where the log cannot be opened, CodecError, InvalidArgument.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        codec: str | None = None,
        block_size: int | None = None,
        capacity: int = 100_000,
        interval: float = 0.1,
    ) -> None:
        self._template, self._options = file_path(path), (codec, block_size)
        self._capacity = whole_number("capacity is a number of records", capacity, 1, InvalidArgument)
        self._interval = check_interval(interval)
        self._lock = fork_safe(threading.RLock())
        self._begin()
        self._writer.open()
        begins_anew(self)
        atexit.register(self.close)

    def _begin(self) -> None:
        self._writer = BatchWriter(self.path, *self._options)
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._taken = 0  # from the queue, and not durable yet
        self._hurry = threading.Event()  # somebody waits
        self._thread: threading.Thread | None = None
        self._marks: list[Future[None]] = []  # each stands in the queue behind what somebody waits for
        self._dropped = self._lost = 0
        self._has_told = False  # since all was well
        self._closing = False

    def begin_anew(self) -> None:
        """In a forked child: what waits is the parent's to write, and so is its log."""
        self._parents = self._writer  # kept: thrown away, its log would warn that nobody closed it
        self._begin()

    @property
    def path(self) -> Path:
        """The log that this process writes."""
        return Path(self._template.replace("{pid}", str(os.getpid())))

    def put(self, value: Mapping[str, Any]) -> bool:
        """Hand a value over, to be a record; False where it is dropped, because too many wait. Never waits.

        What in it no record can hold is told as text (plain.py), and what is no mapping is a `message`; of a value that
        is larger than a record can be, the beginnings of its texts are kept, with `truncated`, the bytes that it had.
        Raises LogClosed.
        """
        if self._closing:
            raise LogClosed("the sink was closed", path=self.path)
        if self._queue.qsize() + self._taken >= self._capacity:
            with self._lock:
                self._dropped += 1
            self._tell(
                f"more than {self._capacity:,} records wait to be written: those that come are dropped, and counted"
            )
            return False
        made = plain(value)
        self._queue.put(made if isinstance(made, dict) else {"timestamp": time.time() * 1000, "message": made})
        if self._thread is None:
            self._start()
        return True

    def flush(self, timeout: float | None = None) -> None:
        """Return when all that was put before is durable.

        Raises the error that keeps it from being written, TimeoutError after so many seconds.
        """
        thread = self._thread
        if thread is None or not thread.is_alive():
            return
        mark: Future[None] = Future()
        with self._lock:
            self._marks.append(mark)
        self._queue.put(mark)
        self._hurry.set()
        if not wait([mark], timeout).done:
            raise TimeoutError(f"{self.path}: not all is durable after {timeout} seconds")
        mark.result()

    def close(self, timeout: float | None = 10) -> None:
        """Write what waits, and close the log; a warning tells of what cannot be written, or not in so many seconds.

        Safe to call twice.
        """
        with self._lock:
            if self._closing:
                return
            self._closing = True
        atexit.unregister(self.close)
        thread = self._thread
        if thread is None:
            self._writer.close()
            return
        self._queue.put(None)
        self._hurry.set()
        thread.join(timeout)
        lost = self._lost + self._dropped + self._queue.qsize() + (self._taken if thread.is_alive() else 0)
        if lost:
            self._has_told = False
            self._tell(f"{counted(lost, 'record', 'records')} could not be written before the end")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # In the thread

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name=f"jitdb sink {self.path.name}", daemon=True)
                thread.start()
                self._thread = thread

    def _work(self) -> None:
        is_last = False
        while not is_last:
            first = self._queue.get()
            self._hurry.wait(self._interval)
            self._hurry.clear()  # before the queue is emptied: who sets it has put its mark there
            taken = self._take(first)
            is_last = None in taken
            values = [value for value in taken if isinstance(value, dict)]
            self._taken = len(values)
            self._write(values)
            self._taken = 0
            self._pass([mark for mark in taken if isinstance(mark, Future)])
        self._writer.close()
        self._fail(LogClosed("the sink was closed", path=self.path))

    def _take(self, first: Any) -> list[Any]:
        taken = [first]
        with suppress(Empty):
            while True:
                taken.append(self._queue.get_nowait())
        return taken

    def _write(self, values: list[dict[str, Any]]) -> None:
        """Make them durable, however often it takes."""
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            values = [*values, _note(dropped)]
        while values:
            try:
                self._writer.write(values)
            except Exception as failure:  # whatever it is: nobody else would tell of it, and the next may succeed
                self._tell(f"records cannot be written now, and wait: {failure}")
                if self._closing:
                    self._lost += len(values) - bool(dropped) + dropped
                    return
                self._fail(failure)
                self._hurry.wait(_AGAIN)
                self._hurry.clear()
            else:
                self._has_told = False
                return

    def _pass(self, marks: list[Future[None]]) -> None:
        """What was put before these is durable."""
        with self._lock:
            self._marks = [each for each in self._marks if each not in marks]
        for mark in marks:
            if not mark.done():  # else it was told of a failure
                mark.set_result(None)

    def _fail(self, failure: Exception) -> None:
        """Whoever waits learns why it takes longer."""
        with self._lock:
            marks, self._marks = self._marks, []
        for mark in marks:
            mark.set_exception(failure)

    def _tell(self, what: str) -> None:
        """Warn, once until all is well again."""
        if not self._has_told:
            self._has_told = True
            with suppress(LogWarning):  # where it is made an error, it would end the one who is told
                warnings.warn(LogWarning(what, path=self.path), stacklevel=3)


def _note(dropped: int) -> dict[str, Any]:
    """The record that tells of others."""
    return {
        "timestamp": time.time() * 1000,
        "level": "WARNING",
        "logger": "jitdb.handlers",
        "message": f"{counted(dropped, 'record was', 'records were')} dropped: too many waited to be written",
        "dropped": dropped,
    }
