"""How records are separated in the bytes of a log, for scans, checks and samples.

A record's *offset* is the byte at which its frame begins, its *end* the byte after its frame. Whatever the framing, a
block is what is read and verified at a time. BlockFraming is that of jitdb's own logs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from jitdb.log.blocks.block_format import header_size, is_zero, walk_block
from jitdb.log.blocks.checksum import Room, walk_verified

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.errors import LogCorrupt
    from jitdb.log.blocks.checksum import Bytes, Counts, Ints
    from jitdb.log.codecs.fields.located import RecordBatch


class Blocks(Protocol):
    """The part of a ScanSource that a framing needs."""

    @property
    def block_size(self) -> int: ...

    @property
    def durable_end(self) -> int: ...

    def read_blocks(self, start: int, stop: int, buffer: memoryview | npt.NDArray[np.uint8]) -> int: ...

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]: ...


class LastRecord(NamedTuple):
    """The record that ends at some byte of a log. `is_lost`: it is no longer known what ended there."""

    record: bytes | None  # None: no record ends there, or a deleted one
    offset: int = -1  # -1: no record ends there
    is_lost: bool = False


class ChunkWalker(ABC):
    """Reads chunks of a log, one after the other, and finds the records that begin in them. Not safe for threads.

    buffer: uint8, the chunk's bytes from 0 on, and what its last record has behind them
    room:   what walk() fills: where records begin in the buffer, their lengths, ...
    """

    buffer: Bytes
    room: Room
    behind: int  # bytes of a record's frame behind its own
    is_cut: bool = False  # whether there was no room for all: the next walk of the same chunk gives the others

    def read_many(self, begins: Sequence[int]) -> RecordBatch | None:
        """Read some chunks side by side, each as one record with the bytes of all records that begin in the chunk.

        A chunk whose last record is longer than what is read with it has a negative length. None if the bytes are not
        those that the codec reads, or a checksum must be compared first.
        """
        return None

    @abstractmethod
    def read(self, begin: int, start: int) -> int:
        """Read the chunk that begins at this block boundary; how many bytes it has.

        `start` is where a record begins, or the log ends: in an earlier chunk, or the first one that is wanted of this
        one. Raises what the log's read_blocks raises.
        """

    @abstractmethod
    def walk(self, size: int, sums: Ints) -> Counts:
        """The records of the chunk that was read, and which blocks do not have their checksums: checksum.walk_verified.

        Not all of them where `is_cut` is true then, which it never is of blocks.
        """

    def walks(self, begin: int, start: int) -> Iterator[Counts]:
        """Read a chunk, and walk it to its end, once or more often. No block is held against its checksum.

        Raises as read() does.
        """
        size, nothing = self.read(begin, start), self.room.wrong[:0]
        yield self.walk(size, nothing)
        while self.is_cut:
            yield self.walk(size, nothing)

    def batch(self, low: int, high: int, begin: int) -> RecordBatch:
        """These records as the codec reads them. `begin`: where in the log the first byte of the buffer is."""
        from jitdb.log.codecs.fields.located import RecordBatch  # with numpy

        room = self.room
        starts = room.starts[low:high]
        return RecordBatch(self.buffer, starts, room.lengths[low:high], room.states[low:high], starts + begin)

    def ends(self, low: int, high: int) -> Ints:
        """Where the frames of these records end, in the buffer."""
        return self.room.starts[low:high] + self.room.lengths[low:high] + self.behind


class Framing(ABC):
    """
    before:            bytes of a record's frame before its own bytes
    is_blocked:        no record goes on in the next block
    keeps_malformed:   what the codec cannot read is a record all the same; if not, it counts as a deleted one
    tells_malformed:   those that are left out are told of
    tells_what_came:   of a file that is followed: those that come, a few times
    names_malformed:   and their seqs say which they are
    reads_pages:       a part of the log can be read without what is before it
    is_plain:          a record is a line as the codec reads it, so that a few are found and read without numpy
    """

    before: int
    is_blocked: bool
    keeps_malformed: bool
    tells_malformed: bool = False
    tells_what_came: bool = False
    names_malformed: bool = False
    reads_pages: bool = True
    is_plain: bool = False

    @abstractmethod
    def walker(self, log: Blocks, most: int, stop: int) -> ChunkWalker:
        """For chunks of `most` bytes, of a log that ends at `stop`."""

    @abstractmethod
    def records(self, log: Blocks, block: int, size: int) -> Iterator[tuple[int, bytes]]:
        """The records, and their offsets, that lie within the first `size` bytes of a block; deleted ones left out."""

    @abstractmethod
    def last_record(self, log: Blocks, end: int) -> LastRecord:
        """The record that ends at this byte of the log."""

    @abstractmethod
    def fault_in(self, data: bytes, used: int) -> int | None:
        """Behind which byte of a block, of which `used` bytes are the log's, nothing can be found; mostly None."""


class BlockWalker(ChunkWalker):
    """Reads a chunk of blocks, verifies them, and walks their records."""

    behind = 0

    def __init__(self, log: Blocks, most: int, stop: int) -> None:
        import numpy as np

        self._log, self._stop = log, stop
        self._size = size = log.block_size
        self._header = header_size(size)
        self.buffer = np.empty(most, np.uint8)
        self.room = Room.of(most, size, self._header)

    def read(self, begin: int, start: int) -> int:
        buffer = self.buffer
        return min(self._log.read_blocks(begin, begin + len(buffer), buffer), self._stop - begin)

    def walk(self, size: int, sums: Ints) -> Counts:
        return walk_verified(self.buffer, size, self._size, self._header, sums, self.room)


class BlockFraming(Framing):
    """A header, which is the record's length; no record goes on in the next block (block_format.walk_block)."""

    is_blocked = True
    keeps_malformed = True

    def __init__(self, block_size: int) -> None:
        self._size = block_size
        self.before = header_size(block_size)

    def walker(self, log: Blocks, most: int, stop: int) -> ChunkWalker:

        return BlockWalker(log, most, stop)

    def records(self, log: Blocks, block: int, size: int) -> Iterator[tuple[int, bytes]]:
        start, buffer = block * self._size, memoryview(bytearray(size))
        data = bytes(buffer[: log.read_blocks(start, start + size, buffer)])
        walk = walk_block(data, len(data), self._size)
        for position, record in zip(walk.positions, walk.records(data, self.before), strict=True):
            if not is_zero(record):
                yield start + position, record

    def last_record(self, log: Blocks, end: int) -> LastRecord:
        block, inside = divmod(end - 1, self._size)
        inside += 1
        data, fault = log.second_look(block)
        if fault is not None:
            return LastRecord(None, is_lost=True)
        if len(data) < inside:
            return LastRecord(None)
        walk, header = walk_block(data, len(data), self._size), self.before
        following = bisect_left(walk.positions, inside)  # the first record that does not begin before
        position = walk.positions[following - 1] if following else 0
        if following and position + header + walk.lengths[following - 1] == inside:
            record = data[position + header : inside]
            return LastRecord(None if is_zero(record) else record, block * self._size + position)
        return LastRecord(None, is_lost=not walk.positions or (walk.fault and walk.end < inside))

    def fault_in(self, data: bytes, used: int) -> int | None:
        walk = walk_block(data, used, self._size)
        return walk.end if walk.fault else None
