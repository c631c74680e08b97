"""A scan's way through the lines of a format: lines that belong together are one record, and records become JSON.

Of a format of batches, elements of lines do, with what is around them. Where that is much, a walk gives fewer of them.

A chunk has the records that begin in it. Its first lines may belong to a record of the chunk before; whether they do,
the line before them tells. The chunk's last record goes on behind it, up to the next line that begins one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.log.blocks.checksum import Counts, Ints
from jitdb.log.codecs.fields.constants import SLACK
from jitdb.log.codecs.fields.located import RecordBatch, Scratch
from jitdb.log.codecs.fields.part_kernels import NEWLINE
from jitdb.log.lines.files.file import newline_before
from jitdb.log.lines.line_kernels import gather_around
from jitdb.log.lines.line_walkers import EachWalker, LineWalker

if TYPE_CHECKING:
    from jitdb.log.blocks.framing import Blocks
    from jitdb.log.lines.form import LineRules
    from jitdb.log.lines.formats.rendering import Renderer

_SLACK = 64
_FEW_LINES, _LINES = 4, 1 << 15  # lines behind a record that are looked at together: first, and at most
_SHORT = 256  # bytes of a line, on an average
_MOST = 1 << 26  # bytes of elements with what is around them that a walk gives


class FormatWalker(LineWalker):
    """See ChunkWalker and LineWalker."""

    def __init__(self, log: Blocks, most: int, stop: int, framing: LineRules, renderer: Renderer, joins: bool) -> None:
        super().__init__(log, most, stop, framing)
        self._renderer, self._joins = renderer, joins
        self._before = (0, 0)  # where in the buffer the line before the first one is; empty: nowhere
        self._begin = 0
        self._next = 0  # where the next walk of the chunk begins

    def read(self, begin: int, start: int) -> int:
        self._begin, self._before = begin, (0, 0)
        size = super().read(begin, start)
        if self._joins and begin > start and self._end:
            self._take_line_before(begin)
        return size

    def _take_line_before(self, begin: int) -> None:
        """Put the line before the first one behind the chunk in the buffer."""
        newline = newline_before(self._before_stop, begin + self._first - 1)
        before = self._before_stop(begin + self._first - 1 - (newline + 1), newline + 1)
        before = before or b"\n"  # an empty line is one, too
        at = max(self._end, self._most + self._more) + _SLACK
        if at + len(before) + _SLACK > len(self.buffer):
            larger = np.zeros(at + len(before) + _SLACK, np.uint8)
            larger[: self._end] = self.buffer[: self._end]
            self.buffer = larger
        self.buffer[at : at + len(before)] = np.frombuffer(before, np.uint8)
        self.buffer[at + len(before) : at + len(before) + _SLACK] = 0
        self._before = at, at + len(before)

    def walk(self, size: int, sums: Ints) -> Counts:
        if self.is_cut:
            self._first, self.is_cut = self._next, False
        counted, room = super().walk(size, sums), self.room
        if not counted.records:
            return counted
        last = counted.records - 1
        begun, end = int(room.starts[last]), int(room.starts[last] + room.lengths[last])
        count = counted.records
        if self._joins:
            count, _, _ = self._renderer.join(
                self.buffer, self._before, room.starts, room.lengths, room.states, counted.records
            )
            self._before = (0, 0)
        if self.is_cut and count > 1:
            count -= 1  # it may go on in the next walk, which begins with it
            self._next = int(room.starts[count])
        elif count:
            self._next = self._extend(count - 1) if self._joins else end + 1
        else:
            self._next, self._before = end + 1, (begun, max(end, begun + 1))
        self._count = count
        return Counts(count, 0, 0)

    def _extend(self, number: int) -> int:
        """Take to a record the lines behind the walked ones that belong to it; where the next one begins."""
        room = self.room
        end = int(room.starts[number] + room.lengths[number]) + 1
        last = self.buffer[int(room.starts[number]) : end - 1].tobytes().rfind(b"\n") + 1 + int(room.starts[number])
        filled, lines = max(end, self._end), _FEW_LINES
        while self._begin + end < self._stop:
            if filled - end < self._more and self._begin + filled < self._stop:
                # As much again: a line at a time, each would copy all of a long record.
                filled = self._fill(self._begin, filled, 2 * filled)
            stops = self._ends_of_lines(end, filled, lines)
            if not len(stops):
                stop = self._end_of_line(self._begin, end, filled)
                if stop <= end:
                    break
                filled, stops = max(filled, stop), np.array([stop])
            self._end = max(self._end, int(stops[-1]))
            count = self._renderer.going_on(self.buffer, (last, end - 1), np.append(end, stops[:-1]), stops - 1)
            if count:
                last, end = int(np.append(end, stops)[count - 1]), int(stops[count - 1])
                room.lengths[number] = end - 1 - room.starts[number]
            if count < len(stops):
                break
            lines = min(8 * lines, _LINES)
        return end

    def _ends_of_lines(self, at: int, filled: int, most: int) -> Ints:
        """Behind the newlines of at most so many lines of the buffer from this byte on, if they are short."""
        return np.flatnonzero(self.buffer[at : min(filled, at + _SHORT * most)] == NEWLINE)[:most] + (at + 1)

    def batch(self, low: int, high: int, begin: int) -> RecordBatch:
        return self._renderer.render(super().batch(low, high, begin))


class BatchFormatWalker(EachWalker):
    """See ChunkWalker and EachWalker."""

    def __init__(self, log: Blocks, most: int, stop: int, framing: LineRules, renderer: Renderer) -> None:
        super().__init__(log, most, stop, framing)
        self._renderer, self._gathered = renderer, Scratch()
        self._given = 0  # of those that the last walk through lines found, how many were given
        self._goes_on = False  # whether it left lines to the next one

    def read(self, begin: int, start: int) -> int:
        self._count = self._given = 0
        self._goes_on = False
        return super().read(begin, start)

    def walk(self, size: int, sums: Ints) -> Counts:
        left = self._count - self._given
        if left:
            self._first = int(self._ends[self._given - 1])
            self._drop(self._given)
        else:
            self.is_cut = self._goes_on
            left = super().walk(size, sums).records
            self._goes_on = self.is_cut
        self._count = left
        fitting = int(self._sizes(0, left).cumsum().searchsorted(_MOST, "right"))
        self._given = min(max(fitting, 1), left)
        self.is_cut = self._goes_on or self._given < left
        return Counts(self._given, 0, 0)

    def _sizes(self, low: int, high: int) -> Ints:
        """Bytes of these elements with what is around them."""
        width = self._width
        around = self._around[low * width : high * width].reshape(-1, width)[:, 1::2]
        sizes: Ints = self.room.lengths[low:high] + around.sum(axis=1) + around.shape[1]
        return sizes

    def batch(self, low: int, high: int, begin: int) -> RecordBatch:
        found, width = super().batch(low, high, begin), self._width
        out = self._gathered.room(int(self._sizes(low, high).sum()) + SLACK)
        places, sizes = np.empty(high - low, np.int64), np.empty(high - low, np.int64)
        around = self._around[low * width : high * width]
        end = gather_around(found.buffer, found.starts, found.lengths, found.states, around, out, places, sizes)
        out[end : end + SLACK] = 0
        return self._renderer.render(RecordBatch(out, places, sizes, found.states, found.offsets))
