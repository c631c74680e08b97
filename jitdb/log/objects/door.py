"""Where a file is that is only read: on the disk, or in a store of objects. Each has a FileSystem of its own."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeAlias

from jitdb.errors import QueryError
from jitdb.log.io import osfile
from jitdb.log.io.filenames import log_path
from jitdb.log.io.osfile import FileSystem
from jitdb.log.objects.urls import AT_ONCE, ObjectUrl, is_url

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BUFFER: Final = 1 << 16

Location: TypeAlias = "Path | ObjectUrl"


def location_of(path: str | os.PathLike[str]) -> Location:
    """Where a path leads: see log_path. Raises InvalidArgument, LogError."""
    return ObjectUrl.of(os.fspath(path)) if is_url(path) else log_path(path)


def in_full(path: str | os.PathLike[str]) -> str:
    """The path from the root on, for processes that work in other folders."""
    return str(ObjectUrl.of(os.fspath(path))) if is_url(path) else os.path.abspath(path)


def fs_of(path: str | os.PathLike[str]) -> FileSystem:
    """Through which the file of this name is read."""
    if not is_url(path):
        return osfile.fs
    from jitdb.log.objects.files import FILES  # with what talks to stores

    return FILES


class _Raw(io.RawIOBase):
    """The bytes of a file."""

    def __init__(self, file: osfile.Descriptor) -> None:
        self._file, self._at, self._size = file, 0, file.status().st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        with memoryview(buffer).cast("B") as view:
            done = self._file.read_into(view, self._at)
        self._at += done
        return done


@contextmanager
def opened_bytes(path: str | os.PathLike[str]) -> Iterator[tuple[IO[bytes], Callable[[], os.stat_result]]]:
    """A file as libraries read one, and what tells its status. Raises OSError."""
    file = osfile.Descriptor(fs_of(path), path, os.O_RDONLY)
    with closing(file), io.BufferedReader(_Raw(file), _BUFFER) as buffered:
        yield buffered, file.status


def requests_for(size: int) -> int:
    """How many a scan of so many bytes of an object takes, about."""
    return -(-size // AT_ONCE)


def size_at(path: str | os.PathLike[str]) -> int:
    """Bytes of the file of this name. Raises OSError."""
    return fs_of(path).stat(path).st_size


def names_file(text: str) -> bool:
    """Whether a word of a command names a file or a folder. Of an object its form tells, without a request."""
    return is_url(text) or os.path.exists(text)


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether a file has this name, or something else has. Raises what keeps us from knowing it of an object."""
    return fs_of(path).exists(path) if is_url(path) else os.path.exists(path)


def refuse_following_object(path: str | os.PathLike[str]) -> None:
    """Raises QueryError for a URL: an object does not grow, and a store does not tell of new ones."""
    if is_url(path):
        said = "an object of a store does not grow: no record will come"
        raise QueryError(said, path=path, remedy="ask again: new objects are seen then")


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file has this name, as far as we may know."""
    try:
        found = fs_of(path).find(path)
    except (OSError, ValueError) as error:  # a name that is too long, say, or has a zero byte
        if is_url(path) and not isinstance(error, PermissionError):
            raise
        return False
    return found is not None and stat.S_ISREG(found.st_mode)
