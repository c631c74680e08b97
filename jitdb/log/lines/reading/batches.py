"""Many lines of a file in one buffer, by their offsets: no object is made for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.log.codecs.fields.constants import SLACK
from jitdb.log.codecs.fields.located import RecordBatch, Scratch
from jitdb.log.lines.blanks import MARK
from jitdb.log.lines.line_kernels import walk_lines
from jitdb.log.reading.many import CLOSE, clusters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.lines.framing import LineFraming

    Ints = NDArray[np.int64]

_NEWLINE: Final = ord("\n")
_NEAR: Final = 1 << 15  # bytes between two lines that are read at once
_AHEAD: Final = 1 << 14  # bytes read for the last one of a cluster, at first


def lines_at(
    read_into: Callable[[memoryview, int], int], end: int, offsets: Ints, framing: LineFraming, scratch: Scratch
) -> RecordBatch | None:
    """The plain lines at these ascending offsets, of a file of which `end` bytes are lines; blank ones count as
    deleted. None where they lie too far apart, or one is very long: then they are read one by one.

    Raises LookupError of an offset at which none begins; EOFError where the file has become shorter.
    """
    if not 0 <= offsets[0] <= offsets[-1] < end:
        raise LookupError(int(offsets[0] if offsets[0] < 0 else offsets[-1]))
    runs = clusters(offsets, _NEAR)
    if len(runs) * CLOSE > len(offsets):
        return None
    # From the newline before the first one, or the byte order mark.
    begins = [max(int(offsets[start]) - len(MARK), 0) for start, _ in runs]
    stops = [min(int(offsets[stop - 1]) + _AHEAD, end) for _, stop in runs]
    buffer = scratch.room(sum(stops) - sum(begins) + SLACK)
    buffer[-SLACK:] = 0
    starts, lengths = np.empty(len(offsets), np.int64), np.empty(len(offsets), np.int64)
    states = np.empty(len(offsets), np.uint8)
    base = 0
    for (first, last), begin, stop in zip(runs, begins, stops, strict=True):
        size = stop - begin
        if read_into(buffer.data[base : base + size], begin) < size:
            raise EOFError
        at = offsets[first:last] - (begin - base)
        if not _is_begun(buffer[base : int(at[0])], int(offsets[first]), framing):
            raise LookupError(int(offsets[first]))
        room = int(at[-1] - at[0]) + 1  # a line has a byte at least
        found = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8)
        count = walk_lines(buffer, int(at[0]), int(at[-1]), base + size, *found)
        if not count or found[0][count - 1] < at[-1]:
            return None  # the last one goes on
        places = found[0][:count].searchsorted(at)
        wrong = found[0][places] != at
        if wrong.any():
            raise LookupError(int(offsets[first:last][wrong][0]))
        starts[first:last], lengths[first:last], states[first:last] = at, found[1][places], found[2][places]
        base += size
    return RecordBatch(buffer, starts, lengths, states, offsets)


def _is_begun(before: NDArray[np.uint8], offset: int, framing: LineFraming) -> bool:
    """Whether a line begins at this offset, before which these bytes stand."""
    if offset == len(before) and offset == framing.first_line(before.tobytes()):
        return True
    return len(before) > 0 and int(before[-1]) == _NEWLINE
