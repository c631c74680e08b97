"""One writer per log: flock on `lock` in the sidecar, with the writer's pid in it.

The operating system releases it when the process ends, however it ends. Two logs in one process shut each other out,
too. A reader that wants to know whether there is a writer takes it shared for an instant: so a writer tries again.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from jitdb.errors import LogLocked, Remedy
from jitdb.log.io.osfile import Descriptor, FileSystem

_TRIES: Final = 5
_PAUSE: Final = 0.004  # seconds between tries; a reader's glance takes microseconds


class Lock:
    """The lock of one log, held from construction to close()."""

    def __init__(self, fs: FileSystem, path: Path, log: Path) -> None:
        """Raises LogLocked with the pid of the writer, OSError where the sidecar cannot be written."""
        self._fs = fs
        self._path = path
        self._file = Descriptor(fs, path, os.O_RDWR | os.O_CREAT)
        try:
            self._take(log)
        except BaseException:
            self.close()
            raise

    def _take(self, log: Path) -> None:
        fs, fd = self._fs, self._file.number
        for attempt in range(_TRIES):
            if fs.lock(fd):
                break
            if attempt < _TRIES - 1:
                time.sleep(_PAUSE)
        else:
            text = fs.read(fd, 32, 0).strip()
            pid = int(text) if text.isdigit() else None
            who = "another process" if pid is None else "this process" if pid == os.getpid() else f"process {pid}"
            raise LogLocked(
                f"{who} has it open for writing",
                path=log,
                pid=pid,
                remedy=Remedy(
                    "open it with read_only=True, or close the other one first", "wait for it to end, or stop it"
                ),
            )
        fs.truncate(fd, 0)
        fs.write(fd, f"{os.getpid()}\n".encode(), 0)

    def is_in_place(self) -> bool:
        """Whether whoever wants to write would meet this lock: not if the file was moved, removed or replaced."""
        return self._fs.is_at(self._path, self._file.number)

    def close(self) -> None:
        """Release it; in a forked child, the parent keeps it. Without the file, two could lock two of that name."""
        self._file.close()


def has_writer(fs: FileSystem, path: Path) -> bool:
    """Whether some process, or another log in this one, holds the lock now."""
    try:
        with Descriptor(fs, path, os.O_RDONLY) as fd:
            return not fs.lock(fd, shared=True)
    except (FileNotFoundError, NotADirectoryError):
        return False
