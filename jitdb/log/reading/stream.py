"""Records in the order of the log, live ones one by one, or all of them as arrays.

The file is read in pieces of whole blocks, the first ones small, so that a reader who wants three records does not
pay for a megabyte. A block that does not have its checksum is reported by a DamageWarning and left out; one without a
checksum whose chain of lengths is broken is passed over from there on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import compress, count, islice, pairwise
from operator import itemgetter
from typing import Any, Final

import numpy as np
from pyroaring import BitMap64

from jitdb.errors import DecodeError
from jitdb.log.blocks.layout import round_up
from jitdb.log.blocks.packing import cut_run
from jitdb.log.blocks.scanner import Piece, scan
from jitdb.log.codecs import Codec
from jitdb.log.reading.block_reader import PIECE, BlockReader, OffsetRange
from jitdb.log.record import Batch, Record, Stats

_FIRST_PIECE: Final = 1 << 16  # bytes read at once when a stream begins

_make_record = partial(tuple.__new__, Record)


def stream(
    reader: BlockReader, within: OffsetRange, limit: int | None, codec: Codec | None, owner: object
) -> Iterator[Record]:
    """The records within the bounds, decoded, or as bytes where `codec` is None; those that are hidden now left out.

    `owner`, the log or what holds it, is kept alive while the stream runs: the log would close itself otherwise.
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
    """The blocks that hold these offsets, verified and walked, each run of them with the seq of its first record."""
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
    # A deleted record begins with zero; few others do.
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
