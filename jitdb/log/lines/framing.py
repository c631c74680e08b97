"""Lines as records: each ends with a newline, begins behind the one before, and may be of any length.

Every line has a number among the records, whatever it holds: the seq of a record is the number of lines before it. One
that is empty but for blanks counts as deleted, as does one that the codec cannot read, or of more than LONGEST bytes. A
byte order mark at the very beginning is passed over. What has no newline yet is no record yet.

Where text may stand before a record (form.py), a record begins behind it; a line of text alone counts as deleted.
Where lines hold batches, each element is a record, which seqs count; a line without any counts as deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jitdb.log.blocks.framing import Blocks, ChunkWalker, Framing, LastRecord
from jitdb.log.codecs.json.codec import CODEC as JSON
from jitdb.log.lines.form import LONGEST, MARK, PLAIN, LineForm, elements, is_blank, object_in

_NEWLINE: Final = ord("\n")


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
        block, inside = divmod(end - 1, log.block_size)
        data = log.second_look(block)[0]
        if len(data) <= inside or (data[inside] != _NEWLINE and not self.form.each):
            return LastRecord(None)
        first, before = block, data.rfind(b"\n", 0, inside)
        while before < 0 and first:
            first -= 1
            before = log.second_look(first)[0].rfind(b"\n")
        start = first * log.block_size + before + 1
        if end - 1 - start > LONGEST:
            return LastRecord(None, start)
        parts = [*(log.second_look(each)[0] for each in range(first, block)), data[:inside]]
        line = b"".join(parts)[before + 1 :] + self._rest_of_line(log, block, data[inside:])
        if start == 0:
            start = self.first_line(line)
            line = line[start:]
        records = self.records_in(line)
        ends = [start + last for _, last in records[:-1]] + [start + len(line) + 1]
        if end not in ends:
            return LastRecord(None)
        if not records:
            return LastRecord(None, start)
        begin, last = records[ends.index(end)]
        return LastRecord(line[begin:last], start + begin)

    def _rest_of_line(self, log: Blocks, block: int, data: bytes) -> bytes:
        """What of a line begins with this rest of a block."""
        parts = []
        while (newline := data.find(b"\n")) < 0 and data:
            parts.append(data)
            block += 1
            data = log.second_look(block)[0]
        return b"".join([*parts, data[: max(newline, 0)]])

    def fault_in(self, data: bytes, used: int) -> int | None:
        return None


LINES: Final = LineFraming()
