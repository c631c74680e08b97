"""How many records stand before a byte of a log: some gigabytes a second, because none is looked into."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.log.blocks.block_format import header_size, round_up
from jitdb.log.blocks.scanner import scan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.source import ScanSource

PIECE: Final = 4 << 20  # bytes read at a time: whole blocks, which stay in the last cache
_SHARE: Final = 64 << 20  # bytes that a thread counts at a time
_MOST_THREADS: Final = 8


def walked(log: ScanSource, start: int, stop: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Where the records that begin in [start, stop) begin, and where they end. Not verified. Raises OSError."""
    size, begin = log.block_size, start - start % log.block_size
    if not log.framing.is_blocked:
        yield from _walked_lines(log, start, stop)
        return
    end = min(round_up(stop, size), log.durable_end)  # a record that begins before `stop` may end behind it
    if begin >= end:
        return
    for piece in scan(
        lambda buffer, at: log.read_blocks(at, at + len(buffer), buffer), begin, end, size, size=PIECE
    ):  # fmt: skip
        starts = piece.walked.starts + piece.begin
        offsets = starts - header_size(size)
        low, high = offsets.searchsorted([start, stop]).tolist()
        yield offsets[low:high], (starts + piece.walked.lengths)[low:high]


def _walked_lines(log: ScanSource, start: int, stop: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The same of records that cross blocks: every line counts."""
    for offsets, ends in _chunks(log, start, start - start % log.block_size, min(stop, log.durable_end)):
        low, high = offsets.searchsorted([start, stop]).tolist()
        yield offsets[low:high], ends[low:high]


def _chunks(
    log: ScanSource, start: int, begin: int, stop: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The lines that belong to the chunks from the boundary `begin` to `stop`; one begins at `start`."""
    framing = log.framing
    walker = framing.walker(log, PIECE, log.durable_end)
    for at in range(begin, stop, PIECE):
        for count, *_ in walker.walks(at, start):
            starts = walker.room.starts[:count] + at
            yield starts - framing.before, walker.ends(0, count) + at


def records_between(log: ScanSource, start: int, places: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """How many records begin between `start` and each of these (ascending) places. Raises OSError."""
    wanted = np.asarray(places, np.int64)
    total = np.zeros(len(wanted), np.int64)
    if not len(wanted):
        return total
    stop, step = int(wanted[-1]), round_up(_SHARE, log.block_size)

    def count(begin: int) -> NDArray[np.int64]:
        return records_from(log, start, begin, min(begin + step, stop), wanted)

    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1), "jitdb-count") as pool:
        for found in pool.map(count, range(start - start % log.block_size, stop, step)):
            total += found
    return total


def records_from(log: ScanSource, start: int, begin: int, stop: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the records that begin in [begin, stop) begin before each of these (ascending) places.

    A record begins at `start`; `begin` is a block's boundary, and those before `start` do not count. Raises OSError.
    """
    found = np.zeros(len(places), np.int64)
    for offsets, _ in records_in(log, start, begin, stop):
        found += offsets.searchsorted(places)
    return found


def records_in(
    log: ScanSource, start: int, begin: int, stop: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Where they begin, and where they end: see records_from."""
    if log.framing.is_blocked:
        yield from walked(log, max(begin, start), stop)
        return
    for offsets, ends in _chunks(log, start, begin, stop):
        low = int(offsets.searchsorted(start))
        yield offsets[low:], ends[low:]


def place_of(log: ScanSource, seq: int) -> int:
    """Where the record with this seq begins; the log's end where there is none. Raises OSError."""
    for offsets, _ in walked(log, 0, log.durable_end):
        if seq < len(offsets):
            return int(offsets[seq])
        seq -= len(offsets)
    return log.durable_end
