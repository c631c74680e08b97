"""Requests for indexes that hold nothing: their fields may have been typed wrong.

No record has a value in such a field, so the index says nothing, and has no file. Only its name is a line here. Whoever
asks for the same in another process means it, and leaves the file behind, so that nothing is scanned for it again.
Nothing is lost with these lines but a scan: who finds others than he wrote, or none, goes on.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Final

from jitdb.log.io.osfile import Descriptor, FileSystem

ASKED: Final = "asked"  # on disk: never change
_MOST: Final = 1 << 16  # bytes; then they begin anew


def is_first(fs: FileSystem, folder: FilePath, name: str) -> bool:
    """Whether nobody asked for the index of this name yet; from now on somebody did."""
    with suppress(OSError):  # who cannot leave a line, leaves no index file either
        fs.make_folders(folder)
        with Descriptor(fs, folder / ASKED, os.O_RDWR | os.O_CREAT) as file:
            size = fs.size(file)
            known = fs.read(file, min(size, 2 * _MOST), 0)
            if name.encode() in known.split(b"\n"):
                return False
            if size > _MOST:
                fs.truncate(file, 0)
                size = 0
            fs.write(file, f"\n{name}\n".encode(), size)  # the line before may be torn
    return True
