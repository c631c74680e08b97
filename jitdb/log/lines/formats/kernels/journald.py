"""Lines of systemd-journald (`journalctl -o json`), for kernels.

A field that is no printable UTF-8 is an array of its bytes there. It becomes text; bytes that are no UTF-8 are U+FFFD.
All else stays as it stands: numbers are text, and a field that a record has several times is an array.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.json.read import container_end, scalar_end, skip_blanks, text_end
from jitdb.log.codecs.json.text import CLOSE_ARRAY, CLOSE_MAP, COMMA, OPEN_ARRAY, OPEN_MAP
from jitdb.log.lines.formats.kernels.writing import is_object, put_bytes, put_quoted, put_slack, without_blanks

_ZERO, _NINE, _MOST = 48, 57, 255


@part
def has_array(data, p, end):
    while p < end:
        if data[np.uint64(p)] == OPEN_ARRAY:
            return True
        p += 1
    return False


@part
def read_array(data, p, end, spare):
    """The bytes whose numbers are in the array at `p`, put into `spare`: how many they are, and where it ends; -1 where
    it holds anything else, or nothing."""
    count = np.int64(0)
    nothing = np.int64(-1)
    p += 1
    while True:
        p = skip_blanks(data, p, end)
        first = p
        number = np.int64(0)
        while p < end and _ZERO <= data[np.uint64(p)] <= _NINE and p - first < 3:
            number = 10 * number + np.int64(data[np.uint64(p)]) - _ZERO
            p += 1
        if p == first or number > _MOST:
            return nothing, nothing
        spare[np.uint64(count)] = number
        count += 1
        p = skip_blanks(data, p, end)
        if p >= end:
            return nothing, nothing
        if data[np.uint64(p)] == CLOSE_ARRAY:
            return count, p + 1
        if data[np.uint64(p)] != COMMA:
            return nothing, nothing
        p += 1


@part
def put_journal(data, start, end, out, o, spare, levels):
    """A record whose arrays of bytes are text; -1 where it has none, or is no object."""
    if not has_array(data, start, end):
        return np.int64(-1)
    end = without_blanks(data, start, end)
    start = skip_blanks(data, start, end)
    if not is_object(data, start, end, levels):
        return np.int64(-1)
    copied = np.int64(start)  # up to where all is written
    p = skip_blanks(data, start + 1, end)
    while data[np.uint64(p)] != CLOSE_MAP:
        p, _ = text_end(data, p + 1, end)
        p = skip_blanks(data, skip_blanks(data, p + 1, end) + 1, end)  # behind the colon
        char = data[np.uint64(p)]
        count, behind = np.int64(-1), np.int64(-1)
        if char == OPEN_ARRAY:
            count, behind = read_array(data, p, end, spare)
        if count > 0:
            put_slack(spare, count)
            o = put_bytes(data, copied, p - copied, out, o)
            o = put_quoted(spare, np.int64(0), count, out, o)
            p = behind
            copied = behind
        elif char == OPEN_ARRAY or char == OPEN_MAP:
            p = container_end(data, p, end, levels, np.int64(1))
        else:
            p = scalar_end(data, p, end)
        p = skip_blanks(data, p, end)
        if data[np.uint64(p)] == COMMA:
            p = skip_blanks(data, p + 1, end)
    return put_bytes(data, copied, end - copied, out, o)
