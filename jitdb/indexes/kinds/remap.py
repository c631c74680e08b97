"""Segments of a log that was compacted since: moved to the seqs that the records have now, without reading a record.

A compaction removes deleted records and packs the rest into blocks from the beginning of the file. So the order of the
records stays, each one's seq falls by the number of removed ones before it, and where it lies follows from the lengths
of those that stay. The result is the canonical form: one segment a span, byte for byte what a scan of the compacted log
gives once it is merged; but an index of hashes stays one, also where its values are few by now.

A span of the new log is made at a time, from the segments that hold its records.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from pyroaring import BitMap

from jitdb.indexes.kinds.bitmap import dictionary_of, make_bitmaps, make_grouped, make_set, span_start
from jitdb.indexes.kinds.column import (
    damaged_blocks,
    extent_of,
    load_numbers,
    load_offsets,
    make_numbers,
    make_offsets,
    with_damaged,
)
from jitdb.indexes.kinds.limits import UNKNOWN, too_many_keys
from jitdb.indexes.kinds.prefix import (
    hashes_of_bitmaps,
    load_prefixes,
    make_prefix_map,
    make_prefixes,
    prefix_offset_of,
)
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_mask, members_of
from jitdb.indexes.segment import BITMAPS, NUMBERS, PREFIX_MAP, PREFIXES, SET, SPAN, Run, Segment
from jitdb.indexes.spec import IndexSpec
from jitdb.log.blocks.layout import header_size, largest_record
from jitdb.log.blocks.packing import place_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.sidecar.removals import Removals

_KERNELS: Final = "jitdb.indexes.kinds.roaring_kernels"
_MANY_KEYS: Final = 1 << 14  # from so many bitmaps on it pays to load the kernels that write them


class Renumbering:
    """What the seqs of an earlier generation became, over one compaction or several (the oldest first)."""

    def __init__(self, removals: Sequence[Removals]) -> None:
        removed = np.empty(0, np.int64)
        for each in removals:
            seqs: NDArray[np.int64] = np.frombuffer(each.removed.to_array(), np.uint64).astype(np.int64)
            removed = np.sort(np.concatenate([removed, _before(removed, seqs)]))
        self._removed = removed

    def new(self, seq: int) -> int:
        """How many records before `seq` are still there: its seq now, if it is itself."""
        return seq - int(self._removed.searchsorted(seq))

    def old(self, seq: int) -> int:
        """Which record has this seq now."""
        return int(_before(self._removed, np.array([seq], np.int64))[0])

    def of_set(self, members: BitMap) -> BitMap:
        """Those of these records that are still there, by the seqs that they have now."""
        seqs = members_of(members).astype(np.int64)
        before = self._removed.searchsorted(seqs)
        gone = self._removed.searchsorted(seqs, side="right") > before
        return bitmap_of((seqs - before)[~gone].astype(np.uint32))

    def of_range(self, first: int, stop: int) -> NDArray[np.int64]:
        """The seqs now of the records [first, stop); -1 for those that were removed."""
        low, high = self._removed.searchsorted([first, stop]).tolist()
        kept = np.ones(stop - first, np.bool_)
        kept[self._removed[low:high] - first] = False
        seqs: NDArray[np.int64] = np.cumsum(kept, dtype=np.int64) + (first - low - 1)
        seqs[~kept] = -1
        return seqs


def _before(removed: NDArray[np.int64], seqs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The seqs that records had before these (ascending) ones were removed."""
    kept_before = removed - np.arange(len(removed))
    before: NDArray[np.int64] = seqs + kept_before.searchsorted(seqs, side="right")
    return before


class Part(NamedTuple):
    """A segment and where its records stand in a span of the new log: -1 for those that are not in it."""

    segment: Segment
    places: NDArray[np.int64]

    @property
    def kept(self) -> NDArray[np.bool_]:
        return self.places >= 0

    def moved(self, members: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The places of these members of a set of the segment."""
        return self.places[members.astype(np.int64) - (self.segment.first_seq - span_start(self.segment))]


def remap(segments: Sequence[Segment], renumbering: Renumbering, runs: Sequence[Run], spec: IndexSpec) -> list[Segment]:
    """The segments of an index, of any kind but OFFSETS, in the new log: one a run. Raises IndexDamaged.

    The runs are one a span, from seq 0 to where the index reaches now.
    """
    if not segments or not runs:
        return []
    make = _REMAP[segments[0].kind]
    made = [make(_parts(segments, renumbering, run), run) for run in runs]
    if made[0].kind == BITMAPS and spec.form == "auto":
        records = made[-1].end_seq
        keys = {keys[number] for keys in map(dictionary_of, made) for number in range(len(keys))}
        if too_many_keys(keys, records if records % SPAN else UNKNOWN):
            return [hashes_of_bitmaps(segment, spec.elements) for segment in made]
    return made


def _parts(segments: Sequence[Segment], renumbering: Renumbering, run: Run) -> list[Part]:
    first, count = run[:2]
    oldest, newest = renumbering.old(first), renumbering.old(first + count - 1)
    parts = []
    for segment in segments:
        if segment.first_seq <= newest and segment.end_seq > oldest:
            places = renumbering.of_range(segment.first_seq, segment.end_seq) - first
            places[(places < 0) | (places >= count)] = -1
            parts.append(Part(segment, places))
    return parts


def _bitmaps(parts: Sequence[Part], run: Run) -> Segment:
    numbers: dict[bytes, int] = {}
    owners, members = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for part in parts:
        keys = dictionary_of(part.segment)
        sets = [members_of(part.segment.set(number)) for number in range(len(keys))]
        places = part.moved(np.concatenate([np.empty(0, np.uint32), *sets]))
        mine = [numbers.setdefault(keys[number], len(numbers)) for number in range(len(keys))]
        owner = np.repeat(np.array(mine, np.int64), np.fromiter(map(len, sets), np.int64, len(sets)))
        owners.append(owner[places >= 0])
        members.append(places[places >= 0])
    rank = np.empty(len(numbers), np.int64)
    names = sorted(numbers)
    rank[[numbers[name] for name in names]] = np.arange(len(names))
    owner = rank[np.concatenate(owners)]
    member = np.concatenate(members).astype(np.uint32)
    if len(parts) > 1:  # those of one segment stand in order already
        order = np.argsort(owner, kind="stable")
        owner, member = owner[order], member[order]
    counts = np.bincount(owner, minlength=len(names))
    kept = np.flatnonzero(counts)
    return _grouped([names[number] for number in kept.tolist()], member, np.cumsum([0, *counts[kept]]), run)


def _grouped(keys: list[bytes], members: NDArray[np.uint32], begins: NDArray[np.int64], run: Run) -> Segment:
    if len(keys) >= _MANY_KEYS or _KERNELS in sys.modules:
        return make_grouped(keys, members, begins, run)
    bounds = begins.tolist()
    sets = [bitmap_of(members[start:stop]) for start, stop in pairwise(bounds)]
    return make_bitmaps(keys, sets, run)


def _set(parts: Sequence[Part], run: Run) -> Segment:
    found = [part.moved(members_of(part.segment.set(0))) for part in parts]
    places = np.concatenate(found)
    return make_set(bitmap_of(places[places >= 0].astype(np.uint32)), run)


def _prefixes(parts: Sequence[Part], run: Run) -> Segment:
    present, prefixes = [], []
    for part in parts:
        there, values = load_prefixes(part.segment)
        present.append(there[part.kept])
        prefixes.append(values[part.kept])
    offset = prefix_offset_of(parts[0].segment)
    return make_prefixes(bitmap_of_mask(np.concatenate(present), 0), np.concatenate(prefixes), offset, run)


def _prefix_map(parts: Sequence[Part], run: Run) -> Segment:
    prefixes, members = [], []
    for part in parts:
        places = part.moved(np.frombuffer(part.segment.blob(1), "<u4"))
        prefixes.append(np.frombuffer(part.segment.blob(0), "<u4")[places >= 0])
        members.append(places[places >= 0].astype(np.uint32))
    offset = prefix_offset_of(parts[0].segment)
    return make_prefix_map(np.concatenate(prefixes), np.concatenate(members), offset, run)


def _numbers(parts: Sequence[Part], run: Run) -> Segment:
    highs, lows = [], []
    for part in parts:
        hi, lo = load_numbers(part.segment)
        highs.append(hi[part.kept])
        lows.append(np.zeros(len(highs[-1]), np.int16) if lo is None else lo[part.kept])
    hi, lo = np.concatenate(highs), np.concatenate(lows)
    return make_numbers(hi, lo, extent_of(hi, lo), run)


_REMAP: Final[dict[int, Callable[[Sequence[Part], Run], Segment]]] = {
    BITMAPS: _bitmaps,
    SET: _set,
    PREFIXES: _prefixes,
    PREFIX_MAP: _prefix_map,
    NUMBERS: _numbers,
}


def remap_offsets(
    segments: Sequence[Segment], renumbering: Renumbering, removals: Removals, block_size: int
) -> list[Segment] | None:
    """The index of offsets in the new log; None where it does not fit what the first compaction tells of.

    `removals` is that compaction: it knows where the old blocks ended, so that the lengths of all records are known.
    However many came after it, the records that stay are packed from the beginning of the log. Raises IndexDamaged.
    """
    lengths = _lengths(segments, removals, block_size)
    if lengths is None:
        return None
    kept = renumbering.of_range(0, len(lengths)) >= 0
    lengths = lengths[kept]
    offsets, _, _ = place_array(lengths, 0, block_size)
    ends = offsets + header_size(block_size) + lengths
    made = []
    for first in range(0, len(offsets), SPAN):
        stop = min(first + SPAN, len(offsets))
        run = (first, stop - first, int(ends[first - 1]) if first else 0, int(ends[stop - 1]))
        made.append(make_offsets(offsets[first:stop], run))
    listed = damaged_blocks(segments)
    if listed and made:  # they were repaired since, or the log could not be compacted; whoever looks will find that
        made[0] = with_damaged(made[0], listed)
    return made


def _lengths(segments: Sequence[Segment], removals: Removals, block_size: int) -> NDArray[np.int64] | None:
    """The length of each record that the index knows."""
    offsets = np.concatenate([np.empty(0, np.int64), *map(load_offsets, segments)])
    if not len(offsets):
        return np.empty(0, np.int64)
    blocks = offsets // block_size
    if blocks[-1] >= len(removals.ends):
        return None
    ends = blocks * block_size + removals.ends[blocks]
    together = np.flatnonzero(blocks[1:] == blocks[:-1])
    ends[together] = offsets[together + 1]
    ends[-1] = segments[-1].end_offset
    lengths = ends - offsets - header_size(block_size)
    fits = bool((lengths > 0).all() and (lengths <= largest_record(block_size)).all())
    return lengths if fits else None
