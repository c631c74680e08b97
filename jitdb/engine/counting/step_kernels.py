"""Times counted by steps of one length, in one pass. Most follow the one before, so that the step is known already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I16, I64

FAR = 9.2e18  # nanoseconds: 64 bits hold no more, whatever the shift


@kernel
def count_steps(hi: F64, lo: I16, columns: I64, width: int, size: int, shift: int, first: int, counts: I64) -> int:
    """counts[(step - first) * width + column] += 1 for each time; how many that were.

    `lo` and `columns` may be empty, for zeros. What is no time (NaN), is far, or in no step of `counts` is passed over.
    """
    found = 0
    begin = np.int64(0)  # of the step before: it holds no time yet
    end = np.int64(0)
    place = np.int64(0)
    steps = np.int64(counts.shape[0]) // width
    for i in range(hi.shape[0]):
        time = hi[i]
        if not (-FAR < time < FAR):
            continue
        shifted = np.int64(time) + shift
        if lo.shape[0] != 0:
            shifted += np.int64(lo[i])
        if not (begin <= shifted < end):
            step = shifted // size
            place = step - first
            begin = step * size
            end = begin + size
        if 0 <= place < steps:
            column = np.int64(0)
            if columns.shape[0] != 0:
                column = columns[i]
            if 0 <= column < width:
                counts[np.uint64(place * width + column)] += 1
                found += 1
    return found
