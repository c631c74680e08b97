"""The log: append records, get them back, stream them, delete them. This class is its face; the work is done around it.

open_log.py    what is this file, where does it end      writer.py     appends, deletions, flushes
reader.py     single records by offset                  stream.py     records in order
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TypedDict, TypeVar, Unpack, overload

from jitdb.common import js_aliases
from jitdb.common.arguments import file_path, flag, function, is_list, progress_function
from jitdb.common.forking import begins_anew, fork_safe
from jitdb.common.words import shown
from jitdb.errors import DecodeError, InvalidArgument, InvalidRecord, LogClosed, LogCorrupt, LogReadOnly
from jitdb.log.codecs import Codec
from jitdb.log.maintained import MaintainedSource
from jitdb.log.opening.follow import follow
from jitdb.log.opening.identity import stored_meta
from jitdb.log.opening.open_log import open_log
from jitdb.log.opening.opened import Opened
from jitdb.log.opening.options import OpenOptions
from jitdb.log.reading.extent import Extent, Observer
from jitdb.log.reading.follower import Follower
from jitdb.log.reading.reader import RecordReader
from jitdb.log.record import Batch, Record, Stats
from jitdb.log.writing.timer import check_interval

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.compaction.compact import Compaction
    from jitdb.log.reading.live import LiveStream
    from jitdb.log.reading.scan import Scan
    from jitdb.log.repair.report import LogReport, RepairReport
    from jitdb.log.sidecar.removals import Removals
    from jitdb.log.writing.writer import Writer

T = TypeVar("T")


class Wanted(TypedDict, total=False):
    """Which records a stream gives, and how: the keywords of Log.stream."""

    gt: int | None
    gte: int | None
    lt: int | None
    lte: int | None
    limit: int | None
    raw: bool


class Log(MaintainedSource):
    """A file of records, appended to by one writer, read by any number.

    >>> import tempfile
    >>> with Log(tempfile.mkdtemp() + "/my.log") as log:
    ...     offset = log.append({"type": "post", "text": "hello"})
    ...     log.flush()
    ...     log.get(offset)
    {'type': 'post', 'text': 'hello'}

    `codec` ("msgpack", "bipf", "raw", or a Codec) and `block_size` (bytes, 16 to 16 MiB) are kept in the sidecar folder
    `NAME.jitdb/`; they are given for a new log (msgpack and 65,536 if not) and left out for one that exists. For a log
    without a sidecar, which JavaScript wrote, they are found by looking at the first records.

    `read_only`: open for reading, beside any number of other readers and the writer; refresh() shows what is new.
    `flush_interval` is how many seconds after an append it is made durable if nobody calls flush().

    Safe for threads. After a fork, a log that was open for writing belongs to the parent: the child opens it again.

    Raises NotALog, LogLocked, LogReadOnly (no permission to write), InvalidArgument, LogError; CodecError for an
    unknown codec.
    """

    @js_aliases.keywords("Log()", js_aliases.LOG)
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        codec: str | Codec | None = None,
        block_size: int | None = None,
        read_only: bool = False,
        flush_interval: float = 0.25,
    ) -> None:
        self._opened: Opened | None = None
        self._read_only = read_only = flag("read_only", read_only, InvalidArgument)
        self._options = OpenOptions.of(codec, block_size)
        self._refreshing = fork_safe(threading.Lock())
        self._coming: Opened | None = None  # the other log in the file that we are changing over to
        self._follower = Follower(self, looks=read_only)
        self._retired: weakref.WeakSet[Opened] = weakref.WeakSet()  # former ones, which streams may still read
        interval = check_interval(flush_interval)
        opened = open_log(path, self._options, read_only=read_only)
        self._extent = Extent(opened.recovery.tail, opened.meta.block_size)
        follower = self._follower
        self._extent.observers.add(lambda since: follower.tell())
        self._writer: Writer | None = None
        self._take(opened)
        if not read_only:
            from jitdb.log.writing.writer import Writer

            try:
                self._writer = Writer(opened, self._extent, self._reader, interval)
            except BaseException:
                opened.close()
                raise
        self._opened = opened
        self._hide()
        self._seen = self._state()
        begins_anew(self)

    def _take(self, opened: Opened) -> None:
        self._path = opened.path
        self._sidecar = opened.sidecar
        self._codec = opened.codec
        self._is_raw = opened.codec.name == "raw"
        self._encode = opened.codec.encode
        self._decode = opened.codec.decode
        self._reader = RecordReader(opened, self._extent)
        self._scan: Scan | None = None

    # What it is

    @property
    def path(self) -> Path:
        """The log's file, links resolved."""
        return self._path

    @property
    def sidecar(self) -> Path:
        """The folder beside it. Where it could not be made, it does not exist."""
        return self._sidecar

    @property
    def codec(self) -> Codec:
        """How values become records."""
        return self._codec

    @property
    def block_size(self) -> int:
        """Bytes."""
        return self._alive().meta.block_size

    @property
    def identity(self) -> bytes:
        """16 bytes that no other log has; none in the moment in which another log takes the file's place."""
        return b"" if self._coming is not None else (self._opened or self._alive()).meta.identity

    @property
    def generation(self) -> int:
        """Grows when the log was truncated or replaced, and gets another identity; or compacted, and keeps it."""
        return (self._opened or self._alive()).meta.generation

    @property
    def identity_is_stored(self) -> bool:
        """Whether the identity is kept in the sidecar, so that index files can be bound to it."""
        return self._alive().stored

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading."""
        return self._read_only

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._opened is None

    @property
    def since(self) -> int:
        """Offset of the newest durable record; -1 when there is none."""
        return self._extent.since

    @property
    def durable_end(self) -> int:
        """Just past the newest durable record, where the next one of its block would begin; 0 when there is none."""
        return self._extent.durable_end

    def on_since(self, callback: Observer) -> Callable[[], None]:
        """Call `callback(since)` each time that `since` has moved; the function given back ends it.

        It is called without a lock, by the thread that flushed or refreshed; by then `since` may have moved further.
        """
        function("on_since() takes a function of an offset", callback, 1, InvalidArgument)
        return self._extent.observers.add(callback)

    # Writing

    def append(self, value: Any) -> int:
        """Append a value; the offset of its record. Durable after the next flush (within `flush_interval`).

        Raises EncodeError, InvalidRecord (an empty or all-zero encoding), RecordTooLarge, LogReadOnly, LogClosed,
        LogWriteFailed.
        """
        writer = self._writer
        if writer is None:
            raise self._no_writer()
        return writer.append(value if self._is_raw else self._encode(value))

    def append_many(self, values: Iterable[Any]) -> list[int]:
        """Append values; their offsets. If one of them cannot be stored, none is. Raises as append does."""
        return self._writing().append_many(self._encoded(values))

    def append_encoded(self, data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Append records that the codec has encoded, one behind the other in `data`; their offsets, int64 [n].

        lengths: of each, in bytes, int64 [n]; `data` may go on behind the last one

        All are appended or none, and written at once, though durable only after the next flush. Whether they are
        values of the codec is not looked at. Raises InvalidRecord, RecordTooLarge, LogReadOnly, LogClosed,
        LogWriteFailed.
        """
        return self._writing().append_encoded(data, lengths)

    def append_transaction(self, values: Iterable[Any]) -> list[int]:
        """Append values that after a crash are there all or not at all; their offsets.

        They share one block. Raises RecordTooLarge if they do not fit one, else as append does.
        """
        return self._writing().append_transaction(self._encoded(values))

    def append_whole(self, batches: Iterable[list[bytes]], scratch: Path) -> None:
        """Append encoded records, any number of them, all or none; they are durable then.

        scratch: a file that is made, and takes as many bytes as the log will; whoever calls removes it

        Other appends and deletions wait meanwhile. Raises InvalidRecord, RecordTooLarge before anything is written,
        else as append does.
        """
        if not is_list(batches):
            raise InvalidRecord(f"batches are lists of records, not {shown(batches)}", path=self._path)
        self._writing().append_whole(batches, Path(file_path(scratch)))

    def delete(self, offset: int) -> None:
        """Delete the record at `offset`: its bytes become zeros with the next flush, get() refuses it at once.

        Raises InvalidOffset, RecordDeleted, LogCorrupt, LogReadOnly, LogClosed, LogWriteFailed.
        """
        self._writing().delete(offset)

    def flush(self) -> None:
        """Return when all appends and deletions are on the disk. Raises LogWriteFailed, LogClosed."""
        if not self._read_only:
            self._writing().flush()
        self._alive()

    def compact(self, progress: Callable[[int, int], object] | None = None) -> Compaction:
        """Remove deleted records for good, and give their room back. Offsets and seqs are others afterwards.

        Other threads go on reading and writing; appends and deletions wait for the last moment of it. Who reads the
        log meanwhile, here or in another process, goes on reading the old one until refresh(). A crash leaves the old
        log or the new one, whole. It takes the room of a second log. `progress(done, total)` is called with bytes.

        Raises LogCorrupt for a damaged log (repair it first), LogReadOnly, LogClosed, LogWriteFailed.
        """
        from jitdb.log.compaction.compact import compact

        told = progress_function(progress) or _untold
        return self._change_over(lambda writer: compact(writer, self.stats, told, self._become))

    def replace_with(self, fresh: Path, codec: str) -> None:
        """Put the records of the log `fresh`, a closed file on the same file system, in the place of these.

        They are of `codec` then, whatever that of `fresh` is; who may read and write the file stays. The identity is
        another one: indexes are built anew, live streams end. A crash leaves the old log or the new one, whole.

        Raises LogReadOnly, LogClosed, LogWriteFailed; CodecError, and LogError where `fresh` is no log.
        """
        from jitdb.log.compaction.replace import replace

        options, fresh = OpenOptions.of(codec, None), Path(file_path(fresh))
        self._change_over(lambda writer: replace(writer, fresh, codec, self._become))
        self._options = options

    def _change_over(self, work: Callable[[Writer], T]) -> T:
        """Let `work` put other bytes into the log's file; whoever follows the log is told."""
        writer = self._writing()
        with self._refreshing:  # one at a time
            done = work(writer)
        self._extent.notify()
        self._follower.tell()
        return done

    def _become(self, opened: Opened) -> tuple[Extent, RecordReader]:
        """Go over to another file, the log since it was compacted or replaced."""
        self._coming = opened
        try:
            if self._opened is not None and self._opened is not opened:
                self._retired.add(self._opened)
            self._opened = opened
            self._extent = Extent(opened.recovery.tail, opened.meta.block_size, self._extent.observers)
            self._take(opened)
        finally:
            self._coming = None
        return self._extent, self._reader

    def begin_anew(self) -> None:
        """In a forked child: what another thread of the parent was at in refresh() or compact() is done to its end."""
        opened = self._opened
        if self._coming is not None:
            self._become(self._coming)
        elif self._read_only and opened is not None:
            self._move(opened)
            self._reader.forget()

    def _encoded(self, values: Iterable[Any]) -> list[Any]:
        if not is_list(values):
            raise InvalidRecord(
                f"several values are a list, not {shown(values)}", path=self._path, remedy="append() takes one"
            )
        if self._is_raw:
            return values if isinstance(values, list) else list(values)
        return list(map(self._encode, values))

    def _writing(self) -> Writer:
        if self._writer is None:
            raise self._no_writer()
        return self._writer

    def _no_writer(self) -> LogClosed | LogReadOnly:
        if self.closed:
            return LogClosed("the log was closed", path=self._path)
        return LogReadOnly("it was opened with read_only=True", path=self._path)

    # Reading

    def get(self, offset: int) -> Any:
        """The value at `offset`, also of a record that is not yet written.

        Raises InvalidOffset where no record begins, RecordDeleted, LogCorrupt, DecodeError, LogClosed.
        """
        data = self._reader.get(offset)
        try:
            return self._decode(data)
        except DecodeError as error:
            error.offset = int(offset)
            raise

    def get_raw(self, offset: int) -> bytes:
        """The bytes of the record at `offset`. Raises as get does."""
        return self._reader.get(offset)

    def get_many_raw(self, offsets: Sequence[int] | npt.NDArray[np.int64]) -> list[bytes | None]:
        """The bytes of the records at these offsets, in that order; None for deleted ones.

        Raises InvalidOffset where no record begins, LogCorrupt, LogClosed.
        """
        from jitdb.log.reading.many import get_many

        return get_many(self._alive(), self._reader, offsets, None if self._writer is None else self._writer.flush)

    @overload
    def stream(self, *, live: Literal[True], **wanted: Unpack[Wanted]) -> LiveStream: ...

    @overload
    def stream(self, *, live: bool = False, **wanted: Unpack[Wanted]) -> Iterator[Record]: ...

    def stream(
        self,
        *,
        gt: int | None = None,
        gte: int | None = None,
        lt: int | None = None,
        lte: int | None = None,
        limit: int | None = None,
        raw: bool = False,
        live: bool = False,
    ) -> Iterator[Record]:
        """The live, durable records with offsets within the bounds, oldest first, as they are when it begins.

        Yields Record(offset, seq, value); the value is bytes if `raw`. Blocks are verified as scans verify them: the
        records of a damaged one are left out, with a DamageWarning, once (get() refuses them). Who must have all or
        none makes it an error, by `warnings.simplefilter("error", DamageWarning)`.
        `live`: waits for more at the end, instead of ending, until its close() is called, from any thread; each record
        comes once, also when the log is compacted.
        Raises InvalidOffset for bounds that are no integers, InvalidArgument for a limit that is none or below 0,
        DecodeError, LogClosed.
        """
        from jitdb.log.reading.scan import bounds, most
        from jitdb.log.reading.stream import stream

        limit, raw = most(limit), flag("raw", raw, InvalidArgument)
        if flag("live", live, InvalidArgument):
            from jitdb.log.reading.live import live_stream

            return live_stream(self, gt, gte, lt, lte, limit, raw)
        self._hide(look=True)
        scan = self._scanner()
        within = bounds(scan.extent.durable_end, gt, gte, lt, lte)
        return stream(scan, within, limit, None if raw else self._codec, scan.hidden(), self)

    def stream_batches(
        self,
        *,
        gt: int | None = None,
        gte: int | None = None,
        lt: int | None = None,
        lte: int | None = None,
        limit: int | None = None,
    ) -> Iterator[Batch]:
        """All durable records within the bounds, deleted ones marked, as arrays of about a megabyte of the file.

        Those of damaged blocks are marked as deleted and as damaged, with a DamageWarning, as in stream().
        `limit` counts records. The batches' data lies in one buffer, which each next one overwrites.
        """
        from jitdb.log.reading.batches import batches
        from jitdb.log.reading.scan import bounds, most

        limit = most(limit)
        self._hide(look=True)
        scan = self._scanner()
        within = bounds(scan.extent.durable_end, gt, gte, lt, lte)
        return batches(scan, within, limit, scan.hidden(), self)

    def stats(self) -> Stats:
        """Total and deleted bytes, live and deleted records. Reads the whole log, at some gigabytes a second."""
        from jitdb.log.reading.batches import measure

        self._hide(look=True)
        scan = self._scanner()
        return measure(scan, scan.hidden())

    def verify(self, progress: Callable[[int, int], object] | None = None) -> LogReport:
        """Read the whole log and its sidecar, and tell what is not as it was written; changes nothing.

        `progress(done, total)` is called with bytes. What is appended meanwhile is not looked at. Raises LogClosed,
        LogError where a file may not be read, or is none.
        """
        from jitdb.log.repair.check_log import verify_log

        told = progress_function(progress) or _untold
        while True:
            self.flush()
            reader = self._reader
            try:
                report = verify_log(reader.opened, reader.extent.durable_end, told)
                if report.ok or not self._is_superseded(reader):
                    return report
            except OSError as error:
                raise reader.opened.unreadable(error) from error

    def _is_superseded(self, reader: RecordReader) -> bool:
        """Whether another file took the log's place: what its sidecar says is of that one."""
        opened = reader.opened
        if self._read_only and opened.stored and stored_meta(self._path) not in (None, opened.meta):
            self.refresh()
        return reader is not self._reader

    def repair(self, progress: Callable[[int, int], object] | None = None) -> RepairReport:
        """Verify the log, and put right what can be put right. Appends and deletions wait meanwhile.

        A damaged block is kept as it was, in the sidecar, before it is written. What one flipped bit explains is
        restored. Else what can be read stays at its offset, a deleted record takes the place of what cannot, and the
        log gets a new identity and generation: its indexes are built anew. Seqs, and which records there are, may be
        others then; the report says what was kept and what was lost. `progress(done, total)` is called with bytes.

        Raises LogReadOnly, LogClosed, LogWriteFailed.
        """
        from jitdb.log.repair.repair_log import repair

        told = progress_function(progress) or _untold
        return self._change_over(lambda writer: repair(writer, self._options, told, self._become))

    def _scanner(self) -> Scan:
        self._alive()
        reader, scan = self._reader, self._scan  # all that a scan needs: another file may take the place meanwhile
        if scan is None or scan.reader is not reader:
            from jitdb.log.reading.scan import Scan

            scan = self._scan = Scan(reader)
        return scan

    # For the engine (source.py)

    def read_blocks(self, start: int, stop: int, buffer: memoryview | npt.NDArray[np.uint8]) -> int:
        """See ScanSource.read_blocks."""
        return self._scanner().read(start, stop, (buffer if isinstance(buffer, memoryview) else buffer.data).cast("B"))

    def checksums(self, first: int, count: int, *, settled: bool = False) -> npt.NDArray[np.int64]:
        """See ScanSource.checksums; `settled`: only those that need no second look where they do not fit."""
        self._alive()
        verifier = self._reader.verifier
        return verifier.settled(first, count) if settled else verifier.sums(first, count)

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        """See ScanSource.second_look."""
        self._alive()
        return self._reader.verifier.second_look(block)

    def deletions(self, after: int = 0) -> tuple[int, npt.NDArray[np.int64]]:
        """See LogSource.deletions."""
        found = (self._opened or self._alive()).deleted(after, looks=self._read_only)
        if self._read_only:
            self._hide()
        return found

    def deletion_position(self) -> int:
        """Of deletions(), the position alone: how many entries the journal of deletions has. Raises as it does."""
        return (self._opened or self._alive()).deletion_position(looks=self._read_only)

    def deleting(self) -> list[int]:
        """See LogSource.deleting."""
        return list(self._reader.hidden)

    def foreign_change_token(self) -> bytes:
        """See LogSource.foreign_change_token."""
        opened = self._opened or self._alive()
        return opened.recovery.change if self._writer is None else self._writer.change

    def removals(self, generation: int) -> list[Removals] | None:
        """See LogSource.removals."""
        return self._alive().removals(generation)

    def counter(self) -> Callable[[int], int]:
        """How many records begin before an offset of the log as it is now, also once another file took its place."""
        return self._scanner().rank

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """See LogSource.watch. In a forked child, raises LogClosed where the log was open for writing."""
        self._alive()
        if self._writer is not None:
            self._writer.check_open()
        function("watch() takes a function without arguments", callback, 0, InvalidArgument)
        return self._follower.watch(callback)

    def refresh(self) -> bool:
        """See what other processes did to the log; whether anything changed since the last call.

        Raises LogError, NotALog if the file is gone or is no log any more.
        """
        with self._refreshing:
            if self._read_only:
                self._follow()
            seen, self._seen = self._seen, self._state()
        self._extent.notify()
        return seen != self._seen

    def _follow(self) -> None:
        opened = self._alive()
        change = opened.recovery.change
        now = follow(opened, self._options)
        if now is not opened:
            self._become(now)
            self._hide()
            return
        if now.recovery.change != change:
            self._reader.forget()
        self._move(now)
        self._hide()

    def _move(self, opened: Opened) -> None:
        tail = opened.recovery.tail
        self._extent.move(tail.end, tail.since(opened.meta.block_size))

    def _hide(self, *, look: bool = False) -> None:
        """As a reader: what the journal says is deleted is so, though whoever wrote that may have died before its bytes
        were made zero. `look` for news of that.
        """
        reader = self._reader
        if self._read_only and self._opened is not None:
            reader.hide_only(reader.opened.unapplied(look=look))

    def _state(self) -> tuple[object, ...]:
        opened = self._alive()
        place = (opened.meta.identity, opened.meta.generation, self.durable_end)
        return *place, opened.deletions.position, self.foreign_change_token()

    # Ending

    def close(self) -> None:
        """Flush and close. Safe to call twice. Raises LogWriteFailed if records could not be written."""
        opened, writer = self._opened, self._writer
        if opened is None:
            return
        try:
            if writer is not None:
                writer.close()
        finally:
            if writer is not None:
                writer.close()  # where an interrupt cut it short, the rest of it
            self._reader.close()
            for each in (self._opened or opened, *self._retired):
                each.close()
            self._opened = None  # last: who was interrupted before closes again
            self._writer = None
            self._follower.tell()  # whoever waits for news learns that none will come

    def _alive(self) -> Opened:
        if self._opened is None:
            raise LogClosed("the log was closed", path=getattr(self, "_path", None))
        return self._opened

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_opened", None) is not None:
            warnings.warn(f"unclosed log {self._path}", ResourceWarning, stacklevel=2, source=self)
            self.close()

    if not TYPE_CHECKING:  # a checker knows which names there are

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(js_aliases.no_such_name("a Log", name, js_aliases.LOG, dir(type(self))), name=name)

    def __repr__(self) -> str:
        state = "closed" if self.closed else "read-only" if self._read_only else "writing"
        return f"<Log {str(self._path)!r} {self._codec.name}, {state}, since {self.since}>"


def _untold(done: int, total: int) -> None:
    """The progress of what nobody watches."""
