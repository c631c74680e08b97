"""The values of a field as numbers, a code a record, whichever index has them; and how many records have each.

Code 0 is that of records without the field. What there is decides which index serves: bitmaps of an index that
questions for a value left behind, else a dictionary column, which the scan of the first count builds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from jitdb.common.values import ABSENT, value_key
from jitdb.indexes.kinds.bitmaps import dictionary_of, load_bitmap
from jitdb.indexes.kinds.roaring import bitmap_of_range, members_of
from jitdb.indexes.segment import BITMAPS, Segment
from jitdb.indexes.spec import IndexSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.common.paths import Path
    from jitdb.engine.catalog.catalog import Catalog

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
    """By the bitmaps of an index. Guarded by the engine's lock."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = segments
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
        """From the cardinalities that stand beside the bitmaps, where all records are counted. Raises IndexDamaged."""
        found = np.zeros(len(self), np.int64)
        for segment in self._segments:
            dictionary = dictionary_of(segment)
            codes = [self._codes[dictionary[number]] for number in range(len(dictionary))]
            there = matches.range_cardinality(segment.first_seq, segment.end_seq)
            if there == sum(map(int, dictionary.cardinalities)):  # each record that is not deleted is in one of them
                found[codes] += np.array(dictionary.cardinalities, np.int64)
            elif there:
                sets = (load_bitmap(segment, number) for number in range(len(dictionary)))
                found[codes] += [members.intersection_cardinality(matches) for members in sets]
        return found

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
    """Of a field that has one value in all records: what a log's path says."""

    def __init__(self, value: Any) -> None:
        self._key = value_key(value)

    def __len__(self) -> int:
        return 2

    def key(self, code: int) -> bytes:
        return self._key if code else _ABSENT_KEY

    def counts(self, matches: BitMap) -> NDArray[np.int64]:
        return np.array([0, len(matches)], np.int64)

    def codes(self, matches: BitMap) -> NDArray[np.uint32]:
        return np.ones(len(matches), np.uint32)


def bitmaps_spec(path: Path) -> IndexSpec:
    """The index that questions for a value leave behind."""
    return IndexSpec("auto", (path,))


def dictionary_spec(path: Path) -> IndexSpec:
    return IndexSpec("dictionary", (path,))


def has_bitmaps(catalog: Catalog, path: Path) -> bool:
    """Whether there are bitmaps of the field that know no less of the log than its dictionary does."""
    known = catalog.get(bitmaps_spec(path))
    return known.kind == BITMAPS and known.reached >= catalog.get(dictionary_spec(path)).reached
