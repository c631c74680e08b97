"""What goes when a file is another one, or gone.

    another text is in the file       what was kept of the old one goes along with a copy that was made before
                                      (rotation by `copytruncate`), and is erased where there is none: nothing of what
                                      somebody deleted from his file shall stay
    another file has its name, and    (it was saved anew by an editor, copied back, or rotated and compressed.) What was
    it is nowhere in the folder       kept of it is the other file's, where that begins and ends as it did; else it is
                                      removed
    it is nowhere in the folder       what was kept of it is removed when nobody touched it for an hour: the file may be
                                      about to come back

"Nowhere" is what two listings of the folder say, for one may miss a file that is renamed meanwhile. What another
process is building stays for now, and so does what cannot be made again.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.common.formats import without_ending
from jitdb.log.io import osfile
from jitdb.log.io.filenames import CHECKPOINTS, INDEXES, ROWS, TAIL
from jitdb.log.io.locks import is_any_held
from jitdb.log.lines.files.file import LineFile
from jitdb.log.lines.files.opening import open_lines
from jitdb.log.lines.files.rotated_names import stem
from jitdb.log.lines.keeping.known import Known, Verdict, locked, stored_in
from jitdb.log.lines.keeping.places import (
    entry_name,
    is_made_again,
    move_sidecars,
    parse_entry,
    remove_folder,
)

_COPIES: Final = 8  # files that are looked at: may they be the copy?
_GRACE: Final = 3600.0  # seconds
_SHORT: Final = 0.002  # seconds of a look into a folder; after a longer one, of thousands of files, comes a pause of
_SHARE: Final = 20  # times what the look took
_LOCK: Final = "lock"  # of indexes (indexes/files/folder.py)

_next_looks: dict[Path, float] = {}  # when that is over, of folders


class Entry(NamedTuple):
    """What is kept of a file in one form."""

    folder: Path
    inode: int
    tag: str


def entries_in(store: Path) -> Iterator[Entry]:
    """All that are kept there. Raises OSError."""
    for name in osfile.fs.listdir(store):
        found = parse_entry(name)
        if found is not None:
            yield Entry(store / name, *found)


# Another text in the file


def went_to_copy(path: Path, stored: Known, folder: Path, tag: str) -> bool:
    """Whether there is a copy of what this file was. The entry, which is locked, is moved to it. Raises OSError."""
    for copy in _copies(path, stored):
        entry = folder.with_name(entry_name(copy, tag))
        if not osfile.fs.exists(entry):
            osfile.fs.rename(folder, entry)
            return True
    return False


def _copies(path: Path, stored: Known) -> Iterator[int]:
    """The inodes of files that hold all that this one did when it was looked at, the latest first."""
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
            file = open_lines(copy)
            try:
                guarded = file.guarded(stored.end, stored.stamp.size)
                if file.crcs(guarded) == (stored.head, stored.tail):
                    yield file.stamp().inode
            finally:
                file.close()


def erase(folder: Path) -> None:
    """Remove what was made of the text that was in the file. The folder is locked. Raises OSError."""
    own = [folder / name for name in (INDEXES, CHECKPOINTS, TAIL, ROWS)]
    for each in [*own, *folder.glob("*.index"), *folder.glob("*.codes")]:
        with suppress(FileNotFoundError):
            osfile.fs.remove(each)


def erase_other_forms(path: Path, file: LineFile, folder: Path) -> None:
    """The same of what is kept of this file in other forms, before anybody asks it in them. Raises OSError."""
    stamp = file.stamp()
    for entry in entries_in(folder.parent):
        if entry.inode == stamp.inode and entry.folder != folder:
            known = stored_in(entry.folder)
            if known is not None and known.judge(file, stamp, is_settled=False) is Verdict.ANOTHER:
                with suppress(FileNotFoundError), locked(entry.folder, make=False):
                    if not went_to_copy(path, known, entry.folder, entry.tag):
                        erase(entry.folder)


# Files that are gone


def take_over(path: Path, file: LineFile, folder: Path, tag: str) -> None:
    """Before something is first kept of a file: see whether it is there already, of the file that had its name before.

    Removes what the table above says, too. Raises OSError.
    """
    if time.monotonic() < _next_looks.get(folder.parent, 0.0) or not folder.parent.is_dir():
        return
    begin = time.thread_time()
    move_sidecars(path.parent)
    departed = _departed(path.parent, folder.parent)
    if (took := time.thread_time() - begin) > _SHORT:
        _next_looks[folder.parent] = time.monotonic() + _SHARE * took
    for entry in departed:
        with suppress(OSError):  # another process was first
            known = stored_in(entry.folder)
            is_before = known is not None and known.name in (path.name, without_ending(path.name))
            if is_before and entry.tag == tag and _is_of(known, file) and not osfile.fs.exists(folder):
                with locked(entry.folder, make=False):
                    osfile.fs.rename(entry.folder, folder)
            elif is_before or _is_left_alone(entry.folder):
                remove_entry(entry.folder)


def _departed(folder: Path, store: Path) -> list[Entry]:
    """Those whose file is nowhere in the folder."""
    with os.scandir(folder) as found:
        there = {each.inode() for each in found if each.is_file(follow_symlinks=False)}
    gone = [entry for entry in entries_in(store) if entry.inode not in there]
    there = set(names_by_inode(folder)) if gone else there
    return [entry for entry in gone if entry.inode not in there]


def names_by_inode(folder: Path) -> dict[int, str]:
    """The files of the folder. What a listing says of an inode is another one's where something is mounted, or laid
    over it: so each is asked. Raises OSError.
    """
    names = {}
    with os.scandir(folder) as found:
        for each in found:
            with suppress(FileNotFoundError):
                status = each.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    names[status.st_ino] = each.name
    return names


def _is_of(known: Known | None, file: LineFile) -> bool:
    """Whether the file begins and ends as that one did."""
    return known is not None and known.judge(file, file.stamp(), is_settled=False) < Verdict.ANOTHER


def _is_left_alone(folder: Path) -> bool:
    latest = max((each.stat().st_mtime for each in (folder, *folder.iterdir())), default=0.0)
    return not -_GRACE < time.time() - latest < _GRACE


def remove_entry(folder: Path, *, forget: bool = False) -> bool:
    """Remove it; False where it stays: another process builds it, or it holds what cannot be made again.

    forget: that, too
    """
    with suppress(OSError), locked(folder, make=False):
        if not forget and (_is_being_built(folder) or not is_made_again(folder)):
            return False
        remove_folder(folder)
        return True
    return False


def _is_being_built(folder: Path) -> bool:
    with suppress(FileNotFoundError):
        return is_any_held(osfile.fs, folder / INDEXES / _LOCK)
    return False
