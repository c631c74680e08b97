"""Prefix indexes: 32 bits of every record's value, for fields with many values.

They find candidates, which are then checked against the records. The bits are four of the value's own bytes, which sort
as the values do, or with a prefix_offset of -1 bits of its hash (hashing.py).

A segment has pairs of a prefix and a record, ascending (docs/format-index.md): of kind PREFIXES a pair for each record
that has the field, of PREFIX_MAP any number, for elements of arrays. The pairs are cut into buckets by the upper bits
of their prefixes, a blob each, of some 4,096 pairs. Who asks for a value reads one of them.

A pair takes 32 bits, though prefix and number have 52 in a full span: the buckets are cut into as many cells as the
segment may have records, and the bits that say in which cell a pair is are not written. How many pairs each cell has is
written in unary (Elias, "Efficient storage and retrieval by content and address of static files", 1974; Fano, 1971).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, TypeAlias

import numpy as np
from pyroaring import BitMap

from jitdb.common.sorting import each_once
from jitdb.common.values import ABSENT, ARRAY, MAP
from jitdb.indexes.hashing import hash_key
from jitdb.indexes.kinds.bitmaps import ABSENT_KEY, codes_in, dictionary_of
from jitdb.indexes.kinds.builder import Builder, LocatedBatch, Piece, Pieces, ValueSource
from jitdb.indexes.kinds.content import Content, Places, shifted, shifts
from jitdb.indexes.kinds.roaring import LARGEST_SET, bitmap_of, bitmap_of_mask, dump, members_of
from jitdb.indexes.segment import PREFIX_MAP, PREFIXES, SPAN, Blob, Run, Segment, make_segment
from jitdb.log.codecs.fields.constants import MAX_NESTING
from jitdb.log.codecs.fields.located import FieldValues, known_encoding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pairs: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.uint32]]

_MEMBER: Final = np.uint64(0xFFFFFFFF)  # of a prefix and its record, as one number
_WORD: Final = 32  # bits of a prefix, and of a pair as it is written
_CELLS: Final = 12  # bits: so many cells has a bucket. On disk: never change
_FIRST_PAIRS: Final = 1 << 7  # room for so many pairs of a container at first
_LARGE: Final = 1 << 14  # bytes of a container's key: for a larger one the kernels are faster, loading included


def hash_prefix(key: bytes) -> int:
    if key[0] in (ARRAY, MAP) and len(key) >= _LARGE:
        return int(hash_prefixes(FieldValues.of_keys([key]))[0])
    return hash_key(key) >> 32


def hash_prefixes(values: FieldValues) -> NDArray[np.uint32]:
    """The hash_prefix of located values; 0 where there is none. Raises CodecError for an unknown encoding."""
    from jitdb.indexes.hash_kernels import hash_containers, hash_scalars

    encoding, buffer, kind, _, length, number = values
    count, out = len(kind), np.empty(len(kind), np.uint32)
    start = values.start.astype(np.int64)
    hash_scalars(buffer, kind, start, length, number, count, out)
    if not ((kind == ARRAY) | (kind == MAP)).any():
        return out  # without numba compiling the kernel for containers
    known_encoding(encoding)
    stack, hashes = np.empty((MAX_NESTING, 5), np.int64), np.empty(MAX_NESTING, np.uint64)
    pairs = np.empty((_FIRST_PAIRS, 3), np.uint64)
    done = 0
    while True:
        done = hash_containers(encoding, buffer, kind, start, length, done, count, stack, hashes, pairs, out)
        if done == count:
            return out
        pairs = np.empty((2 * len(pairs), 3), np.uint64)


def key_prefix(key: bytes, prefix_offset: int) -> int:
    """The prefix of the value with this canonical key, as the index stores it.

    >>> from jitdb.common.values import value_key
    >>> hex(key_prefix(value_key("%abcd"), 1))
    '0x61626364'
    """
    if prefix_offset < 0:
        return hash_prefix(key)
    payload = b"" if key[0] in (ARRAY, MAP) else key[1:]
    return int.from_bytes(payload[prefix_offset : prefix_offset + 4].ljust(4, b"\0"), "big")


def prefix_offset_of(segment: Segment) -> int:
    """Which byte of the value the prefixes of a segment begin at; -1 for hashes."""
    return int(struct.unpack("<i", segment.meta)[0])


class _Buckets(NamedTuple):
    """How the pairs of a segment are cut.

    members: bits of a record's number in the segment, and of the number of a cell
    cells:   bits of the number of a cell in its bucket
    """

    members: int
    cells: int

    @classmethod
    def of(cls, count: int) -> _Buckets:
        """Of so many records."""
        members = (count - 1).bit_length()
        return cls(members, min(members, _CELLS))

    def __len__(self) -> int:
        return 1 << self.members - self.cells

    def holding(self, low: int, high: int) -> range:
        """The buckets of the prefixes from `low` up to `high`, both included."""
        shift = _WORD - (self.members - self.cells)
        return range(low >> shift, (high >> shift) + 1)

    def bits_size(self, pairs: int) -> int:
        """Bytes of the bits that say how many pairs each cell of a bucket has."""
        return -(-((1 << self.cells) + pairs) // _WORD) * 4

    def size(self, pairs: int) -> int:
        """Bytes of a bucket."""
        return 4 + self.bits_size(pairs) + 4 * pairs if pairs else 0

    def written(self, pairs: NDArray[np.uint64]) -> list[memoryview]:
        """The buckets of these pairs, which ascend: the prefix in the upper half, the record's number in the lower."""
        shift = np.uint64(2 * _WORD - self.members)
        begins = np.arange(len(self), dtype=np.uint64) << np.uint64(self.cells) << shift if self.members else [0]
        bounds = [*np.searchsorted(pairs, begins).tolist(), len(pairs)]
        ends = [0, *accumulate(self.size(end - begin) for begin, end in pairwise(bounds))]
        buffer = np.empty(ends[-1], np.uint8)  # of all, for many small pieces would leave holes in memory
        for bucket, (begin, end) in enumerate(pairwise(bounds)):
            if begin < end:
                self._write(pairs[begin:end], bucket, buffer[ends[bucket] : ends[bucket + 1]])
        return [buffer[begin:end].data for begin, end in pairwise(ends)]

    def _write(self, pairs: NDArray[np.uint64], bucket: int, room: NDArray[np.uint8]) -> None:
        count, size = len(pairs), self.bits_size(len(pairs))
        bits = np.zeros(8 * size, np.uint8)
        cells = (pairs >> np.uint64(2 * _WORD - self.members)).astype(np.int64) if self.members else 0
        bits[cells - (bucket << self.cells) + np.arange(count)] = 1
        room[:4] = np.frombuffer(count.to_bytes(4, "little"), np.uint8)
        room[4 : 4 + size] = np.packbits(bits, bitorder="little")
        words = (pairs >> np.uint64(_WORD) << np.uint64(self.members)) | (pairs & _MEMBER)
        room[4 + size :] = words.astype("<u4").view(np.uint8)

    def read(self, blob: Blob, bucket: int) -> Pairs | None:
        """The prefixes of a bucket, ascending, and the number of each one's record; None for what is no bucket."""
        if not len(blob):
            return np.empty(0, np.uint32), np.empty(0, np.uint32)
        count = int.from_bytes(blob[:4], "little")
        size = self.bits_size(count)
        if not count or len(blob) != self.size(count):
            return None
        bits = np.unpackbits(np.frombuffer(blob, np.uint8, size, 4), bitorder="little")
        ones = np.flatnonzero(bits)
        if len(ones) != count or int(ones[-1]) - count + 1 >= 1 << self.cells:
            return None
        cells = (ones - np.arange(count) + (bucket << self.cells)).astype(np.uint64)
        words = np.frombuffer(blob, "<u4", count, 4 + size)
        prefixes = (cells << np.uint64(_WORD - self.members)) | (words.astype(np.uint64) >> np.uint64(self.members))
        return prefixes.astype(np.uint32), words & np.uint32((1 << self.members) - 1)


def _pairs_in(segment: Segment, buckets: Iterable[int]) -> Pairs:
    """The pairs of these buckets, the record of each as its number in the segment. Raises IndexDamaged."""
    cut, found = _Buckets.of(segment.count), [(np.empty(0, np.uint32), np.empty(0, np.uint32))]
    for bucket in buckets:
        pairs = cut.read(segment.blob(1 + bucket), bucket)
        if pairs is None:
            raise segment.damage(f"a bucket of prefixes, {bucket}, that is none")
        found.append(pairs)
    return np.concatenate([prefixes for prefixes, _ in found]), np.concatenate([members for _, members in found])


def candidates(segment: Segment, low: int, high: int) -> BitMap:
    """The records (absolute seqs) with a prefix from `low` up to `high`, both included. Raises IndexDamaged."""
    prefixes, members = _pairs_in(segment, _Buckets.of(segment.count).holding(low, high))
    return bitmap_of(members[(prefixes >= low) & (prefixes <= high)] + np.uint32(segment.first_seq))


def prefixes_of(segment: Segment) -> Pairs:
    """The prefixes of a segment, ascending, and the record (absolute seq) of each. Raises IndexDamaged."""
    prefixes, members = _pairs_in(segment, range(len(_Buckets.of(segment.count))))
    return prefixes, members + np.uint32(segment.first_seq)


def records_present(segment: Segment) -> BitMap:
    """The records (absolute seqs) that have the field at all."""
    return shifted(segment.set(0), segment.span_start)


def hashes_of_bitmaps(segment: Segment, as_map: bool) -> Segment:
    """The same run of records as hashed prefixes, made from its bitmaps without reading the log."""
    keys = list(dictionary_of(segment))
    hashes = np.array([hash_prefix(key) for key in keys], np.uint32)
    are_values = np.array([key != ABSENT_KEY for key in keys], np.bool_)
    if as_map:  # a record may be in several sets
        sets = [members_of(segment.set(number)) for number in range(len(keys))]
        members = np.concatenate([np.empty(0, np.uint32), *sets])
        numbers = np.repeat(np.arange(len(sets)), np.fromiter(map(len, sets), np.int64, len(sets)))
    else:
        of_records = codes_in(segment)
        members = np.flatnonzero(of_records).astype(np.uint32)
        numbers = of_records[members] - 1
        members += np.uint32(segment.first_in_span)
    kept = are_values[numbers]
    pairs = hashes[numbers[kept]], members[kept]
    made = (PrefixMap if as_map else Prefixes)(*pairs, segment.first_in_span, segment.count, -1)
    return made.segment(segment.run).changed(last_crc=segment.last_crc, journal=segment.journal)


class _Pairs(Content):
    """Pairs of a prefix and a record, in any order."""

    kind: ClassVar[int]

    def __init__(
        self, prefixes: NDArray[np.uint32], members: NDArray[np.uint32], first: int, count: int, offset: int
    ) -> None:
        self.prefixes, self.members = prefixes, members
        self.first, self.count = first, count
        self._offset = offset

    @staticmethod
    def fits(segment: Segment) -> bool:
        cut, lengths = _Buckets.of(segment.count), segment.table.lengths
        if len(segment.meta) != 4 or len(lengths) != 1 + len(cut) or lengths[0] > LARGEST_SET:
            return False
        return all(not length or (length >= cut.size(1) and length % 4 == 0) for length in lengths[1:])

    @staticmethod
    def is_inside(segment: Segment, number: int, blob: bytes) -> bool:
        if not number:
            return True
        pairs = _Buckets.of(segment.count).read(blob, number - 1)
        return pairs is not None and bool(pairs[1].max(initial=0) < segment.count)

    @staticmethod
    def is_void(segment: Segment) -> bool:
        return not segment.set(0)

    @classmethod
    def of(cls, segment: Segment) -> Self:
        prefixes, members = _pairs_in(segment, range(len(_Buckets.of(segment.count))))
        first = segment.first_in_span
        return cls(prefixes, members + np.uint32(first), first, segment.count, prefix_offset_of(segment))

    def segment(self, run: Run) -> Segment:
        present = np.zeros(self.count, np.bool_)
        present[self.members - np.uint32(self.first)] = True
        pairs = each_once(self.joined(self.first))
        blobs: list[Blob] = [dump(bitmap_of_mask(present, self.first)), *_Buckets.of(self.count).written(pairs)]
        return make_segment(self.kind, run, struct.pack("<i", self._offset), blobs)

    def take(self, places: Places) -> Self:
        numbers = places.numbers(self.members, self.first)
        kept = numbers >= 0
        members = numbers[kept].astype(np.uint32)
        return type(self)(self.prefixes[kept], members, places.first, places.count, self._offset)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        prefixes = np.concatenate([part.prefixes for part in parts])
        members = np.concatenate([part.members + np.uint32(by) for part, by in zip(parts, shifts(parts), strict=True)])
        return cls(prefixes, members, parts[0].first, sum(part.count for part in parts), parts[0]._offset)

    def joined(self, first: int = 0) -> NDArray[np.uint64]:
        """Prefix and record of each pair, as one number; records count from the `first` one on."""
        pairs = self.prefixes.astype(np.uint64)
        pairs <<= np.uint64(_WORD)
        pairs |= self.members - np.uint32(first)
        return pairs

    def differing(self, other: Self) -> BitMap:
        return bitmap_of((np.setxor1d(self.joined(), other.joined()) & _MEMBER).astype(np.uint32))


class Prefixes(_Pairs):
    """Of records that own one value at most."""

    kind = PREFIXES


class PrefixMap(_Pairs):
    """Of records that own any number of values."""

    kind = PREFIX_MAP


class PrefixBuilder(Builder):
    """Four bytes of each value, or of its hash (offset -1)."""

    def __init__(self, values: ValueSource, prefix_offset: int, as_map: bool) -> None:
        self._values = values
        self._offset = prefix_offset
        self._as_map = as_map

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        values, owners = self._values.get(batch)
        return prefix_piece(values, owners, len(batch.records), self._offset)

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        return prefix_segment(pieces, run, self._offset, self._as_map)


def prefix_piece(values: FieldValues, owners: NDArray[np.int32] | None, count: int, offset: int) -> Piece:
    """The prefixes of a run of values, and which are there at all."""
    if offset < 0:
        out = hash_prefixes(values)
    else:
        from jitdb.indexes.hash_kernels import byte_prefixes

        out = np.empty(len(values.kind), np.uint32)
        byte_prefixes(*values.arrays, len(out), offset, out)
    return Piece(count, (out, values.kind != ABSENT), owners)


def prefix_segment(pieces: Pieces, run: Run, offset: int, as_map: bool) -> Segment:
    prefixes, members, present = pieces.joined(0), pieces.members(), pieces.joined(1)
    if not present.all():
        prefixes, members = prefixes[present], members[present]
    return (PrefixMap if as_map else Prefixes)(prefixes, members, run[0] % SPAN, run[1], offset).segment(run)
