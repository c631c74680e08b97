"""Which logs belong to a set: files, patterns and folders, and what the names of folders say of what is in them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from jitdb.common.arguments import file_path
from jitdb.common.paths import LOG_PATH
from jitdb.common.words import shown
from jitdb.errors import InvalidArgument, LogError
from jitdb.log.io.filenames import SIDECAR_SUFFIX, is_in_sidecar, without_sidecars
from jitdb.log.lines.files.stamp import stamp_at

Where: TypeAlias = "str | os.PathLike[str]"

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"  # how Spark and Hive write a folder of records without a value
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})")


class Member(NamedTuple):
    """One log of a set.

    path:   where it is
    fields: what is the same in all its records: `_path`, and of each folder `name=value` above it the value, an integer
            if it is written as one, else text
    """

    path: str

    @property
    def fields(self) -> Mapping[str, Any]:
        return fields_of(self.path)

    @property
    def logs(self) -> int:
        """How many logs it is."""
        return 1

    @property
    def key(self) -> Hashable:
        """What it has for itself."""
        return self.path

    @property
    def size(self) -> int:
        """Bytes of its file."""
        try:
            return os.path.getsize(self.path)
        except OSError:
            return 0  # opening it says why

    def look(self) -> object:
        """What tells that its file is what it was: equal to LogSource.settled_stamp() of then."""
        return stamp_at(FilePath(self.path))


def find_members(where: Where | Iterable[Where], *, is_following: bool = False) -> list[Member]:
    """The logs at these places now, ordered by their paths, each once.

    where: a file, a pattern (`*`, `?`, `[…]`, and `**` for folders within folders), a folder, whose files at any depth
           are meant, or several of these
    is_following: what was named may be gone for a while

    Hidden files and what is in sidecar folders (`NAME.jitdb`) are no logs, nor are these folders where other places
    are named with them. Raises LogError for a file that is not there, InvalidArgument.
    """
    places = [file_path(place) for place in ([where] if isinstance(where, str | os.PathLike) else where)]
    found: dict[str, Member] = {}
    real_folder = cache(os.path.realpath)  # to look at each part of each path takes longer than all else
    for place in without_sidecars(places):
        if is_following and not glob.has_magic(place) and not os.path.exists(place):
            continue
        for path in _files(place):
            folder, name = os.path.split(path)
            real = os.path.realpath(path) if os.path.islink(path) else os.path.join(real_folder(folder), name)
            found.setdefault(real, Member(path))
    return sorted(found.values())


@lru_cache(maxsize=4096)
def fields_of(path: str) -> Mapping[str, Any]:
    """What a log's path says of all its records.

    >>> dict(fields_of("logs/date=2026-11-21/hour=7/a.log"))
    {'_path': 'logs/date=2026-11-21/hour=7/a.log', 'date': '2026-11-21', 'hour': 7}
    """
    found: dict[str, Any] = {LOG_PATH: path}
    for part in os.path.dirname(path).split(os.sep):
        name, equals, value = part.partition("=")
        if name and equals:
            found[unquote(name)] = _value(unquote(value))
    return MappingProxyType(found)


def _value(text: str) -> Any:
    if text == _NULL:
        return None
    return int(text) if _INTEGER.fullmatch(text) else text


def _files(place: str) -> Iterator[str]:
    if os.path.isdir(place):
        if place.rstrip(os.sep).endswith(SIDECAR_SUFFIX):
            raise InvalidArgument(f"{shown(place)} is a folder of indexes: name the log, not its indexes")
        yield from _below(place)
    elif glob.has_magic(place) and not os.path.exists(place):
        for path in glob.iglob(place, recursive=True):
            if os.path.isfile(path) and not is_in_sidecar(path):
                yield path
    elif os.path.isfile(place):
        yield place
    elif os.path.exists(place):
        raise InvalidArgument(f"a log is a file: {shown(place)} is none")
    else:
        raise LogError("there is no such file", path=place)


def _below(folder: str) -> Iterator[str]:
    for top, folders, files in os.walk(folder, onerror=_unread):
        folders[:] = [name for name in folders if not name.endswith(SIDECAR_SUFFIX) and not name.startswith(".")]
        yield from (os.path.normpath(os.path.join(top, name)) for name in files if not name.startswith("."))


def _unread(error: OSError) -> None:
    raise LogError(f"the folder cannot be read: {error.strerror}", path=error.filename) from error
