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
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice, tee
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.errors import CompactionUnfinished, LogCorrupt, LogLocked
from jitdb.log.blocks.packing import is_zero, walk_block
from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor, FileSystem

# As async-append-only-log 4.3 writes them.
VERSION: Final = 1
_HEAD: Final = struct.Struct("<5I")
_MOVING: Final = 0xFFFFFFFF
_LARGEST_BLOCK: Final = 1 << 16
_HEADER: Final = 2  # bytes before each record

_AHEAD: Final = 32  # blocks that the state may be ahead of the log; seen: 2
_CACHED: Final = 64  # blocks whose records are kept in memory
_SECTOR: Final = 512  # bytes of which a write that was cut short leaves all or none


class State(NamedTuple):
    """What the file says."""

    start: int
    truncate: int | None
    block: int
    offset: int
    image: bytes


class Record(NamedTuple):
    """A live one."""

    offset: int
    data: bytes  # with its header


class Block(NamedTuple):
    """The records of one block."""

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
    """A block as it will be."""

    data: bytes
    stays: bool  # its records are where they were
    following: Place


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
    work = _Unfinished(fs, path, fd, block_size)
    place = work.find()
    if place is not None:
        begin()
        work.truncate(work.rewrite(place))
    fs.unlink(state_path(path))
    fs.sync_folder(path.parent)


class _Unfinished:
    def __init__(self, fs: FileSystem, path: Path, fd: int, block_size: int) -> None:
        self._fs = fs
        self._path = path
        self._fd = fd
        self._size = block_size
        self._room = block_size - _HEADER  # for records: behind them stands a zero header
        size = fs.size(fd)
        if block_size > _LARGEST_BLOCK or size % block_size or size > _MOVING:
            raise self._odd(
                f"expected less than 4 GiB in whole blocks of {block_size:,} bytes (at most 65,536), got {size:,}"
            )
        self._blocks = size // block_size
        self._first = 0  # the first block that is rewritten
        self._block = lru_cache(_CACHED)(lambda number: self._parse(self._raw(number), number))

    # --- what is there ---------------------------------------------------------------------------------------------

    def _odd(self, what: str) -> LogCorrupt:
        return LogCorrupt(
            f"it does not fit the log {self._path.name} as it is: {what}. Nothing was changed",
            remedy="if it is of another log, or async-append-only-log did not write it, move it away; else bring back "
            "the log as it was",
            path=state_path(self._path),
        )

    def _raw(self, number: int) -> bytes:
        return self._fs.read(self._fd, self._size, number * self._size)

    def _parse(self, data: bytes, number: int) -> Block:
        walk = walk_block(data, len(data), self._size)
        records = [data[at : at + _HEADER + length] for at, length in zip(walk.positions, walk.lengths, strict=True)]
        begin = number * self._size
        live = [
            Record(begin + at, record)
            for at, record in zip(walk.positions, records, strict=True)
            if not is_zero(record[_HEADER:])
        ]
        sound = not walk.fault and is_zero(data[walk.end :])
        end = sum(len(record.data) for record in live)
        if not live or live[-1].offset - begin + len(live[-1].data) != end:
            end = -1
        return Block(live, len(live) < max(1, len(records)), sound, end)

    def _live(self, first: int, before: int | None = None, image: tuple[int, bytes] | None = None) -> Iterator[Record]:
        """The live records from block `first` to the offset `before`; one block may be as an image has it."""
        for number in range(first, self._blocks if before is None else before // self._size + 1):
            block = self._parse(image[1], number) if image and image[0] == number else self._block(number)
            for record in block.live:
                if before is not None and record.offset >= before:
                    return
                yield record

    def _load(self) -> State | None:
        """What the file says; None where it is not written whole, so that nothing can have been moved."""
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
            if data and (first is None or not self._encode(self._state(first)).startswith(data)):
                raise self._odd(f"expected {size:,} bytes, got {len(data):,}")
            return None
        version, start, truncate, block, offset = _HEAD.unpack_from(data)
        if version != VERSION or len(data) > size:
            raise self._odd(f"expected version 1 and {size:,} bytes, got version {version:,} and {len(data):,} or more")
        self._first, within = divmod(start, self._size)
        if truncate == _MOVING:
            fits = self._first <= block <= offset // self._size < self._blocks
        else:
            fits = self._first <= truncate + 1 <= self._blocks
        if within or not fits:
            named = block if truncate == _MOVING else truncate
            raise self._odd(
                f"got byte {start:,}, block {named:,} and the record at {offset:,} of {self._blocks:,} blocks of "
                f"{self._size:,} bytes"
            )
        return State(start, None if truncate == _MOVING else truncate, block, offset, data[_HEAD.size :])

    def _beginning(self) -> Place | None:
        """With what a compaction of this log begins; None where no record is deleted, or every one."""
        for number in range(self._blocks):
            if self._block(number).deleted:
                self._first = number
                record = next(self._live(number), None)
                if record is not None:
                    return Place(number, record.offset, self._raw(record.offset // self._size))
                return Place(number, None) if number else None
        return None

    # --- where to go on --------------------------------------------------------------------------------------------

    def find(self) -> Place | None:
        """Where to go on; None where nothing was begun and there is nothing to do. Raises LogCorrupt, LogLocked."""
        state = self._load()
        if state is None:
            return self._beginning()
        block = state.block if state.truncate is None else state.truncate + 1
        bad = [number for number in range(block + 1, self._blocks) if not self._block(number).sound]
        if bad:
            raise self._odd(f"block {bad[0]} is damaged")
        found = [*self._ahead(state, block), *self._as_said(state, block)]
        places = list({place[:2]: place for place in found}.values())
        if not places:
            raise self._odd(f"what is in its blocks before {block} is not what was moved there")
        if len(places) > 1:  # of these, all but one have copies of records beside the records
            places = [place for place in places if self._is_distinct(place, block)]
        if len(places) != 1:
            raise self._odd("equal records stand where it stopped, and it cannot be told which of them are copies")
        return places[0]

    def _as_said(self, state: State, block: int) -> Iterator[Place]:
        """The place that the state names, if all before it was moved as it says."""
        if state.truncate is not None:
            if self._is_filled(block, None) and self._ends_with(block, self._live(block)):
                yield Place(block, None)
            return
        home = state.offset // self._size
        images = [state.image, self._raw(block)] if home == block else [self._raw(home)]
        for image in images[: 1 if images[0] == images[-1] else 2]:  # half of the image may not be written
            parsed = self._parse(image, home)
            coming = [record for record in parsed.live if record.offset >= state.offset]
            if not parsed.sound or not coming or coming[0].offset != state.offset:
                continue
            moved = self._live(block if home == block else block + 1, state.offset, (home, image))
            place = Place(block, state.offset, image)
            if self._is_filled(block, coming[0]) and self._ends_with(block, moved) and self._explains(place):
                yield place
                return

    def _is_filled(self, block: int, following: Record | None) -> bool:
        """Whether the rewritten blocks before this one hold live records without a gap, as many as fit.

        Behind them deleted ones may stay: a block whose live records stay where they are is not written.
        """
        numbers = range(self._first, block)
        if any(self._block(number).end < 0 or not self._block(number).sound for number in numbers):
            return False
        if following is None:
            return True  # of a compaction that found nothing to do, all are as they were: perhaps not full
        firsts = [*(self._block(number).live[0] for number in numbers[1:]), following]
        return all(
            self._block(number).end + len(record.data) > self._room
            for number, record in zip(numbers, firsts, strict=False)
        )

    def _ends_with(self, block: int, moved: Iterator[Record]) -> bool:
        """Whether the records before this block end with copies of all of these."""
        moved, again = tee(moved)
        count = sum(1 for _ in again)
        left = count
        number = block
        while left > 0:
            number -= 1
            if number < self._first:
                return False
            left -= len(self._block(number).live)
        copies = islice(self._live(number, block * self._size), -left, None) if number < block else iter(())
        return all(copy.data == record.data for copy, record in zip(copies, moved, strict=True))

    def _explains(self, place: Place) -> bool:
        """Whether the block to be rewritten is as it was, or will be, or was being written."""
        assert place.offset is not None
        block, now = place.block, self._raw(place.block)
        home = place.offset // self._size
        filled = next(self._fill(place)).data
        if now == filled or (home == block and now == place.image):
            return True
        if home > block and self._block(block).sound:
            return self._ends_with(block, self._live(block, place.offset))
        same = next((at for at in range(self._size) if now[at] != filled[at]), self._size)
        written = same - same % _SECTOR
        return written > 0 and (home > block or now[written:] == place.image[written:])

    def _ahead(self, state: State, block: int) -> Iterator[Place]:
        """The places from which blocks that the state counts as rewritten are still to be filled."""
        before = state.offset if state.truncate is None else None
        if before is None and block < self._blocks:
            return  # the last block is written before the state says that nothing is left
        first = max(self._first, block - _AHEAD)
        window: deque[Record] = deque()
        count = room = 0
        for record in self._live(first, before):
            window.append(record)
            count += 1
            room += len(record.data)
            while room > _AHEAD * self._size:
                room -= len(window.popleft().data)
        for begin in range(block - 1, first - 1, -1):
            own = count - sum(len(self._block(number).live) for number in range(first, begin))
            yield from self._from_block(begin, block, before, list(window)[-own:] if own else [], own)

    def _from_block(
        self, begin: int, block: int, before: int | None, last: list[Record], count: int
    ) -> Iterator[Place]:
        """Places in block `begin`: of its `count` records and those behind it these are the last before `before`."""
        longest = max((len(record.data) for record in last), default=0)
        newest = self._block(begin - 1).live[-1:] if begin > self._first else []
        room, blocks = 0, block - begin
        for number in range(len(last) - 1, -1, -1):
            room += len(last[number].data)
            moved = count - len(last) + number
            if room > blocks * self._room:
                return
            if room <= (blocks - 1) * (self._room - longest):
                continue
            if moved and not (newest and number and last[number - 1].data == newest[0].data):
                continue
            offset = last[number].offset
            copies = islice(self._live(begin, before), moved)
            if not self._is_filled(begin, last[number]) or not self._ends_with(begin, copies):
                continue
            place = self._reaches(Place(begin, offset, self._raw(offset // self._size)), block, before)
            if place is not None:
                yield place

    def _reaches(self, place: Place, block: int, offset: int | None) -> Place | None:
        """If filling from here comes to the record at `offset` with this block: the first place where blocks change."""
        changed: Place | None = None
        for filled in self._fill(place):
            if changed is None and not self._holds(place.block, filled.data):
                changed = place
            place = filled.following
            if place.block == block:
                # That nothing is left is announced while blocks are not written only if the last one stays as it was.
                fits = place.offset == offset and (offset is not None or filled.stays)
                return (changed or place) if fits else None
        return None

    def _holds(self, number: int, data: bytes) -> bool:
        """Whether the live records of a block are these, without a gap."""
        end = self._block(number).end
        return end >= 0 and self._raw(number)[:end] == data[:end] and is_zero(data[end:])

    def _is_distinct(self, place: Place, block: int) -> bool:
        """Whether no record is there twice, of those shortly before this block if they are filled from this place."""
        records = [record.data for record in self._live(max(self._first, block - _AHEAD - 1), place.block * self._size)]
        if place.offset is not None:
            for filled in self._fill(place):
                records += [record.data for record in self._parse(filled.data, 0).live]
                if filled.following.block > block:
                    break
        return len(set(records)) == len(records)

    def _fill(self, place: Place) -> Iterator[Filled]:
        """Each block as it will be."""
        assert place.offset is not None
        block, data, stays = place.block, bytearray(), True
        for number in range(place.offset // self._size, self._blocks):
            image = place.image if number == place.offset // self._size else self._raw(number)
            for record in self._parse(image, number).live:
                if record.offset < place.offset:
                    continue
                if len(data) + len(record.data) > self._room:
                    yield Filled(bytes(data.ljust(self._size, b"\0")), stays, Place(block + 1, record.offset, image))
                    block, data, stays = block + 1, bytearray(), True
                stays = stays and record.offset == block * self._size + len(data)
                data += record.data
        yield Filled(bytes(data.ljust(self._size, b"\0")), stays, Place(block + 1, None))

    # --- going on --------------------------------------------------------------------------------------------------

    def rewrite(self, place: Place) -> int:
        """Fill the blocks from here on; the number of those that stay."""
        if place.offset is None:
            return place.block
        for filled in self._fill(place):
            if not filled.stays:
                self._save(self._state(place))
                self._fs.write(self._fd, filled.data, place.block * self._size)
                self._fs.fsync(self._fd)
            place = filled.following
        return place.block

    def truncate(self, blocks: int) -> None:
        """Cut off what was moved."""
        self._save(self._state(Place(blocks, None)))
        self._fs.truncate(self._fd, blocks * self._size)
        self._fs.fsync(self._fd)

    def _state(self, place: Place) -> State:
        if place.offset is None:
            return State(self._first * self._size, place.block - 1, 0, 0, bytes(self._size))
        return State(self._first * self._size, None, place.block, place.offset, place.image)

    @staticmethod
    def _encode(state: State) -> bytes:
        truncate = _MOVING if state.truncate is None else state.truncate
        return _HEAD.pack(VERSION, state.start, truncate, state.block, state.offset) + state.image

    def _save(self, state: State) -> None:
        """Say durably, at once, how far it came."""
        target = state_path(self._path)
        temporary = filenames.sidecar_path(self._path) / filenames.temporary_name(target.name)
        with Descriptor(self._fs, temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) as fd:
            self._fs.chmod(fd, self._fs.fstat(self._fd).st_mode & 0o7777)  # it holds records
            self._fs.write(fd, self._encode(state), 0)
            self._fs.fsync(fd)
        self._fs.rename(temporary, target)
        self._fs.sync_folder(target.parent)
