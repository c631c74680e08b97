"""The end of the text of a compressed file, kept: each process that finds indexes looks at the last record.

`tail`, in the folder beside the file, little-endian; where it is missing, damaged or another file's, it is made anew:

    0   "JTAIL01\\n"
    8   name            24 bytes: the file's identity and token
    32  stored          u64: bytes of the file when it had this end
    40  begin           u64: where what is kept begins in the text; it is all from there on
    48  CRC-32 of all before, and of what follows
    52  the text, compressed (zlib)
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.common import zlib
from jitdb.log.io import osfile
from jitdb.log.io.filenames import TAIL, temporary_name

LONGEST: Final = 1 << 19  # bytes of text: two of the blocks that are looked at

_MAGIC: Final = b"JTAIL01\n"
_HEAD: Final = struct.Struct("<8s24sQQ")
_CRC: Final = struct.Struct("<I")
_BEGIN: Final = _HEAD.size + _CRC.size


class Tail(NamedTuple):
    """All of the text from a byte on, of a file of so many bytes."""

    name: bytes
    stored: int
    begin: int
    text: bytes


def load_tail(folder: Path) -> Tail | None:
    """What is kept; None where that is nothing, or not what was written."""
    with suppress(OSError, zlib.error):
        data = osfile.fs.read_if_there(folder / TAIL) or b""
        if len(data) > _BEGIN and data[_HEAD.size : _BEGIN] == _sum_of(data[: _HEAD.size], data[_BEGIN:]):
            magic, name, stored, begin = _HEAD.unpack_from(data)
            if magic == _MAGIC:
                return Tail(name, stored, begin, zlib.decompress(data[_BEGIN:]))
    return None


def keep_tail(folder: Path, tail: Tail) -> None:
    """Keep it, if there is such a folder and it can be written."""
    if folder.is_dir():
        head, text = _HEAD.pack(_MAGIC, tail.name, tail.stored, tail.begin), zlib.compress(tail.text, 1)
        temporary = folder / temporary_name(TAIL)
        with suppress(OSError):
            with osfile.Descriptor(osfile.fs, temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd:
                osfile.fs.write(fd, head + _sum_of(head, text) + text, 0)
            osfile.fs.rename(temporary, folder / TAIL)


def _sum_of(head: bytes, text: bytes) -> bytes:
    return _CRC.pack(zlib.crc32(text, zlib.crc32(head)))
