"""The one writer of a log: collects records, writes them in groups, and flushes these after an interval at the latest.

`_lock` guards what is in memory, for microseconds. `_files`, which is taken first, is held while files are written or
synced, so records can be appended meanwhile. Observers are called with neither held. After a failed write or fsync it
is unknown what is on the disk, so the writer refuses all further work until the log is opened again.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from pyroaring import BitMap64

from jitdb.common.forking import begins_anew, fork_safe
from jitdb.common.words import type_and_size
from jitdb.errors import (
    InvalidOffset,
    InvalidRecord,
    LogClosed,
    LogError,
    LogWriteFailed,
    RecordDeleted,
    RecordTooLarge,
)
from jitdb.log.blocks.block_format import block_limit, header_size, largest_record, place, round_up
from jitdb.log.io import osfile
from jitdb.log.opening.open_log import open_again
from jitdb.log.writing.committer import GROUP, Committer
from jitdb.log.writing.groups import EncodedGroup, Pending, RecordRules, ScratchBlocks

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from jitdb.log.opening.opened import Opened
    from jitdb.log.reading.record_reader import RecordReader


class FlushTimer:
    """Calls `flush` once, `interval` seconds after each wake()."""

    def __init__(self, interval: float, flush: Callable[[], None], name: str) -> None:
        self._interval, self._flush, self._name = interval, flush, name
        self._lock = fork_safe(threading.RLock())
        self._is_due = False
        self._threads: list[threading.Timer] = []  # unfinished ones: one waits, another one may be flushing
        self._stopped = False

    def wake(self) -> None:
        """Flush in `interval` seconds, unless that is due already."""
        with self._lock:
            if not self._is_due and not self._stopped:
                timer = threading.Timer(self._interval, self._run)
                timer.name, timer.daemon = self._name, True
                self._threads = [*(each for each in self._threads if each.is_alive()), timer]
                timer.start()
                self._is_due = True  # last: an interrupted wake() may be called again, and two flushes do no harm

    def stop(self) -> None:
        """No more calls; returns when a running call has ended (unless it is the caller's own)."""
        with self._lock:
            self._stopped = True
            threads = self._threads
        for thread in threads:
            thread.cancel()
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join()

    def _run(self) -> None:
        with self._lock:
            self._is_due = False
        self._flush()


_TOGETHER: Final = 1 << 12  # records that are read at once before they are deleted
_ERASED: Final = 1 << 16  # records that are made zeros with one mark in the journal of deletions, at most
_NOWHERE: Final = -1  # a limit that no record fits, so that append() takes the slow path, which raises


class Writer:
    """Appends to one opened log, and deletes from it. Safe for threads."""

    def __init__(self, reader: RecordReader, rebind: Callable[[Opened], RecordReader], flush_interval: float) -> None:
        """`rebind`, a method of the log, makes it read from another file, by the reader that it gives."""
        self._opened = opened = reader.opened
        self._path = opened.path
        self._extent = reader.extent
        self._reader = reader
        self._rebind = weakref.WeakMethod(rebind)  # a log that nobody holds any more is closed
        self._lock = threading.RLock()
        self._files = threading.RLock()
        self._refusal: LogError | None = None
        self.is_closing = False  # whether close() was called
        self._released = False  # whether it has nothing left to do
        self._timer = FlushTimer(flush_interval, self._flush_in_time, f"jitdb flush {opened.path.name}")
        try:
            self._begin(Committer(opened))
        except OSError as error:
            raise LogWriteFailed(
                f"cannot be made ready for writing: {osfile.reason(error)}", path=self._path
            ) from error
        _writers.add(self)
        begins_anew(self)

    def _begin(self, committer: Committer) -> None:
        self._committer = committer
        self._block_size = self._opened.meta.block_size
        self._header = header_size(self._block_size)
        self._rules = RecordRules(self._path, largest_record(self._block_size))
        self._writing: Pending | EncodedGroup | None = None  # handed over, not yet all in the file
        self._deleting: list[BitMap64] = []  # offsets of records that are not zeros yet, in the order they were deleted
        end = committer.tail.end
        self._pending = Pending(end, self._block_size)
        self._push = self._pending.records.append
        self._idle = True  # nothing is pending, and no flush is due
        self._end = end  # where the next record goes, if it fits the block
        if committer.damaged_block >= 0:
            self._pending.breaks.append(0)
            self._end = round_up(end, self._block_size)
        self._limit = block_limit(self._end, self._block_size)
        self._reader.unwritten, self._reader.flush = self._find, self.flush

    def append(self, record: Any) -> int:
        """Append one encoded record; its offset. Raises InvalidRecord, RecordTooLarge, LogClosed, LogWriteFailed."""
        if type(record) is bytes and record and record[0]:
            with self._lock:
                offset = self._end
                end = offset + self._header + len(record)
                if end <= self._limit:
                    try:
                        self._push(record)
                        self._end = end
                    except BaseException:  # KeyboardInterrupt between the two
                        self._end = self._pending.end()
                        raise
                    if self._idle:
                        self._wake()
                    return offset
        return self.append_many([record])[0]

    def append_many(self, records: list[Any], *, together: bool = False) -> list[int]:
        """Append encoded records, all or (if one is invalid) none; their offsets. Raises as append does.

        `together`: in one block, so that after a crash all are there or none. Raises RecordTooLarge if they do not
        fit.
        """
        valid, lengths = self._rules.valid(records)
        size = int(sum(lengths)) + (len(valid) - 1) * self._header if together else 0
        if size > self._rules.largest:
            raise RecordTooLarge(path=self._path, size=size, limit=self._rules.largest)
        with self._lock:
            self._check()
            if not valid:
                return []
            begins = self._end + self._header + size > self._limit and together
            placed = place(lengths, self._limit + self._header if begins else self._end, self._block_size)
            group, before = self._pending, len(self._pending.records)
            breaks = [before + number for number in ([0] if begins else placed.breaks)]
            limit = block_limit(placed.end, self._block_size)
            # No call from here on, so an interrupt finds all of this done or none.
            group.breaks += breaks
            group.records += valid
            self._end = placed.end
            self._limit = limit
            if self._idle:
                self._wake()
        if self._end - self._pending.start >= GROUP:  # write a full group now, sync it with the next flush
            self._on_files(self._write)
        return placed.offsets

    def append_encoded(self, data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        self._rules.check_encoded(data, lengths)
        if not len(lengths):
            self._check()
            return lengths
        with self._files, self._lock:
            self._check()
            self._on_files(self._write)  # records that wait come first
            group = EncodedGroup(data, lengths, self._end, self._block_size, bool(self._pending.breaks))
            self._wake()
            self._hand_over(group, group.end)
            self._on_files(self._write)
        return group.offsets

    def append_whole(self, batches: Iterable[list[Any]], scratch: Path) -> None:
        with self._files, self._lock:
            self._check()
            self._on_files(self._write, self._sync)
            packed = ScratchBlocks(self._opened.fs, scratch, self._committer.tail, self._end, self._block_size)
            try:
                for batch in batches:
                    if not isinstance(batch, list):
                        raise InvalidRecord(
                            f"a batch is a list of records, not {type_and_size(batch)}", path=self._path
                        )
                    valid, lengths = self._rules.valid(batch)
                    if valid:
                        packed.add_many(valid, lengths)
                if packed.tail.end > self._committer.tail.end:
                    self._on_files(lambda: self._committer.write_whole(packed), self._sync)
                    self._begin(self._committer)
            finally:
                packed.close()
        self._extent.notify()

    def _wake(self) -> None:
        self._timer.wake()
        self._idle = False  # last: an interrupted wake() is called again by the next append

    def _find(self, offset: int) -> bytes | None:
        with self._lock:
            for group in (self._pending, self._writing):
                record = None if group is None else group.find(offset)
                if record is not None:
                    return record
        return None

    def delete(self, offset: int) -> None:
        """Delete the record. Raises InvalidOffset, RecordDeleted, LogCorrupt, LogClosed, LogWriteFailed."""
        self._check()
        reader = self._reader
        number = reader.integer(offset)
        if number >= self._extent.durable_end:
            self.flush()
        reader.get(number)
        self._delete(reader, BitMap64([number]))

    def delete_many(self, offsets: Iterable[int], generation: int | None = None) -> None:
        """Delete the records, all or (if one is none) none; of this generation only. Raises as delete does."""
        import numpy as np

        from jitdb.log.reading.many import get_many, set_of

        self._check()
        reader = self._reader
        if generation not in (None, reader.opened.meta.generation):
            raise self._compacted()
        numbers = offsets.copy() if isinstance(offsets, BitMap64) else set_of(reader, offsets)
        if not numbers:
            return
        if numbers.max() >= self._extent.durable_end:
            self.flush()
        reader.in_range(numbers.max())
        each = iter(numbers)
        while len(some := np.fromiter(islice(each, _TOGETHER), np.int64)):
            records = get_many(reader, some)
            if None in records:
                offset = int(some[records.index(None)])
                raise RecordDeleted("this record was deleted", path=self._path, offset=offset)
        self._delete(reader, numbers)

    def _delete(self, reader: RecordReader, offsets: BitMap64) -> None:
        with self._lock:
            self._check()
            if reader is not self._reader:
                raise self._compacted()
            if not reader.hidden.isdisjoint(offsets):
                for number in offsets:
                    reader.check(number)  # another thread deleted it: raises
            reader.hide(offsets)
            self._deleting.append(offsets)
            if self._idle:
                self._wake()

    def _compacted(self) -> InvalidOffset:
        return InvalidOffset("the log was compacted meanwhile: its offsets are others", path=self._path)

    def flush(self) -> None:
        """Return when all that was appended and deleted before is durable. Raises LogWriteFailed, LogClosed."""
        self._check()
        self._on_files(self._write, self._sync)
        self._extent.notify()

    def _on_files(self, *steps: Callable[[], None]) -> None:
        """Run the steps while no other thread uses the files. Raises LogWriteFailed; nothing is written after that."""
        with self._files:
            if isinstance(self._refusal, LogWriteFailed):
                self._check()
            try:
                for step in steps:
                    step()
            except OSError as error:
                self._refuse(
                    LogWriteFailed(
                        f"writing failed ({osfile.reason(error)}): nothing more is written; what was acknowledged "
                        f"is safe, what was not may be lost",
                        path=self._path,
                        remedy="open the log again to go on",
                        offset=self._extent.durable_end,
                    )
                )
                raise self._refusal or error from error
            except LogWriteFailed as error:
                self._refuse(error)
                raise

    def _write(self) -> None:
        if self._writing is not None:  # an interrupt cut it short
            self._write_group(self._writing)
        with self._lock:
            group = self._pending
            if not group.records:
                self._idle = True
                return
            self._hand_over(group, self._end)
            self._idle = True  # the flush stays due: this is not synced yet
        self._write_group(group)

    def _hand_over(self, group: Pending | EncodedGroup, end: int) -> None:
        """Make this group, which ends at `end`, the one to be written, and begin another. `_lock` is held."""
        fresh = Pending(end, self._block_size)
        push = fresh.records.append
        limit = _NOWHERE if self._refusal is not None else block_limit(end, self._block_size)
        # No call from here on, see append_many.
        self._writing = group
        self._pending = fresh
        self._push = push
        self._end = end
        self._limit = limit

    def _write_group(self, group: Pending | EncodedGroup) -> None:
        self._committer.write(group)
        with self._lock:
            self._extent.written_end = self._committer.tail.end
            self._writing = None

    def _sync(self) -> None:
        committer = self._committer
        if committer.sync():
            self._extent.move(committer.durable.end, committer.durable.since(self._block_size))
        left = sum(map(len, list(self._deleting)))  # not those that others delete meanwhile
        while left > 0:
            some = array("Q", islice(chain.from_iterable(list(self._deleting)), _ERASED))
            left -= len(some)
            committer.erase(some)
            self._erased(some)

    def _erased(self, offsets: array[int]) -> None:
        """These, the first of those that are to be deleted, are zeros."""
        left, done = len(offsets), 0
        with self._lock:
            while done < len(self._deleting) and len(self._deleting[done]) <= left:
                left -= len(self._deleting[done])
                done += 1
            rest = [self._deleting[done] - BitMap64(offsets)] if left else []
            self._deleting[: done + len(rest)] = rest
            if not self._deleting:
                self._reader.reveal()

    def _flush_in_time(self) -> None:
        with suppress(LogError):  # kept in _refusal: the next append, flush or close raises it
            self.flush()

    @property
    def durable_end(self) -> int:
        return self._extent.durable_end

    @property
    def tail_proof(self) -> int | None:
        """CRC-32 of the last block up to the end, as it was written; None where others wrote in it, or nobody knows."""
        return self._committer.tail_proof

    @property
    def reader(self) -> RecordReader:
        return self._reader

    @contextmanager
    def exclusively(self) -> Iterator[Opened]:
        """Within, nobody else writes or deletes; all is durable, and the files are in place. Can be nested.

        An error in it leaves the log as it was, except in reopen(). Raises LogWriteFailed, LogClosed.
        """
        with self._files, self._lock:
            self._check()
            self._on_files(self._write, self._sync, self._committer.check_alone)
            yield self._opened

    def reopen(self, work: Callable[[Opened], object], cut_short: str) -> None:
        """Within exclusively(): let `work` replace the log's files, and go on with the new ones.

        Raises LogWriteFailed if that fails; after that each attempt to write raises it with `cut_short`.
        """
        self._on_files(self._committer.close)
        try:
            self._on_files(lambda: self._reopen(work))
        except BaseException as error:
            refusal = LogWriteFailed(cut_short, path=self._path)
            self._refuse(refusal)
            if isinstance(error, LogError) and not isinstance(error, LogWriteFailed):
                raise refusal from error  # the new files cannot be opened
            raise

    def _reopen(self, work: Callable[[Opened], object]) -> None:
        work(self._opened)
        opened = open_again(self._opened)
        self._committer.release()
        rebind = self._rebind()
        assert rebind is not None  # its log has called this
        self._reader = rebind(opened)
        self._opened, self._extent = opened, self._reader.extent
        self._begin(Committer(opened))

    def close(self) -> None:
        """Flush and close. Raises LogWriteFailed if records are lost; the files are closed anyway. After an interrupt,
        a second call closes the rest.
        """
        if self._released:
            return
        failure, end = self._refusal, self._committer.tail.end
        self.is_closing = True  # before anybody is told so
        try:
            self._refuse(LogClosed("the log was closed", path=self._path))
            if failure is None:
                self._on_files(self._write, self._sync, self._committer.close)
                self._extent.notify()
            elif not isinstance(failure, LogClosed) and (
                self._pending.records or self._writing or self._deleting or end != self._committer.durable.end
            ):
                raise failure.with_traceback(None)
        finally:
            self._timer.stop()
            _writers.discard(self)
            with self._files:
                self._committer.release()
            self._released = True

    def check_open(self) -> None:
        """Raises LogClosed if it was closed, or is the parent process's."""
        if isinstance(self._refusal, LogClosed):
            self._check()

    def _check(self) -> None:
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)

    def _refuse(self, error: LogError) -> None:
        with self._lock:
            self._limit = _NOWHERE
            self._refusal = error

    def begin_anew(self) -> None:
        """In a forked child: the log, its lock and the unwritten records are the parent's."""
        self._lock = threading.RLock()
        self._files = threading.RLock()
        self._released = True
        _writers.discard(self)
        self._refuse(
            LogClosed(
                "it was opened for writing before this process was forked", path=self._path, remedy="open it again"
            )
        )
        if self._opened.lock is not None:
            self._opened.lock.close()


_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


@atexit.register
def _flush_all() -> None:
    """Flush the logs of a program that ends without closing them."""
    failures = []
    for writer in list(_writers):
        try:
            writer.close()
        except LogError as error:
            failures.append(error)
    if failures:
        raise failures[0]  # Python shows it
