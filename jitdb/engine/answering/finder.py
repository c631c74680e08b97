"""What stores that are built on a log ask of its indexes, as of one moment: values one by one, and columns. No record
is read, and none is looked at in Python.

A question costs what it takes to see that its indexes are fresh and to make a set of what it finds. A finder does that
once, for thousands of look-ups a second: it is a field's index with what a look-up needs beside it. Hashes are sorted,
so that a value is found in the logarithm of their number.

Of columns, those of a field of numbers give each record's, those of a field of few values the number of its value.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pyroaring import BitMap

from jitdb.common.values import value_key, value_of_key
from jitdb.engine.answering.coded import BitmapCodes
from jitdb.engine.answering.members import Members
from jitdb.engine.answering.order import numbers_at
from jitdb.indexes.kinds.bitmaps import ABSENT_KEY, dictionary_of, load_bitmap, records_with
from jitdb.indexes.kinds.offsets import all_offsets
from jitdb.indexes.kinds.prefixes import hash_prefix, hashes_of_bitmaps, prefixes_of
from jitdb.indexes.kinds.roaring import bitmap_of_range, members_of
from jitdb.indexes.segment import BITMAPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.records import Records
    from jitdb.indexes.files.index import Index
    from jitdb.indexes.segment import Segment

_REMEMBERED: Final = 4096  # hashes of values


class Finder:
    """Where the values of one field are, as of one moment. Safe for threads.

    end_seq: how many records it knows; those that were appended later are not in it
    offsets: int64 [end_seq], where each of them begins in the log
    """

    def __init__(self, segments: Sequence[Segment], offsets: Sequence[Segment], deleted: BitMap, end_seq: int) -> None:
        self.end_seq = end_seq
        self.offsets: NDArray[np.int64] = all_offsets(offsets)[:end_seq]
        self._deleted = deleted
        self._segments = segments
        self._is_exact = bool(segments) and segments[-1].kind == BITMAPS
        if not self._is_exact:
            prefixes = _joined([prefixes for prefixes, _ in map(prefixes_of, segments)], np.uint32)
            seqs = _joined([seqs for _, seqs in map(prefixes_of, segments)], np.uint32)
            order = np.lexsort((seqs, prefixes))
            self._prefixes, self._seqs = (memoryview(each[order].data) for each in (prefixes, seqs))

    def candidates(self, value: Any, below: int | None = None) -> Iterator[int]:
        """The seqs of the live records that may hold this value in the field, the newest first; all that do are there.

        below: only records below this seq

        Others may be among them, where the field has many values: look at the record. Raises QueryError for a value
        that no record can hold.
        """
        end = self.end_seq if below is None else min(below, self.end_seq)
        if self._is_exact:
            found = self._exact(value_key(value), end)
        else:
            found = self._hashed(
                _prefix_of_bytes(value) if type(value) is bytes else hash_prefix(value_key(value)), end
            )
        return (seq for seq in found if seq not in self._deleted) if self._deleted else found

    def pairs(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """The hashes of all values, ascending, each with the seq of a record that holds it, deleted ones among them.

        Equal values have equal hashes, and so may others: look at the records.
        """
        if not self._is_exact:
            return np.asarray(self._prefixes), np.asarray(self._seqs)
        found = [prefixes_of(hashes_of_bitmaps(segment, True)) for segment in self._segments]
        prefixes, seqs = (_joined([pair[part] for pair in found], np.uint32) for part in (0, 1))
        order = np.argsort(prefixes, kind="stable")
        return prefixes[order], seqs[order]

    def seqs(self, value: Any) -> BitMap:
        """The same as a set."""
        key = value_key(value)
        if self._is_exact:
            return records_with(self._segments, key) - self._deleted
        return BitMap(self._seqs[self._span(hash_prefix(key))]) - self._deleted

    def _exact(self, key: bytes, end: int) -> Iterator[int]:
        members = records_with(self._segments, key)
        return (members[place] for place in range(members.rank(end - 1) - 1 if end else -1, -1, -1))

    def _hashed(self, prefix: int, end: int) -> Iterator[int]:
        return (seq for seq in reversed(self._seqs[self._span(prefix)]) if seq < end)

    def _span(self, prefix: int) -> slice:
        """Where the seqs with a hash are."""
        begin = bisect_left(self._prefixes, prefix)
        return slice(begin, bisect_right(self._prefixes, prefix, begin))


@lru_cache(_REMEMBERED)
def _prefix_of_bytes(value: bytes) -> int:
    """The hash of a value that is looked up in several indexes, one after the other."""
    return hash_prefix(value_key(value))


def _joined(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


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

    end_seq: how many records it covers, deleted ones too
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
    found = [NumberColumn(*numbers_at(index.segments, seqs)) for index in numbers]
    return Columns(end_seq, records.offsets_of(seqs), found, [_coded(index, start, chosen) for index in values])


def _coded(index: Index, start: int, chosen: BitMap) -> ValueColumn:
    coded = BitmapCodes(index.since(start))
    return ValueColumn(coded.codes(Members(chosen)), [value_of_key(coded.key(code)) for code in range(len(coded))])


def values_in(segments: Sequence[Segment], matches: BitMap) -> list[Any]:
    """The values that records of a set have. Raises IndexDamaged."""
    found: dict[bytes, None] = {}
    for segment in segments:
        for number, key in enumerate(dictionary_of(segment)):
            if key not in found and key != ABSENT_KEY and load_bitmap(segment, number).intersect(matches):
                found[key] = None
    return list(map(value_of_key, found))
