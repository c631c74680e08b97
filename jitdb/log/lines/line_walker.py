"""A scan's way through lines: read a chunk, and on to where its last line ends, and find its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.errors import LogSuperseded
from jitdb.log.blocks.checksum import Counts, Ints, Room
from jitdb.log.blocks.framing import Blocks, ChunkWalker
from jitdb.log.codecs.fields.constants import LIVE
from jitdb.log.lines.form import LONGEST
from jitdb.log.lines.line_kernels import find_newline, walk_lines
from jitdb.log.lines.prefix_kernels import walk_prefixed

if TYPE_CHECKING:
    from jitdb.log.lines.form import LineRules

MOST: Final = 1 << 17  # lines that a walk finds: of empty ones a chunk has some millions
MORE: Final = 1 << 16  # bytes read with a chunk for the end of its last line
_LOOK: Final = 1 << 20  # bytes read at a time on the way to the end of a line, which is read once its length is known
_SLACK: Final = 64  # bytes behind what was read, which kernels may look at


class LineWalker(ChunkWalker):
    """A chunk has the lines that begin behind its newlines. So it need not know the byte before it.

    The line with which the first wanted chunk begins is its own, too. A line of more than LONGEST bytes is a record
    without bytes, which no codec can read.
    """

    behind = 1

    def __init__(self, log: Blocks, most: int, stop: int, framing: LineRules) -> None:
        self._log, self._most, self._stop, self._framing = log, most, stop, framing
        self._walk = walk_prefixed if framing.form.allow_prefix else walk_lines
        self._usual = most + MORE + _SLACK
        self.buffer = np.zeros(self._usual, np.uint8)
        nothing = np.empty(0, np.int64)
        lines = min(most + 1, MOST)
        starts, lengths = np.empty(lines, np.int64), np.empty(lines, np.int64)
        self.room = Room(starts, lengths, np.empty(lines, np.uint8), nothing, nothing)
        self._first = self._end = 0  # where the first line of a walk begins, and the last one ends
        self._long: tuple[int, int] | None = None  # where the chunk's last line begins and ends, if it is too long
        self._long_end = 0  # where it ends, if the last walk found it
        self._count = 0  # of the lines that the last walk found

    def read(self, begin: int, start: int) -> int:
        if len(self.buffer) > self._usual:
            self.buffer = np.zeros(self._usual, np.uint8)  # a long line is no reason to keep so much
        self.is_cut, self._long = False, None
        size = min(self._most, self._stop - begin)
        filled = self._fill(begin, 0, size + MORE)
        if begin <= start:
            self._first = self._first_from(begin, start, size)
        else:
            self._first = find_newline(self.buffer, 0, size) + 1
        has_lines = self._first <= size and (begin == start or self._first > 0)
        self._end = self._end_of_line(begin, size, filled) if has_lines else 0
        return size

    def _first_from(self, begin: int, start: int, size: int) -> int:
        """Where in the buffer the line begins that begins at this byte of the log."""
        return start - begin if start else self._framing.first_line(self.buffer[:3].tobytes())

    def _end_of_line(self, begin: int, at: int, filled: int) -> int:
        """Where the line ends that has this byte of the buffer; where one that is too long begins, `_long`."""
        if begin + at == self._stop:
            return at
        newline = find_newline(self.buffer, at, filled)
        if newline >= 0:
            return newline + 1
        end = self._newline_behind(begin + filled) + 1 - begin
        first = max(self._first, self.buffer[:at].tobytes().rfind(b"\n") + 1)
        if end - 1 - first > LONGEST:
            self._long = first, end
            return first
        self._fill(begin, filled, end)
        return end

    def _newline_behind(self, at: int) -> int:
        """Where the first newline is in the log from this byte on."""
        piece = np.empty(_LOOK, np.uint8)
        while at < self._stop:
            size = self._log.read_blocks(at, min(at + _LOOK, self._stop), piece)
            newline = find_newline(piece, 0, size)
            if newline >= 0:
                return at + newline
            at += size
        raise LogSuperseded("it was changed while it was read")

    def _fill(self, begin: int, filled: int, wanted: int) -> int:
        """Read on behind the bytes that are there, until there are `wanted`; how many there are then."""
        wanted = min(wanted, self._stop - begin)
        if wanted + _SLACK > len(self.buffer):
            larger = np.zeros(wanted + _SLACK, np.uint8)
            larger[:filled] = self.buffer[:filled]
            self.buffer = larger
        return filled + self._log.read_blocks(begin + filled, begin + wanted, self.buffer[filled:wanted])

    @property
    def first(self) -> int:
        """Where the first line begins in the buffer, of those that the last walk found."""
        return self._first

    @property
    def end(self) -> int:
        """Where the last line ends in the buffer, but for one that is too long."""
        return self._end

    def walk(self, size: int, sums: Ints) -> Counts:
        """See ChunkWalker. Nobody wrote checksums of somebody else's lines."""
        room = self.room
        if self.is_cut:
            self._first = int(self.ends(self._count - 1, self._count)[0])
        lines = self.buffer, self._first, size, self._end, room.starts, room.lengths, room.states
        count, self._long_end = self._walk(*lines), 0
        self.is_cut = count == len(room.starts)
        if self._long is not None and not self.is_cut:
            room.starts[count], room.lengths[count], room.states[count] = self._long[0], 0, LIVE
            count, self._long_end, self._long = count + 1, self._long[1], None
        self._count = count
        return Counts(count, 0, 0)

    def ends(self, low: int, high: int) -> Ints:
        found = super().ends(low, high)
        if self._long_end and high == self._count:
            found[-1] = self._long_end
        return found
