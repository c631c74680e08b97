"""Files of lines, compressed in each way that is met, and what makes small ones go the way of large ones."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from typing import Final

import pytest
import zstandard

from jitdb.log.lines.files import checkpoints, compressed_file, decompressing, gzip_file, zstd_file

PIECE: Final = 1 << 12
SPACING: Final = 40_000  # indexed_gzip takes no less than its window


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of some hundred kilobytes is a large one."""
    for module in (decompressing, gzip_file, zstd_file):
        monkeypatch.setattr(module, "PIECE", PIECE)
    monkeypatch.setattr(checkpoints, "SPACING", SPACING)
    monkeypatch.setattr(checkpoints, "_STEP", 3 * SPACING)
    monkeypatch.setattr(gzip_file, "APART", SPACING)
    monkeypatch.setattr(gzip_file, "NEAR", SPACING)
    monkeypatch.setattr(zstd_file, "LONG", 1 << 13)
    monkeypatch.setattr(compressed_file, "MANY", 1 << 13)
    monkeypatch.setattr(compressed_file, "TAIL", 1 << 11)
    monkeypatch.setattr(decompressing.PIECES, "most", 1 << 17)


def records(count: int, first: int = 0) -> list[dict[str, object]]:
    """Records that are not compressed to nothing."""
    some = random.Random(first)
    return [
        {"n": number, "even": number % 2 == 0, "text": some.randbytes(some.randrange(60)).hex(), "timestamp": number}
        for number in range(first, first + count)
    ]


def lines(count: int, first: int = 0) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records(count, first))


def parts(text: bytes, size: int) -> list[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)] or [b""]


def one_member(text: bytes) -> bytes:
    return gzip.compress(text, 6, mtime=0)


def members(text: bytes) -> bytes:
    return b"".join(one_member(part) for part in parts(text, 5003))


def many_members(text: bytes) -> bytes:
    """As bgzip makes them, with an empty one at the end."""
    return b"".join(one_member(part) for part in [*parts(text, 331), b""])


def padded_members(text: bytes) -> bytes:
    middle = len(text) // 2
    return one_member(text[:middle]) + bytes(700) + one_member(text[middle:]) + bytes(100)


def one_frame(text: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(text)


def unsized_frame(text: bytes) -> bytes:
    made = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compressobj()
    return made.compress(text) + made.flush()


def frames_of_lines(text: bytes) -> bytes:
    return b"".join(map(one_frame, text.splitlines(keepends=True))) or one_frame(b"")


def frames_anywhere(text: bytes) -> bytes:
    """Lines go on in the next frame; some frames do not say how long they are, some hold nothing."""
    made = (unsized_frame if number % 3 else one_frame for number in range(1 << 30))
    skipped = b"\x53\x2a\x4d\x18\x05\x00\x00\x00other"
    return skipped + b"".join(make(part) + one_frame(b"") for make, part in zip(made, parts(text, 701), strict=False))


def with_seek_table(text: bytes) -> bytes:
    made = [(one_frame(part), len(part)) for part in parts(text, 3000)]
    table = b"".join(zstd_file.TABLE_ROW.pack(len(frame), size) for frame, size in made)
    end = zstd_file.TABLE_END.pack(len(made), 0, zstd_file.SEEKABLE)
    head = zstd_file.TABLE_HEAD.pack(zstd_file.SEEK_TABLE, len(table) + len(end))
    return b"".join(frame for frame, _ in made) + head + table + end


KINDS: Final[list[Callable[[bytes], bytes]]] = [
    one_member, members, many_members, padded_members,
    one_frame, unsized_frame, frames_of_lines, frames_anywhere, with_seek_table,
]  # fmt: skip
