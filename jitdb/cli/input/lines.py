"""Where the lines of an import come from, files and standard input, compressed or not; and from lines to records: JSON
read strictly, and a word on what is wrong with a line.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, Final, NamedTuple

from jitdb.cli.failures import Failure
from jitdb.cli.input.uncompressed import DAMAGES, Opened, uncompressed
from jitdb.errors import EncodeError
from jitdb.log.codecs.fields.constants import SLACK

READ: Final = 1 << 20  # bytes read and imported at a time: they stay in the processor's cache
LONGEST: Final = 1 << 26  # bytes of one line: four times what the largest block holds
TOO_LONG: Final = b'{"\xff'  # is read in the place of a longer line, and is neither JSON nor UTF-8

_BOM: Final = b"\xef\xbb\xbf"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


class SourceDamaged(Failure):
    """The source itself must be had anew; a line of it cannot be mended."""


class Unreadable(Exception):
    """The input failed after `read` bytes; `__cause__` says why."""

    def __init__(self, read: int = 0) -> None:
        super().__init__()
        self.read = read


class Portion(NamedTuple):
    """Some whole lines: data[begin:end], each with its newline, and SLACK bytes or more behind them."""

    data: bytearray
    begin: int
    end: int

    @property
    def is_one(self) -> bool:
        """Whether it is one line."""
        return self.data.index(b"\n", self.begin) == self.end - 1

    def copy(self) -> Portion:
        """One that stays."""
        data = self.data[self.begin : self.end] + bytes(SLACK)
        return Portion(data, 0, self.end - self.begin)

    def behind(self, count: int) -> tuple[Portion, int]:
        """Without the first `count` lines, and how many these are: all, if it has fewer."""
        there = self.data.count(b"\n", self.begin, self.end)
        if there <= count:
            return self._replace(begin=self.end), there
        begin = self.begin
        for _ in range(count):
            begin = self.data.index(b"\n", begin) + 1
        return self._replace(begin=begin), count

    def lines(self, begin: int, count: int) -> tuple[list[bytes], int]:
        """So many lines from the one at `begin` on, or all, without their newlines; and where the next one begins."""
        found: list[bytes] = []
        while begin < self.end and len(found) < count:
            stop = self.data.index(b"\n", begin)
            found.append(bytes(memoryview(self.data)[begin:stop]))
            begin = stop + 1
        return found, begin


class Source:
    """One input, `-` being standard input. A context manager.

    allow_prefix: text before the JSON of a line becomes blanks, and so does a line of text alone
    """

    def __init__(self, path: str, *, allow_prefix: bool = False) -> None:
        self.path = path
        self.texts = 0  # lines of text that became blank
        self.allow_prefix = allow_prefix
        self.unit = "line"  # what its records are counted by
        self.name = "standard input" if path == "-" else path
        self.taken = 0  # lines, as far as who takes them counted
        self._file: IO[bytes] | None = None
        self._opened: Opened | None = None

    @property
    def is_plain(self) -> bool:
        """Whether its bytes are those of a file."""
        return self.size is not None and self.stream() is self._file

    @property
    def size(self) -> int | None:
        """Size in bytes; None when nobody can tell (a pipe)."""
        if self.path == "-" or not os.path.isfile(self.path):
            return None
        return os.path.getsize(self.path)

    def __enter__(self) -> Source:
        if self.path == "-":
            if sys.stdin is None:
                raise Failure("there is no standard input to read")
            self._file = sys.stdin.buffer
        else:
            self._file = open(self.path, "rb")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None and self.path != "-":
            self._file.close()

    def position(self) -> int:
        """Bytes of the file read so far."""
        return self._file.tell() if self._file is not None and self.size is not None else 0

    def portions(self) -> Iterator[Portion]:
        """Runs of whole lines, in their order; each is gone when the next but one is asked for.

        A line of more than LONGEST bytes is read past, and TOO_LONG stands in its place. What a pipe has is handed on
        at once. Raises Failure; Unreadable, of which failure() tells.
        """
        stream = self.stream()
        data, other = bytearray(READ + SLACK), bytearray(READ + SLACK)
        is_handed_on = is_too_long = False
        begin, end = 0, 0  # data[begin:end] is the beginning of a line
        failure: Unreadable | None = None
        at_start = True
        while failure is None:
            rest = data[begin:end]
            if is_handed_on:
                data, other, is_handed_on = other, data, False
            if len(rest) > (len(data) - SLACK) // 2:
                data = bytearray(2 * max(len(data), len(rest)))
            data[: len(rest)] = rest
            begin, end = 0, len(rest)
            try:
                read = self._fill(stream, memoryview(data)[end : len(data) - SLACK])
            except Unreadable as broken:
                read, failure = broken.read, broken
            end += read
            if is_too_long:
                newline = data.find(b"\n", len(rest), end)
                is_too_long, passed = newline < 0, end if newline < 0 else newline
                data[len(rest) : len(rest) + end - passed] = data[passed:end]
                end -= passed - len(rest)
            if at_start and read:
                begin, at_start = self._mark(data), False
            cut = data.rfind(b"\n", len(rest), end) + 1
            if cut > begin:
                yield self._portion(data, begin, cut)
                is_handed_on = True
                begin = cut
            elif end - begin > LONGEST:
                is_too_long = True
                data[begin : begin + len(TOO_LONG)] = TOO_LONG
                end = begin + len(TOO_LONG)
            if not read:
                break
        if failure is not None:
            raise failure
        if begin < end:
            data[end : end + 1] = b"\n"
            yield self._portion(data, begin, end + 1)

    def _portion(self, data: bytearray, begin: int, end: int) -> Portion:
        if self.allow_prefix:
            import numpy as np

            from jitdb.log.lines.line_kernels import blank_prefixes

            self.texts += blank_prefixes(np.frombuffer(data, np.uint8), begin, end)
        return Portion(data, begin, end)

    def _fill(self, stream: Any, room: memoryview) -> int:
        """Read into `room`: all that fits from a file, what is there from a pipe. Raises Unreadable."""
        read = 0
        try:
            if self.size is None:
                there = stream.read1(len(room))  # readinto1 waits for more than it has
                room[: len(there)] = there
                return len(there)
            while read < len(room):
                got = stream.readinto1(room[read:])
                read += got
                if not got:
                    break
        except DAMAGES as error:
            raise Unreadable(read) from error
        return read

    def failure(self, error: BaseException | None) -> Failure:
        """What to tell once all that was read before is taken."""
        packing = self._opened.packing if self._opened else ""
        what = f"the {packing} data are cut off" if isinstance(error, EOFError) else f"damaged {packing} data: {error}"
        where = f"{self.name}, behind line {self.taken:,}" if self.taken else self.name
        return SourceDamaged(f"{where}: {what}")

    def stream(self) -> Any:
        """What is to be read, uncompressed."""
        if self._opened is None:
            assert self._file is not None
            self._opened = uncompressed(self._file, self.name)
        return self._opened.stream

    def peek(self) -> bytes:
        """Some bytes of the beginning, which are read again. Raises Failure."""
        try:
            return bytes(self.stream().peek(READ))
        except DAMAGES as error:
            raise self.failure(error) from error

    def blocks(self) -> Iterator[bytes]:
        """All bytes, some at a time, without the mark. Raises Failure, Unreadable."""
        room, at_start = bytearray(READ), True
        while read := self._fill(self.stream(), memoryview(room)):
            begin = self._mark(room[:read]) if at_start else 0
            at_start = False
            yield bytes(room[begin:read])

    def _mark(self, data: bytearray) -> int:
        """Bytes of the mark at the beginning."""
        if data.startswith(_UTF16):
            name = "FILE" if self.path == "-" else self.path
            hint = f"iconv -f UTF-16 -t UTF-8 {name} | jitdb import - LOG"
            raise Failure(f"{self.name}: this is UTF-16, not UTF-8", hint)
        return len(_BOM) if data.startswith(_BOM) else 0


class Lines:
    """The lines of a source, one by one as text, or as they lie. An iterator; what is no UTF-8 in them are faults."""

    def __init__(self, source: Source) -> None:
        self.number = 0  # of lines so far
        self._portions = source.portions()
        self._here: deque[Portion] = deque()  # what of the source is read, and not done
        self._since: list[Portion] | None = None  # all that is read since the mark
        self._faults: list[str] = []

    def portion(self) -> Portion | None:
        """The lines from here on that lie together; None at the end."""
        while not self._here:
            portion = next(self._portions, None)
            if portion is None:
                return None
            if self._since is not None:  # its bytes are gone when the next but one is read
                portion = portion.copy()
                self._since.append(portion)
            self._here.append(portion)
        return self._here[0]

    def pass_over(self, position: int, count: int) -> None:
        """Go on at this place of the portion, so many lines behind."""
        self.number += count
        portion = self._here[0]
        if position < portion.end:
            self._here[0] = portion._replace(begin=position)
        else:
            self._here.popleft()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        portion = self.portion()
        if portion is None:
            raise StopIteration
        stop = portion.data.index(b"\n", portion.begin)
        line = portion.data[portion.begin : stop + 1]
        self.pass_over(stop + 1, 1)
        try:
            return str(line, "utf-8")
        except UnicodeDecodeError as error:
            self._faults.append(_no_utf8(line, error))
            return line.decode("latin-1")

    def take_faults(self) -> str:
        """What was no UTF-8 since this was asked before."""
        told = "; ".join(self._faults)
        self._faults.clear()
        return told

    def mark(self) -> int:
        """Note this place, to go back to it."""
        self._since = [portion.copy() for portion in self._here]
        self._here = deque(self._since)
        return self.number

    def back_to(self, number: int) -> None:
        """Go back to the place of the last mark, which this number is of."""
        assert self._since is not None
        self.number = number
        self._here, self._since = deque(self._since), None
        self._faults.clear()


ARRAY_HINT: Final = "--format json makes its elements the records"

_BLANKS: Final = " \t\r"
_SHOWN: Final = 40  # characters shown on each side of the fault


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no record. `number` counts from 1; `mendable` means that another line there would do."""

    number: int
    reason: str
    hint: str = ""
    mendable: bool = True


@dataclass(slots=True)
class Records:
    """What some lines hold: values, the line of each, and what could not be read."""

    values: list[Any] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    bad: list[BadLine] = field(default_factory=list)


def decoder(tagged: bool) -> json.JSONDecoder:
    """`tagged`: with what `jitdb export` writes for values that JSON lacks."""
    if not tagged:
        return json.JSONDecoder()
    from jitdb.common.json_text import read_tagged

    return json.JSONDecoder(object_hook=read_tagged)


class LineReader:
    """Reads lines of JSON; `tagged`: see decoder()."""

    def __init__(self, tagged: bool) -> None:
        self._decoder = decoder(tagged)
        # What `decode` calls, without its two searches for blanks; no part of the type's published face.
        self._scan: Callable[[str, int], tuple[Any, int]] = getattr(self._decoder, "scan_once")  # noqa: B009

    def read(self, lines: list[bytes], first: int, stop_at_bad: bool) -> Records:
        """The records in `lines`, the first of which has the number `first`; blank lines are passed over."""
        found = Records()
        keep, note = found.values.append, found.numbers.append
        scan = self._scan
        number = first - 1
        for line in lines:
            number += 1
            try:
                text = str(line, "utf-8")
                value, end = scan(text, 0)
                clean = end == len(text) or not text[end:].strip(_BLANKS)
            except (StopIteration, ValueError, RecursionError):
                clean = False
            if not clean:
                if not line.strip():
                    continue
                value = self._carefully(line, number)
                if isinstance(value, BadLine):
                    found.bad.append(value)
                    if stop_at_bad:
                        break
                    continue
            keep(value)
            note(number)
        return found

    def _carefully(self, line: bytes, number: int) -> Any:
        """The value of a line with blanks around it, or what is wrong with it."""
        try:
            text = line.decode().strip(_BLANKS)
        except UnicodeDecodeError as error:
            return BadLine(number, _no_utf8(line, error), mendable=line != TOO_LONG)
        try:
            return self._decoder.decode(text)
        except json.JSONDecodeError as error:
            place = f"column {error.pos + 1}" if error.msg.endswith(" at") else f"(column {error.pos + 1})"
            reason = f"not JSON: {error.msg.rstrip(': ')} {place}{excerpt(text, error.pos)}"
            return BadLine(number, reason, _prefix_hint(line) or (_hint(text) if number == 1 else ""))
        except RecursionError:
            return BadLine(number, "nested too deeply")
        except EncodeError as error:
            return BadLine(number, error.reason)
        except ValueError:
            return BadLine(number, f"an integer of more than {sys.get_int_max_str_digits():,} digits")


def _no_utf8(line: bytes | bytearray, error: UnicodeDecodeError) -> str:
    if line.rstrip(b"\n") == TOO_LONG:
        return f"it has more than {LONGEST >> 20} MiB, and no log holds it"
    return f"not UTF-8: byte 0x{line[error.start]:02x} in column {error.start + 1}"


def excerpt(text: str, position: int) -> str:
    """The place, with a caret under it."""
    first, last = max(0, position - _SHOWN), position + _SHOWN
    before, after = "…" if first else "", "…" if last < len(text) else ""
    shown = "".join(char if char.isprintable() else " " for char in text[first:last])
    return f"\n    {before}{shown}{after}\n    {' ' * (len(before) + position - first)}^"


def _prefix_hint(line: bytes) -> str:
    """What reads a line with text before its JSON."""
    from jitdb.log.lines.form import object_in

    begin = object_in(line)
    try:
        json.loads(line[begin:] if begin > 0 else b"")
    except (ValueError, RecursionError):
        return ""
    return "it has text before its JSON: --allow-prefix reads it"


def _hint(text: str) -> str:
    """Why the first line of a file is often no JSON."""
    if text.startswith("["):
        return f"this looks like one JSON array; {ARRAY_HINT}"
    if text == "{":
        return "this looks like JSON over several lines: --format json reads it"
    if "," in text and text[0] not in '{"':
        return "this looks like CSV: --format csv reads it"
    return ""


def is_array_of_records(value: Any) -> bool:
    """Whether the only line of a file is probably a whole file of records in one array."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
