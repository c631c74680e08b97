"""Zeroing deleted records: their bytes in the log, and the checksums of their blocks.

A block gets the checksum of what it is to hold, and only if it held what it should before: what was damaged stays known
as damaged. After a crash nobody can tell damage from zeros that were half written; then what is there counts.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable

from jitdb.log.blocks.layout import header_size
from jitdb.log.io.osfile import FileSystem
from jitdb.log.sidecar.checksums import UNPROVEN, Checksums, Entry
from jitdb.log.sidecar.deletions import Deletion


def erase(
    fs: FileSystem, fd: int, block_size: int, checksums: Checksums, deletions: Iterable[Deletion], *, again: bool
) -> None:
    """Zero these records, durably. They stand in the journal of deletions already; doing it twice does no harm.

    `again`: a crash may have come between when it was done before.
    """
    header = header_size(block_size)
    by_block: dict[int, list[Deletion]] = defaultdict(list)
    for deletion in deletions:
        by_block[deletion.offset // block_size].append(deletion)
    sealed: dict[int, Entry] = {}
    for block, mine in by_block.items():
        begin = block * block_size
        data = bytearray(fs.read(fd, block_size, begin))
        entry = _sealed(checksums, block, data, again=again)
        for deletion in mine:
            start = deletion.offset - begin + header
            zeros = bytes(deletion.length)
            data[start : start + deletion.length] = zeros
            fs.write(fd, zeros, begin + start)
        if entry is not None:
            sealed[block] = Entry(zlib.crc32(data), entry.flags)
    fs.fsync(fd)
    for block, entry in sorted(sealed.items()):
        checksums.put(block, [entry.crc], entry.flags)
    checksums.sync()


def _sealed(checksums: Checksums, block: int, data: bytes | bytearray, *, again: bool) -> Entry | None:
    """What a block's next entry says, if it gets one: it has one, and is what it should be."""
    entry = checksums.get(block, restore=True)
    if entry is None:
        return Entry(0, UNPROVEN) if checksums.is_damaged(block) else None
    if entry.crc == zlib.crc32(data):
        return Entry(0, entry.flags & UNPROVEN)
    return Entry(0, UNPROVEN if entry.is_old else entry.flags) if again else None
