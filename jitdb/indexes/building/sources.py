"""Where an index's values come from: a field, the elements of an array, or the place a user's function points at."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from jitdb.common.paths import Path
from jitdb.common.values import UNDEFINED
from jitdb.common.words import shown
from jitdb.errors import DecodeError, QueryError
from jitdb.indexes.building.chunk import Chunk, FieldValues
from jitdb.log.codecs.base import MAX_NESTING
from jitdb.log.codecs.fields.located import LIVE, empty_located
from jitdb.log.codecs.locate import codec_number, codec_of_values, is_compiled, locate_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.base import Codec

Seek = Callable[[bytes, int], int | None]

_FIRST_ROOM = 1 << 16  # elements that a worker has room for before it grows


class ValueSource(ABC):
    """Where a builder's values come from: a field, the elements of one, or what a user's function points at."""

    rows: tuple[int, ...] = ()
    elements = False  # whether a record may own any number of values

    def __init__(self, codec: int) -> None:
        self.codec = codec  # whose values they are, as the kernels number codecs

    def new_worker(self) -> Any:
        return None

    @abstractmethod
    def get(self, worker: Any, chunk: Chunk) -> tuple[FieldValues, NDArray[np.int32] | None]:
        """The values, and the records that own them (None: a value a record)."""


class FieldSource(ValueSource):
    """The field itself."""

    def __init__(self, row: int, codec: int) -> None:
        super().__init__(codec)
        self.rows = (row,)

    def get(self, worker: Any, chunk: Chunk) -> tuple[FieldValues, NDArray[np.int32] | None]:
        return chunk.field(self.rows[0]), None


class ElementsSource(ValueSource):
    """Each element of the field's array (or what lies under `pluck` in it); a value that is no array is its own."""

    elements = True

    def __init__(self, row: int, pluck: Path, codec: int) -> None:
        super().__init__(codec)
        self.rows = (row,)
        keys = [key.encode() for key in pluck]
        ends = np.cumsum([0, *map(len, keys)])
        self._pluck = (
            ends[:-1].astype(np.int32),
            np.diff(ends).astype(np.int32),
            np.frombuffer(b"".join(keys) or b"\0", np.uint8),
        )

    def get(self, worker: Any, chunk: Chunk) -> tuple[FieldValues, NDArray[np.int32] | None]:
        return list_elements(self.codec, chunk.field(self.rows[0]), self._pluck)


class SeekSource(ValueSource):
    """What a user's function `(record, start) -> position` points at. A Python call a record: it works, slowly."""

    def __init__(self, seek: Seek, elements: ElementsSource | None, codec: Codec) -> None:
        super().__init__(codec_number(codec_of_values(codec)))
        self._seek = seek
        self._elements = elements
        self.elements = elements is not None
        self._codec = codec

    def get(self, worker: Any, chunk: Chunk) -> tuple[FieldValues, NDArray[np.int32] | None]:
        values = self._values(chunk)
        if self._elements is None:
            return values, None
        return list_elements(self.codec, values, self._elements._pluck)

    def _values(self, chunk: Chunk) -> FieldValues:
        if not is_compiled(self._codec):
            return self._decoded(chunk)
        from jitdb.log.codecs import array_kernels

        count = len(chunk)
        kind, number = np.zeros(count, np.uint8), np.zeros(count, np.float64)
        start, length = np.zeros(count, np.int32), np.zeros(count, np.int32)
        stack = np.empty(MAX_NESTING + 1, np.int64)
        for record in np.flatnonzero(chunk.states == LIVE).tolist():
            begin, size = int(chunk.starts[record]), int(chunk.lengths[record])
            position = _position(self._seek, chunk.buffer[begin : begin + size].tobytes())
            if not 0 <= position < size:
                continue
            found, at, width, value, _ = array_kernels.read_whole(
                self.codec, chunk.buffer, begin + position, begin + size, stack
            )
            if found != array_kernels.MALFORMED:
                kind[record], start[record], length[record], number[record] = found, at, width, value
        return FieldValues(chunk.buffer, kind, start, length, number)

    def _decoded(self, chunk: Chunk) -> FieldValues:
        """The same, of a codec that there are no kernels for."""
        found: list[list[Any]] = [[UNDEFINED] for _ in range(len(chunk))]
        for record in np.flatnonzero(chunk.states == LIVE).tolist():
            begin, size = int(chunk.starts[record]), int(chunk.lengths[record])
            data = chunk.buffer[begin : begin + size].tobytes()
            position = _position(self._seek, data)
            if 0 <= position < size:
                with suppress(DecodeError):  # as of a malformed record
                    found[record] = [self._codec.decode_at(data, position)]
        located = empty_located(1, len(chunk))
        values = locate_values(self._codec, found, located, chunk.offsets)
        return FieldValues(values, *(rows[0] for rows in located))


def _position(seek: Seek, record: bytes) -> int:
    """Where the function says that the field's value begins; -1: nowhere. Raises QueryError for what is no place."""
    found = seek(record, 0)
    try:
        return -1 if found is None else operator.index(found)
    except TypeError:
        name = getattr(seek, "__name__", type(seek).__name__)
        raise QueryError(
            f"the function {name} finds a field's position, an integer, or None: not {shown(found)}"
        ) from None


def list_elements(codec_number: int, values: FieldValues, pluck: Any) -> tuple[FieldValues, NDArray[np.int32]]:
    """The elements of a run of values, and the records that own them."""
    from jitdb.log.codecs import array_kernels

    elements: Any = array_kernels.elements
    buffer, kind, start, length, number = values
    count = len(kind)
    room = max(_FIRST_ROOM, count)
    parts: list[list[NDArray[Any]]] = []
    first = 0
    while True:
        begin = first
        owner, out_kind = np.empty(room, np.int32), np.empty(room, np.uint8)
        out_start, out_length = np.empty(room, np.int32), np.empty(room, np.int32)
        out_number = np.empty(room, np.float64)
        first, written = elements(
            codec_number, buffer, kind, start, length, number, first, count,
            *pluck, owner, out_kind, out_start, out_length, out_number,
        )  # fmt: skip
        parts.append([array[:written] for array in (owner, out_kind, out_start, out_length, out_number)])
        if first >= count:
            break
        if first == begin:  # one array has more elements than there is room for
            room *= 2
    owner, *columns = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    return FieldValues(buffer, *columns), owner
