"""Reading segments from a file, and what each must be, whoever wrote it."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from jitdb.errors import IndexDamaged
from jitdb.indexes.blob_cache import ReadAt
from jitdb.indexes.kinds.content import content_type
from jitdb.indexes.segment import (
    BLOB_ROW,
    HAS_NOTE,
    HEAD,
    HEAD_SIZE,
    LAYOUTS,
    MAGIC,
    NO_JOURNAL,
    NOTE,
    SPAN,
    Journal,
    Segment,
    Table,
)

_MOST_RECORDS: Final = 1 << 32  # a set's members have 32 bits


def read_segment(read_at: ReadAt, position: int, file_size: int, path: str) -> tuple[Segment, int]:
    """The segment at `position` and the position after it.

    Raises EOFError where the file ends inside it or has nothing but zeros for its head (a torn write: the file grew,
    its bytes did not reach the disk), and where it is of an older version: both are built again without a word.
    IndexDamaged where a CRC does not hold.
    """
    raw = read_at(position, HEAD_SIZE)
    if len(raw) < HEAD_SIZE or not any(raw):
        raise EOFError
    expected, got = int.from_bytes(raw[-4:], "little"), crc32(raw[:-4])
    if expected != got:
        raise IndexDamaged(f"segment head: expected CRC {expected:08x}, got {got:08x}", path=path, offset=position)
    (
        magic, kind, version, flags, first_seq, count, last_crc, first_offset, end_offset, blobs, meta_size, body, crc
    ) = HEAD.unpack(raw[:-4])  # fmt: skip
    wanted = LAYOUTS[kind].version if kind in LAYOUTS else 0
    if magic != MAGIC or not 0 < version <= wanted:
        raise IndexDamaged(
            f"segment of kind {kind}, version {version}, expected {wanted} at most", path=path, offset=position
        )
    if version < wanted:
        raise EOFError
    extra = meta_size + blobs * BLOB_ROW.size
    following = position + HEAD_SIZE + extra + body
    if following > file_size:
        raise EOFError  # before a byte of what it announces is read
    raw = read_at(position + HEAD_SIZE, extra)
    if crc32(raw) != crc:
        raise IndexDamaged(
            f"segment directory: expected CRC {crc:08x}, got {crc32(raw):08x}", path=path, offset=position + HEAD_SIZE
        )
    table = Table(raw[meta_size:])
    note = NOTE.size if flags & HAS_NOTE and meta_size >= NOTE.size else 0
    journal = Journal(*NOTE.unpack_from(raw, meta_size - note)) if note else NO_JOURNAL
    segment = Segment(
        kind, first_seq, count, first_offset, end_offset, raw[: meta_size - note], table,
        None, read_at, position + HEAD_SIZE + extra, path, last_crc, journal, content_type(kind).is_inside,
    )  # fmt: skip
    if not (_is_run(segment) and table.total() == body and content_type(kind).fits(segment)):
        raise segment.damage(f"segment of kind {kind}: what its head and directory say does not fit together")
    return segment, following


def _is_run(segment: Segment) -> bool:
    first, count, begin, end = segment.run
    inside = count > 0 and first % SPAN + count <= SPAN and first + count <= _MOST_RECORDS
    return inside and begin < end < 1 << 63
