"""What was read of a file, as its text: by it the file is known where neither its name nor its inode tell.

`app.log.1` becomes `app.log.1.gz`, a file with another inode and other bytes, often before anybody saw the first name;
and an inode that became free is given to another file at once. The text up to where it was read is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.common.digests import blake2b
from jitdb.errors import LogError
from jitdb.log.lines.files.opening import SUFFIXES

if TYPE_CHECKING:
    from jitdb.log.source import LogSource

_FIRST: Final = 1 << 10  # bytes that are kept: logs that are not the same differ in them, as a rule
_END: Final = 1 << 16  # bytes at either end whose digest is


def is_packed(path: str) -> bool:
    """Whether its name says that it is compressed."""
    return path.endswith(tuple(SUFFIXES))


class ReadText(NamedTuple):
    """The text of a log up to a byte.

    stop:  that byte
    first: its first bytes, up to 1 KiB; empty where only the digest is known
    ends:  the digest of its first and its last 64 KiB, or of all twice, if there is less
    """

    stop: int
    first: bytes
    ends: bytes

    @classmethod
    def of(cls, log: LogSource, stop: int) -> ReadText | None:
        """None where it cannot be read, there is none, or the log is one of blocks, which keeps its identity."""
        found = None if not stop or log.framing.is_blocked else _ends(log, stop)
        return None if found is None else cls(stop, found[: min(_FIRST, stop)], _digest(found))

    def begins(self, log: LogSource) -> bool | None:
        """Whether it is what this log begins with; None where too little is in that, and nothing speaks against it."""
        end = log.durable_end
        first = _bytes(log, 0, min(len(self.first), end))
        if first is None or not self.first.startswith(first):
            return False
        if not 0 < self.stop <= end:
            return None
        found = _ends(log, self.stop)
        return found is not None and _digest(found) == self.ends

    def may_begin(self, log: LogSource) -> bool:
        """Whether the first bytes speak for it, and only too little is in the log."""
        return bool(self.first) and self.begins(log) is None


def _ends(log: LogSource, stop: int) -> bytes | None:
    size = min(_END, stop)
    head, tail = _bytes(log, 0, size), _bytes(log, stop - size, stop)
    return None if head is None or tail is None else head + tail


def _bytes(log: LogSource, start: int, stop: int) -> bytes | None:
    found = bytearray(stop - start)
    with memoryview(found) as view:
        try:
            size = log.read_blocks(start, stop, view)
        except LogError:
            return None
    return bytes(found) if size == stop - start else None


def _digest(text: bytes) -> bytes:
    return blake2b(text, digest_size=16).digest()
