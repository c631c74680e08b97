"""What was written to a file behind a place, also after another one took its name: a log of its own."""

from __future__ import annotations

from jitdb.log.lines.file import LineFile
from jitdb.log.lines.framing import UNNAMED
from jitdb.log.lines.keeping import Keeper
from jitdb.log.lines.known import Stamp
from jitdb.log.lines.line_log import LineLog


class LineRest(LineLog):
    """The lines of an open file from the byte `base` on; offsets count from there. It goes on growing."""

    def __init__(self, log: LineLog, file: LineFile, base: int) -> None:
        self._path, self._codec, self._folder = log.path, log.codec, log.sidecar
        self._framing = UNNAMED
        self._begin(_Behind(file, base), Keeper(None))

    def _there(self) -> None:
        """Whoever has its name now is another log."""


class _Behind(LineFile):
    """A file that is open already, from a byte on."""

    def __init__(self, file: LineFile, base: int) -> None:
        self._whole, self._base, self._searched = file, base, (0, 0)

    def stamp(self) -> Stamp:
        found = self._whole.stamp()
        return found._replace(size=max(0, found.size - self._base))

    def read(self, size: int, offset: int) -> bytes:
        return self._whole.read(size, self._base + offset)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        return self._whole.read_into(buffer, self._base + offset)

    def close(self) -> None:
        """It is the other's."""
