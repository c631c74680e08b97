"""The hash of a value: how prefix indexes of many-valued fields and the numbering of values know it.

The hash runs over the bytes of `value_key` after the kind, in little-endian words of 8 bytes, the last one
filled up with zeros; an array or map counts as empty (its bytes are not canonical inside a log, so all arrays
share one hash and are told apart by reading them):

    h = (kind + 1) * P1
    for each word:  h = (h ^ word) * P1;  h = h ^ (h >> 29)
    h = (h ^ length) * P2;  h = h ^ (h >> 32)

all modulo 2**64. Prefix indexes store the upper 32 bits. These numbers are on disk: never change them.
"""

from __future__ import annotations

from typing import Final

from jitdb.values import ARRAY, MAP

P1: Final = 0x9E3779B97F4A7C15
P2: Final = 0xC2B2AE3D27D4EB4F
_MASK: Final = 2**64 - 1


def hash_key(key: bytes) -> int:
    """The 64-bit hash of a value, given as its `value_key`.

    >>> from jitdb.values import value_key
    >>> hex(hash_key(value_key("post")))
    '0xe589c890111a3d9'
    """
    kind = key[0]
    payload = b"" if kind in (ARRAY, MAP) else key[1:]
    h = (kind + 1) * P1 & _MASK
    for start in range(0, len(payload), 8):
        h = (h ^ int.from_bytes(payload[start : start + 8], "little")) * P1 & _MASK
        h ^= h >> 29
    h = (h ^ len(payload)) * P2 & _MASK
    return h ^ (h >> 32)


def hash_prefix(key: bytes) -> int:
    """The 32 bits of the hash that a prefix index stores."""
    return hash_key(key) >> 32
