"""The bytes of many strings, put one behind the other as Arrow wants them; compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, U8, Bools


@kernel
def gather(buffer: U8, start: I32, length: I32, wanted: Bools, offsets: I32, out: U8) -> int:
    """Copy the wanted payloads buffer[start[i] : start[i] + length[i]] into `out`, and note where each ends.

    `offsets` has an entry more than there are payloads; what is not wanted is empty. A payload that does not lie in the
    buffer, or does not fit, is empty too. Gives the bytes written.
    """
    at = np.int64(0)
    room = np.int64(out.shape[0])
    offsets[0] = 0
    for i in range(start.shape[0]):
        if wanted[i]:
            begin = np.int64(start[i])
            size = np.int64(length[i])
            if begin >= 0 and 0 <= size <= room - at and size <= buffer.shape[0] - begin:
                for j in range(size):
                    out[np.uint64(at + j)] = buffer[np.uint64(begin + j)]
                at += size
        offsets[i + 1] = at
    return at
