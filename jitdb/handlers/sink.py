"""Values from any thread of a program become durable records of a log, without waiting for the disk.

put() only adds to a queue, which a thread empties about ten times a second. What cannot be written (a full disk, a
locked log) is kept and tried again. Records that find the queue full are counted, and the count is logged as soon as
possible: nothing is dropped silently.
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
from math import isfinite
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Self

from jitdb.common.arguments import check_interval, file_path, whole_number
from jitdb.common.forking import begins_anew, fork_safe
from jitdb.common.words import counted
from jitdb.errors import InvalidArgument, LogClosed, LogError, LogWarning
from jitdb.handlers.plain import plain, shortened, told
from jitdb.log import Log
from jitdb.log.blocks.block_format import largest_record
from jitdb.log.io.filenames import followed

_AGAIN: Final = 1.0  # seconds until a failed write is tried again


class RecordSink:
    """Writes a log beside the work of a program. Safe for threads.

    path:     the log; made if there is none. `{pid}` in it stands for the number of the process: only one process can
              write a log, so each worker of a server needs its own
    codec, block_size: of a new log, as for Log
    capacity: records that may wait to be written; more are dropped and counted, with a warning
    interval: seconds from a put() to the write

    A forked child writes a log of its own if the path has `{pid}`; else it finds the log locked. At the end of the
    program, waiting records are written.

    Raises LogError if the log cannot be opened, CodecError, InvalidArgument.
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
        self._hurry = threading.Event()  # somebody waits for a flush
        self._thread: threading.Thread | None = None
        self._marks: list[Future[None]] = []  # queued behind the records of each flush()
        self._dropped = self._lost = 0
        self._has_told = False  # since the last success
        self._closing = False

    def begin_anew(self) -> None:
        """In a forked child: the parent writes its waiting records, and its log."""
        self._parents = self._writer  # kept, or its log would warn that nobody closed it
        self._begin()

    @property
    def path(self) -> Path:
        """The log that this process writes."""
        return Path(self._template.replace("{pid}", str(os.getpid())))

    def put(self, value: Mapping[str, Any]) -> bool:
        """Queue a value as a record and return at once; False if it is dropped because too many wait. Raises LogClosed.

        Values that no record can hold become text (plain.py); what is no mapping becomes a `message`. Of a value too
        large for a record, the beginnings of its texts are kept, with its size as `truncated`.
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
        """Return when all that was put before is durable. Raises the error of writing, or TimeoutError."""
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
        """Write waiting records and close the log; a warning counts those that cannot be written in time. May be called
        twice.
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
            self._hurry.clear()  # before emptying the queue, which holds the marks of those who set it
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
            except Exception as failure:  # any: nobody else would report it, and the next try may succeed
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
        """Report that all before these is durable."""
        with self._lock:
            self._marks = [each for each in self._marks if each not in marks]
        for mark in marks:
            if not mark.done():  # else it got a failure
                mark.set_result(None)

    def _fail(self, failure: Exception) -> None:
        """Raise this in all flush() calls that wait."""
        with self._lock:
            marks, self._marks = self._marks, []
        for mark in marks:
            mark.set_exception(failure)

    def _tell(self, what: str) -> None:
        """Warn, once until all is well again."""
        if not self._has_told:
            self._has_told = True
            with suppress(LogWarning):  # made an error, it would end the caller
                warnings.warn(LogWarning(what, path=self.path), stacklevel=3)


def _note(dropped: int) -> dict[str, Any]:
    """The record about dropped ones."""
    return {
        "timestamp": time.time() * 1000,
        "level": "WARNING",
        "logger": "jitdb.handlers",
        "message": f"{counted(dropped, 'record was', 'records were')} dropped: too many waited to be written",
        "dropped": dropped,
    }


class BatchWriter:
    """Writes batches to the log at `path`, each once and whole, also through failures, after which it opens the log
    again.

    For one thread.
    """

    def __init__(self, path: Path, codec: str | None, block_size: int | None) -> None:
        self._path, self._codec, self._block_size = path, codec, block_size
        self._log: Log | None = None
        self._since: int | None = None  # offset of the last durable record
        self._records: list[bytes] | None = None  # of a failed batch: those that are not in the log

    def open(self) -> Log:
        """The log. Raises LogError, CodecError."""
        if self._log is None:
            followed(os.fspath(self._path), is_written=True)
            self._log = Log(self._path, codec=self._codec, block_size=self._block_size)
            if self._since is None:
                self._since = self._log.since
            elif self._records:
                self._pass_over(self._log, self._records)
        return self._log

    def write(self, values: list[dict[str, Any]]) -> None:
        """Return when all of them are durable. Raises LogError: call it again with the same values until it succeeds.
        What had reached the log is not written twice.
        """
        log = self.open()
        if self._records is None:
            self._records = [_encoded(value, log) for value in values]
        try:
            _append(log, self._records)
            log.flush()
        except LogError:
            self.close()
            raise
        self._since, self._records = log.since, None

    def close(self) -> None:
        """Close the log, if it is open."""
        log, self._log = self._log, None
        if log is not None:
            with suppress(LogError):  # of a failed write, which was reported
                log.close()

    def _pass_over(self, log: Log, records: list[bytes]) -> None:
        """Forget the records that are in the log already."""
        there = 0
        for record in log.stream(gt=self._since, raw=True):
            if there == len(records) or record.value != records[there]:
                break
            there += 1
        del records[:there]


def _append(log: Log, records: list[bytes]) -> None:
    if records:
        from jitdb.log.codecs.fields.located import RecordBatch  # late: it imports numpy

        batch = RecordBatch.of(records)
        log.append_encoded(batch.buffer, batch.lengths)


def _encoded(value: dict[str, Any], log: Log) -> bytes:
    """The record of this value; if it does not fit, of a shorter one that says so."""
    largest = largest_record(log.block_size)
    try:
        record = log.codec.encode(value)
    except Exception as error:  # whatever a codec raises: other records wait
        value = _refused(value, error, largest)
        record = log.codec.encode(value)
    if len(record) <= largest:
        return record
    size = largest
    while len(record) > largest:
        size //= 2
        record = log.codec.encode({**shortened(value, size), "truncated": len(record)})
    return record


def _refused(value: dict[str, Any], error: Exception, largest: int) -> dict[str, Any]:
    when = value.get("timestamp")
    now = float(when) if isinstance(when, int | float) and isfinite(when) else time.time() * 1000
    return {"timestamp": now, "message": repr(value)[: largest // 8], "refused": told(str(error))[: largest // 8]}
