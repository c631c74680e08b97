"""What is kept of objects of stores, in the user's cache: what there is, and that it stays below a bound.

    objects/BUCKET/root         the URL of the bucket
    objects/BUCKET/NAME/        of an object: as `.jitdb/INODE/` of a file (places.py)
    objects/BUCKET/NAME/TAG/    the same in another form
    objects/BUCKET/NAME/root    the URL of what many objects lie below, which are asked together
    objects/BUCKET/NAME/marks   where the requests of the next listing begin (objects/listing.py)
    objects/BUCKET/NAME/.jitdb/ their bundles (bundles/bundle.py)

What was used longest ago goes first. All of it can be made again, but for sets under names, which stay.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.errors import InvalidArgument
from jitdb.log.io import osfile
from jitdb.log.io.filenames import BUNDLED, STORE
from jitdb.log.lines.keeping.known import stored_in
from jitdb.log.lines.keeping.leaving import remove_entry
from jitdb.log.objects.cache import ROOT, cache_folder

MOST: Final = 10 << 30  # bytes, unless JITDB_CACHE_BYTES says otherwise
_VARIABLE: Final = "JITDB_CACHE_BYTES"
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE: Final = re.compile(r"(\d{1,15})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_SELDOM: Final = 60.0  # seconds between two looks at all of it
_YOUNG: Final = 600.0  # seconds in which what was used is in use

_looked = 0.0


class Cached(NamedTuple):
    """What is kept of one object, in one form, or of many that are asked together.

    form:  as which lines it was asked; empty for plain JSON Lines
    bytes: that it takes
    used:  when it was used last, in seconds since 1970
    """

    url: str
    form: str
    bytes: int
    used: float
    folder: str


def cached(begin: str = "") -> list[Cached]:
    """What is kept of objects whose URLs begin so, what was used last first. Raises OSError."""
    found = [each for bucket in _folders(cache_folder() / "objects") for each in _in_bucket(bucket)]
    return sorted((each for each in found if each.url.startswith(begin)), key=lambda each: (-each.used, each.url))


def most_bytes() -> int:
    """The bound. Raises InvalidArgument."""
    text = os.environ.get(_VARIABLE, "")
    found = _SIZE.fullmatch(text.strip()) if text else None
    if text and found is None:
        raise InvalidArgument(f"{_VARIABLE} is a size, such as 20G, not {text!r}")
    return MOST if found is None else int(found[1]) * _UNITS[found[2].upper()]


def used(folder: Path) -> None:
    """Note that it is used now."""
    with suppress(OSError):
        os.utime(folder)


def make_room() -> None:
    """Remove what was used longest ago, as long as there is more than the bound. Looks once a minute at most."""
    global _looked
    if _looked and time.monotonic() - _looked < _SELDOM:
        return
    _looked, most = time.monotonic(), most_bytes()
    with suppress(OSError):
        found = cached()
        size = sum(each.bytes for each in found)
        for each in reversed(found):
            if size <= most or time.time() - each.used < _YOUNG:
                break
            if remove_entry(Path(each.folder)):
                size -= each.bytes


def _in_bucket(bucket: Path) -> Iterator[Cached]:
    root = _root_in(bucket)
    for place in _folders(bucket):
        for folder in (place, *_folders(place), *_folders(place / STORE)):
            url, form = "", "" if folder.parent.name == STORE or folder == place else folder.name
            if (folder / BUNDLED).exists():
                url = f"{_root_in(place)}/"
            elif (known := stored_in(folder)) is not None:
                url = f"{root}/{known.name}"
            if url:
                size = sum(each.stat().st_size for each in _files_of(folder))
                yield Cached(url, form, size, folder.stat().st_mtime, str(folder))


def _root_in(folder: Path) -> str:
    return (osfile.fs.read_if_there(folder / ROOT) or b"").decode("utf-8", "replace").strip()


def _files_of(folder: Path) -> Iterator[Path]:
    """The files of one form: not those of others, whose folders lie in it."""
    for each in folder.rglob("*"):
        first = folder / each.relative_to(folder).parts[0]
        if each.is_file() and (first == each or not (first / "lines").exists()):
            yield each


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []
