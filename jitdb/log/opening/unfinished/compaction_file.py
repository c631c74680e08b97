"""What a compaction that async-append-only-log did not finish (layout.py) means to who opens the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jitdb.errors import CompactionUnfinished
from jitdb.log.io.osfile import FileSystem
from jitdb.log.opening.unfinished.layout import HEAD, LARGEST_BLOCK, state_path


def is_there(fs: FileSystem, path: Path) -> bool:
    """Whether such a compaction was begun."""
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
    size = fs.stat(state_path(path)).st_size - HEAD.size
    return size if 16 <= size <= LARGEST_BLOCK and fs.size(fd) % size == 0 else None


def finish(fs: FileSystem, path: Path, fd: int, block_size: int, begin: Callable[[], object]) -> None:
    """As the only writer: finish it, and remove its file. `begin` is called before a record is moved.

    Raises LogCorrupt where the file does not belong to the log as it is, LogLocked where it is being written; then
    nothing was changed.
    """
    from jitdb.log.opening.unfinished.rewrite import Compaction

    work = Compaction(fs, path, fd, block_size)
    place = work.find()
    if place is not None:
        begin()
        work.truncate(work.rewrite(place))
    fs.unlink(state_path(path))
    fs.sync_folder(path.parent)
