"""Who may write to the index files of a folder: one builder an index, in all processes together.

A file `lock` in the folder, and of it one byte an index, at a place that follows from the name of the index's file. The
bytes are locked, never written; the operating system releases them when the process ends, however it ends. Each time
the file is opened anew, so two databases in one process shut each other out as two processes do.

Nobody waits while he holds a lock: all that are needed are taken, or none. So there are no deadlocks.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Final

from jitdb.indexes.files.file import make_folder
from jitdb.log.io.osfile import Descriptor, FileSystem

LOCK: Final = "lock"  # on disk: never change
_DIGEST: Final = 6  # bytes: two names of one place only wait for each other without need


def place_of(name: str) -> int:
    """Which byte stands for the file of this name. Never change.

    >>> hex(place_of("offsets.offsets-9de5b6896cd5.index"))
    '0xb944637d4c'
    """
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=_DIGEST).digest(), "little")


class Held:
    """Locks that are held, until release(); a context manager."""

    def __init__(self, fs: FileSystem, file: Descriptor) -> None:
        self._fs = fs
        self._file = file
        self._places: list[int] = []
        _held.add(self)

    def take(self, places: Iterable[int]) -> bool:
        """Lock these bytes; False, and none is locked, where somebody else has one."""
        for place in places:
            if not self._fs.lock_byte(self._file.number, place):
                self.release()
                return False
            self._places.append(place)
        return True

    def release(self) -> None:
        """Let others have them."""
        if not self._file.is_open:
            return
        try:
            with suppress(OSError):  # closing alone would leave them to a child that was forked meanwhile
                for place in self._places:
                    self._fs.unlock_byte(self._file.number, place)
        finally:
            self._file.close()

    def abandon(self) -> None:
        """In a forked child: they are the parent's, and end with it."""
        self._file.close()

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


_held: weakref.WeakSet[Held] = weakref.WeakSet()


def _abandon_all() -> None:
    for held in list(_held):
        held.abandon()


os.register_at_fork(after_in_child=_abandon_all)


def take_locks(fs: FileSystem, folder: FilePath | None, names: Iterable[str]) -> Held | None:
    """The locks of these files in the folder, or None where somebody else has one of them: try again later.

    A folder that cannot be written, or has no locks, keeps nobody from building: then nothing is held.
    """
    places = sorted({place_of(name) for name in names})
    held = Held(fs, Descriptor.closed())
    if folder is None or not places:
        return held
    try:
        make_folder(fs, folder)
        held = Held(fs, Descriptor(fs, folder / LOCK, os.O_RDWR | os.O_CREAT))
        return held if held.take(places) else None
    except OSError:
        held.release()
        return Held(fs, Descriptor.closed())
    except BaseException:
        held.release()
        raise
