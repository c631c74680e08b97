"""Zones for kernels: by their names, of which jitdb.common.times.ZONES has those that are known, and by what clocks
show (zones.py)."""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.common.times import ZONES
from jitdb.common.zones import CYCLE, LAST

NO_NAME = 200_000  # in place of seconds: no name stands there
UNKNOWN = 100_000  # a name does, which is not known

_NAMES = np.array([int.from_bytes(name.encode(), "big") for name in ZONES])
_AHEAD = np.array(list(ZONES.values()))


@part
def ahead_of_name(buf, at, end):
    """Seconds by which the zone is ahead of UTC whose name, three to five letters in capitals, stands here; or UNKNOWN,
    or NO_NAME."""
    if not 3 <= end - at <= 5:
        return np.int64(NO_NAME)
    word = np.int64(0)
    for place in range(at, end):
        char = np.int64(buf[np.uint64(place)])
        if char < 65 or char > 90:
            return np.int64(NO_NAME)
        word = (word << 8) | char
    for number in range(_NAMES.shape[0]):
        if _NAMES[number] == word:
            return np.int64(_AHEAD[number])
    return np.int64(UNKNOWN)


@part
def ahead_by_clock(second, begins, aheads):
    """Changes.ahead() of zones.py."""
    if second >= LAST:
        second = np.int64(LAST - CYCLE) + (second - np.int64(LAST)) % np.int64(CYCLE)
    low, high = np.int64(0), np.int64(begins.shape[0])
    while high - low > 1:
        middle = (low + high) // 2
        if begins[np.uint64(middle)] <= second:
            low = middle
        else:
            high = middle
    return np.int64(aheads[np.uint64(low)])
