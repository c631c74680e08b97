"""Finishing a compaction that async-append-only-log began: block after block, each durable before the next.

Whoever dies in it leaves a state that either program finishes. Killed before it wrote a block that it had announced,
async-append-only-log leaves a state that is *ahead*, and loses records when it resumes. They are all in the file: where
rewriting goes on is found by trying each place, for from the right one, blocks fill up so that the record at `offset`
comes next. Nothing is written before all that will be overwritten was found in its new place.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.errors import LogCorrupt, LogLocked
from jitdb.log.blocks.packing import is_zero, walk_block
from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.opening.foreign_compaction import HEAD_SIZE, LARGEST_BLOCK, state_path

# As async-append-only-log 4.3 writes them: version, start, truncate, block, offset.
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<5I")
_MOVING: Final = 0xFFFFFFFF  # in the place of `truncate`: blocks are still to be rewritten

_HEADER: Final = 2  # bytes before each record
_CACHED: Final = 64  # blocks whose records are kept in memory
_AHEAD: Final = 32  # blocks that the state may be ahead of the log; seen: 2
_SECTOR: Final = 512  # bytes of which a write that was cut short leaves all or none


class Record(NamedTuple):
    offset: int
    data: bytes  # with its header


class Block(NamedTuple):
    live: list[Record]
    deleted: bool  # it has a deleted record, or none at all
    sound: bool  # nothing but records, and zeros behind them
    end: int  # of the live records, from the block's beginning, if they stand there without a gap; else -1


class Place(NamedTuple):
    """Where rewriting goes on: `block` is filled from the record at `offset` on; with None there is none left."""

    block: int
    offset: int | None
    image: bytes = b""  # the block that holds that record, as it was


class Filled(NamedTuple):
    data: bytes
    stays: bool  # its records are where they were
    following: Place


class Compaction:
    """One that was begun: the log's blocks, of which those from `first` on are rewritten, and what its file says."""

    def __init__(self, fs: FileSystem, path: Path, fd: int, block_size: int) -> None:
        self._fs, self._path, self._fd = fs, path, fd
        self.size, size = block_size, fs.size(fd)
        if block_size > LARGEST_BLOCK or size % block_size or size > _MOVING:
            raise self._odd(
                f"expected less than 4 GiB in whole blocks of {block_size:,} bytes (at most 65,536), got {size:,}"
            )
        self.room = block_size - _HEADER  # for records: behind them stands a zero header
        self.count = size // block_size
        self.first = 0
        self.block = lru_cache(_CACHED)(lambda number: self.parse(self.raw(number), number))

    def raw(self, number: int) -> bytes:
        return self._fs.read(self._fd, self.size, number * self.size)

    def parse(self, data: bytes, number: int) -> Block:
        """What stands in these bytes, which are those of a block, or will be."""
        walk, begin = walk_block(data, len(data), self.size), number * self.size
        ends = [*walk.positions[1:], walk.end]
        records = [Record(begin + at, data[at:end]) for at, end in zip(walk.positions, ends, strict=False)]
        live = [record for record in records if not is_zero(record.data[_HEADER:])]
        end = sum(len(record.data) for record in live)
        if not live or live[-1].offset - begin + len(live[-1].data) != end:
            end = -1
        sound = not walk.fault and is_zero(data[walk.end :])
        return Block(live, len(live) < max(1, len(records)), sound, end)

    def live(self, first: int, before: int | None = None, image: tuple[int, bytes] | None = None) -> Iterator[Record]:
        """The live records from block `first` to the offset `before`; one block may be as an image has it."""
        for number in range(first, self.count if before is None else before // self.size + 1):
            block = self.parse(image[1], number) if image and image[0] == number else self.block(number)
            for record in block.live:
                if before is not None and record.offset >= before:
                    return
                yield record

    def fill(self, place: Place) -> Iterator[Filled]:
        """Each block as it will be."""
        assert place.offset is not None
        block, data, stays = place.block, bytearray(), True
        for number in range(place.offset // self.size, self.count):
            image = place.image if number == place.offset // self.size else self.raw(number)
            for record in self.parse(image, number).live:
                if record.offset < place.offset:
                    continue
                if len(data) + len(record.data) > self.room:
                    yield Filled(bytes(data.ljust(self.size, b"\0")), stays, Place(block + 1, record.offset, image))
                    block, data, stays = block + 1, bytearray(), True
                stays = stays and record.offset == block * self.size + len(data)
                data += record.data
        yield Filled(bytes(data.ljust(self.size, b"\0")), stays, Place(block + 1, None))

    def is_filled(self, block: int, following: Record | None) -> bool:
        """Whether the rewritten blocks before this one hold live records without a gap, as many as fit.

        Behind them deleted ones may stay: a block whose live records stay where they are is not written.
        """
        numbers = range(self.first, block)
        if any(self.block(number).end < 0 or not self.block(number).sound for number in numbers):
            return False
        if following is None:
            return True  # of a compaction that found nothing to do, all are as they were: perhaps not full
        firsts = [*(self.block(number).live[0] for number in numbers[1:]), following]
        return all(
            self.block(number).end + len(record.data) > self.room
            for number, record in zip(numbers, firsts, strict=False)
        )

    def ends_with(self, block: int, moved: Iterator[Record]) -> bool:
        """Whether the records before this block end with copies of all of these."""
        wanted = [record.data for record in moved]
        number, left = block, len(wanted)
        while left > 0:
            number -= 1
            if number < self.first:
                return False
            left -= len(self.block(number).live)
        copies = islice(self.live(number, block * self.size), -left, None) if number < block else ()
        return [copy.data for copy in copies] == wanted

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
        block = named.block
        bad = [number for number in range(block + 1, self.count) if not self.block(number).sound]
        if bad:
            raise self._odd(f"block {bad[0]} is damaged")
        self._named = named
        found = self._places()
        if not found:
            raise self._odd(f"what is in its blocks before {block} is not what was moved there")
        if len(found) > 1:  # of these, all but one have copies of records beside the records
            found = [place for place in found if self._is_distinct(place)]
        if len(found) != 1:
            raise self._odd("equal records stand where it stopped, and it cannot be told which of them are copies")
        return found[0]

    def _places(self) -> list[Place]:
        """Those that explain what is in the log."""
        return list({place[:2]: place for place in [*self._ahead(), *self._as_named()]}.values())

    def _as_named(self) -> Iterator[Place]:
        """The place that the file names, if all before it was moved as it says."""
        block, offset, named_image = self._named
        if offset is None:
            if self.is_filled(block, None) and self.ends_with(block, self.live(block)):
                yield self._named
            return
        home = offset // self.size
        images = [named_image, self.raw(block)] if home == block else [self.raw(home)]
        for image in images[: 1 if images[0] == images[-1] else 2]:  # half of the image may not be written
            parsed = self.parse(image, home)
            coming = [record for record in parsed.live if record.offset >= offset]
            if not parsed.sound or not coming or coming[0].offset != offset:
                continue
            moved = self.live(block if home == block else block + 1, offset, (home, image))
            place = Place(block, offset, image)
            if self.is_filled(block, coming[0]) and self.ends_with(block, moved) and self._explains(place):
                yield place
                return

    def _explains(self, place: Place) -> bool:
        """Whether the block to be rewritten is as it was, or will be, or was being written."""
        assert place.offset is not None
        block = place.block
        home, now = place.offset // self.size, self.raw(block)
        filled = next(self.fill(place)).data
        if now == filled or (home == block and now == place.image):
            return True
        if home > block and self.block(block).sound:
            return self.ends_with(block, self.live(block, place.offset))
        same = next((at for at in range(self.size) if now[at] != filled[at]), self.size)
        written = same - same % _SECTOR
        return written > 0 and (home > block or now[written:] == place.image[written:])

    def _ahead(self) -> Iterator[Place]:
        """The places from which blocks that the file counts as rewritten are still to be filled."""
        block, before, _ = self._named
        if before is None and block < self.count:
            return  # the last block is written before the file says that nothing is left
        first = max(self.first, block - _AHEAD)
        window: deque[Record] = deque()
        count = room = 0
        for record in self.live(first, before):
            window.append(record)
            count += 1
            room += len(record.data)
            while room > _AHEAD * self.size:
                room -= len(window.popleft().data)
        for begin in range(block - 1, first - 1, -1):
            own = count - sum(len(self.block(number).live) for number in range(first, begin))
            yield from self._from_block(begin, list(window)[-own:] if own else [], own)

    def _from_block(self, begin: int, last: list[Record], count: int) -> Iterator[Place]:
        """Places in block `begin`: of its `count` records, and those behind it, these are the last that were moved."""
        longest = max((len(record.data) for record in last), default=0)
        newest = self.block(begin - 1).live[-1:] if begin > self.first else []
        room, left = 0, self._named.block - begin
        for number in range(len(last) - 1, -1, -1):
            room += len(last[number].data)
            moved = count - len(last) + number
            if room > left * self.room:
                return
            if room <= (left - 1) * (self.room - longest):
                continue
            if moved and not (newest and number and last[number - 1].data == newest[0].data):
                continue
            offset = last[number].offset
            copies = islice(self.live(begin, self._named.offset), moved)
            if not self.is_filled(begin, last[number]) or not self.ends_with(begin, copies):
                continue
            place = self._reaches(Place(begin, offset, self.raw(offset // self.size)))
            if place is not None:
                yield place

    def _reaches(self, place: Place) -> Place | None:
        """If filling from here comes to the named place: the first place where blocks change."""
        changed: Place | None = None
        block, offset, _ = self._named
        for filled in self.fill(place):
            end, data = self.block(place.block).end, filled.data  # where its live records are the same, it stays
            if changed is None and (end < 0 or self.raw(place.block)[:end] != data[:end] or not is_zero(data[end:])):
                changed = place
            place = filled.following
            if place.block == block:
                # That nothing is left is announced while blocks are not written only if the last one stays as it was.
                fits = place.offset == offset and (offset is not None or filled.stays)
                return (changed or place) if fits else None
        return None

    def _is_distinct(self, place: Place) -> bool:
        """Whether no record is there twice, of those near the named block if they are filled from this place."""
        block = self._named.block
        before = self.live(max(self.first, block - _AHEAD - 1), place.block * self.size)
        records = [record.data for record in before]
        if place.offset is not None:
            for filled in self.fill(place):
                records += [record.data for record in self.parse(filled.data, 0).live]
                if filled.following.block > block:
                    break
        return len(set(records)) == len(records)

    def _load(self) -> Place | None:
        """The place that the file names; None where it is not written whole, so that nothing can have been moved."""
        size = HEAD_SIZE + self.size
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
        if version != _VERSION or len(data) > size:
            raise self._odd(f"expected version 1 and {size:,} bytes, got version {version:,} and {len(data):,} or more")
        self.first, within = divmod(start, self.size)
        if truncate == _MOVING:
            fits = self.first <= block <= offset // self.size < self.count
        else:
            fits = self.first <= truncate + 1 <= self.count
        if within or not fits:
            named = block if truncate == _MOVING else truncate
            raise self._odd(
                f"got byte {start:,}, block {named:,} and the record at {offset:,} of {self.count:,} blocks of "
                f"{self.size:,} bytes"
            )
        return Place(block, offset, data[HEAD_SIZE:]) if truncate == _MOVING else Place(truncate + 1, None)

    def _beginning(self) -> Place | None:
        """With what a compaction of this log begins; None where no record is deleted, or every one."""
        for number in range(self.count):
            if self.block(number).deleted:
                self.first = number
                record = next(self.live(number), None)
                if record is not None:
                    return Place(number, record.offset, self.raw(record.offset // self.size))
                return Place(number, None) if number else None
        return None

    def finish(self, place: Place) -> None:
        """Fill the blocks from here on, and cut off what was moved."""
        for filled in self.fill(place) if place.offset is not None else ():
            if not filled.stays:
                self._save(place)
                self._fs.write(self._fd, filled.data, place.block * self.size)
                self._fs.fsync(self._fd)
            place = filled.following
        self._save(Place(place.block, None))
        self._fs.truncate(self._fd, place.block * self.size)
        self._fs.fsync(self._fd)

    def _encode(self, place: Place) -> bytes:
        start = self.first * self.size
        if place.offset is None:
            return _HEAD.pack(_VERSION, start, place.block - 1, 0, 0) + bytes(self.size)
        return _HEAD.pack(_VERSION, start, _MOVING, place.block, place.offset) + place.image

    def _save(self, place: Place) -> None:
        target = state_path(self._path)
        temporary = filenames.sidecar_path(self._path) / filenames.temporary_name(target.name)
        with Descriptor(self._fs, temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) as fd:
            self._fs.chmod(fd, self._fs.fstat(self._fd).st_mode & 0o7777)  # it holds records
            self._fs.write(fd, self._encode(place), 0)
            self._fs.fsync(fd)
        self._fs.rename(temporary, target)
        self._fs.sync_folder(target.parent)


def finish(fs: FileSystem, path: Path, fd: int, block_size: int, begin: Callable[[], object]) -> None:
    """As the only writer: finish it, and remove its file. `begin` is called before a record is moved.

    Raises LogCorrupt where the file does not fit the log, LogLocked where it is being written: nothing was changed.
    """
    work = Compaction(fs, path, fd, block_size)
    place = work.find()
    if place is not None:
        begin()
        work.finish(place)
    fs.unlink(state_path(path))
    fs.sync_folder(path.parent)
