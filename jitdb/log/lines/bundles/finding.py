"""Which bundles there are in a folder, and making new ones of the files that are in none.

A file goes into a bundle if it is small, seems to be JSON Lines to its end, and has no indexes of its own. One that was
changed since is asked on its own, and so gets some: a file that grows is in a bundle once, for as long as it does not.
Who finds a bundle void removes it under the folder's lock, and puts its other files into a new one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.log.io import osfile
from jitdb.log.io.filenames import BUNDLED
from jitdb.log.lines.bundles.bundle import Bundle, BundledFile, unpack
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.keeping.storing import locked

SMALL: Final = 4 << 20  # bytes of a file whose scan takes no longer than what Python does about it
LEAST: Final = 8  # files of a bundle: fewer are asked one by one
LARGEST: Final = 128 << 20  # bytes of a bundle, about: to scan so many takes some 60 ms, once one of its files changed
_MOST: Final = 1024  # its files: each is looked at whenever it is asked


class _Candidate(NamedTuple):
    access: tuple[int, int, int]  # owner, group and mode: files of one bundle have the same
    file: BundledFile


def find_bundles(
    folder: str, store: Path | None, names: Collection[str], has_own: Callable[[str], bool], changed: set[str]
) -> list[Bundle]:
    """The bundles of the files in this folder: those that are good, and new ones of these names.

    store:   the folder of bundles; None where they are in memory
    has_own: whether the file of this name has indexes of its own
    changed: names of files that are to be asked on their own; those that were changed since they were in a bundle are
             put there
    """
    stored = [] if store is None else list(_stored(folder, store))
    good = [bundle for _, bundle in stored if bundle is not None and bundle.is_current()]
    held = {file.name for bundle in good for file in bundle.files}
    wanted = [name for name in names if name not in held and name not in changed and not has_own(name)]
    if len(good) == len(stored) and len(wanted) < LEAST:
        return good
    # Before the lock is taken: to look at many files takes longer than others wait for it.
    found = [candidate for name in wanted if (candidate := _candidate(folder, name)) is not None]
    if store is None:
        return _formed(folder, None, found)
    try:
        with locked(store):
            good = list(_kept(folder, store, changed))
            held = {file.name for bundle in good for file in bundle.files} | changed
            return good + _formed(folder, store, [each for each in found if each.file.name not in held])
    except OSError:
        return good


def remove(bundle: Bundle) -> None:
    """Remove it; its files are asked one by one from now on, until somebody makes another one of them."""
    if bundle.place is not None:
        with suppress(OSError), locked(bundle.place.parent):
            osfile.fs.remove(bundle.place)


def stored_bundles(folder: str, store: Path) -> list[Bundle]:
    """All that lie there, good or void."""
    return [bundle for _, bundle in _stored(folder, store) if bundle is not None]


def _stored(folder: str, store: Path) -> Iterator[tuple[Path, Bundle | None]]:
    with suppress(OSError):
        for name in sorted(osfile.fs.listdir(store)):
            place, data = store / name, None
            if len(name) != 32:
                continue
            with suppress(OSError):
                data = osfile.fs.read_if_there(place / BUNDLED)
            yield place, None if data is None else unpack(data, folder, place)


def _kept(folder: str, store: Path, changed: set[str]) -> Iterator[Bundle]:
    """Those that are good; others are removed. The lock is held."""
    for place, bundle in _stored(folder, store):
        now = None if bundle is None else bundle.followed()
        if now is None:
            if bundle is not None:
                changed |= bundle.changed()
            osfile.fs.remove(place)
            continue
        if now != bundle:
            now.write()
        yield now


def _formed(folder: str, store: Path | None, found: Sequence[_Candidate]) -> list[Bundle]:
    """New bundles of these files. Raises OSError."""
    made = []
    ordered = sorted(found, key=lambda candidate: candidate.access)  # and as they were given
    for _, alike in groupby(ordered, lambda candidate: candidate.access):
        for files in _parts([candidate.file for candidate in alike]):
            identity = os.urandom(16)
            bundle = Bundle(folder, None if store is None else store / identity.hex(), identity, tuple(files))
            if store is not None:
                bundle.write()
            made.append(bundle)
    return made


def _parts(files: list[BundledFile]) -> Iterator[list[BundledFile]]:
    """Cut into parts of about one number of files, none larger than need be."""
    size = sum(file.stamp.size for file in files)
    count = max(-(-size // LARGEST), -(-len(files) // _MOST))
    for number in range(count):
        part = files[len(files) * number // count : len(files) * (number + 1) // count]
        if len(part) >= LEAST:
            yield part


def _candidate(folder: str, name: str) -> _Candidate | None:
    """The file, if it may be in a bundle."""
    fs = osfile.fs
    with suppress(OSError), osfile.Descriptor(fs, os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW) as fd:
        found = fs.fstat(fd)
        stamp = Stamp.of(found)
        is_small = 0 < stamp.size <= SMALL and stamp.is_settled()
        # Where the first line is JSON, it is an object then. Where it is not, the scan finds that out, and each file of
        # the bundle is opened on its own, which looks more closely.
        if is_small and fs.read(fd, 1, 0) == b"{" and fs.read(fd, 1, stamp.size - 1) == b"\n":
            return _Candidate((found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)), BundledFile(name, stamp))
    return None
