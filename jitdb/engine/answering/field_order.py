"""The order by some fields, and the first records in it without sorting all.

A field gives each record a number, and NaN where it has nothing to sort by: those of its column where all its values
are numbers, those of its column of times where all are times as text, else the ranks of the values that its dictionary
holds (coded.py). Which of the indexes it is makes no difference to the order; the smallest one that holds all
values serves. A column that is built knows whether there are others; until then another index of the field does, or
the first records.

The first of many are found by what decides: those better than the k-th best number of the first field are among them,
of those that tie with it as many as the other fields choose. Only these few are sorted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.common.times import AUTO, NUMBER, time_of_text
from jitdb.common.values import value_at, value_key
from jitdb.engine.answering.coded import OF_NUMBERS, OF_TIMES, place_of_key
from jitdb.engine.answering.order import Order, numbers_at
from jitdb.engine.records import require
from jitdb.errors import LogError
from jitdb.indexes.kinds import seen
from jitdb.indexes.kinds.numbers import seen_by
from jitdb.indexes.kinds.roaring import bitmap_of
from jitdb.indexes.segment import ZONE
from jitdb.indexes.spec import IndexSpec
from jitdb.log.reading.sampling import first

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.common.paths import Path
    from jitdb.engine.answering.coded import CodedColumns
    from jitdb.engine.catalog.catalog import Catalog
    from jitdb.engine.declared_time import CoreFields
    from jitdb.indexes.files.index import Index
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.sorting import SortKey, SortKeys

_LOOKED_AT: Final = 16  # records
_TEXTS_ONLY: Final = seen.TEXTS | seen.ZONELESS


class FieldOrder:
    """The order by these fields, each with its column. Guarded by the engine's lock."""

    def __init__(self, keys: SortKeys, columns: Sequence[Column]) -> None:
        self._columns = [(column, key.descending) for column, key in zip(columns, keys, strict=True)]

    def first(self, members: NDArray[np.uint32], wanted: int, descending: bool) -> NDArray[np.uint32]:
        """The first `wanted` of these records (ascending seqs) in this order, or in its reverse: then the greatest
        come first, of equal ones the newest; those without a value last, either way.

        Raises IndexBehind where an index does not cover them, IndexDamaged.
        """
        for column, _ in self._columns:
            require(column.index, members[-1:])
        if wanted <= 0 or not len(members):
            return members[:0]
        if wanted * 4 < len(members):
            members = np.sort(self._best(members, wanted, descending, 0))
        if descending:
            members = members[::-1]  # a stable sort leaves equal ones in that order
        keys: list[NDArray[Any]] = []  # the last counts most
        for column, falls in reversed(self._columns):
            keys += _compared(*column.numbers_of(members), falls != descending)[::-1]
        return members[np.lexsort(keys)[:wanted]]

    def _best(self, members: NDArray[np.uint32], wanted: int, descending: bool, level: int) -> NDArray[np.uint32]:
        """The first `wanted` of these records (ascending seqs), in no order, by the fields from this one on."""
        if wanted >= len(members):
            return members
        if level == len(self._columns):
            return members[-wanted:] if descending else members[:wanted]
        column, falls = self._columns[level]
        members = column.promising(members, wanted, falls != descending)
        sure, tied = [], np.arange(len(members))
        for number in _compared(*column.numbers_of(members), falls != descending):
            number = number[tied]
            bound = np.partition(number, wanted - 1)[wanted - 1]
            sure.append(members[tied[number < bound]])
            wanted -= len(sure[-1])
            tied = tied[number == bound]
        return np.concatenate([*sure, self._best(members[tied], wanted, descending, level + 1)])

    def times(self, seqs: NDArray[np.uint32], descending: bool) -> list[Any]:
        """What orders these records, in whatever order they are: smaller ones come first, those of other logs too;
        descending: greater ones.

        Raises IndexBehind where an index does not cover them, IndexDamaged.
        """
        ascending = np.argsort(seqs, kind="stable")
        parts = []
        for column, falls in self._columns:
            require(column.index, seqs[ascending[-1:]])
            found: list[Any] = [None] * len(seqs)
            for at, place in zip(ascending.tolist(), column.places_of(seqs[ascending]), strict=True):
                found[at] = _merged_by(place, falls, descending)
            parts.append(found)
        return list(zip(*parts, strict=True))


def place_of(value: Any, key: SortKey, descending: bool) -> tuple[Any, ...]:
    """What FieldOrder.times has for a record with this value in the field."""
    return _merged_by(place_of_key(value_key(value)), key.descending, descending)


def _merged_by(place: tuple[Any, ...] | None, falls: bool, descending: bool) -> tuple[Any, ...]:
    if place is None:
        return (-1,) if descending else (1,)
    return (0, _Falling(place) if falls else place)


class _Falling:
    """Wraps what is to be ordered the other way round."""

    __slots__ = ("place",)

    def __init__(self, place: Any) -> None:
        self.place = place

    def __lt__(self, other: _Falling) -> bool:
        return bool(other.place < self.place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Falling) and bool(self.place == other.place)

    __hash__ = None  # type: ignore[assignment]


def _compared(hi: NDArray[np.float64], lo: NDArray[np.int16] | None, falls: bool) -> list[NDArray[Any]]:
    """What of these numbers is compared first, and what where that is equal; NaN come last, and tie."""
    numbers: list[NDArray[Any]] = [-hi if falls else hi]
    missing = np.isnan(hi)
    if missing.any():
        numbers = [missing, np.where(missing, 0.0, numbers[0])]
    return numbers if lo is None else [*numbers, -lo if falls else lo]


class Column(ABC):
    """A number a record."""

    def __init__(self, index: Index) -> None:
        self.index = index

    @abstractmethod
    def numbers_of(self, seqs: NDArray[np.uint32]) -> tuple[NDArray[np.float64], NDArray[np.int16] | None]:
        """hi and lo of these records, in any order (lo None: all 0); NaN where there is nothing to sort by."""

    @abstractmethod
    def places_of(self, seqs: NDArray[np.uint32]) -> list[tuple[Any, ...] | None]:
        """What orders these records (ascending seqs) among those of any log: see coded.place_of_key."""

    def promising(self, members: NDArray[np.uint32], wanted: int, falls: bool) -> NDArray[np.uint32]:
        """Those of these records (ascending seqs) among which the first `wanted` are, and all that tie with these."""
        return members


class _Numbers(Column):
    def __init__(self, index: Index, group: int) -> None:
        super().__init__(index)
        self._group = group
        self._zones = Order(index, lacking_last=True)

    def numbers_of(self, seqs: NDArray[np.uint32]) -> tuple[NDArray[np.float64], NDArray[np.int16] | None]:
        if len(seqs) > 1 and seqs[0] > seqs[-1]:
            hi, lo = numbers_at(self.index.segments, seqs[::-1])
            return hi[::-1], None if lo is None else lo[::-1]
        return numbers_at(self.index.segments, seqs)

    def places_of(self, seqs: NDArray[np.uint32]) -> list[tuple[Any, ...] | None]:
        hi, lo = self.numbers_of(seqs)
        rests = [0] * len(seqs) if lo is None else lo.tolist()
        pairs = zip(hi.tolist(), rests, strict=True)
        return [(self._group, number, rest) if number == number else None for number, rest in pairs]

    def promising(self, members: NDArray[np.uint32], wanted: int, falls: bool) -> NDArray[np.uint32]:
        return self._zones.promising(members, wanted, falls) if len(members) > ZONE else members


class _Ranks(Column):
    def __init__(self, index: Index, coded: CodedColumns) -> None:
        super().__init__(index)
        self._coded = coded

    def numbers_of(self, seqs: NDArray[np.uint32]) -> tuple[NDArray[np.float64], NDArray[np.int16] | None]:
        column = self._coded.get(self.index)
        found = column.ranks[column.codes(bitmap_of(seqs))]
        return (found[::-1] if len(seqs) > 1 and seqs[0] > seqs[-1] else found), None

    def places_of(self, seqs: NDArray[np.uint32]) -> list[tuple[Any, ...] | None]:
        column = self._coded.get(self.index)
        codes = column.codes(bitmap_of(seqs)).tolist()
        known = {code: place_of_key(column.key(code)) for code in set(codes)}
        return [known[code] for code in codes]


def column_of(index: Index, coded: CodedColumns) -> Column:
    """What gives the numbers of a field that is sorted by, from the index that holds them."""
    if index.spec.form == "dictionary":
        return _Ranks(index, coded)
    return _Numbers(index, OF_TIMES if index.spec.form == "time" else OF_NUMBERS)


def sorting_spec(path: Path, core: CoreFields, catalog: Catalog, log: LogSource) -> IndexSpec:
    """The index to sort by this field from, which may not be there yet."""
    column = IndexSpec("column", (path,))
    time = IndexSpec("time", (path,), name=AUTO if core.unit == NUMBER else core.unit)
    dictionary = IndexSpec("dictionary", (path,))
    for spec in (column, time, dictionary):
        index = catalog.get(spec)
        if index.segments and _holds_all(index):
            return spec
    if catalog.get(column).segments or catalog.get(time).segments:
        return dictionary
    return {_is_number: column, _is_time: time}.get(_what_all_are(path, log), dictionary)


def _holds_all(index: Index) -> bool:
    """Whether it holds all values that the field has, as far as it reaches."""
    bits = 0
    if index.spec.form != "dictionary":
        for segment in index.segments:
            bits |= seen_by(segment)
    return not bits & ~_TEXTS_ONLY


def _what_all_are(path: Path, log: LogSource) -> Any:
    """_is_number or _is_time, where that is true of all values in the first records, and there are some."""
    try:
        found = [value_at(record, path) for record in first(log, _LOOKED_AT)]
    except LogError:  # it is raised where these records are read
        return None
    values = [value for value in found if value]  # empty values and 0 say little
    return next((kind for kind in (_is_number, _is_time) if values and all(map(kind, values))), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and time_of_text(value) is not None
