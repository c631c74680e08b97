"""A log whose `meta` is lost: the journal beside it still knows how its last block began."""

from __future__ import annotations

from pathlib import Path

from jitdb.log.blocks.layout import MAX_BLOCK_SIZE, MIN_BLOCK_SIZE
from jitdb.log.io import filenames
from jitdb.log.io.osfile import FileSystem
from jitdb.log.opening.detect import look
from jitdb.log.opening.identity import SidecarState
from jitdb.log.opening.options import OpenOptions
from jitdb.log.opening.tail import measure
from jitdb.log.opening.unfinished import compaction_file
from jitdb.log.sidecar import journal


def with_block_size(fs: FileSystem, path: Path, fd: int, options: OpenOptions, known: SidecarState) -> OpenOptions:
    """What the caller wants, and, where `meta` is lost, what else beside the log says of the block size."""
    if known.meta is not None or options.block_size is not None:
        return options
    found = compaction_file.block_size_of(fs, path, fd)
    if found is None:
        found = infer_block_size(fs, fd, filenames.sidecar_path(path) / filenames.COMMIT)
    return options._replace(block_size=found)


def infer_block_size(fs: FileSystem, fd: int, commit: Path) -> int | None:
    """The block size with which the log ends as the journal says; None if there is none, or no journal.

    It divides the file's size. Of several, which there are while the log ended in its first block, that counts with
    which most blocks are in order, as the log may have grown since; of these the largest. None, too, where more are
    damaged than in order: then the file is not what the journal tells of, and must speak for itself.
    """
    try:
        entries = journal.decode_all(fs.read_file(commit))
    except (FileNotFoundError, NotADirectoryError):
        return None
    settled = [entry for entry in entries if entry is not None and entry.kind != journal.DATA and entry.end]
    if not settled:
        return None
    size = fs.size(fd)
    points: dict[int, int] = {}
    for block_size in _divisors(size):
        tail = measure(fs, fd, settled[-1].end, block_size)
        if tail is not None and tail.agrees(settled[-1]):
            sample = look(fs, fd, size, block_size)
            points[block_size] = sample.in_order - sample.damaged
    best = max(points, key=lambda block_size: points[block_size], default=None)
    return None if best is None or points[best] < 0 else best


def _divisors(size: int) -> list[int]:
    """The block sizes of which a file has a whole number, the largest first.

    >>> _divisors(96)
    [96, 48, 32, 24, 16]
    """
    found = set()
    number = 1
    while number * number <= size:
        if size % number == 0:
            found |= {number, size // number}
        number += 1
    return sorted((each for each in found if MIN_BLOCK_SIZE <= each <= MAX_BLOCK_SIZE), reverse=True)
