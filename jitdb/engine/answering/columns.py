"""What indexes know of all live records, as arrays: for stores that are built on a log, and keep an order of their own.

Nothing of the log is read, and no record is looked at in Python: of a field of numbers the column gives each record's,
of a field of few values its bitmaps give each record the number of its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common.values import ABSENT, value_of_key
from jitdb.engine.answering.order import numbers_at
from jitdb.indexes.kinds.bitmaps import dictionary_of, load_bitmap
from jitdb.indexes.kinds.roaring import bitmap_of_range, members_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.engine.records import Records
    from jitdb.indexes.files.index import Index
    from jitdb.indexes.segment import Segment

_ABSENT_KEY: Final = bytes([ABSENT])


class NumberColumn(NamedTuple):
    """A number a record: `hi` is the nearest double (NaN: none), `lo` what is left of it, where that is not all 0."""

    hi: NDArray[np.float64]
    lo: NDArray[np.int16] | None

    def naturals(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The integers from 0 to 2**64 - 1 among them, exactly; and which they are, the others stand as 0."""
        lo = np.zeros(len(self.hi), np.int64) if self.lo is None else self.lo.astype(np.int64)
        highest = self.hi == 2.0**64  # the nearest double of the last 1,024 of them
        with np.errstate(invalid="ignore"):
            fits = (self.hi >= 0) & (self.hi == np.floor(self.hi)) & ((self.hi < 2.0**64) | (highest & (lo < 0)))
        whole = np.where(fits & ~highest, self.hi, 0.0).astype(np.uint64)  # of those, 2**64 is 0
        return whole + np.where(fits, lo, 0).astype(np.uint64), fits


class ValueColumn(NamedTuple):
    """The value of each record is values[codes[i]]; UNDEFINED where it lacks the field."""

    codes: NDArray[np.uint32]
    values: list[Any]


class Columns(NamedTuple):
    """Live records, in the order of the log, a row each.

    end_seq: of how many records, deleted ones too, this is told
    offsets: where they begin in the log
    numbers, values: a column for each field that was named
    """

    end_seq: int
    offsets: NDArray[np.int64]
    numbers: list[NumberColumn]
    values: list[ValueColumn]


def columns_of(
    records: Records, numbers: Sequence[Index], values: Sequence[Index], start: int, end_seq: int, matches: BitMap
) -> Columns:
    """Of the live records from `start` to `end_seq` that match. Guarded by the engine's lock; raises IndexDamaged."""
    chosen = matches & bitmap_of_range(min(start, end_seq), end_seq)
    seqs = members_of(chosen)
    return Columns(
        end_seq,
        records.offsets_of(seqs),
        [_numbers(index.segments, seqs) for index in numbers],
        [_coded(index.since(start), seqs, chosen) for index in values],
    )


def values_in(segments: Sequence[Segment], matches: BitMap) -> list[Any]:
    """The values that records of a set have. Raises IndexDamaged."""
    found: dict[bytes, None] = {}
    for segment in segments:
        dictionary = dictionary_of(segment)
        for number in range(len(dictionary)):
            key = dictionary[number]
            if key not in found and key != _ABSENT_KEY and load_bitmap(segment, number).intersect(matches):
                found[key] = None
    return list(map(value_of_key, found))


def _numbers(segments: list[Segment], seqs: NDArray[np.uint32]) -> NumberColumn:
    return NumberColumn(*numbers_at(segments, seqs)) if segments else NumberColumn(np.empty(0), None)


def _coded(segments: Sequence[Segment], seqs: NDArray[np.uint32], chosen: BitMap) -> ValueColumn:
    codes = np.zeros(len(seqs), np.uint32)
    known: dict[bytes, int] = {}
    for segment in segments:
        dictionary = dictionary_of(segment)
        for number in range(len(dictionary)):
            members = members_of(load_bitmap(segment, number) & chosen)
            if len(members):
                code = known.setdefault(dictionary[number], len(known))
                codes[np.searchsorted(seqs, members)] = code
    return ValueColumn(codes, [value_of_key(key) for key in known])
