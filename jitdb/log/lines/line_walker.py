"""A scan's way through lines: read a chunk, and on to where its last line ends, and find its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.errors import LogError, LogSuperseded
from jitdb.log.blocks.crc import WORTH_LOADING, Counts, Ints, Room, is_compiled
from jitdb.log.blocks.framing import Blocks, ChunkWalker
from jitdb.log.lines.line_kernels import find_newline, walk_lines
from jitdb.log.lines.prefix_kernels import walk_prefixed

if TYPE_CHECKING:
    from jitdb.log.lines.form import LineRules

LONGEST: Final = 1 << 30  # bytes of a line: kernels count positions in 31 bits
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
        starts, lengths = np.empty(most + 1, np.int64), np.empty(most + 1, np.int64)
        self.room = Room(starts, lengths, np.empty(most + 1, np.uint8), nothing, nothing)
        self._first = self._end = 0  # where the first line begins, and the last one ends

    def read(self, begin: int, start: int) -> int:
        if len(self.buffer) > self._usual:
            self.buffer = np.zeros(self._usual, np.uint8)  # a long line is no reason to keep so much
        size = min(self._most, self._stop - begin)
        filled = self._fill(begin, 0, size + MORE)
        if begin == start:
            self._first = 0 if begin else self._framing.first_line(self.buffer[:3].tobytes())
        else:
            self._first = find_newline(self.buffer, 0, size) + 1
        has_lines = begin == start or self._first > 0
        self._end = self._end_of_line(begin, size, filled) if has_lines else 0
        return size

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
        """Where the chunk's first line begins in the buffer."""
        return self._first

    def walk(self, size: int, sums: Ints) -> Counts:
        """See ChunkWalker. Nobody wrote checksums of somebody else's lines."""
        room = self.room
        lines = self.buffer, self._first, size, self._end, room.starts, room.lengths, room.states
        if self.wants_crcs and self._walk is walk_lines and size >= WORTH_LOADING and is_compiled():
            from jitdb.log.lines.summed_kernels import walk_summed

            block_size = self._log.block_size
            self.crcs = np.empty(-(-size // block_size), np.int64)
            return Counts(walk_summed(*lines, size, block_size, self.crcs), 0, 0)
        self.crcs = None
        return Counts(self._walk(*lines), 0, 0)
