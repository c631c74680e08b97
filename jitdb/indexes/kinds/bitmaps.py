"""The bitmap index: every distinct value of a field with the set of records that hold it.

Segment kind BITMAPS (docs/format-index.md): segments of one span unite without moving a bit. Records without the field
are in the set of the absent value, deleted records in none.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from pyroaring import BitMap

from jitdb.common.values import ABSENT, ARRAY, MAP
from jitdb.indexes.kinds.content import Content, Places, shifted, shifts
from jitdb.indexes.kinds.roaring import LARGEST_SET, bitmap_of, dump, members_of, union_of
from jitdb.indexes.segment import BITMAPS, Run, Segment, make_segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_VALUES: Final = 1 << 16  # values with a bitmap each; beyond, a prefix index is smaller and faster
MAX_VALUE_BYTES: Final = 16 << 20  # their bytes in all
MAX_CONTAINER_BYTES: Final = 1 << 16  # of one array or map in the log: a larger one is never decoded for its key
FEW_VALUES: Final = 256  # always worth a bitmap each; and the most arrays and maps, which must be decoded
RECORDS_A_VALUE: Final = 16  # beyond FEW_VALUES: so many records for each value, or it becomes a prefix index

ABSENT_KEY: Final = bytes([ABSENT])

UNKNOWN: Final = 1 << 62  # how many records there will be, in the middle of a scan

_KERNELS: Final = "jitdb.common.kernels"
_MANY_KEYS: Final = 1 << 14  # for so many bitmaps it pays to load kernels, if none are loaded


def _meta(keys: Sequence[bytes], cardinalities: bytes) -> bytes:
    count = len(keys)
    return struct.pack(f"<{1 + count}I", count, *map(len, keys)) + cardinalities + b"".join(keys)


def _numbers(meta: bytes, count: int, start: int) -> memoryview:
    """So many u32 from this byte on."""
    return memoryview(meta)[start : start + 4 * count].cast("I")


class Dictionary:
    """The sorted keys of a BITMAPS segment, without a Python object for each."""

    def __init__(self, meta: bytes) -> None:
        self.count = int.from_bytes(meta[:4], "little")
        self.cardinalities = _numbers(meta, self.count, 4 + 4 * self.count)
        self._meta = meta
        self._bounds = array("Q", accumulate(_numbers(meta, self.count, 4), initial=4 + 8 * self.count))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> bytes:
        return self._meta[self._bounds[number] : self._bounds[number + 1]]

    def __iter__(self) -> Iterator[bytes]:
        return (self._meta[start:stop] for start, stop in pairwise(self._bounds))

    def find(self, key: bytes) -> int:
        """The number of this key, or -1."""
        number = bisect_left(self, key)
        return number if number < self.count and self[number] == key else -1


@lru_cache(maxsize=256)
def _dictionary(meta: bytes) -> Dictionary:
    return Dictionary(meta)


def dictionary_of(segment: Segment) -> Dictionary:
    return _dictionary(segment.meta)


def load_bitmap(segment: Segment, number: int) -> BitMap:
    """One set of a BITMAPS segment, in absolute seqs. Raises IndexDamaged."""
    return shifted(segment.set(number), segment.span_start)


def codes_in(segment: Segment) -> NDArray[np.uint32]:
    """For each record the number of its key, from 1 on, 0 if it is in no set. It is kept. Raises IndexDamaged."""
    return segment.derived(len(segment.table), 4 * segment.count, partial(_codes_in, segment))


def _codes_in(segment: Segment) -> NDArray[np.uint32]:
    import numpy as np

    from jitdb.indexes.kinds.kernels.roaring import number_members

    ends = np.cumsum(np.array(segment.table.lengths, np.int64))
    numbers, keys = np.zeros(segment.count, np.uint32), np.arange(1, 1 + len(ends), dtype=np.uint32)
    wrong = number_members(np.frombuffer(segment.body(), np.uint8), ends, keys, segment.first_in_span, numbers)
    if wrong >= 0:
        raise segment.damage(f"blob {wrong} is no set of the segment's records")
    return numbers


def records_with(segments: Iterable[Segment], key: bytes) -> BitMap:
    """The records that hold the value, over several BITMAPS segments."""
    found = []
    for segment in segments:
        number = dictionary_of(segment).find(key)
        if number >= 0:
            found.append(load_bitmap(segment, number))
    return union_of(found)


def distinct_keys(segments: Iterable[Segment]) -> set[bytes]:
    keys: set[bytes] = set()
    for segment in segments:
        keys.update(dictionary_of(segment))
    return keys


class Bitmaps(Content):
    """A set a value; `keys` ascend."""

    keys: Sequence[bytes]

    def __init__(self, keys: Sequence[bytes], sets: Sequence[BitMap], first: int, count: int) -> None:
        self.keys = keys
        self._sets = sets
        self.first, self.count = first, count

    @staticmethod
    def fits(segment: Segment) -> bool:
        meta, keys = segment.meta, len(segment.table)
        if len(meta) < 4 + 8 * keys or int.from_bytes(meta[:4], "little") != keys:
            return False
        lengths, fit = _numbers(meta, keys, 4), max(segment.table.lengths, default=0) <= LARGEST_SET
        return fit and all(lengths) and sum(lengths) == len(meta) - 4 - 8 * keys

    @staticmethod
    def is_void(segment: Segment) -> bool:
        dictionary = dictionary_of(segment)
        return not len(dictionary) or (len(dictionary) == 1 and dictionary[0] == ABSENT_KEY)

    @classmethod
    def of(cls, segment: Segment) -> Bitmaps:
        keys = list(dictionary_of(segment))
        sets = [segment.set(number) for number in range(len(keys))]
        return Bitmaps(keys, sets, segment.first_in_span, segment.count)

    @property
    def sets(self) -> Sequence[BitMap]:
        return self._sets

    def take(self, places: Places) -> Bitmaps:
        import numpy as np

        sets = [members_of(members) for members in self.sets]
        ends = np.cumsum([0, *map(len, sets)])
        members = np.concatenate([np.empty(0, np.uint32), *sets])
        del sets  # a span has up to a million records: only what is needed is held
        numbers = places.numbers(members, self.first)
        del members
        kept = numbers >= 0
        begins = np.append(0, np.cumsum(kept, dtype=np.int32))[ends].astype(np.int64)
        return GroupedBitmaps(self.keys, numbers[kept].view(np.uint32), begins, places.first, places.count)

    @classmethod
    def concat(cls, parts: Sequence[Bitmaps]) -> Bitmaps:
        if isinstance(parts[0], GroupedBitmaps):
            return GroupedBitmaps.concat(parts)
        union: dict[bytes, list[BitMap]] = {}
        for part, by in zip(parts, shifts(parts), strict=True):
            for key, members in zip(part.keys, part.sets, strict=True):
                union.setdefault(key, []).append(shifted(members, by))
        keys = sorted(union)
        return Bitmaps(keys, [union_of(union[key]) for key in keys], parts[0].first, sum(part.count for part in parts))

    def segment(self, run: Run) -> Segment:
        cardinalities = struct.pack(f"<{len(self.keys)}I", *map(len, self.sets))
        return make_segment(BITMAPS, run, _meta(self.keys, cardinalities), [dump(members) for members in self.sets])

    def differing(self, other: Bitmaps) -> BitMap:
        mine, theirs = (dict(zip(each.keys, each.sets, strict=True)) for each in (self, other))
        nothing = BitMap()
        return union_of(mine.get(key, nothing) ^ theirs.get(key, nothing) for key in mine.keys() | theirs.keys())


class GroupedBitmaps(Bitmaps):
    """The same as arrays, so that any records are moved at once.

    The set of keys[i] is members[begins[i] : begins[i + 1]], ascending, repeats allowed. It may be empty.
    """

    def __init__(
        self, keys: Sequence[bytes], members: NDArray[np.uint32], begins: NDArray[np.int64], first: int, count: int
    ) -> None:
        self.keys = keys
        self.first, self.count = first, count
        self._members, self._begins = members, begins

    @property
    def sets(self) -> Sequence[BitMap]:
        return [bitmap_of(self._members[start:stop]) for start, stop in pairwise(self._begins.tolist())]

    @classmethod
    def concat(cls, parts: Sequence[Bitmaps]) -> Bitmaps:
        import numpy as np

        if len(parts) == 1:  # its members stand in order already
            return parts[0]
        keys = sorted({key for part in parts for key in part.keys})
        place = {key: number for number, key in enumerate(keys)}
        every, owners, counts = [], [], np.zeros(len(keys) + 1, np.int64)
        for part, by in zip(parts, shifts(parts), strict=True):
            assert isinstance(part, GroupedBitmaps)
            ranks = np.array([place[key] for key in part.keys], np.min_scalar_type(len(keys)))
            held = np.diff(part._begins)
            counts[1:][ranks] += held
            owners.append(np.repeat(ranks, held))
            every.append(part._members + np.uint32(by) if by else part._members)
        order = np.argsort(np.concatenate(owners), kind="stable")
        members = np.concatenate(every)[order]
        return cls(keys, members, np.cumsum(counts), parts[0].first, sum(part.count for part in parts))

    def segment(self, run: Run) -> Segment:
        import numpy as np

        kept = np.flatnonzero(np.diff(self._begins))
        keys = [self.keys[number] for number in kept.tolist()]
        begins = np.append(self._begins[kept], self._begins[-1])
        if len(self.keys) < _MANY_KEYS and _KERNELS not in sys.modules:
            bounds = pairwise(begins.tolist())
            sets = [bitmap_of(self._members[start:stop]) for start, stop in bounds]
            return Bitmaps(keys, sets, self.first, self.count).segment(run)
        from jitdb.indexes.kinds.kernels import roaring as kernels

        sizes, cardinalities = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        kernels.measure_sets(self._members, begins, sizes, cardinalities)
        body = np.empty(int(sizes.sum()), np.uint8)
        kernels.write_sets(self._members, begins, sizes, body)
        ends = np.cumsum(sizes).tolist()
        whole = body.tobytes()
        # Copies, not views: thousands of views would start the garbage collector, which walks through all objects.
        blobs = [whole[start:stop] for start, stop in pairwise([0, *ends])]
        return make_segment(BITMAPS, run, _meta(keys, cardinalities.astype("<u4").tobytes()), blobs)


def too_many(values: int, value_bytes: int, records: int) -> bool:
    """Whether a field has too many values for bitmaps. The same data always gives the same answer."""
    return values > max(FEW_VALUES, records // RECORDS_A_VALUE) or values > MAX_VALUES or value_bytes > MAX_VALUE_BYTES


def too_many_keys(keys: Collection[bytes], records: int) -> bool:
    """Whether a scan of so many records would have given hashes to a field with these values."""
    containers = sum(key[0] in (ARRAY, MAP) for key in keys)
    return containers > FEW_VALUES or too_many(len(keys), sum(map(len, keys)), records)
