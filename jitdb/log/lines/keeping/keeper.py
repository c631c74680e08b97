"""How processes agree on what is known of a file of lines (known.py).

The process that finds that the file became another one writes that down under a lock, so that all give it one name.
"""

from __future__ import annotations

import os
from pathlib import Path

from jitdb.log.io import osfile
from jitdb.log.io.filenames import LINES
from jitdb.log.lines.files.file import LineFile
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.keeping.cached import make_room, used
from jitdb.log.lines.keeping.known import Known, Verdict, locked, stored_in, write_known
from jitdb.log.lines.keeping.leaving import erase, erase_other_forms, take_over, went_to_copy
from jitdb.log.lines.keeping.places import Place
from jitdb.log.objects.door import Location
from jitdb.log.objects.urls import ObjectUrl


class Keeper:
    """What is known of one file, and where it is kept.

    place: where that is
    path:  of the file when it was opened
    tag:   of the form of lines that is asked (form.py)
    keeps: whether anything is written down
    """

    def __init__(self, place: Place, path: Location, tag: str = "", *, keeps: bool = True) -> None:
        self.folder, self._tag, self._keeps = place.folder, tag, keeps
        self._name = path.key if isinstance(path, ObjectUrl) else path.name
        self._is_cached = isinstance(path, ObjectUrl)
        self._entry_of = path if place.is_entry and isinstance(path, Path) else None
        self.is_kept = False  # whether the next process will find it

    @property
    def kept_in(self) -> Path | None:
        """The folder; None where nothing is written down."""
        return self.folder if self._keeps else None

    def settle(self, file: LineFile, known: Known | None, *, keep: bool, doubt: bool = False) -> Known:
        """What is known of the file now, for all processes. Raises OSError where the file cannot be read.

        keep:  write it down if no process did yet
        doubt: compare all its blocks with their checksums, whatever a look shows
        """
        is_there = self._keeps and osfile.fs.exists(self.folder / LINES)
        if not is_there and not (self._keeps and (keep or self.is_kept) and self._has_its_name(file)):
            return judged(file, known, None, doubt)
        try:
            if self._entry_of is not None and not is_there:
                take_over(self._entry_of, file, self.folder, self._tag)
            with locked(self.folder, like=None if self._entry_of is None else file.status()):
                stored = stored_in(self.folder)
                now = judged(file, known, self._renamed(stored, file), doubt)
                is_another = stored is not None and now.identity != stored.identity
                is_left = stored is not None and is_another and self._leave(stored)
                kept = now._replace(end=0 if file.is_guessed else now.end, name=self._name)
                if not is_left and kept != stored:
                    write_known(self.folder, kept)
                self.is_kept = True
            if self._is_cached:
                used(self.folder)
                make_room()
            if is_another and self._entry_of is not None:
                erase_other_forms(self._entry_of, file, self.folder)
                take_over(self._entry_of, file, self.folder, self._tag)
            return self.settle(file, now, keep=True) if is_left else now
        except OSError:
            stored = stored_in(self.folder)
            now = judged(file, known, stored, doubt)
            self.is_kept = stored is not None and stored.identity == now.identity and stored.token == now.token
            return now

    def _has_its_name(self, file: LineFile) -> bool:
        """Else it was renamed or removed, and who opens it by its name now keeps what is known of it."""
        return self._entry_of is None or file.is_at(self._entry_of)

    def _renamed(self, stored: Known | None, file: LineFile) -> Known | None:
        """To rename a file changes its ctime: that alone is no reason to look at all its blocks."""
        if stored is None or stored.name in ("", self._name):
            return stored
        stamp = file.stamp()
        return stored._replace(stamp=stamp) if stored.stamp[:4] == stamp[:4] else stored

    def _leave(self, stored: Known) -> bool:
        """Another text is in the file: whether what was kept of the old one went to a copy of it; else it is erased."""
        if self._entry_of is not None and went_to_copy(self._entry_of, stored, self.folder, self._tag):
            return True
        erase(self.folder)
        return False


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
        base, verdict = Known.fresh(stamp, file), Verdict.GROWN
    else:
        verdict = base.judge(file, stamp, is_settled=False)
        if known is not None and known.identity == base.identity and stamp != base.stamp:
            verdict = max(verdict, known.judge(file, stamp, is_settled=False))
    if verdict is Verdict.ANOTHER:
        base = Known.fresh(stamp, file)
    elif verdict is Verdict.DOUBTFUL or doubt:
        base = base._replace(token=os.urandom(8))
    end = file.end_of_lines(stamp, base.end, base.stamp.size, base.identity + base.token)
    return (base if end >= base.end and file.is_end(base.end) else Known.fresh(stamp, file)).seen(file, stamp, end)
