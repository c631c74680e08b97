"""Records on their way into the file: their rules, groups as they were appended, and groups packed into blocks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jitdb.errors import InvalidRecord, LogWriteFailed, RecordTooLarge
from jitdb.log.blocks.block_format import header_size, headers, is_zero, pack, place, place_array, round_up
from jitdb.log.blocks.checksum import crc32
from jitdb.log.codecs.base import Buffer
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.opening.recovery import Tail

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from numpy.typing import NDArray


_ALL_ZERO: Final = "a record of nothing but zero bytes cannot be stored: that is how a deleted record looks"
_NUMPY_FROM: Final = 512  # records; for fewer, plain loops are faster than numpy


class RecordRules:
    """Which records a log can store: not empty, not all zeros, at most `largest` bytes."""

    def __init__(self, path: Path, largest: int) -> None:
        self._path = path
        self.largest = largest

    def valid(self, records: list[Any]) -> tuple[list[bytes], list[int] | npt.NDArray[np.int64]]:
        """The records as bytes, and their lengths, an array of many. Raises InvalidRecord, RecordTooLarge."""
        valid: list[bytes] = records
        if set(map(type, valid)) - {bytes}:
            valid = [self._bytes(record) for record in valid]
        lengths: list[int] | npt.NDArray[np.int64] = list(map(len, valid))
        if len(valid) >= _NUMPY_FROM:
            import numpy as np

            lengths = np.array(lengths, np.int64)
        if valid:
            self._check_lengths(lengths)
        if 0 in bytes(map(itemgetter(0), valid)) and any(map(is_zero, valid)):
            raise InvalidRecord(_ALL_ZERO, path=self._path)
        return valid, lengths

    def check_encoded(self, data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> None:
        """As valid(), of records one behind the other."""
        if not len(lengths):
            return
        self._check_lengths(lengths)
        if int(lengths.sum()) > len(data):
            raise InvalidRecord(f"{int(lengths.sum()):,} bytes of records are not in {len(data):,}", path=self._path)
        starts = lengths.cumsum() - lengths
        for number in (data[starts] == 0).nonzero()[0].tolist():
            if not data[starts[number] : starts[number] + lengths[number]].any():
                raise InvalidRecord(_ALL_ZERO, path=self._path)

    def _check_lengths(self, lengths: list[int] | npt.NDArray[np.int64]) -> None:
        if isinstance(lengths, list):
            shortest, longest = min(lengths), max(lengths)
        else:
            shortest, longest = int(lengths.min()), int(lengths.max())
        if shortest <= 0:
            raise InvalidRecord("an empty record cannot be stored: its length, 0, ends a block", path=self._path)
        if longest > self.largest:
            raise RecordTooLarge(path=self._path, size=longest, limit=self.largest)

    def _bytes(self, record: Any) -> bytes:
        if isinstance(record, (bytes, bytearray, memoryview)):
            return bytes(record)
        raise InvalidRecord(f"a record is bytes, not {type(record).__name__}", path=self._path)


PIECE: Final = 4 << 20  # bytes copied at a time


class PackedBlocks:
    """Bytes for the file, from the end of the log on, and what the sidecar says about them."""

    def __init__(self, tail: Tail, block_size: int) -> None:
        self.tail = tail  # of the log with these bytes, once finish() was called
        self.start = tail.end
        self.size = 0
        self.parts: list[Buffer] = []
        self.sealed: list[int] = []  # CRCs of the blocks that are complete, the one that holds `start` first
        self._position = tail.end
        self._block_size = block_size
        self._block_crc = tail.block_crc
        # The records added last, of one block, not yet in the tail: where they end, lengths, the newest one.
        self._last: tuple[int, Iterable[int], Buffer] | None = None
        self._fresh = False  # whether they began their block

    def seal(self) -> None:
        """The rest of the block is zeros."""
        if self._position < self._block_size:
            self.finish()  # the chain of the first block is kept
        padding = bytes(round_up(self._position, self._block_size) - self._position)
        self._put(padding)
        self.sealed.append(crc32(padding, self._block_crc))

    def add(self, records: list[bytes]) -> None:
        lengths = list(map(len, records))
        self.add_framed(pack(records, lengths, self._block_size), lengths, records[-1])

    def add_framed(self, data: Buffer, lengths: Iterable[int], newest: Buffer) -> None:
        """Records of one block, with their headers; the lengths of all, and the last one."""
        self._fresh = self._position % self._block_size == 0
        self._block_crc = crc32(data, 0 if self._fresh else self._block_crc)
        self._put(data)
        self._last = self._position, lengths, newest

    def finish(self) -> None:
        """Bring the tail up to date; the chains of lengths of blocks in between are not needed."""
        if self._last is not None:
            end, lengths, newest = self._last
            heads = b"".join(headers(lengths, self._block_size))
            chain = crc32(heads, 0 if self._fresh else self.tail.tail_chain)
            first = chain if end <= self._block_size else self.tail.first_chain
            self.tail = Tail(end, len(newest), crc32(newest), False, first, chain, self._block_crc)
            self._last = None

    def _put(self, data: Buffer) -> None:
        self.parts.append(data)
        self.size += len(data)
        self._position += len(data)


class Pending:
    """A group of records that follow each other in the log, from the end of what is written.

    `breaks` are the numbers of the records that begin a new block. The writer adds records and searches them under its
    lock. Once handed over to be written, the group does not change any more.
    """

    __slots__ = ("_at", "_block_size", "_broken", "_found", "_header", "breaks", "done", "records", "start")

    def __init__(self, start: int, block_size: int) -> None:
        self.start = start  # the end of the log before this group
        self.records: list[bytes] = []
        self.breaks: list[int] = []
        self.done = 0  # runs that are in the file already
        self._block_size = block_size
        self._header = header_size(block_size)
        self._found: dict[int, bytes] = {}  # by offset, as far as it was searched
        self._at = start
        self._broken = 0  # breaks passed in the search

    def end(self) -> int:
        self.find(-1)
        return self._at

    def runs(self) -> list[tuple[int, int]]:
        """First and last (exclusive) numbers of the records that share a block, in order; the first may be empty."""
        return list(zip([0, *self.breaks], [*self.breaks, len(self.records)], strict=True))

    def put(self, blocks: PackedBlocks, first: int, last: int) -> None:
        blocks.add(self.records[first:last])

    def find(self, offset: int) -> bytes | None:
        """The record at this offset, if it is one of these. All searches together look at each record once."""
        for number in range(len(self._found), len(self.records)):
            if self._broken < len(self.breaks) and self.breaks[self._broken] == number:
                self._at = round_up(self._at, self._block_size)
                self._broken += 1
            record = self.records[number]
            self._found[self._at] = record
            self._at += self._header + len(record)
        return self._found.get(offset)


class EncodedGroup:
    """Like a Pending, of records that were encoded at once, one after the other in `data`; no more can be added."""

    def __init__(
        self, data: NDArray[np.uint8], lengths: NDArray[np.int64], end: int, block_size: int, seals: bool
    ) -> None:
        """`end` is where the next record goes, if it fits the block; `seals`: the group begins a new block."""
        import numpy as np

        from jitdb.log.blocks.walk_kernels import frame

        self.done = 0
        self.offsets, breaks, self.end = place_array(lengths, end, block_size)
        self._breaks = [0, *breaks] if seals else breaks
        self._start = end
        self._header = header_size(block_size)
        self._lengths = lengths.copy()
        self._framed = np.empty(self.end - end, np.uint8)
        frame(data, lengths, self.offsets, end, self._header, self._framed)

    def runs(self) -> list[tuple[int, int]]:
        return list(zip([0, *self._breaks], [*self._breaks, len(self.offsets)], strict=True))

    def put(self, blocks: PackedBlocks, first: int, last: int) -> None:
        begin = int(self.offsets[first]) - self._start
        newest = int(self.offsets[last - 1]) + self._header - self._start
        stop = newest + int(self._lengths[last - 1])
        data = self._framed.data
        blocks.add_framed(data[begin:stop], self._lengths[first:last], data[newest:stop])

    def find(self, offset: int) -> bytes | None:
        number = int(self.offsets.searchsorted(offset))
        if number == len(self.offsets) or self.offsets[number] != offset:
            return None
        begin = offset + self._header - self._start
        return bytes(self._framed.data[begin : begin + int(self._lengths[number])])


class ScratchBlocks(PackedBlocks):
    """Records packed into blocks in a scratch file, from which they are copied to the log: see Log.append_whole.

    One DATA entry of the journal covers all of them, so their CRC must be known before the first one is written.
    """

    def __init__(self, fs: FileSystem, scratch: Path, tail: Tail, end: int, block_size: int) -> None:
        """`end` is where the next record goes, perhaps in a later block than `tail`. Raises LogWriteFailed."""
        super().__init__(tail, block_size)
        self._fs, self._scratch, self._end = fs, scratch, end
        self.crc = 0  # of all bytes
        self._copied = 0  # of those that were copied so far
        try:
            self._file = Descriptor(fs, scratch, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as error:
            raise self._failed(error) from error
        if end > tail.end:
            self.seal()

    def add_many(self, records: list[bytes], lengths: list[int] | NDArray[np.int64]) -> None:
        """Pack these records behind the others. Raises LogWriteFailed if they cannot be written to the scratch file."""
        placed = place(lengths, self._end, self._block_size)
        first = 0
        for stop in [*placed.breaks, len(records)]:
            if stop > first:
                self.add(records[first:stop])
            if stop < len(records):
                self.seal()
            first = stop
        self.finish()  # the next records may go on in this block
        self._end = placed.end
        data = b"".join(self.parts)
        self.parts.clear()
        self.crc = crc32(data, self.crc)
        try:
            self._fs.write(self._file.number, data, self.size - len(data))
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> LogWriteFailed:
        return LogWriteFailed(
            f"packing the records failed ({error.strerror or error}): the log is as it was",
            path=self._scratch,
            remedy="a file of the size of all records must fit there",
        )

    def copy(self, fd: int, start: int, stop: int) -> None:
        """Write the bytes of [start, stop), positions in the log, to the log's file: all of them once, in order.

        Raises LogWriteFailed, before the last of them are written, where they are not those that were packed.
        """
        begin, end = self.start, self.start + self.size
        for at in range(start, stop, PIECE):
            size = min(PIECE, stop - at)
            data = self._fs.read(self._file.number, size, at - begin)
            self._copied = crc32(data, self._copied)
            if at + size == end and self._copied != self.crc:
                raise LogWriteFailed(
                    f"expected to read back {self.size:,} bytes with CRC {self.crc:08x}, got {self._copied:08x}: none "
                    f"of these records is in the log",
                    path=self._scratch,
                    remedy="open it again to go on, and pack them on another disk",
                )
            self._fs.write(fd, data, at)

    def close(self) -> None:
        self._file.close()
