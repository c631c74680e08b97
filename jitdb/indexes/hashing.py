"""The hash of a value: how prefix indexes of many-valued fields and the numbering of values know it.

The hash runs over a payload in little-endian words of 8 bytes, the last one filled up with zeros:

    h = (kind + 1) * P1
    for each word:  h = (h ^ word) * P1;  h = h ^ (h >> 29)
    h = (h ^ length) * P2;  h = h ^ (h >> 32)

all modulo 2**64. The payload of a scalar is that of its `value_key`. The bytes of an array or map are not canonical in
a log, so theirs is made of hashes, a word each: those of an array's elements; those of the key and the value of each
pair of a map, ascending by the first. What could make equal containers differ, and is rare, counts as empty: a map with
a key that is no string (Python holds 1, 1.0 and true for one key) or with two keys of one hash; and of a timestamp in a
container, which may be written long or short, all but its code.

Prefix indexes store the upper 32 bits. These numbers are on disk: never change them.
"""

from __future__ import annotations

import struct
from typing import Final

from jitdb.common.values import ARRAY, EXTENSION, MAP, STRING, key_parts

P1: Final = 0x9E3779B97F4A7C15
P2: Final = 0xC2B2AE3D27D4EB4F
_MASK: Final = 2**64 - 1
_TIMESTAMP: Final = 0xFF  # code of the extension


def hash_key(key: bytes, inside: bool = False) -> int:
    """The 64-bit hash of a value, given as its `value_key`; `inside` a container or not.

    >>> from jitdb.common.values import value_key
    >>> hex(hash_key(value_key("post")))
    '0xe589c890111a3d9'
    """
    kind = key[0]
    payload = key[1:]
    if kind in (ARRAY, MAP):
        parts = list(key_parts(payload))
        words = [hash_key(part, True) for part in parts]
        if kind == MAP:
            words = _words_of_map(parts, words)
        payload = struct.pack(f"<{len(words)}Q", *words)
    elif inside and kind == EXTENSION and payload[0] == _TIMESTAMP:
        payload = payload[:1]
    h = (kind + 1) * P1 & _MASK
    for start in range(0, len(payload), 8):
        h = (h ^ int.from_bytes(payload[start : start + 8], "little")) * P1 & _MASK
        h ^= h >> 29
    h = (h ^ len(payload)) * P2 & _MASK
    return h ^ (h >> 32)


def _words_of_map(parts: list[bytes], hashes: list[int]) -> list[int]:
    """What the hash of a map runs over: those of its pairs in order."""
    pairs = dict(zip(hashes[::2], hashes[1::2], strict=True))
    if len(pairs) < len(parts) // 2 or any(key[0] != STRING for key in parts[::2]):
        return []
    return [word for pair in sorted(pairs.items()) for word in pair]
