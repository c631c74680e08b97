"""A scan's way through lines: read a chunk, and on to where its last line ends, and find its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.errors import LogError, LogSuperseded
from jitdb.log.blocks.crc import Counts, Ints, Room
from jitdb.log.blocks.framing import Blocks, ChunkWalker
from jitdb.log.lines.line_kernels import find_newline, walk_lines
from jitdb.log.lines.prefix_kernels import walk_prefixed

if TYPE_CHECKING:
    from jitdb.log.lines.form import LineRules

LONGEST: Final = 1 << 30  # bytes of a line: kernels count positions in 31 bits
MOST: Final = 1 << 17  # lines that a walk finds: of empty ones a chunk has some millions
MORE: Final = 1 << 16  # bytes read with a chunk for the end of its last line
_SLACK: Final = 64  # bytes behind what was read, which kernels may look at


class LineWalker(ChunkWalker):
    """A chunk has the lines that begin behind its newlines. So it need not know the byte before it.

    The line with which the first wanted chunk begins is its own, too.
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
        self._count = 0  # of the lines that the last walk found

    def read(self, begin: int, start: int) -> int:
        if len(self.buffer) > self._usual:
            self.buffer = np.zeros(self._usual, np.uint8)  # a long line is no reason to keep so much
        self.is_cut = False
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
        """Where the line ends that has this byte of the buffer. Raises LogError for one too long."""
        size = at
        if begin + at == self._stop:
            return at
        while (newline := find_newline(self.buffer, at, filled)) < 0:
            if begin + filled >= self._stop:
                raise LogSuperseded("it was changed while it was read")
            if filled - size > LONGEST:
                raise LogError(
                    f"a line of more than {LONGEST:,} bytes, the most that can be indexed, goes on at byte "
                    f"{begin + filled:,}",
                    offset=begin + filled,
                )
            at = filled
            filled = self._fill(begin, filled, 2 * filled)
        return newline + 1

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

    def walk(self, size: int, sums: Ints) -> Counts:
        """See ChunkWalker. Nobody wrote checksums of somebody else's lines."""
        room = self.room
        if self.is_cut:
            self._first = int(self.ends(self._count - 1, self._count)[0])
        lines = self.buffer, self._first, size, self._end, room.starts, room.lengths, room.states
        self._count = count = self._walk(*lines)
        self.is_cut = count == len(room.starts)
        return Counts(count, 0, 0)
