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

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

from jitdb.errors import CompactionUnfinished, LogCorrupt, LogLocked
from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.opening.unfinished_blocks import Blocks, Place
from jitdb.log.opening.unfinished_search import Search

# As async-append-only-log 4.3 writes them.
VERSION: Final = 1
_HEAD: Final = struct.Struct("<5I")
_MOVING: Final = 0xFFFFFFFF
_LARGEST_BLOCK: Final = 1 << 16


def state_path(path: Path) -> Path:
    """The file of this log."""
    return path.with_name(path.name + filenames.COMPACTION_SUFFIX)


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
    size = fs.stat(state_path(path)).st_size - _HEAD.size
    return size if 16 <= size <= _LARGEST_BLOCK and fs.size(fd) % size == 0 else None


def finish(fs: FileSystem, path: Path, fd: int, block_size: int, begin: Callable[[], object]) -> None:
    """As the only writer: finish it, and remove its file. `begin` is called before a record is moved.

    Raises LogCorrupt where the file does not belong to the log as it is, LogLocked where it is being written; then
    nothing was changed.
    """
    work = _Compaction(fs, path, fd, block_size)
    place = work.find()
    if place is not None:
        begin()
        work.truncate(work.rewrite(place))
    fs.unlink(state_path(path))
    fs.sync_folder(path.parent)


class _Compaction:
    def __init__(self, fs: FileSystem, path: Path, fd: int, block_size: int) -> None:
        self._fs = fs
        self._path = path
        self._fd = fd
        self._size = block_size
        size = fs.size(fd)
        if block_size > _LARGEST_BLOCK or size % block_size or size > _MOVING:
            raise self._odd(
                f"expected less than 4 GiB in whole blocks of {block_size:,} bytes (at most 65,536), got {size:,}"
            )
        self._blocks = Blocks(fs, fd, block_size)

    def _odd(self, what: str) -> LogCorrupt:
        return LogCorrupt(
            f"it does not fit the log {self._path.name} as it is: {what}. Nothing was changed",
            remedy="if it is of another log, or async-append-only-log did not write it, move it away; else bring back "
            "the log as it was",
            path=state_path(self._path),
        )

    def find(self) -> Place | None:
        """Where to go on; None where nothing was begun and there is nothing to do. Raises LogCorrupt, LogLocked."""
        named = self._load()
        if named is None:
            return self._beginning()
        block, blocks = named.block, self._blocks
        bad = [number for number in range(block + 1, blocks.count) if not blocks.block(number).sound]
        if bad:
            raise self._odd(f"block {bad[0]} is damaged")
        search = Search(blocks, named)
        found = search.places()
        if not found:
            raise self._odd(f"what is in its blocks before {block} is not what was moved there")
        if len(found) > 1:  # of these, all but one have copies of records beside the records
            found = [place for place in found if search.is_distinct(place)]
        if len(found) != 1:
            raise self._odd("equal records stand where it stopped, and it cannot be told which of them are copies")
        return found[0]

    def _load(self) -> Place | None:
        """The place that the file names; None where it is not written whole, so that nothing can have been moved."""
        size = _HEAD.size + self._size
        with Descriptor(self._fs, state_path(self._path), os.O_RDONLY) as fd:
            if self._fs.is_being_written(fd):
                raise LogLocked(
                    "async-append-only-log is compacting it",
                    path=self._path,
                    remedy="wait for it, and close the log there",
                )
            data = self._fs.read(fd, size + 1, 0)
        if len(data) < size:
            first = self._beginning()
            if data and (first is None or not self._encode(first).startswith(data)):
                raise self._odd(f"expected {size:,} bytes, got {len(data):,}")
            return None
        version, start, truncate, block, offset = _HEAD.unpack_from(data)
        if version != VERSION or len(data) > size:
            raise self._odd(f"expected version 1 and {size:,} bytes, got version {version:,} and {len(data):,} or more")
        blocks = self._blocks
        blocks.first, within = divmod(start, self._size)
        if truncate == _MOVING:
            fits = blocks.first <= block <= offset // self._size < blocks.count
        else:
            fits = blocks.first <= truncate + 1 <= blocks.count
        if within or not fits:
            named = block if truncate == _MOVING else truncate
            raise self._odd(
                f"got byte {start:,}, block {named:,} and the record at {offset:,} of {blocks.count:,} blocks of "
                f"{self._size:,} bytes"
            )
        return Place(block, offset, data[_HEAD.size :]) if truncate == _MOVING else Place(truncate + 1, None)

    def _beginning(self) -> Place | None:
        """With what a compaction of this log begins; None where no record is deleted, or every one."""
        blocks = self._blocks
        for number in range(blocks.count):
            if blocks.block(number).deleted:
                blocks.first = number
                record = next(blocks.live(number), None)
                if record is not None:
                    return Place(number, record.offset, blocks.raw(record.offset // self._size))
                return Place(number, None) if number else None
        return None

    def rewrite(self, place: Place) -> int:
        """Fill the blocks from here on; the number of those that stay."""
        if place.offset is None:
            return place.block
        for filled in self._blocks.fill(place):
            if not filled.stays:
                self._save(place)
                self._fs.write(self._fd, filled.data, place.block * self._size)
                self._fs.fsync(self._fd)
            place = filled.following
        return place.block

    def truncate(self, blocks: int) -> None:
        """Cut off what was moved."""
        self._save(Place(blocks, None))
        self._fs.truncate(self._fd, blocks * self._size)
        self._fs.fsync(self._fd)

    def _encode(self, place: Place) -> bytes:
        """The file that names this place."""
        start = self._blocks.first * self._size
        if place.offset is None:
            return _HEAD.pack(VERSION, start, place.block - 1, 0, 0) + bytes(self._size)
        return _HEAD.pack(VERSION, start, _MOVING, place.block, place.offset) + place.image

    def _save(self, place: Place) -> None:
        """Say durably, at once, how far it came."""
        target = state_path(self._path)
        temporary = filenames.sidecar_path(self._path) / filenames.temporary_name(target.name)
        with Descriptor(self._fs, temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) as fd:
            self._fs.chmod(fd, self._fs.fstat(self._fd).st_mode & 0o7777)  # it holds records
            self._fs.write(fd, self._encode(place), 0)
            self._fs.fsync(fd)
        self._fs.rename(temporary, target)
        self._fs.sync_folder(target.parent)
