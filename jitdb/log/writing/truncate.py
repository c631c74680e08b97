"""What a writer puts in order before it goes on: torn bytes at the end, deletions that were cut short."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from jitdb.errors import LogWriteFailed
from jitdb.log.blocks.layout import round_up
from jitdb.log.blocks.packing import walk_block
from jitdb.log.io import filenames
from jitdb.log.io.osfile import NO_ROOM, Descriptor, FileSystem
from jitdb.log.sidecar.deletions import Deletion

_CHUNK: Final = 1 << 20  # bytes copied at once


def truncate_to(fs: FileSystem, fd: int, end: int, block_size: int) -> None:
    """Make the log's file end with the block that holds `end`, and be zero from `end` on."""
    size, whole = fs.size(fd), round_up(end, block_size)
    if size == whole and last_byte(fs, fd, end, size) == end:
        return
    fs.truncate(fd, end)
    fs.truncate(fd, whole)
    fs.fsync(fd)


def set_aside(fs: FileSystem, fd: int, end: int, path: Path, sidecar: Path) -> Path | None:
    """Copy what stands behind `end` into a file of the sidecar, whose path it gives; None where that is but zeros.

    Raises LogWriteFailed where the disk has no room for that.
    """
    last = last_byte(fs, fd, end, fs.size(fd))
    if last == end:
        return None
    try:
        return _set_aside(fs, fd, end, last, sidecar)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise LogWriteFailed(
            f"the disk is full ({error.strerror}), and {last - end:,} bytes from offset {end:,} on, which were never "
            f"acknowledged, must be set aside before the log can be written to; until then it can be read",
            remedy=f"make room for {last - end:,} bytes and some blocks more in {sidecar}, then open it again",
            path=path,
            offset=end,
        ) from error


def last_byte(fs: FileSystem, fd: int, start: int, size: int) -> int:
    """Just past the last byte other than zero; `start` if there is none."""
    last = start
    for at in range(start, size, _CHUNK):
        chunk = fs.read(fd, min(_CHUNK, size - at), at).rstrip(b"\0")
        last = at + len(chunk) if chunk else last
    return last


def _set_aside(fs: FileSystem, fd: int, start: int, stop: int, sidecar: Path) -> Path:
    for number in count():
        path = sidecar / filenames.torn_name(start, number)
        with suppress(FileExistsError):
            file = Descriptor(fs, path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            break
    with file as copy:
        try:
            for at in range(start, stop, _CHUNK):
                fs.write(copy, fs.read(fd, min(_CHUNK, stop - at), at), at - start)
            fs.fsync(copy)
        except OSError:
            with suppress(OSError):  # a disk that is full stays so, and each try would leave another
                fs.unlink(path)
            raise
    fs.sync_folder(sidecar)
    return path


def stands(fs: FileSystem, fd: int, end: int, block_size: int, deletion: Deletion) -> bool:
    """Whether there is such a record: a journal's entry must never zero anything else."""
    position = deletion.offset % block_size
    begin = deletion.offset - position
    if deletion.offset >= end:
        return False
    walk = walk_block(fs.read(fd, min(block_size, end - begin), begin), block_size, block_size)
    return (position, deletion.length) in zip(walk.positions, walk.lengths, strict=True)
