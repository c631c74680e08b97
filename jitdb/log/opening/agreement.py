"""Do a log's file and its journal of deletions tell of the same deletions? Recovery out by reading the log once.

That is asked where they may be of different moments: a copy of one file is older than that of the other, or a writer
died in the middle of a write. Which of both is the newer one decides what is to be done:

    a record is zero, and the journal does not say so      the journal is older: somebody deleted what it does not know
    a record that the journal says is zero is not          the file is older, or another one, compacted perhaps
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitdb.log.sidecar.deletions import Agreement

if TYPE_CHECKING:
    from jitdb.log.io.osfile import FileSystem
    from jitdb.log.sidecar.deletions import DeletionReader


def compare(fs: FileSystem, fd: int, end: int, block_size: int, deletions: DeletionReader, applied: int) -> Agreement:
    """Hold the log up to `end` against the journal, whose first `applied` entries should be zeros in it."""
    import numpy as np

    from jitdb.log.blocks.layout import header_size
    from jitdb.log.blocks.scanner import scan

    logged = np.unique(deletions.between(0, deletions.position))
    gone = np.unique(deletions.between(0, applied))
    header = header_size(block_size)
    unlogged, met = False, 0
    for piece in scan(lambda buffer, at: fs.read_into(fd, buffer, at), 0, end, block_size):
        walked = piece.walked
        zeros = walked.starts[walked.deleted] + (piece.begin - header)
        unlogged |= not bool(np.isin(zeros, logged, assume_unique=True).all())
        met += int(np.isin(zeros, gone, assume_unique=True).sum())
        for fault in (walked.faults + piece.begin).tolist():  # what lies behind it cannot be looked at
            met += int(((gone >= fault) & (gone < fault - fault % block_size + block_size)).sum())
    return Agreement(unlogged, met < len(gone))
