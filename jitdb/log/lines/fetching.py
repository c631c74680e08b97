"""Some records of a file of lines, by their offsets: of each no more is read than it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.log.lines.batch_path import SEPARATOR
from jitdb.log.lines.files.stamp import Read
from jitdb.log.lines.form import TOO_LONG, is_blank, object_in
from jitdb.log.lines.framing import AHEAD, BEHIND, Window

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.codecs import Codec
    from jitdb.log.lines.elements import BatchLine
    from jitdb.log.lines.framing import LineFraming

_NEAR: Final = 1 << 15  # bytes between two records that are read at once
_TOGETHER: Final = 1 << 12  # records that are read at once, at most: they stay in the last cache
FEW: Final = 16  # records that are looked at faster by Python than by kernels
_MANY: Final = 1 << 20  # bytes of records that are looked at faster by kernels

_MOST_LINES: Final = 1 << 15  # that are looked at together
_MOST_TEXT: Final = 1 << 16  # bytes of text that are given behind a record


class Around(NamedTuple):
    """Text beside a record: what stands before it in its line, and the lines behind that, up to the next record.

    Of more than 64 KiB behind it the rest is left out (`is_cut`). Bytes that are no UTF-8 are replaced.
    """

    before: str
    behind: str
    is_cut: bool = False


class LineCache:
    """The line with a batch that was read last, of a file as it was looked at. Safe for threads."""

    def __init__(self) -> None:
        self._line: BatchLine | None = None

    def line_at(self, read: Read, end: int, offset: int, framing: LineFraming) -> BatchLine:
        """The line in which this offset is. Raises EOFError."""
        line = self._line
        if line is None or not line.begin <= offset < line.end:
            from jitdb.log.lines.elements import batch_line  # with numpy

            line = self._line = batch_line(*framing.line_around(read, end, offset), framing)
        return line


def records_of(
    read: Read,
    end: int,
    offsets: Sequence[int] | npt.NDArray[np.int64],
    framing: LineFraming,
    codec: Codec,
    lines: LineCache | None = None,
) -> list[bytes | None]:
    """The records at these offsets, in any order; None for what is none. Raises as records_at does."""
    lines = lines or LineCache()
    found: list[bytes | None] = [None] * len(offsets)
    for numbers, near in _near_each_other(offsets):
        there = records_at(read, end, near, framing, lines)
        for number, line in zip(numbers, framing.rendered(list(there)), strict=True):
            found[number] = None if is_blank(line) else line
    return _without_malformed(found, codec)


def _near_each_other(offsets: Sequence[int] | npt.NDArray[np.int64]) -> Iterator[tuple[list[int], list[int]]]:
    """The offsets in ascending order, those together that are read at once, behind their places in the list."""
    wanted = [int(offset) for offset in offsets]
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    first = 0
    while first < len(order):
        last = first + 1
        most = min(len(order), first + _TOGETHER)
        while last < most and wanted[order[last]] - wanted[order[last - 1]] <= _NEAR:
            last += 1
        yield order[first:last], [wanted[number] for number in order[first:last]]
        first = last


def bytes_of(offsets: npt.NDArray[np.int64]) -> int:
    """How many bytes are read for the records at these offsets, in any order, if none of them is long."""
    import numpy as np

    gaps = np.diff(np.sort(offsets))
    return int(np.where(gaps <= _NEAR, gaps, AHEAD).sum()) + AHEAD


def texts_of(
    read: Read,
    end: int,
    offsets: Sequence[int] | npt.NDArray[np.int64],
    framing: LineFraming,
    lines: LineCache | None = None,
) -> list[bytes | None]:
    """The records at these offsets as they stand in the file, with all their lines. Raises as records_at does."""
    lines = lines or LineCache()
    found: list[bytes | None] = [None] * len(offsets)
    form = framing.form
    for numbers, near in _near_each_other(offsets):
        there = list(records_at(read, end, near, framing, lines))
        if form.has_batches:
            there = [element.rpartition(SEPARATOR)[2] for element in there]
        elif form.allow_prefix:
            there = list(_with_text(read, end, near, framing))
        for number, text in zip(numbers, there, strict=True):
            found[number] = text
    return found


def _with_text(read: Read, end: int, offsets: Sequence[int], framing: LineFraming) -> Iterator[bytes]:
    """The lines of these records, whole, and those of text behind each."""
    window = Window(read, offsets[0] - BEHIND, offsets[-1] + AHEAD, end, framing)
    for offset in offsets:
        at = window.line_start(offset)
        lines = [window.line(at)]
        at += len(lines[0]) + 1
        while at < end and (line := window.line(at)) is not TOO_LONG and framing.is_text(line):
            lines.append(line)
            at += len(line) + 1
        while is_blank(lines[-1]):
            lines.pop()
        yield b"\n".join(lines)


def _without_malformed(lines: list[bytes | None], codec: Codec) -> list[bytes | None]:
    there = [number for number, line in enumerate(lines) if line is not None]
    if len(there) <= FEW and sum(len(lines[number] or b"") for number in there) < _MANY:
        wrong = [number for number in there if not codec.is_valid(lines[number] or b"")]
    else:
        from jitdb.log.codecs.fields.located import RecordBatch

        batch = RecordBatch.of([lines[number] or b"" for number in there])
        wrong = [there[place] for place in codec.locator([]).invalid(batch).tolist()]
    for number in wrong:
        lines[number] = None
    return lines


def records_at(
    read: Read, end: int, offsets: Sequence[int], framing: LineFraming, lines: LineCache | None = None
) -> Iterator[bytes]:
    """The records at these ascending offsets, which lie near each other, of a file of which `end` bytes are lines.

    Of a line without one, blanks. Raises LookupError of an offset at which none begins; EOFError where the file has
    become shorter.
    """
    if not 0 <= offsets[0] <= offsets[-1] < end:
        raise LookupError(offsets[0] if offsets[0] < 0 else offsets[-1])
    if framing.joins:
        yield from _joined_at(read, end, offsets, framing)
        return
    if framing.form.has_batches:
        lines, near = lines or LineCache(), _read_ahead(read, offsets[0] - BEHIND, offsets[-1] + AHEAD)
        yield from (lines.line_at(near, end, offset, framing).record(near, offset) for offset in offsets)
        return
    window = Window(read, offsets[0] - (BEHIND if framing.form.allow_prefix else 1), offsets[-1] + AHEAD, end, framing)
    for offset in offsets:
        if not framing.form.allow_prefix:
            if not window.is_line_start(offset):
                raise LookupError(offset)
            yield window.line(offset)
            continue
        start = window.line_start(offset)
        line = window.line(start)
        places = {each.begin: each.end for each in framing.records_in(line)} or {framing.place_without(line): 0}
        if line is TOO_LONG:
            places = {0: len(line)}
        if offset - start not in places:
            raise LookupError(offset)
        yield line[offset - start : places[offset - start]]


def _read_ahead(read: Read, begin: int, stop: int) -> Read:
    """The same with these bytes read once."""
    begin = max(0, begin)
    data = read(stop - begin, begin)

    def near(size: int, offset: int) -> bytes:
        if begin <= offset and offset + size <= begin + len(data):
            return data[offset - begin : offset - begin + size]
        return read(size, offset)

    return near


def _joined_at(read: Read, end: int, offsets: Sequence[int], framing: LineFraming) -> Iterator[bytes]:
    """The same of a format whose records may have several lines."""
    window = Window(read, offsets[0] - BEHIND, offsets[-1] + AHEAD, end, framing)
    for offset in offsets:
        if not window.is_line_start(offset):
            raise LookupError(offset)
        line = window.line(offset)
        if offset > framing.first_line(window.head()):
            start = window.line_start(offset - 1)
            if not framing.begins(window.line(start), line):
                raise LookupError(offset)
        yield b"\n".join(_lines_of_record(line, window, offset + len(line) + 1, end, framing))


def _lines_of_record(first: bytes, window: Window, at: int, end: int, framing: LineFraming) -> list[bytes]:
    """The lines of a record, of which the second would begin at `at`. They are looked at in ever larger groups."""
    lines, most = [first], 1
    while at < end:
        following = list[bytes]()
        while at < end and len(following) < most:
            following.append(window.line(at))
            at += len(following[-1]) + 1
        count = framing.going_on(lines[-1], following)
        lines += following[:count]
        if count < len(following):
            break
        most = min(8 * most, _MOST_LINES)
    return lines


def line_start(read: Read, end: int, offset: int, framing: LineFraming) -> int:
    """Where the line begins that has this byte. Raises EOFError where the file has become shorter."""
    return Window(read, offset - BEHIND, offset + 1, end, framing).line_start(offset)


def text_around(read: Read, end: int, offset: int, framing: LineFraming) -> Around:
    """See LineLog.text_around. Raises as records_at does."""
    for _ in records_at(read, end, [offset], framing):
        pass  # it is one
    window = Window(read, offset - BEHIND, offset + AHEAD, end, framing)
    start = window.line_start(offset)
    line = window.line(start)
    at = start + len(line) + 1
    before = line[: max(0, object_in(line))] if framing.form.allow_prefix else b""
    lines = list[bytes]()
    size, is_cut = 0, False
    while at < end and (line := window.line(at)) is not TOO_LONG and framing.is_text(line):
        at += len(line) + 1
        size += len(line) + 1
        if size > _MOST_TEXT:
            lines.append(line[: max(0, _MOST_TEXT - size + len(line) + 1)])
            is_cut = True
            break
        lines.append(line)
    behind = b"\n".join(line.rstrip(b"\r") for line in lines)
    return Around(before.decode(errors="replace"), behind.decode(errors="replace").rstrip("\n"), is_cut)
