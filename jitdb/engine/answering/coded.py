"""The values of a field as numbers, a code a record, whichever index has them; how many records have each, and which
are first.

Code 0 is that of records without the field. What there is decides which index serves (engine/plan.py): a dictionary
(coded_column.py), or bitmaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from jitdb.common.values import UNDEFINED, value_key
from jitdb.engine.answering.coded_column import CodedColumn
from jitdb.engine.answering.members import Members
from jitdb.engine.answering.value_order import may_be_first, places_in_order
from jitdb.indexes.kinds.bitmaps import ABSENT_KEY, codes_in, dictionary_of, load_bitmap, records_with
from jitdb.indexes.kinds.roaring import union_of
from jitdb.indexes.numbering import key_at
from jitdb.operators.summaries.summary import Keys, Lazy, Ranked
from jitdb.operators.summaries.value_counts import in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.indexes.segment import Segment
    from jitdb.log.codecs.fields.located import FieldValues

_MANY_TIES: Final = 1 << 12  # values that are put in order without making objects
_TOGETHER: Final = 1 << 12  # values whose keys are taken at a time
_FEW_SETS: Final = 64  # of a segment: to intersect them takes less than to tell the set of each record


class BitmapCodes:
    """Codes from the bitmaps of an index. Guarded by the engine's lock. `owned`: a record may have several values."""

    def __init__(self, segments: Sequence[Segment], owned: bool = False) -> None:
        self._owned = owned
        self._codes: dict[bytes, int] = {ABSENT_KEY: 0}
        self._segments: dict[Segment, NDArray[np.uint32]] = {}  # with the code of each key
        for segment in segments:
            codes = [self._codes.setdefault(key, len(self._codes)) for key in dictionary_of(segment)]
            self._segments[segment] = np.array(codes, np.uint32)
        self._keys = list(self._codes)
        self.keys: Sequence[bytes] = self._keys[1:]

    def __len__(self) -> int:
        return len(self._keys)

    def key(self, code: int) -> bytes:
        return self._keys[code]

    def code_of(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        return np.array([self._codes.get(key, 0) for key in keys], np.int64)

    def counts(self, members: Members) -> NDArray[np.int64]:
        """From the cardinalities that stand beside the bitmaps, where all records are counted. Raises IndexDamaged.

        A record that has several values counts for each of them.
        """
        matches = members.records
        found = np.zeros(len(self), np.int64)
        for segment, codes in self._segments.items():
            dictionary = dictionary_of(segment)
            there = matches.range_cardinality(segment.first_seq, segment.end_seq)
            # Else each record that is not deleted is in just one of them.
            if not self._owned and there == sum(map(int, dictionary.cardinalities)):
                found[codes] += np.array(dictionary.cardinalities, np.int64)
            elif there and (self._owned or len(codes) <= _FEW_SETS):
                sets = (load_bitmap(segment, number) for number in range(len(dictionary)))
                found[codes] += [held.intersection_cardinality(matches) for held in sets]
            elif there:
                ((_, places),) = members.places_in([segment])
                found[codes] += np.bincount(codes_in(segment)[places], minlength=1 + len(codes))[1:]
        if self._owned:
            found[0] = len(matches) - len(self._present() & matches)
        return found

    def having(self, key: bytes, matches: BitMap) -> BitMap:
        """Those of these records that have the value with this key, or none (ABSENT_KEY). Raises IndexDamaged."""
        if self._owned and key == ABSENT_KEY:
            return matches - self._present()
        return records_with(self._segments, key) & matches

    def _present(self) -> BitMap:
        """The records that have a value."""
        return union_of(
            load_bitmap(segment, number)
            for segment in self._segments
            for number, key in enumerate(dictionary_of(segment))
            if key != ABSENT_KEY
        )

    def codes(self, members: Members) -> NDArray[np.uint32]:
        """Raises IndexDamaged."""
        parts = [
            np.append(np.zeros(1, np.uint32), self._segments[segment])[codes_in(segment)[places]]
            for segment, places in members.places_in(self._segments)
        ]
        return np.concatenate([np.empty(0, np.uint32), *parts])

    def mapped(self, members: Members, table: NDArray[Any]) -> NDArray[Any]:
        return table[self.codes(members)]


class ConstantCodes:
    """Codes of a field that all records share, or none has: one that a log's path gives."""

    def __init__(self, value: Any) -> None:
        self._key = value_key(value)
        self.code = int(value is not UNDEFINED)
        self.keys: Sequence[bytes] = [self._key] * self.code

    def __len__(self) -> int:
        return 2

    def key(self, code: int) -> bytes:
        return self._key if code else ABSENT_KEY

    def code_of(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        return np.array([self.code * (key == self._key) for key in keys], np.int64)

    def counts(self, members: Members) -> NDArray[np.int64]:
        counts = np.zeros(2, np.int64)
        counts[self.code] = len(members)
        return counts

    def codes(self, members: Members) -> NDArray[np.uint32]:
        return np.full(len(members), self.code, np.uint32)

    def mapped(self, members: Members, table: NDArray[Any]) -> NDArray[Any]:
        return table[self.codes(members)]

    def mark(self, members: Members, table: NDArray[np.uint32], masks: NDArray[np.uint32]) -> None:
        masks |= table[self.code]


Coded: TypeAlias = CodedColumn | BitmapCodes | ConstantCodes


class CodedPairs(Lazy[tuple[Keys, int]]):
    """The values with these codes of a column, and how many records have each, of the counts of all codes."""

    def __init__(self, column: CodedColumn, codes: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        heap = column.heap  # which stay as they are, whatever comes to the column
        self.column, self.codes, self._heap, self._counts = column, codes, heap, counts
        super().__init__(len(codes), lambda at: ((heap.key(codes[at] - 1),), int(counts[codes[at]])))

    def __iter__(self) -> Iterator[tuple[Keys, int]]:
        """None is kept: who goes through all of them makes something else of each."""
        for begin in range(0, len(self.codes), _TOGETHER):
            codes = self.codes[begin : begin + _TOGETHER]
            some = self._heap.chosen(codes - 1)
            data, ends = some.heap.tobytes(), some.ends.tolist()
            keys = (data[start:end] for start, end in pairwise([0, *ends]))
            yield from (((key,), count) for key, count in zip(keys, self._counts[codes].tolist(), strict=True))


def ranked_values(
    coded: Coded,
    counts: NDArray[np.int64],
    total: int,
    limit: int | None,
    codes: NDArray[np.uint32] | None = None,
) -> Ranked:
    """The most frequent values of a field, by how many of `total` records have each code; of these codes alone, which
    some records have, if any are given.
    """
    present = np.flatnonzero(counts[1:]) + 1 if codes is None else codes.astype(np.int64)
    if isinstance(coded, CodedColumn) and limit is not None:
        pairs: Sequence[tuple[Keys, int]] = first_values(
            lambda at: coded.heap.chosen(at).values(), present - 1, counts[present], limit
        )
    elif isinstance(coded, CodedColumn):
        # By one number: to sort by two takes twenty times as long.
        order = (int(counts.max(initial=0)) - counts[present]) << 32 | coded.places[present].astype(np.int64)
        pairs = CodedPairs(coded, present[order.argsort()], counts)
    else:
        found = zip(present.tolist(), counts[present].tolist(), strict=True)
        pairs = in_order((((coded.key(code),), count) for code, count in found), limit)
    return Ranked(pairs, len(present), total, int(counts[0]))


def first_values(
    values_at: Callable[[NDArray[np.int64]], FieldValues],
    numbers: NDArray[np.int64],
    counts: NDArray[np.int64],
    limit: int,
) -> list[tuple[Keys, int]]:
    """The most frequent of the values with these numbers, of which so many records have each.

    values_at: gives the values of some numbers
    """
    chosen = np.arange(len(numbers))
    if len(numbers) > limit:
        least = np.partition(counts, -limit)[-limit]
        chosen, ties = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
        wanted = limit - len(chosen)
        if len(ties) > wanted:
            ties = ties[may_be_first(values_at(numbers[ties]), wanted)]
        if len(ties) > wanted + _MANY_TIES:  # texts that begin alike
            places = places_in_order(values_at(numbers[ties]))
            ties = ties[np.argpartition(places, wanted - 1)[:wanted]]
        chosen = np.append(chosen, ties)
    values = values_at(numbers[chosen])
    return in_order((((key_at(values, at),), count) for at, count in enumerate(counts[chosen].tolist())), limit)


def ranked_groups(columns: Sequence[Coded], codes: Sequence[NDArray[np.uint32]], limit: int | None) -> Ranked:
    """The first groups of values that records have in several fields; a record that lacks one is in none."""
    records = len(codes[0])
    lacking = np.zeros(records, np.bool_)
    for found in codes:
        lacking |= found == 0
    if lacking.any():
        codes = [found[~lacking] for found in codes]
    numbers, size = numbered(codes, list(map(len, columns)))
    examples, counts = _counted(numbers, size)
    chosen = np.arange(len(counts))
    if limit is not None and len(counts) > limit:
        chosen = np.flatnonzero(counts >= np.partition(counts, -limit)[-limit])
    keys = zip(
        *(map(column.key, found[examples[chosen]].tolist()) for column, found in zip(columns, codes, strict=True)),
        strict=True,
    )
    pairs = zip(keys, counts[chosen].tolist(), strict=True)
    return Ranked(in_order(pairs, limit), len(counts), records, records - len(numbers))


def numbered(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    """A number for each record, the same for the same codes; and below which number all are."""
    numbers, size = np.zeros(len(codes[0]), np.int64), 1
    for found, most in zip(codes, sizes, strict=True):
        if size > (1 << 62) // most:
            numbers, size = np.unique(numbers, return_inverse=True)[1], len(numbers)
        numbers, size = numbers * most + found, size * most
    return numbers, size


def _counted(numbers: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of the distinct numbers below a size: where each stands, somewhere, and how often."""
    if size > max(1 << 16, 4 * len(numbers)):
        _, examples, counts = np.unique(numbers, return_index=True, return_counts=True)
        return examples, counts
    counts, places = np.bincount(numbers, minlength=size), np.empty(size, np.int64)
    places[numbers] = np.arange(len(numbers))
    there = np.flatnonzero(counts)
    return places[there], counts[there]
