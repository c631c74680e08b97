"""Where bundles lie, who may read them, and how they are removed."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from jitdb.log.io import osfile
from jitdb.log.io.filenames import BUNDLED, is_bundle_name
from jitdb.log.lines.bundles.bundle import Bundle, unpack
from jitdb.log.lines.keeping.known import locked
from jitdb.log.objects.urls import ObjectUrl, is_url


def remove(bundle: Bundle) -> None:
    """Remove it. Its files are asked one by one until another bundle is made of them."""
    if bundle.place is not None:
        with suppress(OSError), locked(bundle.place.parent):
            osfile.fs.remove(bundle.place)


def stored_bundles(folder: str, store: Path, *, damaged: list[Path] | None = None) -> list[Bundle]:
    """All that lie there. `damaged`: gets the places of those that cannot be read, or are not to be."""
    found = list[Bundle]()
    for place, bundle in _stored(folder, store):
        if bundle is not None:
            found.append(bundle)
        elif damaged is not None:
            damaged.append(place)
    return found


def stored_at(folder: str, place: Path) -> Bundle | None:
    """The bundle at this place."""
    with suppress(OSError):
        data = osfile.fs.read_if_there(place / BUNDLED)
        bundle = None if data is None else unpack(data, folder, place)
        return None if bundle is None or _shows_more(place / BUNDLED, bundle) else bundle
    return None


def _stored(folder: str, store: Path) -> Iterator[tuple[Path, Bundle | None]]:
    with suppress(OSError):
        for name in sorted(osfile.fs.listdir(store)):
            if is_bundle_name(name):
                yield store / name, stored_at(folder, store / name)


def may_grow(bundle: Bundle) -> bool:
    """Whether what is written of its files is seen by nobody but who may read them: the list is ours, or theirs."""
    assert bundle.place is not None
    try:
        return osfile.fs.lstat(bundle.place / BUNDLED).st_uid in (0, os.geteuid(), bundle.kind.access[0])
    except OSError:
        return False


def _shows_more(listed: Path, bundle: Bundle) -> bool:
    """Whether others can read another user's list, but not all its files: indexes get the list's permissions."""
    fs = osfile.fs
    try:
        found = fs.lstat(listed)
        if found.st_uid in (0, os.geteuid()):
            return False
        tops = {os.path.join(bundle.folder, os.path.dirname(file.name)) for file in bundle.files}
        if any(_home(os.path.realpath(top), bundle.folder) != bundle.folder for top in tops):
            return True
        return any(_shows(found, fs.lstat(path)) for path in bundle.paths() if os.path.lexists(path))
    except OSError:
        return True


def _shows(listed: os.stat_result, file: os.stat_result) -> bool:
    if file.st_mode & stat.S_IROTH:
        return False
    groups_file = file.st_gid if file.st_mode & stat.S_IRGRP else None
    if listed.st_mode & stat.S_IROTH or (listed.st_mode & stat.S_IRGRP and listed.st_gid != groups_file):
        return True
    return listed.st_uid != file.st_uid and groups_file not in _groups(listed.st_uid)


def _groups(user: int) -> list[int]:
    """Those that a user is in; none where nobody knows that."""
    with suppress(KeyError):
        known = pwd.getpwuid(user)
        return os.getgrouplist(known.pw_name, known.pw_gid)
    return []


def homes(folders: list[str]) -> dict[str, str]:
    """The folder in whose store the bundles of each folder's files are: the one above all of them, or as near to it as
    the same users may look into all folders on the way.
    """
    of_stores = [folder for folder in folders if is_url(folder)]
    if of_stores:
        return {**_tops(of_stores), **homes([folder for folder in folders if not is_url(folder)])}
    top = os.path.commonpath(folders) if folders else ""
    if len(Path(top).parts) <= 2:  # nothing but the system has these in common
        return {folder: folder for folder in folders}
    return {folder: _home(folder, top) for folder in folders}


def _tops(folders: list[str]) -> dict[str, str]:
    """The same of folders of objects: of each bucket, what is above all of them."""
    found: dict[str, str] = {}
    buckets: dict[str, list[str]] = {}
    for folder in folders:
        buckets.setdefault(ObjectUrl.of(folder).root, []).append(folder)
    for root, below in buckets.items():
        parts = [folder[len(root) :].split("/") for folder in below]
        count = next((at for at, names in enumerate(zip(*parts, strict=False)) if len(set(names)) > 1), None)
        top = root + "/".join(parts[0][: min(map(len, parts)) if count is None else count])
        found |= dict.fromkeys(below, top)
    return found


def _home(folder: str, top: str) -> str:
    while folder != top and (above := os.path.dirname(folder)) != folder and _is_as_open(folder, above):
        folder = above
    return folder


def _is_as_open(folder: str, above: str) -> bool:
    """Whether who may look into the folder above it may look into it, too."""
    inner, outer = os.stat(folder), os.stat(above)
    more = outer.st_mode & ~inner.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    is_one_group = inner.st_gid == outer.st_gid or not outer.st_mode & stat.S_IRWXG
    return inner.st_uid == outer.st_uid and is_one_group and not more
