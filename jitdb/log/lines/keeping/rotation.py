"""The folder beside a file when the file is renamed, compressed or gone.

It goes along when the file is renamed: so rotation costs nothing. It is found by what it says of its file (device,
inode, and the CRCs of both ends, see known.py):

    app.log → app.log.1                   opening either file shows it: the folder of `app.log` says that it belongs to
                                          another file, now beside it, or `app.log.1` has none and `app.log` may have it
    app.log.1 → app.log.2, app.log → …    the folders change places, one after the other, until each is at home
    app.log copied, and truncated         the folder goes to the copy, if it holds the lines that were indexed
    app.log.1 → app.log.1.gz              the compressed file has a new folder, and the old one is removed

So the folder of a file that is gone ends up at a place that the next file overwrites. Two folders change places by
three renames; if the process dies between them, one file is indexed anew. Only a folder that holds nothing but what can
be made again is removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from jitdb.common.formats import without_ending
from jitdb.common.zlib import crc32
from jitdb.errors import LogError
from jitdb.log.io import osfile
from jitdb.log.io.filenames import CHECKPOINTS, INDEXES, LINES, LINES_LOCK, SIDECAR_SUFFIX, TAIL, log_beside
from jitdb.log.lines.files.file import ENDS
from jitdb.log.lines.files.opening import head_of, open_lines
from jitdb.log.lines.files.rotated_names import family, is_packed, names_before, stem
from jitdb.log.lines.files.stamp import Stamp, stamp_at
from jitdb.log.lines.form import TAG
from jitdb.log.lines.keeping.known import Known, folder_for, locked, stored_in, write_known

_TURNS: Final = 100  # files that were renamed in a row
_COPIES: Final = 8  # files that are looked at: may they be the copy?
_MADE_AGAIN: Final = frozenset({LINES, LINES_LOCK, CHECKPOINTS, TAIL, INDEXES})


def bring_home(path: Path, stamp: Stamp, tag: str) -> bool:
    """Move the folder of this file, if it has one under another name, to its place: whether one was moved.

    `tag`: of the form of lines that is asked (form.py), which has a folder of its own in that. Raises OSError.
    """
    folder, is_moved = folder_for(path), False
    for _ in range(_TURNS):
        stored = stored_in(folder / tag)
        if stored is None or stored.stamp.is_of(stamp):
            break
        there = renamed(path, stored.stamp)
        if there is None or not _exchange(folder, folder_for(there), tag, stored, stamp_at(there)):
            break
        is_moved = True
    if stored is None or not stored.stamp.is_of(stamp):
        for name in names_before(path.name):
            other = folder_for(path.with_name(name))
            known = stored_in(other / tag)
            if known is not None and known.stamp.is_of(stamp) and not _is_at(path.with_name(name), stamp):
                return _exchange(other, folder, tag, known, stamp) or is_moved
    return is_moved


def give_to_copy(path: Path, stored: Known) -> bool:
    """Whether there is a copy of what this file was. The folder, which is locked, is moved to it."""
    for copy in _copies(path, stored):
        folder = folder_for(copy)
        if not osfile.fs.exists(folder):
            osfile.fs.rename(folder_for(path), folder)
            return True
    return False


def _exchange(here: Path, there: Path, tag: str, stored: Known, stamp: Stamp | None) -> bool:
    """Let two folders change places, the second of which need not be; False where that must not be.

    stored: what the first one tells
    stamp:  of its file, whose name the second one has
    """
    with locked(here / tag):
        if stored_in(here / tag) != stored:
            return False  # another process was first
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


def _copies(path: Path, stored: Known) -> Iterator[Path]:
    """Files that hold all that this one did when it was looked at, the latest first."""
    beginning, found = stem(path.name), []
    with os.scandir(path.parent) as entries:
        for entry in entries:
            if entry.name.startswith(beginning) and entry.name != path.name and entry.is_file(follow_symlinks=False):
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


# Folders of files that are gone


def leftovers(where: str) -> list[Path]:
    """Those below a folder, or of the files that a path or a pattern means."""
    if os.path.isdir(where):
        found = _below(where)
    else:
        from glob import iglob

        found = (Path(path) for path in iglob(f"{where}{SIDECAR_SUFFIX}", recursive=True))
    return sorted(filter(is_leftover, found))


def is_leftover(sidecar: Path) -> bool:
    """Whether it is one."""
    file = log_beside(sidecar)
    return file is not None and _is_left_by(file, sidecar)


def size_of(sidecar: Path) -> int:
    """Bytes of its files."""
    return sum(path.stat().st_size for path in sidecar.rglob("*") if path.is_file())


def remove_of_packed(path: Path) -> None:
    """Remove the sidecars that files had before they became this one, or another of its family, by compression.

    Only those whose file is there under no name, while a compressed file begins with the text that it had.
    """
    for packed in [path] if is_packed(path.name) else _packed(path):
        name = without_ending(packed.name)
        for before in (name, *names_before(name)):
            file = packed.with_name(before)
            with suppress(OSError, LogError):
                _remove_if_packed(file, folder_for(file), packed)


def _packed(path: Path) -> list[Path]:
    """The compressed files of its family."""
    first = family(path.name)
    names = [name for name in osfile.fs.listdir(path.parent) if is_packed(name) and family(name) == first]
    return [path.with_name(name) for name in names]


def _remove_if_packed(file: Path, sidecar: Path, packed: Path) -> None:
    if not _is_left_by(file, sidecar):
        return
    with ExitStack() as locks:
        for folder in _parts(sidecar):
            locks.enter_context(locked(folder, make=False))
        if _is_left_by(file, sidecar) and all(_became(packed, file, stored_in(part)) for part in _parts(sidecar)):
            aside = sidecar.with_name(f".{sidecar.name.removesuffix(SIDECAR_SUFFIX)}.{os.getpid()}{SIDECAR_SUFFIX}")
            osfile.fs.rename(sidecar, aside)  # at once: a name that the next file may need
            osfile.fs.remove(aside)


def _became(packed: Path, file: Path, known: Known | None) -> bool:
    """Whether the file of which this is known is there no more, and the compressed one begins with its text."""
    if known is None or not known.end or not _begins(packed, known):
        return False
    there = renamed(file, known.stamp)  # or a new file that has its inode
    return there is None or not _begins(there, known)


def _begins(path: Path, known: Known) -> bool:
    size = min(known.end, ENDS)
    head = head_of(path, size)
    return len(head) >= size and crc32(head[:size]) == known.head


def _is_left_by(file: Path, sidecar: Path) -> bool:
    """Whether it is that of a file which is there no more, and holds nothing but what can be made again."""
    if os.path.lexists(file) or sidecar.is_symlink() or not sidecar.is_dir():
        return False
    parts = _parts(sidecar)
    others = (entry.name for folder in {sidecar, *parts} for entry in folder.iterdir() if entry not in parts)
    return bool(parts) and all(name in _MADE_AGAIN for name in others)


def _parts(sidecar: Path) -> list[Path]:
    """Its folders that tell of the file: one for each form in which the file was asked."""
    forms = [entry for entry in sidecar.iterdir() if TAG.fullmatch(entry.name) and not entry.is_symlink()]
    return sorted(folder for folder in (sidecar, *forms) if (folder / LINES).is_file())


def _below(folder: str) -> Iterator[Path]:
    for top, folders, _ in os.walk(folder):
        yield from (Path(top, name) for name in folders if name.endswith(SIDECAR_SUFFIX) and name != SIDECAR_SUFFIX)
        folders[:] = [name for name in folders if not name.endswith(SIDECAR_SUFFIX) and not name.startswith(".")]
