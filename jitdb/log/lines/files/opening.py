"""Opening a file of lines, compressed or not: its first bytes tell, and of an empty one its name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from jitdb.errors import NotALog
from jitdb.log.io import osfile
from jitdb.log.lines.files.file import LineFile

_GZIP: Final = b"\x1f\x8b\x08"  # RFC 1952, and the one method that there is
_ZSTD: Final = (b"\x28\xb5\x2f\xfd", *(bytes([0x50 + number]) + b"\x2a\x4d\x18" for number in range(16)))  # RFC 8878
_LONGEST: Final = 4
SUFFIXES: Final = {".gz": "gzip", ".zst": "zstd"}


def open_lines(path: Path, folder: Path | None) -> LineFile:
    """The file at this path. `folder`: where it is kept what took long to find out. Raises NotALog, OSError."""
    file = opened(path)
    kind = kind_of(osfile.fs.read(file.number, _LONGEST, 0), path.name)
    return decompressed(file, path, kind, folder) if kind else LineFile(file)


def decompressed(file: osfile.Descriptor, path: Path, kind: str, folder: Path | None) -> LineFile:
    """The text of an open file that is compressed with gzip or zstd."""
    if kind == "gzip":
        from jitdb.log.lines.files.gzip_file import GzipFile

        return GzipFile(file, path, folder)
    from jitdb.log.lines.files.zstd_file import ZstdFile

    return ZstdFile(file, path, folder)


def head_of(path: Path, size: int) -> bytes:
    """The first bytes of the text of a file. Raises LogError, OSError."""
    with opened(path) as fd:
        head = osfile.fs.read(fd, size, 0)
        kind = kind_of(head, "")
        if not kind:
            return head
    file = decompressed(opened(path), path, kind, None)
    try:
        return file.head(size)
    finally:
        file.close()


def is_compressed(path: Path) -> bool:
    """Whether the first bytes of the file say so. Raises NotALog, OSError."""
    with opened(path) as fd:
        return bool(kind_of(osfile.fs.read(fd, _LONGEST, 0), ""))


def opened(path: Path) -> osfile.Descriptor:
    """Raises NotALog, OSError."""
    try:
        return osfile.Descriptor(osfile.fs, path, os.O_RDONLY)
    except osfile.NotAFile as error:
        if path.is_dir():
            said = "it is a folder, not a log"
            raise NotALog(said, path=path, remedy="jitdb.open_many() takes the logs of a folder as one") from error
        raise NotALog("it is a pipe or a device, and no file", path=path) from error


def kind_of(head: bytes, name: str) -> str:
    """How a file that begins so is compressed; empty where it is not.

    >>> kind_of(bytes.fromhex("1f8b0800"), "any"), kind_of(b"", "a.ndjson.zst"), kind_of(b'{"a', "a.gz")
    ('gzip', 'zstd', '')
    """
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith(_ZSTD):
        return "zstd"
    return "" if head else SUFFIXES.get(os.path.splitext(name)[1], "")
