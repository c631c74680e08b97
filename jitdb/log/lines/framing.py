"""Lines as records: each ends with a newline, begins behind the one before, and may be of any length.

Every line has a number among the records, whatever it holds: the seq of a record is the number of lines before it. One
that is empty but for blanks counts as deleted, as does one that the codec cannot read, or of more than LONGEST bytes. A
byte order mark at the very beginning is passed over. What has no newline yet is no record yet.

Where text may stand before a record (form.py), a record begins behind it; a line of text alone counts as deleted.
Where lines hold batches, each element is a record, which seqs count; a line without any counts as deleted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from jitdb.log.blocks.framing import Blocks, ChunkWalker, Framing, LastRecord
from jitdb.log.codecs.json.codec import CODEC as JSON
from jitdb.log.lines.files.file import newline_before, newline_from
from jitdb.log.lines.files.stamp import Read
from jitdb.log.lines.form import LONGEST, MARK, PLAIN, TOO_LONG, LineForm, LineRules, elements, is_blank, object_in

BEHIND: Final = 1 << 8  # bytes read before a record at first, where its line may begin earlier
AHEAD: Final = 1 << 12  # and for it
_LOOK: Final = 1 << 20  # bytes: of a line that has more, the end is looked for before it is read


class Window:
    """A part of a file of which `end` bytes are lines, read on to both sides as lines in it ask for it.

    Raises EOFError where the file has become shorter.
    """

    def __init__(self, read: Read, begin: int, stop: int, end: int, framing: LineRules) -> None:
        self._read, self._end, self._framing = read, end, framing
        self._begin = begin if begin > len(MARK) else 0
        self._data = read(min(stop, end) - self._begin, self._begin)

    def line_start(self, offset: int) -> int:
        """Where the line begins that has this byte."""
        while (newline := self._data.rfind(b"\n", 0, offset - self._begin)) < 0 and self._begin:
            size = min(max(BEHIND, len(self._data)), self._begin)
            if size >= _LOOK:
                newline = newline_before(self._read, self._begin)
                size = self._begin - max(0, newline)
                if offset - newline > LONGEST:
                    return newline + 1
            before = self._read(size, self._begin - size)
            if len(before) < size:
                raise EOFError
            self._data, self._begin = before + self._data, self._begin - size
        return self._begin + newline + 1 if newline >= 0 else self._framing.first_line(self._data)

    def is_line_start(self, offset: int) -> bool:
        """Whether a line begins at this byte."""
        at = offset - self._begin
        return (self._begin == 0 and offset == self._framing.first_line(self._data)) or self._data[at - 1 : at] == b"\n"

    def line(self, offset: int) -> bytes:
        """The rest of a line from this byte on, without its newline; TOO_LONG of one that is."""
        at = offset - self._begin
        if at < 0:
            return TOO_LONG  # line_start() did not keep it
        while (stop := self._data.find(b"\n", at)) < 0:
            there = self._begin + len(self._data)
            size = max(AHEAD, len(self._data))
            if size >= _LOOK:
                at_newline, is_found = newline_from(self._read, there, self._end)
                if not is_found:
                    raise EOFError
                size = at_newline + 1 - there
                if there + size - 1 - offset > LONGEST:
                    return TOO_LONG
            more = self._read(min(size, self._end - there), there)
            if not more:
                raise EOFError
            self._data += more
        return self._data[at:stop]


class LineFraming(Framing):
    """See Framing.

    base:    where in the file the bytes begin that are the log's first
    skipped: the byte of the log before which records count as deleted
    """

    def __init__(self, form: LineForm = PLAIN, base: int = 0, skipped: int = 0) -> None:
        self.form = form
        self.skipped = skipped
        self._is_rest = base > 0
        self.tells_malformed = not self._is_rest
        self.names_malformed = not self._is_rest and not form.each  # the seq of a line tells its number in the file

    before = 0
    is_blocked = False
    keeps_malformed = False

    def walker(self, log: Blocks, most: int, stop: int) -> ChunkWalker:
        from jitdb.log.lines.line_walkers import EachWalker, LineWalker  # with numpy

        return (EachWalker if self.form.each else LineWalker)(log, most, stop, self)

    def first_line(self, head: bytes) -> int:
        """Where the first line of the log begins."""
        return 0 if self._is_rest or not head.startswith(MARK) else len(MARK)

    def records_in(self, line: bytes) -> list[tuple[int, int]]:
        """Where the records of a line begin and end. One that is no JSON is one, which the codec cannot read."""
        begin = object_in(line) if self.form.allow_prefix else -1 if is_blank(line) else 0
        if begin < 0:
            return []
        if not self.form.each:
            return [(begin, len(line))]
        begin += len(line[begin:]) - len(line[begin:].lstrip(b" \t\r"))
        if not JSON.is_valid(line[begin:]):
            return [(begin, len(line))]
        return [(begin + first, begin + last) for first, last in elements(line[begin:], self.form.each)]

    def place_without(self, line: bytes) -> int:
        """Where a line without records counts as one that is deleted: text at its beginning, others at their ends."""
        is_text = self.form.allow_prefix and object_in(line) < 0 and not is_blank(line)
        return len(line) if not is_text and not self.form.is_plain else 0

    def is_text(self, line: bytes) -> bool:
        """Whether a line is blank, or text that belongs to the record before it."""
        return is_blank(line) or (self.form.allow_prefix and object_in(line) < 0)

    def records(self, log: Blocks, block: int, size: int) -> Iterator[tuple[int, bytes]]:
        start = block * log.block_size
        buffer = memoryview(bytearray(size))
        data = bytes(buffer[: log.read_blocks(start, start + size, buffer)])
        position = data.find(b"\n") + 1 if start else self.first_line(data)
        while position or not start:
            end = data.find(b"\n", position)
            if end < 0:
                return
            line = data[position:end]
            for begin, stop in self.records_in(line):
                yield start + position + begin, line[begin:stop]
            position = end + 1

    def last_record(self, log: Blocks, end: int) -> LastRecord:
        def read(size: int, offset: int) -> bytes:
            first = offset // log.block_size
            blocks = range(first, -(-(offset + size) // log.block_size))
            return b"".join(log.second_look(block)[0] for block in blocks)[offset - first * log.block_size :][:size]

        try:
            window = Window(read, end - BEHIND, end, sys.maxsize, self)
            start = window.line_start(end - 1)
            line = window.line(start)
        except EOFError:
            return LastRecord(None)
        if line is TOO_LONG:
            return LastRecord(None, start)
        records = self.records_in(line)
        ends = [start + last for _, last in records[:-1]] + [start + len(line) + 1]
        if end not in ends:
            return LastRecord(None)
        if not records:
            return LastRecord(None, start)
        begin, last = records[ends.index(end)]
        return LastRecord(line[begin:last], start + begin)

    def fault_in(self, data: bytes, used: int) -> int | None:
        return None


LINES: Final = LineFraming()
