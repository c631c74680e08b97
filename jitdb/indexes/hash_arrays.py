"""The upper 32 bits of hashes (hashing.py): what prefix indexes store, of one value or of arrays of located ones."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jitdb.common.values import ARRAY, MAP
from jitdb.indexes.hashing import hash_key
from jitdb.log.codecs.base import MAX_NESTING

_FIRST_PAIRS: Final = 1 << 7  # of a container's pairs; untouched room costs nothing
_LARGE: Final = 1 << 14  # bytes of a container's key from which on loading the kernels takes less than Python does


def hash_prefix(key: bytes) -> int:
    """The 32 bits of the hash that a prefix index stores."""
    if key[0] in (ARRAY, MAP) and len(key) >= _LARGE:
        from jitdb.indexes.hash_kernels import KEYS

        row = np.array([key[0]], np.uint8), np.ones(1, np.int32), np.array([len(key) - 1], np.int32), np.zeros(1)
        return int(hash_prefixes(KEYS, np.frombuffer(bytearray(key), np.uint8), *row)[0])
    return hash_key(key) >> 32


def hash_prefixes(
    codec: int,
    buffer: NDArray[np.uint8],
    kind: NDArray[np.uint8],
    start: NDArray[np.int32] | NDArray[np.int64],
    length: NDArray[np.int32],
    number: NDArray[np.float64],
) -> NDArray[np.uint32]:
    """The hash_prefix of located values of the codec with this number; 0 where there is none."""
    from jitdb.indexes.hash_kernels import hash_containers, hash_scalars

    count, out = len(kind), np.empty(len(kind), np.uint32)
    start = start.astype(np.int64)
    hash_scalars(buffer, kind, start, length, number, count, out)
    if not ((kind == ARRAY) | (kind == MAP)).any():
        return out  # and where numba compiles, the kernel for containers is not
    stack, hashes = np.empty((MAX_NESTING, 5), np.int64), np.empty(MAX_NESTING, np.uint64)
    pairs = np.empty((_FIRST_PAIRS, 3), np.uint64)
    done = 0
    while True:
        done = hash_containers(codec, buffer, kind, start, length, done, count, stack, hashes, pairs, out)
        if done == count:
            return out
        pairs = np.empty((2 * len(pairs), 3), np.uint64)
