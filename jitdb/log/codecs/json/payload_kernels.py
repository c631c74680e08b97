"""The payloads of located values that do not stand in the record as they are: written into a buffer of their own.

Text with escapes becomes UTF-8, arrays and maps what they are in msgpack, by the kernel that transcodes lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel
from jitdb.common.values import STRING
from jitdb.log.codecs.json.heads import copy_words
from jitdb.log.codecs.json.kernels import put_value
from jitdb.log.codecs.json.keys import BYTES, COUNT, KEY_BYTES, NODES, forget_keys
from jitdb.log.codecs.json.read import WRITTEN
from jitdb.log.codecs.json.text import put_text
from jitdb.log.codecs.msgpack.read import read_head

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, I64, U8, U64


@kernel
def write_payloads(
    buf: U8, kind: U8, start: I32, length: I32, first: int, out: U8, begin: int, powers: U64,
    state: I64, nodes: I64, slots: I64, keys: U8,
) -> tuple[int, int]:  # fmt: skip
    """Write the payloads of one field, from value `first` on, to out[begin:], and say where they are then.

    Also those that stand in `buf` as they are: they must be in one buffer. `out` has GROWTH bytes for each that they
    have in `buf`, and SLACK more, and so has `buf` behind each. Gives the first value that is left to Python, the
    number of values where none is, and where the payloads end.
    """
    o = np.int64(begin)
    for i in range(first, kind.shape[0]):
        held = np.int64(kind[i])
        if held < STRING:
            continue
        at, size = np.int64(start[i]), np.int64(length[i])
        if held < WRITTEN:
            copy_words(buf, at, out, o, size)
            start[i] = o
            o += size
            continue
        if size == 0:  # of a record that was decoded
            return i, o
        if state[COUNT] > NODES // 2 or state[BYTES] > KEY_BYTES // 2:
            forget_keys(state, nodes, slots)
        if held == STRING + WRITTEN:
            after, stop = put_text(buf, at, out, o, False)
        else:
            after, stop = put_value(buf, at, out, o, False, False, powers, state, nodes, slots, keys)
        if after < 0:
            return i, o
        _, payload, _, _ = read_head(out, o, stop)
        kind[i] = held - WRITTEN
        start[i] = payload
        length[i] = stop - payload
        o = stop
    return kind.shape[0], o
