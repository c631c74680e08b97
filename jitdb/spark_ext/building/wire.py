"""Segments on their way between machines: as they stand in an index file, so that their CRCs travel with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitdb.indexes.files.file import read_segment

if TYPE_CHECKING:
    from jitdb.indexes.segment import Segment


def pack(segment: Segment) -> bytes:
    """The bytes of a segment. Raises IndexDamaged."""
    return b"".join(segment.parts())


def unpack(raw: bytes) -> Segment:
    """The segment of these bytes, all in memory and verified. Raises IndexDamaged, EOFError."""
    segment, _ = read_segment(lambda position, length: raw[position : position + length], 0, len(raw), "a segment sent")
    segment.verify()
    position = segment.lead
    blobs = []
    for length in segment.table.lengths:
        blobs.append(raw[position : position + length])
        position += length
    return segment.changed(blobs=tuple(blobs), read_at=None)
