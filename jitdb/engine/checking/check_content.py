"""Does an index say of the records what they say themselves? Compared with one that was just built from them.

Two indexes of one spec may be cut into other segments, one may be behind, and hold records that were deleted since;
one may have bitmaps where the other has hashes. So both are brought into one form, and compared record by record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyroaring import BitMap

from jitdb.indexes.kinds.bitmap import dictionary_of, load_bitmap, records_in_sets
from jitdb.indexes.kinds.column import load_numbers, load_offsets
from jitdb.indexes.kinds.prefix import hashes_of_bitmaps, records_present
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_range, members_of, union_of
from jitdb.indexes.segment import BITMAPS, NUMBERS, OFFSETS, PREFIX_MAP, PREFIXES, SPAN, Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.spec import IndexSpec

_SEQ: Final = np.uint64(0xFFFFFFFF)  # of a prefix and its record, as one number


class Place:
    """Which records of an index are compared: all below `count`; or `chosen`: of each compared one its seq, or -1.

    Compared records are numbered from 0, as they are in the index that was built from them alone. The seqs ascend.
    """

    def __init__(self, count: int, chosen: NDArray[np.int64] | None = None) -> None:
        self._count = count
        self._numbers = np.arange(count) if chosen is None else np.flatnonzero(chosen >= 0)
        self._seqs = self._numbers if chosen is None else chosen[self._numbers]
        self._set = bitmap_of(self._seqs.astype(np.uint32))

    def bitmap(self, seqs: BitMap) -> BitMap:
        """The compared ones among these."""
        return bitmap_of(self.numbers(members_of(seqs & self._set).astype(np.int64)).astype(np.uint32))

    def numbers(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of these records, -1 for those that are not compared."""
        if not len(self._seqs):
            return np.full(len(seqs), -1)
        at = np.minimum(self._seqs.searchsorted(seqs), len(self._seqs) - 1)
        return np.where(self._seqs[at] == seqs, self._numbers[at], -1)

    def column(self, values: NDArray[Any]) -> NDArray[Any]:
        """Of a value for each record of the index, those of the compared ones; 0 for those that it does not reach."""
        filled = np.zeros(self._count, values.dtype)
        known = self._seqs < len(values)
        filled[self._numbers[known]] = values[self._seqs[known]]
        return filled

    def beyond(self, end_seq: int) -> BitMap:
        """The compared ones that an index does not reach which knows the records below `end_seq`."""
        return bitmap_of_range(0, self._count) - bitmap_of(self._numbers[self._seqs < end_seq].astype(np.uint32))


def wrong_records(
    spec: IndexSpec, old: Sequence[Segment], new: Sequence[Segment], place: Place, dead: BitMap
) -> BitMap:
    """The records, as `place` numbers them, of which the index `old` says something else than `new`, less `dead`.

    `new` holds just the compared records. Raises IndexDamaged.
    """
    if not old:
        return BitMap()
    dead = dead | place.beyond(old[-1].end_seq)
    if spec.form == "deleted":  # what was deleted stays so; what was deleted since is in `dead`
        return place.bitmap(records_in_sets(old)) - dead - records_in_sets(new)
    if not new:
        return BitMap()
    old, new = _alike(spec, old, new)
    kind = new[0].kind
    if kind == BITMAPS:
        wrong = _bitmaps(old, new, place)
    elif kind == PREFIXES:
        wrong = _prefixes(old, new, place)
    elif kind == PREFIX_MAP:
        wrong = _pairs(old, new, place)
    elif kind == NUMBERS:
        wrong = _numbers(old, new, place)
    elif kind == OFFSETS:
        wrong = _differing(place.column(_joined(map(load_offsets, old))), _joined(map(load_offsets, new)))
    else:
        wrong = place.bitmap(records_in_sets(old)) ^ records_in_sets(new)
    return wrong - dead


def _alike(
    spec: IndexSpec, old: Sequence[Segment], new: Sequence[Segment]
) -> tuple[Sequence[Segment], Sequence[Segment]]:
    """Bitmaps become hashes where the other index has hashes."""
    kinds = {segment.kind for segment in (*old, *new)}
    if len(kinds) == 1:
        return old, new

    def hashed(segments: Sequence[Segment]) -> list[Segment]:
        return [hashes_of_bitmaps(each, spec.elements) if each.kind == BITMAPS else each for each in segments]

    return hashed(old), hashed(new)


def _bitmaps(old: Sequence[Segment], new: Sequence[Segment], place: Place) -> BitMap:
    left, right = _sets(old), _sets(new)
    wrong = BitMap()
    for key in left.keys() | right.keys():
        wrong |= place.bitmap(left.get(key, BitMap())) ^ right.get(key, BitMap())
    return wrong


def _sets(segments: Sequence[Segment]) -> dict[bytes, BitMap]:
    parts: dict[bytes, list[BitMap]] = {}
    for segment in segments:
        dictionary = dictionary_of(segment)
        for number in range(len(dictionary)):
            parts.setdefault(dictionary[number], []).append(load_bitmap(segment, number))
    return {key: union_of(bitmaps) for key, bitmaps in parts.items()}


def _prefixes(old: Sequence[Segment], new: Sequence[Segment], place: Place) -> BitMap:
    values = _differing(place.column(_joined(map(_prefixes_of, old))), _joined(map(_prefixes_of, new)))
    return values | (place.bitmap(union_of(map(records_present, old))) ^ union_of(map(records_present, new)))


def _prefixes_of(segment: Segment) -> NDArray[np.uint32]:
    return np.frombuffer(segment.blob(1), "<u4")


def _pairs(old: Sequence[Segment], new: Sequence[Segment], place: Place) -> BitMap:
    pairs = _pairs_of(old)
    numbers = place.numbers((pairs & _SEQ).astype(np.int64))
    compared = pairs[numbers >= 0] & ~_SEQ | numbers[numbers >= 0].astype(np.uint64)
    return bitmap_of((np.setxor1d(compared, _pairs_of(new)) & _SEQ).astype(np.uint32))


def _joined(parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(list(parts))


def _differing(old: NDArray[Any], new: NDArray[Any]) -> BitMap:
    """Where two columns are not equal; NaN is equal to NaN."""
    return bitmap_of(np.flatnonzero((old != new) & ((old == old) | (new == new))).astype(np.uint32))


def _pairs_of(segments: Sequence[Segment]) -> NDArray[np.uint64]:
    """Prefix and seq of each pair, as one number."""
    parts = []
    for segment in segments:
        start = np.uint64(segment.first_seq - segment.first_seq % SPAN)
        prefixes = np.frombuffer(segment.blob(0), "<u4").astype(np.uint64)
        parts.append(prefixes << np.uint64(32) | (np.frombuffer(segment.blob(1), "<u4").astype(np.uint64) + start))
    return np.concatenate(parts)


def _numbers(old: Sequence[Segment], new: Sequence[Segment], place: Place) -> BitMap:
    pairs = [(load_numbers(segment), segment.count) for segment in old]
    fresh = [(load_numbers(segment), segment.count) for segment in new]
    high = _differing(place.column(_joined(hi for (hi, _), _ in pairs)), _joined(hi for (hi, _), _ in fresh))
    rests = [np.zeros(count, np.int16) if lo is None else lo for (_, lo), count in pairs]
    others = [np.zeros(count, np.int16) if lo is None else lo for (_, lo), count in fresh]
    return high | _differing(place.column(_joined(rests)), _joined(others))
