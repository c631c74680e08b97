"""Kernels of a vocabulary (vocabulary.py): keys that lie one behind the other are found among others.

Both are sorted by a hash, so one walk over both finds them. Nothing is looked up at random but the keys of one hash.
Hashes depend on a secret, as those of a numbering table do (numbering_kernels.py), so that nobody chooses keys which
share one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT
from jitdb.indexes.numbering_kernels import same_long_bytes, short_word, slot_hash

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8, U32, U64

_32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def hash_keys(secret: U64, heap: U8, ends: I64, first: int, out: U64) -> None:
    """A hash of each key from the `first` one on, in the upper half, and the key's number, in the lower."""
    begin = np.int64(0) if first == 0 else np.int64(ends[first - 1])
    for i in range(first, ends.shape[0]):
        end = np.int64(ends[i])
        h = slot_hash(secret, ABSENT, heap, begin, end - begin, 0.0)  # any kind but that of numbers: these are bytes
        out[i - first] = ((h & _LOW) << _32) | np.uint64(i)
        begin = end


@part
def same_key(left, left_start, right, right_start, size):
    """Whether two keys of so many bytes are equal."""
    if size >= 8:
        return same_long_bytes(left, left_start, right, right_start, size)
    return short_word(left, left_start, size) == short_word(right, right_start, size)


@kernel
def find_keys(heap: U8, ends: I64, hashes: U64, known_heap: U8, known_ends: I64, known: U64, out: U32) -> None:
    """out[i] = the number of key i among the known ones, from 1 on; 0 where it is none of them.

    `hashes` and `known` are what hash_keys gives, ascending.
    """
    count = known.shape[0]
    at = 0
    for i in range(hashes.shape[0]):
        h = hashes[i] >> _32
        key = np.int64(hashes[i] & _LOW)
        begin = np.int64(0) if key == 0 else np.int64(ends[key - 1])
        size = np.int64(ends[key]) - begin
        while at < count and known[at] >> _32 < h:
            at += 1
        out[key] = 0
        near = at
        while near < count and known[near] >> _32 == h:
            other = np.int64(known[near] & _LOW)
            start = np.int64(0) if other == 0 else np.int64(known_ends[other - 1])
            if np.int64(known_ends[other]) - start == size and same_key(heap, begin, known_heap, start, size):
                out[key] = np.uint32(other + 1)
                break
            near += 1
