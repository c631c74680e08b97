"""The folder beside a file goes along when the file is renamed: so rotation costs nothing.

It is found by what it tells of its file (device, inode, and the CRCs of both ends, see known.py):

    app.log → app.log.1                   who opens either finds that the folder of `app.log` is that of another file,
                                          which lies beside it by now, or that `app.log.1` has none, and `app.log` may
    app.log.1 → app.log.2, app.log → …    the folders change places, one after the other, until each is at home
    app.log copied, and truncated         the folder goes to the copy, if it holds the lines that were indexed

What belongs to a file that is gone comes to lie where it is overwritten. Two folders change places by three renames;
where the process dies between them, one file is indexed anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.log.io import osfile
from jitdb.log.io.filenames import SIDECAR_SUFFIX
from jitdb.log.lines.files.opening import open_lines
from jitdb.log.lines.files.stamp import Stamp, stamp_at
from jitdb.log.lines.keeping.known import Known
from jitdb.log.lines.keeping.storing import locked, stored_in, write_known

_TURNS: Final = 100  # files that were renamed in a row
_ROTATIONS: Final = 32  # since somebody looked last
_COPIES: Final = 8  # files that are looked at: may they be the copy?
_COUNTED: Final = re.compile(r"^(.*?)(\d+)([^0-9]*)$")
_DATED: Final = re.compile(r"[-._]\d{4}-?\d\d-?\d\d(?:[-T_.:]?\d+)*")


class Places(NamedTuple):
    """folder: which one a file's name gives it; in it, `tag` is the one of the form that is asked (form.py)"""

    folder: Callable[[Path], Path]
    tag: str


def bring_home(path: Path, stamp: Stamp, places: Places) -> bool:
    """See that the folder of this file, if it has one under another name, is at its place: whether one was moved.

    Raises OSError.
    """
    folder, tag, is_moved = places.folder(path), places.tag, False
    for _ in range(_TURNS):
        stored = stored_in(folder / tag)
        if stored is None or stored.stamp.is_of(stamp):
            break
        there = renamed(path, stored.stamp)
        if there is None or not _exchange(folder, places.folder(there), tag, stored, stamp_at(there)):
            break
        is_moved = True
    if stored is None or not stored.stamp.is_of(stamp):
        for name in names_before(path.name):
            other = places.folder(path.with_name(name))
            known = stored_in(other / tag)
            if known is not None and known.stamp.is_of(stamp) and not _is_at(path.with_name(name), stamp):
                return _exchange(other, folder, tag, known, stamp) or is_moved
    return is_moved


def give_to_copy(path: Path, stored: Known, places: Places) -> bool:
    """Whether there is a copy of what this file was. The folder, which is locked, is moved to it."""
    for copy in _copies(path, stored):
        folder = places.folder(copy)
        if not osfile.fs.exists(folder):
            osfile.fs.rename(places.folder(path), folder)
            return True
    return False


def _exchange(here: Path, there: Path, tag: str, stored: Known, stamp: Stamp | None) -> bool:
    """Let two folders change places, the second of which need not be; False where that must not be.

    stored: what the first one tells
    stamp:  of its file, whose name the second one has
    """
    with locked(here / tag):
        if stored_in(here / tag) != stored:
            return False  # somebody was sooner
        if not osfile.fs.exists(there):
            osfile.fs.rename(here, there)
            _note_rename(there / tag, stored, stamp)
            return True
        other = stored_in(there / tag)
        if other is None or other.stamp.is_of(stored.stamp):
            return False  # it is none of ours, or at home already
        with locked(there / tag):
            between = here.with_name(f".{here.name.removesuffix(SIDECAR_SUFFIX)}.{os.getpid()}{SIDECAR_SUFFIX}")
            osfile.fs.rename(here, between)
            osfile.fs.rename(there, here)
            osfile.fs.rename(between, there)
            _note_rename(there / tag, stored, stamp)
    return True


def _note_rename(folder: Path, stored: Known, stamp: Stamp | None) -> None:
    """To rename a file changes its ctime: that alone is no reason to look at all its blocks."""
    if stamp is not None and stamp[:4] == stored.stamp[:4]:
        write_known(folder, stored._replace(stamp=stamp))


def renamed(path: Path, stamp: Stamp) -> Path | None:
    """Where the file with this device and inode is now, in the same folder."""
    with os.scandir(path.parent) as entries:
        names = [entry.name for entry in entries if entry.inode() == stamp.inode and entry.name != path.name]
    return next((path.with_name(name) for name in names if _is_at(path.with_name(name), stamp)), None)


def _is_at(path: Path, stamp: Stamp) -> bool:
    found = stamp_at(path)
    return found is not None and found.is_of(stamp)


def names_before(name: str) -> Iterator[str]:
    """What a rotated file may have been called.

    >>> [list(names_before(name)) for name in ("app.log.3", "app-2026-11-21.log", "app.log-20261121-07", "app.log")]
    [['app.log.2', 'app.log.1', 'app.log.0', 'app.log'], ['app.log'], ['app.log'], []]
    """
    undated = _DATED.sub("", name)
    counted = _COUNTED.match(name)
    if undated != name:
        yield undated
    elif counted is not None and int(counted[2]):
        last = int(counted[2])
        for number in range(last - 1, max(-1, last - 1 - _ROTATIONS), -1):
            yield f"{counted[1]}{number:0{len(counted[2])}d}{counted[3]}"
        yield counted[1].rstrip("-._") + counted[3]


def _copies(path: Path, stored: Known) -> Iterator[Path]:
    """Files that hold all that this one did when it was looked at, the latest first."""
    stem = _DATED.sub("", path.name).partition(".")[0]
    found = []
    with os.scandir(path.parent) as entries:
        for entry in entries:
            if entry.name.startswith(stem) and entry.name != path.name and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_size and stored.end:
                        found.append((status.st_mtime_ns, path.with_name(entry.name)))
    for _, copy in sorted(found, reverse=True)[:_COPIES]:
        with suppress(OSError):
            file = open_lines(copy, None)
            try:
                guarded = file.guarded(stored.end, stored.stamp.size)
                if file.stamp().size >= guarded and file.crcs(guarded) == (stored.head, stored.tail):
                    yield copy
            finally:
                file.close()
