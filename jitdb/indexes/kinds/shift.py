"""Segments whose seqs count from somewhere else, put to the place in the log that their records turned out to have.

Whoever scans a range of blocks by itself does not know how many records stand before it. He counts them from 0, and
once that number is known, his segments are cut where a span of the log ends, and moved. Merged with their neighbours
(merge.py), they are byte for byte what one scan of the whole log gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from pyroaring import BitMap

from jitdb.indexes.kinds.bitmap import dictionary_of, make_bitmaps, make_set, span_start
from jitdb.indexes.kinds.column import (
    ALL_WHOLE,
    HAS_RESTS,
    Extent,
    extent_of,
    load_numbers,
    load_offsets,
    make_numbers,
    make_offsets,
    number_range,
)
from jitdb.indexes.kinds.prefix import load_prefixes, make_prefix_map, make_prefixes, prefix_offset_of
from jitdb.indexes.kinds.roaring import bitmap_of_mask
from jitdb.indexes.segment import BITMAPS, NUMBERS, OFFSETS, PREFIX_MAP, PREFIXES, SET, SPAN, Run, Segment
from jitdb.indexes.witness import decode

if TYPE_CHECKING:
    from numpy.typing import NDArray


def placed(segment: Segment, first: int, start: int, end_of: Callable[[int], int]) -> Iterator[Segment]:
    """The segments of each span of the log that the records of this one turned out to lie in.

    first:  the seq that the segment's seq 0 has in the log
    start:  where in the log the record before the segment's first one ends; 0 where there is none
    end_of: where in the log a record ends, by the seq that it has in the segment
    """
    low, count = 0, segment.count
    while low < count:
        seq = first + segment.first_seq + low
        high = min(count, low + SPAN - seq % SPAN)
        end = end_of(segment.first_seq + high - 1)
        yield _MOVE[segment.kind](_Cut(segment, low, high, (seq, high - low, start, end)))
        low, start = high, end


class _Cut(NamedTuple):
    """The records [low, high) of a segment, which are the run `run` of the log."""

    segment: Segment
    low: int
    high: int
    run: Run

    @property
    def is_whole(self) -> bool:
        return self.high - self.low == self.segment.count

    @property
    def lead(self) -> int:
        """Where the segment's records begin in the sets that it holds."""
        return self.segment.first_seq - span_start(self.segment)

    def set(self, blob: int) -> BitMap:
        """A set of the segment: the members that are in the cut, relative to the span of the run."""
        found = self.segment.set(blob)
        if not self.is_whole:
            found &= BitMap(range(self.lead + self.low, self.lead + self.high))
        move = self.run[0] % SPAN - self.lead - self.low
        return found.shift(move) if move else found


def _bitmaps(cut: _Cut) -> Segment:
    keys = dictionary_of(cut.segment)
    sets = [cut.set(number) for number in range(len(keys))]
    kept = [number for number, found in enumerate(sets) if found]
    return make_bitmaps([keys[number] for number in kept], [sets[number] for number in kept], cut.run)


def _set(cut: _Cut) -> Segment:
    witness = decode(cut.segment.meta)
    return make_set(cut.set(0), cut.run, None if witness is None else witness.within(*cut.run[2:]))


def _prefixes(cut: _Cut) -> Segment:
    present, prefixes = load_prefixes(cut.segment)
    there = bitmap_of_mask(present[cut.low : cut.high], cut.run[0] % SPAN)
    return make_prefixes(there, prefixes[cut.low : cut.high], prefix_offset_of(cut.segment), cut.run)


def _prefix_map(cut: _Cut) -> Segment:
    prefixes, members = (np.frombuffer(cut.segment.blob(blob), "<u4") for blob in (0, 1))
    places: NDArray[np.int64] = members.astype(np.int64) - (cut.lead + cut.low)
    inside = (places >= 0) & (places < cut.high - cut.low)
    moved = (places[inside] + cut.run[0] % SPAN).astype(np.uint32)
    return make_prefix_map(prefixes[inside], moved, prefix_offset_of(cut.segment), cut.run)


def _numbers(cut: _Cut) -> Segment:
    hi, lo = load_numbers(cut.segment)
    if cut.is_whole:
        low, high, flags = number_range(cut.segment)
        extent = Extent(low, high, bool(flags & HAS_RESTS), bool(flags & ALL_WHOLE))
    else:
        hi, lo = hi[cut.low : cut.high], None if lo is None else lo[cut.low : cut.high]
        extent = extent_of(hi, lo)
    return make_numbers(hi, lo, extent, cut.run)


def _offsets(cut: _Cut) -> Segment:
    # Which damaged blocks begin in it depends on what stands before it: whoever places it lists them.
    return make_offsets(load_offsets(cut.segment)[cut.low : cut.high], cut.run)


_MOVE: Final[dict[int, Callable[[_Cut], Segment]]] = {
    BITMAPS: _bitmaps,
    SET: _set,
    PREFIXES: _prefixes,
    PREFIX_MAP: _prefix_map,
    NUMBERS: _numbers,
    OFFSETS: _offsets,
}
