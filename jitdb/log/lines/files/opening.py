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


def open_lines(
    path: Path, is_whole: IsWhole = nothing_is_whole, folder: Callable[[Stamp], Path | None] = lambda _: None
) -> LineFile:
    """The file at this path. Raises NotALog, OSError.

    is_whole: whether a last line without a newline is a record
    folder:   where it is kept what took long to find out, of the file of this stamp
    """
    file = opened(path)
    kind = compression_of(osfile.fs.read(file.number, LONGEST_START, 0), path.name)
    if not kind:
        return LineFile(file, is_whole)
    return decompressed(file, path, kind, folder(Stamp.of(osfile.fs.fstat(file.number))), is_whole)


def as_document(file: LineFile) -> LineFile:
    """The same file as one line."""
    from jitdb.log.lines.files.document import DocumentFile

    return DocumentFile(file)


def decompressed(
    file: osfile.Descriptor, path: Path, kind: str, folder: Path | None, is_whole: IsWhole = nothing_is_whole
) -> LineFile:
    """The text of an open file that is compressed in this way."""
    found: LineFile = import_module(f"jitdb.log.lines.files.{kind}_file").FILE(file, path, folder, is_whole)
    return found


def head_of(path: Path, size: int) -> bytes:
    """The first bytes of the text of a file. Raises LogError, OSError."""
    with opened(path) as fd:
        head = osfile.fs.read(fd, size, 0)
        kind = compression_of(head)
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
        return bool(compression_of(osfile.fs.read(fd, LONGEST_START, 0)))


def opened(path: Path) -> osfile.Descriptor:
    """Raises NotALog, OSError."""
    try:
        return osfile.Descriptor(osfile.fs, path, os.O_RDONLY)
    except osfile.NotAFile:  # which says of files of our own what to remove
        if path.is_dir():
            said = "it is a folder, not a log"
            raise NotALog(said, path=path, remedy="jitdb.open_many() takes the logs of a folder as one") from None
        raise NotALog("it is a pipe or a device, and no file", path=path) from None
