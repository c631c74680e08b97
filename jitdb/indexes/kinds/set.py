"""A single set of records: the deleted ones, or those that a predicate accepts.

Segment kind SET: one blob, a portable roaring bitmap of seq - span_start. `meta` is empty, but where the set is of
deleted records: see fingerprint.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyroaring import BitMap

from jitdb.indexes.fingerprint import Fingerprint, decode, joined
from jitdb.indexes.kinds.content import Content, first_in_span, shifted, shifts
from jitdb.indexes.kinds.roaring import LARGEST_SET, dump, union_of
from jitdb.indexes.segment import SET, Run, Segment, make_segment

if TYPE_CHECKING:
    from jitdb.indexes.kinds.places import Places


def make_set(bitmap: BitMap, run: Run, fingerprint: Fingerprint | None = None) -> Segment:
    """A SET segment; the set is relative to the span's start. That of deleted records has a fingerprint."""
    return make_segment(SET, run, b"" if fingerprint is None else fingerprint.encode(), [dump(bitmap)])


def records_in_sets(segments: Iterable[Segment]) -> BitMap:
    """All members of several SET segments, in absolute seqs. Raises IndexDamaged."""
    return union_of(shifted(segment.set(0), segment.span_start) for segment in segments)


def fingerprint_of(segments: Sequence[Segment]) -> Fingerprint | None:
    """What the segments of an index of deleted records tell of the log; None where one of them says nothing."""
    return joined([(decode(segment.meta), segment.first_offset) for segment in segments])


class Set(Content):
    """The members; and what is known of the log from the byte `start` on."""

    def __init__(
        self, members: BitMap, first: int, count: int, fingerprint: Fingerprint | None = None, start: int = 0
    ) -> None:
        self.members = members
        self.first, self.count = first, count
        self._fingerprint, self._start = fingerprint, start

    @staticmethod
    def fits(segment: Segment) -> bool:
        return len(segment.table) == 1 and len(segment.meta) % 16 == 0 and segment.table.longest() <= LARGEST_SET

    @classmethod
    def of(cls, segment: Segment) -> Set:
        found = segment.set(0)
        return cls(found, first_in_span(segment), segment.count, decode(segment.meta), segment.first_offset)

    def take(self, places: Places) -> Set:
        members = places.set(self.members, self.first)
        return Set(members, places.first, places.count, self._fingerprint, self._start)

    @classmethod
    def concat(cls, parts: Sequence[Set]) -> Set:
        members = union_of(shifted(part.members, by) for part, by in zip(parts, shifts(parts), strict=True))
        fingerprint = joined([(part._fingerprint, part._start) for part in parts])
        return cls(members, parts[0].first, sum(part.count for part in parts), fingerprint, parts[0]._start)

    def segment(self, run: Run) -> Segment:
        return make_set(self.members, run, None if self._fingerprint is None else self._fingerprint.within(*run[2:]))

    def differing(self, other: Set) -> BitMap:
        return self.members ^ other.members
