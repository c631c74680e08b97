"""The values of a field as numbers, a code a record, whichever index has them; and how many records have each.

Code 0 is that of records without the field. What there is decides which index serves (engine/serving.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from jitdb.common.values import ABSENT, UNDEFINED, value_key
from jitdb.indexes.kinds.bitmaps import dictionary_of, load_bitmap
from jitdb.indexes.kinds.roaring import bitmap_of_range, members_of, union_of
from jitdb.indexes.segment import Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

_ABSENT_KEY: Final = bytes([ABSENT])


class Coded(Protocol):
    """Of records, as sets that ascend: which code each has, or how many have each."""

    def __len__(self) -> int:
        """How many codes there are, 0 among them."""

    def key(self, code: int) -> bytes:
        """The key of a code's value (jitdb.common.values)."""

    def counts(self, matches: BitMap) -> NDArray[np.int64]:
        """How many of these records have each code."""

    def codes(self, matches: BitMap) -> NDArray[np.uint32]:
        """The code of each of these records."""


class BitmapCodes:
    """By the bitmaps of an index. Guarded by the engine's lock. `owned`: a record may have several values."""

    def __init__(self, segments: Sequence[Segment], owned: bool = False) -> None:
        self._segments, self._owned = segments, owned
        self._codes: dict[bytes, int] = {_ABSENT_KEY: 0}
        for segment in segments:
            dictionary = dictionary_of(segment)
            for number in range(len(dictionary)):
                self._codes.setdefault(dictionary[number], len(self._codes))
        self._keys = list(self._codes)

    def __len__(self) -> int:
        return len(self._keys)

    def key(self, code: int) -> bytes:
        return self._keys[code]

    def counts(self, matches: BitMap) -> NDArray[np.int64]:
        """From the cardinalities that stand beside the bitmaps, where all records are counted. Raises IndexDamaged.

        A record that has several values counts for each of them.
        """
        found = np.zeros(len(self), np.int64)
        for segment in self._segments:
            dictionary = dictionary_of(segment)
            codes = [self._codes[dictionary[number]] for number in range(len(dictionary))]
            there = matches.range_cardinality(segment.first_seq, segment.end_seq)
            # Else each record that is not deleted is in just one of them.
            if not self._owned and there == sum(map(int, dictionary.cardinalities)):
                found[codes] += np.array(dictionary.cardinalities, np.int64)
            elif there:
                sets = (load_bitmap(segment, number) for number in range(len(dictionary)))
                found[codes] += [members.intersection_cardinality(matches) for members in sets]
        if self._owned:
            found[0] = len(matches) - len(self._present() & matches)
        return found

    def _present(self) -> BitMap:
        """The records that have a value."""
        return union_of(
            load_bitmap(segment, number)
            for segment in self._segments
            for dictionary in (dictionary_of(segment),)
            for number in range(len(dictionary))
            if dictionary[number] != _ABSENT_KEY
        )

    def codes(self, matches: BitMap) -> NDArray[np.uint32]:
        """Raises IndexDamaged."""
        parts = [np.empty(0, np.uint32)]
        for segment in self._segments:
            dictionary = dictionary_of(segment)
            codes = np.zeros(segment.count, np.uint32)
            for number in range(len(dictionary)):
                members = members_of(load_bitmap(segment, number)) - np.uint32(segment.first_seq)
                codes[members] = self._codes[dictionary[number]]
            there = matches & bitmap_of_range(segment.first_seq, segment.end_seq)
            whole = len(there) == segment.count
            parts.append(codes if whole else codes[members_of(there) - np.uint32(segment.first_seq)])
        return np.concatenate(parts)


class ConstantCodes:
    """Of a field that has one value in all records, or is in none of them: what a log's path says."""

    def __init__(self, value: Any) -> None:
        self._key = value_key(value)
        self._code = int(value is not UNDEFINED)

    def __len__(self) -> int:
        return 2

    def key(self, code: int) -> bytes:
        return self._key if code else _ABSENT_KEY

    def counts(self, matches: BitMap) -> NDArray[np.int64]:
        counts = np.zeros(2, np.int64)
        counts[self._code] = len(matches)
        return counts

    def codes(self, matches: BitMap) -> NDArray[np.uint32]:
        return np.full(len(matches), self._code, np.uint32)
