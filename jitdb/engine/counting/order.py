"""The order of values, by how many records have them: those of most come first, and of equally many the smaller ones.

Values are ordered by kind (null, false, true, numbers, text, bytes, the others), numbers by size, text by its bytes.
Nothing here needs numpy: a process that asks once may do without.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from jitdb.common.values import NUMBER

Keys: TypeAlias = tuple[bytes, ...]  # of the values of one field, or several

_PAIR: Final = struct.Struct("<dh")


class Ranked(NamedTuple):
    """Of records, how many have which values.

    pairs:    keys and counts, the first of them, or all, in order
    distinct: how many there are
    total:    records
    missing:  those without a value
    """

    pairs: list[tuple[Keys, int]]
    distinct: int
    total: int
    missing: int


def order_of(key: bytes) -> tuple[int, float, int, bytes]:
    """What a value is ordered by; NaN is the largest number."""
    if key[0] == NUMBER and len(key) == 1 + _PAIR.size:
        hi, lo = _PAIR.unpack_from(key, 1)
        return (NUMBER, hi, lo, b"") if hi == hi else (NUMBER, math.inf, 1, b"")
    return key[0], 0.0, 0, key[1:]


def in_order(pairs: Iterable[tuple[Keys, int]], limit: int | None) -> list[tuple[Keys, int]]:
    return sorted(pairs, key=lambda pair: (-pair[1], *map(order_of, pair[0])))[:limit]


def added(parts: Sequence[Ranked], limit: int | None) -> Ranked:
    """That of the records of all parts. Of several, each has all of its values."""
    if len(parts) == 1:
        return parts[0]._replace(pairs=parts[0].pairs[:limit])
    counts: dict[Keys, int] = {}
    for part in parts:
        for keys, count in part.pairs:
            counts[keys] = counts.get(keys, 0) + count
    total, missing = sum(part.total for part in parts), sum(part.missing for part in parts)
    return Ranked(in_order(counts.items(), limit), len(counts), total, missing)
