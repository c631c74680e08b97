"""A single set of records: the deleted ones, or those that a predicate accepts. Segment kind SET.

The meta of the set of deleted records is a fingerprint, which proves that the log has the bytes that were indexed: how
much of the journal of deletions was known, and the blocks that no checksum proved (docs/format-index.md).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyroaring import BitMap

from jitdb.indexes.kinds.content import Content, Places, shifted, shifts
from jitdb.indexes.kinds.roaring import LARGEST_SET, dump, union_of
from jitdb.indexes.segment import SET, Journal, Run, Segment, make_segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROW: Final = [("number", "<u8"), ("length", "<u4"), ("crc", "<u4")]  # for numpy; on disk: never change
_ROW: Final = struct.Struct("<QII")  # the same


class Fingerprint(NamedTuple):
    """What is known of the log up to where an index of deleted records ends."""

    block_size: int
    journal: Journal
    blocks: NDArray[Any]  # of ROW: those that no checksum proved

    def encode(self) -> bytes:
        return _ROW.pack(self.journal.deletions, self.block_size, self.journal.crc) + self.blocks.tobytes()

    def within(self, start: int, end: int) -> Fingerprint:
        """Its part for the bytes from `start` to `end` of the log."""
        numbers, size = self.blocks["number"], self.block_size
        return self._replace(blocks=self.blocks[(numbers >= start // size) & (numbers <= max(0, end - 1) // size)])

    def followed_by(self, other: Fingerprint, start: int) -> Fingerprint:
        """Both together; from this byte of the log on `other` counts, also for a block that was not full before."""
        import numpy as np

        numbers, last = self.blocks["number"], start // self.block_size
        whole = (numbers == last) & (self.blocks["length"] == self.block_size)
        before = self.blocks[((numbers < last) | whole) & ~np.isin(numbers, other.blocks["number"])]
        return other._replace(blocks=np.concatenate([before, other.blocks]))


def unproven_rows(numbers: NDArray[np.int64], lengths: NDArray[np.int64], crcs: NDArray[np.int64]) -> NDArray[Any]:
    import numpy as np

    rows = np.empty(len(numbers), ROW)
    rows["number"], rows["length"], rows["crc"] = numbers, lengths, crcs
    return rows


def journal_in(meta: bytes) -> Journal | None:
    """How much of the journal was known, by a segment's meta; None if that is empty."""
    deletions, block_size, crc = _ROW.unpack_from(meta) if meta else (0, 0, 0)
    return Journal(deletions, crc) if block_size else None


def decode(meta: bytes) -> Fingerprint | None:
    """The fingerprint in a segment's meta; None if that is empty."""
    import numpy as np

    journal = journal_in(meta)
    if journal is None:
        return None
    rows = np.frombuffer(meta, ROW)
    return Fingerprint(int(rows[0]["length"]), journal, rows[1:])


def joined(parts: Sequence[tuple[Fingerprint | None, int]]) -> Fingerprint | None:
    """The fingerprint of adjacent runs, each with the byte of the log where it begins; None if one has none."""
    found: Fingerprint | None = None
    for part, start in parts:
        if part is None:
            return None
        found = part if found is None else found.followed_by(part, start)
    return found


def records_in_sets(segments: Iterable[Segment]) -> BitMap:
    """All members of several SET segments, in absolute seqs. Raises IndexDamaged."""
    return union_of(shifted(segment.set(0), segment.span_start) for segment in segments)


def fingerprint_of(segments: Sequence[Segment]) -> Fingerprint | None:
    """The fingerprint in an index of deleted records; None if a segment has none."""
    return joined([(decode(segment.meta), segment.first_offset) for segment in segments])


class Set(Content):
    """The members, and the fingerprint of the log from the byte `start` on."""

    def __init__(
        self, members: BitMap, first: int, count: int, fingerprint: Fingerprint | None = None, start: int = 0
    ) -> None:
        self.members = members
        self.first, self.count = first, count
        self._fingerprint, self._start = fingerprint, start

    @staticmethod
    def fits(segment: Segment) -> bool:
        return len(segment.table) == 1 and len(segment.meta) % 16 == 0 and segment.table.lengths[0] <= LARGEST_SET

    @classmethod
    def of(cls, segment: Segment) -> Set:
        found = segment.set(0)
        return cls(found, segment.first_in_span, segment.count, decode(segment.meta), segment.first_offset)

    def take(self, places: Places) -> Set:
        members = places.set(self.members, self.first)
        return Set(members, places.first, places.count, self._fingerprint, self._start)

    @classmethod
    def concat(cls, parts: Sequence[Set]) -> Set:
        members = union_of(shifted(part.members, by) for part, by in zip(parts, shifts(parts), strict=True))
        fingerprint = joined([(part._fingerprint, part._start) for part in parts])
        return cls(members, parts[0].first, sum(part.count for part in parts), fingerprint, parts[0]._start)

    def segment(self, run: Run) -> Segment:
        meta = b"" if self._fingerprint is None else self._fingerprint.within(*run[2:]).encode()
        return make_segment(SET, run, meta, [dump(self.members)])

    def differing(self, other: Set) -> BitMap:
        return self.members ^ other.members
