"""Lines as records: each ends with a newline, begins behind the one before, and may be of any length.

Every line has a number among the records, whatever it holds: the seq of a record is the number of lines before it. One
that is empty but for blanks counts as deleted, as does one that the codec cannot read. A byte order mark at the very
beginning is passed over. What has no newline yet is no record yet.

Where text may stand before a record (prefix.py), a record begins behind it; a line of text alone counts as deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jitdb.log.blocks.framing import Blocks, ChunkWalker, Framing, LastRecord
from jitdb.log.lines.blanks import MARK, is_blank
from jitdb.log.lines.form import PLAIN, LineForm
from jitdb.log.lines.prefix import object_in


class LineFraming(Framing):
    """See Framing. `base`: where in the file the bytes begin that are the log's first."""

    def __init__(self, form: LineForm = PLAIN, base: int = 0) -> None:
        self.form = form
        self._is_rest = base > 0
        self.names_malformed = not self._is_rest  # the seq of a line tells its number in the file

    before = 0
    behind = 1
    is_blocked = False
    keeps_malformed = False

    def walker(self, log: Blocks, most: int, stop: int) -> ChunkWalker:
        from jitdb.log.lines.line_walker import LineWalker  # with numpy

        return LineWalker(log, most, stop, self)

    def first_line(self, head: bytes) -> int:
        """Where the first line of the log begins."""
        return 0 if self._is_rest or not head.startswith(MARK) else len(MARK)

    def record_in(self, line: bytes) -> int:
        """Where the record of a line begins; -1 where it has none."""
        if self.form.allow_prefix:
            return object_in(line)
        return -1 if is_blank(line) else 0

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
            begin = self.record_in(line)
            if begin >= 0:
                yield start + position + begin, line[begin:]
            position = end + 1

    def last_record(self, log: Blocks, end: int) -> LastRecord:
        block, inside = divmod(end - 1, log.block_size)
        data = log.second_look(block)[0][: inside + 1]
        if len(data) <= inside or data[-1:] != b"\n":
            return LastRecord(None)
        before, parts = data[:-1].rfind(b"\n"), [data[:-1]]
        while before < 0 and block:
            block -= 1
            data = log.second_look(block)[0]
            before = data.rfind(b"\n")
            parts.append(data)
        start = block * log.block_size + before + 1
        parts[-1] = parts[-1][before + 1 :]
        line = b"".join(reversed(parts))
        if start == 0:
            start = self.first_line(line)
            line = line[start:]
        begin = self.record_in(line)
        return LastRecord(None, start) if begin < 0 else LastRecord(line[begin:], start + begin)

    def fault_in(self, data: bytes, used: int) -> int | None:
        return None


LINES: Final = LineFraming()
