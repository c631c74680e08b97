"""What streams and batches share: bounds, verified blocks, ordinals, warnings about damage."""

from __future__ import annotations

import operator
import sys
import threading
import warnings
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pyroaring import BitMap64

from jitdb.common.arguments import whole_number
from jitdb.common.forking import fork_safe
from jitdb.common.words import shown
from jitdb.errors import DamageWarning, InvalidArgument, InvalidOffset, LogCorrupt, Remedy, outside
from jitdb.log.blocks.block_format import header_size, walk_block
from jitdb.log.blocks.checksum import Bytes, Ints
from jitdb.log.blocks.scanner import Walked, Walker, scan

if TYPE_CHECKING:
    from jitdb.log.reading.record_reader import RecordReader

PIECE: Final = 1 << 20  # bytes read at once in a long scan: few calls, and the piece stays in the cache


class OffsetRange(NamedTuple):
    """Offsets to read: start <= offset < stop."""

    start: int
    stop: int


def offset_range(end: int, gt: int | None, gte: int | None, lt: int | None, lte: int | None) -> OffsetRange:
    """What all four ask for together, in a log that ends at `end`. Raises InvalidOffset."""
    start = max(0, _bound("gte", gte, 0), _bound("gt", gt, -1) + 1)
    stop = min(end, _bound("lt", lt, end), _bound("lte", lte, end - 1) + 1)
    return OffsetRange(start, stop)


def whole_limit(limit: int | None) -> int | None:
    """The limit as an integer; None for all records. Raises InvalidArgument."""
    if limit is None:
        return None
    return min(whole_number("limit is a number of records", limit, 0, InvalidArgument), sys.maxsize)


def _bound(name: str, value: Any, without: int) -> int:
    if value is None:
        return without
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if found is None:
        raise InvalidOffset(f"{name} is an offset in the log, an integer, not {shown(value)}")
    return found


class BlockReader:
    """One opened log, to be read in order. Safe for threads."""

    def __init__(self, reader: RecordReader) -> None:
        self.reader = reader
        self.opened = opened = reader.opened
        self.extent = reader.extent
        self.block_size = opened.meta.block_size
        self.header = header_size(self.block_size)
        self._seqs = array("q", [0])  # seq of the first record of each block, as far as they were counted
        self._counting = fork_safe(threading.Lock())
        self._verifier = reader.verifier
        self._reported: set[int] = set()

    def hidden(self) -> BitMap64:
        """Offsets of records that are deleted, though their bytes are still there."""
        return self.reader.hidden.copy()

    # What is damaged

    def walk(self, walker: Walker, begin: int, data: Bytes, size: int) -> tuple[Walked, list[int]]:
        """The records of `data[:size]`, read at `begin`, and the numbers of the damaged blocks in it.

        The records of these are included as far as they are found, because seqs count them. A block that is read again
        replaces its bytes in `data`.
        """
        first, count = begin // self.block_size, -(-size // self.block_size)
        walked = walker.walk(data, size, self._verifier.sums(first, count))
        damaged: list[int] = []
        if walked.wrong:
            damaged = self._look_again(begin, data.data[:size], walked.wrong)
            walked = walker.walk(data, size)
        if len(walked.faults):
            self._report((walked.faults[~np.isin(walked.faults // self.block_size, damaged)] + begin).tolist())
        return walked, damaged

    def proven(self) -> int:
        """How many blocks are proven to be what was written, once all were walked."""
        return self._verifier.proven() - len({offset // self.block_size for offset in self._reported})

    def _look_again(self, begin: int, data: memoryview, wrong: Iterable[int]) -> list[int]:
        """Read these blocks again, into `data`; warn of the damaged ones, and give their numbers."""
        damaged = []
        for number in wrong:
            at = number * self.block_size
            found, fault = self._verifier.second_look(begin // self.block_size + number)
            size = min(len(found), len(data) - at)
            data[at : at + size] = found[:size]
            if fault is not None:
                damaged.append(number)
                self._tell(fault, f"{fault.reason}. Its records are left out", fault.remedy)
        return damaged

    def _report(self, faults: Iterable[int]) -> None:
        """Warn, once, of each offset from which a block cannot be read."""
        for offset in faults:
            block = offset // self.block_size
            text = f"block {block} is damaged at offset {offset:,}: the records behind it in this block are passed over"
            fault = LogCorrupt(text, path=self.opened.path, offset=offset, block=block)
            self._tell(fault, text)

    def _tell(self, fault: LogCorrupt, text: str, remedy: Remedy | None = None) -> None:
        assert fault.offset is not None
        if fault.offset not in self._reported:
            warnings.warn(DamageWarning(text, [fault], path=self.opened.path, remedy=remedy), stacklevel=outside())
            self._reported.add(fault.offset)  # last: if warnings are errors, each read raises it

    # How many records

    def first_seq(self, block: int) -> int:
        """The seq of the block's first record: the number of records before it, which are counted once."""
        if block >= len(self._seqs):
            with self._counting:
                self._count_to(block)
        return self._seqs[block]

    def rank(self, offset: int) -> int:
        """How many records begin before this offset."""
        block, within = divmod(offset, self.block_size)
        data = self.opened.read(min(self.block_size, self.extent.durable_end - offset + within), offset - within)
        return self.first_seq(block) + bisect_left(walk_block(data, len(data), self.block_size).positions, within)

    def offset_at(self, seq: int) -> int:
        """Where the record with this seq begins; the log's end if there is none."""
        end = self.extent.durable_end
        self.first_seq(max(0, end - 1) // self.block_size)
        block = bisect_right(self._seqs, seq) - 1
        begin = block * self.block_size
        data = self.opened.read(min(self.block_size, end - begin), begin)
        positions = walk_block(data, len(data), self.block_size).positions
        number = seq - self._seqs[block]
        return begin + positions[number] if number < len(positions) else end

    def learn(self, block: int, starts: Ints, size: int, seq: int) -> None:
        """Note the first seq of the block after each whole one, as a scan that passes has them anyway: a run of `size`
        bytes from `block` on has records with these `starts`, the first of them with this seq.
        """
        with self._counting:
            if block < len(self._seqs) <= block + size // self.block_size:
                ends = np.arange(self.block_size, size + 1, self.block_size)
                self._seqs.extend((starts.searchsorted(ends) + seq).tolist()[len(self._seqs) - block - 1 :])

    def _count_to(self, block: int) -> None:
        first = len(self._seqs) - 1
        if block <= first:
            return
        begin, stop = first * self.block_size, block * self.block_size
        for piece in scan(self.opened.read_into, begin, stop, self.block_size, size=PIECE):
            self._seqs.extend((piece.bounds[1:] + self._seqs[-1]).tolist())
