"""Finishing a compaction that async-append-only-log began: block after block, each durable before the next."""

from __future__ import annotations

import os
from pathlib import Path

from jitdb.errors import LogCorrupt, LogLocked
from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.opening.unfinished.blocks import Blocks, Place
from jitdb.log.opening.unfinished.layout import HEAD, LARGEST_BLOCK, MOVING, VERSION, state_path
from jitdb.log.opening.unfinished.search import Search


class Compaction:
    """One that was begun: what its file says, and the blocks that are to be rewritten."""

    def __init__(self, fs: FileSystem, path: Path, fd: int, block_size: int) -> None:
        self._fs = fs
        self._path = path
        self._fd = fd
        self._size = block_size
        size = fs.size(fd)
        if block_size > LARGEST_BLOCK or size % block_size or size > MOVING:
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
        size = HEAD.size + self._size
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
        version, start, truncate, block, offset = HEAD.unpack_from(data)
        if version != VERSION or len(data) > size:
            raise self._odd(f"expected version 1 and {size:,} bytes, got version {version:,} and {len(data):,} or more")
        blocks = self._blocks
        blocks.first, within = divmod(start, self._size)
        if truncate == MOVING:
            fits = blocks.first <= block <= offset // self._size < blocks.count
        else:
            fits = blocks.first <= truncate + 1 <= blocks.count
        if within or not fits:
            named = block if truncate == MOVING else truncate
            raise self._odd(
                f"got byte {start:,}, block {named:,} and the record at {offset:,} of {blocks.count:,} blocks of "
                f"{self._size:,} bytes"
            )
        return Place(block, offset, data[HEAD.size :]) if truncate == MOVING else Place(truncate + 1, None)

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
            return HEAD.pack(VERSION, start, place.block - 1, 0, 0) + bytes(self._size)
        return HEAD.pack(VERSION, start, MOVING, place.block, place.offset) + place.image

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
