"""The hash of a value, of which prefix indexes store the upper 32 bits.

docs/format-index.md has its steps, and says what of arrays and maps counts. The numbers are on disk: never change them.
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
    """The words that the hash of a map runs over: the hashes of its pairs, in order."""
    pairs = dict(zip(hashes[::2], hashes[1::2], strict=True))
    if len(pairs) < len(parts) // 2 or any(key[0] != STRING for key in parts[::2]):
        return []
    return [word for pair in sorted(pairs.items()) for word in pair]
