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


def place_in_copy(packed: LogSource, logs: Iterable[Read]) -> Cursor | None:
    """Up to where a compressed log was read, as another one; None where it is the copy of none of these."""
    for log, place in logs:
        offset = place.offset
        if 0 < offset <= packed.durable_end and _ends(packed, offset) == _ends(log, offset):
            return place._replace(identity=packed.identity, generation=packed.generation)
    return None


def may_become_copy(packed: LogSource, logs: Iterable[Read]) -> bool:
    """Whether its text is shorter than what was read of one of them, and begins as that does: it is being written."""
    end = packed.durable_end
    return any(end < place.offset and _ends(packed, end) == _ends(log, end) for log, place in logs)


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
