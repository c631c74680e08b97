"""Verifying: is the log still what was written?

The file is read once, a piece at a time. Checked are each block's checksum, its chain of lengths and the zeros after
its records, whether the codec accepts each live record, and whether deleted records are zeros. Others may append and
delete meanwhile, so what seems damaged is looked at again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.sorting import are_among
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
from jitdb.log.writing.erase import last_byte

if TYPE_CHECKING:
    from jitdb.log.opening.opened import Opened
    from jitdb.log.reading.record_reader import RecordReader, Verifier

Progress = Callable[[int, int], object]  # bytes read, of so many

_LOOKS: Final = 5  # at a last block that seems damaged: somebody may be deleting a record there
_PAUSE: Final = 0.01  # seconds between them
_PLANNED: Final = 256  # damaged blocks whose repair is tried, to say what it would keep


def codec_of(opened: Opened) -> Codec:
    """The log's own codec, also where it is opened as raw bytes."""
    return find_codec(opened.meta.codec) or opened.codec


def invalid_records(codec: Codec, data: Bytes, walked: Walked, *, compiled: bool) -> list[int]:
    """The numbers of the live records that the codec refuses, in order."""
    if codec.name == "raw":
        return []
    records = RecordBatch(data, walked.starts, walked.lengths, walked.deleted.view(np.uint8))
    numbers = codec.locator(()).invalid(records).tolist() if compiled else records.live()
    return [number for number in numbers if not codec.is_valid(records.record(number))]


class BlockCheck:
    """Checks the blocks before `sidecar.log_end`. Its attributes are those of a report."""

    def __init__(self, verifier: Verifier, sidecar: Sidecar) -> None:
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.reasons_in_last: list[str] = []  # what is wrong in the last block, which has no checksum
        self.refused_in_last: list[int] = []  # offsets of the records there that the codec refuses
        self.records = self.deleted = self.bytes = 0
        self.unverified = 0  # sealed blocks without proof
        self.changed = 0  # those of them that another program changed
        self._opened = opened = sidecar.opened
        self._verifier, self._sidecar = verifier, sidecar
        self._codec = codec_of(opened)
        self._size = opened.meta.block_size
        self._header = header_size(self._size)
        self._end, self._last = sidecar.log_end, sidecar.last

    def run(self, progress: Progress) -> None:
        total = round_up(self._end, self._size)
        for piece in scan(self._opened.read_into, 0, self._end, self._size, sums=self._verifier.sums):
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
        reasons, expected = self._checksum(block, looks_wrong=number in piece.wrong)
        if refused and (reasons or broken or expected is None):
            broken.append(self.refusal(refused))
        elif refused:
            self.note_written_so(refused)
        if reasons or broken:
            low, high = piece.bounds[number], piece.bounds[number + 1]
            self.report(block, reasons + broken, expected, int(np.count_nonzero(~piece.walked.deleted[low:high])))

    def _checksum(self, block: int, *, looks_wrong: bool) -> tuple[list[str], int | None]:
        """What is wrong with the block's CRC, and what it should be."""
        fault = self._verifier.second_look(block)[1] if looks_wrong else None
        if fault is not None:
            assert isinstance(fault.expected, int)
            return [f"its CRC is {fault.got:08x}, expected {fault.expected:08x}"], fault.expected
        entry = self._verifier.entry(block)
        self.unverified += entry is None or not entry.is_proof
        self.changed += block in self._verifier.changed
        return [], None if entry is None else entry.crc

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
        """Those of these records that nobody is deleting: the others may be half zero."""
        return sorted({*offsets} - self._sidecar.deleting()) if offsets else []

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
        """Find records that were deleted and are still there."""
        gone, walked = self._sidecar.deleted, piece.walked
        if not len(gone):
            return
        offsets = walked.starts - self._header + piece.begin
        lengths = dict(zip(offsets.tolist(), walked.lengths.tolist(), strict=True))
        for offset in self._standing(offsets[~walked.deleted & are_among(offsets, gone)].tolist()):
            message = "this record was deleted, and has other bytes than zeros"
            name, size = self._opened.path.name, lengths[offset]
            self.findings.append(Finding("deleted", name, offset, message, "makes them zero", None, 1, size))

    def report(self, block: int, reasons: list[str], expected: int | None, records: int = 0) -> None:
        """Add the finding of a damaged block. `expected`: its CRC (of the last one: up to the log's end), if known."""
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


def verify_log(reader: RecordReader, sidecar: Sidecar, progress: Progress) -> LogReport:
    """Verify the log of this reader; `sidecar` was just checked. Raises LogClosed, OSError."""
    begin, opened = time.perf_counter(), reader.opened
    check = BlockCheck(reader.verifier, sidecar)
    check.run(progress)
    if sidecar.log_end:
        _check_tail(opened, sidecar, check)
    findings, notes = _check_behind(opened, sidecar)
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
        blocks=round_up(sidecar.log_end, opened.meta.block_size) // opened.meta.block_size,
        records=check.records,
        deleted=check.deleted,
        unverified=check.unverified,
        bytes=check.bytes + sidecar.bytes,
        seconds=time.perf_counter() - begin,
    )


def _check_tail(opened: Opened, sidecar: Sidecar, check: BlockCheck) -> None:
    end, size = sidecar.log_end, opened.meta.block_size
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
    if expected is not None and crc != expected and not any(begin <= offset < end for offset in sidecar.deleting()):
        reasons.append(f"its CRC up to {end:,} is {crc:08x}, expected {expected:08x}")
    if reasons:
        check.report(begin // size, reasons, expected)


def _check_behind(opened: Opened, sidecar: Sidecar) -> tuple[list[Finding], list[str]]:
    if sidecar.is_written_to:
        return [], []
    end = sidecar.log_end
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
