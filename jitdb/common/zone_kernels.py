"""Names of zones, for kernels: jitdb.common.times.ZONES has those that are known."""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.common.times import ZONES

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
