"""The checksums of many blocks, as an array."""

from __future__ import annotations

import numpy as np

from jitdb.log.blocks.crc import Ints, is_compiled
from jitdb.log.blocks.crc_arithmetic import UNKNOWN
from jitdb.log.sidecar.checksums import ENTRY_SIZE, decode_entry


def decode_entries(data: bytes, first: int, generation: int, count: int, *, compiled: bool = True) -> Ints:
    """int64 [count]: the CRCs in the entries of blocks from `first` on; UNKNOWN where there is none.

    `data` may end early, as the file may. An entry that is damaged is none. Who reads little does without
    the compiled way: loading it takes longer.
    """
    sums = np.full(count, UNKNOWN, np.int64)
    there = min(count, len(data) // ENTRY_SIZE)
    doubtful = np.arange(there)
    if there and compiled and is_compiled():
        from jitdb.log.blocks.crc_kernels import decode_entries as decode

        left = decode(np.frombuffer(data, np.uint8), first, generation, sums[:there], doubtful)
        doubtful = doubtful[:left]
    for number in doubtful.tolist():
        entry = decode_entry(data[number * ENTRY_SIZE : (number + 1) * ENTRY_SIZE], first + number, generation)
        if entry is not None and not entry.is_doubt:
            sums[number] = entry.crc
    return sums
