"""`mend`: a block that is being repaired, and whether the log counts as another one afterwards. One step, to be redone.

The file (docs/format-log.md) is in place before the block is touched, and until all that it says is done; a step that
follows replaces it. A writer that finds it does it again. The identity changes last: indexes of before are void.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.errors import LogCorrupt
from jitdb.log.blocks.checksum import crc32
from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.opening import swap
from jitdb.log.opening.recovery import stamp_of
from jitdb.log.sidecar import checksums, journal, meta
from jitdb.log.sidecar.checksums import Checksums
from jitdb.log.sidecar.framing import Frame

# On disk: never change.
MAGIC: Final = b"JITDBMND"
VERSION: Final = 1
_FRAME: Final = Frame(MAGIC, f"IIQ{journal.ENTRY_SIZE}sI16s", open_ended=True)
_KEPT: Final = bytes(16)


class RedoStep(NamedTuple):
    generation: int
    block: int
    entry: journal.Entry
    is_last: bool
    renewed: bytes  # 16 bytes; none if the log keeps its identity
    image: bytes


def encode(step: RedoStep) -> bytes:
    entry = journal.encode(step.entry)
    return _FRAME.pack(VERSION, step.generation, step.block, entry, step.is_last, step.renewed or _KEPT, step.image)


def decode(data: bytes) -> RedoStep | None:
    """None if this is not what was written."""
    fields = _FRAME.unpack(data)
    if fields is None:
        return None
    version, generation, block, raw, is_last, renewed, image = fields
    entry = journal.decode(raw)
    if version != VERSION or entry is None:
        return None
    return RedoStep(generation, block, entry, bool(is_last), b"" if renewed == _KEPT else renewed, image)


def _read(fs: FileSystem, sidecar: Path, known: meta.Meta | None) -> RedoStep | None:
    step = decode(fs.read_if_there(sidecar / filenames.REDO) or b"")
    return step if step is not None and known is not None and step.generation == known.generation else None


def resume(fs: FileSystem, path: Path, sidecar: Path) -> None:
    """As the writer, who holds the lock: finish what a crash cut short."""
    if not fs.exists(sidecar / filenames.REDO):
        return
    known = None
    with suppress(LogCorrupt):
        known = meta.read(fs, sidecar / filenames.META)
    step, size = _read(fs, sidecar, known), fs.stat(path).st_size
    # Of a block of this log.
    if step and known and len(step.image) == known.block_size and step.block * known.block_size < size:
        apply(fs, path, sidecar, step)
        if step.renewed:
            renew_identity(fs, path, sidecar, known, step.renewed)
    clear(fs, sidecar)


def effective_meta(fs: FileSystem, sidecar: Path, known: meta.Meta) -> meta.Meta:
    """What the log counts as while a repair is not finished: indexes of the old one are void from its first step on."""
    step = _read(fs, sidecar, known)
    return known._replace(identity=step.renewed) if step is not None and step.renewed else known


def clear(fs: FileSystem, sidecar: Path) -> None:
    with suppress(FileNotFoundError):
        fs.unlink(sidecar / filenames.REDO)
    fs.sync_folder(sidecar)


def apply(fs: FileSystem, path: Path, sidecar: Path, step: RedoStep) -> None:
    """Write the block and what the sidecar says of it. May be done again."""
    size = len(step.image)
    with Descriptor(fs, path, os.O_RDWR) as fd:
        fs.write(fd, step.image, step.block * size)
        fs.fsync(fd)
        stamp = stamp_of(fs.fstat(fd))
    if not step.is_last:
        with closing(Checksums(fs, sidecar / filenames.CHECKSUMS, step.generation, step.entry.change)) as sums:
            sums.open_to_write()
            sums.put(step.block, [crc32(step.image)])
            sums.sync()
    journal.append_entry(fs, sidecar / filenames.COMMIT, step.entry._replace(stamp=stamp))


def renew_identity(fs: FileSystem, path: Path, sidecar: Path, old: meta.Meta, identity: bytes) -> None:
    """Give the log another identity, and its next generation: whoever indexed it must do so anew."""
    base = journal.read_state(fs, sidecar / filenames.COMMIT, old.generation).base
    assert base is not None  # apply() has appended one
    new = old._replace(identity=identity, generation=old.generation + 1)
    with Descriptor(fs, path, os.O_RDWR) as fd:
        stamp = stamp_of(fs.fstat(fd))
    start = journal.JournalPrefix(0, 0).packed
    entry = base._replace(start=start, generation=new.generation, kind=journal.CLOSED, stamp=stamp)
    pending = swap.PendingSwap(new, entry)
    sums = fs.read_if_there(sidecar / filenames.CHECKSUMS) or b""
    head, sums = sums[: checksums.HEAD_SIZE], sums[checksums.HEAD_SIZE :]
    is_known = head == checksums.encode_head(old.generation, base.change)
    sums = checksums.rewritten(sums, old.generation, to=new.generation) if is_known else b""
    swap.prepare(fs, sidecar, pending, sums)
    swap.finish(fs, sidecar, pending)
    for name in fs.listdir(sidecar):
        if filenames.is_moved_name(name):  # of the old identity
            fs.unlink(sidecar / name)
