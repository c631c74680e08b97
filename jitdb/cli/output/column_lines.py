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
from jitdb.indexes.kinds.dictionary import chosen
from jitdb.log.codecs.fields.located import Scratch
from jitdb.log.codecs.python_values import python_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.reading.selecting import FieldBatch
    from jitdb.log.codecs.fields.located import FieldValues

_ESCAPED: Final = b"\\ud"  # half of a pair, in JSON: a line that holds what is no UTF-8 is escaped as a whole
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
        yield b"".join(map(line_of, batch.rows())) if lines is None else lines


class _Writer:
    """Writes batches of columns. `delimiter`: of CSV; "": as objects of JSON."""

    def __init__(self, names: Sequence[str], delimiter: str, escaping: bool) -> None:
        self._delimiter = ord(delimiter) if delimiter else kernels.JSON
        self._escaping = escaping
        self._widest = 2 if delimiter else kernels.WIDEST
        heads = [line_of(name)[:-1] + b":" for name in names]
        self._heads = np.frombuffer(b"".join(heads), np.uint8)
        self._head_ends = np.cumsum([len(head) for head in heads], dtype=np.int64)
        self._cells = np.empty(0, np.uint8)
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
        ends, unsure, size = np.empty(rows * columns, np.int64), np.empty(rows, np.bool_), 0
        for number in range(columns if rows else 0):
            values, own = self._column(batch, number), ends[number * rows : (number + 1) * rows]
            while self._put(values, size, own, unsure):
                places = np.flatnonzero(unsure)
                values = self._with_texts(values, places, python_values(chosen(values, places)))
            size = int(own[-1])
        out = self._scratch.room(size + rows * (len(self._heads) + columns + _LINE))
        heads = self._heads, self._head_ends
        end = kernels.join_cells(self._cells, ends, columns, *heads, self._delimiter, out) if rows else 0
        return out[:end].tobytes()

    def _put(self, values: FieldValues, size: int, ends: NDArray[np.int64], unsure: NDArray[np.bool_]) -> int:
        """Write a column behind so many bytes of cells. Gives how many of its values need texts."""
        texts = (values.kind == STRING) | (values.kind == kernels.RAW)
        room = kernels.LONGEST * len(ends) + self._widest * int(values.length[texts].sum(dtype=np.int64))
        if len(self._cells) < size + room:
            self._cells = np.concatenate([self._cells[:size], np.empty(room, np.uint8)])
        style = self._delimiter, self._escaping, size
        return kernels.put_cells(*values.arrays, *style, self._cells, ends, unsure)

    def _column(self, batch: FieldBatch, number: int) -> FieldValues:
        """The values of a column; where each is of several elements, as texts."""
        _, path = batch.selection[number]
        values = batch.fields[number]
        if before_any(path) == path:
            return values
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
