"""Many records at once: neighbours are read together, a cluster of them in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from jitdb.errors import InvalidOffset, RecordDeleted
from jitdb.log.blocks import is_zero
from jitdb.log.layout import header_size, largest_record
from jitdb.log.slices import cut
from jitdb.words import shown

if TYPE_CHECKING:
    from jitdb.log.opening import Opened
    from jitdb.log.reader import RecordReader

Ints = npt.NDArray[np.int64]

_FEW: Final = 32  # so many records are read one by one in less time than arrays take to set up
_GAP: Final = 8 * 1024  # bytes between neighbours up to which reading on is cheaper than reading anew
_CLUSTER: Final = 1 << 20  # bytes read in one call, at most
_GUESS: Final = 1024  # bytes after a cluster's last header; a longer record is read again


def get_many(
    opened: Opened, reader: RecordReader, offsets: Sequence[int] | Ints, flush: Callable[[], None] | None
) -> list[bytes | None]:
    """The records at these offsets, in that order; None for deleted ones. Raises InvalidOffset, LogCorrupt.

    `flush` is called when one of them may not be in the file yet.
    """
    is_array = isinstance(offsets, np.ndarray) and offsets.ndim == 1
    if not is_array and (not isinstance(offsets, Sequence) or isinstance(offsets, (str, bytes, bytearray))):
        raise InvalidOffset(f"offsets are a list or an array of integers, not {shown(offsets)}", path=opened.path)
    if len(offsets) <= _FEW:
        return [_one(reader, offset) for offset in (offsets.tolist() if isinstance(offsets, np.ndarray) else offsets)]
    asked = _integers(reader, offsets)
    if flush is not None and not reader.is_written(int(asked.max())):
        flush()
    order = None
    if len(asked) > 1 and not bool((asked[1:] > asked[:-1]).all()):
        asked, order = np.unique(asked, return_inverse=True)
    _check(reader, asked, opened.meta.block_size)
    found: list[bytes | None] = []
    breaks = np.flatnonzero(np.diff(asked) > _GAP) + 1
    start = 0
    for stop in (*breaks.tolist(), len(asked)):
        while start < stop:
            upto = start + int(asked[start:stop].searchsorted(asked[start] + _CLUSTER))
            found += _read_cluster(opened, asked[start:upto])
            start = upto
    if reader.hidden:
        found = [None if offset in reader.hidden else each for offset, each in zip(asked.tolist(), found, strict=True)]
    return found if order is None else [found[at] for at in order.tolist()]


def _one(reader: RecordReader, offset: int) -> bytes | None:
    try:
        return reader.get(offset)
    except RecordDeleted:
        return None


def _integers(reader: RecordReader, offsets: Sequence[int] | Ints) -> Ints:
    if isinstance(offsets, np.ndarray) and offsets.dtype.kind in "iu" and offsets.ndim == 1:
        return offsets.astype(np.int64)
    return np.array([reader.fits(reader.integer(offset)) for offset in offsets], np.int64)


def _check(reader: RecordReader, asked: Ints, block_size: int) -> None:
    for outside in (int(asked[0]), int(asked[-1])):
        reader.in_range(outside)
    blocks = asked // block_size
    reader.learn_blocks(blocks[np.flatnonzero(np.diff(blocks, prepend=-1))].tolist())
    wanted: list[int] = asked.tolist()
    if not all(map(reader.is_start, wanted)):
        for offset in wanted:
            if not reader.is_start(offset) and offset not in reader.hidden:
                reader.check(offset)


def _read_cluster(opened: Opened, offsets: Ints) -> list[bytes | None]:
    block_size = opened.meta.block_size
    header, largest = header_size(block_size), largest_record(block_size)
    begin, last = int(offsets[0]), int(offsets[-1])
    data = opened.read(last + header + min(_GUESS, largest) - begin, begin)
    at = last - begin
    length = int.from_bytes(data[at : at + header], "little")
    if at + header + length > len(data):
        data += opened.read(at + header + length - len(data), begin + len(data))
    view = np.frombuffer(data, np.uint8)
    heads = offsets - begin
    lengths = view[heads].astype(np.int64)
    for byte in range(1, header):
        lengths |= view[heads + byte].astype(np.int64) << (8 * byte)
    starts = heads + header
    records: list[bytes | None] = [*cut(data, starts.tolist(), lengths.tolist())]
    for suspect in np.flatnonzero(view[starts] == 0).tolist():
        record = records[suspect]
        if record is not None and is_zero(record):
            records[suspect] = None
    return records
