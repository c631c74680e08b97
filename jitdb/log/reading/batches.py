"""Many records in one buffer, as they lie in the log: no object is made for one. For who locates fields in them.

Neighbours are read together, a cluster of them in one call, each to its place in the buffer.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.log.blocks.layout import header_size
from jitdb.log.blocks.packing import is_zero
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
