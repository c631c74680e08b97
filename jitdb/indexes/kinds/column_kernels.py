"""The kernel that sums up a column of numbers, for its head and for each of its zones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I16


@kernel
def measure_zones(hi: F64, lo: I16, zone: int, lowest: F64, highest: F64) -> tuple[float, float, bool, bool]:
    """Fill the extremes of each `zone` records: the smallest hi, -inf where a record has none, and the largest, -inf
    where none has one.

    Gives the smallest and largest hi of all, inf and -inf where there is none, whether any rest is not 0, and whether
    all numbers are whole. `lo` is empty where all rests are 0.
    """
    low = np.inf
    high = -np.inf
    rests = False
    whole = True
    for number in range(lowest.shape[0]):
        least = np.inf
        most = -np.inf
        lacks = False
        for i in range(number * zone, min((number + 1) * zone, hi.shape[0])):
            value = hi[i]
            if value == value:
                least = min(least, value)
                most = max(most, value)
                whole &= value == np.floor(value) and not np.isinf(value)
            else:
                lacks = True
        lowest[number] = -np.inf if lacks else least
        highest[number] = most
        low = min(low, least)
        high = max(high, most)
    for i in range(lo.shape[0]):
        rests |= lo[i] != 0
    return low, high, rests, whole
