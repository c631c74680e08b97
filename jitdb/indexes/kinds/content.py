"""What a segment of any kind holds, and what a kind of index must do so that its segments can be kept.

    merged    the contents of adjacent segments, end to end
    placed    those of a range, cut where a span ends and moved
    remap     what is left of each in a compacted log, end to end       (remap.py)
    compare   what differs from the content that a scan gives           (engine/checking/check_indexes.py)

A new kind is a file here, with a Content and a Builder (builder.py), and a line in segment.LAYOUTS.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Self

from pyroaring import BitMap

from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_mask, members_of
from jitdb.indexes.segment import LAYOUTS, SPAN, Run, Segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DENSE: Final = 16  # a set with one of so many records, or more, is moved faster as a mask


class Places:
    """Which records of a run are taken, and the number that each of them gets.

    `numbers[i]` is what the run's record i becomes, or -1 where it is not taken. They ascend, without gaps.

    Here and in sets, a record's number is its seq less the start of its span; `first` is that of the first in the run.
    """

    def __init__(self, numbers: NDArray[np.int32]) -> None:
        import numpy as np

        self._numbers = numbers
        self._taken = numbers >= 0
        self.count = int(np.count_nonzero(self._taken))
        self.first = int(numbers[self._taken.argmax()]) if self.count else 0

    @classmethod
    def chosen(cls, which: slice | NDArray[np.int64], count: int, first: int = 0) -> Self:
        """These of so many records, numbered from `first` on."""
        import numpy as np

        numbers = np.full(count, -1, np.int32)
        numbers[which] = np.arange(first, first + len(numbers[which]))
        return cls(numbers)

    def column(self, values: NDArray[Any]) -> NDArray[Any]:
        """Of a value a record, those of the taken ones."""
        return values[self._taken]

    def numbers(self, members: NDArray[np.uint32], first: int) -> NDArray[np.int32]:
        return self._numbers.take(members - members.dtype.type(first))

    def set(self, members: BitMap, first: int) -> BitMap:
        """The taken ones among these members."""
        seqs = members_of(members)
        if len(seqs) * _DENSE < len(self._numbers):
            numbers = self.numbers(seqs, first)
            return bitmap_of(numbers[numbers >= 0].astype("u4"))
        import numpy as np

        there = np.zeros(len(self._numbers), np.bool_)
        there[seqs - np.uint32(first)] = True
        return bitmap_of_mask(there[self._taken], self.first)


class Shape(ABC):
    """What a segment of a kind must be, and what its head says."""

    @staticmethod
    @abstractmethod
    def fits(segment: Segment) -> bool:
        """Whether meta and table can be those of a segment of this kind: a CRC does not prove who made it. Reads no
        blob.
        """

    @staticmethod
    def is_inside(segment: Segment, number: int, blob: bytes) -> bool:
        """Whether a blob names no records, or places in the log, but the segment's."""
        return True

    @staticmethod
    def is_void(segment: Segment) -> bool:
        """Whether no record has a value; False if that is not known. Raises IndexDamaged."""
        return False


class Content(Shape):
    """What an index says of a run of records, in memory.

    first: the number of the first one in the sets of the run: its seq, less the start of its span
    count: how many there are
    """

    first: int
    count: int

    @classmethod
    @abstractmethod
    def of(cls, segment: Segment) -> Self:
        """The content of a segment. Raises IndexDamaged."""

    @abstractmethod
    def take(self, places: Places) -> Content:
        """The content for the records that are taken, by their new numbers."""

    @classmethod
    @abstractmethod
    def concat(cls, parts: Sequence[Self]) -> Content:
        """All parts end to end: their records are numbered on from those of the first one."""

    @abstractmethod
    def segment(self, run: Run) -> Segment:
        """As a segment: the same content of the same run gives the same bytes, however it came about."""

    @abstractmethod
    def differing(self, other: Self) -> BitMap:
        """The numbers of the records for which the other content, of as many records, differs."""


def shifts(parts: Sequence[Content]) -> list[int]:
    """What is to be added to the numbers of each part when they stand end to end."""
    ends = accumulate((part.count for part in parts), initial=parts[0].first)
    return [end - part.first for end, part in zip(ends, parts, strict=False)]


def shifted(members: BitMap, by: int) -> BitMap:
    return members.shift(by) if by else members


def content_type(kind: int) -> type[Content]:
    """The Content of this kind. Only its module is loaded: most import numpy."""
    found: type[Content] = _loaded(LAYOUTS[kind].content)
    return found


def shape_of(kind: int) -> type[Shape]:
    """The Shape of this kind, without its Content where that imports numpy and questions are answered without."""
    found: type[Shape] = _loaded(LAYOUTS[kind].shape or LAYOUTS[kind].content)
    return found


@cache
def _loaded(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(f"jitdb.indexes.kinds.{module}"), name)


def is_void(segment: Segment) -> bool:
    """Whether it is about a field in which none of its records has a value. Raises IndexDamaged."""
    return shape_of(segment.kind).is_void(segment)


def merged(segments: Sequence[Segment]) -> Segment:
    """One segment of adjacent ones of one kind and one span, in order. Its bytes do not depend on how they were cut.

    Raises IndexDamaged.
    """
    if len(segments) == 1:
        return segments[0]
    last, kind = segments[-1], content_type(segments[-1].kind)
    made = kind.concat([kind.of(segment) for segment in segments]).segment(run_of(segments))
    return made.changed(last_crc=last.last_crc, journal=last.journal)


def run_of(segments: Sequence[Segment]) -> Run:
    first, last = segments[0], segments[-1]
    return first.first_seq, last.end_seq - first.first_seq, first.first_offset, last.end_offset


def placed(segment: Segment, first: int, start: int, end_of: Callable[[int], int]) -> Iterator[Segment]:
    """The segment moved to its place in the log, cut where spans end.

    A scan of a range of blocks does not know how many records stand before it, and counts them from 0. Merged with
    their neighbours, the segments are byte for byte those of one scan of the whole log.

    first:  the seq that the segment's seq 0 has in the log
    start:  where in the log the record before the segment's first one ends; 0 where there is none
    end_of: where in the log a record ends, by the seq that it has in the segment
    """
    low, content = 0, content_type(segment.kind).of(segment)
    while low < segment.count:
        seq = first + segment.first_seq + low
        high = min(segment.count, low + SPAN - seq % SPAN)
        end = end_of(segment.first_seq + high - 1)
        places = Places.chosen(slice(low, high), segment.count, seq % SPAN)
        yield content.take(places).segment((seq, high - low, start, end))
        low, start = high, end
