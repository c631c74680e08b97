"""Live records in the order of the log.

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

from jitdb.errors import DecodeError
from jitdb.log.blocks.scanner import scan as blocks
from jitdb.log.blocks.slices import cut_run
from jitdb.log.codecs import Codec
from jitdb.log.reading.block_reader import PIECE, BlockReader, OffsetRange
from jitdb.log.record import Record

_FIRST_PIECE: Final = 1 << 16  # bytes read at once when a stream begins

_make_record = partial(tuple.__new__, Record)


def stream(
    reader: BlockReader, within: OffsetRange, limit: int | None, codec: Codec | None, owner: object
) -> Iterator[Record]:
    """The records within the bounds, decoded, or as bytes where `codec` is None; those that are hidden now left out.

    `owner` is kept alive while the stream runs: the log would close itself otherwise.
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


def _raw(reader: BlockReader, within: OffsetRange, hidden: set[int], owner: object) -> Iterator[Record]:
    if within.start >= within.stop:
        return
    size, header = reader.block_size, reader.header
    begin = within.start - within.start % size
    end = min(reader.extent.durable_end, -(-within.stop // size) * size)
    seq = reader.first_seq(begin // size)
    for piece in blocks(reader.opened.read_into, begin, end, size, size=PIECE, first=_FIRST_PIECE, walk=reader.walk):
        starts, data = piece.walked.starts, piece.data
        offsets: list[int] = (starts + (piece.begin - header)).tolist()
        lengths: list[int] = piece.walked.lengths.tolist()
        reader.learn(piece.first_block, starts, len(data), seq)
        for number, (first, last) in enumerate(pairwise(piece.bounds.tolist())):
            if last > first and number not in piece.wrong:
                values = cut_run(data.data, offsets[first] - piece.begin, lengths[first:last], size)
                yield from _live(offsets[first:last], values, seq + first, within, hidden)
        seq += len(offsets)


def _live(
    offsets: Sequence[int], values: Sequence[bytes], seq: int, within: OffsetRange, hidden: set[int]
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
