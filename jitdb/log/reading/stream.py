"""Live records in the order of the log.

The file is read in pieces of whole blocks, the first ones small, so that a reader who wants three records does not
pay for a megabyte. A piece is walked in Python, and by the compiled kernel if something else has loaded it. A block
that does not have its checksum is reported by a DamageWarning and left out; one without a checksum whose chain of
lengths is broken is passed over from there on.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import compress, count, islice
from operator import itemgetter
from typing import Any, Final

import numpy as np

from jitdb.errors import DecodeError
from jitdb.log.blocks.crc import mismatches
from jitdb.log.blocks.packing import walk_block
from jitdb.log.blocks.slices import cut_run
from jitdb.log.blocks.walker import Walker
from jitdb.log.codecs import Codec
from jitdb.log.reading.scan import Bounds, Scan
from jitdb.log.record import Record

_FIRST_PIECE: Final = 1 << 16  # bytes read at once when a stream begins

_make_record = partial(tuple.__new__, Record)


def stream(scan: Scan, within: Bounds, limit: int | None, codec: Codec | None, owner: object) -> Iterator[Record]:
    """The records within the bounds, decoded, or as bytes where `codec` is None; those that are hidden now left out.

    `owner` is kept alive while the stream runs: the log would close itself otherwise.
    """
    records = _raw(scan, within, scan.hidden(), owner)
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


def _raw(scan: Scan, within: Bounds, hidden: set[int], owner: object) -> Iterator[Record]:
    if within.start >= within.stop:
        return
    size = scan.block_size
    seq = scan.first_seq(within.start // size)
    walker: Walker | None = None
    for begin, data in _pieces(scan, within):
        if walker is None and len(data) >= scan.pieces() and "jitdb.log.blocks.walk_kernels" in sys.modules:
            walker = Walker(len(data), size, total=len(data))
        blocks = _blocks(scan, begin, data) if walker is None else _blocks_compiled(scan, begin, data, walker)
        for block, offsets, lengths, is_sound in blocks:
            if offsets:
                if is_sound:
                    values = cut_run(data, offsets[0] - begin, lengths, size)
                    yield from _live(offsets, values, seq, within, hidden)
                seq += len(offsets)
            if (block + 1) * size <= begin + len(data):  # else there may be more records in it by now
                scan.learn(block + 1, seq)


_Block = tuple[int, list[int], list[int], bool]  # number, offsets of records, their lengths, whether it is sound


def _pieces(scan: Scan, within: Bounds) -> Iterator[tuple[int, bytearray]]:
    """Offset and bytes of runs of whole blocks (the last one as far as it is durable)."""
    size = scan.block_size
    begin = within.start - within.start % size
    end = min(scan.extent.durable_end, -(-within.stop // size) * size)
    piece = max(size, _FIRST_PIECE // size * size)
    while begin < end:
        data = bytearray(min(piece, end - begin))
        got = scan.opened.read_into(memoryview(data), begin)
        yield begin, data if got == len(data) else data[:got]
        begin += piece
        piece = min(piece * 2, scan.pieces())


def _blocks(scan: Scan, begin: int, data: bytearray) -> Iterator[_Block]:
    """The blocks of a piece, verified; `data` gets what a second look brings."""
    size = scan.block_size
    array = np.frombuffer(data, np.uint8)
    wrong = mismatches(array, len(data), size, scan.sums(begin, len(data), compiled=False))
    damaged = scan.look_again(begin, array.data, wrong) if wrong else []
    for number, at in enumerate(range(0, len(data), size)):
        block = bytes(array.data[at : at + size])
        walk = walk_block(block, len(block), size)
        is_sound = number not in damaged
        if walk.fault and is_sound:
            scan.report([begin + at + walk.end])
        shift = begin + at
        yield shift // size, [shift + position for position in walk.positions], walk.lengths, is_sound


def _blocks_compiled(scan: Scan, begin: int, data: bytearray, walker: Walker) -> Iterator[_Block]:
    size = scan.block_size
    walked, damaged = scan.walk(walker, begin, np.frombuffer(data, np.uint8), len(data))
    ends = walked.starts.searchsorted(np.arange(size, len(data) + size, size)).tolist()
    offsets: list[int] = (walked.starts + (begin - scan.header)).tolist()
    lengths: list[int] = walked.lengths.tolist()
    first = 0
    for block, last in enumerate(ends, begin // size):
        yield block, offsets[first:last], lengths[first:last], block - begin // size not in damaged
        first = last


def _live(
    offsets: Sequence[int], values: Sequence[bytes], seq: int, within: Bounds, hidden: set[int]
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
