"""Where the frames of a zstd file are (RFC 8878), by their headers and those of their blocks, without decompressing.

A file that ends with a seek table (the zstd seekable format: a frame that other readers skip) says so itself:

    0   0x184D2A5E          u32, little-endian, as all numbers
    4   size                u32: bytes behind this
    8   the table           a row a frame: bytes in the file, and of text: u32, u32, and u32 a checksum, if there is one
    …   count               u32: how many rows there are
    …   descriptor          u8: 0x80 where rows have checksums
    …   0x8F92EAB1          u32
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from jitdb.log.lines.compressed.stored import Stored

MAGIC: Final = b"\x28\xb5\x2f\xfd"
SKIPPED: Final = 0x184D2A50  # the first of the sixteen magic numbers of frames that are no text
SEEK_TABLE: Final = 0x184D2A5E
SEEKABLE: Final = 0x8F92EAB1
HAS_SUMS: Final = 0x80
TABLE_HEAD: Final = struct.Struct("<II")
TABLE_ROW: Final = struct.Struct("<II")
TABLE_END: Final = struct.Struct("<IBI")

_LARGEST_BLOCK: Final = 1 << 17  # bytes of text
_LONGEST_HEADER: Final = 18
_SUM: Final = 4  # bytes of a frame's checksum
_WORD: Final = struct.Struct("<I")


class Frame(NamedTuple):
    """One frame.

    stop: just past it; of one that is not finished, just past its last block that is
    text: bytes of text, if the frame says so; -1 where it does not
    most: bytes of text, at most
    """

    begin: int
    stop: int
    text: int
    most: int
    is_finished: bool = True


class _Header(NamedTuple):
    size: int  # of the header
    text: int  # -1: it does not say
    has_sum: bool
    dictionary: int


def find_frames(stored: Stored, begin: int) -> Iterator[Frame]:
    """The frames from this byte on; those that hold no text may be left out. Raises LogCorrupt, OSError."""
    at = begin
    if begin == 0 and (table := _seek_table(stored)):
        for size, text in table:
            if text:
                yield Frame(at, at + size, text, text)
            at += size
    while at < stored.stop:
        head = stored.read(_LONGEST_HEADER, at)
        if head[:4] == MAGIC[: len(head)]:
            frame = _walked(stored, at, head)
            yield frame
            at = frame.stop if frame.is_finished else stored.stop
        elif (skipped := _skipped(head)) is not None:
            at += skipped
        else:
            said = f"a zstd frame should begin at byte {at:,}, where something else does: {head[:8]!r}"
            raise stored.corrupt(said, at)


def _skipped(head: bytes) -> int | None:
    """The size of a frame that holds no text; None of what is none."""
    if len(head) < 4:
        return len(head) if _WORD.pack(SKIPPED)[1 : len(head)] == head[1:] else None
    (magic,) = _WORD.unpack_from(head)
    if magic & ~15 != SKIPPED:
        return None
    return TABLE_HEAD.size + _WORD.unpack_from(head, 4)[0] if len(head) >= TABLE_HEAD.size else len(head)


def _header(head: bytes) -> _Header | None:
    """What a frame's header says; None where it is cut off."""
    if len(head) < 6:
        return None
    descriptor = head[4]
    is_single = descriptor & 0x20
    at = 5 if is_single else 6
    size = (0, 1, 2, 4)[descriptor & 3]
    dictionary = int.from_bytes(head[at : at + size], "little")
    at += size
    flag = descriptor >> 6
    size = (1 if is_single else 0, 2, 4, 8)[flag]
    text = int.from_bytes(head[at : at + size], "little") + (256 if flag == 1 else 0) if size else -1
    return None if len(head) < at + size else _Header(at + size, text, bool(descriptor & 4), dictionary)


def _walked(stored: Stored, begin: int, head: bytes) -> Frame:
    header = _header(head)
    if header is None:
        return Frame(begin, begin, -1, 0, False)
    if header.dictionary:
        raise stored.corrupt(f"the zstd frame at byte {begin:,} needs dictionary {header.dictionary}", begin)
    at, most = begin + header.size, 0
    while True:
        word = stored.read(3, at)
        if len(word) < 3:
            return Frame(begin, at, -1, most, False)
        block = int.from_bytes(word, "little")
        kind, size = block >> 1 & 3, block >> 3
        if kind == 3:
            raise stored.corrupt(f"the zstd frame at byte {begin:,} has no block at byte {at:,}, as it should", at)
        stop = at + 3 + (1 if kind == 1 else size)
        if stop > stored.stop:
            return Frame(begin, at, -1, most, False)
        at, most = stop, most + (_LARGEST_BLOCK if kind == 2 else size)
        if block & 1:
            break
    at += _SUM if header.has_sum else 0
    if at > stored.stop:
        return Frame(begin, at - _SUM, -1, most, False)
    return Frame(begin, at, header.text, most if header.text < 0 else header.text)


def _seek_table(stored: Stored) -> Iterator[tuple[int, int]] | None:
    """The bytes of each frame, stored and of text, as the end of the file has them; None where no table fits."""
    at = stored.stop - TABLE_END.size
    if at < TABLE_HEAD.size:
        return None
    count, descriptor, magic = TABLE_END.unpack(stored.read(TABLE_END.size, at))
    row = struct.Struct("<II4x") if descriptor & HAS_SUMS else TABLE_ROW
    begin = at - count * row.size - TABLE_HEAD.size
    if magic != SEEKABLE or begin < 0:
        return None
    if TABLE_HEAD.unpack(stored.read(TABLE_HEAD.size, begin)) != (SEEK_TABLE, stored.stop - begin - TABLE_HEAD.size):
        return None
    table = stored.read(count * row.size, begin + TABLE_HEAD.size)
    return row.iter_unpack(table) if sum(size for size, _ in row.iter_unpack(table)) == begin else None
