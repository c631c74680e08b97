"""Following a log as a reader: seeing what its writer, or another program, did meanwhile."""

from __future__ import annotations

from jitdb.errors import NotALog
from jitdb.log.opening.bind import find_end
from jitdb.log.opening.identity import read_sidecar
from jitdb.log.opening.open_log import open_log
from jitdb.log.opening.opened import Opened
from jitdb.log.opening.options import OpenOptions
from jitdb.log.opening.record_recovery import record_recovery
from jitdb.log.opening.unfinished import compaction_file


def follow(opened: Opened, options: OpenOptions) -> Opened:
    """As a reader: see what has changed. The same object with a new `found`, or a new one for another log."""
    fs, path = opened.fs, opened.path
    later = opened.deletions.superseded_by
    try:
        compaction_file.refuse(fs, path)
        same_file = fs.is_at(path, opened.fd)
        known = read_sidecar(fs, path).meta
        same_log = known == opened.meta if opened.stored else known is None and opened.recovery.tail.end > 0
        if same_file and same_log:
            found = find_end(
                fs, opened.fd, opened.sidecar, opened.meta, opened.codec, opened.journal, opened.deletions, None
            )
            same_file = fs.is_at(path, opened.fd)
    except FileNotFoundError as error:
        raise NotALog("the file is gone", path=path) from error
    except OSError as error:
        raise opened.unreadable(error) from error
    if same_file and same_log and not found.replaced and not opened.deletions.is_lost:
        if found.change != opened.recovery.change:
            opened.checksums.rebind(found.change)
        opened.recovery = found
        opened.deletions.stay(later)
        record_recovery(opened)
        return opened
    return open_log(path, options, read_only=True)
