"""How many records come before some bytes of a log: from the index of offsets where it reaches, else by walking."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.indexes.column import load_offsets
from jitdb.log.layout import header_size
from jitdb.spark_ext.pieces import PIECE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource

_MOST_THREADS: Final = 8


def ranks(segments: Sequence[Segment], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many records begin before each of these (ascending) bytes, of those that an index of offsets knows."""
    found = np.zeros(len(places), np.int64)
    for segment in segments:
        low = int(places.searchsorted(segment.first_offset, side="right"))
        high = int(places.searchsorted(segment.end_offset, side="right"))
        found[low:high] = segment.first_seq + load_offsets(segment).searchsorted(places[low:high])
        found[high:] = segment.end_seq
    return found


def records_before(log: LogSource, segments: Sequence[Segment], places: Sequence[int]) -> list[int]:
    """How many records begin before each of these (ascending) boundaries of blocks.

    segments: of an index of offsets, which may end before the log does

    What the index does not know is read, at some gigabytes a second. Raises OSError, LogError.
    """
    if not places:
        return []
    known = np.array(places, np.int64)
    found = ranks(segments, known)
    end, seq = (segments[-1].end_offset, segments[-1].end_seq) if segments else (0, 0)
    behind = int(known.searchsorted(end, side="right"))
    if behind < len(places):
        found[behind:] = seq + _walked(log, end, known[behind:])
    return [int(number) for number in found]


def _walked(log: LogSource, start: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many records begin between `start` and each of the places."""
    size = log.block_size
    piece = max(PIECE // size, 1) * size
    first, stop = start - start % size, min(int(places[-1]), log.durable_end)
    begins = range(first, stop, piece)

    def count(begin: int) -> NDArray[np.int64]:
        offsets = _offsets(log, begin, min(begin + piece, stop))
        return offsets.searchsorted(places) - int(offsets.searchsorted(start))

    total = np.zeros(len(places), np.int64)
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1), "jitdb-count") as pool:
        for counted in pool.map(count, begins):
            total += np.maximum(counted, 0)
    return total


def _offsets(log: LogSource, begin: int, stop: int) -> NDArray[np.int64]:
    """Where the records of these blocks begin."""
    from jitdb.log.kernels import walk

    header = header_size(log.block_size)
    buffer = np.empty(stop - begin, np.uint8)
    got = log.read_blocks(begin, stop, buffer.data)
    room = got // (header + 1) + 1
    starts, lengths, states = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8)
    faults = np.empty(got // log.block_size + 1, np.int64)
    count, _ = walk(buffer, got, log.block_size, header, starts, lengths, states, faults)
    offsets: NDArray[np.int64] = starts[:count] + (begin - header)
    return offsets
