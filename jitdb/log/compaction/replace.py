"""One log takes the place of another, in one moment: as a compaction does (swap.py), but with other records.

Who reads the log meanwhile goes on reading the old one until it looks for news; then it finds another log there, with
an identity of its own, whose indexes are built anew. A crash leaves the old log or the new one, whole.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor
from jitdb.log.opening import swap
from jitdb.log.opening.open_log import open_again, open_log
from jitdb.log.opening.options import OpenOptions
from jitdb.log.reading.block_verifier import Verifier
from jitdb.log.reading.extent import Extent
from jitdb.log.sidecar import checksums
from jitdb.log.sidecar.meta import Meta, new_identity

if TYPE_CHECKING:
    from jitdb.log.opening.opened import Opened
    from jitdb.log.writing.writer import Rebind, Writer


_AS_IT_IS: Final = OpenOptions(None, None)
_CUT_SHORT: Final = "another log was to take its place, and that was cut short: open the log again"


def replace(writer: Writer, fresh: Path, codec: str, rebind: Rebind) -> None:
    """Put the log `fresh` in the place of this writer's. See Log.replace_with."""
    new = open_log(fresh, _AS_IT_IS, read_only=True)
    try:
        end, block_size = new.recovery.tail.end, new.meta.block_size
        sums = Verifier(new, Extent(new.recovery.tail, block_size)).sums(0, -(-end // block_size)).tolist()
    finally:
        new.close()

    def swap_in(opened: Opened) -> Opened:
        fs, sidecar = opened.fs, opened.sidecar
        meta = Meta(block_size, codec, new_identity(), opened.meta.generation + 1)
        fs.rename(fresh, sidecar / filenames.NEXT_LOG)
        with Descriptor(fs, sidecar / filenames.NEXT_LOG, os.O_RDWR) as fd:
            fs.share(fd, fs.fstat(opened.fd), is_log=True)
            pending = swap.describe(fs, fd, meta, end, opened.recovery.change)
        assert pending is not None  # it was written and closed by us
        entries = [
            checksums.encode_entry(block, crc, meta.generation) if crc >= 0 else bytes(checksums.ENTRY_SIZE)
            for block, crc in enumerate(sums)
        ]
        swap.prepare(fs, sidecar, pending, b"".join(entries))
        swap.swap(fs, opened.path, sidecar, pending)
        return open_again(opened, _AS_IT_IS)

    with writer.exclusively():
        writer.reopen(swap_in, rebind, _CUT_SHORT)
