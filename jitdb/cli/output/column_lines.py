"""Columns as lines of text: CSV, TSV, and objects of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.cli.output import cell_kernels as kernels
from jitdb.cli.output.separated import DELIMITERS, cell_text, separated_lines
from jitdb.common.json_text import line_of
from jitdb.common.paths import before_any
from jitdb.common.values import STRING, UNDEFINED
from jitdb.engine.reading.selecting import CodedValues, FieldBatch
from jitdb.indexes.kinds.dictionary import chosen
from jitdb.log.codecs.fields.located import Scratch
from jitdb.log.codecs.python_values import python_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.fields.located import FieldValues

_ESCAPED: Final = b"\\ud"  # half of a pair, in JSON: a line that holds what is no UTF-8 is escaped as a whole
_FEW_BYTES: Final = 4 << 20  # of cells, which need not be added up
_LINE: Final = 5  # bytes around the cells of a line, at most


def separated(names: Sequence[str], batches: Iterable[FieldBatch], form: str, escaping: bool) -> Iterator[bytes]:
    """The columns with these names as CSV or TSV in UTF-8, in chunks.

    Null and absent values are empty cells, text is written as it is, bytes as base64, all else as JSON.
    """
    yield separated_lines([names], form, escaping)
    writer = _Writer(names, DELIMITERS[form], escaping)
    yield from map(writer.lines, batches)


def objects(names: Sequence[str], batches: Iterable[FieldBatch]) -> Iterator[bytes]:
    """The columns with these names as objects of JSON, a line each, in chunks; what is absent is left out."""
    writer = _Writer(names, "", escaping=False)
    is_tag = any(name.startswith("$") for name in names)  # an object may look like one of line_of's tags
    for batch in batches:
        lines = None if is_tag else writer.objects(batch)
        if len(batch):
            yield b"".join(map(line_of, batch.rows())) if lines is None else lines


class _Writer:
    """Writes batches of columns. `delimiter`: of CSV; "": as objects of JSON."""

    def __init__(self, names: Sequence[str], delimiter: str, escaping: bool) -> None:
        self._delimiter = ord(delimiter) if delimiter else kernels.JSON
        self._escaping = escaping
        self._widest = 2 if delimiter else kernels.WIDEST
        heads = [] if delimiter else [line_of(name)[:-1] + b":" for name in names]
        self._heads = np.frombuffer(b"".join(heads), np.uint8)
        self._head_ends = np.cumsum([len(head) for head in heads], dtype=np.int64)
        self._cells = np.empty(0, np.uint8)
        self._coded: dict[int, tuple[FieldValues, NDArray[np.uint8], NDArray[np.int64]]] = {}  # cells, by column
        self._scratch = Scratch()

    def objects(self, batch: FieldBatch) -> bytes | None:
        """The lines of a batch; None where they hold what is no UTF-8, of which line_of escapes whole lines."""
        lines = self.lines(batch)
        if not lines.isascii():
            try:
                lines.decode()
            except UnicodeDecodeError:
                return None
        return None if _ESCAPED in lines else lines

    def lines(self, batch: FieldBatch) -> bytes:
        rows, columns = len(batch), len(batch.selection)
        if not rows:
            return b""
        codes, ends = np.empty((columns, rows), np.uint32), [np.zeros(1, np.int64)]  # of cells; cell 0 is none
        for number in range(columns):
            values, first, size = self._column(batch, number), sum(map(len, ends)), int(ends[-1][-1])
            if isinstance(values, CodedValues):
                ends.append(self._distinct(number, values.values, size))
                np.add(values.codes, np.uint32(first), out=codes[number], casting="unsafe")
            else:
                ends.append(self._written(values, size))
                codes[number] = np.arange(first, first + rows)
        stops = np.concatenate(ends)
        room = _bytes_of(stops, codes, [*map(len, ends)]) + rows * (len(self._heads) + columns + _LINE)
        out, heads = self._scratch.room(room), (self._heads, self._head_ends)
        end = kernels.join_cells(self._cells, stops, codes.ravel(), columns, *heads, self._delimiter, out)
        return out[:end].tobytes()

    def _distinct(self, number: int, values: FieldValues, size: int) -> NDArray[np.int64]:
        """Write the values of a coded column behind so many bytes of cells, and give where each ends."""
        held = self._coded.get(number)
        if held is None or held[0] is not values:
            ends = self._written(values, size)
            held = self._coded[number] = values, self._cells[size : int(ends[-1])].copy(), ends - size
        _, cells, ends = held
        self._grow(size, len(cells))
        self._cells[size : size + len(cells)] = cells
        return ends + size

    def _written(self, values: FieldValues, size: int) -> NDArray[np.int64]:
        """Write values behind so many bytes of cells, and give where each ends."""
        ends, unsure = np.empty(len(values.kind), np.int64), np.empty(len(values.kind), np.bool_)
        while True:
            texts = (values.kind == STRING) | (values.kind == kernels.RAW)
            self._grow(size, kernels.LONGEST * len(ends) + self._widest * int(values.length[texts].sum(dtype=np.int64)))
            style = self._delimiter, self._escaping, size
            if not kernels.put_cells(*values.arrays, *style, self._cells, ends, unsure):
                return ends
            places = np.flatnonzero(unsure)
            values = self._with_texts(values, places, python_values(chosen(values, places)))

    def _grow(self, size: int, room: int) -> None:
        """Have room for more cells behind so many bytes of them."""
        if len(self._cells) < size + room:
            self._cells = np.concatenate([self._cells[:size], np.empty(room, np.uint8)])

    def _column(self, batch: FieldBatch, number: int) -> FieldValues | CodedValues:
        """The values of a column; where each is of several elements, as texts."""
        _, path = batch.selection[number]
        if before_any(path) == path:
            return batch.fields[number]
        values = batch.values(number)
        held = batch.column(number)
        places = [place for place, value in enumerate(held) if value is not UNDEFINED]
        nothing = values._replace(kind=np.zeros_like(values.kind))
        return self._with_texts(nothing, np.array(places, np.int64), [held[place] for place in places])

    def _with_texts(self, values: FieldValues, places: NDArray[np.int64], held: Sequence[Any]) -> FieldValues:
        """The values, with the texts of these in these places."""
        written = list(map(self._text, held))
        sizes = np.fromiter((len(text) for text, _ in written), np.int64, len(written))
        kind, start, length = values.kind.copy(), values.start.copy(), values.length.copy()
        kind[places] = [STRING if is_quoted else kernels.RAW for _, is_quoted in written]
        start[places], length[places] = len(values.buffer) + np.cumsum(sizes) - sizes, sizes
        buffer = np.concatenate([values.buffer, np.frombuffer(b"".join(text for text, _ in written), np.uint8)])
        return values._replace(buffer=buffer, kind=kind, start=start, length=length)

    def _text(self, value: Any) -> tuple[bytes, bool]:
        """A value as text; and whether a cell of it may need quotes."""
        if self._delimiter == kernels.JSON:
            return line_of(value)[:-1], False
        if isinstance(value, int | float) and not isinstance(value, bool):
            return repr(value).encode(), False
        return cell_text(value).encode(), True


def _bytes_of(stops: NDArray[np.int64], codes: NDArray[np.uint32], counts: Sequence[int]) -> int:
    """Bytes that the cells with these codes take; or more, if they are few. `counts`: of cells, of each column."""
    sizes = np.diff(stops, prepend=0)
    most = int(np.maximum.reduceat(sizes, np.cumsum([0, *counts[:-1]], dtype=np.int64)).sum()) * codes.shape[1]
    return most if most <= _FEW_BYTES else int(sizes[codes.ravel()].sum())
