"""The elements of lines that hold batches, found by kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jitdb.log.blocks.checksum import Bytes, Ints
from jitdb.log.codecs.fields.constants import DELETED, LIVE, MAX_NESTING, SLACK
from jitdb.log.lines.files.stamp import Read
from jitdb.log.lines.form import MOST_STEPS, TOO_LONG, LineRules
from jitdb.log.lines.line_kernels import walk_elements

if TYPE_CHECKING:
    from jitdb.log.lines.form import LineForm

_ESCAPE: Final = 6  # bytes of JSON that one byte of a key takes, at most
_LEAST: Final = 64  # bytes of an element, about
_LOST: Final = -1  # bytes of a record that is none: of a line that is too long, the rest of a document
_SHORT: Final = 1 << 16  # bytes of a line that are kept with its places


class Places(NamedTuple):
    """Elements of lines: where they begin and end in some bytes, where their frames end, and which are none."""

    starts: Ints
    lengths: Ints
    states: Bytes
    ends: Ints

    @classmethod
    def of(cls, room: int) -> Places:
        return cls(
            np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8), np.empty(room, np.int64)
        )

    def first(self, count: int) -> Places:
        return Places(self.starts[:count], self.lengths[:count], self.states[:count], self.ends[:count])


class ElementFinder:
    """Finds elements. Not safe for threads."""

    def __init__(self, form: LineForm) -> None:
        self._prefixed, self._many = int(form.allow_prefix), int(form.is_document)
        keys = [b"" if step is None else step.encode("utf-8", "surrogatepass") for step in form.each]
        lengths = [-1 if step is None else len(key) for step, key in zip(form.each, keys, strict=True)]
        starts = np.cumsum([0, *map(len, keys)])[:-1].astype(np.int64)
        text = np.empty(_ESCAPE * max(map(len, keys), default=0) + SLACK, np.uint8)
        every = np.frombuffer(b"".join(keys) + b"\0", np.uint8)
        self._path = (starts, np.array(lengths, np.int64), every, np.empty(MOST_STEPS, np.int64))
        self._scratch = (np.empty(MAX_NESTING + 1, np.int64), text)

    def walk(
        self, data: Bytes, position: int, last: int, stop: int, count: int, places: Places
    ) -> tuple[int, int, int]:
        """See walk_elements."""
        return walk_elements(
            data, position, last, stop, self._prefixed, self._many, count, *places, *self._path, *self._scratch
        )


class BatchLine(NamedTuple):
    """A line of a file, and where its elements are in the file.

    data: of a short line; empty of others
    """

    begin: int
    end: int
    data: bytes
    starts: Ints
    lengths: Ints

    def record(self, read: Read, offset: int) -> bytes:
        """The element at this offset; blanks of a line without one.

        Raises LookupError where none begins; EOFError where the file has become shorter.
        """
        number = int(self.starts.searchsorted(offset))
        if number == len(self.starts) or self.starts[number] != offset:
            raise LookupError(offset)
        size = int(self.lengths[number])
        if size == _LOST:
            return TOO_LONG
        data = self.data[offset - self.begin :][:size] if self.data else read(size, offset)
        if len(data) < size:
            raise EOFError
        return data


def batch_line(begin: int, line: bytes, framing: LineRules) -> BatchLine:
    """The line that begins there."""
    if line is TOO_LONG:
        return BatchLine(begin, begin + 1, b"", np.array([begin]), np.array([_LOST]))
    places = elements_in(line, framing)
    lengths = np.where(places.states == LIVE, np.where(places.lengths > 0, places.lengths, _LOST), 0)
    short = line if len(line) <= _SHORT else b""
    return BatchLine(begin, begin + len(line) + 1, short, places.starts + begin, lengths)


def begun_in(data: bytes, form: LineForm) -> list[tuple[int, int]]:
    """The elements that are whole in the beginning of a line, for a sample."""
    places = _found(data, ElementFinder(form._replace(is_document=True)))[1]
    spans = zip(places.starts.tolist(), places.lengths.tolist(), strict=True)
    return [(begin, begin + size) for begin, size in spans if size and begin + size < len(data)]


def elements_in(line: bytes, framing: LineRules) -> Places:
    """The elements of a line, of which one without any has a place that is none."""
    is_certain, places = _found(line, ElementFinder(framing.form))
    if is_certain:
        return places
    found = framing.records_in(line)
    begun = [(begin, stop - begin) for begin, stop in found] or [(framing.place_without(line), 0)]
    starts, lengths = np.array(begun, np.int64).T
    return Places(starts, lengths, np.full(len(begun), LIVE if found else DELETED, np.uint8), starts + lengths)


def _found(line: bytes, finder: ElementFinder) -> tuple[bool, Places]:
    """What a kernel finds in a line, and whether it is certain."""
    size = len(line)
    data = np.frombuffer(b"".join((line, b"\n", bytes(SLACK))), np.uint8)
    room = size // _LEAST + 2
    while True:
        places = Places.of(room)
        count, position, is_full = finder.walk(data, 0, 0, size + 1, 0, places)
        if not is_full:
            break
        room *= 4
    return position > 0, places.first(count)
