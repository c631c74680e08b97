"""What a writer removes from the log's file: the bytes of deleted records, and bytes behind the end.

A block gets a new checksum only if it had its old one, so damage stays noticeable. After a crash, half-written zeros
cannot be told from damage: then the block as it is gets the checksum.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count, groupby, islice
from operator import gt
from pathlib import Path
from typing import Final

from jitdb.errors import LogWriteFailed
from jitdb.log.blocks.block_format import header_reader, header_size, round_up, walk_block
from jitdb.log.blocks.checksum import crc32
from jitdb.log.io import filenames
from jitdb.log.io.osfile import NO_ROOM, Descriptor, FileSystem
from jitdb.log.sidecar.checksums import UNPROVEN, Checksums
from jitdb.log.sidecar.deletions import Deletion, Deletions

_CHUNK: Final = 1 << 20  # bytes copied at once
_PAGE: Final = 1 << 12  # bytes that a file is written by


def with_lengths(fs: FileSystem, fd: int, block_size: int, offsets: Sequence[int]) -> Deletions:
    """The records at these offsets, whose lengths stand in their headers."""
    header, length_at = header_size(block_size), header_reader(block_size)
    lengths = array("I")
    for _, group in groupby(offsets, block_size.__rfloordiv__):
        mine = list(group)
        begin, stop = min(mine), max(mine) + header
        data = fs.read(fd, stop - begin, begin)
        lengths.extend([length_at(data, offset - begin)[0] for offset in mine])
    return Deletions(offsets, lengths)


def erase(fs: FileSystem, fd: int, block_size: int, checksums: Checksums, deletions: Deletions, *, again: bool) -> None:
    """Zero these records, which are in the journal of deletions, durably. `again`: this may have been begun before."""
    header = header_size(block_size)
    offsets, ascending = deletions.offsets, deletions
    if any(map(gt, offsets, islice(offsets, 1, None))):
        order = sorted(range(len(offsets)), key=offsets.__getitem__)
        ascending = Deletions(map(offsets.__getitem__, order), map(deletions.lengths.__getitem__, order))
    sealed: dict[int, tuple[int, int]] = {}  # CRC and flags
    for block, mine in groupby(ascending, lambda deletion: deletion.offset // block_size):
        begin = block * block_size
        data = bytearray(fs.read(fd, block_size, begin))
        flags = _flags(checksums, block, data, again=again)
        spans = sorted((each.offset - begin + header, each.length) for each in mine)
        for start, length in spans:
            data[start : start + length] = bytes(length)
        for first, stop in _joined(spans, begin):
            fs.write(fd, data[first:stop], begin + first)
        if flags is not None:
            sealed[block] = crc32(data), flags
    fs.fsync(fd)
    for block, (crc, flags) in sorted(sealed.items()):
        checksums.put(block, [crc], flags)
    checksums.sync()


def _joined(spans: Iterable[tuple[int, int]], begin: int) -> Iterator[tuple[int, int]]:
    """What is written at once, of spans (start, length) in a block that begins at this byte of the file.

    A span that begins in the page in which the last one ends is written with it: disks write whole pages anyway.

    >>> list(_joined([(0, 10), (4000, 200), (5000, 10), (9000, 10)], 0))
    [(0, 5010), (9000, 9010)]
    """
    first = stop = -1
    for start, length in spans:
        if first >= 0 and (begin + start) // _PAGE > (begin + stop) // _PAGE:
            yield first, stop
            first = -1
        first = start if first < 0 else first
        stop = max(stop, start + length)
    if first >= 0:
        yield first, stop


def _flags(checksums: Checksums, block: int, data: bytearray, *, again: bool) -> int | None:
    """The flags of a block's new checksum; None if it gets none, because it has none now or is damaged."""
    entry = checksums.get(block)
    if entry is None:
        return UNPROVEN if checksums.is_damaged(block) else None
    if entry.crc == crc32(data):
        return entry.flags & UNPROVEN
    return (UNPROVEN if entry.is_old else entry.flags) if again else None


def stands(fs: FileSystem, fd: int, end: int, block_size: int, deletion: Deletion) -> bool:
    """Whether there is such a record. Nothing else may ever be zeroed."""
    position = deletion.offset % block_size
    begin = deletion.offset - position
    if deletion.offset >= end:
        return False
    walk = walk_block(fs.read(fd, min(block_size, end - begin), begin), block_size, block_size)
    return (position, deletion.length) in zip(walk.positions, walk.lengths, strict=True)


def truncate_to(fs: FileSystem, fd: int, end: int, block_size: int) -> None:
    """Make the log's file end with the block that holds `end`, and be zero from `end` on."""
    size, whole = fs.size(fd), round_up(end, block_size)
    if size != whole or last_byte(fs, fd, end, size) != end:
        fs.truncate(fd, end)
        fs.truncate(fd, whole)
        fs.fsync(fd)


def set_aside(fs: FileSystem, fd: int, end: int, log: Path, sidecar: Path) -> Path | None:
    """Copy the bytes behind `end` to a file in the sidecar; None if all are zero. Raises LogWriteFailed."""
    last = last_byte(fs, fd, end, fs.size(fd))
    if last == end:
        return None
    path = free_name(fs, sidecar, partial(filenames.torn_name, end))
    try:
        with Descriptor(fs, path, os.O_RDWR | os.O_CREAT | os.O_EXCL) as copy:
            for at in range(end, last, _CHUNK):
                fs.write(copy, fs.read(fd, min(_CHUNK, last - at), at), at - end)
            fs.fsync(copy)
    except OSError as error:
        with suppress(OSError):  # or each try on a full disk would leave another one
            fs.unlink(path)
        if error.errno not in NO_ROOM:
            raise
        raise LogWriteFailed(
            f"the disk is full ({error.strerror}), and {last - end:,} bytes from offset {end:,} on, which were never "
            f"acknowledged, must be set aside before the log can be written to; until then it can be read",
            remedy=f"make room for {last - end:,} bytes and some blocks more in {sidecar}, then open it again",
            path=log,
            offset=end,
        ) from error
    fs.sync_folder(sidecar)
    return path


def free_name(fs: FileSystem, folder: Path, name: Callable[[int], str]) -> Path:
    """The first of the names name(0), name(1), ... that no file in the folder has."""
    there = fs.listdir(folder)
    return folder / next(each for each in map(name, count()) if each not in there)


def last_byte(fs: FileSystem, fd: int, start: int, size: int) -> int:
    """Just past the last byte other than zero; `start` if there is none."""
    last = start
    for at in range(start, size, _CHUNK):
        chunk = fs.read(fd, min(_CHUNK, size - at), at).rstrip(b"\0")
        last = at + len(chunk) if chunk else last
    return last
