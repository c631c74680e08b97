"""Some records of a file of lines, by their offsets: of each no more is read than it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.log.lines.form import LONGEST, MARK, TOO_LONG, is_blank, object_in

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.codecs import Codec
    from jitdb.log.lines.framing import LineFraming

Read = Callable[[int, int], bytes]  # so many bytes, from an offset on; fewer only at the end of the file

_NEAR: Final = 1 << 15  # bytes between two records that are read at once
_TOGETHER: Final = 1 << 12  # records that are read at once, at most: they stay in the last cache
FEW: Final = 16  # records that are looked at faster by Python than by kernels
_AHEAD: Final = 1 << 12  # bytes read for a record at first
_BEHIND: Final = 1 << 8  # and before it, where its line may begin earlier
_LOOK: Final = 1 << 20  # bytes that are looked through at a time for an end of a line that has more

_MOST_TEXT: Final = 1 << 16  # bytes of text that are given behind a record


class Around(NamedTuple):
    """Text beside a record: what stands before it in its line, and the lines behind that, up to the next record.

    Of more than 64 KiB behind it the rest is left out (`is_cut`). Bytes that are no UTF-8 are replaced.
    """

    before: str
    behind: str
    is_cut: bool = False


class Window:
    """A part of a file of which `end` bytes are lines, read on to both sides as lines in it ask for it.

    Raises EOFError where the file has become shorter.
    """

    def __init__(self, read: Read, begin: int, stop: int, end: int, framing: LineFraming) -> None:
        self._read, self._end, self._framing = read, end, framing
        self._begin = begin if begin > len(MARK) else 0
        self._data = read(min(stop, end) - self._begin, self._begin)

    def line_start(self, offset: int) -> int:
        """Where the line begins that has this byte."""
        while (newline := self._data.rfind(b"\n", 0, offset - self._begin)) < 0 and self._begin:
            size = min(max(_BEHIND, len(self._data)), self._begin)
            if size >= _LOOK:
                newline = self._newline_before(self._begin)
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
            size = max(_AHEAD, len(self._data))
            if size >= _LOOK:
                size = self._newline_behind(there) + 1 - there
                if there + size - 1 - offset > LONGEST:
                    return TOO_LONG
            more = self._read(min(size, self._end - there), there)
            if not more:
                raise EOFError
            self._data += more
        return self._data[at:stop]

    def _newline_behind(self, at: int) -> int:
        """Where the first newline is from this byte on."""
        while data := self._read(min(_LOOK, self._end - at), at):
            newline = data.find(b"\n")
            if newline >= 0:
                return at + newline
            at += len(data)
        raise EOFError

    def _newline_before(self, at: int) -> int:
        """Where the last newline is before this byte; -1 where there is none."""
        while at:
            begin = max(0, at - _LOOK)
            newline = self._read(at - begin, begin).rfind(b"\n")
            if newline >= 0:
                return begin + newline
            at = begin
        return -1


def records_of(
    read: Read, end: int, offsets: Sequence[int] | npt.NDArray[np.int64], framing: LineFraming, codec: Codec
) -> list[bytes | None]:
    """The records at these offsets, in any order; None for what is none. Raises as records_at does."""
    wanted = [int(offset) for offset in offsets]
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    found: list[bytes | None] = [None] * len(wanted)
    first = 0
    while first < len(order):
        last = first + 1
        most = min(len(order), first + _TOGETHER)
        while last < most and wanted[order[last]] - wanted[order[last - 1]] <= _NEAR:
            last += 1
        lines = records_at(read, end, [wanted[number] for number in order[first:last]], framing)
        for number, line in zip(order[first:last], lines, strict=True):
            found[number] = None if is_blank(line) else line
        first = last
    return _without_malformed(found, codec)


def _without_malformed(lines: list[bytes | None], codec: Codec) -> list[bytes | None]:
    there = [number for number, line in enumerate(lines) if line is not None]
    if len(there) < FEW and sum(len(lines[number] or b"") for number in there) < _LOOK:
        wrong = [number for number in there if not codec.is_valid(lines[number] or b"")]
    else:
        from jitdb.log.codecs.fields.located import RecordBatch

        batch = RecordBatch.of([lines[number] or b"" for number in there])
        wrong = [there[place] for place in codec.locator([]).invalid(batch).tolist()]
    for number in wrong:
        lines[number] = None
    return lines


def records_at(read: Read, end: int, offsets: Sequence[int], framing: LineFraming) -> Iterator[bytes]:
    """The records at these ascending offsets, which lie near each other, of a file of which `end` bytes are lines.

    Of a line without one, blanks. Raises LookupError of an offset at which none begins; EOFError where the file has
    become shorter.
    """
    if not 0 <= offsets[0] <= offsets[-1] < end:
        raise LookupError(offsets[0] if offsets[0] < 0 else offsets[-1])
    is_plain = framing.form.is_plain
    window = Window(read, offsets[0] - (1 if is_plain else _BEHIND), offsets[-1] + _AHEAD, end, framing)
    start, line, places = 0, b"", dict[int, int]()
    for offset in offsets:
        if is_plain:
            if not window.is_line_start(offset):
                raise LookupError(offset)
            yield window.line(offset)
            continue
        if not (line and start <= offset < start + len(line)):
            start = window.line_start(offset)
            line = window.line(start)
            places = dict(framing.records_in(line)) or dict.fromkeys([framing.place_without(line)], 0)
            if line is TOO_LONG:
                places = {0: len(line)}
        if offset - start not in places:
            raise LookupError(offset)
        yield line[offset - start : places[offset - start]]


def line_start(read: Read, end: int, offset: int, framing: LineFraming) -> int:
    """Where the line begins that has this byte. Raises EOFError where the file has become shorter."""
    return Window(read, offset - _BEHIND, offset + 1, end, framing).line_start(offset)


def text_around(read: Read, end: int, offset: int, framing: LineFraming) -> Around:
    """See LineLog.text_around. Raises as records_at does."""
    for _ in records_at(read, end, [offset], framing):
        pass  # it is one
    window = Window(read, offset - _BEHIND, offset + _AHEAD, end, framing)
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
