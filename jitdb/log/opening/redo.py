"""`mend`: a block that is being repaired, and whether the log counts as another one afterwards. One step, to be redone.

    magic        8   "JITDBMND"
    version      u32 1
    generation   u32 of the log
    block        u64 its number
    entry        64  CLOSED, as in the file commit: how the log ends once the block is repaired
    is last      u32 1 for the block that holds the log's end: it gets no checksum; else 0
    renewed      16  the identity that the log has afterwards; zeros if it keeps its own
    image        the block as it shall be
    crc          u32 of all bytes before

The file is in place before the block is touched, and until all that it says is done; a step that follows replaces it. A
writer that finds it does it again. The identity changes last: an index that was built before, or in between, is void.
"""

from __future__ import annotations

import os
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.errors import LogCorrupt
from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.opening import swap
from jitdb.log.opening.tail import stamp_of
from jitdb.log.sidecar import checksums, journal, meta
from jitdb.log.sidecar.checksums import Checksums
from jitdb.log.sidecar.framing import Frame

# On disk: never change.
MAGIC: Final = b"JITDBMND"
VERSION: Final = 1
_FRAME: Final = Frame(MAGIC, f"IIQ{journal.ENTRY_SIZE}sI16s", open_ended=True)
_KEPT: Final = bytes(16)


class RedoStep(NamedTuple):
    """One step of a repair."""

    generation: int
    block: int
    entry: journal.Entry
    is_last: bool
    renewed: bytes  # 16 bytes; none if the log keeps its identity
    image: bytes


def encode(step: RedoStep) -> bytes:
    """The bytes of the file."""
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


def resume(fs: FileSystem, path: Path, sidecar: Path) -> None:
    """As the writer, who holds the lock: finish what a crash cut short."""
    try:
        step = decode(fs.read_file(sidecar / filenames.REDO))
    except (FileNotFoundError, NotADirectoryError):
        return
    known = _read_meta(fs, sidecar)
    if step is not None and known is not None and _is_of(step, known, fs.stat(path).st_size):
        apply(fs, path, sidecar, step)
        if step.renewed:
            renew_identity(fs, path, sidecar, known, step.renewed)
    clear(fs, sidecar)


def effective_meta(fs: FileSystem, sidecar: Path, known: meta.Meta) -> meta.Meta:
    """What the log counts as while a repair is not finished: indexes of the old one are void from its first step on."""
    try:
        step = decode(fs.read_file(sidecar / filenames.REDO))
    except (FileNotFoundError, NotADirectoryError):
        return known
    if step is None or not step.renewed or step.generation != known.generation:
        return known
    return known._replace(identity=step.renewed)


def _is_of(step: RedoStep, known: meta.Meta, size: int) -> bool:
    """Whether it speaks of a block of this log, whose file has `size` bytes."""
    is_block = len(step.image) == known.block_size and step.block * known.block_size < size
    return is_block and step.generation == known.generation


def _read_meta(fs: FileSystem, sidecar: Path) -> meta.Meta | None:
    try:
        return meta.read(fs, sidecar / filenames.META)
    except LogCorrupt:
        return None


def announce(fs: FileSystem, sidecar: Path, step: RedoStep) -> None:
    """Before the block is touched."""
    fs.replace_file(sidecar / filenames.REDO, encode(step))


def clear(fs: FileSystem, sidecar: Path) -> None:
    """After the last step."""
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
            sums.put(step.block, [zlib.crc32(step.image)])
            sums.sync()
    append_entry(fs, sidecar, step.entry._replace(stamp=stamp))


def append_entry(fs: FileSystem, sidecar: Path, entry: journal.Entry) -> None:
    """Append an entry to the journal, durably."""
    with closing(journal.JournalReader(fs, sidecar / filenames.COMMIT, entry.generation)) as reader:
        reader.poll()
        journal.append_to(fs, sidecar / filenames.COMMIT, reader, entry)


def renew_identity(fs: FileSystem, path: Path, sidecar: Path, old: meta.Meta, identity: bytes) -> None:
    """Give the log another identity, and its next generation: whoever indexed it must do so anew."""
    reader = journal.JournalReader(fs, sidecar / filenames.COMMIT, old.generation)
    base = reader.poll().base
    reader.close()
    assert base is not None  # apply() has appended one
    new = old._replace(identity=identity, generation=old.generation + 1)
    with Descriptor(fs, path, os.O_RDWR) as fd:
        stamp = stamp_of(fs.fstat(fd))
    start = journal.JournalPrefix(0, 0).packed
    entry = base._replace(start=start, generation=new.generation, kind=journal.CLOSED, stamp=stamp)
    pending = swap.PendingSwap(new, entry)
    swap.prepare(fs, sidecar, pending, _sums_of(fs, sidecar, old.generation, new.generation, base.change))
    swap.finish(fs, sidecar, pending)
    for name in fs.listdir(sidecar):
        if filenames.is_moved_name(name):  # of the old identity
            fs.unlink(sidecar / name)


def _sums_of(fs: FileSystem, sidecar: Path, old: int, new: int, change: bytes) -> bytes:
    """The entries of the file of checksums, for another generation."""
    try:
        data = fs.read_file(sidecar / filenames.CHECKSUMS)
    except FileNotFoundError:
        data = b""
    head, entries = data[: checksums.HEAD_SIZE], data[checksums.HEAD_SIZE :]
    return checksums.rewritten(entries, old, to=new) if head == checksums.encode_head(old, change) else b""
