"""Which records of a run does the codec refuse? With the compiled walk where there are many."""

from __future__ import annotations

import numpy as np

from jitdb.log.blocks.walker import Bytes, Walked
from jitdb.log.codecs import Codec
from jitdb.log.codecs.base import MAX_NESTING
from jitdb.log.codecs.locate import CODEC_NUMBERS


def invalid_records(codec: Codec, data: Bytes, walked: Walked, *, compiled: bool) -> list[int]:
    """The numbers of the live records that are no value of the codec, in order."""
    if codec.name == "raw":
        return []
    number = CODEC_NUMBERS.get(codec.name, -1)
    if compiled and number >= 0:
        from jitdb.log.codecs.validity_kernels import find_invalid

        stack = np.empty(MAX_NESTING + 1, np.int64)
        suspects = np.empty(len(walked.starts), np.int64)
        states = walked.deleted.view(np.uint8)
        count = find_invalid(number, data, walked.starts, walked.lengths, states, suspects, stack)
        numbers = suspects[:count].tolist()
    else:
        numbers = np.flatnonzero(~walked.deleted).tolist()
    starts, lengths = walked.starts, walked.lengths
    return [at for at in numbers if not codec.is_valid(data[starts[at] : starts[at] + lengths[at]].tobytes())]
