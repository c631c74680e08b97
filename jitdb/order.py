"""In which order the answers come, and the first of them without sorting all.

*Declared* order goes by the timestamp column, then by seq; records without a timestamp come first. To sort exactly by
whole integers, every segment of the column is turned into int64 *ranks* once: the number itself while all numbers are
whole and fit, an order-keeping image of the double's bits while no rest `lo` is needed, else the place in the sorted
column. A log mostly grows in the order of time, so the extremes of short zones tell which few zones can hold the next
answers: the ten newest of a million are found in some hundred of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.indexes.column import ALL_WHOLE, HAS_RESTS, load_numbers, number_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.index import Index
    from jitdb.indexes.segment import Segment

ZONE: Final = 1 << 12  # records whose extremes are known together
_NONE: Final = np.iinfo(np.int64).min  # the rank of a record without a number: before all others


class Ranks:
    """int64 ranks of all records of a column, with the extremes of each zone. Guarded by the engine's lock."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._ranks: NDArray[np.int64] = np.empty(0, np.int64)
        self._count = 0
        self._mode = ""
        self._low: NDArray[np.int64] = np.empty(0, np.int64)
        self._high: NDArray[np.int64] = np.empty(0, np.int64)

    def first(self, members: NDArray[np.uint32], wanted: int, descending: bool) -> NDArray[np.uint32]:
        """The first `wanted` of these records (ascending seqs) in declared order, or in its reverse.

        The index must cover them. Raises IndexDamaged.
        """
        self._extend()
        if wanted <= 0:
            return members[:0]
        if wanted * 4 < len(members) and len(members) > ZONE:
            members = self._extremes(members, wanted, descending)
        # Members ascend, so a stable sort by rank breaks ties by seq.
        order = np.argsort(self._ranks[members], kind="stable")
        ordered = members[order[::-1]] if descending else members[order]
        return ordered[:wanted]

    def _extremes(self, members: NDArray[np.uint32], wanted: int, descending: bool) -> NDArray[np.uint32]:
        """Those members, ascending, among which the first `wanted` are."""
        bound = -self._high if descending else self._low  # the best rank in each zone, smaller is better
        if descending:
            bound = np.where(self._high == _NONE, np.iinfo(np.int64).max, bound)
        begins = np.searchsorted(members, np.arange(0, len(bound) + 1, dtype=np.uint32) * np.uint32(ZONE))
        zones = np.flatnonzero(begins[1:] > begins[:-1])
        zones = zones[np.argsort(bound[zones], kind="stable")]
        chosen: list[NDArray[np.uint32]] = []
        best = np.empty(0, np.int64)
        step = 0
        taken = 0
        while taken < len(zones):
            step = max(1, 2 * step)
            batch = zones[taken : taken + step]
            taken += len(batch)
            found = np.concatenate([members[begins[zone] : begins[zone + 1]] for zone in batch.tolist()])
            chosen.append(found)
            ranks = self._ranks[found]
            best = np.concatenate([best, np.where(ranks == _NONE, -(_NONE + 1), -ranks) if descending else ranks])
            if len(best) >= wanted:
                best = np.partition(best, wanted - 1)[:wanted]
                # A zone that could tie is looked at too: a tie is decided by seq.
                if taken < len(zones) and bound[zones[taken]] > best[wanted - 1]:
                    break
        return np.sort(np.concatenate(chosen))

    def _extend(self) -> None:
        """Bring ranks and zones up to the column's end."""
        segments = self._index.segments
        end = self._index.end_seq
        if self._count == end:
            return
        mode = rank_mode(segments)
        if mode != self._mode or mode == "place":
            self._count, self._mode = 0, mode
        if end > len(self._ranks):
            grown = np.empty(end + end // 8 + ZONE, np.int64)
            grown[: self._count] = self._ranks[: self._count]
            self._ranks = grown
        if mode == "place":
            self._ranks[:end] = places(segments)
        else:
            for segment in self._index.since(self._count):
                self._ranks[segment.first_seq : segment.end_seq] = ranks_of(segment, mode)
        first = self._count // ZONE
        starts = np.arange(first * ZONE, end, ZONE)
        self._low = np.concatenate([self._low[:first], np.minimum.reduceat(self._ranks[:end], starts)])
        self._high = np.concatenate([self._high[:first], np.maximum.reduceat(self._ranks[:end], starts)])
        self._count = end


def rank_mode(segments: list[Segment]) -> str:
    """How the numbers of a column become ranks: "whole", "bits" or "place" (see the head of this file)."""
    known = [found for segment in segments if (found := number_range(segment))[0] <= found[1]]
    if all(flags & ALL_WHOLE and -(2.0**62) < low and high < 2.0**62 for low, high, flags in known):
        return "whole"
    if not any(flags & HAS_RESTS for _, _, flags in known):
        return "bits"
    return "place"


def ranks_of(segment: Segment, mode: str) -> NDArray[np.int64]:
    """The ranks of one segment's records, in mode "whole" or "bits"."""
    hi, lo = load_numbers(segment)
    missing = np.isnan(hi)
    if mode == "whole":
        ranks = np.where(missing, 0.0, hi).astype(np.int64)
        if lo is not None:
            ranks += lo
    else:
        bits = np.ascontiguousarray(hi).view(np.int64)
        ranks = bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
    return np.where(missing, _NONE, ranks)


def places(segments: list[Segment]) -> NDArray[np.int64]:
    """Equal numbers have equal ranks, larger ones larger ranks; for columns that neither other mode can rank."""
    parts = [load_numbers(segment) for segment in segments]
    hi = np.concatenate([part[0] for part in parts])
    lo = np.concatenate([np.zeros(len(part[0]), np.int16) if part[1] is None else part[1] for part in parts])
    order = np.lexsort((lo, hi))  # NaN last
    new = np.ones(len(order), np.bool_)
    new[1:] = (hi[order][1:] != hi[order][:-1]) | (lo[order][1:] != lo[order][:-1])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(new)
    ranks[np.isnan(hi)] = _NONE
    return ranks
