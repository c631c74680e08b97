"""Files that rotation compressed: the text of one that was followed, under a name of its own.

`app.log.1` becomes `app.log.1.gz`, a file with another inode and other bytes, often before anybody saw the first name.
It is told by its text: where what was read of the other one ends, and what stands before that, is the same in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.errors import LogError
from jitdb.log.lines.files.opening import SUFFIXES

if TYPE_CHECKING:
    from jitdb.engine.cursor import Cursor
    from jitdb.log.source import LogSource

_ENDS: Final = 1 << 16  # bytes at either end that are held against each other


def is_packed(path: str) -> bool:
    """Whether its name says that it is compressed."""
    return path.endswith(tuple(SUFFIXES))


class Read(NamedTuple):
    """What was read of a log, up to a place."""

    log: LogSource
    place: Cursor


def original_of(packed: LogSource, logs: Iterable[Read]) -> Read | None:
    """Of which of these logs it is the copy, or becomes it, as far as both are there."""
    found = [read for read in logs if _is_alike(packed, read.log)]
    return max(found, key=lambda read: read.place.offset, default=None)


def _is_alike(packed: LogSource, log: LogSource) -> bool:
    common = min(packed.durable_end, log.durable_end)
    return common > 0 and _ends(packed, common) == _ends(log, common)


def _ends(log: LogSource, stop: int) -> bytes | None:
    """The first and the last bytes before `stop`; None where they cannot be read, or are fewer."""
    size = min(_ENDS, stop)
    found = bytearray(2 * size)
    with memoryview(found) as view:
        try:
            whole = log.read_blocks(0, size, view[:size]) + log.read_blocks(stop - size, stop, view[size:])
        except LogError:
            return None
    return bytes(found) if whole == 2 * size else None
