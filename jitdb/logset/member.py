"""Which logs belong to a set (files, patterns and folders), and what the names of folders say of what is in them."""

from __future__ import annotations

import glob
import os
import re
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from jitdb.common.arguments import file_path
from jitdb.common.paths import LOG_PATH
from jitdb.common.words import shown
from jitdb.errors import InvalidArgument, LogError, LogWarning, outside
from jitdb.log.io.filenames import SIDECAR_SUFFIX, is_in_sidecar, without_sidecars
from jitdb.log.lines.files.copies import is_copy
from jitdb.log.lines.files.stamp import Stamp, stamp_at
from jitdb.log.objects.urls import ObjectUrl, is_url

if TYPE_CHECKING:
    from jitdb.log.objects.files import Found
    from jitdb.operators.nodes.operation import Operation

Where: TypeAlias = "str | os.PathLike[str]"

NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"  # how Spark and Hive write a folder of records without a value
_SUMMARIES: Final = ("_metadata", "_common_metadata")  # that Spark, Dask and pyarrow write beside Parquet files
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
        """What tells it from other members."""
        return self.path

    @property
    def size(self) -> int:
        """Bytes of its file."""
        try:
            return os.path.getsize(self.path)
        except OSError:
            return 0  # opening it raises the error

    @property
    def paths(self) -> Sequence[str]:
        """Of its logs."""
        return (self.path,)

    @property
    def begins(self) -> Sequence[int]:
        """Where each of its logs begins."""
        return (0,)

    def among(self, operation: Operation) -> Operation:
        """The question, of records of these logs alone."""
        return operation

    def places(self, offsets: Iterable[int]) -> Iterator[tuple[Member, int]]:
        """Whose record begins at each of these offsets, and where in that log."""
        return ((self, offset) for offset in offsets)

    def look(self) -> object:
        """The stamp of its file: an equal one later (LogSource.settled_stamp) proves the file unchanged."""
        return stamp_at(self.path)


class ObjectMember(Member):
    """An object of a store, as a listing told of it."""

    found: Found

    def __new__(cls, found: Found) -> ObjectMember:
        self = super().__new__(cls, str(found.url))
        self.found = found
        return self

    @property
    def size(self) -> int:
        return self.found.size

    def look(self) -> object:
        return Stamp.of(self.found.status)


def objects(url: str) -> Iterator[ObjectMember]:
    """Those that a URL means. Raises LogError."""
    from jitdb.log.objects.listing import objects_at

    found = objects_at(ObjectUrl.of(url))
    return (ObjectMember(each) for each in found if str(each.url) == url or each.url.name not in _SUMMARIES)


def find_members(where: Where | Iterable[Where], *, is_following: bool = False) -> list[Member]:
    """The logs at these places now, ordered by their paths, each once: see below."""
    return sorted(find_by_real_path(where, is_following=is_following).values())


def find_by_real_path(
    where: Where | Iterable[Where], *, is_following: bool = False, folders: set[str] | None = None
) -> dict[str, Member]:
    """The logs at these places now, by where their paths lead.

    where: a file, a pattern (`*`, `?`, `[…]`, and `**` for folders within folders), a folder, whose files at any depth
           are meant, or several of these
    is_following: a named file may be missing for a while
    folders: gets those that were looked into: without a change of one, no file comes, goes or is replaced

    Links to folders below a folder are followed, each real folder once.
    Hidden files, files in sidecar folders (`NAME.jitdb`) and, in folders, summaries of Parquet files are no logs. A
    sidecar folder that is named beside other places is left out. Raises LogError for a file that is not there,
    InvalidArgument.
    """
    places = [file_path(place) for place in ([where] if isinstance(where, str | os.PathLike) else where)]
    found: dict[str, Member] = {}
    for url in filter(is_url, places):
        found |= {str(each.path): each for each in objects(url)}
    places = [place for place in places if not is_url(place)]
    real_folder = cache(os.path.realpath)  # to look at each part of each path takes longer than all else
    for place in without_sidecars(places):
        if folders is not None and not os.path.isdir(place):
            folders.update(_looked_into(place))
        if is_following and not glob.has_magic(place) and not os.path.exists(place):
            continue
        for path in _files(place, folders):
            folder, name = os.path.split(path)
            real = os.path.realpath(path) if os.path.islink(path) else os.path.join(real_folder(folder), name)
            found.setdefault(real, Member(path))
    return found if is_following and folders is None else _without_copies(found, places)


def _without_copies(found: dict[str, Member], named: Sequence[str]) -> dict[str, Member]:
    """These logs without those that gzip made of others among them, as rotation and `gzip -k` leave them."""
    copies = [
        real for real, member in found.items()
        if real.endswith(".gz") and real[:-3] in found and member.path not in named and is_copy(real, real[:-3])
    ]  # fmt: skip
    for real in copies:
        told = f"{found[real].path} has the text of {found[real[:-3]].path}, and is left out"
        warnings.warn(LogWarning(told), stacklevel=outside())
    return {real: member for real, member in found.items() if real not in copies} if copies else found


def no_file_at(place: Where) -> LogError:
    """That no file is at a pattern, below a folder or below a URL, and what was probably meant."""
    from jitdb.common.spelling import nearest

    path = os.fspath(place)
    if is_url(path):
        remedy = "a name that ends with / means all below it"
        return LogError("no object has a name like that", path=path, remedy=remedy)
    folder, name = os.path.split(path)
    remedy = "a pattern or a folder names the logs that are asked"
    if not os.path.isdir(path):
        remedy, there = "no file has a name like that", list[str]()
        while folder and not (there := glob.glob(os.path.join(folder, "*"))) and not os.path.isdir(folder):
            remedy, folder = f"there is no folder {folder}", os.path.dirname(folder)
        near = nearest(name, {os.path.basename(each) for each in there if os.path.isfile(each)})
        remedy = f"did you mean {os.path.join(folder, near)}?" if near else remedy
    return LogError("no file is there", path=path, remedy=remedy)


def fields_of(path: str) -> Mapping[str, Any]:
    """What a log's path says of all its records.

    >>> dict(fields_of("logs/date=2026-11-21/hour=7/a.log"))
    {'_path': 'logs/date=2026-11-21/hour=7/a.log', 'date': '2026-11-21', 'hour': 7}
    """
    return MappingProxyType({LOG_PATH: path, **_fields_of_folder(path.rpartition(os.sep)[0])})


@lru_cache(maxsize=4096)
def _fields_of_folder(folder: str) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for part in folder.split(os.sep):
        name, equals, value = part.partition("=")
        if name and equals:
            found[unquote(name)] = _value(unquote(value))
    return found


def _value(text: str) -> Any:
    if text == NULL_FOLDER:
        return None
    return int(text) if _INTEGER.fullmatch(text) else text


def _looked_into(place: str) -> Iterator[str]:
    """The folders in which a name, or a pattern, is looked for; where one is missing, that in which it would come."""
    parts = place.split(os.sep)
    first = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    above = os.sep.join(parts[:first]) or (os.sep if first else os.curdir)
    while not os.path.isdir(above):
        above = os.path.dirname(above) or os.curdir
    yield above
    for number in range(first + 1, len(parts)):
        yield from glob.iglob(os.path.join(os.sep.join(parts[:number]), ""), recursive=True)


def _files(place: str, folders: set[str] | None = None) -> Iterator[str]:
    if os.path.isdir(place):
        if place.rstrip(os.sep).endswith(SIDECAR_SUFFIX):
            raise InvalidArgument(f"{shown(place)} is a folder of indexes: name the log, not its indexes")
        yield from _below(place, folders)
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


def _below(folder: str, looked_into: set[str] | None) -> Iterator[str]:
    root, seen = os.path.realpath(folder), set[str]()
    for top, folders, files in os.walk(folder, onerror=_unread, followlinks=True):
        if looked_into is not None:
            looked_into.add(top)
        folders[:] = [name for name in folders if not name.endswith(SIDECAR_SUFFIX) and not name.startswith(".")]
        linked = [name for name in folders if os.path.islink(os.path.join(top, name))]
        for name in linked:
            real = os.path.realpath(os.path.join(top, name))
            folders.remove(name)
            is_above = os.path.join(root, "").startswith(os.path.join(real, ""))
            if not is_above and real not in seen and os.access(real, os.R_OK | os.X_OK):
                folders.append(name)  # last: what is here has its own path
            seen.add(real)
        names = (name for name in files if not name.startswith(".") and name not in _SUMMARIES)
        yield from (os.path.normpath(os.path.join(top, name)) for name in names)


def _unread(error: OSError) -> None:
    raise LogError(f"the folder cannot be read: {error.strerror}", path=error.filename) from error
