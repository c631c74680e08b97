"""Segments renumbered after a compaction of the log, without reading a record.

A compaction removes deleted records and packs the rest into blocks from the beginning of the file. The records keep
their order, the seq of each falls by the number of removed ones before it, and its place follows from the lengths of
those that stay. Each span of the new log is made from the segments that hold its records. The result is canonical: one
segment a span, byte for byte that of a scan of the compacted log after merging; but an index of hashes stays one, even
if its values are few by now.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from pyroaring import BitMap

from jitdb.indexes.kinds.bitmaps import UNKNOWN, distinct_keys, too_many_keys
from jitdb.indexes.kinds.content import Content, Places, content_type
from jitdb.indexes.kinds.offsets import Offsets, damaged_blocks, load_zones, with_damaged
from jitdb.indexes.kinds.prefixes import hashes_of_bitmaps
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_range, members_of
from jitdb.indexes.segment import BITMAPS, SPAN, Run, Segment
from jitdb.indexes.spec import IndexSpec
from jitdb.log.blocks.block_format import header_size, largest_record, place_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.sidecar.removals import Removals


_MOST: Final = 1 << 32  # records of a log that has indexes


class Renumbering:
    """From the seqs of an earlier generation to those of now, over one compaction or several (the oldest first)."""

    def __init__(self, removals: Sequence[Removals]) -> None:
        self._records = min([_MOST, *(each.records for each in removals[:1])])
        removed = np.empty(0, np.int64)
        for each in removals:
            seqs: NDArray[np.int64] = np.frombuffer(each.removed.to_array(), np.int64)
            removed = np.sort(np.concatenate([removed, _before(removed, seqs)])) if len(removed) else seqs
        self._removed = removed

    def new(self, seq: int) -> int:
        """How many records before `seq` are still there: its seq now, if it is still there."""
        return seq - int(self._removed.searchsorted(seq))

    def old(self, seq: int) -> int:
        """The earlier seq of the record that has this one now."""
        removed = self._removed
        return seq + bisect_right(range(len(removed)), seq, key=lambda place: int(removed[place]) - place)

    def of_set(self, members: BitMap) -> BitMap:
        """The seqs now of those among these records that are still there."""
        seqs = members_of(members & bitmap_of_range(0, self._records)).astype(np.int64)
        before = self._removed.searchsorted(seqs)
        gone = self._removed.searchsorted(seqs, side="right") > before
        return bitmap_of((seqs - before)[~gone].astype(np.uint32))

    def of_range(self, first: int, stop: int) -> NDArray[np.int64]:
        """The seqs now of the records [first, stop); -1 for those that were removed."""
        low, high = self._removed.searchsorted([first, stop]).tolist()
        kept = np.ones(stop - first, np.bool_)
        kept[self._removed[low:high] - first] = False
        seqs: NDArray[np.int64] = np.cumsum(kept, dtype=np.int64)
        seqs += first - low - 1
        seqs[~kept] = -1
        return seqs


def _before(removed: NDArray[np.int64], seqs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The seqs of records before these (ascending) ones were removed."""
    kept_before = removed - np.arange(len(removed))
    before: NDArray[np.int64] = seqs + kept_before.searchsorted(seqs, side="right")
    return before


def remap(segments: Sequence[Segment], renumbering: Renumbering, runs: Sequence[Run], spec: IndexSpec) -> list[Segment]:
    """The segments of an index, of any kind but OFFSETS, in the new log: one a run. Raises IndexDamaged.

    The runs are one a span, from seq 0 to where the index reaches now.
    """
    if not segments or not runs:
        return []
    kind = content_type(segments[0].kind)
    made = [kind.concat(_taken(kind, segments, renumbering, run)).segment(run) for run in runs]
    if spec.form == "deleted":
        made = [segment.changed(meta=b"") for segment in made]  # its fingerprint was of the old blocks
    if made[0].kind == BITMAPS and spec.form == "auto":
        records = made[-1].end_seq
        if too_many_keys(distinct_keys(made), records if records % SPAN else UNKNOWN):
            return [hashes_of_bitmaps(segment, spec.is_owned) for segment in made]
    return made


def _taken(kind: type[Content], segments: Sequence[Segment], renumbering: Renumbering, run: Run) -> list[Content]:
    """The parts of the segments for the records of a span of the new log."""
    first, count = run[:2]
    oldest, newest = renumbering.old(first), renumbering.old(first + count - 1)
    parts = []
    for segment in segments:
        if segment.first_seq <= newest and segment.end_seq > oldest:
            numbers = renumbering.of_range(segment.first_seq, segment.end_seq)
            numbers -= first
            numbers[(numbers < 0) | (numbers >= count)] = -1
            parts.append(kind.of(segment).take(Places(numbers.astype(np.int32))))
    return parts


def remap_offsets(
    segments: Sequence[Segment], renumbering: Renumbering, removals: Removals, block_size: int
) -> list[Segment] | None:
    """The index of offsets in the new log; None if it does not fit the first compaction.

    `removals` is that compaction. It knows where the old blocks ended, so the lengths of all records are known. After
    any number of further compactions, the records are packed from the beginning of the log. Raises IndexDamaged.
    """
    made: list[Segment] = []
    parts: list[NDArray[np.int64]] = []
    held = begin = end = 0

    def seal() -> None:
        nonlocal parts, held, begin
        made.append(Offsets(np.concatenate(parts), 0).segment((len(made) * SPAN, held, begin, end)))
        parts, held, begin = [], 0, end

    for segment in segments:
        seq = segment.first_seq
        for lengths in _lengths(segment, removals, block_size):
            if lengths is None:
                return None
            kept = lengths[renumbering.of_range(seq, seq + len(lengths)) >= 0]
            seq += len(lengths)
            while len(kept):
                offsets, _, end = place_array(kept[: SPAN - held], end, block_size)
                kept = kept[len(offsets) :]
                parts.append(offsets)
                held += len(offsets)
                if held == SPAN:
                    seal()
    if held:
        seal()
    listed = damaged_blocks(segments)
    if listed and made:  # they were repaired since, or there was no compaction; the next look at them finds that
        made[0] = with_damaged(made[0], listed)
    return made


def _lengths(segment: Segment, removals: Removals, block_size: int) -> Iterator[NDArray[np.int64] | None]:
    """The lengths of the records of an index's segment, zone by zone; None where they do not fit the compaction."""
    for offsets, following in load_zones(segment):
        blocks = offsets // block_size
        if blocks[-1] >= len(removals.ends):
            yield None
            return
        ends = np.append(offsets[1:], following)
        is_last = ends // block_size != blocks
        is_last[-1] &= following != segment.end_offset
        ends[is_last] = blocks[is_last] * block_size + removals.ends[blocks[is_last]]
        lengths = ends - offsets - header_size(block_size)
        yield lengths if (lengths > 0).all() and (lengths <= largest_record(block_size)).all() else None
