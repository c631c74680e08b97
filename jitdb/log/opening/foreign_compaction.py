"""What a compaction that async-append-only-log did not finish means to who opens the log.

It moves records within the log's file, and says in NAME.compaction beside it how far it came (docs/format-log.md).
While that is there, the log holds records twice: a reader is refused, a writer finishes it (foreign_places.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jitdb.errors import CompactionUnfinished
from jitdb.log.io import filenames
from jitdb.log.io.osfile import FileSystem

HEAD_SIZE: Final = 20  # bytes of the file, before a block of the log
LARGEST_BLOCK: Final = 1 << 16


def state_path(path: Path) -> Path:
    return path.with_name(path.name + filenames.COMPACTION_SUFFIX)


def is_there(fs: FileSystem, path: Path) -> bool:
    return fs.exists(state_path(path))


def refuse(fs: FileSystem, path: Path) -> None:
    """As a reader. Raises CompactionUnfinished where there is one."""
    if is_there(fs, path):
        raise CompactionUnfinished(
            f"async-append-only-log is compacting it, or was ended while it did ({state_path(path).name} lies beside "
            f"it), and until that is done records stand in it twice",
            path=path,
            remedy="if that program runs, wait for it; if not, open the log once for writing, which finishes it: with "
            "Log(path), with jitdb compact, or in JavaScript",
        )


def block_size_of(fs: FileSystem, path: Path, fd: int) -> int | None:
    """The size of the log's blocks, as far as the file tells it."""
    if not is_there(fs, path):
        return None
    size = fs.stat(state_path(path)).st_size - HEAD_SIZE
    return size if 16 <= size <= LARGEST_BLOCK and fs.size(fd) % size == 0 else None
