"""Whether a block's bytes are those that were written: one rule for single records and for scans.

A writer that deletes a record changes the bytes, then the checksum, and who looks in between sees two that do not
agree. It says so before, in the journal of deletions, and afterwards (deletions.py). So a wrong checksum is believed
if no deletion in this block was under way, or came, while the block and its entry were read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitdb.errors import LogCorrupt, Remedy
from jitdb.log.blocks.checksum import DAMAGED, UNKNOWN, crc32
from jitdb.log.io import filenames
from jitdb.log.io.lock import has_writer
from jitdb.log.opening.tail import stamp_of
from jitdb.log.sidecar import journal
from jitdb.log.sidecar.checksums import Entry, decode_entries, fits

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.opening.opened import Opened
    from jitdb.log.reading.extent import Extent

_RESTORE: Final = Remedy(
    *(
        f"restore these bytes from a copy of the log, or let {repair} restore what can be restored: it keeps the "
        f"damaged bytes too"
        for repair in ("repair()", "jitdb repair")
    )
)


class Verifier:
    """Verifies blocks of one opened log, as far as it reaches. Safe for threads."""

    def __init__(self, opened: Opened, extent: Extent) -> None:
        self._opened = opened
        self._extent = extent
        self._block_size = opened.meta.block_size
        self.changed: set[int] = set()  # blocks that do not fit, because another program changed them

    def proven(self) -> int:
        """How many blocks have a checksum that proves them, if they fit."""
        return sum(self.is_proof(block) for block in range(self._before(self._extent.durable_end)))

    def is_proof(self, block: int) -> bool:
        """Whether the block has a checksum that proves it, if it fits: one in `changed` does not."""
        entry = self._entry(block)
        return entry is not None and entry.is_proof and block not in self.changed

    def settled(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """As sums, of those only that a block must fit: not those of before another program changed the log."""
        sums = self.sums(first, count)
        for number in (sums >= 0).nonzero()[0].tolist():
            entry = self._entry(first + number)
            if entry is None or entry.is_old:
                sums[number] = UNKNOWN
        return sums

    def _entry(self, block: int) -> Entry | None:
        try:
            return self._opened.checksums.get(block)
        except OSError as error:
            raise self._opened.unreadable(error) from error

    def sums(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """See ScanSource.checksums."""
        checksums, damaged = self._opened.checksums, self._damaged_tail()
        sealed = min(count, self._sealed() - first)
        try:
            entries = checksums.read(first, sealed) if sealed > 0 else b""
        except OSError as error:
            raise self._opened.unreadable(error) from error
        sums = decode_entries(entries, first, checksums.generation, count)
        if damaged is not None and first <= damaged < first + count:
            sums[damaged - first] = DAMAGED
        return sums

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        """See ScanSource.second_look. Raises LogError."""
        try:
            return self._second_look(block)
        except OSError as error:
            raise self._opened.unreadable(error) from error

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
        """The block's bytes, fewer only at the end of the file. Raises LogCorrupt where they are not its own."""
        data, fault = self.second_look(block)
        if fault is not None:
            raise fault
        return data

    def _look(self, block: int) -> tuple[bytes, Entry | None, bool | None]:
        """The block's bytes, its checksum, and whether it has that; None where that is not known, see fits()."""
        data = self._opened.read(self._block_size, block * self._block_size)
        known = len(data) == self._block_size and block < self._sealed()
        entry = self._opened.checksums.get(block) if known else None
        verdict = None if entry is None else fits(data, entry)
        if entry is not None and verdict is None:
            self.changed.add(block)
        return data, entry, verdict

    def _sealed(self) -> int:
        """How many blocks can have a checksum: what stands in the place of the last block's is none (see
        Checksums.is_doubted), and a writer that died may have left more, of what is lost.
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
        """Whether another program changed the file since we looked: it does not keep the checksums."""
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
