"""The upper 32 bits of hashes (hashing.py): what prefix indexes store, of one value or of arrays of located ones."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jitdb.common.values import ARRAY, MAP
from jitdb.indexes.hashing import hash_key
from jitdb.log.codecs.fields.constants import MAX_NESTING
from jitdb.log.codecs.fields.located import FieldValues

_FIRST_PAIRS: Final = 1 << 7  # of a container's pairs; untouched room costs nothing
_LARGE: Final = 1 << 14  # bytes of a container's key from which on loading the kernels takes less than Python does


def hash_prefix(key: bytes) -> int:
    """The 32 bits of the hash that a prefix index stores."""
    if key[0] in (ARRAY, MAP) and len(key) >= _LARGE:
        return int(hash_prefixes(FieldValues.of_keys([key]))[0])
    return hash_key(key) >> 32


def hash_prefixes(values: FieldValues) -> NDArray[np.uint32]:
    """The hash_prefix of located values; 0 where there is none."""
    from jitdb.indexes.hash_kernels import hash_containers, hash_scalars

    encoding, buffer, kind, _, length, number = values
    count, out = len(kind), np.empty(len(kind), np.uint32)
    start = values.start.astype(np.int64)
    hash_scalars(buffer, kind, start, length, number, count, out)
    if not ((kind == ARRAY) | (kind == MAP)).any():
        return out  # and where numba compiles, the kernel for containers is not
    stack, hashes = np.empty((MAX_NESTING, 5), np.int64), np.empty(MAX_NESTING, np.uint64)
    pairs = np.empty((_FIRST_PAIRS, 3), np.uint64)
    done = 0
    while True:
        done = hash_containers(encoding, buffer, kind, start, length, done, count, stack, hashes, pairs, out)
        if done == count:
            return out
        pairs = np.empty((2 * len(pairs), 3), np.uint64)
