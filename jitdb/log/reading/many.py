"""Many records at once, none of their bytes read twice.

A block whose records are not known yet must be read as a whole (record_reader.py): those that are asked for are cut out
of it. In known ones neighbours are read together, a cluster of them in one call. So whoever asks in ascending order,
with no block parted between two calls, never reads more than the blocks that hold the records. A few are read one by
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from jitdb.common.words import shown
from jitdb.errors import InvalidOffset, RecordDeleted
from jitdb.log.blocks.layout import header_size
from jitdb.log.blocks.packing import cut
from jitdb.log.reading.batches import FEW, parts, records_at, zeros_among

if TYPE_CHECKING:
    from jitdb.log.opening.opened import Opened
    from jitdb.log.reading.record_reader import RecordReader

Ints = npt.NDArray[np.int64]

_ALONE: Final = 4  # the same of neighbours
_GAP: Final = 8 * 1024  # bytes between neighbours up to which reading on is cheaper than reading anew
_GUESS: Final = 1024  # bytes after a cluster's last header; a longer record is read again


def get_many(opened: Opened, reader: RecordReader, offsets: Sequence[int] | Ints) -> list[bytes | None]:
    """The records at these offsets, in that order; None for deleted ones. Raises InvalidOffset, LogCorrupt.

    The writer is asked to flush when one of them may not be in the file yet.
    """
    is_array = isinstance(offsets, np.ndarray) and offsets.ndim == 1
    if not is_array and (not isinstance(offsets, Sequence) or isinstance(offsets, (str, bytes, bytearray))):
        raise InvalidOffset(f"offsets are a list or an array of integers, not {shown(offsets)}", path=opened.path)
    if len(offsets) <= FEW:
        return [_one(reader, offset) for offset in (offsets.tolist() if isinstance(offsets, np.ndarray) else offsets)]
    asked = _integers(reader, offsets)
    hidden = reader.hidden  # as they are now: some may be zeroed, and not be hidden any more, behind what was read
    order = None
    if not bool((asked[1:] > asked[:-1]).all()):
        asked, order = np.unique(asked, return_inverse=True)
    found: list[bytes | None] = []
    known = 0  # from there on, what was not read yet lies in known blocks
    for first, stop, begin, data in reader.learned(asked):
        found += _read_clusters(opened, reader, asked[known:first])
        found += _cut(data, begin, asked[first:stop], header_size(opened.meta.block_size))
        known = stop
    found += _read_clusters(opened, reader, asked[known:])
    if hidden:
        found = [None if offset in hidden else each for offset, each in zip(asked.tolist(), found, strict=True)]
    return found if order is None else [found[at] for at in order.tolist()]


def ascending(reader: RecordReader, offsets: Iterable[int]) -> Ints:
    """Each of these offsets once. Raises InvalidOffset for what is none."""
    return np.unique(_integers(reader, offsets if isinstance(offsets, np.ndarray) else list(offsets)))


def _one(reader: RecordReader, offset: int) -> bytes | None:
    try:
        return reader.get(offset)
    except RecordDeleted:
        return None


def _integers(reader: RecordReader, offsets: Sequence[int] | Ints) -> Ints:
    if isinstance(offsets, np.ndarray) and offsets.dtype.kind in "iu" and offsets.ndim == 1:
        return offsets.astype(np.int64)
    return np.array([reader.fits(reader.integer(offset)) for offset in offsets], np.int64)


def _read_clusters(opened: Opened, reader: RecordReader, offsets: Ints) -> list[bytes | None]:
    found: list[bytes | None] = []
    apart = (np.diff(offsets) > _GAP) | (np.diff(offsets // opened.meta.block_size) > 1)
    for start, stop in parts(offsets, apart):
        some = offsets[start:stop]
        found += _read_cluster(opened, some) if len(some) > _ALONE else [_one(reader, at) for at in some.tolist()]
    return found


def _read_cluster(opened: Opened, offsets: Ints) -> list[bytes | None]:
    block_size = opened.meta.block_size
    header = header_size(block_size)
    begin, last = int(offsets[0]), int(offsets[-1])
    most = block_size - last % block_size  # no record goes on in the next block
    data = opened.read(last + min(header + _GUESS, most) - begin, begin)
    at = last - begin
    length = int.from_bytes(data[at : at + header], "little")
    if at + header + length > len(data):
        data += opened.read(at + header + length - len(data), begin + len(data))
    return _cut(data, begin, offsets, header)


def _cut(data: bytes, begin: int, offsets: Ints, header: int) -> list[bytes | None]:
    """The records at these offsets, out of the log's bytes from `begin` on; None for deleted ones."""
    view = np.frombuffer(data, np.uint8)
    starts, lengths = records_at(view, offsets - begin, header)
    records: list[bytes | None] = [*cut(data, starts.tolist(), lengths.tolist())]
    for number in zeros_among(view, starts, lengths):
        records[number] = None
    return records
