"""The log, as users see it: append records, read, stream and delete them, maintain the file.

reading/log_reader.py   what it inherits: reading, and what the engine needs
writing/writer.py       appends, deletions, flushes
maintenance/            verify, and other files in its place: compact, repair, replace
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from jitdb.common import js_aliases
from jitdb.common.arguments import check_interval, file_path, flag, is_list, progress_function
from jitdb.common.forking import begins_anew
from jitdb.common.words import shown, type_and_size
from jitdb.errors import InvalidArgument, InvalidOffset, InvalidRecord, LogClosed, LogReadOnly
from jitdb.log.codecs import Codec
from jitdb.log.opening.format import OpenOptions
from jitdb.log.opening.opened import Opened, stored_meta
from jitdb.log.reading.extent import Extent
from jitdb.log.reading.log_reader import LogReader
from jitdb.log.reading.record_reader import RecordReader
from jitdb.log.source import MaintainedSource

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.maintenance.report import Compaction, LogReport, RepairReport
    from jitdb.log.writing.writer import Writer

T = TypeVar("T")


class Log(LogReader, MaintainedSource):
    """A file of records, appended to by one writer, read by any number.

    >>> import tempfile
    >>> with Log(tempfile.mkdtemp() + "/my.log") as log:
    ...     offset = log.append({"type": "post", "text": "hello"})
    ...     log.flush()
    ...     log.get(offset)
    {'type': 'post', 'text': 'hello'}

    `codec` ("msgpack", "bipf", "json", "raw", or a Codec) and `block_size` (bytes, 16 to 16 MiB) are kept in the folder
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
        self._writer: Writer | None = None
        read_only = flag("read_only", read_only, InvalidArgument)
        interval = check_interval(flush_interval)
        super().__init__(path, self._how(path, codec, block_size), read_only=read_only)
        if not read_only:
            from jitdb.log.writing.writer import Writer

            opened = self._alive()
            try:
                self._writer = Writer(self._reader, self._rebind, interval)
            except BaseException:
                self._opened = None
                opened.close()
                raise
        self._begin()
        begins_anew(self)

    def _how(self, path: str | os.PathLike[str], codec: str | Codec | None, block_size: int | None) -> OpenOptions:
        """How it is opened. Raises CodecError, LogError."""
        return OpenOptions.of(codec, block_size)

    def _take(self, opened: Opened, extent: Extent) -> None:
        super()._take(opened, extent)
        self._is_raw = opened.codec.name == "raw"
        self._encode = opened.codec.encode

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

    def append_arrow(self, table: Any) -> int:
        """Append the rows of a table as records; gives how many. Needs pyarrow: pip install 'jitdb[arrow]'.

        table: of pyarrow or Polars, a query, a reader of batches: whatever gives Arrow's streams

        A column is a field of its name, a struct a map; a null is no field; instants become text of RFC 3339. Rows go
        in some thousand at a time: where one cannot be stored, those before it are there. Raises MissingLibrary, else
        as append does.
        """
        from jitdb.errors import library

        library("pyarrow")
        from jitdb.log.codecs.table_rows import batches_of, records_of

        count = 0
        for batch in batches_of(table):
            rows = records_of(batch, self._codec)
            count += len(self.append_many(rows) if isinstance(rows, list) else self.append_encoded(*rows))
        return count

    def append_transaction(self, values: Iterable[Any]) -> list[int]:
        """Append values that after a crash are there all or not at all; their offsets.

        They share one block. Raises RecordTooLarge if they do not fit one, else as append does.
        """
        return self._writing().append_many(self._encoded(values), together=True)

    def append_whole(self, batches: Iterable[list[bytes]], scratch: Path) -> None:
        """Append encoded records, any number of them, all or none; they are durable then.

        scratch: a file that is made, and takes as many bytes as the log will; the caller removes it

        Other appends and deletions wait meanwhile. Raises InvalidRecord, RecordTooLarge before anything is written,
        else as append does.
        """
        if not is_list(batches):
            raise InvalidRecord(f"batches are lists of records, not {type_and_size(batches)}", path=self._path)
        self._writing().append_whole(batches, Path(file_path(scratch)))

    def delete(self, offset: int) -> None:
        """Delete the record at `offset`: its bytes become zeros with the next flush, get() refuses it at once.

        Raises InvalidOffset, RecordDeleted, LogCorrupt, LogReadOnly, LogClosed, LogWriteFailed.
        """
        self._writing().delete(offset)

    def delete_many(self, offsets: Iterable[int], generation: int | None = None) -> None:
        """Delete the records at these offsets, in any order: all at once, or none where one of them cannot be.

        generation: of the log when it had these offsets; InvalidOffset where it was compacted since

        As if each was deleted by itself in the order of the log, in much less time: their blocks are read once, and one
        flush makes all of them zeros. After a crash some may be there, never one that stands before one that is gone.
        Raises as delete does.
        """
        if not is_list(offsets):
            raise InvalidOffset(
                f"offsets are a list, not {shown(offsets)}", path=self._path, remedy="delete() takes one"
            )
        self._writing().delete_many(offsets, generation)

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
        from jitdb.log.maintenance.compact import compact

        tell = progress_function(progress)
        return self._exchange(lambda writer: compact(writer, self.stats, tell))

    def replace_with(self, fresh: Path, codec: str) -> None:
        """Put the records of the log `fresh`, a closed file on the same file system, in the place of these.

        They are of `codec` then, whatever that of `fresh` is; who may read and write the file stays. The identity is
        another one: indexes are built anew, live streams end. A crash leaves the old log or the new one, whole.

        Raises LogReadOnly, LogClosed, LogWriteFailed; CodecError, and LogError where `fresh` is no log.
        """
        from jitdb.log.maintenance.exchange import replace

        options, fresh = OpenOptions.of(codec, None), Path(file_path(fresh))
        self._exchange(lambda writer: replace(writer, fresh, codec, options))

    def _exchange(self, work: Callable[[Writer], T]) -> T:
        """Let `work` put another file into the log's place, and notify those that follow the log."""
        writer = self._writing()
        with self._refreshing:  # one at a time
            done = work(writer)
        self._reader.extent.notify()
        self._watcher.tell()
        return done

    def _encoded(self, values: Iterable[Any]) -> list[Any]:
        if not is_list(values):
            raise InvalidRecord(
                f"several values are a list, not {type_and_size(values)}", path=self._path, remedy="append() takes one"
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

    # Maintaining

    def verify(self, progress: Callable[[int, int], object] | None = None) -> LogReport:
        """Read the whole log and its sidecar, and tell what is not as it was written; changes nothing.

        `progress(done, total)` is called with bytes. What is appended meanwhile is not looked at. Raises LogClosed,
        LogError where a file may not be read, or is none.
        """
        from jitdb.log.maintenance.check_log import verify_log
        from jitdb.log.maintenance.check_sidecar import Sidecar

        tell = progress_function(progress)
        while True:
            self.flush()
            reader = self._reader
            with reader.opened.reading():
                report = verify_log(reader, Sidecar(reader.opened, reader.extent.durable_end), tell)
                if report.ok or not self._is_superseded(reader):
                    return report

    def _is_superseded(self, reader: RecordReader) -> bool:
        """Whether another file took the log's place, so that the sidecar is of that one."""
        opened = reader.opened
        if self._read_only and opened.stored and stored_meta(self._path) not in (None, opened.meta):
            self.refresh()
        return reader is not self._reader

    def repair(self, progress: Callable[[int, int], object] | None = None) -> RepairReport:
        """Verify the log, and put right what can be put right. Appends and deletions wait meanwhile.

        A damaged block is kept as it was, in the sidecar. What can be read of it stays at its offset, a deleted record
        takes the place of what cannot, and the log gets a new identity and generation: its indexes are built anew.
        Seqs, and which records there are, may differ then; the report says what was kept and what was lost. It takes
        the room of a second log where a block is damaged. `progress(done, total)` is called with bytes.

        Raises LogReadOnly, LogClosed, LogWriteFailed.
        """
        from jitdb.log.maintenance.repair import repair

        tell = progress_function(progress)
        return self._exchange(lambda writer: repair(writer, tell))

    # Ending

    @property
    def closed(self) -> bool:
        writer = self._writer
        return super().closed or (writer is not None and writer.is_closing)

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """See LogSource.watch. In a forked child, raises LogClosed where the log was open for writing."""
        self._alive()
        if self._writer is not None:
            self._writer.check_open()
        return super().watch(callback)

    def close(self) -> None:
        """Flush and close. Safe to call twice. Raises LogWriteFailed if records could not be written."""
        writer = self._writer
        if self._opened is None:
            return
        try:
            if writer is not None:
                writer.close()
        finally:
            if writer is not None:
                writer.close()  # does the rest after an interrupt
            super().close()
            self._writer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._opened is not None:
            warnings.warn(f"unclosed log {self._path}", ResourceWarning, stacklevel=2, source=self)
            self.close()

    if not TYPE_CHECKING:  # a checker knows which names there are

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(js_aliases.no_such_name("a Log", name, js_aliases.LOG, dir(type(self))), name=name)

    def __repr__(self) -> str:
        state = "closed" if self.closed else "read-only" if self._read_only else "writing"
        return f"<Log {str(self._path)!r} {self._codec.name}, {state}, since {self.since}>"
