"""A compaction that async-append-only-log began and did not finish: the file NAME.compaction beside the log.

It moves records towards the log's beginning, within the log's file, block after block. The file says how far it came
(all numbers u32, little-endian):

    0   version     1
    4   start       where the first block begins that is rewritten
    8   truncate    the last block that stays, once all are rewritten; before that 0xffffffff
    12  block       to be rewritten next
    16  offset      of the first record that was not moved yet
    20  image       the block that holds it, as it was before

While it is there, the file holds records twice. So a reader is refused; a writer finishes it, by the same steps, each
durable before the next, so that whoever dies in it leaves a state that either program finishes.

async-append-only-log announces a block before the one before it is written. Killed then, it leaves a state that is
*ahead*: blocks that it counts as rewritten are as they were, and what it does when it resumes loses records. They are
all in the file. Where rewriting goes on is found by trying each place: from the right one, blocks fill up so that the
record at `offset` comes next. Nothing is written before all that will be overwritten was found in its new place.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from jitdb.log.io import filenames

# As async-append-only-log 4.3 writes them.
VERSION: Final = 1
HEAD: Final = struct.Struct("<5I")
MOVING: Final = 0xFFFFFFFF
LARGEST_BLOCK: Final = 1 << 16


def state_path(path: Path) -> Path:
    """The file of this log."""
    return path.with_name(path.name + filenames.COMPACTION_SUFFIX)
