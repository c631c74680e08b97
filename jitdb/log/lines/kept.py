"""What is kept of files that somebody else writes, for who asks what it is, and to forget it: `jitdb indexes`."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple, TypeAlias

from jitdb.common.arguments import file_path
from jitdb.log.io import osfile
from jitdb.log.io.filenames import LINES_LOCK, META, SETS, SIDECAR_SUFFIX, STORE, log_path
from jitdb.log.lines.bundles.stores import remove, stored_bundles
from jitdb.log.lines.keeping.cached import cached
from jitdb.log.lines.keeping.known import stored_in
from jitdb.log.lines.keeping.leaving import entries_in, names_by_inode, remove_entry
from jitdb.log.lines.keeping.places import move_sidecars, stores_of
from jitdb.log.objects.urls import is_url

Where: TypeAlias = "str | os.PathLike[str]"


class Kept(NamedTuple):
    """What is kept of a file in one form, or of many small files together.

    path:    of the file; of one that is gone, where it was
    bytes:   that this takes
    is_gone: whether the file is in its folder no more
    form:    as which lines it was asked ("prefix", ...); empty for plain JSON Lines
    files:   the names of the small files that are one bundle; else empty, and `path` is the file
    sets:    how many sets of records are kept under names
    folder:  where it lies
    """

    path: str
    bytes: int
    is_gone: bool
    form: str
    files: tuple[str, ...]
    sets: int
    folder: str


def kept(where: Where | Iterable[Where] = ".") -> list[Kept]:
    """What jitdb keeps of the files of others at these places: files, patterns, or folders with all that is in them.

    Of objects in stores: of those whose URLs begin so. Logs of jitdb's own are not among them. What a caller keeps
    elsewhere (`indexes=`) is not found. Raises OSError.
    """
    places = [where] if isinstance(where, str | os.PathLike) else list(where)
    found: dict[str, Kept] = {}
    for place in map(file_path, places):
        found.update((each.folder, each) for each in _kept_at(place))
    return sorted(found.values())


def forget(where: Where | Iterable[Where]) -> list[Kept]:
    """Remove all that kept() finds there, sets under names, too, and give what was removed.

    Programs that use it go on, and the next question builds what it needs. Raises OSError.
    """
    found = [each for each in kept(where) if _is_removed(each)]
    for store in {Path(each.folder).parent for each in found}:
        _remove_if_empty(store)
    return found


def _is_removed(each: Kept) -> bool:
    if not each.files:
        return remove_entry(Path(each.folder), forget=True)
    store = Path(each.folder).parent
    bundles = [bundle for bundle in stored_bundles(each.path, store) if str(bundle.place) == each.folder]
    for bundle in bundles:
        remove(bundle)
    return bool(bundles)


def _remove_if_empty(store: Path) -> None:
    fs = osfile.fs
    with suppress(OSError):
        if store.name == STORE and set(fs.listdir(store)) <= {LINES_LOCK}:
            with suppress(FileNotFoundError):
                fs.unlink(store / LINES_LOCK)
            fs.rmdir(store)


def _kept_at(place: str) -> Iterator[Kept]:
    if is_url(place):
        is_bucket = place.count("/") == 2 and not place.endswith(
            "/"
        )  # else another one, whose name begins so, is meant
        for each in cached(f"{place}/" if is_bucket else place):
            yield Kept(each.url, each.bytes, False, each.form, (), _sets_in(Path(each.folder)), each.folder)
        return
    if os.path.isdir(place):
        for top, folders, _ in os.walk(os.path.realpath(place)):
            yield from _kept_in(Path(top), lambda name: True)
            folders[:] = [name for name in folders if not name.endswith(SIDECAR_SUFFIX) and not name.startswith(".")]
    elif glob.has_magic(place) and not os.path.lexists(place):
        folder, pattern = os.path.split(place)
        for top in filter(os.path.isdir, glob.iglob(folder or ".", recursive=True)):
            yield from _kept_in(Path(os.path.realpath(top)), lambda name: fnmatchcase(name, pattern))
    else:
        path = log_path(place)
        yield from _kept_in(path.parent, lambda name: name == path.name)


def _kept_in(folder: Path, is_wanted: Callable[[str], bool]) -> Iterator[Kept]:
    """Of the files of these names in one folder."""
    move_sidecars(folder)
    there: dict[int, str] = {}
    with suppress(FileNotFoundError):
        there = names_by_inode(folder)
    for store in stores_of(folder):
        with suppress(FileNotFoundError, NotADirectoryError):
            for entry in entries_in(store):
                name = there.get(entry.inode)
                shown = name or _name_in(entry.folder) or f"inode {entry.inode}"
                if is_wanted(shown):
                    yield _described(entry.folder, folder / shown, name is None, entry.tag)
        for bundle in stored_bundles(str(folder), store):
            names = tuple(file.name for file in bundle.files if file.name)
            if any(map(is_wanted, names)) and bundle.place is not None:
                yield _described(bundle.place, folder, bundle.is_gone(), "", names)
    for sidecar in folder.glob(f"?*{SIDECAR_SUFFIX}"):  # that could not be moved
        path = folder / sidecar.name.removesuffix(SIDECAR_SUFFIX)
        if is_wanted(path.name) and stored_in(sidecar) is not None and not (sidecar / META).exists():
            yield _described(sidecar, path, not os.path.lexists(path), "")


def _name_in(entry: Path) -> str:
    known = stored_in(entry)
    return "" if known is None else known.name


def _described(place: Path, path: Path, is_gone: bool, form: str, files: tuple[str, ...] = ()) -> Kept:
    size = sum(each.stat().st_size for each in place.rglob("*") if each.is_file())
    return Kept(str(path), size, is_gone, form, files, _sets_in(place), str(place))


def _sets_in(place: Path) -> int:
    return len(osfile.fs.listdir(place / SETS)) if (place / SETS).is_dir() else 0
