"""Where chosen records stand in segments: found once, for all columns that are asked about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.indexes.kinds.roaring import bitmap_of_range, members_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.indexes.segment import Segment


NOWHERE: Final = np.empty(0, np.uint32)


class Within(NamedTuple):
    """The chosen records of a segment.

    places: where they stand in it: a slice where no other one is between them
    others: whether these are the places of its other records instead, which are fewer: none, where all are chosen
    """

    places: slice | NDArray[np.uint32]
    others: bool


class Members:
    """Records that many columns are asked about."""

    def __init__(self, records: BitMap) -> None:
        self.records = records
        self._known: dict[tuple[int, int], Within | None] = {}  # by the first record of a segment, and the one behind

    def __len__(self) -> int:
        return len(self.records)

    def within(self, segment: Segment) -> Within | None:
        """Where they stand in a segment; None where it has none of them."""
        run = segment.first_seq, segment.end_seq
        if run not in self._known:
            self._known[run] = self._find(*run)
        return self._known[run]

    def _find(self, first: int, end: int) -> Within | None:
        every = bitmap_of_range(first, end)
        there = self.records & every
        if not there:
            return None
        if len(there) == end - first:
            return Within(NOWHERE, True)
        begin, behind = there.min() - first, there.max() + 1 - first
        if len(there) == behind - begin:
            return Within(slice(begin, behind), False)
        others = 2 * len(there) > end - first
        return Within(members_of(every - there if others else there) - np.uint32(first), others)


def places_in(segments: Iterable[Segment], matches: BitMap) -> Iterator[tuple[Segment, Any]]:
    """Each segment that has some of these records, and their places in it: a slice where none is between them."""
    if not matches:
        return
    first, last = matches.min(), matches.max()
    for segment in segments:
        if segment.end_seq <= first or segment.first_seq > last:
            continue
        there = matches & bitmap_of_range(segment.first_seq, segment.end_seq)
        if not there:
            continue
        begin, end = there.min(), there.max() + 1
        if len(there) == end - begin:
            yield segment, slice(begin - segment.first_seq, end - segment.first_seq)
        else:
            yield segment, members_of(there) - np.uint32(segment.first_seq)
