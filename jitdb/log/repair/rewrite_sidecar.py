"""Repairing the files of a log's sidecar: each is written anew from what can be read of it, and replaced whole."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jitdb.errors import LogCorrupt
from jitdb.log.codecs import Codec
from jitdb.log.io import filenames
from jitdb.log.opening.tail import stamp_of
from jitdb.log.repair.report import LogReport, RepairAction
from jitdb.log.repair.salvage import is_sound
from jitdb.log.sidecar import checksums, deletions, journal, meta, removals
from jitdb.log.sidecar.checksums import Checksums
from jitdb.log.sidecar.onebit import restored_with_crc

if TYPE_CHECKING:
    from jitdb.log.opening.opened import Opened


def rewrite_files(opened: Opened, before: LogReport, base: journal.Entry) -> list[RepairAction]:
    """All but the checksums of blocks that have none."""
    damaged = {finding.what for finding in before.findings}
    done: list[RepairAction] = []
    if filenames.META in damaged:
        opened.fs.replace_file(opened.sidecar / filenames.META, meta.encode(opened.meta))
        done.append(RepairAction("meta: written anew", restored=True))
    if filenames.COMMIT in damaged:
        stamp = stamp_of(opened.fs.fstat(opened.fd))
        entry = base._replace(kind=journal.CLOSED, stamp=stamp)
        opened.fs.replace_file(opened.sidecar / filenames.COMMIT, journal.encode(entry))
        done.append(RepairAction("commit: the journal was begun anew; the log ends where it did", restored=True))
    if filenames.DELETIONS in damaged:
        done.append(_rewrite_deletions(opened))
    if filenames.CHECKSUMS in damaged:
        _rewrite_checksums(opened)
    done += [_repair_removals(opened, finding.file) for finding in before.findings if finding.what == "moved"]
    return done


def _rewrite_deletions(opened: Opened) -> RepairAction:
    """Entries that cannot be read become marks: all that was deleted is zeros since the log was opened for writing."""
    path = opened.sidecar / filenames.DELETIONS
    body = b""
    with suppress(FileNotFoundError):
        body = opened.fs.read_file(path)[deletions.HEAD_SIZE :]
    entries = deletions.decode_all(body)
    data = b"".join(deletions.MARK if entry is None else deletions.encode_entry(entry) for entry in entries)
    opened.fs.replace_file(path, deletions.encode_head(opened.meta.generation) + data)
    lost = sum(entry is None for entry in entries)
    if not lost:
        return RepairAction("deletions: written anew", restored=True)
    return RepairAction(f"deletions: written anew without {lost:,} entries that cannot be read")


def _repair_removals(opened: Opened, file: str) -> RepairAction:
    name = os.path.basename(file)
    path = opened.sidecar / name
    whole = restored_with_crc(opened.fs.read_file(path)) or b""
    try:
        removals.decode(whole, Path(name))
    except LogCorrupt:
        opened.fs.unlink(path)
        opened.fs.sync_folder(opened.sidecar)
        return RepairAction(f"{name}: removed; cursors and indexes from before that compaction count no more")
    opened.fs.replace_file(path, whole)
    return RepairAction(f"{name}: one flipped bit put right", restored=True)


def _rewrite_checksums(opened: Opened) -> None:
    """Head and entries as they were written; what cannot be read of them is left out."""
    path, entries = opened.sidecar / filenames.CHECKSUMS, b""
    with suppress(FileNotFoundError):
        entries = opened.fs.read_file(path)[checksums.HEAD_SIZE :]
    opened.fs.replace_file(path, opened.checksums.head + checksums.rewritten(entries, opened.meta.generation))


def add_checksums(opened: Opened, before: LogReport, first: int, last: int, codec: Codec) -> list[RepairAction]:
    """Give each block from `first` to `last` a checksum that has none and in which nothing is seen to be wrong."""
    size = opened.meta.block_size
    sums = Checksums(opened.fs, opened.sidecar / filenames.CHECKSUMS, opened.meta.generation, opened.recovery.change)
    given = []
    try:
        sums.open_to_write()
        for block in range(first, last):
            if sums.get(block) is None:
                data = opened.read(size, block * size)
                if is_sound(data, size, codec):  # others were repaired, and have one
                    sums.put(block, [zlib.crc32(data)], checksums.UNPROVEN)
                    given.append(block)
        sums.sync()
    finally:
        sums.close()
    opened.checksums.close()  # it was replaced
    done = []
    if any(finding.what == filenames.CHECKSUMS for finding in before.findings):
        done.append(RepairAction("checksums: written anew", restored=not given))
    if given:
        text = f"{len(given):,} blocks were given a checksum: nothing is seen to be wrong with them"
        done.append(RepairAction(text, unproven=tuple(given)))
    return done
