"""The values of a field as numbers, a code a record, whichever index has them; how many records have each; which are
first, and in which order values of any kind come.

Code 0 is that of records without the field. What there is decides which index serves (engine/plan.py). A column that
is asked again after the log has grown numbers the values of its new segments alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from pyroaring import BitMap

from jitdb.common.times import AUTO, time_of
from jitdb.common.values import (
    ABSENT,
    BYTES,
    EXTENSION,
    FALSE,
    MAP,
    NULL,
    NUMBER,
    STRING,
    TRUE,
    UNDEFINED,
    number_of,
    split_number,
    value_key,
    value_of_key,
)
from jitdb.engine.answering.members import Members, places_in
from jitdb.indexes.kinds.bitmaps import ABSENT_KEY, dictionary_of, load_bitmap, numbers_of, records_with
from jitdb.indexes.kinds.casting import smallest_numbers, with_numbers
from jitdb.indexes.kinds.dictionary import (
    chosen,
    code_counts,
    codes_of,
    count_runs,
    dictionary_values,
    mark,
    values_of_keys,
)
from jitdb.indexes.kinds.roaring import union_of
from jitdb.indexes.numbering import NumberingTable, key_at
from jitdb.operators.summaries.summary import Keys, Lazy, Ranked
from jitdb.operators.summaries.value_counts import in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.files.index import Index
    from jitdb.indexes.segment import Segment
    from jitdb.log.codecs.fields.located import FieldValues

_HEAD: Final = 7  # bytes of a value by which most are told apart without making objects
_MANY_TIES: Final = 1 << 12  # values that are put in order without making objects


class _Part(NamedTuple):
    segment: Segment
    codes: NDArray[np.uint32]  # of the column, by the segment's code


class CodedColumn:
    """The values of a field and a code a record. Guarded by the engine's lock."""

    def __init__(self) -> None:
        self._table = NumberingTable()
        self._parts: list[_Part] = []
        self._values: FieldValues | None = None
        self._keys: Sequence[bytes] | None = None
        self._ranks: NDArray[np.float64] | None = None
        self._places: NDArray[np.int64] | None = None
        self._mapped: tuple[_Part | None, Any, NDArray[Any]] = (None, None, np.empty(0))  # by the segment used last

    def follow(self, segments: Sequence[Segment]) -> None:
        """Take in new segments, and drop those that are gone. Raises IndexDamaged."""
        known = {id(part.segment): part for part in self._parts}
        self._parts = [known.get(id(segment)) or self.numbered(segment) for segment in segments]

    def numbered(self, segment: Segment) -> _Part:
        return _Part(segment, np.append(np.zeros(1, np.uint32), self.number(dictionary_values(segment))))

    def number(self, values: FieldValues) -> NDArray[np.uint32]:
        """The codes of these values, new ones where there is none yet."""
        numbers = self._table.number(values, np.zeros(len(values.kind), np.uint8))
        assert numbers is not None  # without limits, it is never full
        self._values = self._keys = self._ranks = self._places = None
        return numbers

    @property
    def values(self) -> FieldValues:
        """All values (encoding KEYS): that of code n stands at n - 1. Some may be of no record any more."""
        if self._values is None:
            self._values = self._table.distinct_values()
        return self._values

    @property
    def keys(self) -> Sequence[bytes]:
        """The keys of all values."""
        if self._keys is None:
            self._keys = [key_at(self.values, number) for number in range(len(self) - 1)]
        return self._keys

    @property
    def ranks(self) -> NDArray[np.float64]:
        """For each code, where its value stands in the order of values; NaN for one without a place.

        They are other numbers once there are more values.
        """
        if self._ranks is None:
            self._ranks = np.append(np.full(1, np.nan), ranks_of(self.values))
        return self._ranks

    @property
    def places(self) -> NDArray[np.int64]:
        """For each code, where its value stands in the order of in_order(); other numbers once there are more."""
        if self._places is None:
            self._places = np.append(-1, places_in_order(self.values))
        return self._places

    def __len__(self) -> int:
        """How many codes there are, 0 among them."""
        return self._table.filled

    def key(self, code: int) -> bytes:
        """The key of a code's value (jitdb.common.values)."""
        return key_at(self.values, code - 1) if code else ABSENT_KEY

    def code_of(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        """The code of the value with each key, 0 where there is none."""
        return self._table.find(values_of_keys(keys)).astype(np.int64)

    def counts(self, members: Members) -> NDArray[np.int64]:
        """How many of these records have each code."""
        counts = np.zeros(len(self), np.int64)
        for part in self._parts:
            within = members.within(part.segment)
            if within is not None:  # no two codes of a segment are one of the column
                counts[part.codes] += code_counts(part.segment, *within)
        return counts

    def codes(self, matches: BitMap) -> NDArray[np.uint32]:
        """The codes of these records, ascending by seq."""
        return self.mapped(matches, None)

    def mapped(self, matches: BitMap, table: NDArray[Any] | None) -> NDArray[Any]:
        """What a table has at the code of each of these records, ascending by seq; None: the codes."""
        found = []
        for part, codes in self._chosen(matches):
            if self._mapped[0] is not part or self._mapped[1] is not table:
                self._mapped = part, table, part.codes if table is None else table[part.codes]
            found.append(self._mapped[2][codes])
        return found[0] if len(found) == 1 else np.concatenate([np.empty(0, np.uint32), *found])

    def mark(self, matches: BitMap, table: NDArray[np.uint32], masks: NDArray[np.uint32]) -> None:
        """Set the bits that the table has at the code of each of these records in its mask."""
        parts, done = {id(part.segment): part for part in self._parts}, 0
        for segment, places in places_in([part.segment for part in self._parts], matches):
            count = places.stop - places.start if isinstance(places, slice) else len(places)
            mark(segment, places, table[parts[id(segment)].codes], masks[done : done + count])
            done += count

    def count_runs(
        self,
        members: Members,
        ends: NDArray[np.int64],
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        """Add to counts[row, column] how many of these records are in runs of seqs: see dictionary.count_runs."""
        for part in self._parts:
            within = members.within(part.segment)
            if within is not None:
                count_runs(part.segment, within, ends, rows, columns[part.codes], counts)

    def _chosen(self, matches: BitMap) -> Iterator[tuple[_Part, NDArray[Any]]]:
        """For each segment that has some of the records: their codes in it."""
        parts = {id(part.segment): part for part in self._parts}
        for segment, places in places_in([part.segment for part in self._parts], matches):
            yield parts[id(segment)], codes_of(segment)[places]


class CodedColumns:
    """The coded columns of a database's indexes, each kept as long as its index."""

    def __init__(self) -> None:
        self._columns: WeakKeyDictionary[Index, CodedColumn] = WeakKeyDictionary()

    def get(self, index: Index) -> CodedColumn:
        """The column of an index as it is now. Raises IndexDamaged."""
        column = self._columns.setdefault(index, CodedColumn())
        column.follow(index.segments)
        return column

    def has(self, index: Index) -> bool:
        """Whether somebody needed the column of this index."""
        return index in self._columns


class BitmapCodes:
    """Codes from the bitmaps of an index. Guarded by the engine's lock. `owned`: a record may have several values."""

    def __init__(self, segments: Sequence[Segment], owned: bool = False) -> None:
        self._segments, self._owned = segments, owned
        self._codes: dict[bytes, int] = {ABSENT_KEY: 0}
        for segment in segments:
            for key in dictionary_of(segment):
                self._codes.setdefault(key, len(self._codes))
        self._keys = list(self._codes)
        self.keys: Sequence[bytes] = self._keys[1:]
        self._latest: tuple[Segment, NDArray[np.uint32]] | None = None

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
        for segment in self._segments:
            dictionary = dictionary_of(segment)
            codes = [self._codes[key] for key in dictionary]
            there = matches.range_cardinality(segment.first_seq, segment.end_seq)
            # Else each record that is not deleted is in just one of them.
            if not self._owned and there == sum(map(int, dictionary.cardinalities)):
                found[codes] += np.array(dictionary.cardinalities, np.int64)
            elif there:
                sets = (load_bitmap(segment, number) for number in range(len(dictionary)))
                found[codes] += [held.intersection_cardinality(matches) for held in sets]
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

    def codes(self, matches: BitMap) -> NDArray[np.uint32]:
        """Raises IndexDamaged."""
        parts = [self._codes_of(segment)[places] for segment, places in places_in(self._segments, matches)]
        return np.concatenate([np.empty(0, np.uint32), *parts])

    def mapped(self, matches: BitMap, table: NDArray[Any]) -> NDArray[Any]:
        return table[self.codes(matches)]

    def _codes_of(self, segment: Segment) -> NDArray[np.uint32]:
        """Those of one segment, which are kept until another one is asked for."""
        if self._latest is None or self._latest[0] is not segment:
            given = np.array([self._codes[key] for key in dictionary_of(segment)], np.uint32)
            self._latest = segment, numbers_of(segment, given)
        return self._latest[1]


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

    def codes(self, matches: BitMap) -> NDArray[np.uint32]:
        return np.full(len(matches), self.code, np.uint32)

    def mapped(self, matches: BitMap, table: NDArray[Any]) -> NDArray[Any]:
        return table[self.codes(matches)]

    def mark(self, matches: BitMap, table: NDArray[np.uint32], masks: NDArray[np.uint32]) -> None:
        masks |= table[self.code]


Coded: TypeAlias = CodedColumn | BitmapCodes | ConstantCodes


class CodedPairs(Lazy[tuple[Keys, int]]):
    """The values with these codes of a column, and how many records have each, of the counts of all codes."""

    def __init__(self, column: CodedColumn, codes: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        values = column.values  # which stay as they are, whatever comes to the column
        self.column, self.codes = column, codes
        super().__init__(len(codes), lambda at: ((key_at(values, codes[at] - 1),), int(counts[codes[at]])))


def ranked_values(coded: Coded, counts: NDArray[np.int64], total: int, limit: int | None) -> Ranked:
    """The most frequent values of a field, by how many of `total` records have each code."""
    present = np.flatnonzero(counts[1:]) + 1
    if isinstance(coded, CodedColumn) and limit is not None:
        pairs: Sequence[tuple[Keys, int]] = first_values(coded.values, present - 1, counts[present], limit)
    elif isinstance(coded, CodedColumn):
        pairs = CodedPairs(coded, present[np.lexsort((coded.places[present], -counts[present]))], counts)
    else:
        found = zip(present.tolist(), counts[present].tolist(), strict=True)
        pairs = in_order((((coded.key(code),), count) for code, count in found), limit)
    return Ranked(pairs, len(present), total, int(counts[0]))


def first_values(
    values: FieldValues, numbers: NDArray[np.int64], counts: NDArray[np.int64], limit: int
) -> list[tuple[Keys, int]]:
    """The most frequent of these values, by number, of which so many records have each."""
    kept = np.arange(len(numbers))
    if len(numbers) > limit:
        least = np.partition(counts, -limit)[-limit]
        kept, ties = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
        wanted = limit - len(kept)
        if len(ties) > wanted:
            ties = ties[may_be_first(values, numbers[ties], wanted)]
        if len(ties) > wanted + _MANY_TIES:  # texts that begin alike
            places = places_in_order(chosen(values, numbers[ties]))
            ties = ties[np.argpartition(places, wanted - 1)[:wanted]]
        kept = np.append(kept, ties)
    found = zip(numbers[kept].tolist(), counts[kept].tolist(), strict=True)
    return in_order((((key_at(values, number),), count) for number, count in found), limit)


def places_in_order(values: FieldValues) -> NDArray[np.int64]:
    """Where each of these values (encoding KEYS), all different, stands among them in the order of in_order()."""
    is_number = values.kind == NUMBER
    is_nan = is_number & (values.number != values.number)
    hi = np.where(is_nan, np.inf, np.where(is_number, values.number, 0.0))
    lo = np.where(is_nan, 1, np.where(is_number, values.length, 0))
    texts = np.flatnonzero(~is_number)
    places = np.zeros(len(hi), np.int64)
    places[texts] = text_places(values.buffer, values.start[texts], values.length[texts])
    order = np.lexsort((places, lo, hi, values.kind))
    places[order] = np.arange(len(order))
    return places


def may_be_first(values: FieldValues, numbers: NDArray[np.int64], wanted: int) -> NDArray[np.bool_]:
    """Which of these values, by number, may be among the first `wanted` of them: those that are, and few others."""
    kinds = values.kind[numbers].astype(np.uint64)
    heads = np.zeros(len(numbers), np.uint64)
    is_number = values.kind[numbers] == NUMBER
    bits = values.number[numbers].astype("<f8").view(np.uint64)
    bits = np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63)) >> np.uint64(8)
    starts, lengths = (column[numbers].astype(np.int64) for column in (values.start, values.length))
    for place in range(_HEAD):
        inside = (lengths > place) & ~is_number
        byte = values.buffer[np.where(inside, starts + place, 0)].astype(np.uint64)
        heads = (heads << np.uint64(8)) | np.where(inside, byte, 0).astype(np.uint64)
    heads = (kinds << np.uint64(56)) | np.where(is_number, bits, heads)
    return np.asarray(heads <= np.partition(heads, wanted - 1)[wanted - 1])


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


# --- the order of values of any kind ---------------------------------------------------------------------------------
#
#   numbers < times as text < other text < false < true < bytes < arrays, maps and extensions
#
# Text that spells a number is that number. Times are those of jitdb/common/times.py, by the moment that they say
# (timestamps of msgpack among them); text goes by code points, which is the order of its UTF-8; arrays, maps and
# extensions are all alike. null, NaN and a missing field have no place: sorting puts them last.

OF_NUMBERS, OF_TIMES, _OF_TEXT, _OF_FALSE, _OF_TRUE, _OF_BYTES, _OF_OTHERS, _NOWHERE = range(8)
_GROUPS: Final = np.full(256, _OF_OTHERS, np.uint8)
for _kind, _group in (
    (NUMBER, OF_NUMBERS), (STRING, _OF_TEXT), (FALSE, _OF_FALSE), (TRUE, _OF_TRUE), (BYTES, _OF_BYTES),
    (NULL, _NOWHERE), (ABSENT, _NOWHERE),
):  # fmt: skip
    _GROUPS[_kind] = _group
_WORD: Final = 8  # bytes of text that are compared at once


def place_of_key(key: bytes) -> tuple[Any, ...] | None:
    """What orders the value with this key (value_key): the lesser comes first, and equal ones tie. None: no place."""
    group = int(_GROUPS[key[0]])
    value: Any = value_of_key(key) if key[0] in (NUMBER, STRING, EXTENSION, MAP) else None
    number = number_of(value)
    if number is not None:
        return (OF_NUMBERS, *split_number(number)) if number == number else None
    if group == _NOWHERE:
        return None
    time = time_of(value)
    if time is not None:
        return (OF_TIMES, *split_number(time))
    return (group, key[1:]) if group in (_OF_TEXT, _OF_BYTES) else (group,)


def ranks_of(values: FieldValues) -> NDArray[np.float64]:
    """A number for each value (encoding KEYS), which are in the order of the values; NaN for one without a place."""
    values = with_numbers(values)
    count = len(values.kind)
    group, hi, lo = _GROUPS[values.kind], np.zeros(count), np.zeros(count, np.int16)
    numbers = group == OF_NUMBERS
    hi[numbers], lo[numbers] = values.number[numbers], values.length[numbers]
    group[numbers & np.isnan(hi)] = _NOWHERE
    _find_times(values, group, hi, lo)
    for texts in (group == _OF_TEXT, group == _OF_BYTES):
        hi[texts] = text_places(values.buffer, values.start[texts], values.length[texts])
    ranks = np.full(count, np.nan)
    order = np.lexsort((lo, hi, group))
    order = order[: count - np.count_nonzero(group == _NOWHERE)]
    if len(order):
        ranks[order] = np.cumsum(_differs(group[order], hi[order], lo[order]))
    return ranks


def _find_times(
    values: FieldValues, group: NDArray[np.uint8], hi: NDArray[np.float64], lo: NDArray[np.int16]
) -> None:  # fmt: skip
    may_be = (values.kind == STRING) | (values.kind == EXTENSION) | (values.kind == MAP)
    if not may_be.any():
        return
    kind = np.where(may_be, values.kind, np.uint8(ABSENT))
    when, rest = np.empty(len(kind)), np.empty(len(kind), np.int16)
    smallest_numbers([values._replace(kind=kind)], when, rest, AUTO)
    times = ~np.isnan(when)
    group[times], hi[times], lo[times] = OF_TIMES, when[times], rest[times]


def text_places(
    buffer: NDArray[np.uint8], start: NDArray[np.int32], length: NDArray[np.int32]
) -> NDArray[np.int64]:  # fmt: skip
    """How many of these texts are less than each: eight bytes are compared at once, of those alike so far the next.

    >>> text = np.frombuffer(b"banana", np.uint8)
    >>> text_places(text, np.array([0, 1, 3, 2]), np.array([6, 3, 3, 1])).tolist()  # banana, ana, ana, n
    [2, 0, 0, 3]
    """
    padded = np.concatenate([buffer, np.zeros(_WORD, np.uint8)])
    words = np.ndarray((len(buffer) + 1,), ">u8", padded, strides=(1,))  # those that begin at each byte
    places = np.zeros(len(start), np.int64)
    alike, at = np.arange(len(start)), 0
    while len(alike):
        left = np.clip(length[alike] - at, 0, _WORD)
        beyond = (8 * (_WORD - left)).astype(np.uint64)  # bits that are of the next text
        begins = np.minimum(start[alike].astype(np.int64) + at, len(buffer))
        word = words[begins].astype(np.uint64) >> beyond << beyond
        order = np.lexsort((left, word, places[alike]))
        alike, left, word = alike[order], left[order], word[order]
        before = places[alike]
        numbers = np.arange(len(alike))
        of_group = np.maximum.accumulate(np.where(_differs(before), numbers, 0))
        of_run = np.maximum.accumulate(np.where(_differs(before, word, left), numbers, 0))
        places[alike] = before + (of_run - of_group)
        single = np.bincount(of_run, minlength=len(alike))[of_run] == 1
        alike = alike[~single & (left == _WORD)]
        at += _WORD
    return places


def _differs(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each row is another than the one before it, in any of the columns; the first is."""
    changed = np.ones(len(columns[0]), np.bool_)
    changed[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return changed
