"""The bytes of a compressed file as they are stored, up to where they were looked at; and what is wrong with them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from jitdb.errors import LogCorrupt, LogError
from jitdb.log.io import osfile

_NAMES: Final = {"gzip": "indexed_gzip", "zstd": "zstandard"}  # of the packages that are needed to read a kind


class Stored:
    """A range of an open file. `stop`: just past the last byte that is read."""

    def __init__(self, file: osfile.Descriptor, path: Path, stop: int = 0) -> None:
        self._file, self.path, self.stop = file, path, stop

    def read(self, size: int, offset: int) -> bytes:
        """Fewer bytes only where the range ends, or the file was truncated."""
        size = min(size, self.stop - offset)
        return osfile.fs.read(self._file.number, size, offset) if size > 0 else b""

    def corrupt(self, reason: str, offset: int) -> LogCorrupt:
        """The error for bytes, at this offset of the file, that cannot be decompressed."""
        return LogCorrupt(reason, path=self.path, offset=offset, remedy="compress the file anew from its source")


class View:
    """A file object for libraries: the stored bytes from `begin` to `stop`."""

    mode = "rb"

    def __init__(self, stored: Stored, begin: int, stop: int) -> None:
        self._stored, self._begin, self._size, self._at = stored, begin, stop - begin, 0

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        data = self._stored.read(left if size < 0 else min(size, left), self._begin + self._at)
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at


def library(kind: str, path: Path) -> Any:
    """The package that reads this kind of file. Raises LogError where it is not installed."""
    try:
        return import_module(_NAMES[kind])
    except ImportError as error:
        said = f"it is compressed ({kind}), and {_NAMES[kind]}, which reads that, is not installed ({error})"
        raise LogError(said, path=path, remedy="pip install 'jitdb[compressed]'") from error
