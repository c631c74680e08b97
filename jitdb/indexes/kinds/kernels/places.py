"""Which records of a segment kernels go through: those at some places, or a run of them."""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part


@part
def number_of_places(begin, end, places):
    """How many records: as many as there are places; without any, those from `begin` to `end`."""
    if places.shape[0] != 0:
        return np.int64(places.shape[0])
    return np.int64(end - begin)


@part
def place_at(begin, places, i):
    """Where the record with this number stands."""
    if places.shape[0] != 0:
        return np.uint64(places[np.uint64(i)])
    return np.uint64(begin + i)
