"""A log of jitdb's own that lies in a store of objects: read there, while the small files beside it are fetched.

The log's file is an object; its folder `NAME.jitdb/` is fetched into the cache each time that it is opened, without
indexes, which are built here. The log goes through a FileSystem of its own, so nothing else knows of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jitdb.errors import LogError, library
from jitdb.log.io import osfile
from jitdb.log.io.filenames import LOCK, SIDECAR_SUFFIX, sidecar_path
from jitdb.log.log import Log
from jitdb.log.objects.cache import folder_for
from jitdb.log.objects.door import Location, refuse_following_object
from jitdb.log.objects.files import FILES
from jitdb.log.objects.listing import objects_below
from jitdb.log.objects.stores import as_os_error, store_of
from jitdb.log.objects.urls import ObjectUrl
from jitdb.log.opening.format import OpenOptions

if TYPE_CHECKING:
    from jitdb.log.codecs import Codec

_NAME: Final = "log"  # that the log has in the cache, where no file of this name is
_TAG: Final = "own"
_OBJECT: Final = "object"  # a file with the tag of the object that all this is of

_OF_FILES: Final = (
    *("chmod", "chown", "listdir", "rename", "unlink", "rmdir", "mkdir", "pwrite", "truncate"),
    *("lock", "lock_byte", "has_locked_bytes", "unlock_byte", "keep_off"),
)


class _Files(osfile.FileSystem):
    """The files of the disk, and an object in the place of one."""

    def __init__(self, path: Path, url: ObjectUrl) -> None:
        self._path, self._url, self._real = os.fspath(path), url, osfile.fs
        for name in _OF_FILES:
            if hasattr(self._real, name):
                setattr(self, name, getattr(self._real, name))

    def open(self, path: str | os.PathLike[str], flags: int, mode: int, /) -> int:
        if os.fspath(path) == self._path:
            return FILES.open(self._url, flags, mode)
        return self._real.open(path, flags, mode)

    def _of(self, fd: int) -> osfile.FileSystem:
        return FILES if FILES.has(fd) else self._real

    def close(self, fd: int, /) -> None:
        self._of(fd).close(fd)

    def pread(self, fd: int, size: int, offset: int, /) -> bytes:
        return self._of(fd).pread(fd, size, offset)

    def preadv(self, fd: int, buffer: memoryview, offset: int) -> int:
        return self._of(fd).preadv(fd, buffer, offset)

    def fsync(self, fd: int, /) -> None:
        """An object is durable."""
        if not FILES.has(fd):
            self._real.fsync(fd)

    def fdatasync(self, fd: int, /) -> None:
        if not FILES.has(fd):
            self._real.fdatasync(fd)

    def fstat(self, fd: int, /) -> os.stat_result:
        return self._of(fd).fstat(fd)

    def stat(self, path: str | os.PathLike[str], /) -> os.stat_result:
        return FILES.stat(self._url) if os.fspath(path) == self._path else self._real.stat(path)

    def lstat(self, path: str | os.PathLike[str], /) -> os.stat_result:
        return FILES.stat(self._url) if os.fspath(path) == self._path else self._real.lstat(path)


class ObjectLog(Log):
    """A Log at a URL, open for reading."""

    def __init__(self, url: ObjectUrl, *, codec: str | Codec | None = None, block_size: int | None = None) -> None:
        self._url = url
        self._folder = folder_for(url) / _TAG
        _fetch_sidecar(url, self._folder)
        super().__init__(self._folder / _NAME, codec=codec, block_size=block_size, read_only=True)

    def _how(self, path: str | os.PathLike[str], codec: str | Codec | None, block_size: int | None) -> OpenOptions:
        return OpenOptions.of(codec, block_size, _Files(Path(path), self._url))

    def check_growing(self) -> None:
        refuse_following_object(self._url)

    @property
    def path(self) -> Location:
        """The URL."""
        return self._url

    @property
    def sidecar(self) -> Path:
        """In the cache."""
        return sidecar_path(self._folder / _NAME)


def _beside(url: ObjectUrl) -> ObjectUrl:
    return url.at(f"{url.key}{SIDECAR_SUFFIX}")


def _begin(folder: Path, sidecar: Path, tag: str, *, is_whole: bool) -> None:
    """Remove what is of another object of this name; of this one what a writer made, if the store has that."""
    fs = osfile.fs
    fs.make_folders(folder)
    is_same = fs.read_if_there(folder / _OBJECT) == tag.encode()
    if not is_same and fs.exists(sidecar):
        fs.remove(sidecar)
    fs.make_folders(sidecar)
    for name in fs.listdir(sidecar) if is_whole else ():
        if (sidecar / name).is_file() and name != LOCK:
            fs.remove(sidecar / name)
    if not is_same:
        fs.replace_file(folder / _OBJECT, tag.encode())


def _fetch_sidecar(url: ObjectUrl, folder: Path) -> None:
    """Bring the files beside the log, with their times. Raises LogError."""
    sidecar, beside = sidecar_path(folder / _NAME), _beside(url)
    obstore, fs = library("obstore"), osfile.fs
    try:
        found = {each.url.key[len(beside.key) + 1 :]: each for each in objects_below(beside.at(f"{beside.key}/"))}
        wanted = {name: each for name, each in found.items() if "/" not in name and name != LOCK}
        _begin(folder, sidecar, FILES.found(url).tag, is_whole=bool(wanted))
        for name, each in wanted.items():
            at = int(each.modified.timestamp() * 1_000_000_000)
            data = (
                bytes(obstore.get(store_of(url), each.url.key, options=each.conditions).bytes()) if each.size else b""
            )
            fs.replace_file(sidecar / name, data)
            os.utime(sidecar / name, ns=(at, at))
    except OSError as error:
        raise LogError(f"what lies beside it cannot be read: {error.strerror or error}", path=url) from error
    except Exception as error:
        raise LogError(as_os_error(error, beside).strerror or str(error), path=url) from error
