"""How many records come before some bytes of a log: from the index of offsets where it reaches, else by walking."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.indexes.kinds.offsets import load_offsets
from jitdb.log.blocks.layout import header_size
from jitdb.spark_ext.reading.pieces import PIECE

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
        found[behind:] = seq + records_between(log, end, known[behind:])
    return [int(number) for number in found]


def records_between(log: LogSource, start: int, places: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """How many records begin between `start` and each of these (ascending) places, by walking. Raises OSError."""
    wanted = np.asarray(places, np.int64)
    if not len(wanted):
        return np.empty(0, np.int64)
    pieces = Pieces(log, start, int(wanted[-1]))
    total = np.zeros(len(wanted), np.int64)
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1), "jitdb-count") as pool:
        for offsets, _ in pool.map(pieces.records, pieces.begins):
            total += offsets.searchsorted(wanted)
    return total


def place_of(log: LogSource, seq: int) -> int:
    """Where the record with this seq begins; the log's end where there is none. By walking. Raises OSError."""
    pieces = Pieces(log, 0, log.durable_end)
    for begin in pieces.begins:
        offsets, _ = pieces.records(begin)
        if seq < len(offsets):
            return int(offsets[seq])
        seq -= len(offsets)
    return log.durable_end


class Pieces:
    """The records that begin in [start, stop) of a log, some MiB of whole blocks at a time. Safe for threads."""

    def __init__(self, log: LogSource, start: int, stop: int) -> None:
        size = log.block_size
        self._log = log
        self._start = start
        self._stop = min(stop, log.durable_end)
        self._step = max(PIECE // size, 1) * size
        self.begins = range(start - start % size, self._stop, self._step)

    def records(self, begin: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the records of the piece that begins there begin, and where they end."""
        from jitdb.log.blocks.walk_kernels import walk

        log, size = self._log, self._log.block_size
        header = header_size(size)
        # Up to the end of the block: a record that begins before `stop` ends behind it.
        buffer = np.empty(min(begin + self._step, log.durable_end) - begin, np.uint8)
        got = log.read_blocks(begin, begin + len(buffer), buffer.data)
        room = got // (header + 1) + 1
        starts, lengths, states = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8)
        count, _ = walk(buffer, got, size, header, starts, lengths, states, np.empty(got // size + 1, np.int64))
        offsets = starts[:count] + (begin - header)
        low, high = offsets.searchsorted([self._start, self._stop]).tolist()
        return offsets[low:high], (starts[:count] + lengths[:count] + begin)[low:high]
