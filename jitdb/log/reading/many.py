"""Many records at once, in one buffer or as bytes. Neighbours are read together, a cluster of them in one call.

A few records, and those that lie far apart, are read one by one. A block whose records are not known yet is read as a
whole, and its records are cut out of it: so no byte is read twice, and no more than the blocks of the records.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from pyroaring import BitMap64

from jitdb.common.words import shown
from jitdb.errors import InvalidOffset, RecordDeleted
from jitdb.log.blocks.block_format import cut, header_size, is_zero
from jitdb.log.codecs.fields.constants import DELETED, SLACK
from jitdb.log.codecs.fields.located import RecordBatch, Scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.reading.record_reader import RecordReader

    Ints = NDArray[np.int64]


FEW: Final = 32  # so many records are read one by one in less time than arrays take to set up
CLOSE: Final = 4  # records of a cluster, on average, from which on clusters are worth while
_CLUSTER: Final = 1 << 20  # bytes read in one call, at most
_GAP: Final = 8 * 1024  # bytes between neighbours up to which reading on is cheaper than reading anew
_GUESS: Final = 1024  # bytes after a cluster's last header; a longer record is read again


def clusters(offsets: Ints, gap: int, block_size: int = 0) -> list[tuple[int, int]]:
    """Runs of these ascending offsets that have at most `gap` bytes between neighbours: where each begins and ends.

    block_size: given where a run must not pass a block in which none of them is

    >>> clusters(np.array([0, 10, 200, 205]), 50), clusters(np.array([0, 10, 200, 205]), 500, 64)
    ([(0, 2), (2, 4)], [(0, 2), (2, 4)])
    """
    found = []
    apart = np.diff(offsets) > gap
    if block_size:
        apart |= np.diff(offsets // block_size) > 1
    breaks = (np.flatnonzero(apart) + 1).tolist()
    for start, stop in pairwise([0, *breaks, len(offsets)]):
        while start < stop:
            upto = start + int(offsets[start:stop].searchsorted(offsets[start] + _CLUSTER))
            found.append((start, upto))
            start = upto
    return found


def read_batch(reader: RecordReader, offsets: Ints, scratch: Scratch) -> RecordBatch | None:
    """The records at these ascending offsets; None where they are few or far apart, or what is read are no records any
    more. Raises InvalidOffset, LogCorrupt.
    """
    opened, block_size = reader.opened, reader.opened.meta.block_size
    runs = clusters(offsets, block_size // 8) if len(offsets) > FEW else []
    if not 0 < len(runs) * CLOSE <= len(offsets):
        return None
    hidden = reader.hidden  # as they are now: some may be zeroed, and not be hidden any more, behind what was read
    for _ in reader.learned(offsets):
        pass
    header = header_size(block_size)
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
    starts, lengths = _records_at(buffer, heads, header)
    if int(lengths.min()) < 1 or int((offsets % block_size + header + lengths).max()) > block_size:
        return None
    states = np.zeros(len(offsets), np.uint8)
    states[_zeros_among(buffer, starts, lengths)] = DELETED
    if hidden:
        states[np.isin(offsets, np.frombuffer(hidden.to_array(), np.int64))] = DELETED
    return RecordBatch(buffer, starts, lengths, states, offsets)


def _records_at(buffer: NDArray[np.uint8], heads: Ints, header: int) -> tuple[Ints, Ints]:
    """Where the records begin in the buffer whose headers are there, and their lengths."""
    lengths = buffer[heads].astype(np.int64)
    for byte in range(1, header):
        lengths |= buffer[heads + byte].astype(np.int64) << (8 * byte)
    return heads + header, lengths


def _zeros_among(buffer: NDArray[np.uint8], starts: Ints, lengths: Ints) -> list[int]:
    """The numbers of the deleted records: they are nothing but zeros."""
    suspects: list[int] = np.flatnonzero(buffer[starts] == 0).tolist()
    return [at for at in suspects if is_zero(buffer[starts[at] : starts[at] + lengths[at]].tobytes())]


def get_many(reader: RecordReader, offsets: Sequence[int] | Ints) -> list[bytes | None]:
    """The records at these offsets, in that order; None for deleted ones. Raises InvalidOffset, LogCorrupt.

    The writer is asked to flush when one of them may not be in the file yet.
    """
    is_array = isinstance(offsets, np.ndarray) and offsets.ndim == 1
    if not is_array and (not isinstance(offsets, Sequence) or isinstance(offsets, (str, bytes, bytearray))):
        path = reader.opened.path
        raise InvalidOffset(f"offsets are a list or an array of integers, not {shown(offsets)}", path=path)
    if len(offsets) <= FEW:
        return [_one(reader, offset) for offset in (offsets.tolist() if isinstance(offsets, np.ndarray) else offsets)]
    asked, order = _integers(reader, offsets), None
    if not bool((asked[1:] > asked[:-1]).all()):
        asked, order = np.unique(asked, return_inverse=True)
    hidden = reader.hidden  # as in read_batch
    found: list[bytes | None] = []
    known = 0  # from there on, what was not read yet lies in known blocks
    for first, stop, begin, data in reader.learned(asked):
        found += _read_known(reader, asked[known:first])
        found += _cut(data, begin, asked[first:stop], header_size(reader.opened.meta.block_size))
        known = stop
    found += _read_known(reader, asked[known:])
    if hidden:
        found = [None if offset in hidden else each for offset, each in zip(asked.tolist(), found, strict=True)]
    return found if order is None else [found[at] for at in order.tolist()]


def _read_known(reader: RecordReader, offsets: Ints) -> list[bytes | None]:
    """The records at these offsets of known blocks."""
    found: list[bytes | None] = []
    for start, stop in clusters(offsets, _GAP, reader.opened.meta.block_size):
        some = offsets[start:stop]
        found += _read_cluster(reader, some) if len(some) > CLOSE else [_one(reader, at) for at in some.tolist()]
    return found


def _read_cluster(reader: RecordReader, offsets: Ints) -> list[bytes | None]:
    read, block_size = reader.opened.read, reader.opened.meta.block_size
    header, begin, last = header_size(block_size), int(offsets[0]), int(offsets[-1])
    most = block_size - last % block_size  # no record goes on in the next block
    data = read(last + min(header + _GUESS, most) - begin, begin)
    at = last - begin
    stop = at + header + int.from_bytes(data[at : at + header], "little")
    if stop > len(data):
        data += read(stop - len(data), begin + len(data))
    return _cut(data, begin, offsets, header)


def _cut(data: bytes, begin: int, offsets: Ints, header: int) -> list[bytes | None]:
    """The records at these offsets, out of the log's bytes from `begin` on; None for deleted ones."""
    view = np.frombuffer(data, np.uint8)
    starts, lengths = _records_at(view, offsets - begin, header)
    records: list[bytes | None] = [*cut(data, starts.tolist(), lengths.tolist())]
    for number in _zeros_among(view, starts, lengths):
        records[number] = None
    return records


def set_of(reader: RecordReader, offsets: Iterable[int]) -> BitMap64:
    """The set of these offsets, in some two bytes each. Raises InvalidOffset for what is none."""
    asked = _integers(reader, offsets if isinstance(offsets, np.ndarray) else list(offsets))
    if len(asked) and int(asked.min()) < 0:
        reader.in_range(int(asked.min()))
    return BitMap64(array("Q", asked.tobytes()))


def _one(reader: RecordReader, offset: int) -> bytes | None:
    try:
        return reader.get(offset)
    except RecordDeleted:
        return None


def _integers(reader: RecordReader, offsets: Sequence[int] | Ints) -> Ints:
    if isinstance(offsets, np.ndarray) and offsets.dtype.kind in "iu" and offsets.ndim == 1:
        return offsets.astype(np.int64)
    return np.array([reader.fits(reader.integer(offset)) for offset in offsets], np.int64)
