"""The moment in which a compacted log takes the place of the old one, whole or not at all.

    next-log, next-checksums, next-deletions, moved-GENERATION   written and fsynced: nothing refers to them yet
    next              76 + 64 + 12 bytes, below, put in place by rename: what the log is from now on
    next-log          renamed to the log's own name: this is the moment
    then              next-checksums and next-deletions renamed to their names, meta and commit replaced, next removed

    next:  magic      8   "JITDBNXT"
           meta       76  as in the file meta
           entry      64  OPENED, as in the file commit
           crc        u32 of all bytes before

While there is a `next`, no `next-log` any more, and the log is the one that it tells of, what it says counts, and not
meta and commit. Whoever opens the log looks for it first. A writer finishes the switch, or else takes it back.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.errors import LogCorrupt
from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.opening.tail import measure
from jitdb.log.sidecar import journal, meta
from jitdb.log.sidecar.framing import Frame

# On disk: never change.
MAGIC: Final = b"JITDBNXT"
_FRAME: Final = Frame(MAGIC, f"{meta.SIZE}s{journal.ENTRY_SIZE}s")
SIZE: Final = _FRAME.size

KEPT: Final = 64  # compactions that are remembered, for cursors and indexes of earlier generations


class Next(NamedTuple):
    """What the log is from the switch on."""

    meta: meta.Meta
    entry: journal.Entry


def encode(following: Next) -> bytes:
    """The bytes of the file."""
    return _FRAME.pack(meta.encode(following.meta), journal.encode(following.entry))


def decode(data: bytes, path: Path) -> Next | None:
    """None if this is not what was written."""
    fields = _FRAME.unpack(data)
    if fields is None:
        return None
    entry = journal.decode(fields[1])
    try:
        following = None if entry is None else Next(meta.decode(fields[0], path), entry)
    except LogCorrupt:
        return None
    # Both end in a CRC of their own, so that of the file is the same whatever they say: their generation ties them.
    agree = following is not None and following.meta.generation == following.entry.generation
    return following if agree else None


def pending(fs: FileSystem, path: Path) -> Next | None:
    """What counts instead of meta and commit: there was a switch, and it was not finished.

    Not where the log is another than it tells of: one of before the switch, that was copied, or put back.
    """
    sidecar = filenames.sidecar_path(path)
    try:
        following = decode(fs.read_file(sidecar / filenames.NEXT), sidecar / filenames.NEXT)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if following is None or fs.exists(sidecar / filenames.NEXT_LOG) or not _is_in_place(fs, path, following):
        return None
    return following


def prepare(
    fs: FileSystem, sidecar: Path, following: Next, checksums: bytes, deletions: bytes, removals: bytes
) -> None:
    """Put all that the new log needs into the sidecar, durably; next-log is there and synced."""
    fs.write_file(sidecar / filenames.NEXT_CHECKSUMS, checksums)
    fs.write_file(sidecar / filenames.NEXT_DELETIONS, deletions)
    fs.write_file(sidecar / filenames.moved_name(following.meta.generation), removals)
    fs.replace_file(sidecar / filenames.NEXT, encode(following))


def switch(fs: FileSystem, path: Path, sidecar: Path) -> None:
    """The moment."""
    fs.rename(sidecar / filenames.NEXT_LOG, path)
    fs.sync_folder(path.parent)
    fs.sync_folder(sidecar)


def finish(fs: FileSystem, sidecar: Path, following: Next) -> None:
    """Bring the sidecar up to what `next` says. May be done again after a crash."""
    for name, target in (
        (filenames.NEXT_CHECKSUMS, filenames.CHECKSUMS),
        (filenames.NEXT_DELETIONS, filenames.DELETIONS),
    ):
        with suppress(FileNotFoundError):  # it was renamed before the crash
            fs.rename(sidecar / name, sidecar / target)
    fs.replace_file(sidecar / filenames.META, meta.encode(following.meta))
    fs.replace_file(sidecar / filenames.COMMIT, journal.encode(following.entry))
    fs.sync_folder(sidecar)
    fs.unlink(sidecar / filenames.NEXT)
    with suppress(FileNotFoundError):
        fs.unlink(sidecar / filenames.moved_name(following.meta.generation - KEPT))
    fs.sync_folder(sidecar)


def settle(fs: FileSystem, path: Path, sidecar: Path) -> None:
    """As the writer, who holds the lock: finish the switch that a crash cut short, or take it back.

    What crashed processes left half written goes too: whoever writes to the sidecar holds the lock.
    """
    for name in fs.listdir(sidecar):
        if name == filenames.LARGER:
            fs.remove(sidecar / name)
        elif name.endswith(filenames.TEMPORARY_SUFFIX):
            fs.unlink(sidecar / name)
    following = pending(fs, path)
    if following is not None:
        fs.sync_folder(path.parent)  # a power failure must not take the renaming back any more
        finish(fs, sidecar, following)
    else:
        discard(fs, sidecar)


def _is_in_place(fs: FileSystem, path: Path, following: Next) -> bool:
    try:
        with Descriptor(fs, path, os.O_RDONLY) as fd:
            tail = measure(fs, fd, following.entry.end, following.meta.block_size)
            return tail is not None and tail.agrees(following.entry)
    except FileNotFoundError:
        return False


def discard(fs: FileSystem, sidecar: Path) -> None:
    """Remove what was written for a switch that did not come. `next` goes first: without it, the rest means nothing."""
    found = [name for name in filenames.NEXT_FILES if fs.exists(sidecar / name)]
    for name in found:
        fs.unlink(sidecar / name)
        if name == filenames.NEXT:
            fs.sync_folder(sidecar)
    if found:
        fs.sync_folder(sidecar)
