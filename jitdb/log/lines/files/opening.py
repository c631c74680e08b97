"""Opening a file of lines, compressed or not: its first bytes tell, and of an empty one its name."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from jitdb.common.formats import LONGEST_START, compression_of
from jitdb.errors import NotALog
from jitdb.log.io import osfile
from jitdb.log.lines.files.file import IsWhole, LineFile, nothing_is_whole
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.objects.door import Location, fs_of


def open_lines(
    path: Location, is_whole: IsWhole = nothing_is_whole, folder: Callable[[Stamp], Path | None] = lambda _: None
) -> LineFile:
    """The file at this path. Raises NotALog, OSError.

    is_whole: whether a last line without a newline is a record
    folder:   where it is kept what took long to find out, of the file of this stamp
    """
    file = opened(path)
    kind = compression_of(file.read(LONGEST_START, 0), path.name)
    if not kind:
        return LineFile(file, is_whole)
    return decompressed(file, path, kind, folder(Stamp.of(file.status())), is_whole)


def as_document(file: LineFile) -> LineFile:
    """The same file as one line."""
    from jitdb.log.lines.files.document import DocumentFile

    return DocumentFile(file)


def decompressed(
    file: osfile.Descriptor, path: Location, kind: str, folder: Path | None, is_whole: IsWhole = nothing_is_whole
) -> LineFile:
    """The text of an open file that is compressed in this way."""
    found: LineFile = import_module(f"jitdb.log.lines.files.{kind}_file").FILE(file, path, folder, is_whole)
    return found


def head_of(path: Location, size: int) -> bytes:
    """The first bytes of the text of a file. Raises LogError, OSError."""
    stored = opened(path)
    kind = compression_of(stored.read(LONGEST_START, 0))
    file = decompressed(stored, path, kind, None) if kind else LineFile(stored)
    try:
        return file.head(size)
    finally:
        file.close()


def tail_of(path: Location, size: int, behind: int) -> bytes:
    """The last bytes of a file, none of its first ones; nothing of a compressed file. Raises NotALog, OSError."""
    stored = opened(path)
    try:
        if compression_of(stored.read(LONGEST_START, 0)):
            return b""
        end = stored.status().st_size
        begin = max(behind, end - size)
        return stored.read(max(0, end - begin), begin)
    finally:
        stored.close()


def is_compressed(path: Location) -> bool:
    """Whether the first bytes of the file say so. Raises NotALog, OSError."""
    stored = opened(path)
    try:
        return bool(compression_of(stored.read(LONGEST_START, 0)))
    finally:
        stored.close()


def opened(path: Location) -> osfile.Descriptor:
    """Raises NotALog, OSError."""
    try:
        return osfile.Descriptor(fs_of(path), path, os.O_RDONLY)
    except osfile.NotAFile:  # which says of files of our own what to remove
        if os.path.isdir(path):
            said = "it is a folder, not a log"
            raise NotALog(said, path=path, remedy="jitdb.open_many() takes the logs of a folder as one") from None
        raise NotALog("it is a pipe or a device, and no file", path=path) from None
