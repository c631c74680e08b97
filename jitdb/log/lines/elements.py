"""The elements of lines that hold batches, found by kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jitdb.log.blocks.checksum import Bytes, Ints
from jitdb.log.codecs.fields.constants import DELETED, LIVE, MAX_NESTING, SLACK
from jitdb.log.lines.batch_path import SEPARATOR, Element
from jitdb.log.lines.files.stamp import Read
from jitdb.log.lines.form import MOST_STEPS, TOO_LONG, LineRules
from jitdb.log.lines.line_kernels import LEADS, walk_elements

if TYPE_CHECKING:
    from jitdb.log.lines.form import LineForm

_ESCAPE: Final = 6  # bytes of JSON that one byte of a key takes, at most
_LEAST: Final = 64  # bytes of an element, about
_LOST: Final = -1  # bytes of a record that is none: of a line that is too long, the rest of a document
_SHORT: Final = 1 << 16  # bytes of a line that are kept with its places


class Places(NamedTuple):
    """Elements of lines: where they begin and end in some bytes, where their frames end, and which are none.

    around: of each, the beginnings and lengths of what is around it, one after the other; length 0: there is none
    """

    starts: Ints
    lengths: Ints
    states: Bytes
    ends: Ints
    around: Ints

    @classmethod
    def of(cls, room: int, width: int) -> Places:
        """Room for so many, with so many numbers around each."""
        starts, lengths, ends = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
        return cls(starts, lengths, np.empty(room, np.uint8), ends, np.empty(room * width, np.int64))

    def first(self, count: int, width: int) -> Places:
        starts, lengths, states, ends, around = self
        return Places(starts[:count], lengths[:count], states[:count], ends[:count], around[: count * width])

    def elements(self) -> list[Element]:
        """The same for who looks at each."""
        begins, ends = self.starts.tolist(), (self.starts + self.lengths).tolist()
        pairs = self.around.reshape(len(begins), -1, 2).tolist() if len(begins) else []
        return [
            Element(begin, end, tuple((at, at + size) if size else (-1, -1) for at, size in around))
            for begin, end, around in zip(begins, ends, pairs, strict=True)
        ]


class ElementFinder:
    """Finds elements. Not safe for threads."""

    def __init__(self, form: LineForm) -> None:
        self._prefixed, self._many = int(form.allow_prefix), int(form.is_document)
        steps, around = form.path
        rows = [[(key, LEADS) for key in keys or ()] for keys in steps]
        for number, (step, key) in enumerate(around):
            rows[step].append((key, number))
        firsts = np.cumsum([0, *map(len, rows)]).astype(np.int64)
        keys = [key.encode("utf-8", "surrogatepass") for row in rows for key, _ in row]
        roles = np.array([role for row in rows for _, role in row], np.int64)
        lengths = np.array([len(key) for key in keys], np.int64)
        text = np.empty(_ESCAPE * max(map(len, keys), default=0) + SLACK, np.uint8)
        every = np.frombuffer(b"".join(keys) + b"\0", np.uint8)
        self.width = 2 * len(around)
        spans, marks = np.zeros(self.width, np.int64), np.empty(MOST_STEPS, np.int64)
        key_starts: Ints = np.cumsum(lengths) - lengths
        self._path = (firsts, key_starts, lengths, roles, every, spans, marks)
        self._scratch = (np.empty(MAX_NESTING + 1, np.int64), text)

    def walk(
        self, data: Bytes, position: int, last: int, stop: int, count: int, places: Places
    ) -> tuple[int, int, int]:
        """See walk_elements."""
        return walk_elements(
            data, position, last, stop, self._prefixed, self._many, count,
            places.starts, places.lengths, places.states, places.ends, places.around, *self._path, *self._scratch,
        )  # fmt: skip


class BatchLine(NamedTuple):
    """A line of a file, and where its elements are in the file.

    data:   of a short line; empty of others
    around: see Places
    """

    begin: int
    end: int
    data: bytes
    starts: Ints
    lengths: Ints
    around: Ints

    def record(self, read: Read, offset: int) -> bytes:
        """The element at this offset, behind what is around it (form.with_around); blanks of a line without one.

        Raises LookupError where none begins; EOFError where the file has become shorter.
        """
        number = int(self.starts.searchsorted(offset))
        if number == len(self.starts) or self.starts[number] != offset:
            raise LookupError(offset)
        size = int(self.lengths[number])
        if size == _LOST:
            return TOO_LONG
        width = len(self.around) // len(self.starts)
        around = self.around[number * width : (number + 1) * width].reshape(-1, 2).tolist()
        parts = [self._bytes(read, at, length) + SEPARATOR for at, length in around]
        return b"".join(parts) + self._bytes(read, offset, size)

    def _bytes(self, read: Read, offset: int, size: int) -> bytes:
        if not size:
            return b""
        data = self.data[offset - self.begin :][:size] if self.data else read(size, offset)
        if len(data) < size:
            raise EOFError
        return data


def batch_line(begin: int, line: bytes, framing: LineRules) -> BatchLine:
    """The line that begins there."""
    if line is TOO_LONG:
        return BatchLine(begin, begin + 1, b"", np.array([begin]), np.array([_LOST]), np.empty(0, np.int64))
    places = elements_in(line, framing)
    lengths = np.where(places.states == LIVE, np.where(places.lengths > 0, places.lengths, _LOST), 0)
    short = line if len(line) <= _SHORT else b""
    around = places.around.copy()
    around[::2] += begin
    return BatchLine(begin, begin + len(line) + 1, short, places.starts + begin, lengths, around)


def begun_in(data: bytes, form: LineForm) -> list[Element]:
    """The elements that are whole in the beginning of a line, for a sample."""
    places = _found(data, ElementFinder(form._replace(is_document=True)))[1]
    return [each for each in places.elements() if each.begin < each.end < len(data)]


def elements_in(line: bytes, framing: LineRules) -> Places:
    """The elements of a line, of which one without any has a place that is none."""
    finder = ElementFinder(framing.form)
    is_certain, places = _found(line, finder)
    return places if is_certain else places_of(line, framing.records_in(line), framing, finder.width)


def places_of(line: bytes, found: list[Element], framing: LineRules, width: int) -> Places:
    """What Python found in a line of which a kernel was not certain; a line without any has a place that is none."""
    places = Places.of(max(len(found), 1), width)
    elements = found or [Element(place := framing.place_without(line), place, ((-1, -1),) * (width // 2))]
    places.starts[:], ends = [each.begin for each in elements], np.array([each.end for each in elements])
    places.lengths[:], places.states[:] = ends - places.starts, LIVE if found else DELETED
    places.ends[:] = ends
    if width:
        around = [(begin, end - begin) for each in elements for begin, end in each.around]
        places.around[:] = np.array(around, np.int64).reshape(-1)
    return places


def _found(line: bytes, finder: ElementFinder) -> tuple[bool, Places]:
    """What a kernel finds in a line, and whether it is certain."""
    size = len(line)
    data = np.frombuffer(b"".join((line, b"\n", bytes(SLACK))), np.uint8)
    room = size // _LEAST + 2
    while True:
        places = Places.of(room, finder.width)
        count, position, is_full = finder.walk(data, 0, 0, size + 1, 0, places)
        if not is_full:
            break
        room *= 4
    return position > 0, places.first(count, finder.width)
