"""The numbers that the values of a dictionary's segment have among all values of its field. Segment kind CODES, in a
file beside the dictionary's (files/codes_file.py, docs/format-index.md).

Values of a field are numbered from 1 in the order in which they first occur in the log. So those that no earlier
segment has are numbered one after the other, and only the numbers of the others are written; and of the keys only those
of new values: no key stands there twice.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.zlib import crc32
from jitdb.indexes.kinds.columns import count_of
from jitdb.indexes.kinds.dictionary import KeyHeap
from jitdb.indexes.kinds.kernels.dictionary import are_keys
from jitdb.indexes.segment import CODES, Blob, Segment, make_segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

_META: Final = struct.Struct("<IIII")  # what tells the dictionary, numbers before, values, new ones among them
_FRESH, _OTHERS, _ENDS, _HEAP = range(4)  # blobs


def print_of(segment: Segment) -> int:
    """What tells a DICTIONARY segment from one with other values, or codes: the CRC-32 of the CRCs of its blobs."""
    return crc32(segment.table.raw, crc32(segment.meta))


def codes_segment(segment: Segment, before: int, numbers: NDArray[np.uint32], keys: KeyHeap) -> Segment:
    """Of a DICTIONARY segment whose values have these numbers, of which so many are of earlier segments.

    keys: those of its new values
    """
    fresh = numbers > before
    blobs: list[Blob] = [
        np.packbits(fresh, bitorder="little").tobytes(),
        numbers[~fresh].astype("<u4").tobytes(),
        keys.ends.astype("<u4").tobytes(),
        keys.heap.tobytes(),
    ]
    meta = _META.pack(print_of(segment), before, len(numbers), len(keys.ends))
    return make_segment(CODES, segment.run, meta, blobs)


def is_of(made: Segment, segment: Segment, before: int) -> bool:
    """Whether a CODES segment is of this DICTIONARY segment, with so many numbers before."""
    print_, numbers, values, _ = _META.unpack(made.meta)
    return (made.run, print_, numbers, values) == (segment.run, print_of(segment), before, count_of(segment))


def fresh_in(made: Segment) -> int:
    """How many values of a CODES segment no earlier one has."""
    return int(_META.unpack(made.meta)[3])


def numbers_in(made: Segment) -> NDArray[np.uint32]:
    """The number of each record's value, by its code in the dictionary's segment: 0 stays 0. Raises IndexDamaged."""
    _, _, values, _ = _META.unpack(made.meta)
    return made.decoded(_FRESH, 4 * values + 4, partial(_numbers, made))


def _numbers(made: Segment, blob: Blob) -> NDArray[np.uint32]:
    _, before, values, count = _META.unpack(made.meta)
    fresh = np.unpackbits(np.frombuffer(blob, np.uint8), count=values, bitorder="little").view(np.bool_)
    numbers = np.zeros(values + 1, np.uint32)
    numbers[1:][fresh] = np.arange(before + 1, before + 1 + count, dtype=np.uint32)
    numbers[1:][~fresh] = np.frombuffer(made.blob(_OTHERS, keep=False), "<u4")
    return numbers


def keys_in(made: Segment) -> KeyHeap:
    """The keys of its new values. Raises IndexDamaged."""
    ends = np.frombuffer(made.blob(_ENDS, keep=False), "<u4").astype(np.int64)
    keys = KeyHeap(np.frombuffer(made.blob(_HEAP, keep=False), np.uint8), ends)
    if not are_keys(*keys):
        raise made.damage("a value has no key")
    return keys


class Codes:
    """How such a segment is looked at. It is no content of an index: an index of values is not made of it."""

    @staticmethod
    def fits(made: Segment) -> bool:
        if len(made.meta) != _META.size or len(made.table) != 4:
            return False
        _, before, values, fresh = _META.unpack(made.meta)
        lengths = made.table.lengths
        known = [-(-values // 8), 4 * (values - fresh), 4 * fresh]
        return fresh <= values and before + fresh < 1 << 32 and [*lengths[:_HEAP]] == known

    @staticmethod
    def is_inside(made: Segment, number: int, blob: bytes) -> bool:
        _, before, values, fresh = _META.unpack(made.meta)
        if number == _FRESH:
            bits = np.unpackbits(np.frombuffer(blob, np.uint8), bitorder="little")
            return bool(int(bits[:values].sum()) == fresh)
        if number == _OTHERS:
            numbers = np.frombuffer(blob, "<u4")
            return not len(numbers) or bool(numbers.min() > 0 and numbers.max() <= before)
        if number == _ENDS:
            ends = np.frombuffer(blob, "<u4").astype(np.int64)
            ascend = bool((np.diff(ends, prepend=0) > 0).all())
            return bool(ascend and (int(ends[-1]) if fresh else 0) == made.table.lengths[_HEAP])
        return True
