"""The bitmap index: every distinct value of a field with the set of records that hold it.

Segment kind BITMAPS: `meta` lists the values' canonical keys in ascending order,

    meta  = count (u32), [key length (u32)] x count, [cardinality (u32)] x count, keys
    blobs = one portable roaring bitmap a key, of seq - span_start

where span_start is first_seq rounded down to a multiple of SPAN, so that segments of one span unite without moving a
bit. Records that lack the field stand under the key of an absent value; deleted records stand nowhere.

Segment kind SET has one blob: a single set (deleted records, a predicate's matches). Its meta is empty, but where it is
of deleted records: see witness.py.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from pyroaring import BitMap

from jitdb.indexes.kinds.roaring import dump, union_of
from jitdb.indexes.segment import BITMAPS, SET, SPAN, Run, Segment, make_segment, small_numbers
from jitdb.indexes.witness import Witness, joined

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def span_start(segment: Segment) -> int:
    """The seq that the segment's bitmaps count from."""
    return segment.first_seq - segment.first_seq % SPAN


def make_bitmaps(keys: Sequence[bytes], bitmaps: Sequence[BitMap], run: Run) -> Segment:
    """A BITMAPS segment of sorted, distinct keys and their (not empty) sets, relative to the span's start."""
    cardinalities = struct.pack(f"<{len(keys)}I", *map(len, bitmaps))
    return make_segment(BITMAPS, run, _meta(keys, cardinalities), [dump(bitmap) for bitmap in bitmaps])


def make_grouped(keys: Sequence[bytes], members: NDArray[np.uint32], begins: NDArray[np.int64], run: Run) -> Segment:
    """The same from groups: the set of keys[i] is members[begins[i] : begins[i + 1]], ascending, repeats allowed."""
    import numpy as np

    from jitdb.indexes.kinds import roaring_kernels as kernels

    sizes, cardinalities = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    kernels.measure_sets(members, begins, sizes, cardinalities)
    body = np.empty(int(sizes.sum()), np.uint8)
    kernels.write_sets(members, begins, sizes, body)
    ends = np.cumsum(sizes).tolist()
    whole = body.tobytes()
    # Copies, not views: thousands of views would make the garbage collector walk through everything there is.
    blobs = [whole[start:stop] for start, stop in zip([0, *ends], ends, strict=False)]
    return make_segment(BITMAPS, run, _meta(keys, cardinalities.astype("<u4").tobytes()), blobs)


def _meta(keys: Sequence[bytes], cardinalities: bytes) -> bytes:
    count = len(keys)
    return struct.pack(f"<{1 + count}I", count, *map(len, keys)) + cardinalities + b"".join(keys)


def make_set(bitmap: BitMap, run: Run, witness: Witness | None = None) -> Segment:
    """A SET segment; the set is relative to the span's start. That of deleted records has a witness."""
    return make_segment(SET, run, b"" if witness is None else witness.encode(), [dump(bitmap)])


class Dictionary:
    """The sorted keys of a BITMAPS segment, read without making a Python object of each."""

    _starts: Sequence[int] | NDArray[np.int64]  # of each key, in the meta
    _ends: Sequence[int] | NDArray[np.int64]

    def __init__(self, meta: bytes) -> None:
        self.count = int.from_bytes(meta[:4], "little")
        self.cardinalities = small_numbers(meta, self.count, 4 + 4 * self.count)
        self._meta = meta
        lengths, keys = small_numbers(meta, self.count, 4), 4 + 8 * self.count
        if isinstance(lengths, tuple):
            ends = list(accumulate(lengths, initial=keys))
            self._starts, self._ends = ends, ends[1:]
        else:
            self._ends = lengths.cumsum(dtype="i8") + keys
            self._starts = self._ends - lengths

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> bytes:
        return self._meta[self._starts[number] : self._ends[number]]

    def find(self, key: bytes) -> int:
        """The number of this key, or -1."""
        number = bisect_left(self, key)
        return number if number < self.count and self[number] == key else -1


@lru_cache(maxsize=256)
def _dictionary(meta: bytes) -> Dictionary:
    return Dictionary(meta)


def dictionary_of(segment: Segment) -> Dictionary:
    """The keys of a BITMAPS segment."""
    return _dictionary(segment.meta)


def load_bitmap(segment: Segment, number: int) -> BitMap:
    """One set of a BITMAPS or SET segment, in absolute seqs. Raises IndexDamaged."""
    bitmap = segment.set(number)
    start = span_start(segment)
    return bitmap.shift(start) if start else bitmap


def records_with(segments: Iterable[Segment], key: bytes) -> BitMap:
    """The records that hold the value, over several BITMAPS segments."""
    found = []
    for segment in segments:
        number = dictionary_of(segment).find(key)
        if number >= 0:
            found.append(load_bitmap(segment, number))
    return union_of(found)


def records_in_sets(segments: Iterable[Segment]) -> BitMap:
    """All members of several SET segments."""
    return union_of(load_bitmap(segment, 0) for segment in segments)


def distinct_keys(segments: Iterable[Segment]) -> set[bytes]:
    """The keys of several BITMAPS segments."""
    keys: set[bytes] = set()
    for segment in segments:
        dictionary = dictionary_of(segment)
        keys.update(dictionary[number] for number in range(len(dictionary)))
    return keys


def merge_bitmaps(segments: Sequence[Segment]) -> Segment:
    """One BITMAPS segment in place of adjacent ones of the same span."""
    union: dict[bytes, list[BitMap]] = {}
    for segment in segments:
        dictionary = dictionary_of(segment)
        for number in range(len(dictionary)):
            part = segment.set(number)
            union.setdefault(dictionary[number], []).append(part)
    keys = sorted(union)
    return make_bitmaps(keys, [union_of(union[key]) for key in keys], run_of(segments))


def merge_sets(segments: Sequence[Segment]) -> Segment:
    """One SET segment in place of adjacent ones of the same span."""
    return make_set(union_of(segment.set(0) for segment in segments), run_of(segments), witness_of(segments))


def witness_of(segments: Sequence[Segment]) -> Witness | None:
    """What the segments of an index of deleted records tell of the log; None where one of them says nothing."""
    return joined([(segment.meta, segment.first_offset) for segment in segments])


def run_of(segments: Sequence[Segment]) -> Run:
    """What adjacent segments cover together."""
    first, last = segments[0], segments[-1]
    return first.first_seq, last.end_seq - first.first_seq, first.first_offset, last.end_offset
