"""Prefix indexes: 32 bits of every record's value, for fields with many values.

They name candidates; whoever asks checks these against the records. Two layouts:

Segment kind PREFIXES, a u32 per record in record order:
    blobs = present (portable roaring bitmap of seq - span_start: the records that have the field),
            prefixes (u32 x count; 0 where the field is absent)

Segment kind PREFIX_MAP, the same inverted, for sparse fields and array elements:
    blobs = prefixes (u32, ascending), members (u32, seq - span_start, ascending within a prefix)

`meta` is one i32: the prefix_offset of prefixes made of the value's own bytes (big-endian, so that they sort as the
bytes do), or -1 where they are hashes (hashing.py).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pyroaring import BitMap

from jitdb.common.values import ABSENT, ARRAY, MAP
from jitdb.indexes.hash_arrays import hash_prefix
from jitdb.indexes.kinds.bitmap import Dictionary, dictionary_of, run_of, span_start
from jitdb.indexes.kinds.roaring import bitmap_of, dump, members_of, union_of
from jitdb.indexes.segment import PREFIX_MAP, PREFIXES, SPAN, Run, Segment, make_segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ABSENT_KEY = bytes([ABSENT])


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


def make_prefixes(present: BitMap, prefixes: NDArray[np.uint32], prefix_offset: int, run: Run) -> Segment:
    """A PREFIXES segment; `present` is relative to the span's start."""
    return make_segment(
        PREFIXES, run, struct.pack("<i", prefix_offset), [dump(present), prefixes.astype("<u4").tobytes()]
    )


def make_prefix_map(prefixes: NDArray[np.uint32], members: NDArray[np.uint32], prefix_offset: int, run: Run) -> Segment:
    """A PREFIX_MAP segment of pairs in any order; members are relative to the span's start."""
    pairs = np.unique((prefixes.astype(np.uint64) << np.uint64(32)) | members)
    blobs = [(pairs >> np.uint64(32)).astype("<u4").tobytes(), (pairs & np.uint64(0xFFFFFFFF)).astype("<u4").tobytes()]
    return make_segment(PREFIX_MAP, run, struct.pack("<i", prefix_offset), blobs)


def prefix_offset_of(segment: Segment) -> int:
    """Where the prefixes of a segment begin in the value; -1 for hashes."""
    return int(struct.unpack("<i", segment.meta)[0])


def _numbers(segment: Segment, blob: int) -> NDArray[np.uint32]:
    return np.frombuffer(segment.blob(blob), "<u4")


def load_prefixes(segment: Segment) -> tuple[NDArray[np.bool_], NDArray[np.uint32]]:
    """Of a PREFIXES segment, record by record: whether the field is there, and its prefix. Raises IndexDamaged."""
    present = np.zeros(segment.count, np.bool_)
    present[members_of(segment.set(0)) - np.uint32(segment.first_seq % SPAN)] = True
    return present, _numbers(segment, 1)


def candidates(segment: Segment, low: int, high: int) -> BitMap:
    """The records (absolute seqs) with a prefix from `low` up to `high`, both included. Raises IndexDamaged."""
    start = span_start(segment)
    if segment.kind == PREFIX_MAP:
        prefixes = _numbers(segment, 0)
        first = np.searchsorted(prefixes, np.uint32(low), "left")
        last = np.searchsorted(prefixes, np.uint32(high), "right")
        return bitmap_of(_numbers(segment, 1)[first:last] + np.uint32(start))
    prefixes = _numbers(segment, 1)
    hits = prefixes == low if low == high else (prefixes >= low) & (prefixes <= high)
    found = bitmap_of(np.flatnonzero(hits).astype(np.uint32) + np.uint32(segment.first_seq))
    return found & records_present(segment) if low == 0 else found


def records_present(segment: Segment) -> BitMap:
    """The records (absolute seqs) that have the field at all."""
    start = span_start(segment)
    if segment.kind == PREFIX_MAP:
        return bitmap_of(_numbers(segment, 1) + np.uint32(start))
    return segment.set(0).shift(start)


def merge_prefixes(segments: Sequence[Segment]) -> Segment:
    """One PREFIXES segment in place of adjacent ones of the same span."""
    present = union_of(segment.set(0) for segment in segments)
    prefixes = np.concatenate([_numbers(segment, 1) for segment in segments])
    return make_prefixes(present, prefixes, prefix_offset_of(segments[0]), run_of(segments))


def merge_prefix_maps(segments: Sequence[Segment]) -> Segment:
    """One PREFIX_MAP segment in place of adjacent ones of the same span."""
    prefixes = np.concatenate([_numbers(segment, 0) for segment in segments])
    members = np.concatenate([_numbers(segment, 1) for segment in segments])
    return make_prefix_map(prefixes, members, prefix_offset_of(segments[0]), run_of(segments))


def hashes_of_bitmaps(segment: Segment, as_map: bool) -> Segment:
    """The same run of records as hashed prefixes, made from its bitmaps without reading the log."""
    dictionary: Dictionary = dictionary_of(segment)
    lead = segment.first_seq - span_start(segment)
    prefixes = np.zeros(segment.count, np.uint32)
    present = BitMap()
    pairs: list[tuple[int, NDArray[np.uint32]]] = []
    for number in range(len(dictionary)):
        key = dictionary[number]
        if key == _ABSENT_KEY:
            continue
        bitmap = segment.set(number)
        members = members_of(bitmap)
        prefix = hash_prefix(key)
        if as_map:
            pairs.append((prefix, members))
        else:
            prefixes[members - np.uint32(lead)] = prefix
            present |= bitmap
    noted: Any = {"last_crc": segment.last_crc, "journal": segment.journal}
    if not as_map:
        return make_prefixes(present, prefixes, -1, segment.run).changed(**noted)
    empty = np.empty(0, np.uint32)
    all_prefixes = np.concatenate([empty, *(np.full(len(m), prefix, np.uint32) for prefix, m in pairs)])
    all_members = np.concatenate([empty, *(members for _, members in pairs)])
    return make_prefix_map(all_prefixes, all_members, -1, segment.run).changed(**noted)
