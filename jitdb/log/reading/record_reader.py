"""Records by offset, from verified blocks.

When a record of a block is first read, the block's checksum is verified and its chain of lengths walked, which gives
the offsets at which records begin. After that a record costs one membership test and one read.

The Verifier decides what is damage, here and in scans. A writer that deletes a record changes the bytes, then the
checksum, so a reader in between sees two that do not agree. The journal of deletions announces the deletion before, and
says when it is done. So a wrong checksum is damage only if no deletion in the block was under way or began while the
block and its entry were read.
"""

from __future__ import annotations

import operator
import threading
from array import array
from collections.abc import Callable, Iterator
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from pyroaring import BitMap, BitMap64

from jitdb.common.forking import fork_safe
from jitdb.common.words import shown
from jitdb.errors import InvalidOffset, LogCorrupt, RecordDeleted, Remedy
from jitdb.log.blocks.block_format import Walk, header_reader, header_size, is_zero, walk_block
from jitdb.log.blocks.checksum import DAMAGED, UNKNOWN, crc32
from jitdb.log.io import filenames
from jitdb.log.io.osfile import has_writer
from jitdb.log.opening.recovery import stamp_of
from jitdb.log.reading.extent import Extent
from jitdb.log.sidecar import journal
from jitdb.log.sidecar.checksums import Entry, decode_entries, fits

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from numpy.typing import NDArray

    from jitdb.log.opening.opened import Opened


_RESTORE: Final = Remedy(
    *(
        f"restore these bytes from a copy of the log, or let {repair} restore what can be restored: it keeps the "
        f"damaged bytes too"
        for repair in ("repair()", "jitdb repair")
    )
)


class Verifier:
    """Verifies the blocks of one opened log. Safe for threads."""

    def __init__(self, opened: Opened, extent: Extent) -> None:
        self._opened = opened
        self._extent = extent
        self._block_size = opened.meta.block_size
        self.changed: set[int] = set()  # blocks that do not fit, because another program changed them

    def proven(self) -> int:
        """The number of blocks with a checksum that proves them, if they fit."""
        return sum(self.is_proof(block) for block in range(self._before(self._extent.durable_end)))

    def is_proof(self, block: int) -> bool:
        """Whether the block has a checksum that proves it, if it fits."""
        entry = self.entry(block)
        return entry is not None and entry.is_proof

    def settled(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """As sums(), without checksums from before another program changed the log: a block may differ from these."""
        sums = self.sums(first, count)
        for number in (sums >= 0).nonzero()[0].tolist():
            entry = self.entry(first + number)
            if entry is None or entry.is_old:
                sums[number] = UNKNOWN
        return sums

    def entry(self, block: int) -> Entry | None:
        """The checksum of the block; None without one, or where another program changed the block since."""
        with self._opened.reading():
            return None if block in self.changed else self._opened.checksums.get(block)

    def sums(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """See ScanSource.checksums."""
        import numpy as np

        checksums, damaged = self._opened.checksums, self._damaged_tail()
        sealed = min(count, self._sealed() - first)
        with self._opened.reading():
            data = checksums.read(first, sealed) if sealed > 0 else b""
        entries = decode_entries(data, first, checksums.generation)
        sums = np.full(count, UNKNOWN, np.int64)
        sums[: len(entries)] = [UNKNOWN if each is None or each.is_doubt else each.crc for each in entries]
        if damaged is not None and first <= damaged < first + count:
            sums[damaged - first] = DAMAGED
        return sums

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        """See ScanSource.second_look. Raises LogError."""
        with self._opened.reading():
            return self._second_look(block)

    def _second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        begin = block * self._block_size
        if block == self._damaged_tail():
            tail = self._opened.recovery.tail
            got = crc32(self._opened.read(tail.end - begin, begin))
            if got != tail.block_crc:
                return self._opened.read(self._block_size, begin), self._fault(block, tail.block_crc, got)
        data, entry, verdict = self._look(block)
        while verdict is False:
            known = self._opened.deletions.position  # deletions that come from here on are seen below
            if self._is_deleting(block):
                break
            if self._opened.lock is None:
                self._opened.checksums.close()  # a writer may have begun another file since
            data, entry, verdict = self._look(block)
            if verdict is not False or self._is_deleting(block) or self._is_foreign():
                break
            if not self._deleted_since(known, block):
                assert entry is not None
                return data, self._fault(block, entry.crc, crc32(data))
        return data, None

    def read(self, block: int) -> bytes:
        """The block's bytes, fewer only at the end of the file. Raises LogCorrupt for a damaged block."""
        data, fault = self.second_look(block)
        if fault is not None:
            raise fault
        return data

    def _look(self, block: int) -> tuple[bytes, Entry | None, bool | None]:
        """The block's bytes, its checksum, and whether they agree; None where that is not known, see fits()."""
        data = self._opened.read(self._block_size, block * self._block_size)
        known = len(data) == self._block_size and block < self._sealed()
        entry = self._opened.checksums.get(block) if known else None
        verdict = None if entry is None else fits(data, entry)
        if entry is not None and verdict is None:
            self.changed.add(block)
        return data, entry, verdict

    def _sealed(self) -> int:
        """How many blocks can have a checksum. Entries behind these are notes (see Checksums.is_doubted), or those of
        blocks that a dead writer lost.
        """
        return self._before(self._extent.written_end)

    def _before(self, end: int) -> int:
        """How many blocks there are before the one that holds the log's end."""
        return max(0, end - 1) // self._block_size

    def _is_deleting(self, block: int) -> bool:
        """Whether a record in this block may be half deleted."""
        deletions = self._opened.deletions
        deletions.poll()
        return any(offset // self._block_size == block for offset in deletions.unapplied.offsets)

    def _deleted_since(self, position: int, block: int) -> bool:
        deletions = self._opened.deletions
        return block in (deletions.between(position, deletions.position) // self._block_size)

    def _is_foreign(self) -> bool:
        """Whether another program, which does not keep our checksums, changed the file since we looked."""
        opened = self._opened
        if opened.lock is not None or has_writer(opened.fs, opened.sidecar / filenames.LOCK):
            return False  # the writer sees to it
        base = journal.read_state(opened.fs, opened.sidecar / filenames.COMMIT, opened.meta.generation).base
        return base is not None and base.stamp != stamp_of(opened.fs.fstat(opened.fd))

    def _damaged_tail(self) -> int | None:
        """The number of the block that was the last one when the log was opened, if that was found damaged."""
        found = self._opened.recovery
        return (found.tail.end - 1) // self._block_size if found.damaged and found.tail.block_crc else None

    def _fault(self, block: int, expected: int, got: int) -> LogCorrupt:
        begin = block * self._block_size
        return LogCorrupt(
            f"block {block} (offsets {begin:,} to {begin + self._block_size:,}) is damaged: "
            f"expected CRC {expected:08x}, got {got:08x}",
            remedy=_RESTORE,
            path=self._opened.path,
            offset=begin,
            block=block,
            expected=expected,
            got=got,
        )


# Bytes of the first read of a record. Twice the mean size in the block learned last makes a second read rare. More
# bytes would cost more than the call.
_LEAST_GUESS: Final = 256
_LARGEST_GUESS: Final = 4096

_LARGE: Final = 1 << 17  # bytes of a block from which on a kernel has walked it before Python has


class RecordReader:
    """Reads records of one opened log by offset. Safe for threads, without a lock on the way to a known record."""

    def __init__(self, opened: Opened, extent: Extent) -> None:
        self.verifier = Verifier(opened, extent)
        self.opened = opened
        self._path: Path = opened.path
        self._fd = opened.fd
        self.extent = extent
        self._block_size = opened.meta.block_size
        self._header = header_size(self._block_size)
        self._length: Callable[[Any, int], tuple[Any, ...]] = header_reader(self._block_size)
        self._pread = opened.fs.pread
        self._starts = BitMap64()  # offsets of records
        self._known = BitMap()  # blocks that hold no other records than those
        self._guess = _LEAST_GUESS
        self._learning = fork_safe(threading.Lock())
        self.hidden = BitMap64()  # deleted, but not yet on disk
        self.unwritten: Callable[[int], bytes | None] = lambda offset: None  # a writer's records in memory
        self.flush: Callable[[], None] = lambda: None  # has it write them

    def get(self, offset: int) -> bytes:
        """The bytes of the record at `offset`.

        Raises InvalidOffset where no record begins, RecordDeleted, LogCorrupt.
        """
        try:
            known = type(offset) is int and offset in self._starts  # 0.0 and False would be taken for 0
        except OverflowError:
            known = False
        if not known:
            offset = self.integer(offset)
            if self.opened.is_closed:
                raise self.opened.closed()
            if offset >= self.extent.written_end:
                record = self.unwritten(offset)
                if record is not None:
                    return record
            self.check(offset)
        try:
            data = self._pread(self._fd, self._guess, offset)
        except OSError as error:
            raise self.opened.unreadable(error, offset) from error
        try:
            (length,) = self._length(data, 0)
        except Exception as error:
            raise self._vanished(offset) from error
        stop = self._header + length
        if stop > len(data):
            data = self.opened.read(stop, offset)
            if len(data) < stop:
                raise self._vanished(offset)
        record = data[self._header : stop]
        if not record:
            raise self._vanished(offset)
        if not record[0] and is_zero(record):
            raise RecordDeleted("this record was deleted", path=self._path, offset=offset)
        return record

    def check(self, offset: SupportsIndex) -> int:
        """The offset as an int, if a record begins there and is not about to be deleted. Raises as get does."""
        number = self.in_range(self.integer(offset))
        if number in self.hidden:
            raise RecordDeleted("this record was deleted", path=self._path, offset=number)
        if number not in self._starts:
            self._learn(number // self._block_size, [number])
        return number

    def in_range(self, number: int) -> int:
        """The offset, if it is one in the log. Raises InvalidOffset."""
        if number < 0:
            raise InvalidOffset(f"an offset is not negative: {shown(number)}", path=self._path, offset=number)
        if number >= self.extent.written_end:
            raise InvalidOffset(
                f"offset {shown(number)} is past the end of the log, whose records end at {self.extent.written_end:,}",
                path=self._path,
                offset=number,
            )
        return number

    def fits(self, number: int) -> int:
        """The offset, if it fits an array of int64. Raises InvalidOffset."""
        return number if -(1 << 63) <= number < 1 << 63 else self.in_range(number)

    def integer(self, offset: Any) -> int:
        """Raises InvalidOffset for what is no integer (or a bool)."""
        try:
            number = operator.index(offset)
        except TypeError:
            number = None
        if number is None or isinstance(offset, bool):
            raise InvalidOffset(f"an offset is an integer, not {shown(offset)}", path=self._path)
        return number

    def forget(self) -> None:
        """Learn all blocks anew: another program changed the file."""
        with self._learning:
            self._starts, self._known = BitMap64(), BitMap()

    def hide(self, offsets: BitMap64) -> None:
        """Answer RecordDeleted from now on, though the bytes are still there."""
        self.hidden.update(offsets)
        self._starts.difference_update(offsets)

    def hide_only(self, offsets: BitMap64) -> None:
        """Answer RecordDeleted for these, and no longer for others whose bytes are there."""
        if offsets != self.hidden:
            self.hidden = offsets
            self.forget()

    def reveal(self) -> None:
        """The bytes of all hidden records are zero now."""
        self._starts.update(self.hidden)
        self.hidden = BitMap64()

    def learned(self, offsets: NDArray[np.int64]) -> Iterator[tuple[int, int, int, bytes]]:
        """Learn the blocks of these ascending offsets; the writer writes first what of them is not in the file yet.

        Of each block that was not known: the numbers of the first of the offsets in it and of the one behind the last,
        where it begins, and its bytes. Raises as check() does, but for deleted records.
        """
        import numpy as np

        first, last = int(offsets[0]), int(offsets[-1])
        if last >= self.extent.written_end:
            self.flush()
        for number in (first, last):
            self.in_range(number)
        unknown = BitMap64(array("Q", offsets.tobytes())) - self._starts - self.hidden
        for block in np.unique(np.frombuffer(unknown.to_array(), np.int64) // self._block_size).tolist():
            begin = block * self._block_size
            low, high = offsets.searchsorted([begin, begin + self._block_size]).tolist()
            data = self._learn(block, offsets[low:high].tolist())
            if data is not None:
                yield low, high, begin, data

    def _learn(self, block: int, offsets: list[int]) -> bytes | None:
        """Learn the block of these offsets, and give its bytes; None if it is known. Raises as learned() does."""
        data: bytes | None = None
        fault: LogCorrupt | None = None
        if block not in self._known:
            with self._learning:
                data, fault = self._learn_block(block)
        for offset in filterfalse(self._starts.__contains__, offsets):
            if offset in self.hidden:
                continue
            if fault is not None and fault.offset is not None and offset >= fault.offset:
                raise fault
            raise InvalidOffset(f"no record begins at offset {offset:,}", path=self._path, offset=offset)
        return data

    def _learn_block(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        """Walk the block. Raises LogCorrupt for a wrong checksum, returns one for a broken chain."""
        begin = block * self._block_size
        end = self.extent.written_end
        data = self.verifier.read(block)[: min(self._block_size, end - begin)]
        walk = self._walked(data)
        starts = [begin + position for position in walk.positions]
        self._starts.update([start for start in starts if start not in self.hidden] if self.hidden else starts)
        if walk.fault:
            length = self._length(data.ljust(self._block_size, b"\0"), walk.end)[0]
            return data, LogCorrupt(
                f"block {block} is damaged: the length at offset {begin + walk.end:,} leads out of the block; "
                f"expected at most {self._block_size - walk.end - 2 * self._header:,}, got {length:,}",
                path=self._path,
                offset=begin + walk.end,
                block=block,
                expected=self._block_size - walk.end - 2 * self._header,
                got=length,
            )
        if walk.positions:
            mean = walk.end // len(walk.positions)
            self._guess = min(max(_LEAST_GUESS, 2 * mean), _LARGEST_GUESS)
        if end >= begin + self._block_size:
            self._known.add(block)
        return data, None

    def _walked(self, data: bytes) -> Walk:
        """The records of a block. A kernel walks large blocks, unless they are damaged."""
        if len(data) < _LARGE:
            return walk_block(data, len(data), self._block_size)
        import numpy as np

        from jitdb.log.blocks.scanner import Walker

        found = Walker(len(data), self._block_size, total=len(data)).walk(np.frombuffer(data, np.uint8), len(data))
        if len(found.faults) or not len(found.starts):
            return walk_block(data, len(data), self._block_size)
        positions, lengths = (found.starts - self._header).tolist(), found.lengths.tolist()
        return Walk(positions, lengths, positions[-1] + self._header + lengths[-1], False)

    def _vanished(self, offset: int) -> LogCorrupt:
        return LogCorrupt(
            f"the record at offset {offset:,} is gone: another program rewrote the file",
            remedy="open the log again",
            path=self._path,
            offset=offset,
            block=offset // self._block_size,
        )
