"""Elements of batches, for kernels: an element's own members behind what stands around it.

It lies there as line_kernels.gather_around writes it: what is around it, each with SEPARATOR behind it, and then the
element.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.fields.part_kernels import same_bytes
from jitdb.log.codecs.fields.sixteen import word_at
from jitdb.log.codecs.json.read import skip_blanks
from jitdb.log.codecs.json.text import CLOSE_MAP, COMMA, OPEN_MAP
from jitdb.log.lines.formats.kernels.kinds import FIELD, OTLP
from jitdb.log.lines.formats.kernels.otlp import put_telemetry
from jitdb.log.lines.formats.kernels.writing import is_object, put_byte, put_bytes, put_key, put_members
from jitdb.log.lines.line_kernels import SEPARATOR, value_end


@part
def behind_around(data, p, end, fields):
    """Where the element itself begins."""
    left = fields.shape[0] // FIELD
    while left and p < end:
        if data[np.uint64(p)] == SEPARATOR:
            left -= 1
        p += 1
    return p


@part
def put_around(how, data, p, end, fields, keys, out, o, levels, frames):
    """What is around an element, as members behind an opening brace: where the element begins, -1 where something is no
    JSON, and where what is written ends."""
    nothing = np.int64(-1)
    o = put_byte(out, o, OPEN_MAP)
    for row in range(0, fields.shape[0], FIELD):
        if p < end and data[np.uint64(p)] != SEPARATOR:
            o = put_key(keys, fields[row + 1], fields[row + 2], out, o)
            if how == OTLP and data[np.uint64(p)] == OPEN_MAP:
                o = put_byte(out, o, OPEN_MAP)
                p, o = put_telemetry(data, p, end, False, out, o, levels, frames)
                if p < 0:
                    return nothing, o
            else:
                after = value_end(data, p, end, levels, np.int64(0))
                if after < 0:
                    return nothing, o
                o = put_bytes(data, p, after - p, out, o)
                p = after
        if p >= end or data[np.uint64(p)] != SEPARATOR:
            return nothing, o
        p += 1
    return p, o


@part
def put_element(how, data, p, end, out, o, levels, frames):
    """An element behind what is around it: where what is written ends, -1 where it is no object."""
    nothing = np.int64(-1)
    if how != OTLP:
        if not is_object(data, p, end, levels):
            return nothing
        return put_byte(out, put_members(data, p, end, out, o), CLOSE_MAP)
    if p >= end or data[np.uint64(p)] != OPEN_MAP:
        return nothing
    at = skip_blanks(data, p + 1, end)
    if out[np.uint64(o - 1)] != OPEN_MAP and at < end and data[np.uint64(at)] != CLOSE_MAP:
        o = put_byte(out, o, COMMA)
    p, o = put_telemetry(data, p, end, True, out, o, levels, frames)
    return o if p == end else nothing


@part
def same_prefix(data, left, right, size):
    """Whether so many bytes from two places on are the same, by words: some behind them are looked at."""
    at = np.int64(0)
    while at + 8 <= size and word_at(data, left + at) == word_at(data, right + at):
        at += 8
    return at + 8 > size and same_bytes(data, left + at, data, right + at, size - at)
