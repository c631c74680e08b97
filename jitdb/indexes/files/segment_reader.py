"""The segments behind the head of an index file: as they stand there, or as entries that say where their blobs lie.

An entry is the segment's lead with another magic, and a place: the blobs are in a file of their own (span_file.py).
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Final

from jitdb.common.zlib import crc32
from jitdb.errors import IndexDamaged
from jitdb.indexes import segment as layout
from jitdb.indexes.files.file import FileReader
from jitdb.indexes.files.span_file import PLACE, SpanFile, span_path
from jitdb.indexes.kinds.content import shape_of
from jitdb.indexes.segment import Blob, ReadAt, Segment
from jitdb.log.io.osfile import FileSystem

_MOST_RECORDS: Final = 1 << 32  # members of sets have 32 bits


def read_segment(read_at: ReadAt, position: int, file_size: int, path: str) -> tuple[Segment, int]:
    """The segment at `position` and the position after it.

    Raises EOFError if the file ends inside it or its head is all zeros (a torn write: the file grew, its bytes did not
    reach the disk), and if its version is old: these are built again without a warning. Raises IndexDamaged if a CRC is
    wrong.
    """
    raw = read_at(position, layout.HEAD_SIZE)
    if len(raw) < layout.HEAD_SIZE or not any(raw):
        raise EOFError
    expected, got = int.from_bytes(raw[-4:], "little"), crc32(raw[:-4])
    if expected != got:
        raise IndexDamaged(f"segment head: expected CRC {expected:08x}, got {got:08x}", path=path, offset=position)
    (
        magic, kind, version, flags, first_seq, count, last_crc, first_offset, end_offset, blobs, meta_size, body, crc
    ) = layout.HEAD.unpack(raw[:-4])  # fmt: skip
    wanted = layout.LAYOUTS[kind].version if kind in layout.LAYOUTS else 0
    if magic not in (layout.MAGIC, layout.APART) or not 0 < version <= wanted:
        raise IndexDamaged(
            f"segment of kind {kind}, version {version}, expected {wanted} at most", path=path, offset=position
        )
    if version < wanted:
        raise EOFError
    extra = meta_size + blobs * layout.BLOB_ROW.size
    is_apart = magic == layout.APART
    following = position + layout.HEAD_SIZE + extra + (PLACE.size if is_apart else body)
    if following > file_size:
        raise EOFError  # before reading a byte of what a head announces
    raw = read_at(position + layout.HEAD_SIZE, extra)
    if crc32(raw) != crc:
        raise IndexDamaged(
            f"segment directory: expected CRC {crc:08x}, got {crc32(raw):08x}",
            path=path,
            offset=position + layout.HEAD_SIZE,
        )
    table = layout.Table(raw[meta_size:])
    note = layout.NOTE.size if flags & layout.HAS_NOTE and meta_size >= layout.NOTE.size else 0
    journal = layout.Journal(*layout.NOTE.unpack_from(raw, meta_size - note)) if note else layout.NO_JOURNAL
    reader, begin = read_at, position + layout.HEAD_SIZE + extra
    if is_apart:
        reader, begin = _place(read_at, begin, expected, first_seq, path)
    segment = Segment(
        kind, first_seq, count, first_offset, end_offset, raw[: meta_size - note], table,
        None, reader, begin, path, last_crc, journal, shape_of(kind).is_inside,
    )  # fmt: skip
    if not (_is_run(segment) and sum(table.lengths) == body and shape_of(kind).fits(segment)):
        raise segment.damage(f"segment of kind {kind}: what its head and directory say does not fit together")
    return segment, following


def _is_run(segment: Segment) -> bool:
    first, count, begin, end = segment.run
    inside = count > 0 and first % layout.SPAN + count <= layout.SPAN and first + count <= _MOST_RECORDS
    return inside and begin < end < 1 << 63


def _place(read_at: ReadAt, position: int, head_crc: int, first_seq: int, path: str) -> tuple[SpanFile, int]:
    """The file that an entry's blobs lie in, and where they begin there. Raises IndexDamaged."""
    raw = read_at(position, PLACE.size)
    if len(raw) < PLACE.size or crc32(raw[:-4], head_crc) != int.from_bytes(raw[-4:], "little"):
        raise IndexDamaged("the place of a segment: its CRC does not hold", path=path, offset=position)
    if not isinstance(read_at, FileReader):
        raise IndexDamaged("a segment that lies elsewhere, in what is no file", path=path, offset=position)
    begin, digest, _ = PLACE.unpack(raw)
    return SpanFile(read_at.fs, span_path(read_at.path, first_seq, digest), digest, path), begin


def is_apart(segment: Segment) -> bool:
    """Whether its blobs lie in a file of their own."""
    return segment.blobs is None and isinstance(segment.read_at, SpanFile)


def entry(segment: Segment) -> list[Blob]:
    """The segment as it stands in the index file, in pieces: all of it, or where the rest of it lies."""
    reader = segment.read_at
    if segment.blobs is not None or not isinstance(reader, SpanFile):
        return segment.parts()
    head, crc, *rest = segment.lead_parts(layout.APART)
    place = PLACE.pack(segment.body_position, reader.digest, 0)[:-4]
    return [head, crc, *rest, place, crc32(place, int.from_bytes(crc, "little")).to_bytes(4, "little")]


def entry_size(segment: Segment) -> int:
    """Bytes that it takes in the index file."""
    return segment.lead + PLACE.size if is_apart(segment) else segment.size


class _Sent(FileReader):
    """Reads an entry that was sent, of the index whose file has this path."""

    def __init__(self, fs: FileSystem, path: FilePath, raw: bytes) -> None:
        self.fs, self.path, self._raw = fs, path, raw

    def __call__(self, position: int, length: int) -> bytes:
        return self._raw[position : position + length]


def segment_of(raw: bytes, fs: FileSystem, index: FilePath) -> Segment:
    """The segment of an entry that was sent. Raises IndexDamaged, EOFError."""
    return read_segment(_Sent(fs, index, raw), 0, len(raw), index.name)[0]


def in_memory(segment: Segment) -> Segment:
    """All of a segment. Raises IndexDamaged."""
    if segment.blobs is not None:
        return segment
    blobs = tuple(segment.blob(number, keep=False) for number in range(len(segment.table)))
    return segment.changed(blobs=blobs, read_at=None)
