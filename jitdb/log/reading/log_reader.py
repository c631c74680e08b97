"""Reading a log: its records by offset and in order, and what other code needs of it (source.py).

When the log is compacted, replaced or repaired, another file takes its place, and from then on all is read from that.
Streams of the old file go on with the old one.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from jitdb.common.arguments import flag, function
from jitdb.common.forking import fork_safe
from jitdb.errors import DecodeError, InvalidArgument, InvalidOffset, LogClosed, LogCorrupt
from jitdb.log.codecs import Codec
from jitdb.log.objects.door import Location
from jitdb.log.opening.format import OpenOptions
from jitdb.log.opening.open_log import follow, open_log
from jitdb.log.opening.opened import Opened
from jitdb.log.reading.extent import Extent, Observer, Watcher
from jitdb.log.reading.record_reader import RecordReader
from jitdb.log.source import Batch, LogSource, Record, Stats

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.codecs.fields.located import RecordBatch, Scratch
    from jitdb.log.reading.block_reader import BlockReader
    from jitdb.log.reading.stream import LiveStream
    from jitdb.log.sidecar.removals import Removals


class StreamOptions(TypedDict, total=False):
    """The keywords of Log.stream: which records it gives, and how."""

    gt: int | None
    gte: int | None
    lt: int | None
    lte: int | None
    limit: int | None
    raw: bool


class LogReader(LogSource):
    """The reading side of a log. `read_only`: other processes write to it, and it looks for what they do."""

    _opened: Opened | None = None  # None before it is open, and once it is closed

    def __init__(self, path: str | os.PathLike[str], options: OpenOptions, *, read_only: bool) -> None:
        self._read_only = read_only
        self._refreshing = fork_safe(threading.Lock())
        self._coming: Opened | None = None  # the other file's log, while we change over to it
        self._retired: weakref.WeakSet[Opened] = weakref.WeakSet()  # former files, which streams may still read
        self._watcher = watcher = Watcher(self, looks=read_only)
        opened = open_log(path, options, read_only=read_only)
        extent = Extent(opened.recovery.tail, opened.meta.block_size)
        extent.observers.add(lambda since: watcher.tell())
        self._take(opened, extent)
        self._opened = opened

    def _take(self, opened: Opened, extent: Extent) -> None:
        self._path: Location = opened.path
        self._codec = opened.codec
        self._decode = opened.codec.decode
        self._reader = RecordReader(opened, extent)
        self._blocks: BlockReader | None = None

    def _begin(self) -> None:
        """Note the state that the first refresh() compares with."""
        self._hide()
        self._seen = self._state()

    def _rebind(self, opened: Opened) -> RecordReader:
        """Change over to another file, which is the log since it was compacted or replaced."""
        self._coming = opened
        try:
            if self._opened is not None and self._opened is not opened:
                self._retired.add(self._opened)
            self._opened = opened
            self._take(opened, Extent(opened.recovery.tail, opened.meta.block_size, self._reader.extent.observers))
        finally:
            self._coming = None
        return self._reader

    def begin_anew(self) -> None:
        """In a forked child: complete the refresh() or compact() that another thread of the parent was in."""
        opened = self._opened
        if self._coming is not None:
            self._rebind(self._coming)
        elif self._read_only and opened is not None:
            self._move(opened)
            self._reader.forget()

    # What it is

    @property
    def path(self) -> Location:
        """The log's file, links resolved."""
        return self._path

    @property
    def codec(self) -> Codec:
        return self._codec

    @property
    def block_size(self) -> int:
        return self._alive().meta.block_size

    @property
    def identity(self) -> bytes:
        """16 bytes that no other log has; empty while another file takes the log's place."""
        return b"" if self._coming is not None else (self._opened or self._alive()).meta.identity

    @property
    def generation(self) -> int:
        return (self._opened or self._alive()).meta.generation

    @property
    def identity_is_stored(self) -> bool:
        return self._alive().stored

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading."""
        return self._read_only

    @property
    def closed(self) -> bool:
        """Whether it was closed, or is being closed: LogClosed is what its methods may raise from now on."""
        opened = self._opened
        return opened is None or opened.is_closed

    @property
    def since(self) -> int:
        """Offset of the newest durable record; -1 when there is none."""
        return self._reader.extent.since

    @property
    def durable_end(self) -> int:
        """Just past the newest durable record, where the next one of its block would begin; 0 when there is none."""
        return self._reader.extent.durable_end

    def on_since(self, callback: Observer) -> Callable[[], None]:
        """Call `callback(since)` each time that `since` has moved; the function given back ends it.

        It is called without a lock, by the thread that flushed or refreshed; by then `since` may have moved further.
        """
        function("on_since() takes a function of an offset", callback, 1, InvalidArgument)
        return self._reader.extent.observers.add(callback)

    # Records

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

        self._alive()
        return get_many(self._reader, offsets)

    def read_batch(self, offsets: npt.NDArray[np.int64], scratch: Scratch) -> RecordBatch:
        """See LogSource.read_batch."""
        from jitdb.log.reading.many import read_batch

        self._alive()
        found = read_batch(self._reader, offsets, scratch)
        return super().read_batch(offsets, scratch) if found is None else found

    @overload
    def stream(self, *, live: Literal[True], **wanted: Unpack[StreamOptions]) -> LiveStream: ...

    @overload
    def stream(self, *, live: bool = False, **wanted: Unpack[StreamOptions]) -> Iterator[Record]: ...

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
        from jitdb.log.reading.block_reader import offset_range, whole_limit
        from jitdb.log.reading.stream import stream

        limit, raw = whole_limit(limit), flag("raw", raw, InvalidArgument)
        if flag("live", live, InvalidArgument):
            from jitdb.log.reading.stream import LiveStream

            if lt is not None or lte is not None:
                raise InvalidOffset("a live stream has no end", path=self._path, remedy="leave lt and lte out, or live")
            start = offset_range(sys.maxsize, gt, gte, None, None).start
            return LiveStream(self.newest, self.watch, start, limit, raw)
        reader = self.newest()
        within = offset_range(reader.extent.durable_end, gt, gte, lt, lte)
        return stream(reader, within, limit, None if raw else reader.opened.codec, self)

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
        from jitdb.log.reading.block_reader import offset_range, whole_limit
        from jitdb.log.reading.stream import batches

        limit = whole_limit(limit)
        reader = self.newest()
        return batches(reader, offset_range(reader.extent.durable_end, gt, gte, lt, lte), limit, reader.hidden(), self)

    def stats(self) -> Stats:
        """Total and deleted bytes, live and deleted records. Reads the whole log, at some gigabytes a second."""
        from jitdb.log.reading.stream import measure

        return measure(self.newest())

    # See source.py

    def newest(self) -> BlockReader:
        """What reads the present file in order; records that other processes deleted are hidden."""
        self._hide(look=True)
        return self._block_reader()

    def _block_reader(self) -> BlockReader:
        self._alive()
        records, blocks = self._reader, self._blocks  # of one file: another one may take its place meanwhile
        if blocks is None or blocks.reader is not records:
            from jitdb.log.reading.block_reader import BlockReader

            blocks = self._blocks = BlockReader(records)
        return blocks

    def read_blocks(self, start: int, stop: int, buffer: memoryview | npt.NDArray[np.uint8]) -> int:
        blocks = self._block_reader()
        size = max(0, min(stop, blocks.extent.durable_end) - start)
        view = (buffer if isinstance(buffer, memoryview) else buffer.data).cast("B")
        return blocks.opened.read_into(view[:size], start) if size else 0

    def checksums(self, first: int, count: int, *, settled: bool = False) -> npt.NDArray[np.int64]:
        """See ScanSource.checksums; `settled`: only those that prove damage, without a second look."""
        self._alive()
        verifier = self._reader.verifier
        return verifier.settled(first, count) if settled else verifier.sums(first, count)

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        self._alive()
        return self._reader.verifier.second_look(block)

    def deletions(self, after: int = 0) -> tuple[int, npt.NDArray[np.int64]]:
        found = (self._opened or self._alive()).deleted(after, looks=self._read_only)
        if self._read_only:
            self._hide()
        return found

    def deletion_position(self) -> int:
        """The position of deletions() alone. Raises as it does."""
        return (self._opened or self._alive()).deletion_position(looks=self._read_only)

    def deleting(self) -> list[int]:
        return list(self._reader.hidden)

    def foreign_change_token(self) -> bytes:
        return (self._opened or self._alive()).recovery.change

    def removals(self, generation: int) -> list[Removals] | None:
        return self._alive().removals(generation)

    def counter(self) -> Callable[[int], int]:
        """A function that counts the records before an offset of the present file, also once another took its place."""
        return self._block_reader().rank

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        self._alive()
        function("watch() takes a function without arguments", callback, 0, InvalidArgument)
        return self._watcher.watch(callback)

    def refresh(self) -> bool:
        """See what other processes did to the log. Gives whether anything changed since the last call.

        Raises LogError, NotALog if the file is gone or is no log any more.
        """
        with self._refreshing:
            if self._read_only:
                self._follow()
            seen, self._seen = self._seen, self._state()
        self._reader.extent.notify()
        return seen != self._seen

    def _follow(self) -> None:
        opened = self._alive()
        change = opened.recovery.change
        now = follow(opened)
        if now is not opened:
            self._rebind(now)
            self._hide()
            return
        if now.recovery.change != change:
            self._reader.forget()
        self._move(now)
        self._hide()

    def _move(self, opened: Opened) -> None:
        tail = opened.recovery.tail
        self._reader.extent.move(tail.end, tail.since(opened.meta.block_size))

    def _hide(self, *, look: bool = False) -> None:
        """For a reader: hide records that the journal says are deleted, but whose bytes may not be zero yet.

        `look`: read the journal again.
        """
        reader = self._reader
        if self._read_only and self._opened is not None:
            reader.hide_only(reader.opened.unapplied(look=look))

    def _state(self) -> tuple[object, ...]:
        opened = self._alive()
        place = (opened.meta.identity, opened.meta.generation, self.durable_end)
        return *place, opened.deletions.position, self.foreign_change_token()

    def close(self) -> None:
        """End reading. Safe to call twice."""
        opened = self._opened
        if opened is None:
            return
        self._reader.forget()  # it answers LogClosed from now on
        for each in (opened, *self._retired):
            each.close()
        self._opened = None  # last: an interrupted close() is called again
        self._watcher.tell()  # so that waiting threads see that it is closed

    def _alive(self) -> Opened:
        if self._opened is None:
            raise LogClosed("the log was closed", path=self._path)
        return self._opened
