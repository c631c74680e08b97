"""The dictionary column of a field as one, over all its segments: values numbered through, a code a record.

Code 0 is that of records without the field; code n that of value n - 1. A column that is asked again after the log has
grown numbers the values of its new segments alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from pyroaring import BitMap

from jitdb.common.values import value_of_key
from jitdb.indexes.kinds.dictionary import codes_of, dictionary_values, key_at
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_range, members_of, union_of
from jitdb.indexes.numbering import NumberingTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.files.index import Index
    from jitdb.indexes.segment import Segment
    from jitdb.log.codecs.fields.located import FieldValues


class _Part(NamedTuple):
    segment: Segment
    codes: NDArray[np.uint32]  # of the column, by the segment's code


class CodedColumn:
    """The values of a field and a code a record. Guarded by the engine's lock."""

    def __init__(self) -> None:
        self._table = NumberingTable()
        self._parts: list[_Part] = []
        self._values: FieldValues | None = None
        self._ranks: NDArray[np.float64] | None = None

    def follow(self, segments: Sequence[Segment]) -> None:
        """Be that of these segments. Raises IndexDamaged."""
        known = {id(part.segment): part for part in self._parts}
        self._parts = [known.get(id(segment)) or self._numbered(segment) for segment in segments]

    def _numbered(self, segment: Segment) -> _Part:
        values = dictionary_values(segment)
        numbers = self._table.number(values, np.zeros(len(values.kind), np.uint8))
        assert numbers is not None  # without limits, it is never full
        self._values = self._ranks = None
        return _Part(segment, np.append(np.zeros(1, np.uint32), numbers))

    @property
    def values(self) -> FieldValues:
        """All values (encoding KEYS): that of code n stands at n - 1. Some may be of no record any more."""
        if self._values is None:
            self._values = self._table.distinct_values()
        return self._values

    @property
    def ranks(self) -> NDArray[np.float64]:
        """For each code, where its value stands in the order of values (value_order.py); NaN for one without a place.

        They are other numbers once there are more values.
        """
        if self._ranks is None:
            from jitdb.engine.answering.value_order import ranks_of

            self._ranks = np.append(np.full(1, np.nan), ranks_of(self.values))
        return self._ranks

    def __len__(self) -> int:
        """How many codes there are, 0 among them."""
        return self._table.filled

    def key(self, code: int) -> bytes:
        return key_at(self.values, code - 1) if code else b"\0"

    def value(self, code: int) -> Any:
        """The value of a code, UNDEFINED of 0."""
        return value_of_key(self.key(code))

    def counts(self, matches: BitMap) -> NDArray[np.int64]:
        """How many of these records have each code."""
        from jitdb.indexes.kinds.dictionary_kernels import count_codes

        counts = np.zeros(len(self), np.int64)
        for part, codes, _ in self._chosen(matches):
            found = np.zeros(len(part.codes), np.int64)
            count_codes(codes.astype(np.uint32, copy=False), found)
            counts[part.codes] += found  # no two codes of a segment are one of the column
        return counts

    def codes(self, matches: BitMap) -> NDArray[np.uint32]:
        """The codes of these records, ascending by seq."""
        found = [part.codes[codes] for part, codes, _ in self._chosen(matches)]
        return np.concatenate([np.empty(0, np.uint32), *found])

    def records_with(self, accepted: NDArray[np.bool_], within: BitMap) -> BitMap:
        """Those of these records whose code is accepted: a bool for each code, 0 among them."""
        return union_of(bitmap_of(seqs[accepted[part.codes][codes]]) for part, codes, seqs in self._chosen(within))

    def _chosen(self, matches: BitMap) -> Iterator[tuple[_Part, NDArray[Any], NDArray[np.uint32]]]:
        """Of each segment that has some of the records: their codes in it, and their seqs."""
        for part in self._parts:
            segment = part.segment
            there = matches & bitmap_of_range(segment.first_seq, segment.end_seq)
            if len(there) == segment.count:
                yield part, codes_of(segment), np.arange(segment.first_seq, segment.end_seq, dtype=np.uint32)
            elif there:
                seqs = members_of(there)
                yield part, codes_of(segment)[seqs - np.uint32(segment.first_seq)], seqs


class CodedColumns:
    """Those of a database's indexes, kept as long as these are."""

    def __init__(self) -> None:
        self._columns: WeakKeyDictionary[Index, CodedColumn] = WeakKeyDictionary()

    def get(self, index: Index) -> CodedColumn:
        """That of an index as it is now. Raises IndexDamaged."""
        column = self._columns.setdefault(index, CodedColumn())
        column.follow(index.segments)
        return column
