"""Where it is kept what is known of a file that somebody else writes, with its indexes: in one hidden folder beside it.

    .jitdb/INODE/        `lines` (known.py), `lines-lock`, `indexes/`, and what else there is of the file
    .jitdb/INODE-TAG/    the same of it in another form (form.py); of a Parquet or Arrow file, whose tag is "table", a
                         log of its rows too (columnar/)
    .jitdb/IDENTITY/     of many small files (bundles/)

Of objects in stores it is in the user's cache (cached.py).

A file keeps its inode when it is renamed, so rotation moves nothing. The inode alone is the name, and not the device,
for that may have another number after each start of the system; which file it is, `lines` says. Where the folder cannot
be written, there is such a `.jitdb` in the user's cache.

Before, there was a folder beside each file (`NAME.jitdb/`, in it one for each other form). One that is found is moved:
its parts one after the other, each by one rename under its lock, so that a process which dies leaves the rest to the
next one. What cannot be moved is used where it is.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.log.io import osfile
from jitdb.log.io.filenames import (
    BUNDLED,
    CHECKPOINTS,
    INDEXES,
    LINES,
    LINES_LOCK,
    META,
    ROWS,
    ROWS_LOCK,
    SIDECAR_SUFFIX,
    STORE,
    TAIL,
    sidecar_path,
)
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.form import TAG
from jitdb.log.lines.keeping.known import locked, stored_in, write_known
from jitdb.log.objects.cache import bucket_folder, cache_folder, folder_for, name_for, note_root
from jitdb.log.objects.door import Location
from jitdb.log.objects.urls import ObjectUrl, is_url

if TYPE_CHECKING:
    from jitdb.log.objects.shelf import SharedLog, Shelf


class Place(NamedTuple):
    """Where something of a file is kept.

    folder:   it need not exist
    is_entry: whether it is one of a store, named by the file's inode
    """

    folder: Path
    is_entry: bool = False


def place_of(path: Location, stamp: Stamp, tag: str) -> Place:
    """Of the file with this path and stamp, in this form."""
    if isinstance(path, ObjectUrl):
        return Place(folder_for(path) / tag)
    entry = entry_name(stamp.inode, tag)
    sidecar, beside = sidecar_path(path), path.with_name(STORE) / entry
    if os.path.lexists(sidecar):
        move_sidecars(path.parent)
        old = stored_in(sidecar / tag)
        if old is not None and old.stamp.is_of(stamp) and _is_writable(sidecar / tag):
            return Place(sidecar / tag)
    if _is_writable(beside):
        return Place(beside, is_entry=True)
    cached = _in_cache(path.parent) / STORE
    if os.path.lexists(sidecar := Path(f"{_in_cache(path)}{SIDECAR_SUFFIX}")):
        with suppress(OSError):
            _move(sidecar, cached, path.name)
    return Place(cached / entry, is_entry=True)


def store_of(folder: Path | str) -> Path:
    """The folder in which it is kept what is known of the files of this one; it need not exist."""
    if is_url(folder):
        place = ObjectUrl.of(str(folder))
        home = folder_for(place)
        note_root(home, place)
        return home / STORE
    folder = Path(folder)
    beside = folder / STORE
    return beside if _is_writable(beside) else _in_cache(folder) / STORE


def stores_of(folder: Path | str) -> list[Path]:
    """All that there may be."""
    if is_url(folder):
        place = ObjectUrl.of(str(folder))
        return [bucket_folder(place) / name_for(place) / STORE]
    folder = Path(folder)
    return [folder / STORE, _in_cache(folder) / STORE]


def entry_name(inode: int, tag: str) -> str:
    """
    >>> entry_name(1234, ""), entry_name(1234, "prefix")
    ('1234', '1234-prefix')
    """
    return f"{inode}-{tag}" if tag else str(inode)


def parse_entry(name: str) -> tuple[int, str] | None:
    """The inode and the form; None for what is no entry of a file.

    >>> parse_entry("1234"), parse_entry("1234-prefix"), parse_entry("x-1"), parse_entry("lines-lock")
    ((1234, ''), (1234, 'prefix'), None, None)
    """
    found = _ENTRY.fullmatch(name)
    return None if found is None else (int(found[1]), found[2] or "")


_ENTRY: Final = re.compile(r"(\d{1,20})(?:-([a-z][a-z0-9-]*))?")


def _is_writable(folder: Path) -> bool:
    try:
        osfile.fs.refuse_links(folder / LINES)
    except PermissionError:
        return False
    while not folder.is_dir():
        folder = folder.parent
    return os.access(folder, os.W_OK | os.X_OK)


def _in_cache(path: Path) -> Path:
    return cache_folder() / name_for(path)


def shelf_at(place: str | os.PathLike[str] | Shelf | None, told: dict[str, SharedLog] | None = None) -> Shelf | None:
    """What indexes are shared by that are kept at this place: None for one on the disk. told: see Shelf."""
    if place is None or (isinstance(place, str | os.PathLike) and not is_url(place)):
        return None
    from jitdb.log.objects.shelf import Shelf  # late: it loads what talks to stores

    if isinstance(place, Shelf):
        return place
    return Shelf(os.fspath(place), cache_folder() / "objects", told)


# What is kept in one


_MADE_AGAIN: Final = frozenset({BUNDLED, LINES, LINES_LOCK, CHECKPOINTS, TAIL, INDEXES, ROWS, ROWS_LOCK})


def is_made_again(folder: Path) -> bool:
    """Whether all that is in it can be made again. Raises OSError."""
    return set(osfile.fs.listdir(folder)) <= _MADE_AGAIN


def remove_folder(folder: Path) -> None:
    """Remove it, at once for all who look for it. Raises OSError."""
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    osfile.fs.rename(folder, aside)
    osfile.fs.remove(aside)


# Folders from before


def move_sidecars(folder: Path) -> None:
    """Move those of all files in this folder, whichever file they turn out to be of by now."""
    with suppress(OSError):
        for name in osfile.fs.listdir(folder):
            if name.endswith(SIDECAR_SUFFIX) and name != STORE:
                with suppress(OSError):
                    _move(folder / name, folder / STORE, name.removesuffix(SIDECAR_SUFFIX))


def _move(sidecar: Path, store: Path, name: str) -> None:
    """Move the one of the file of this name, unless it is that of a log of jitdb's, or a link, which may lead to
    another disk. Raises OSError.
    """
    if sidecar.is_symlink() or not sidecar.is_dir() or osfile.fs.exists(sidecar / META):
        return
    tags = [tag for tag in osfile.fs.listdir(sidecar) if TAG.fullmatch(tag)]
    for tag in tags:
        if not (sidecar / tag).is_symlink():
            _move_part(sidecar / tag, store, tag, name)
    if osfile.fs.exists(sidecar / LINES):
        _move_part(sidecar, store, "", name)
    elif tags:
        osfile.fs.rmdir(sidecar)


def _move_part(part: Path, store: Path, tag: str, name: str) -> None:
    with locked(part, make=False):
        known = stored_in(part)
        if known is None:
            return
        entry = store / entry_name(known.stamp.inode, tag)
        if osfile.fs.exists(entry / LINES):  # another process did not find this one, and made that
            if is_made_again(part):
                remove_folder(part)
            return
        osfile.fs.make_folders(store)
        write_known(part, known._replace(name=name))
        osfile.fs.rename(part, entry)
