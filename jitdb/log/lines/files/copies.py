"""Whether a compressed file holds the text of a plain one, as rotation and `gzip -k` leave it."""

from __future__ import annotations

import os
from functools import lru_cache
from struct import Struct
from typing import Final

from jitdb.common.zlib import crc32, decompressobj, error

_GZIP_END: Final = Struct("<II")  # CRC-32 and size of the text
_WITH_HEADER: Final = 31  # zlib's word for gzip


def is_copy(packed: str, plain: str) -> bool:
    """Whether a file of gzip is another one, compressed: its end says how long the text is, and the CRC of that."""
    try:
        stamps = [os.stat(path) for path in (packed, plain)]
        return _is_text_of(packed, plain, tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in stamps))
    except OSError:
        return False


@lru_cache(maxsize=4096)
def _is_text_of(packed: str, plain: str, stamps: tuple[tuple[int, int, int], ...]) -> bool:
    size = stamps[1][1]
    with open(packed, "rb") as file:
        file.seek(max(0, stamps[0][1] - _GZIP_END.size))
        end = file.read()
    if not size or len(end) < _GZIP_END.size or _GZIP_END.unpack(end)[1] != size & 0xFFFFFFFF:
        return False
    crc = 0
    with open(plain, "rb") as file:
        while piece := file.read(1 << 20):
            crc = crc32(piece, crc)
    return crc == _GZIP_END.unpack(end)[0] and _is_one_member(packed)


def _is_one_member(packed: str) -> bool:
    """Whether the end of a file of gzip tells of all its text: `gzip -c a.log >> a.log.gz` puts one behind others."""
    stream = decompressobj(_WITH_HEADER)
    with open(packed, "rb") as file:
        while not stream.eof and (piece := file.read(1 << 16)):
            try:
                stream.decompress(piece)
            except error:
                return False
        return stream.eof and not stream.unused_data and not file.read(1)
