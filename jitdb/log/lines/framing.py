"""Lines as records: each ends with a newline, begins behind the one before, and may be of any length.

Every line has a number among the records, whatever it holds: the seq of a record is the number of lines before it. One
that is empty but for blanks counts as deleted, as does one that the codec cannot read, or of more than LONGEST bytes. A
byte order mark at the very beginning is passed over. A last line without a newline is a record if it is whole JSON,
which nothing but its newline can follow; of a number more digits may.

Where text may stand before a record (form.py), a record begins behind it; a line of text alone counts as deleted.
Where lines hold batches, each element is a record, which seqs count; a line without any counts as deleted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from threading import local
from typing import TYPE_CHECKING, Final

from jitdb.log.blocks.framing import Blocks, ChunkWalker, Framing, LastRecord
from jitdb.log.codecs.json.codec import CODEC as JSON
from jitdb.log.lines.batch_path import Element, elements, with_around
from jitdb.log.lines.files.file import GoesOn, newline_before, newline_from
from jitdb.log.lines.files.stamp import Read
from jitdb.log.lines.form import (
    LONGEST,
    MARK,
    PLAIN,
    TOO_LONG,
    LineForm,
    LineRules,
    is_blank,
    object_in,
)

if TYPE_CHECKING:
    from jitdb.log.codecs import Codec
    from jitdb.log.lines.formats.rendering import Renderer
    from jitdb.log.objects.door import Location

BEHIND: Final = 1 << 8  # bytes read before a record at first, where its line may begin earlier
AHEAD: Final = 1 << 12  # and for it
_SLACK: Final = 64  # bytes behind a line that kernels may look at
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

    def head(self) -> bytes:
        """The first bytes of the file, in which a byte order mark may be."""
        return self._data[: len(MARK)] if self._begin == 0 else b""

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
                size = max(size, len(self._data) >> 2)  # one line at a time, each would copy all of a long record
            more = self._read(min(size, self._end - there), there)
            if not more:
                raise EOFError
            self._data += more
        return self._data[at:stop]


class LineFraming(Framing):
    """See Framing.

    base:    where in the file the bytes begin that are the log's first
    skipped: the byte of the log before which records count as deleted
    changed: nanoseconds, when the file was changed last: no time without a year is later than its month
    path:    of the file, for errors
    """

    path: Location | None = None

    def __init__(self, form: LineForm = PLAIN, base: int = 0, skipped: int = 0, changed: int = 0) -> None:
        self.form = form
        self.row = form.row
        self.skipped = skipped
        self.changed = changed
        self._of_thread = local()  # `renderer`
        self.base = base
        self._is_rest = base > 0
        self.tells_malformed = not self._is_rest
        self.tells_what_came = self._is_rest
        self._has_batches = form.has_batches
        self.reads_pages = not self._has_batches
        self.is_plain = form.is_plain
        self.names_malformed = (
            not self._is_rest and not self._has_batches and not self.joins
        )  # the seq of a line tells its number in the file

    before = 0
    is_blocked = False
    keeps_malformed = False

    def walker(self, log: Blocks, most: int, stop: int) -> ChunkWalker:
        from jitdb.log.lines.line_walkers import EachWalker, LineWalker  # with numpy

        if self.row is not None:
            from jitdb.log.lines.format_walker import BatchFormatWalker, FormatWalker

            if self._has_batches:
                return BatchFormatWalker(log, most, stop, self, self._new_renderer())
            return FormatWalker(log, most, stop, self, self._new_renderer(), self.joins)
        return (EachWalker if self._has_batches else LineWalker)(log, most, stop, self)

    @property
    def joins(self) -> bool:
        """Whether a record may have several lines."""
        return self.row is not None and self.row.joins

    def _new_renderer(self) -> Renderer:
        from jitdb.log.lines.formats.rendering import Renderer

        assert self.row is not None
        return Renderer(self.row, lambda: self.changed, self.path)

    @property
    def renderer(self) -> Renderer:
        """What makes JSON of the format's records, for this thread."""
        if not hasattr(self._of_thread, "renderer"):
            self._of_thread.renderer = self._new_renderer()
        found: Renderer = self._of_thread.renderer
        return found

    def rendered(self, records: list[bytes]) -> list[bytes]:
        """Records as the codec reads them."""
        return records if self.row is None else self.renderer.rendered(records)

    def has_refused(self, record: bytes) -> bool:
        """Whether lines of which nothing was rendered should be a record: they are not blank, nor a table's header."""
        return self.row is not None and not is_blank(record) and self.renderer.refuses(record)

    def begins(self, before: bytes | None, line: bytes) -> bool:
        """Whether a line begins a record, behind another one (None: it is the first)."""
        if before is None or not self.joins:
            return True
        import numpy as np

        joined = np.frombuffer(bytearray(before + b"\n" + line + bytes(_SLACK)), np.uint8)
        at = len(before) + 1
        return self.renderer.begins(joined, (0, len(before.rstrip(b"\r"))), (at, at + len(line.rstrip(b"\r"))))

    def going_on(self, before: bytes, lines: Sequence[bytes]) -> int:
        """How many of these lines, of a format whose records have several, belong to the record of the one before."""
        import numpy as np

        sizes = np.array([len(before), *map(len, lines)], np.int64)
        ends = np.cumsum(sizes + 1) - 1
        joined = np.frombuffer(bytearray(b"\n".join([before, *lines]) + bytes(_SLACK)), np.uint8)
        starts = ends - sizes
        return self.renderer.going_on(joined, (0, len(before)), starts[1:], ends[1:])

    @property
    def goes_on(self) -> GoesOn | None:
        """See LineFile."""
        return (lambda before, line: not self.begins(before, line)) if self.joins else None

    def first_line(self, head: bytes) -> int:
        """Where the first line of the log begins."""
        return 0 if self._is_rest or not head.startswith(MARK) else len(MARK)

    def records_in(self, line: bytes) -> list[Element]:
        """Where the records of a line are. One that is no JSON is one, which the codec cannot read."""
        begin = self._begin_in(line)
        if begin < 0:
            return []
        if self.form.is_document:
            from jitdb.log.lines.elements import elements_in

            places = elements_in(line, self)
            return [] if places.states[0] else places.elements()
        if not self._has_batches:
            return [Element(begin, len(line))]
        begin += len(line[begin:]) - len(line[begin:].lstrip(b" \t\r"))
        path = self.form.path
        if not JSON.is_valid(line[begin:]):
            return [Element(begin, len(line), ((-1, -1),) * len(path.around))]
        return elements(b" " * begin + line[begin:], path)

    def line_around(self, read: Read, end: int, offset: int) -> tuple[int, bytes]:
        """The line that has this byte, and where it begins. Raises EOFError."""
        if self.form.is_document:
            begin = self.first_line(read(len(MARK), 0))
            size = end - begin - 1
            line = read(size, begin) if size <= LONGEST else TOO_LONG
            if line is not TOO_LONG and len(line) < size:
                raise EOFError
            return begin, line
        window = Window(read, offset - BEHIND, offset + AHEAD, end, self)
        begin = window.line_start(offset)
        return begin, window.line(begin)

    def is_whole(self, line: bytes, is_still: bool, codec: Codec) -> bool:
        """Whether a last line without a newline is all that it will be: JSON that ends where it does, or text of a file
        to which nothing more is expected to come (`is_still`).
        """
        line = line.removeprefix(MARK).rstrip(b" \t\r")
        begin = self._begin_in(line)
        if begin < 0 or self._is_of_text:
            return begin >= 0 and is_still
        if line[-1:].isdigit():
            return False
        return _is_valid(line[begin:], JSON) and (
            bool(self.form.path.steps) or codec is JSON or codec.is_valid(line[begin:])
        )

    def is_cut(self, line: bytes) -> bool:
        """Whether a last line without a newline that is not whole is the beginning of records."""
        return self._begin_in(line) >= 0 and not self._is_of_text

    @property
    def _is_of_text(self) -> bool:
        """Whether a line need not be JSON, so that its end does not show."""
        return self.row is not None and not self.row.is_json

    def _begin_in(self, line: bytes) -> int:
        """Where the JSON of a line begins, whole or not; -1 where it has none."""
        return object_in(line) if self.form.allow_prefix else -1 if is_blank(line) else 0

    def place_without(self, line: bytes) -> int:
        """Where a line without records counts as one that is deleted: text at its beginning, others at their ends."""
        return len(line) if not self.is_only_text(line) and not self.form.is_plain else 0

    def is_text(self, line: bytes) -> bool:
        """Whether a line is blank, or text that belongs to the record before it."""
        return is_blank(line) or self.is_only_text(line)

    def is_only_text(self, line: bytes) -> bool:
        """Whether it is a line of text beside JSON."""
        return self.form.allow_prefix and object_in(line) < 0 and not is_blank(line)

    def records(self, log: Blocks, block: int, size: int) -> Iterator[tuple[int, bytes]]:
        start = block * log.block_size
        buffer = memoryview(bytearray(size))
        data = bytes(buffer[: log.read_blocks(start, start + size, buffer)])
        position = data.find(b"\n") + 1 if start else self.first_line(data)
        if self.row is not None and not self._has_batches and (position or not start):
            yield from self._sampled(data, position, start)
            return
        while position or not start:
            end = data.find(b"\n", position)
            if end < 0:
                if self._has_batches:
                    from jitdb.log.lines.elements import begun_in

                    rest = data[position:]
                    yield from self._elements(rest, begun_in(rest, self.form), start + position)
                return
            line = data[position:end]
            yield from self._elements(line, self.records_in(line), start + position)
            position = end + 1

    def _elements(self, line: bytes, found: list[Element], begin: int) -> Iterator[tuple[int, bytes]]:
        """The records of a line that begins there, and their offsets."""
        records = self.rendered([with_around(line, each) for each in found])
        yield from zip((begin + each.begin for each in found), records, strict=True)

    def _sampled(self, data: bytes, position: int, start: int) -> Iterator[tuple[int, bytes]]:
        """The records of a format that are whole in these bytes; the last one may have more lines behind them."""
        lines = data[position : data.rfind(b"\n") + 1].split(b"\n")[:-1]
        before = [data[:position].split(b"\n")[-2]] if start else []
        begun = self.renderer.begun([*before, *lines])[len(before) :] if self.joins and lines else [True] * len(lines)
        begins, records, at = list[int](), list[bytes](), start + position
        for line, is_new in zip(lines, begun, strict=True):
            if is_new and not is_blank(line):
                begins.append(at)
                records.append(line)
            elif records and self.joins:
                records[-1] += b"\n" + line
            at += len(line) + 1
        yield from zip(begins, self.rendered(records), strict=True)

    def last_record(self, log: Blocks, end: int) -> LastRecord:
        def read(size: int, offset: int) -> bytes:
            first = offset // log.block_size
            blocks = range(first, -(-(offset + size) // log.block_size))
            return b"".join(log.second_look(block)[0] for block in blocks)[offset - first * log.block_size :][:size]

        if self.form.is_document and end > _LOOK:
            return LastRecord(None, is_lost=True)  # a document that changed is another file
        try:
            window = Window(read, end - BEHIND, end, sys.maxsize, self)
            start = window.line_start(end - 1)
            line = window.line(start)
        except EOFError:
            return LastRecord(None)
        if line is TOO_LONG:
            return LastRecord(None, start)
        if self.joins:
            line, start = self._with_lines_before(window, line, start)
            return LastRecord(None if start + len(line) + 1 != end else line, start)
        records = self.records_in(line)
        ends = [start + each.end for each in records[:-1]] + [start + len(line) + 1]
        if end not in ends:
            return LastRecord(None)
        if not records:
            return LastRecord(None, start)
        begin, last, _ = records[ends.index(end)]
        return LastRecord(line[begin:last], start + begin)

    def _with_lines_before(self, window: Window, line: bytes, start: int) -> tuple[bytes, int]:
        """A line with those before it that its record begins with, and where that begins."""
        last, record = line, line
        while start > self.first_line(window.head()):
            earlier = window.line_start(start - 1)
            before = window.line(earlier)
            if self.begins(before, last):
                break
            record, last, start = before + b"\n" + record, before, earlier
        return record, start

    def fault_in(self, data: bytes, used: int) -> int | None:
        return None


def _is_valid(record: bytes, codec: Codec) -> bool:
    if len(record) < _LOOK:
        return codec.is_valid(record)
    from jitdb.log.codecs.fields.located import RecordBatch  # with numpy

    return not len(codec.locator([]).invalid(RecordBatch.of([record])))


LINES: Final = LineFraming()
