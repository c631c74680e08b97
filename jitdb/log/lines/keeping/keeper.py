"""How processes agree on what is known of a file of lines (known.py).

The process that finds that the file became another one writes that down under a lock, so that all give it one name.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from jitdb.log.io import osfile
from jitdb.log.io.filenames import LINES
from jitdb.log.lines.files.file import LineFile
from jitdb.log.lines.files.rotated_names import is_packed
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.keeping.known import Known, Verdict, locked, stored_in, write_known
from jitdb.log.lines.keeping.rotation import bring_home, give_to_copy, remove_of_packed


class Keeper:
    """What is known of one file, and where it is kept.

    folder: None where nothing is kept
    path:   of the file, where the folder is the one that its name gives it (or its part for the form `tag`): then it
            goes along when the file is renamed
    """

    def __init__(self, folder: Path | None, path: Path | None = None, tag: str = "") -> None:
        self.folder = folder
        self._path = path
        self._tag = tag
        self.is_kept = False  # whether the next process will find it

    def settle(self, file: LineFile, known: Known | None, *, keep: bool, doubt: bool = False) -> Known:
        """What is known of the file now, for all processes. Raises OSError where the file cannot be read.

        keep:  write it down if no process did yet
        doubt: compare all its blocks with their checksums, whatever a look shows
        """
        if self.folder is None:
            return judged(file, known, None, doubt)
        if self._path is not None and not keep:  # else this was looked at just before
            with suppress(OSError):
                if bring_home(self._path, file.stamp(), self._tag):
                    self._tidy()
        if not osfile.fs.exists(self.folder / LINES) and (self._went_along(file) if self.is_kept else not keep):
            return judged(file, known, None, doubt)
        try:
            with locked(self.folder):
                stored = stored_in(self.folder)
                now = judged(file, known, stored, doubt)
                is_left = stored is not None and now.identity != stored.identity and self._leave(stored)
                kept = now._replace(end=0) if file.is_guessed else now
                if not is_left and kept != stored:
                    write_known(self.folder, kept)
                self.is_kept = True
            if stored is None or now.identity != stored.identity:
                self._tidy(is_new=stored is None)
            return self.settle(file, now, keep=True) if is_left else now
        except OSError:
            stored = stored_in(self.folder)
            now = judged(file, known, stored, doubt)
            self.is_kept = stored is not None and stored.identity == now.identity and stored.token == now.token
            return now

    def _went_along(self, file: LineFile) -> bool:
        """Whether the file has another name, or none. Then the folder that is gone went along with it."""
        return self._path is not None and not file.is_at(self._path)

    def _tidy(self, *, is_new: bool = False) -> None:
        """It was rotated: remove the folders of files of its family that were compressed. A new file that is not
        compressed proves no rotation.
        """
        if self._path is not None and not (is_new and not is_packed(self._path.name)):
            with suppress(OSError):
                remove_of_packed(self._path)

    def _leave(self, stored: Known) -> bool:
        """Whether the folder went to a copy of the file that was made before this one was truncated."""
        return self._path is not None and give_to_copy(self._path, stored)


def judged(file: LineFile, known: Known | None, stored: Known | None = None, doubt: bool = False) -> Known:
    """What is known of the file as it is now, from what this process and all others knew."""
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
    end = file.end_of_lines(stamp, base.end, base.stamp.size, base.identity + base.token)
    return (base if end >= base.end else Known.fresh(stamp)).seen(file, stamp, end)
