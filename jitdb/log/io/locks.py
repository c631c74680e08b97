"""Locks that have numbers, around one file: who makes what a number stands for holds its lock.

Where the system has locks of bytes that belong to an open file, a lock is the byte of that number, and the file stays
empty. Elsewhere it is a file of its own beside it (`lock.b944637d4c`), which its holder has locked as a whole, and
removes before letting go. So who comes to hold one looks whether the file that is locked is still the one that others
find. All processes of a machine are of one system, so they agree.

Two holders in one process exclude each other as two processes do. The system ends the locks of a process that ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from jitdb.log.io import system
from jitdb.log.io.osfile import Descriptor, FileSystem


class ByteLocks:
    """Bytes of the file `path`."""

    def __init__(self, fs: FileSystem, path: Path) -> None:
        self._fs = fs
        self._file = Descriptor(fs, path, os.O_RDWR | os.O_CREAT)
        self._numbers: list[int] = []

    def take(self, number: int) -> bool:
        """Lock it, without waiting; False where somebody else has it. Raises OSError."""
        if not self._fs.lock_byte(self._file.number, number):
            return False
        self._numbers.append(number)
        return True

    def release(self) -> None:
        """Of all. A second time does nothing."""
        if not self._file.is_open:
            return
        try:
            with suppress(OSError):  # after a fork, closing alone would leave the locks to the child
                for number in self._numbers:
                    self._fs.unlock_byte(self._file.number, number)
        finally:
            self._file.close()

    def leave(self) -> None:
        """In a forked child: the locks are the parent's."""
        self._file.close()


class FileLocks:
    """Files beside `path`, which need not be there: see ByteLocks."""

    def __init__(self, fs: FileSystem, path: Path) -> None:
        self._fs, self._path = fs, path
        self._files: list[tuple[Path, Descriptor]] = []

    def take(self, number: int) -> bool:
        path = self._path.with_name(f"{self._path.name}{_MARK}{number:x}")
        while True:
            file = Descriptor(self._fs, path, os.O_RDWR | os.O_CREAT)
            if not self._fs.lock(file.number):
                file.close()
                return False
            if self._fs.is_at(path, file.number):
                self._files.append((path, file))
                return True
            file.close()  # another holder removed it between these two calls

    def release(self) -> None:
        while self._files:
            path, file = self._files.pop()
            try:
                with suppress(OSError):  # what is left there is nobody's
                    self._fs.unlink(path)
            finally:
                file.close()

    def leave(self) -> None:
        while self._files:
            self._files.pop()[1].close()


_MARK: Final = "."  # between the name and the number

Locks: TypeAlias = ByteLocks | FileLocks


def locks_around(fs: FileSystem, path: Path) -> Locks:
    """None of them held yet. Raises OSError."""
    return ByteLocks(fs, path) if system.HAS_BYTE_LOCKS else FileLocks(fs, path)


def is_any_held(fs: FileSystem, path: Path) -> bool:
    """Whether somebody else holds a lock around this file. Raises OSError, FileNotFoundError where there is none."""
    if system.HAS_BYTE_LOCKS:
        with Descriptor(fs, path, os.O_RDWR) as fd:
            return fs.has_locked_bytes(fd)
    return any(_is_held(fs, each) for each in _lock_files(fs, path))


def _lock_files(fs: FileSystem, path: Path) -> Iterator[Path]:
    return (path.with_name(name) for name in fs.listdir(path.parent) if name.startswith(f"{path.name}{_MARK}"))


def _is_held(fs: FileSystem, path: Path) -> bool:
    with suppress(FileNotFoundError), Descriptor(fs, path, os.O_RDONLY) as fd:
        return not fs.lock(fd, shared=True)
    return False
