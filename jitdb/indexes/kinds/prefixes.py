"""Prefix indexes: 32 bits of every record's value, for fields with many values.

They find candidates, which are then checked against the records. Segment kind PREFIXES has a prefix for each record, in
record order; PREFIX_MAP has sorted pairs of a prefix and a record, for sparse fields and elements of arrays
(docs/format-index.md). The bits are four of the value's own bytes, which sort as the values do, or with a prefix_offset
of -1 bits of its hash (hashing.py).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from pyroaring import BitMap

from jitdb.common.values import ABSENT, ARRAY, MAP
from jitdb.indexes.hashing import hash_key
from jitdb.indexes.kinds.bitmaps import ABSENT_KEY, Bitmaps
from jitdb.indexes.kinds.builder import Builder, LocatedBatch, Piece, Pieces, ValueSource
from jitdb.indexes.kinds.content import Content, Places, shifted, shifts
from jitdb.indexes.kinds.roaring import LARGEST_SET, bitmap_of, bitmap_of_mask, dump, members_of
from jitdb.indexes.segment import PREFIX_MAP, PREFIXES, SPAN, Run, Segment, make_segment
from jitdb.log.codecs.fields.constants import MAX_NESTING
from jitdb.log.codecs.fields.located import FieldValues, known_encoding

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MEMBER: Final = np.uint64(0xFFFFFFFF)  # of a prefix and its record, as one number
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


def _numbers(segment: Segment, blob: int) -> NDArray[np.uint32]:
    return np.frombuffer(segment.blob(blob), "<u4")


def candidates(segment: Segment, low: int, high: int) -> BitMap:
    """The records (absolute seqs) with a prefix from `low` up to `high`, both included. Raises IndexDamaged."""
    if segment.kind == PREFIX_MAP:
        prefixes = _numbers(segment, 0)
        first = np.searchsorted(prefixes, np.uint32(low), "left")
        last = np.searchsorted(prefixes, np.uint32(high), "right")
        return bitmap_of(_numbers(segment, 1)[first:last] + np.uint32(segment.span_start))
    prefixes = _numbers(segment, 1)
    hits = prefixes == low if low == high else (prefixes >= low) & (prefixes <= high)
    found = bitmap_of(np.flatnonzero(hits).astype(np.uint32) + np.uint32(segment.first_seq))
    return found & records_present(segment) if low == 0 else found


def prefixes_of(segment: Segment) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The prefixes of a segment, and the record (absolute seq) of each. A record without the field may have a 0."""
    if segment.kind == PREFIX_MAP:
        return _numbers(segment, 0), _numbers(segment, 1) + np.uint32(segment.span_start)
    return _numbers(segment, 1), np.arange(segment.first_seq, segment.end_seq, dtype=np.uint32)


def records_present(segment: Segment) -> BitMap:
    """The records (absolute seqs) that have the field at all."""
    if segment.kind == PREFIX_MAP:
        return bitmap_of(_numbers(segment, 1) + np.uint32(segment.span_start))
    return shifted(segment.set(0), segment.span_start)


def hashes_of_bitmaps(segment: Segment, as_map: bool) -> Segment:
    """The same run of records as hashed prefixes, made from its bitmaps without reading the log."""
    content = Bitmaps.of(segment)
    found = [pair for pair in zip(content.keys, content.sets, strict=True) if pair[0] != ABSENT_KEY]
    sets = [members_of(members) for _, members in found]
    hashes = np.array([hash_prefix(key) for key, _ in found], np.uint32)
    prefixes = np.repeat(hashes, np.fromiter(map(len, sets), np.int64, len(sets)))
    members = np.concatenate([np.empty(0, np.uint32), *sets])
    made = (PrefixMap if as_map else Prefixes)(prefixes, members, content.first, content.count, -1)
    return made.segment(segment.run).changed(last_crc=segment.last_crc, journal=segment.journal)


class _Pairs(Content):
    """Pairs of a prefix and a record, in any order."""

    def __init__(
        self, prefixes: NDArray[np.uint32], members: NDArray[np.uint32], first: int, count: int, offset: int
    ) -> None:
        self.prefixes, self.members = prefixes, members
        self.first, self.count = first, count
        self._offset = offset

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

    def joined(self) -> NDArray[np.uint64]:
        """Prefix and record of each pair, as one number."""
        return (self.prefixes.astype(np.uint64) << np.uint64(32)) | self.members

    def differing(self, other: Self) -> BitMap:
        return bitmap_of((np.setxor1d(self.joined(), other.joined()) & _MEMBER).astype(np.uint32))


class Prefixes(_Pairs):
    """Of records that own one value at most. A segment has a prefix a record, and which records have one."""

    @staticmethod
    def fits(segment: Segment) -> bool:
        lengths = [*segment.table.lengths]
        return len(segment.meta) == 4 and lengths[1:] == [4 * segment.count] and lengths[0] <= LARGEST_SET

    @staticmethod
    def is_void(segment: Segment) -> bool:
        return not segment.set(0)

    @classmethod
    def of(cls, segment: Segment) -> Prefixes:
        first, members = segment.first_in_span, members_of(segment.set(0))
        prefixes = _numbers(segment, 1)[members - np.uint32(first)]
        return cls(prefixes, members, first, segment.count, prefix_offset_of(segment))

    def segment(self, run: Run) -> Segment:
        present, prefixes = np.ones(self.count, np.bool_), self.prefixes.astype("<u4", copy=False)
        if len(prefixes) < self.count or (np.diff(self.members) != 1).any():  # else every record has one, in order
            present, prefixes = np.zeros(self.count, np.bool_), np.zeros(self.count, "<u4")
            places = self.members.astype(np.int64) - self.first
            present[places], prefixes[places] = True, self.prefixes
        blobs = [dump(bitmap_of_mask(present, self.first)), prefixes.tobytes()]
        return make_segment(PREFIXES, run, struct.pack("<i", self._offset), blobs)


class PrefixMap(_Pairs):
    """Of records that own any number of values. A segment has distinct pairs, in order."""

    @staticmethod
    def fits(segment: Segment) -> bool:
        lengths = segment.table.lengths
        return len(segment.meta) == 4 and len(lengths) == 2 and lengths[0] == lengths[1] and lengths[0] % 4 == 0

    @staticmethod
    def is_inside(segment: Segment, number: int, blob: bytes) -> bool:
        if number == 0 or not blob:
            return True
        members, first = np.frombuffer(blob, "<u4"), segment.first_in_span
        return bool(first <= members.min() and members.max() < first + segment.count)

    @staticmethod
    def is_void(segment: Segment) -> bool:
        return not segment.table.lengths[0]

    @classmethod
    def of(cls, segment: Segment) -> PrefixMap:
        prefixes, members = _numbers(segment, 0), _numbers(segment, 1)
        return cls(prefixes, members, segment.first_in_span, segment.count, prefix_offset_of(segment))

    def segment(self, run: Run) -> Segment:
        pairs = np.unique(self.joined())
        blobs = [(pairs >> np.uint64(32)).astype("<u4").tobytes(), (pairs & _MEMBER).astype("<u4").tobytes()]
        return make_segment(PREFIX_MAP, run, struct.pack("<i", self._offset), blobs)


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
