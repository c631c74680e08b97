"""Where each record lies, and which blocks of the log are damaged. Segment kind OFFSETS (docs/format-index.md).

Records are written by zones of ZONE records: where the first of each begins, and how far each other one lies behind the
one before it, which takes two bytes mostly. Who asks for few records reads their zones alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

from jitdb.indexes.kinds.columns import unchecked
from jitdb.indexes.kinds.content import Content
from jitdb.indexes.kinds.roaring import differing
from jitdb.indexes.segment import OFFSETS, ZONE, Blob, Run, Segment, make_segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.indexes.kinds.content import Places


_WIDTHS: Final = (2, 4, 8)  # bytes of a distance
_FEW: Final = 8  # zones: of more, where there are not many more, all are read at once


def bytes_of(array: NDArray[Any]) -> memoryview:
    """The bytes of an array, not copied."""
    import numpy as np

    return memoryview(np.ascontiguousarray(array).view(np.uint8).data)


def load_offsets(segment: Segment, *, keep: bool = True) -> NDArray[np.int64]:
    """The offset of each record. `keep`: as for blob(). Raises IndexDamaged."""
    return segment.derived(len(segment.table), 8 * segment.count, partial(_all_of, segment), keep=keep)


def _all_of(segment: Segment) -> NDArray[np.int64]:
    import numpy as np

    body, starts = memoryview(segment.body()), 8 * _zones(segment.count)
    firsts = np.frombuffer(body[:starts], "<i8")
    offsets = np.empty(segment.count, np.int64)
    for zone, first in enumerate(firsts.tolist()):
        end = segment.table.end(1 + zone)
        gaps = body[end - segment.table.lengths[1 + zone] : end]
        _put(first, gaps, offsets[zone * ZONE : (zone + 1) * ZONE])
    if not _ascend(offsets, segment.first_offset, segment.end_offset):
        raise segment.damage("places of records are not in order")
    return offsets


def _zone_of(segment: Segment, zone: int) -> NDArray[np.int64]:
    """The offsets of a zone's records. Raises IndexDamaged."""
    import numpy as np

    firsts = np.frombuffer(segment.blob(0), "<i8")
    count = min(ZONE, segment.count - zone * ZONE)
    offsets = np.empty(count, np.int64)
    _put(int(firsts[zone]), segment.blob(1 + zone, keep=False), offsets)
    following = firsts[zone + 1] if zone + 1 < len(firsts) else segment.end_offset
    if not _ascend(offsets, segment.first_offset, int(following)):
        raise segment.damage("places of records are not in order")
    return offsets


def load_zones(segment: Segment) -> Iterator[tuple[NDArray[np.int64], int]]:
    """The offsets of the records of each zone, and where the next one begins. Nothing is kept. Raises IndexDamaged."""
    import numpy as np

    firsts = np.frombuffer(segment.blob(0), "<i8")
    for zone in range(len(firsts)):
        yield _zone_of(segment, zone), int(firsts[zone + 1]) if zone + 1 < len(firsts) else segment.end_offset


def _put(first: int, gaps: Blob, offsets: NDArray[np.int64]) -> None:
    import numpy as np

    offsets[0] = first
    if len(offsets) > 1:
        offsets[1:] = np.frombuffer(gaps, f"<u{len(gaps) // (len(offsets) - 1)}")
        np.cumsum(offsets, out=offsets)


def _ascend(offsets: NDArray[np.int64], low: int, high: int) -> bool:
    return bool(low <= offsets[0] and offsets[-1] < high and (offsets[1:] > offsets[:-1]).all())


def _zones(count: int) -> int:
    return -(-count // ZONE)


def offset_of(segments: Sequence[Segment], seq: int) -> int:
    """The offset of one record, which the segments have, found without numpy. Raises IndexDamaged."""
    segment = next(each for each in segments if each.first_seq <= seq < each.end_seq)
    zone, place = divmod(seq - segment.first_seq, ZONE)
    count = min(ZONE, segment.count - zone * ZONE)
    gaps = unchecked(segment, 1 + zone, segment.table.lengths[1 + zone] // max(1, count - 1)) if place else ()
    offset: int = unchecked(segment, 0, 8)[zone] + sum(gaps[:place])
    if not segment.first_offset <= offset < segment.end_offset:
        raise segment.damage("places of records are not in order")
    return offset


def offsets_at(segments: Sequence[Segment], seqs: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The offsets of these records, which the segments have. Raises IndexDamaged."""
    import numpy as np

    out = np.empty(len(seqs), np.int64)
    firsts = np.array([segment.first_seq for segment in segments])
    owners = np.searchsorted(firsts, seqs, side="right") - 1
    for owner in range(len(segments)) if len(segments) == 1 else np.flatnonzero(np.bincount(owners)).tolist():
        mine = slice(None) if len(segments) == 1 else owners == owner
        segment = segments[owner]
        places = seqs[mine] - np.uint32(segment.first_seq)
        zones = np.flatnonzero(np.bincount(places // ZONE)) if len(places) else places
        if len(zones) > max(_FEW, _zones(segment.count) // _FEW):
            out[mine] = load_offsets(segment)[places]
            continue
        found = np.empty(len(places), np.int64)
        for zone in zones.tolist():
            there = places // ZONE == zone
            found[there] = load_zone(segment, zone)[places[there] % ZONE]
        out[mine] = found
    return out


def places_at(segment: Segment, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places in the segment of the records that begin at these (ascending) offsets; others are passed over.

    Zones are kept in memory only where there are few. Raises IndexDamaged.
    """
    import numpy as np

    ends = np.append(np.searchsorted(offsets, np.frombuffer(segment.blob(0), "<i8")), len(offsets))
    zones = np.flatnonzero(np.diff(ends)).tolist()
    load = load_zone if len(zones) <= max(_FEW, _zones(segment.count) // _FEW) else _zone_of
    found = [np.empty(0, np.int64)]
    for zone in zones:
        column, mine = load(segment, zone), offsets[ends[zone] : ends[zone + 1]]
        places = np.minimum(np.searchsorted(column, mine), len(column) - 1)
        found.append(places[column[places] == mine] + zone * ZONE)
    return np.concatenate(found)


def load_zone(segment: Segment, zone: int) -> NDArray[np.int64]:
    """The offsets of the records [zone * ZONE, (zone + 1) * ZONE) of a segment. Raises IndexDamaged."""
    return segment.derived(1 + zone, 8 * ZONE, partial(_zone_of, segment, zone))


def rank_in(segment: Segment, offset: int) -> int:
    """How many records of the segment begin before this byte of the log. Raises IndexDamaged."""
    import numpy as np

    zone = int(np.searchsorted(np.frombuffer(segment.blob(0), "<i8"), offset)) - 1
    return zone * ZONE + int(np.searchsorted(load_zone(segment, zone), offset)) if zone >= 0 else 0


def all_offsets(segments: Iterable[Segment]) -> NDArray[np.int64]:
    """The offsets of all records of these segments. Raises IndexDamaged."""
    import numpy as np

    return np.concatenate([np.empty(0, np.int64), *map(load_offsets, segments)])


def damaged_blocks(segments: Iterable[Segment]) -> set[int]:
    """The numbers of the blocks that were found damaged, from OFFSETS segments."""
    metas = [segment.meta for segment in segments if segment.meta]
    return {block for meta in metas for (block,) in struct.iter_unpack("<q", meta)}


def with_damaged(segment: Segment, blocks: Iterable[int]) -> Segment:
    """The OFFSETS segment, with these blocks in its list too."""
    return segment.changed(meta=_listed({*damaged_blocks([segment]), *blocks}))


def _listed(blocks: Iterable[int]) -> bytes:
    numbers = sorted(set(blocks))
    return struct.pack(f"<{len(numbers)}q", *numbers)


class Offsets(Content):
    """An offset a record; and the damaged blocks."""

    def __init__(self, offsets: NDArray[np.int64], first: int, damaged: Iterable[int] = ()) -> None:
        self.offsets = offsets
        self.first, self.count = first, len(offsets)
        self._damaged = damaged

    @staticmethod
    def fits(segment: Segment) -> bool:
        zones, lengths = _zones(segment.count), segment.table.lengths
        if len(segment.meta) % 8 or len(lengths) != 1 + zones or lengths[0] != 8 * zones:
            return False
        listed = all(0 <= block < segment.end_offset for block in damaged_blocks([segment]))
        full = {width * (ZONE - 1) for width in _WIDTHS} >= {*lengths[1:-1]}
        last = segment.count - (zones - 1) * ZONE
        return listed and full and lengths[-1] in {width * (last - 1) for width in _WIDTHS}

    @staticmethod
    def is_inside(segment: Segment, number: int, blob: bytes) -> bool:
        import numpy as np

        if number:
            return True  # they are looked at with where the next zone begins
        return _ascend(np.frombuffer(blob, "<i8"), segment.first_offset, segment.end_offset)

    @classmethod
    def of(cls, segment: Segment) -> Offsets:
        return cls(load_offsets(segment), segment.first_in_span, damaged_blocks([segment]))

    def take(self, places: Places) -> Offsets:
        # Which damaged blocks begin in them depends on what stands before: whoever places them lists those.
        return Offsets(places.column(self.offsets), places.first)

    @classmethod
    def concat(cls, parts: Sequence[Offsets]) -> Offsets:
        import numpy as np

        damaged = {block for part in parts for block in part._damaged}
        return cls(np.concatenate([part.offsets for part in parts]), parts[0].first, damaged)

    def segment(self, run: Run) -> Segment:
        import numpy as np

        gaps = np.diff(self.offsets)
        zones = [gaps[begin : begin + ZONE - 1] for begin in range(0, self.count, ZONE)]
        most = [int(zone.max(initial=0)) for zone in zones]
        widths = [next(width for width in _WIDTHS if highest < 1 << 8 * width) for highest in most]
        ends = [0, *accumulate(width * len(zone) for width, zone in zip(widths, zones, strict=True))]
        buffer = np.empty(ends[-1], np.uint8)  # of all, for many small pieces would leave holes in memory
        for zone, width, begin, end in zip(zones, widths, ends, ends[1:], strict=False):
            buffer[begin:end] = zone.astype(f"<u{width}").view(np.uint8)
        blobs = [bytes_of(self.offsets[::ZONE].astype("<i8")), *(buffer[at:end].data for at, end in pairwise(ends))]
        return make_segment(OFFSETS, run, _listed(self._damaged), blobs)

    def differing(self, other: Offsets) -> BitMap:
        return differing(self.offsets, other.offsets)
