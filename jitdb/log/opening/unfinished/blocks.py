"""The blocks of a log that async-append-only-log was compacting (layout.py): as they are, and will be."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, tee
from typing import Final, NamedTuple

from jitdb.log.blocks.packing import is_zero, walk_block
from jitdb.log.io.osfile import FileSystem

_HEADER: Final = 2  # bytes before each record
_CACHED: Final = 64  # blocks whose records are kept in memory


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


class Blocks:
    """Reads them, block by block; those from `first` on are rewritten."""

    def __init__(self, fs: FileSystem, fd: int, block_size: int) -> None:
        self._fs = fs
        self._fd = fd
        self.size = block_size
        self.room = block_size - _HEADER  # for records: behind them stands a zero header
        self.count = fs.size(fd) // block_size
        self.first = 0
        self.block = lru_cache(_CACHED)(lambda number: self.parse(self.raw(number), number))

    def raw(self, number: int) -> bytes:
        """The bytes of a block."""
        return self._fs.read(self._fd, self.size, number * self.size)

    def parse(self, data: bytes, number: int) -> Block:
        """What stands in these bytes, which are those of a block, or will be."""
        walk = walk_block(data, len(data), self.size)
        records = [data[at : at + _HEADER + length] for at, length in zip(walk.positions, walk.lengths, strict=True)]
        begin = number * self.size
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

    def holds(self, number: int, data: bytes) -> bool:
        """Whether the live records of a block are these, without a gap."""
        end = self.block(number).end
        return end >= 0 and self.raw(number)[:end] == data[:end] and is_zero(data[end:])

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
        moved, again = tee(moved)
        count = sum(1 for _ in again)
        left = count
        number = block
        while left > 0:
            number -= 1
            if number < self.first:
                return False
            left -= len(self.block(number).live)
        copies = islice(self.live(number, block * self.size), -left, None) if number < block else iter(())
        return all(copy.data == record.data for copy, record in zip(copies, moved, strict=True))
