"""What a reader leaves word of, for the next one."""

from __future__ import annotations

from jitdb.errors import LogError, LogLocked
from jitdb.log.io import filenames, osfile
from jitdb.log.io.lock import Lock
from jitdb.log.opening.bind import sync
from jitdb.log.opening.identity import DONE_WITHOUT
from jitdb.log.opening.opened import Opened
from jitdb.log.sidecar import journal


def record_recovery(opened: Opened) -> None:
    """As a reader: make sure of what was found beyond the journal, and write it there for the next one.

    The next one then knows a log that was changed meanwhile from one that was not. If the sidecar cannot be
    written, or a writer is there, nothing is noted: the next reader looks for itself.
    """
    fs, found = opened.fs, opened.recovery
    if found.is_recorded or found.tail.end == 0:
        return
    # An index must never know records that a power failure can still take.
    sync(opened.path, lambda: fs.fsync(opened.fd))
    sync(opened.path, opened.journal.sync)
    base = opened.journal.state.base
    if not opened.stored or (base is not None and base.kind != journal.CLOSED):
        return  # after a crash the next writer repairs the file
    try:
        lock = Lock(fs, opened.sidecar / filenames.LOCK, opened.path)
        try:
            if opened.journal.poll().base == base and fs.is_at(opened.path, opened.fd):
                opened.deletions.sync()
                known = opened.deletions.known
                entry = found.tail.entry(journal.CLOSED, opened.meta.generation, found.change, known)
                journal.append_to(
                    fs, opened.sidecar / filenames.COMMIT, opened.journal, entry._replace(stamp=found.stamp)
                )
        finally:
            lock.close()
    except LogLocked:
        return
    except OSError as error:
        if error.errno not in DONE_WITHOUT:
            raise LogError(f"its sidecar cannot be written: {osfile.reason(error)}", path=opened.path) from error
