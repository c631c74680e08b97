"""Records in the order of the log: one by one, as arrays, or live, waiting for more at the end.

The file is read in pieces of whole blocks. The first ones are small, for readers that want only a few records. A block
that differs from its checksum is left out, with a DamageWarning. If the chain of lengths breaks in a block without a
checksum, the rest of the block is left out.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress, count, islice, pairwise
from operator import itemgetter
from typing import Any, Final, Self, TypeAlias

import numpy as np
from pyroaring import BitMap64

from jitdb.common.forking import begins_anew, fork_safe
from jitdb.errors import DecodeError, LogError
from jitdb.log.blocks.block_format import cut_run, round_up
from jitdb.log.blocks.scanner import Piece, scan
from jitdb.log.codecs import Codec
from jitdb.log.reading.block_reader import PIECE, BlockReader, OffsetRange
from jitdb.log.sidecar.removals import new_seq
from jitdb.log.source import Batch, Record, Stats

_FIRST_PIECE: Final = 1 << 16  # bytes read at once when a stream begins

_make_record = partial(tuple.__new__, Record)


def stream(
    reader: BlockReader, within: OffsetRange, limit: int | None, codec: Codec | None, owner: object
) -> Iterator[Record]:
    """The records within the bounds, decoded, or as bytes if `codec` is None, without those that are hidden now.

    `owner`, the log or what holds it, is kept alive: otherwise the log would close itself while the stream runs.
    """
    records = _raw(reader, within, reader.hidden(), owner)
    if codec is not None:
        records = _decoded(records, codec)
    return records if limit is None else islice(records, max(0, limit))


def _decoded(records: Iterator[Record], codec: Codec) -> Iterator[Record]:
    decode = codec.decode
    for offset, seq, data in records:
        try:
            value = decode(data)
        except DecodeError as error:
            error.offset = offset
            raise
        yield Record(offset, seq, value)


def _raw(reader: BlockReader, within: OffsetRange, hidden: BitMap64, owner: object) -> Iterator[Record]:
    header = reader.header
    for piece, seq in _pieces(reader, within, owner, first=_FIRST_PIECE):
        offsets: list[int] = (piece.walked.starts + (piece.begin - header)).tolist()
        lengths: list[int] = piece.walked.lengths.tolist()
        for number, (first, last) in enumerate(pairwise(piece.bounds.tolist())):
            if last > first and number not in piece.wrong:
                values = cut_run(piece.data.data, offsets[first] - piece.begin, lengths[first:last], reader.block_size)
                yield from _live(offsets[first:last], values, seq + first, within, hidden)


def _pieces(
    reader: BlockReader, within: OffsetRange, owner: object, *, first: int | None = None
) -> Iterator[tuple[Piece, int]]:
    """The blocks that hold these offsets, verified and walked; each run of them with the seq of its first record."""
    if within.start >= within.stop:
        return
    size = reader.block_size
    begin = within.start - within.start % size
    end = min(reader.extent.durable_end, round_up(within.stop, size))
    seq = reader.first_seq(begin // size)
    for piece in scan(reader.opened.read_into, begin, end, size, size=PIECE, first=first, walk=reader.walk):
        reader.learn(piece.first_block, piece.walked.starts, len(piece.data), seq)
        yield piece, seq
        seq += len(piece.walked.starts)


def _live(
    offsets: Sequence[int], values: Sequence[bytes], seq: int, within: OffsetRange, hidden: BitMap64
) -> Iterator[Record]:
    if offsets[0] < within.start or offsets[-1] >= within.stop:
        first, last = bisect_left(offsets, within.start), bisect_left(offsets, within.stop)
        offsets, values, seq = offsets[first:last], values[first:last], seq + first
    rows: Iterator[Any] = map(_make_record, zip(offsets, count(seq), values, strict=False))
    # Few records but deleted ones begin with a zero.
    if hidden or 0 in bytes(map(itemgetter(0), values)):
        live = [offset not in hidden and any(value) for offset, value in zip(offsets, values, strict=True)]
        rows = compress(rows, live)
    return rows


def batches(
    reader: BlockReader, within: OffsetRange, limit: int | None, hidden: BitMap64, owner: object
) -> Iterator[Batch]:
    """All records within the bounds as arrays, about a megabyte of the file at a time, deleted ones marked."""
    if limit is not None and limit <= 0:
        return
    for piece, seq in _pieces(reader, within, owner):
        starts, lengths, deleted = piece.walked[:3]
        damaged = np.zeros(len(starts), np.bool_)
        for number in piece.wrong:
            low, high = piece.bounds[number], piece.bounds[number + 1]
            damaged[low:high] = deleted[low:high] = True
        offsets = starts + (piece.begin - reader.header)
        if hidden:
            deleted[np.isin(offsets, hidden.to_array())] = True
        cut = slice(*offsets.searchsorted([within.start, within.stop]).tolist())
        if limit is not None:
            cut = slice(cut.start, min(cut.stop, cut.start + limit))
            limit -= cut.stop - cut.start
        if cut.stop > cut.start:
            arrays = offsets[cut], lengths[cut], deleted[cut], starts[cut]
            yield Batch(seq + cut.start, *arrays, piece.data, damaged[cut])
        if limit == 0:
            return


def measure(reader: BlockReader) -> Stats:
    """The log's sizes, by reading all of it."""
    end = reader.extent.durable_end
    deleted_bytes = records = deleted_records = damaged_records = 0
    for batch in batches(reader, OffsetRange(0, end), None, reader.hidden(), None):
        dead = int(batch.deleted.sum())
        records += len(batch.offsets) - dead
        if dead:
            gone = batch.deleted & ~batch.damaged
            damaged_records += int(batch.damaged.sum())
            deleted_records += int(gone.sum())
            deleted_bytes += int(batch.lengths[gone].sum()) + int(gone.sum()) * reader.header
    return Stats(end, deleted_bytes, records, deleted_records, reader.proven(), damaged_records)


Newest: TypeAlias = Callable[[], BlockReader]  # a log's present reader: another file may have taken the log's place
Watch: TypeAlias = Callable[[Callable[[], object]], Callable[[], None]]  # LogSource.watch


class LiveStream(Iterator[Record]):
    """What Log.stream(live=True) gives. Waits for more instead of ending, until it is closed.

    Closing it from any thread ends it at once, also while it waits; so does leaving its `with`. Ctrl-C interrupts the
    waiting, after which it can be read on. Several threads may read from one; each record goes to one of them. An error
    is raised once and ends it; if the log was closed, LogClosed.
    """

    def __init__(self, newest: Newest, watch: Watch, start: int, limit: int | None, raw: bool) -> None:
        self._place = _Place(newest, start)
        self._left = limit
        self._raw = raw
        self._records: Iterator[Record] = iter(())
        self._closed = False
        self._turn = fork_safe(threading.Lock())  # one thread waits for records, the others wait for it
        self._news = fork_safe(threading.Event())
        self._news.set()  # so that the first read looks
        self._forked = False
        self._watch = watch
        self._unwatch = watch(self._news.set)  # not a method of this object: the watcher would keep it alive
        begins_anew(self)

    def begin_anew(self) -> None:
        """In a forked child: begin to read again, as another thread may have been reading; look for news here."""
        self._forked = True
        self._records = iter(())
        self._news.set()

    def __next__(self) -> Record:
        with self._turn:
            try:
                return self._next()
            except Exception:
                self.close()
                raise
            except BaseException:
                self._records = iter(())  # an interrupted generator has ended: begin another one
                self._news.set()
                raise

    def _next(self) -> Record:
        while not self._closed and self._left != 0:
            for record in self._records:
                self._place.pass_(record)
                self._left = None if self._left is None else self._left - 1
                return record
            if self._forked:
                self._go_on_in_child()
            self._news.wait()
            self._news.clear()
            self._records = self._place.stream(self._left, self._raw)
        raise StopIteration

    def _go_on_in_child(self) -> None:
        """Look for news here, too. Raises LogClosed if the log was open for writing: it is the parent's."""
        self._unwatch()
        self._unwatch, self._forked = self._watch(self._news.set), False

    def close(self) -> None:
        """End it, from any thread; a thread that waits for a record returns."""
        self._closed = True
        self._unwatch()
        self._news.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_unwatch"):  # not where __init__ raised
            self.close()


class _Place:
    """How far a stream came, by offset and by seq; after a compaction, the offset follows from the seq."""

    def __init__(self, newest: Newest, offset: int) -> None:
        self._newest = newest
        reader = newest()  # one reader for all of this: another file may take the log's place meanwhile
        self._offset = min(offset, reader.extent.durable_end)
        self._seq = reader.rank(self._offset)
        self._meta = reader.opened.meta

    def pass_(self, record: Record) -> None:
        """The record was handed out."""
        self._offset, self._seq = record.offset + 1, record.seq + 1

    def stream(self, limit: int | None, raw: bool) -> Iterator[Record]:
        """What is there from this place on."""
        reader = self._newest()
        if reader.opened.meta != self._meta:
            self._follow(reader)
        within = OffsetRange(self._offset, reader.extent.durable_end)
        return stream(reader, within, limit, None if raw else reader.opened.codec, self._newest)

    def _follow(self, reader: BlockReader) -> None:
        before, now = self._meta, reader.opened.meta
        removals = reader.opened.removals(before.generation) if now.identity == before.identity else None
        if not self._seq:
            removals = []  # at its very beginning it can read any log: this reader came before the writer had begun
        if removals is None:
            raise LogError("another log has taken its place while its records were streamed", path=reader.opened.path)
        seq = new_seq(removals, self._seq)
        self._offset, self._seq, self._meta = reader.offset_at(seq), seq, now
