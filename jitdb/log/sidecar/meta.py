"""`meta`, 76 bytes: block size, codec, identity and generation. Replaced whole when the log becomes another one.

docs/format-log.md describes its bytes. Indexes and the other files of the sidecar are bound to identity and generation.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.errors import LogCorrupt, LogError, NotALog
from jitdb.log.blocks.block_format import check_block_size
from jitdb.log.blocks.checksum import is_sealed
from jitdb.log.io.osfile import FileSystem
from jitdb.log.sidecar.framing import Frame

# On disk: never change.
MAGIC: Final = b"JITDBLOG"
VERSION: Final = 1
LAST_GENERATION: Final = 1 << 31  # nobody compacts so often: a later one in a file is damage
NO_GENERATION: Final = (1 << 31) + (1 << 16)  # a process that finds the last one may count up to here
_FRAME: Final = Frame(MAGIC, "II16sI36s")
SIZE: Final = _FRAME.size
_CODEC_BYTES: Final = 36


class Meta(NamedTuple):
    block_size: int
    codec: str
    identity: bytes
    generation: int


def new_identity() -> bytes:
    return os.urandom(16)


def encode(meta: Meta) -> bytes:
    """The bytes of the file. Raises LogError for a codec name of more than 36 bytes."""
    codec = meta.codec.encode()
    if not 0 < len(codec) <= _CODEC_BYTES:
        raise LogError(f"a codec's name has 1 to {_CODEC_BYTES} bytes, not {len(codec)}: {meta.codec!r}")
    return _FRAME.pack(VERSION, meta.block_size, meta.identity, meta.generation, codec)


def decode(data: bytes, path: Path) -> Meta:
    """Raises LogCorrupt for damaged bytes, NotALog for a later version."""
    version = int.from_bytes(data[8:12], "little")
    if version > VERSION and data.startswith(MAGIC) and is_sealed(data):
        raise NotALog(
            f"its sidecar is of version {version}, this jitdb knows {VERSION}", path=path, remedy="upgrade jitdb"
        )
    _, block_size, identity, generation, codec = _FRAME.check(data, path)
    try:
        known = Meta(check_block_size(block_size), codec.rstrip(b"\0").decode(), identity, generation)
    except (LogError, UnicodeDecodeError) as error:
        raise LogCorrupt(f"damaged: {error}", path=path, expected="what some jitdb writes", got=data.hex()) from error
    if not known.codec or not 0 < generation <= LAST_GENERATION:
        raise LogCorrupt("damaged", path=path, expected="a codec and a generation", got=known)
    return known


def read(fs: FileSystem, path: Path) -> Meta | None:
    """None where there is no such file. Raises as decode does."""
    data = fs.read_if_there(path)
    return None if data is None else decode(data, path)
