"""Where an index's values come from: a field, the elements of an array, or the place a user's function points at."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from jitdb.common.paths import Path
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.indexes.building.chunk import Chunk
from jitdb.log.codecs.containers import Pluck, list_elements

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.base import Codec
    from jitdb.log.codecs.fields.located import FieldValues, Locator

Seek = Callable[[bytes, int], int | None]


class ValueSource(ABC):
    """Where a builder's values come from: a field, the elements of one, or what a user's function points at."""

    rows: tuple[int, ...] = ()
    elements = False  # whether a record may own any number of values

    def new_worker(self) -> Any:
        return None

    @abstractmethod
    def get(self, worker: Any, chunk: Chunk) -> tuple[FieldValues, NDArray[np.int32] | None]:
        """The values, and the records that own them (None: a value a record)."""


class FieldSource(ValueSource):
    """The field itself."""

    def __init__(self, row: int) -> None:
        self.rows = (row,)

    def get(self, worker: Any, chunk: Chunk) -> tuple[FieldValues, NDArray[np.int32] | None]:
        return chunk.fields[self.rows[0]], None


class SeekSource(ValueSource):
    """What a user's function `(record, start) -> position` points at. A Python call a record: it works, slowly."""

    def __init__(self, seek: Seek, codec: Codec) -> None:
        self._seek = seek
        self._codec = codec

    def new_worker(self) -> Locator:
        return self._codec.locator(())

    def get(self, worker: Locator, chunk: Chunk) -> tuple[FieldValues, NDArray[np.int32] | None]:
        positions = np.full(len(chunk), -1, np.int64)
        for number in chunk.records.live():
            record = chunk.records.record(number)
            position = _position(self._seek, record)
            positions[number] = position if 0 <= position < len(record) else -1
        return worker.values_at(chunk.records, positions), None


class ElementsSource(ValueSource):
    """Each element of the array that a source finds (or what lies under `pluck` in it); what is no array is its own."""

    elements = True

    def __init__(self, arrays: ValueSource, pluck: Path) -> None:
        self.rows = arrays.rows
        self._arrays = arrays
        self._pluck = Pluck.of(pluck)

    def new_worker(self) -> Any:
        return self._arrays.new_worker()

    def get(self, worker: Any, chunk: Chunk) -> tuple[FieldValues, NDArray[np.int32] | None]:
        return list_elements(self._arrays.get(worker, chunk)[0], self._pluck)


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
