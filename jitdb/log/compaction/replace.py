"""One log takes the place of another, in one moment: as a compaction does (swap.py), but with other records.

Who reads the log meanwhile goes on reading the old one until it looks for news; then it finds another log there, with
an identity of its own, whose indexes are built anew. A crash leaves the old log or the new one, whole.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor
from jitdb.log.log import Log
from jitdb.log.opening import swap
from jitdb.log.opening.open_log import open_again
from jitdb.log.opening.options import OpenOptions
from jitdb.log.opening.tail import measure, stamp_of
from jitdb.log.sidecar import checksums, deletions, journal
from jitdb.log.sidecar.meta import Meta, new_identity

if TYPE_CHECKING:
    from jitdb.log.opening.opened import Opened
    from jitdb.log.writing.writer import ChangeOver, Writer


def replace(writer: Writer, fresh: Path, codec: str, change_over: ChangeOver) -> None:
    """Put the log `fresh` in the place of this writer's. See Log.replace_with."""
    with Log(fresh, read_only=True) as new:
        end, block_size = new.durable_end, new.block_size
        sums = new.checksums(0, -(-end // block_size)).tolist()

    def work(opened: Opened) -> Opened:
        fs, sidecar, change = opened.fs, opened.sidecar, writer.change
        generation = opened.meta.generation + 1
        fs.rename(fresh, sidecar / filenames.NEXT_LOG)
        with Descriptor(fs, sidecar / filenames.NEXT_LOG, os.O_RDWR) as fd:
            fs.share(fd, fs.fstat(opened.fd), is_log=True)
            tail = measure(fs, fd, end, block_size)
            stamp = stamp_of(fs.fstat(fd))
        assert tail is not None  # it was written and closed by us
        meta = Meta(block_size, codec, new_identity(), generation)
        entry = tail.entry(journal.OPENED, generation, change)._replace(stamp=stamp)
        entries = [
            checksums.encode_entry(block, crc, generation) if crc >= 0 else bytes(checksums.ENTRY_SIZE)
            for block, crc in enumerate(sums)
        ]
        fs.write_file(sidecar / filenames.NEXT_CHECKSUMS, checksums.encode_head(generation, change) + b"".join(entries))
        fs.write_file(sidecar / filenames.NEXT_DELETIONS, deletions.encode_head(generation))
        following = swap.Next(meta, entry)
        fs.replace_file(sidecar / filenames.NEXT, swap.encode(following))
        swap.switch(fs, opened.path, sidecar)
        swap.finish(fs, sidecar, following)
        return open_again(opened, OpenOptions.of(None, None))

    writer.mend(work, change_over, "another log was to take its place, and that was cut short: open the log again")
