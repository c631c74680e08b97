"""A scan's way through lines: read a chunk, and on to where its last line ends, and find its lines, or their elements.

Within lines that hold batches it goes from element to element. An index may end, and so a scan begin, in the middle of
a line. Then that line is walked from its own beginning, and what comes before is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.errors import LogSuperseded
from jitdb.log.blocks.checksum import Bytes, Counts, Ints, Room
from jitdb.log.blocks.framing import Blocks, ChunkWalker
from jitdb.log.codecs.fields.constants import DELETED, LIVE
from jitdb.log.codecs.fields.located import RecordBatch, Scratch
from jitdb.log.lines.batch_path import Element
from jitdb.log.lines.elements import ElementFinder, Places, places_of
from jitdb.log.lines.files.file import newline_before, newline_from
from jitdb.log.lines.form import LONGEST
from jitdb.log.lines.line_kernels import find_newline, walk_lines, walk_prefixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitdb.log.lines.form import LineRules

MOST: Final = 1 << 17  # lines that a walk finds: of empty ones a chunk has some millions
MORE: Final = 1 << 16  # bytes read with a chunk for the end of its last line, at most: an eighth of a small one's
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
        self._more = min(MORE, most >> 3)
        self._usual = most + self._more + _SLACK
        self.buffer = np.zeros(self._usual, np.uint8)
        self._many = Scratch()
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
        filled = self._fill(begin, 0, size + self._more)
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
        behind, is_found = self._newline_from(begin + filled)
        if not is_found:
            raise LogSuperseded("it was changed while it was read")
        end = behind + 1 - begin
        first = max(self._first, self.buffer[:at].tobytes().rfind(b"\n") + 1)
        if end - 1 - first > LONGEST:
            self._long = first, end
            return first
        self._fill(begin, filled, end)
        return end

    def _newline_from(self, at: int) -> tuple[int, bool]:
        """Where the first newline of the log is from this byte on, and whether there is one."""
        return newline_from(self._before_stop, at, self._stop)

    def _before_stop(self, size: int, at: int) -> bytes:
        """So many bytes of the log, fewer at its end."""
        found = bytearray(max(0, min(size, self._stop - at)))
        return bytes(found[: self._log.read_blocks(at, at + len(found), memoryview(found))])

    def _fill(self, begin: int, filled: int, wanted: int) -> int:
        """Read on behind the bytes that are there, until there are `wanted`; how many there are then."""
        wanted = min(wanted, self._stop - begin)
        if wanted + _SLACK > len(self.buffer):
            larger = np.zeros(wanted + _SLACK, np.uint8)
            larger[:filled] = self.buffer[:filled]
            self.buffer = larger
        return filled + self._log.read_blocks(begin + filled, begin + wanted, self.buffer[filled:wanted])

    def read_many(self, begins: Sequence[int]) -> RecordBatch | None:
        form = self._framing.form
        if form.row is not None or form.has_batches:
            return None
        width = self._most + self._more
        buffer = self._many.room((len(begins) + 1) * width)
        starts = np.arange(len(begins)) * width
        lengths = np.empty(len(begins), np.int64)
        for number, (begin, at) in enumerate(zip(begins, starts.tolist(), strict=True)):
            filled = self._log.read_blocks(begin, min(begin + width, self._stop), buffer[at : at + width])
            is_whole = begin + filled == self._stop or find_newline(buffer, at + self._most, at + filled) >= 0
            lengths[number] = filled if is_whole else -1
        return RecordBatch(buffer, starts, lengths, np.full(len(begins), LIVE, np.uint8))

    @property
    def first(self) -> int:
        """Where the first line begins in the buffer, of those that the last walk found."""
        return self._first

    @property
    def end(self) -> int:
        """Where the last line ends in the buffer, but for one that is too long."""
        return self._end

    def walk(self, size: int, sums: Ints) -> Counts:
        """See ChunkWalker. Other programs' lines have no checksums."""
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


class EachWalker(LineWalker):
    """See ChunkWalker and LineWalker."""

    def __init__(self, log: Blocks, most: int, stop: int, framing: LineRules) -> None:
        super().__init__(log, most, stop, framing)
        self._ends = np.empty(len(self.room.starts), np.int64)
        self._head = np.empty(0, np.uint8)  # the beginning of the first line, where it is before the chunk
        self._head_end = 0  # and where that line ends in the buffer
        self._begin = 0
        self._finder = ElementFinder(framing.form)
        self._width = self._finder.width
        self._around = np.empty(len(self.room.starts) * self._width, np.int64)  # see Places

    def read(self, begin: int, start: int) -> int:
        self._begin, self._head, self._head_end = begin, self._head[:0], 0
        size = super().read(begin, start)
        if begin <= start and not self._is_line_start(start):
            self._go_back(begin, start, size)
        return size

    def _newline_from(self, at: int) -> tuple[int, bool]:
        if self._framing.form.is_document:
            return self._stop - 1, True
        return super()._newline_from(at)

    def _first_from(self, begin: int, start: int, size: int) -> int:
        if begin == start or self._is_line_start(start):
            return super()._first_from(begin, start, size)
        return find_newline(self.buffer, 0, size) + 1

    def _is_line_start(self, at: int) -> bool:
        """Whether a line begins at this byte of the log, as far as the chunk reaches."""
        place = at - self._begin
        if self._begin == 0 and at == self._framing.first_line(self.buffer[:3].tobytes()):
            return True
        if place > 0:
            return place < len(self.buffer) and bool(self.buffer[place - 1] == ord("\n"))
        return at == 0 or self._before_stop(1, at - 1) == b"\n"

    def _go_back(self, begin: int, start: int, size: int) -> None:
        """Take the line, too, in the middle of which `start` is."""
        if self.buffer[: min(start - begin, size)].tobytes().rfind(b"\n") >= 0:
            return  # it is one of the chunk's own
        filled = min(size, self._stop - begin)
        cut = newline_before(self._before_stop, begin) if begin else -1
        if begin and cut < 0:
            cut = self._framing.first_line(self._before_stop(3, 0)) - 1
        if not begin or cut + 1 == begin:  # it begins with the chunk
            self._first = 0 if begin else self._framing.first_line(self.buffer[:3].tobytes())
            self._end = self._end_of_line(begin, size, filled)
            return
        self._head = np.frombuffer(self._before_stop(begin - cut - 1, cut + 1), np.uint8)
        self._head_end = self._end_of_line(begin, 0, filled)
        self._first = self._head_end

    def walk(self, size: int, sums: Ints) -> Counts:
        """See ChunkWalker. Other programs' lines have no checksums."""
        if self.is_cut:
            self._first = int(self._ends[self._count - 1])
        self.is_cut, count = False, 0
        if self._head_end:
            count = self._walk_head()
            self._head_end = 0
        if self._first <= size:
            count = self._walk_from(self.buffer, self._first, size, self._end, count)
        if self._long is not None and not self.is_cut:
            if count == len(self.room.starts):
                self._enlarge()
            room, (begin, self._ends[count]) = self.room, self._long
            room.starts[count], room.lengths[count], room.states[count] = begin, 0, LIVE
            count, self._long = count + 1, None
        gone = int(self.room.starts[:count].searchsorted(self._framing.skipped - self._begin))
        self.room.states[:gone] = DELETED
        return Counts(count, 0, 0)

    def _walk_head(self) -> int:
        """The elements in the chunk of the line that begins before it. What is around them may be before it, too, so
        the line is put into the buffer once more, behind the chunk."""
        size = len(self._head) + self._head_end
        at = max(self._end, self._head_end, self._most + self._more) + _SLACK
        if at + size + _SLACK > len(self.buffer):
            larger = np.zeros(at + size + _SLACK, np.uint8)
            larger[: len(self.buffer)] = self.buffer
            self.buffer = larger
        self.buffer[at : at + len(self._head)] = self._head
        self.buffer[at + len(self._head) : at + size] = self.buffer[: self._head_end]
        self.buffer[at + size : at + size + _SLACK] = 0
        count = self._walk_from(self.buffer, at, at, at + size, 0)
        for places in (self.room.starts, self._ends):
            places[:count] -= at + len(self._head)
        self._count = count
        low = int(self.room.starts[:count].searchsorted(0))
        self._drop(low)
        return count - low

    def _drop(self, low: int) -> None:
        """Leave out the first elements of those that were found."""
        room, count, width = self.room, self._count, self._width
        for array in (room.starts, room.lengths, room.states, self._ends):
            array[: count - low] = array[low:count].copy()
        self._around[: (count - low) * width] = self._around[low * width : count * width].copy()

    def _walk_from(self, data: Bytes, position: int, last: int, stop: int, count: int) -> int:
        """The elements of these lines, behind the first `count` places; how many are taken then."""
        while True:
            room = self.room
            places = Places(room.starts, room.lengths, room.states, self._ends, self._around)
            count, position, is_full = self._finder.walk(data, position, last, stop, count, places)
            end = find_newline(data, position, stop) if position <= last else -1
            if end < 0:
                return count
            line = b"" if is_full else data[position:end].tobytes()
            found = self._framing.records_in(line)
            needed = len(room.starts) if is_full else count + max(len(found), 1)
            if count and needed >= len(room.starts):
                self.is_cut, self._count = True, count
                return count
            while needed >= len(self.room.starts):
                self._enlarge()
            if not is_full:
                count = self._put(position, end, line, found, count)
                position = end + 1

    def _enlarge(self) -> None:
        def larger(array: Ints) -> Ints:
            return np.concatenate([array, np.empty_like(array)])

        room = self.room
        self.room = room._replace(
            starts=larger(room.starts), lengths=larger(room.lengths), states=np.concatenate([room.states, room.states])
        )
        self._ends = larger(self._ends)
        self._around = larger(self._around)

    def _put(self, position: int, end: int, line: bytes, found: list[Element], count: int) -> int:
        """What Python found in a line of which the kernel was not certain."""
        places = places_of(line, found, self._framing, self._width)
        room, after, width = self.room, count + len(places.starts), self._width
        room.starts[count:after], room.lengths[count:after] = places.starts + position, places.lengths
        room.states[count:after], self._ends[count:after] = places.states, places.ends + position
        places.around[::2] += position
        self._around[count * width : after * width] = places.around
        self._ends[after - 1] = end + 1
        return after

    def ends(self, low: int, high: int) -> Ints:
        return self._ends[low:high]
