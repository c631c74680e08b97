"""Replacing a log and its sidecar by new ones, atomically.

    next-log, next-checksums, next-deletions, moved-GENERATION   written and fsynced: nothing refers to them yet
    next              put in place by rename: what the log is from now on (docs/format-log.md)
    next-log          renamed to the log's own name: this is the moment
    then              next-checksums and next-deletions renamed to their names, meta and commit replaced, next removed

If there is a `next` but no `next-log`, and the log ends as `next` says, `next` counts instead of meta and commit, and a
writer finishes the swap. Otherwise a writer removes all of it. maintenance/exchange.py begins one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.errors import LogCorrupt
from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.opening.recovery import measure, stamp_of
from jitdb.log.sidecar import journal, meta
from jitdb.log.sidecar.framing import Frame

# On disk: never change.
MAGIC: Final = b"JITDBNXT"
_FRAME: Final = Frame(MAGIC, f"{meta.SIZE}s{journal.ENTRY_SIZE}s")
SIZE: Final = _FRAME.size

KEPT: Final = 64  # compactions that are remembered, for cursors and indexes of earlier generations


class PendingSwap(NamedTuple):
    meta: meta.Meta
    entry: journal.Entry


def encode(pending: PendingSwap) -> bytes:
    return _FRAME.pack(meta.encode(pending.meta), journal.encode(pending.entry))


def decode(data: bytes, path: Path) -> PendingSwap | None:
    """None if this is not what was written."""
    fields = _FRAME.unpack(data)
    if fields is None:
        return None
    entry = journal.decode(fields[1])
    try:
        pending = None if entry is None else PendingSwap(meta.decode(fields[0], path), entry)
    except LogCorrupt:
        return None
    # Both end in a CRC of their own, so that of the file is the same whatever they say: their generation ties them.
    agree = pending is not None and pending.meta.generation == pending.entry.generation
    return pending if agree else None


def unfinished(fs: FileSystem, path: Path) -> PendingSwap | None:
    """What counts instead of meta and commit: an unfinished swap of this log, not of one that was put back since.

    Where another program wrote to the log meanwhile, it was closed, as far as we know: what follows its end counts.
    """
    sidecar = filenames.sidecar_path(path)
    pending = decode(fs.read_if_there(sidecar / filenames.NEXT) or b"", sidecar / filenames.NEXT)
    if pending is None or fs.exists(sidecar / filenames.NEXT_LOG) or not fs.exists(path):
        return None
    with Descriptor(fs, path, os.O_RDONLY) as fd:
        tail, stamp = measure(fs, fd, pending.entry.end, pending.meta.block_size), stamp_of(fs.fstat(fd))
    if tail is None or not tail.agrees(pending.entry):
        return None
    if stamp != pending.entry.stamp:
        return pending._replace(entry=pending.entry._replace(kind=journal.CLOSED, start=pending.entry.end))
    return pending


def finish(fs: FileSystem, sidecar: Path, pending: PendingSwap) -> None:
    """Make the sidecar what `next` says. May be repeated after a crash."""
    named = {filenames.NEXT_CHECKSUMS: filenames.CHECKSUMS, filenames.NEXT_DELETIONS: filenames.DELETIONS}
    for name, target in named.items():
        with suppress(FileNotFoundError):  # it was renamed before the crash
            fs.rename(sidecar / name, sidecar / target)
    fs.replace_file(sidecar / filenames.META, meta.encode(pending.meta))
    fs.replace_file(sidecar / filenames.COMMIT, journal.written(pending.entry))
    fs.sync_folder(sidecar)
    fs.unlink(sidecar / filenames.NEXT)
    with suppress(FileNotFoundError):
        fs.unlink(sidecar / filenames.moved_name(pending.meta.generation - KEPT))
    fs.sync_folder(sidecar)


def resume(fs: FileSystem, path: Path, sidecar: Path) -> None:
    """For the writer: finish a swap that a crash interrupted, or undo it; remove leftovers."""
    for name in fs.listdir(sidecar):
        if name == filenames.LARGER:
            fs.remove(sidecar / name)
        elif name.endswith(filenames.TEMPORARY_SUFFIX):
            fs.unlink(sidecar / name)
    pending = unfinished(fs, path)
    if pending is not None:
        fs.sync_folder(path.parent)  # a power failure must not take the renaming back any more
        finish(fs, sidecar, pending)
    else:
        discard(fs, sidecar)


def discard(fs: FileSystem, sidecar: Path) -> None:
    """Remove the files of a swap that did not happen. `next` goes first: without it, the others mean nothing."""
    found = [name for name in filenames.NEXT_FILES if fs.exists(sidecar / name)]
    for name in found:
        fs.unlink(sidecar / name)
        if name in (filenames.NEXT, found[-1]):
            fs.sync_folder(sidecar)
