"""The one writer of a log: takes records, groups them, and sees that they become durable.

Two locks. `_lock` guards what is in memory and is held for microseconds; `_files` is held by whoever writes or syncs,
so that records can be appended meanwhile. `_files` is taken first. Observers are called with neither held.

After a failed write or fsync no one knows what is on the disk. The writer then refuses all further work; opening the
log again finds out. What was acknowledged before is not touched by that.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.words import shown
from jitdb.errors import InvalidOffset, InvalidRecord, LogClosed, LogError, LogWriteFailed, RecordTooLarge
from jitdb.log.blocks.layout import header_size, largest_record, round_up
from jitdb.log.blocks.packing import block_limit, is_zero, place, place_many
from jitdb.log.io import osfile
from jitdb.log.sidecar.deletions import Deletion
from jitdb.log.writing.committer import GROUP, Committer
from jitdb.log.writing.pending import Pending
from jitdb.log.writing.timer import FlushTimer

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from jitdb.log.compaction.copy import Copy
    from jitdb.log.opening.opened import Opened
    from jitdb.log.reading.extent import Extent
    from jitdb.log.reading.reader import RecordReader
    from jitdb.log.writing.encoded import EncodedGroup

    ChangeOver = Callable[[Opened], tuple[Extent, RecordReader]]

_NUMPY_FROM: Final = 512  # records; below, plain loops place them sooner than numpy is imported and called
_NOWHERE: Final = -1  # a limit that no record fits: the fast path then leads to the errors


class Writer:
    """Appends to one opened log, and deletes from it. Safe for threads."""

    def __init__(self, opened: Opened, extent: Extent, reader: RecordReader, flush_interval: float) -> None:
        self._opened = opened
        self._path = opened.path
        self._extent = extent
        self._reader = reader
        self._lock = threading.RLock()
        self._files = threading.RLock()
        self._refusal: LogError | None = None
        self._released = False  # whether close() has nothing left to do
        self._timer = FlushTimer(flush_interval, self._flush_in_time, f"jitdb flush {opened.path.name}")
        try:
            self._begin(Committer(opened))
        except OSError as error:
            raise LogWriteFailed(
                f"cannot be made ready for writing: {osfile.reason(error)}", path=self._path
            ) from error
        _writers.add(self)

    def _begin(self, committer: Committer) -> None:
        """Go on behind what is in the file."""
        self._committer = committer
        self._block_size = self._opened.meta.block_size
        self._header = header_size(self._block_size)
        self._largest = largest_record(self._block_size)
        self._writing: Pending | EncodedGroup | None = None  # handed over, not yet all in the file
        self._deleting: list[Deletion] = []
        end = committer.tail.end
        self._pending = Pending(end, self._block_size)
        self._push = self._pending.records.append
        self._idle = True  # nothing is pending, the timer sleeps
        self._end = end  # where the next record goes, if it fits the block
        if committer.damaged_block >= 0:
            self._pending.breaks.append(0)
            self._end = round_up(end, self._block_size)
        self._limit = block_limit(self._end, self._block_size)
        self._reader.unwritten = self._find

    # Appending

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

    def append_many(self, records: list[Any]) -> list[int]:
        """Append encoded records, all or (if one is invalid) none; their offsets. Raises as append does."""
        valid, lengths = self._valid(records)
        with self._lock:
            self._check()
            if not valid:
                return []
            if isinstance(lengths, list):
                placed = place(lengths, self._end, self._block_size)
            else:
                placed = place_many(lengths, self._end, self._block_size)
            self._take(valid, placed.breaks, placed.end)
        self._relieve()
        return placed.offsets

    def append_encoded(self, data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """See Log."""
        self._check_encoded(data, lengths)
        if not len(lengths):
            self._check()
            return lengths
        from jitdb.log.writing.encoded import EncodedGroup

        with self._files, self._lock:
            self._check()
            self._on_files(self._write)  # what waits goes before them
            group = EncodedGroup(data, lengths, self._end, self._block_size, bool(self._pending.breaks))
            fresh = Pending(group.end, self._block_size)
            push, limit = fresh.records.append, block_limit(group.end, self._block_size)
            self._wake()
            # No call from here on, see _take.
            self._writing = group
            self._pending = fresh
            self._push = push
            self._end = group.end
            self._limit = limit
            self._on_files(self._write)
        return group.offsets

    def append_transaction(self, records: list[Any]) -> list[int]:
        """Append encoded records that after a crash are there all or not at all; their offsets.

        They stand in one block. Raises RecordTooLarge if they do not fit one, else as append does.
        """
        valid, lengths = self._valid(records)
        lengths = list(map(int, lengths))
        size = sum(lengths) + len(lengths) * self._header
        if size - self._header > self._largest:
            raise RecordTooLarge(path=self._path, size=size - self._header, limit=self._largest)
        with self._lock:
            self._check()
            if not valid:
                return []
            begins = self._end + size > self._limit
            start = self._limit + self._header if begins else self._end
            placed = place(lengths, start, self._block_size)
            self._take(valid, [0] if begins else [], placed.end)
        self._relieve()
        return placed.offsets

    def append_whole(self, batches: Iterable[list[Any]], scratch: Path) -> None:
        """See Log."""
        from jitdb.log.writing.packed import Packed

        with self._files, self._lock:
            self._check()
            self._on_files(self._write, self._sync)
            packed = Packed(self._opened.fs, scratch, self._committer.tail, self._end, self._block_size)
            try:
                for batch in batches:
                    if not isinstance(batch, list):
                        raise InvalidRecord(f"a batch is a list of records, not {shown(batch)}", path=self._path)
                    valid, lengths = self._valid(batch)
                    if valid:
                        packed.add(valid, lengths)
                if packed.size:
                    self._on_files(lambda: self._committer.write_whole(packed), self._sync)
                    self._begin(self._committer)
            finally:
                packed.close()
        self._extent.notify()

    def _take(self, records: list[bytes], breaks: list[int], end: int) -> None:
        group, before = self._pending, len(self._pending.records)
        breaks = [before + number for number in breaks]
        limit = block_limit(end, self._block_size)
        # No call from here on: an interrupt finds all of it done or nothing.
        group.breaks += breaks
        group.records += records
        self._end = end
        self._limit = limit
        if self._idle:
            self._wake()

    def _wake(self) -> None:
        self._timer.wake()
        self._idle = False  # last: an interrupted wake() is called again by the next append

    def _valid(self, records: list[Any]) -> tuple[list[bytes], list[int] | npt.NDArray[np.int64]]:
        """The records as bytes, and their lengths: an array where there are many, which C loops then go over."""
        valid: list[bytes] = records
        if set(map(type, valid)) - {bytes}:
            valid = [self._bytes(record) for record in valid]
        if not valid:
            return [], []
        shortest, longest, lengths = _lengths(valid)
        self._check_lengths(shortest, longest)
        if 0 in bytes(map(itemgetter(0), valid)) and any(map(is_zero, valid)):
            raise self._all_zero()
        return valid, lengths

    def _check_encoded(self, data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> None:
        """As _valid."""
        if not len(lengths):
            return
        self._check_lengths(int(lengths.min()), int(lengths.max()))
        if int(lengths.sum()) > len(data):
            raise InvalidRecord(f"{int(lengths.sum()):,} bytes of records are not in {len(data):,}", path=self._path)
        starts = lengths.cumsum() - lengths
        for number in (data[starts] == 0).nonzero()[0].tolist():
            if not data[starts[number] : starts[number] + lengths[number]].any():
                raise self._all_zero()

    def _check_lengths(self, shortest: int, longest: int) -> None:
        if shortest <= 0:
            raise InvalidRecord("an empty record cannot be stored: its length, 0, ends a block", path=self._path)
        if longest > self._largest:
            raise RecordTooLarge(path=self._path, size=longest, limit=self._largest)

    def _all_zero(self) -> InvalidRecord:
        return InvalidRecord(
            "a record of nothing but zero bytes cannot be stored: that is how a deleted record looks",
            path=self._path,
        )

    def _bytes(self, record: Any) -> bytes:
        if isinstance(record, (bytes, bytearray, memoryview)):
            return bytes(record)
        raise InvalidRecord(f"a record is bytes, not {type(record).__name__}", path=self._path)

    def _find(self, offset: int) -> bytes | None:
        with self._lock:
            for group in (self._pending, self._writing):
                record = None if group is None else group.find(offset)
                if record is not None:
                    return record
        return None

    # Deleting

    def delete(self, offset: int) -> None:
        """Delete the record. Raises InvalidOffset, RecordDeleted, LogCorrupt, LogClosed, LogWriteFailed."""
        self._check()
        reader = self._reader
        number = reader.integer(offset)
        if number >= self._extent.durable_end:
            self.flush()
        length = len(reader.get(number))
        with self._lock:
            self._check()
            if reader is not self._reader:
                raise InvalidOffset("the log was compacted meanwhile: its offsets are others", path=self._path)
            if number in reader.hidden:
                reader.check(number)  # another thread was sooner: raises
            reader.hide(number)
            self._deleting.append(Deletion(number, length))
            if self._idle:
                self._wake()

    # Becoming durable

    def flush(self) -> None:
        """Return when all that was appended and deleted before is durable. Raises LogWriteFailed, LogClosed."""
        self._check()
        self._on_files(self._write, self._sync)
        self._extent.notify()

    def _relieve(self) -> None:
        """Write, but leave syncing to the next flush, when much has gathered."""
        if self._end - self._pending.start >= GROUP:
            self._on_files(self._write)

    def _on_files(self, *steps: Callable[[], None]) -> None:
        """Run the steps with the files to ourselves. Raises LogWriteFailed, after which nothing is written any more."""
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
        if self._writing is not None:  # an interrupt came before its end
            self._write_group(self._writing)
        with self._lock:
            group = self._pending
            if not group.records:
                self._idle = True
                return
            fresh = Pending(self._end, self._block_size)
            push = fresh.records.append
            # No call from here on, see _take.
            self._writing = group
            self._pending = fresh
            self._push = push
            self._idle = True  # the timer stays due: this is not synced yet
        self._write_group(group)

    def _write_group(self, group: Pending | EncodedGroup) -> None:
        self._committer.write(group)
        with self._lock:
            self._extent.written_end = self._committer.tail.end
            self._writing = None

    def _sync(self) -> None:
        committer = self._committer
        if committer.sync():
            self._extent.move(committer.durable.end, committer.durable.since(self._block_size))
        deletions = list(self._deleting)
        if deletions:
            committer.erase(deletions)
            with self._lock:
                del self._deleting[: len(deletions)]
                if not self._deleting:
                    self._reader.reveal()

    def _flush_in_time(self) -> None:
        with suppress(LogError):  # kept in _refusal: the next append, flush or close raises it
            self.flush()

    # Compacting

    @property
    def durable_end(self) -> int:
        """Just past the last durable record."""
        return self._extent.durable_end

    def begin_copy(self) -> Copy:
        """Begin to copy the log's live records. Raises LogWriteFailed, after which the writer goes on."""
        from jitdb.log.compaction.copy import Copy

        self.flush()
        with self._files:
            self._check()
            self._on_files(self._committer.check_alone)
            try:
                return Copy(self._opened, lambda: self._files)
            except OSError as error:
                raise self.as_it_was(error) from error

    def switch_to(self, copy: Copy, progress: Callable[[int], object], change_over: ChangeOver) -> None:
        """Copy what is left, and go on with the copy as the log. Appends and deletions wait meanwhile.

        `change_over` makes it the file that the log reads from.
        """
        with self._files, self._lock:
            self._on_files(self._write, self._sync, self._committer.check_alone)
            copy.finish(self._extent.durable_end, self._committer.tail_proof, progress)
            following = copy.seal(self._committer.change)
            copy.taken = True
            self._on_files(lambda: self._become(copy.take_place(following), change_over))

    def _become(self, opened: Opened, change_over: ChangeOver) -> None:
        self._committer.release()
        self._extent, self._reader = change_over(opened)
        self._opened.lock = None  # the old file is closed some time, and must not release it then
        self._opened = opened
        self._begin(Committer(opened))

    def give_up(self, copy: Copy) -> None:
        """Remove a copy that was not finished, unless it takes the log's place now."""
        with self._files, suppress(OSError):  # whoever opens the log next removes what is left of it
            if not copy.taken:
                copy.discard()

    def as_it_was(self, error: OSError) -> LogWriteFailed:
        """The error that tells of a compaction that did not come about."""
        return LogWriteFailed(
            f"compacting failed ({osfile.reason(error)}): the log is as it was, and can be written to",
            path=self._path,
        )

    # Repairing, replacing

    def mend(self, work: Callable[[Opened], Opened], change_over: ChangeOver, cut_short: str) -> None:
        """Let `work` change the log's files while nobody writes to them; it gives the log as it is then.

        Raises LogWriteFailed where that fails, after which nothing is written any more: who tries hears `cut_short`.
        """
        with self._files, self._lock:
            self._on_files(self._write, self._sync, self._committer.close)
            try:
                self._on_files(lambda: self._become(work(self._opened), change_over))
            except BaseException:
                self._refuse(LogWriteFailed(cut_short, path=self._path))
                raise

    # Ending

    def close(self) -> None:
        """Flush, and leave the log in order. Raises LogWriteFailed if records are lost; the files are closed anyway.

        Where it was interrupted, a second call closes them.
        """
        if self._released:
            return
        failure = self._refusal
        try:
            self._refuse(LogClosed("the log was closed", path=self._path))
            if failure is None:
                self._on_files(self._write, self._sync, self._committer.close)
                self._extent.notify()
            elif not isinstance(failure, LogClosed) and self._has_unsaved():
                raise failure.with_traceback(None)
        finally:
            self._timer.stop()
            _writers.discard(self)
            with self._files:
                self._committer.release()
            self._released = True

    def _has_unsaved(self) -> bool:
        return bool(self._pending.records or self._writing or self._deleting) or self._committer.has_unsynced

    @property
    def change(self) -> bytes:
        """See LogSource.foreign_change_token."""
        return self._committer.change

    def check_open(self) -> None:
        """Raises LogClosed where it was closed, or is the parent's."""
        if isinstance(self._refusal, LogClosed):
            self._check()

    def _check(self) -> None:
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)

    def _refuse(self, error: LogError) -> None:
        with self._lock:
            self._limit = _NOWHERE
            self._refusal = error

    def abandon(self) -> None:
        """In a forked child: the log, its lock and the unwritten records are the parent's."""
        self._lock = threading.RLock()
        self._files = threading.RLock()
        self._released = True
        self._refuse(
            LogClosed(
                "it was opened for writing before this process was forked", path=self._path, remedy="open it again"
            )
        )
        if self._opened.lock is not None:
            self._opened.lock.close()


def _lengths(records: list[bytes]) -> tuple[int, int, list[int] | npt.NDArray[np.int64]]:
    if len(records) < _NUMPY_FROM:
        lengths = list(map(len, records))
        return min(lengths), max(lengths), lengths
    import numpy as np

    many = np.fromiter(map(len, records), np.int64, len(records))
    return int(many.min()), int(many.max()), many


_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


@atexit.register
def _flush_all() -> None:
    """A program that ends without closing its logs loses nothing that it appended."""
    failures = []
    for writer in list(_writers):
        try:
            writer.close()
        except LogError as error:
            failures.append(error)
    if failures:
        raise failures[0]  # the others went through; Python shows this one


def _abandon_all() -> None:
    for writer in list(_writers):
        writer.abandon()
    _writers.clear()


os.register_at_fork(after_in_child=_abandon_all)
