"""Are the blocks of a log what was written? The file is read once, a piece at a time, in bounded memory.

Of every block: its checksum, the chain of lengths, the zeros behind its records. Of every live record: whether the
codec accepts it. And records that were deleted are zeros.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.log.blocks.layout import header_size, round_up
from jitdb.log.blocks.walker import Bytes, Walked, Walker
from jitdb.log.codecs import CODEC_NAMES, Codec, get_codec
from jitdb.log.reading.validity import invalid_records
from jitdb.log.repair.report import Finding
from jitdb.log.repair.salvage import DamagedBlock, repair_block
from jitdb.log.sidecar.checksums import EntryError, is_changed

if TYPE_CHECKING:
    from jitdb.log.opening.open_log import Opened
    from jitdb.log.repair.check_sidecar import Sidecar

Progress = Callable[[int, int], object]  # bytes read, of so many

PIECE: Final = 4 << 20  # bytes read at a time: many blocks of the usual size
LOOKS: Final = 5  # at what seems damaged: somebody may be deleting a record there
PAUSE: Final = 0.01  # seconds between them
_PLANNED: Final = 256  # damaged blocks of which it is found out what repair would make


def codec_of(opened: Opened) -> Codec:
    """The log's own codec, though it may be opened as raw bytes."""
    return get_codec(opened.meta.codec) if opened.meta.codec in CODEC_NAMES else opened.codec


class BlockCheck:
    """The blocks up to `end`, held against the sidecar. What it found is in its attributes, as in a report."""

    def __init__(self, opened: Opened, end: int, sidecar: Sidecar) -> None:
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.reasons_in_last: list[str] = []  # what is wrong in the last block, which has no checksum
        self.refused_in_last: list[int] = []  # offsets of the records there that the codec refuses
        self.records = self.deleted = self.bytes = 0
        self.unverified = 0  # sealed blocks that nothing proves to be what was written
        self.changed = 0  # those of them that another program changed
        self._opened = opened
        self._sidecar = sidecar
        self._codec = codec_of(opened)
        self._size = opened.meta.block_size
        self._header = header_size(self._size)
        self._end = end
        self._last = max(0, end - 1) // self._size

    def run(self, progress: Progress) -> None:
        """Check them all."""
        total = round_up(self._end, self._size)
        size = min(max(1, PIECE // self._size) * self._size, total)
        buffer = np.empty(size, np.uint8)
        walker = Walker(size, self._size, total=total)
        for begin in range(0, total, max(size, 1)):
            got = self._opened.read_into(buffer.data[: min(size, total - begin)], begin)
            walked = walker.walk(buffer, min(got, self._end - begin))
            refused = invalid_records(self._codec, buffer, walked, compiled=walker.compiled)
            self.bytes += got
            self.deleted += int(np.count_nonzero(walked.deleted))
            self.records += len(walked.starts) - int(np.count_nonzero(walked.deleted))
            self._check_piece(_Piece(begin, buffer[:got], walked, self._size, refused))
            self._check_deleted(begin, walked)
            progress(begin + got, total)

    def _check_piece(self, piece: _Piece) -> None:
        for number in range(piece.blocks):
            block = piece.begin // self._size + number
            if block == self._last:
                self.reasons_in_last = self._chain(piece, number)
                self.refused_in_last = self._offsets(piece, number)
                continue
            reasons, expected = self._checksum(piece, block, number)
            broken = self._chain(piece, number)
            refused = self._offsets(piece, number)
            if refused and (reasons or broken or expected is None):
                broken.append(self.refusal(refused))
            elif refused:
                self.note_written_so(refused)
            if reasons or broken:
                self.report(block, reasons + broken, expected, piece.live(number))

    def _checksum(self, piece: _Piece, block: int, number: int) -> tuple[list[str], int | None]:
        """What is wrong with the block's CRC, and what it should be."""
        try:
            entry = self._sidecar.checksum(block)
        except EntryError:
            entry = None
        if entry is None:
            self.unverified += 1
            return [], None
        got = zlib.crc32(piece.block(number).data)
        if got == entry.crc or self._holds_now(block) or self._sidecar.is_deleting_in(block):
            self.unverified += not entry.is_proof
            return [], entry.crc
        if entry.is_old and is_changed(piece.block(number).tobytes(), entry):
            self.unverified += 1
            self.changed += 1
            return [], None
        return [f"its CRC is {got:08x}, expected {entry.crc:08x}"], entry.crc

    def _holds_now(self, block: int) -> bool:
        """Whether the checksum holds when the block is read again: a record may have been deleted just then."""
        for _ in range(LOOKS if self._sidecar.is_written_to else 1):
            data = self._opened.read(self._size, block * self._size)
            with suppress(EntryError):
                now = self._sidecar.checksum_now(block)
                if now is not None and now.crc == zlib.crc32(data):
                    return True
            if self._sidecar.is_written_to:
                time.sleep(PAUSE)
        return False

    def _chain(self, piece: _Piece, number: int) -> list[str]:
        """What is wrong with the chain of lengths."""
        fault = piece.faults.get(number)
        if fault is not None:
            return [f"the length at offset {piece.begin + fault:,} leads out of the block"]
        block = piece.begin // self._size + number
        if block == self._last:
            return []
        padding = piece.behind(number)
        if not padding.any():
            return []
        end = (block + 1) * self._size - len(padding)
        return [f"other bytes than zeros follow its records, which end at {end:,}"]

    def _offsets(self, piece: _Piece, number: int) -> list[int]:
        """Of the records in the block that the codec refuses; one that is being deleted is half zero, no more."""
        shift = piece.begin - self._header
        offsets = [int(piece.walked.starts[at]) + shift for at in piece.refused.get(number, [])]
        return [offset for offset in offsets if not self._sidecar.is_deleting(offset)]

    def refusal(self, offsets: list[int]) -> str:
        """What is wrong with these records."""
        more = f" and {len(offsets) - 1:,} more" if len(offsets) > 1 else ""
        return f"the record at offset {offsets[0]:,}{more} is no valid {self._codec.name}"

    def note_written_so(self, offsets: list[int]) -> None:
        """Records that the codec refuses, in a block that is what was written."""
        self.notes.append(
            f"{self.refusal(offsets)}, and was written so: the CRC of block {offsets[0] // self._size} holds"
        )

    def _check_deleted(self, begin: int, walked: Walked) -> None:
        """Records that were deleted, and are there nevertheless."""
        gone = self._sidecar.deleted
        if not len(gone):
            return
        offsets = walked.starts - self._header + begin
        for at in np.flatnonzero(~walked.deleted & np.isin(offsets, gone)).tolist():
            offset = int(offsets[at])
            if not self._sidecar.is_deleting(offset):
                message = "this record was deleted, and has other bytes than zeros"
                size = int(walked.lengths[at])
                self.findings.append(
                    Finding("deleted", self._opened.path.name, offset, message, "makes them zero", None, 1, size)
                )

    def report(self, block: int, reasons: list[str], expected: int | None, records: int = 0) -> None:
        """A damaged block. `expected`: its CRC (of the last one: up to the log's end), if it is known."""
        begin = block * self._size
        used = self._size if block < self._last else self._end - begin
        self.findings.append(
            Finding(
                what="block",
                file=self._opened.path.name,
                offset=begin,
                message=f"block {block} is damaged: {'; '.join(dict.fromkeys(reasons))}",
                remedy=self._plan(block, used, expected),
                block=block,
                records=records,
                bytes=used,
            )
        )

    def _plan(self, block: int, used: int, expected: int | None) -> str:
        """What repair will make of it."""
        if len(self.findings) >= _PLANNED:
            return "restores it, or saves what can be read of it"
        data = self._opened.read(self._size, block * self._size).ljust(self._size, b"\0")
        return repair_block(DamagedBlock(data, used, expected), self._codec).promise()


class _Piece:
    """A run of blocks as it was read and walked; blocks are numbered from its first one."""

    def __init__(self, begin: int, data: Bytes, walked: Walked, size: int, refused: list[int]) -> None:
        self.begin = begin  # in the log
        self.walked = walked
        self.blocks = -(-len(data) // size)
        self.faults = {int(at) // size: int(at) for at in walked.faults.tolist()}
        self.refused: dict[int, list[int]] = {}  # numbers of records that the codec refuses, by block
        for number in refused:
            self.refused.setdefault(int(walked.starts[number]) // size, []).append(number)
        self._data = data
        self._size = size
        self._bounds = walked.starts.searchsorted(np.arange(0, (self.blocks + 1) * size, size)).tolist()

    def block(self, number: int) -> Bytes:
        """Its bytes."""
        return self._data[number * self._size : (number + 1) * self._size]

    def behind(self, number: int) -> Bytes:
        """The bytes behind its records."""
        low, high = self._bounds[number], self._bounds[number + 1]
        walked = self.walked
        end = int(walked.starts[high - 1] + walked.lengths[high - 1]) if high > low else number * self._size
        return self._data[end : (number + 1) * self._size]

    def live(self, number: int) -> int:
        """How many of its records are live."""
        return int(np.count_nonzero(~self.walked.deleted[self._bounds[number] : self._bounds[number + 1]]))
