"""Where what is known of a file of lines is kept, and how processes agree on it.

Beside the file (`events.ndjson.jitdb/`), as of any log; where that cannot be written, in a folder of the user's cache
that is named after the file; or where the caller says. Who finds that the file became another one says so under a lock,
so that all processes give it one name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from jitdb.log.io import osfile
from jitdb.log.io.filenames import LINES, LINES_LOCK, SIDECAR_SUFFIX, sidecar_path
from jitdb.log.lines.file import LineFile
from jitdb.log.lines.known import Known, Verdict
from jitdb.log.lines.stamp import Stamp

_PATIENCE: Final = 2.0  # seconds to wait for another process, which needs a millisecond
_PAUSE: Final = 0.002


def folder_for(path: Path) -> Path:
    """The folder for the indexes of this file, and what else is known of it; it need not exist."""
    beside = sidecar_path(path)
    parent = beside if beside.is_dir() else beside.parent
    if os.access(parent, os.W_OK | os.X_OK):
        return beside
    cache = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    digest = blake2b(os.fsencode(path), digest_size=8).hexdigest()
    return root / "jitdb" / f"{path.name}-{digest}{SIDECAR_SUFFIX}"


class Keeper:
    """Keeps what is known of one file. `folder`: None where nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.is_kept = False  # whether the next process finds it

    def settle(self, file: LineFile, known: Known | None, *, keep: bool, doubt: bool = False) -> Known:
        """What is known of the file now, for all processes. Raises OSError where the file cannot be read.

        keep:  write it down if nobody did yet
        doubt: all its blocks are to be held against their checksums, whatever a look tells
        """
        if self.folder is None:
            return judged(file, known, None, doubt)
        if not keep and not self.is_kept and not osfile.fs.exists(self.folder / LINES):
            return judged(file, known, None, doubt)
        try:
            with self._locked(self.folder):
                stored = self._stored()
                now = judged(file, known, stored, doubt)
                if now != stored:
                    self._write(self.folder, now)
                self.is_kept = True
                return now
        except OSError:
            stored = self._stored()
            now = judged(file, known, stored, doubt)
            self.is_kept = stored is not None and stored.identity == now.identity and stored.token == now.token
            return now

    def _stored(self) -> Known | None:
        assert self.folder is not None
        with suppress(OSError):
            data = osfile.fs.read_if_there(self.folder / LINES)
            return None if data is None else Known.unpack(data)
        return None

    @contextmanager
    def _locked(self, folder: Path) -> Iterator[None]:
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                osfile.fs.make_folder(folder)
        with osfile.Descriptor(osfile.fs, folder / LINES_LOCK, os.O_RDWR | os.O_CREAT) as lock:
            late = time.monotonic() + _PATIENCE
            while not osfile.fs.lock(lock):
                if time.monotonic() > late:
                    raise TimeoutError(f"{folder / LINES_LOCK} is held by another process")
                time.sleep(_PAUSE)
            yield

    def _write(self, folder: Path, known: Known) -> None:
        """In place: who holds the lock sees no half of it. Not durably: what a power failure takes is found anew."""
        with osfile.Descriptor(osfile.fs, folder / LINES, os.O_WRONLY | os.O_CREAT) as fd:
            osfile.fs.write(fd, known.pack(), 0)


def judged(file: LineFile, known: Known | None, stored: Known | None = None, doubt: bool = False) -> Known:
    """What is known of the file as it is now, by what this process and all others knew of it."""
    while True:
        stamp = file.stamp()
        now = _judged_at(file, stamp, known, stored, doubt)
        after = file.stamp()
        if after == stamp or now.judge(file, after, is_settled=False) is Verdict.GROWN:
            return now


def _judged_at(file: LineFile, stamp: Stamp, known: Known | None, stored: Known | None, doubt: bool) -> Known:
    base = stored or known
    if base is None:
        base, verdict = Known.fresh(stamp), Verdict.GROWN
    else:
        verdict = base.judge(file, stamp, is_settled=False)
        if known is not None and known.identity == base.identity and stamp != base.stamp:
            verdict = max(verdict, known.judge(file, stamp, is_settled=False))
    if verdict is Verdict.ANOTHER:
        base = Known.fresh(stamp)
    elif verdict is Verdict.DOUBTFUL or doubt:
        base = base._replace(token=os.urandom(8))
    return base.seen(file, stamp, file.end_of_lines(stamp, base.end))
