"""Which records are no values of their codec, compiled: the walk of a record without looking for anything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel
from jitdb.common.values import ARRAY, MAP
from jitdb.log.codecs.bipf import kernels as bipf_kernels
from jitdb.log.codecs.fields.located import LIVE
from jitdb.log.codecs.msgpack import kernels as msgpack_kernels

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8

_bipf_value = bipf_kernels.read_value
_bipf_whole = bipf_kernels.is_whole
_msgpack_skip = msgpack_kernels.skip
_msgpack_whole = msgpack_kernels.is_whole
_MALFORMED = 255


@kernel
def find_invalid(
    number: int, buf: U8, starts: I64, lengths: I64, states: U8, suspects: I64, stack: I64
) -> int:  # fmt: skip
    """Fill `suspects` with the numbers of live records that are malformed; gives how many.

    `number` is the codec's (locate.CODEC_NUMBERS); record i is buf[starts[i] : starts[i] + lengths[i]].
    `stack` has room for MAX_NESTING + 1 numbers.
    """
    count = 0
    for record in range(starts.shape[0]):
        if states[record] != LIVE:
            continue
        position = np.int64(starts[record])
        end = position + np.int64(lengths[record])
        if number == 0:
            kind, at, _, _, following = _bipf_value(buf, position, end)
            good = kind != _MALFORMED and following == end
            if good and (kind == MAP or kind == ARRAY):
                good = _bipf_whole(buf, at, end, kind == MAP, stack)
        else:
            good = _msgpack_skip(buf, position, end, np.int64(1)) == end and _msgpack_whole(buf, position, end, stack)
        if not good:
            suspects[count] = record
            count += 1
    return count
