"""Roaring bitmaps to and from numpy arrays and bytes, each by the fastest way that pyroaring has.

`BitMap(ndarray)` walks the array value by value in Python; through `array.array` it does not. A dense set is
fastest as a serialization written by hand: the portable format's bitset containers are plain bits.
Source of the format: https://github.com/RoaringBitmap/RoaringFormatSpec
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pyroaring import BitMap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST_SET: Final = 1 << 18  # bytes: the bits of a whole span are half of it
CONTAINER: Final = 1 << 16  # members that share one container
_ARRAY_MAX: Final = 4096  # a container of at most so many members is stored as a list
_NO_RUNS: Final = 12346  # the serialization's cookie: no run containers


def bitmap_of(members: NDArray[np.uint32]) -> BitMap:
    """The set of these members (ascending order is fastest; repeats are fine)."""
    import numpy as np

    return BitMap(array("I", np.ascontiguousarray(members, np.uint32).tobytes()))


def members_of(bitmap: BitMap) -> NDArray[np.uint32]:
    """The members in ascending order, uint32."""
    import numpy as np

    return np.frombuffer(bitmap.to_array(), np.uint32)


def bitmap_of_mask(mask: NDArray[np.bool_], first: int) -> BitMap:
    """The set of all `first + i` with mask[i].

    >>> import numpy as np
    >>> list(bitmap_of_mask(np.array([True, False, True]), 10))
    [10, 12]
    """
    import numpy as np

    if np.count_nonzero(mask) * 16 < len(mask):
        return bitmap_of(np.flatnonzero(mask).astype(np.uint32) + np.uint32(first))
    lead = first % CONTAINER
    tail = -(lead + len(mask)) % CONTAINER
    padded = np.concatenate([np.zeros(lead, np.bool_), mask, np.zeros(tail, np.bool_)])
    bits = np.packbits(padded, bitorder="little").reshape(-1, CONTAINER // 8)
    counts = padded.reshape(-1, CONTAINER).sum(axis=1)
    heads, bodies = [], []
    for number in np.flatnonzero(counts).tolist():
        count = int(counts[number])
        heads.append((first // CONTAINER + number, count))
        if count > _ARRAY_MAX:
            bodies.append(bits[number].tobytes())
        else:
            row = padded[number * CONTAINER : (number + 1) * CONTAINER]
            bodies.append(np.flatnonzero(row).astype("<u2").tobytes())
    return BitMap.deserialize(_portable(heads, bodies))


def _portable(heads: list[tuple[int, int]], bodies: list[bytes]) -> bytes:
    parts = [struct.pack("<II", _NO_RUNS, len(heads))]
    parts += [struct.pack("<HH", key, count - 1) for key, count in heads]
    position = 8 + 8 * len(heads)
    for body in bodies:
        parts.append(struct.pack("<I", position))
        position += len(body)
    return b"".join(parts + bodies)


def differing(left: NDArray[Any], right: NDArray[Any]) -> BitMap:
    """Where two columns are not equal, from 0; NaN is equal to NaN."""
    return bitmap_of_mask((left != right) & ((left == left) | (right == right)), 0)


def bitmap_of_range(first: int, stop: int) -> BitMap:
    bitmap = BitMap()
    if stop > first:
        bitmap.add_range(first, stop)
    return bitmap


def union_of(bitmaps: Iterable[BitMap]) -> BitMap:
    """The union of any number of sets; of none, the empty set."""
    items = list(bitmaps)
    return BitMap.union(*items) if items else BitMap()


def dump(bitmap: BitMap) -> bytes:
    """The portable serialization in its one canonical form: the same set always gives the same bytes.

    Where runs and a list take as many bytes, `run_optimize` leaves either as it is. So the set must have no runs
    before.
    """
    if bitmap.get_statistics()["n_run_containers"]:
        bitmap = bitmap_of(members_of(bitmap))
    bitmap.run_optimize()
    return bytes(bitmap.serialize())
