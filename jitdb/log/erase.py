"""Zeroing deleted records: their bytes in the log, and the checksums of their blocks."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from jitdb.log.checksums import Checksums, EntryError
from jitdb.log.deletions import Deletion
from jitdb.log.layout import header_size
from jitdb.log.osfile import FileSystem


def erase(fs: FileSystem, fd: int, block_size: int, checksums: Checksums, deletions: Iterable[Deletion]) -> None:
    """Zero these records, durably. They stand in the journal of deletions already; doing it twice does no harm."""
    header = header_size(block_size)
    blocks = set()
    for deletion in deletions:
        fs.write(fd, bytes(deletion.length), deletion.offset + header)
        blocks.add(deletion.offset // block_size)
    fs.fsync(fd)
    for block in sorted(blocks):
        if _is_sealed(checksums, block):
            checksums.put(block, [zlib.crc32(fs.read(fd, block_size, block * block_size))])
    checksums.sync()


def _is_sealed(checksums: Checksums, block: int) -> bool:
    try:
        return checksums.get(block) is not None
    except EntryError:
        return True
