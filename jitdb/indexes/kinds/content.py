"""What a segment holds, whatever its kind: what a kind of index must know so that it can be kept.

    merge     the contents of adjacent segments, end to end             (merge.py)
    shift     those of a range, cut where a span ends and moved         (shift.py)
    remap     what is left of each in a compacted log, end to end       (remap.py)
    compare   what differs from the content that a scan gives           (engine/checking/check_content.py)

A new kind is a file here, a line in segment.LAYOUTS, and a builder (indexes/building).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, Self

from jitdb.indexes.segment import LAYOUTS, SPAN, Run, Segment

if TYPE_CHECKING:
    from pyroaring import BitMap

    from jitdb.indexes.kinds.places import Places


class Content(ABC):
    """What an index says of a run of records, in memory.

    first: the number of the first one in the sets of the run: its seq, less the start of its span
    count: how many there are
    """

    first: int
    count: int

    @staticmethod
    @abstractmethod
    def fits(segment: Segment) -> bool:
        """Whether meta and table are those of a segment of this kind. A CRC tells what was damaged, not what somebody
        made up. Reads no blob.
        """

    @staticmethod
    def is_inside(segment: Segment, number: int, blob: bytes) -> bool:
        """Whether a blob that names records, or places in the log, names those of the segment alone."""
        return True

    @classmethod
    @abstractmethod
    def of(cls, segment: Segment) -> Self:
        """That of a segment. Raises IndexDamaged."""

    @abstractmethod
    def take(self, places: Places) -> Content:
        """What is said of the records that are taken, by their new numbers."""

    @classmethod
    @abstractmethod
    def concat(cls, parts: Sequence[Self]) -> Content:
        """That of all parts end to end: their records are numbered on from those of the first one."""

    @abstractmethod
    def segment(self, run: Run) -> Segment:
        """As a segment: the same content of the same run gives the same bytes, however it came about."""

    @abstractmethod
    def differing(self, other: Self) -> BitMap:
        """The numbers of the records of which the other one, of as many records, says something else."""


def first_in_span(segment: Segment) -> int:
    """The number of its first record in the sets that it holds."""
    return segment.first_seq % SPAN


def shifts(parts: Sequence[Content]) -> list[int]:
    """What is to be added to the numbers of each part when they stand end to end."""
    ends = accumulate((part.count for part in parts), initial=parts[0].first)
    return [end - part.first for end, part in zip(ends, parts, strict=False)]


def shifted(members: BitMap, by: int) -> BitMap:
    """Each member and so much more."""
    return members.shift(by) if by else members


@cache
def content_type(kind: int) -> type[Content]:
    """What knows the segments of this kind. Only its module is loaded: most take numpy."""
    module, name = LAYOUTS[kind].content.split(":")
    found: type[Content] = getattr(import_module(f"jitdb.indexes.kinds.{module}"), name)
    return found
