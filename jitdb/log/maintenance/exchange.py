"""Putting another file in a log's place, with all that the sidecar says about it, atomically: see swap.py.

Compaction, replacement and the repair of blocks bring a new file: make_next_log(), prepare(), put_in_place(). A repair
of the sidecar alone keeps the file: prepare(), swap.finish().
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from jitdb.errors import LogWriteFailed
from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor
from jitdb.log.opening import swap
from jitdb.log.opening.format import OpenOptions
from jitdb.log.opening.open_log import open_log
from jitdb.log.opening.opened import Opened
from jitdb.log.opening.recovery import measure, stamp_of
from jitdb.log.reading.extent import Extent
from jitdb.log.reading.record_reader import Verifier
from jitdb.log.sidecar import checksums, deletions, journal
from jitdb.log.sidecar.checksums import Entry
from jitdb.log.sidecar.meta import Meta, new_identity

if TYPE_CHECKING:
    from jitdb.log.writing.writer import Writer


def make_next_log(opened: Opened) -> Descriptor:
    """The file for the new log, empty, with the owner and permissions of the old one."""
    file = Descriptor(opened.fs, opened.sidecar / filenames.NEXT_LOG, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    opened.fs.share(file.number, opened.fs.fstat(opened.fd), is_log=True)
    return file


def prepare(
    opened: Opened, fd: int, new: Meta, end: int, sums: list[Entry | None],
    *, deleted: bytes = b"", removals: bytes = b"",
) -> swap.PendingSwap:  # fmt: skip
    """Put all that the new log needs into the sidecar, durably, and announce it in `next`. Raises LogWriteFailed.

    fd: the file of the new log, which is synced; its records end at `end`
    sums, deleted: its checksums, and the entries of its deletions
    removals: the file that tells which records are gone
    """
    fs, sidecar, change = opened.fs, opened.sidecar, opened.recovery.change
    tail = measure(fs, fd, end, new.block_size)
    if tail is None:
        raise LogWriteFailed(f"no record of the new log ends at {end:,}: the log is as it was", path=opened.path)
    known = journal.JournalPrefix(len(deleted) // deletions.ENTRY_SIZE, deletions.crc_of(deleted))
    entry = tail.entry(journal.OPENED, new.generation, change, known)
    pending = swap.PendingSwap(new, entry._replace(stamp=stamp_of(fs.fstat(fd))))
    head = checksums.encode_head(new.generation, change)
    fs.write_file(sidecar / filenames.NEXT_CHECKSUMS, head + checksums.encode_entries(sums, new.generation))
    fs.write_file(sidecar / filenames.NEXT_DELETIONS, deletions.encode_head(new.generation) + deleted)
    if removals:
        fs.write_file(sidecar / filenames.moved_name(new.generation), removals)
    fs.replace_file(sidecar / filenames.NEXT, swap.encode(pending))
    return pending


def put_in_place(opened: Opened, pending: swap.PendingSwap) -> None:
    """Put next-log in the log's place. The old file stays open."""
    fs = opened.fs
    fs.rename(opened.sidecar / filenames.NEXT_LOG, opened.path)  # the moment
    fs.sync_folder(opened.path.parent)
    fs.sync_folder(opened.sidecar)
    swap.finish(fs, opened.sidecar, pending)


def replace(writer: Writer, fresh: Path, codec: str, options: OpenOptions) -> None:
    """Put the log `fresh` in the place of this writer's, in one moment. See Log.replace_with."""
    new = open_log(fresh, OpenOptions(None, None), read_only=True)
    try:
        end, block_size = new.recovery.tail.end, new.meta.block_size
        sums = Verifier(new, Extent(new.recovery.tail, block_size)).sums(0, -(-end // block_size)).tolist()
    finally:
        new.close()

    def swap_in(opened: Opened) -> None:
        fs, sidecar = opened.fs, opened.sidecar
        meta = Meta(block_size, codec, new_identity(), opened.meta.generation + 1)
        fs.rename(fresh, sidecar / filenames.NEXT_LOG)
        with Descriptor(fs, sidecar / filenames.NEXT_LOG, os.O_RDWR) as fd:
            fs.share(fd, fs.fstat(opened.fd), is_log=True)
            pending = prepare(opened, fd, meta, end, [Entry(crc) if crc >= 0 else None for crc in sums])
        put_in_place(opened, pending)
        opened.options = options

    with writer.exclusively():
        writer.reopen(swap_in, "another log was to take its place, and that was cut short: open the log again")
