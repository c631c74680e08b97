"""Many records at once: as bytes, or in one buffer without an object for each. No byte is read twice.

A block whose records are not known yet is read as a whole (record_reader.py), and the records are cut out of it. In
known blocks neighbours are read together, a cluster of them in one call. So a caller that asks in ascending order never
reads more than the blocks that hold the records. A few records are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.words import shown
from jitdb.errors import InvalidOffset, RecordDeleted
from jitdb.log.blocks.block_format import cut, header_size, is_zero
from jitdb.log.codecs.fields.constants import DELETED, SLACK
from jitdb.log.codecs.fields.located import RecordBatch, Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from jitdb.log.opening.opened import Opened
    from jitdb.log.reading.record_reader import RecordReader

    Ints = NDArray[np.int64]


FEW: Final = 32  # so many records are read one by one in less time than arrays take to set up
CLOSE: Final = 4  # records of a cluster, on average, from which on clusters are worth while
_CLUSTER: Final = 1 << 20  # bytes read in one call, at most


def clusters(offsets: Ints, gap: int) -> list[tuple[int, int]]:
    """Runs of these ascending offsets that have at most `gap` bytes between neighbours: where each begins and ends.

    >>> clusters(np.array([0, 10, 200, 205]), 50)
    [(0, 2), (2, 4)]
    """
    return list(parts(offsets, np.diff(offsets) > gap))


def parts(offsets: Ints, apart: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """What is read in one call each: runs of these offsets between neighbours that are `apart`, of some length only."""
    breaks = (np.flatnonzero(apart) + 1).tolist()
    for start, stop in pairwise([0, *breaks, len(offsets)]):
        while start < stop:
            upto = start + int(offsets[start:stop].searchsorted(offsets[start] + _CLUSTER))
            yield start, upto
            start = upto


def records_at(buffer: NDArray[np.uint8], heads: Ints, header: int) -> tuple[Ints, Ints]:
    """Where the records begin in the buffer whose headers are there, and their lengths."""
    lengths = buffer[heads].astype(np.int64)
    for byte in range(1, header):
        lengths |= buffer[heads + byte].astype(np.int64) << (8 * byte)
    return heads + header, lengths


def zeros_among(buffer: NDArray[np.uint8], starts: Ints, lengths: Ints) -> list[int]:
    """The numbers of the records that are nothing but zeros."""
    suspects: list[int] = np.flatnonzero(buffer[starts] == 0).tolist()
    return [at for at in suspects if is_zero(buffer[starts[at] : starts[at] + lengths[at]].tobytes())]


def read_batch(opened: Opened, reader: RecordReader, offsets: Ints, scratch: Scratch) -> RecordBatch | None:
    """The records at these ascending offsets, of which there are some; None where what is read are no records any
    more. Raises InvalidOffset, LogCorrupt.
    """
    hidden = reader.hidden
    for _ in reader.learned(offsets):
        pass
    block_size = opened.meta.block_size
    header = header_size(block_size)
    runs = clusters(offsets, block_size // 8)
    firsts = offsets[[start for start, _ in runs]]
    lasts = offsets[[stop - 1 for _, stop in runs]]
    stops = np.minimum((lasts // block_size + 1) * block_size, reader.extent.written_end)
    bases = np.cumsum(stops - firsts) - (stops - firsts)
    buffer = scratch.room(int(bases[-1] + stops[-1] - firsts[-1]) + SLACK)
    buffer[-SLACK:] = 0
    for first, stop, base in zip(firsts.tolist(), stops.tolist(), bases.tolist(), strict=True):
        if opened.read_into(buffer.data[base : base + stop - first], first) < stop - first:
            return None
    heads = offsets + np.repeat(bases - firsts, [stop - start for start, stop in runs])
    starts, lengths = records_at(buffer, heads, header)
    if int(lengths.min()) < 1 or int((offsets % block_size + header + lengths).max()) > block_size:
        return None
    states = np.zeros(len(offsets), np.uint8)
    states[zeros_among(buffer, starts, lengths)] = DELETED
    if hidden:
        states[np.isin(offsets, np.frombuffer(hidden.to_array(), np.int64))] = DELETED
    return RecordBatch(buffer, starts, lengths, states, offsets)


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
