"""Is everything still what was written? The log's blocks, its end, and the files beside it.

What another thread or process does meanwhile (appending, deleting) is no damage: what seems wrong is looked at again.
"""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING

from jitdb.log.blocks.layout import round_up
from jitdb.log.io import filenames
from jitdb.log.opening.recovery import NO_CHANGE
from jitdb.log.opening.tail import measure
from jitdb.log.repair.check_blocks import LOOKS, PAUSE, BlockCheck, Progress
from jitdb.log.repair.check_sidecar import Sidecar
from jitdb.log.repair.report import Finding, LogReport
from jitdb.log.sidecar import journal
from jitdb.log.writing.truncate import last_byte

if TYPE_CHECKING:
    from jitdb.log.opening.opened import Opened


def verify_log(opened: Opened, end: int, progress: Progress, *, quiet: bool = False) -> LogReport:
    """Verify the log up to `end`, where its durable records end, and its sidecar. Raises LogClosed, OSError.

    `quiet`: nobody writes to the log meanwhile, not even who holds its lock.
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
    """The last block against what the journal says of it."""
    size = opened.meta.block_size
    begin = (end - 1) // size * size
    for look in range(LOOKS):
        tail = measure(opened.fs, opened.fd, end, size)
        crc = zlib.crc32(opened.read(end - begin, begin))
        expected, entry = sidecar.tail_crc, sidecar.end
        if expected in (None, crc) or look == LOOKS - 1 or not sidecar.is_written_to:
            break
        time.sleep(PAUSE)
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
    """What stands behind the last record."""
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
