"""Where chosen records stand in segments: found once, for all columns that are asked about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from jitdb.indexes.kinds.roaring import CONTAINER, bitmap_of_range, members_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.common.paths import Path
    from jitdb.indexes.segment import Segment


NOWHERE: Final = np.empty(0, np.uint32)
_Run: TypeAlias = tuple[int, int]  # the first record of a segment, and the one behind its last
_FEW: Final = 1 << 20  # records: a number and a code of each take 12 MB


class Within(NamedTuple):
    """The chosen records of a segment.

    places: where they stand in it: a slice where no other one is between them
    others: whether these are the places of its other records instead, which are fewer: none, where all are chosen
    """

    places: slice | NDArray[np.uint32]
    others: bool


class Members:
    """Records that many columns are asked about.

    kept: what was found of each of them and is asked for again: numbers and codes of a field
    """

    def __init__(self, records: BitMap) -> None:
        self.records = records
        self.kept: dict[tuple[str, str | Path], Any] = {}
        self._parts: list[Members] | None = None
        self._known: dict[_Run, Within | None] = {}
        self._places: dict[_Run, slice | NDArray[np.uint32] | None] = {}

    def __len__(self) -> int:
        return len(self.records)

    def parts(self) -> Iterable[Members]:
        """Those of each run of the log, at most CONTAINER at once; of few, the same ones each time."""
        if not self.are_few:
            return self._each()
        if self._parts is None:
            self._parts = list(self._each())
        return self._parts

    def _each(self) -> Iterator[Members]:
        begin, end = (self.records.min(), self.records.max() + 1) if self.records else (0, 0)
        first = begin - begin % CONTAINER
        for stop in range(first, end, CONTAINER):
            if stop > first and self.records.range_cardinality(first, stop + CONTAINER) > CONTAINER:
                yield Members(self.records & bitmap_of_range(first, stop))
                first = stop
        if self.records:
            yield Members(self.records & bitmap_of_range(first, end))

    @property
    def are_few(self) -> bool:
        """Whether there is room to keep something of each of them."""
        return len(self.records) <= _FEW

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

    def places_in(self, segments: Iterable[Segment]) -> Iterator[tuple[Segment, slice | NDArray[np.uint32]]]:
        """Each segment that has some of them, and their places in it: a slice where no other one is between them."""
        if not self.records:
            return
        first, last = self.records.min(), self.records.max()
        for segment in segments:
            if segment.end_seq > first and segment.first_seq <= last:
                places = self._places_in(segment)
                if places is not None:
                    yield segment, places

    def _places_in(self, segment: Segment) -> slice | NDArray[np.uint32] | None:
        run = segment.first_seq, segment.end_seq
        if run in self._places:
            return self._places[run]
        there = self.records & bitmap_of_range(*run)
        places: slice | NDArray[np.uint32] | None = None
        if there:
            begin, end = there.min() - run[0], there.max() + 1 - run[0]
            places = slice(begin, end) if len(there) == end - begin else members_of(there) - np.uint32(run[0])
        if self.are_few:
            self._places[run] = places
        return places
