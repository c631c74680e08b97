"""The selected fields of records from indexes, without the log, where these hold every value exactly.

| index        | loses                                                                                          |
| ------------ | ---------------------------------------------------------------------------------------------- |
| dictionary   | of arrays and maps how they were written: keys are sorted, and a 1.0 in them is 1               |
| bitmaps      | the same                                                                                       |
| numbers      | all that is no number, so it serves where every record has one                                  |
| hashes, time | nearly all                                                                                     |

A value that is lost is found when its segment is read; from then on the log is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common import memory
from jitdb.common.paths import before_any
from jitdb.common.values import ABSENT, ARRAY, MAP, NUMBER
from jitdb.engine.reading.selecting import CodedValues, joined_values
from jitdb.indexes.kinds.bitmaps import dictionary_of, load_bitmap
from jitdb.indexes.kinds.columns import seen_by
from jitdb.indexes.kinds.dictionary import codes_of, dictionary_values
from jitdb.indexes.kinds.kernels import seen
from jitdb.indexes.kinds.numbers import load_extremes, load_numbers
from jitdb.indexes.kinds.roaring import members_of
from jitdb.indexes.segment import BITMAPS, DICTIONARY, NUMBERS
from jitdb.indexes.spec import IndexSpec, Requirement
from jitdb.log.codecs.fields.constants import KEYS
from jitdb.log.codecs.fields.located import FieldValues

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.common.paths import Path
    from jitdb.engine.catalog.catalog import Catalog
    from jitdb.indexes.files.index import Index
    from jitdb.indexes.segment import Segment
    from jitdb.operators.nodes.selection import Selection

_HELD: Final = 32 << 20  # bytes of segments in memory, unless one a field takes more
_AGAIN: Final = 2  # times that all segments are read before the log is: in which order records come decides


def needs_of(catalog: Catalog, select: Selection) -> tuple[Requirement, ...]:
    """The indexes that have these fields, if all have one; guarded by the engine's lock."""
    found = [_index_of(catalog, path) for _, path in select]
    return tuple(Requirement(index.spec) for index in found if index is not None) if None not in found else ()


def _index_of(catalog: Catalog, path: Path) -> Index | None:
    """The one that knows most of the log, of several the smallest."""
    if before_any(path) != path:
        return None
    specs = IndexSpec("dictionary", (path,)), IndexSpec("auto", (path,)), IndexSpec("column", (path,))
    there = [catalog.get(spec) for spec in specs if catalog.reached(spec)]
    return min(filter(_may_serve, there), key=lambda index: (-index.reached, index.size), default=None)


def _may_serve(index: Index) -> bool:
    """Whether it may have all values, as far as the heads of its segments tell. Raises IndexDamaged."""
    if index.kind != NUMBERS:
        return index.kind in (DICTIONARY, BITMAPS)
    others = seen.OTHERS | seen.TEXTS
    return not any(seen_by(each) & others or np.isneginf(load_extremes(each)[0]).any() for each in index.segments)


class IndexedFields:
    """Finds selected fields in the segments that indexes had. It serves one thread."""

    def __init__(self, indexes: Sequence[Index]) -> None:
        self._fields = [_Field(index, memory.work(_HELD) // len(indexes)) for index in indexes]

    @classmethod
    def of(cls, catalog: Catalog, select: Selection, end: int) -> IndexedFields | None:
        """Where indexes know all records below `end`. Guarded by the engine's lock. Raises IndexDamaged."""
        indexes = [_index_of(catalog, path) for _, path in select]
        found = [index for index in indexes if index is not None and index.end_seq >= end]
        return cls(found) if end and found and len(found) == len(select) else None

    def read(self, seqs: NDArray[np.uint32]) -> list[FieldValues | CodedValues] | None:
        """What these records, which are live, have; None: only the log knows. Raises IndexDamaged, OSError."""
        found: list[FieldValues | CodedValues] = []
        for field in self._fields:
            values = field.values(seqs)
            if values is None:
                return None
            found.append(values)
        return found


class _Field:
    """One field: its segments, of which those that were used last are in memory."""

    def __init__(self, index: Index, most: int) -> None:
        self._segments, self._most = list(index.segments), most
        self._firsts = np.array([each.first_seq for each in self._segments])
        self._parts: dict[Segment, Any] = {}  # the last one last
        self._left = _AGAIN * len(self._segments)

    def values(self, seqs: NDArray[np.uint32]) -> FieldValues | CodedValues | None:
        """What these records have; None: only the log knows."""
        ends = (seqs.min(), seqs.max()) if len(seqs) else (0, 0)
        low, high = (self._firsts.searchsorted(ends, "right") - 1).tolist()
        if low == high:
            return self._taken(low, seqs)
        owners = self._firsts.searchsorted(seqs, "right") - 1
        orders = [np.flatnonzero(owners == number) for number in range(low, high + 1)]
        pieces = []
        for number, order in enumerate(orders, low):
            piece = self._taken(number, seqs[order])
            if piece is None:
                return None
            pieces.append(piece.plain() if isinstance(piece, CodedValues) else piece)
        return joined_values(pieces, orders, len(seqs))

    def _taken(self, number: int, seqs: NDArray[np.uint32]) -> FieldValues | CodedValues | None:
        """What these records of a segment have."""
        if not len(seqs):
            return FieldValues.of_keys([])
        segment = self._segments[number]
        part = self._part(segment)
        return None if part is None else part.take(seqs - np.uint32(segment.first_seq))

    def _part(self, segment: Segment) -> Any:
        if segment in self._parts:
            self._parts[segment] = part = self._parts.pop(segment)
            return part
        if not self._left:
            return None
        self._left -= 1
        room = self._most - _size(segment)
        while self._parts and sum(map(_size, self._parts)) > room:
            del self._parts[next(iter(self._parts))]
        self._parts[segment] = part = _READERS[segment.kind](segment)
        return part


def _size(segment: Segment) -> int:
    """Bytes that it takes in memory, about."""
    return 3 * segment.body_size


# --- segments --------------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """The values of a segment, that of code n at n, nothing at 0; and a code a record."""

    values: FieldValues
    codes: NDArray[Any]

    def take(self, places: NDArray[np.uint32]) -> FieldValues | CodedValues | None:
        found = CodedValues(self.values, self.codes[places])
        return found if len(self.values.kind) <= len(places) else found.plain()


def _coded(values: FieldValues, codes: NDArray[Any]) -> _Part | None:
    """None where a value is not as the record has it."""
    if np.isin(values.kind, (ARRAY, MAP)).any():
        return None
    columns: list[Any] = [np.concatenate([np.zeros(1, each.dtype), each]) for each in values.arrays[1:]]
    assert columns[0][0] == ABSENT
    return _Part(FieldValues(values.encoding, values.buffer, *columns), codes)


def _of_dictionary(segment: Segment) -> _Part | None:
    return _coded(dictionary_values(segment, keep=False), codes_of(segment, keep=False))


def _of_bitmaps(segment: Segment) -> _Part | None:
    keys = list(dictionary_of(segment))
    codes = np.zeros(segment.count, np.uint16 if len(keys) < 1 << 16 else np.uint32)
    for number in range(len(keys)):
        codes[members_of(load_bitmap(segment, number)) - np.uint32(segment.first_seq)] = number + 1
    return _coded(FieldValues.of_keys(keys), codes)


class _Numbers(NamedTuple):
    hi: NDArray[np.float64]
    lo: NDArray[np.int16] | None

    def take(self, places: NDArray[np.uint32]) -> FieldValues | None:
        """None where one has no number: it may have NaN, null or nothing."""
        number = self.hi[places]
        if np.isnan(number).any():
            return None
        count = len(places)
        lo = np.zeros(count, np.int32) if self.lo is None else self.lo[places].astype(np.int32)
        return FieldValues(
            KEYS, np.zeros(1, np.uint8), np.full(count, NUMBER, np.uint8), np.zeros(count, np.int32), lo, number
        )


def _of_numbers(segment: Segment) -> _Numbers:
    return _Numbers(*load_numbers(segment, keep=False))


_READERS: Final[dict[int, Callable[[Segment], Any]]] = {
    DICTIONARY: _of_dictionary, BITMAPS: _of_bitmaps, NUMBERS: _of_numbers,
}  # fmt: skip
