"""One segment in place of several of the same span, whatever their kind. The result does not tell how they were cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from jitdb.indexes.kinds.bitmap import merge_bitmaps, merge_sets
from jitdb.indexes.kinds.column import merge_numbers, merge_offsets
from jitdb.indexes.kinds.prefix import merge_prefix_maps, merge_prefixes
from jitdb.indexes.segment import BITMAPS, NUMBERS, OFFSETS, PREFIX_MAP, PREFIXES, SET, Segment

_MERGE: Final[dict[int, Callable[[Sequence[Segment]], Segment]]] = {
    BITMAPS: merge_bitmaps,
    SET: merge_sets,
    PREFIXES: merge_prefixes,
    PREFIX_MAP: merge_prefix_maps,
    NUMBERS: merge_numbers,
    OFFSETS: merge_offsets,
}


def merged(segments: Sequence[Segment]) -> Segment:
    """One segment of adjacent ones of one kind and one span, in order. Raises IndexDamaged."""
    if len(segments) == 1:
        return segments[0]
    last = segments[-1]
    return _MERGE[last.kind](segments).changed(last_crc=last.last_crc, journal=last.journal)
