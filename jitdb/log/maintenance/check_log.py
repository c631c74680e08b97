"""Is everything still what was written? The log's blocks, its end, and the files beside it.

The file is read once, a piece at a time, in bounded memory. Of every block: its checksum, the chain of lengths, the
zeros behind its records. Of every live record: whether the codec accepts it. And records that were deleted are zeros.
What another thread or process does meanwhile (appending, deleting) is no damage: what seems wrong is looked at again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.log.blocks.block_format import header_size, round_up
from jitdb.log.blocks.checksum import Bytes, crc32
from jitdb.log.blocks.scanner import Piece, Walked, scan
from jitdb.log.codecs import Codec, find_codec
from jitdb.log.codecs.fields.located import RecordBatch
from jitdb.log.io import filenames
from jitdb.log.maintenance.check_sidecar import Sidecar
from jitdb.log.maintenance.report import Finding, LogReport
from jitdb.log.maintenance.salvage import DamagedBlock, repair_block
from jitdb.log.opening.recovery import NO_CHANGE, measure
from jitdb.log.sidecar import journal
from jitdb.log.sidecar.checksums import fits
from jitdb.log.writing.erase import last_byte

if TYPE_CHECKING:
    from jitdb.log.opening.opened import Opened

Progress = Callable[[int, int], object]  # bytes read, of so many

_LOOKS: Final = 5  # at what seems damaged: somebody may be deleting a record there
_PAUSE: Final = 0.01  # seconds between them
_PLANNED: Final = 256  # damaged blocks of which it is found out what repair would make


def codec_of(opened: Opened) -> Codec:
    """The log's own codec, though it may be opened as raw bytes."""
    return find_codec(opened.meta.codec) or opened.codec


def invalid_records(codec: Codec, data: Bytes, walked: Walked, *, compiled: bool) -> list[int]:
    """The numbers of the live records that are no value of the codec, in order."""
    if codec.name == "raw":
        return []
    records = RecordBatch(data, walked.starts, walked.lengths, walked.deleted.view(np.uint8))
    numbers = codec.locator(()).invalid(records).tolist() if compiled else records.live()
    return [number for number in numbers if not codec.is_valid(records.record(number))]


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
        for piece in scan(self._opened.read_into, 0, self._end, self._size, sums=self._sidecar.crcs):
            walked, compiled = piece.walked, piece.compiled
            refused: dict[int, list[int]] = {}  # offsets of records that the codec refuses, by block
            for number in invalid_records(self._codec, piece.data, walked, compiled=compiled):
                start = int(walked.starts[number])
                refused.setdefault(start // self._size, []).append(piece.begin + start - self._header)
            self.bytes += len(piece.data)
            self.deleted += int(np.count_nonzero(walked.deleted))
            self.records += len(walked.starts) - int(np.count_nonzero(walked.deleted))
            faults = {fault // self._size: fault for fault in walked.faults.tolist()}
            for number in range(piece.blocks):
                self._check_block(piece, number, faults.get(number), self._standing(refused.get(number, [])))
            self._check_deleted(piece)
            progress(round_up(piece.stop, self._size), total)

    def _check_block(self, piece: Piece, number: int, fault: int | None, refused: list[int]) -> None:
        block = piece.first_block + number
        broken = self._chain(piece, number, fault)
        if block == self._last:
            self.reasons_in_last, self.refused_in_last = broken, refused
            return
        reasons, expected = self._checksum(piece, number)
        if refused and (reasons or broken or expected is None):
            broken.append(self.refusal(refused))
        elif refused:
            self.note_written_so(refused)
        if reasons or broken:
            low, high = piece.bounds[number], piece.bounds[number + 1]
            self.report(block, reasons + broken, expected, int(np.count_nonzero(~piece.walked.deleted[low:high])))

    def _checksum(self, piece: Piece, number: int) -> tuple[list[str], int | None]:
        """What is wrong with the block's CRC, and what it should be."""
        block = piece.first_block + number
        entry = self._sidecar.checksum(block)
        if entry is None:
            self.unverified += 1
            return [], None
        if number not in piece.wrong or self._holds_now(block) or self._sidecar.is_deleting_in(block):
            self.unverified += not entry.is_proof
            return [], entry.crc
        data = piece.block(number).tobytes()
        if fits(data, entry) is None:
            self.unverified += 1
            self.changed += 1
            return [], None
        return [f"its CRC is {crc32(data):08x}, expected {entry.crc:08x}"], entry.crc

    def _holds_now(self, block: int) -> bool:
        """Whether the checksum holds when the block is read again: a record may have been deleted just then."""
        for _ in range(_LOOKS if self._sidecar.is_written_to else 1):
            data = self._opened.read(self._size, block * self._size)
            now = self._sidecar.checksum_now(block)
            if now is not None and now.crc == crc32(data):
                return True
            if self._sidecar.is_written_to:
                time.sleep(_PAUSE)
        return False

    def _chain(self, piece: Piece, number: int, fault: int | None) -> list[str]:
        """What is wrong with the chain of lengths, which may be lost at `fault`."""
        if fault is not None:
            return [f"the length at offset {piece.begin + fault:,} leads out of the block"]
        block, padding = piece.first_block + number, piece.behind(number)
        if block == self._last or not padding.any():
            return []
        end = (block + 1) * self._size - len(padding)
        return [f"other bytes than zeros follow its records, which end at {end:,}"]

    def _standing(self, offsets: list[int]) -> list[int]:
        """Those of these records that are not being deleted: such a one is half zero, no more."""
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

    def _check_deleted(self, piece: Piece) -> None:
        """Records that were deleted, and are there nevertheless."""
        gone, walked = self._sidecar.deleted, piece.walked
        if not len(gone):
            return
        offsets = walked.starts - self._header + piece.begin
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
        if len(self.findings) >= _PLANNED:
            return "restores it, or saves what can be read of it"
        data = self._opened.read(self._size, block * self._size).ljust(self._size, b"\0")
        return repair_block(DamagedBlock(data, used, expected), self._codec).promise()


# --- the whole log ---------------------------------------------------------------------------------------------------


def verify_log(opened: Opened, end: int, progress: Progress, *, quiet: bool = False) -> LogReport:
    """Verify the log up to `end`, where its durable records end, and its sidecar. Raises LogClosed, OSError.

    `quiet`: nobody writes to the log meanwhile, not even its lock's holder.
    """
    begin = time.perf_counter()
    sidecar = Sidecar(opened, end, quiet=quiet)
    check = BlockCheck(opened, end, sidecar)
    check.run(progress)
    if end:
        _check_tail(opened, end, sidecar, check)
    findings, notes = _check_behind(opened, end, sidecar)
    if check.unverified:
        changed = f" ({check.changed:,} were changed)" if check.changed else ""
        notes.append(
            f"{check.unverified:,} sealed blocks have no checksum that proves them: another program wrote or changed "
            f"them{changed}, or their checksums were lost"
        )
    return LogReport(
        path=str(opened.path),
        findings=(*check.findings, *findings, *sidecar.findings),
        notes=(*(f"when it was opened: {told}" for told in opened.notices), *sidecar.notes, *check.notes, *notes),
        leftovers=tuple(sidecar.leftovers),
        blocks=round_up(end, opened.meta.block_size) // opened.meta.block_size,
        records=check.records,
        deleted=check.deleted,
        unverified=check.unverified,
        bytes=check.bytes + sidecar.bytes,
        seconds=time.perf_counter() - begin,
    )


def _check_tail(opened: Opened, end: int, sidecar: Sidecar, check: BlockCheck) -> None:
    size = opened.meta.block_size
    begin = (end - 1) // size * size
    for look in range(_LOOKS):
        tail = measure(opened.fs, opened.fd, end, size)
        crc = crc32(opened.read(end - begin, begin))
        expected, entry = sidecar.tail_crc, sidecar.end
        if expected in (None, crc) or look == _LOOKS - 1 or not sidecar.is_written_to:
            break
        time.sleep(_PAUSE)
        sidecar.look_again()
    reasons = check.reasons_in_last
    # After another program changed the file, the CRC is of what was found then.
    if check.refused_in_last and expected == crc and opened.recovery.change == NO_CHANGE:
        check.note_written_so(check.refused_in_last)
    elif check.refused_in_last:
        reasons.append(check.refusal(check.refused_in_last))
    if tail is None:
        reasons.append(f"its records do not end at {end:,}, as they did")
    elif entry is not None and not tail.agrees(entry):
        reasons.append("its lengths, or its newest record, are not those that the journal tells of")
    if expected is not None and crc != expected and not sidecar.is_deleting_in(begin // size):
        reasons.append(f"its CRC up to {end:,} is {crc:08x}, expected {expected:08x}")
    if reasons:
        check.report(begin // size, reasons, expected)


def _check_behind(opened: Opened, end: int, sidecar: Sidecar) -> tuple[list[Finding], list[str]]:
    if sidecar.is_written_to:
        return [], []
    size, whole = opened.fs.size(opened.fd), round_up(end, opened.meta.block_size)
    last = last_byte(opened.fs, opened.fd, end, size)
    entry = sidecar.end
    if last == end:
        return [], [] if size == whole else [
            f"the file has {size:,} bytes, not {whole:,}: the next writer fills it up, or truncates it"
        ]
    if entry is not None and entry.kind == journal.CLOSED and sidecar.is_untouched:
        message = f"behind the last record only zeros should follow; there are others, up to byte {last:,}"
        remedy = "sets them aside and makes them zero"
        return [Finding("tail", opened.path.name, end, message, remedy, bytes=last - end)], []
    if opened.recovery.unacknowledged.start == end < opened.recovery.unacknowledged.stop:
        message = (
            f"whole records follow up to byte {opened.recovery.unacknowledged.stop:,} of which "
            f"{filenames.COMMIT} does not tell: it is of an earlier moment, or a power failure left them"
        )
        return [Finding("tail", opened.path.name, end, message, "sets them aside", bytes=last - end)], []
    return [], [
        f"{last - end:,} bytes behind the end of the log, at {end:,}, were never acknowledged, or are no whole "
        f"records: the next writer sets them aside"
    ]
