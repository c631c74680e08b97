"""The file in which `jitdb tail --cursor` keeps a place."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from jitdb.cli.failures import Failure
from jitdb.cli.opening import exists
from jitdb.cli.places import read_place, written

_LONGEST: Final = 1 << 28  # bytes of a file that holds a place: of some 100,000 logs


class PlaceFile:
    """The file that keeps a place. `place` is what it holds; None as long as there is no such file."""

    def __init__(self, path: str, logs: Iterable[str]) -> None:
        """Raises Failure for what is no such file, and must not be written over: one of the logs, or something else;
        LogError where another user put it.
        """
        from jitdb.log.io.filenames import followed

        self._path = followed(path, is_written=True)
        self.name = path
        folder = os.path.dirname(path)
        if folder and not exists(folder):
            raise Failure(f"{path}: there is no folder {folder}")
        self.place = self._read(logs) if exists(path) else None

    def _read(self, logs: Iterable[str]) -> str:
        from jitdb.log.io.osfile import Descriptor, fs

        if any(exists(log) and os.path.samefile(self._path, log) for log in logs):
            raise Failure(f"{self.name}: this is a log itself; choose another file for the place")
        if not os.path.isfile(self._path):
            raise Failure(f"{self.name}: this is no file, and cannot keep a place")
        with Descriptor(fs, self._path, os.O_RDONLY) as fd:
            text = fs.read(fd, _LONGEST, 0).decode(errors="replace")
        found = read_place(text)
        if found is None:
            raise Failure(
                f"{self.name}: this holds no place in a log, as `jitdb tail --cursor` keeps it, or is damaged",
                "name another file, or remove this one to begin anew",
            )
        return found

    def save(self, place: str) -> None:
        """Put it there, durably, if it is another one. Raises OSError."""
        from jitdb.log.io.osfile import fs

        if place != self.place:
            try:
                fs.replace_file(self._path, written(place).encode())
            except OSError as error:  # which names the file that was to take its place, or none
                raise OSError(error.errno, error.strerror, self.name) from error
            self.place = place
