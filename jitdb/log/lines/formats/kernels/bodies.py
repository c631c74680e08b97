"""What a line says behind its head, for kernels: JSON, keys and values, or text.

- A JSON object: its members are fields of the record, and what follows it is `trace`.
- Other text is a field. Where it is `key=value` pairs (logfmt), begins with two or more, or ends with a JSON object,
  these are fields, too.
- `"text" key="value"`, as the components of Kubernetes write it: the field is the text between the quotes, and the
  pairs are fields; what follows is `trace`.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.json.read import skip_blanks
from jitdb.log.codecs.json.text import CLOSE_MAP, NEWLINE, OPEN_MAP, QUOTE, SPACE
from jitdb.log.lines.formats.kernels.logfmt import (
    are_pairs,
    begins_logfmt,
    leading_pairs,
    put_logfmt_text,
    put_pairs,
    quoted_end,
)
from jitdb.log.lines.formats.kernels.writing import (
    is_object,
    line_end,
    put_byte,
    put_escaped,
    put_key,
    put_members,
    put_quoted,
    put_trace_key,
    without_blanks,
)


@part
def put_body(data, p, stop, end, out, o, keys, key, size, stack):
    """What a record says: data[p:stop] in its first line, and up to `end` in those that follow.

    keys, key, size: where the name of its field stands
    """
    after = without_blanks(data, p, stop)
    begin = skip_blanks(data, p, after)
    if is_object(data, begin, after, stack):
        return put_trace(data, stop, end, out, put_members(data, begin, after, out, o))
    if begin < after and data[np.uint64(begin)] == QUOTE:
        quote = quoted_end(data, begin + 1, after)
        if quote + 2 < after and data[np.uint64(quote + 1)] == SPACE and begins_logfmt(data, quote + 2, after):
            _, o = put_logfmt_text(data, begin + 1, after, out, put_key(keys, key, size, out, o))
            return put_trace(data, stop, end, out, put_pairs(data, quote + 2, after, out, o))
    o = put_quoted(data, p, without_blanks(data, p, end), out, put_key(keys, key, size, out, o))
    if are_pairs(data, begin, after):
        return put_pairs(data, begin, after, out, o)
    leading = leading_pairs(data, begin, after)
    if leading > begin:
        return put_pairs(data, begin, leading, out, o)
    if begin < after and data[np.uint64(after - 1)] == CLOSE_MAP:
        while begin < after and not (data[np.uint64(begin)] == OPEN_MAP and data[np.uint64(begin + 1)] == QUOTE):
            begin += 1
        if is_object(data, begin, after, stack):
            return put_members(data, begin, after, out, o)
    return o


@part
def put_trace(data, stop, end, out, o):
    """The lines behind the one that `stop` is in, as the field `trace`, without blank ones at both ends."""
    stop, _ = line_end(data, stop, end)
    end = without_blanks(data, stop, end)
    begin = skip_blanks(data, stop, end) if end > stop else end
    while begin > stop and data[np.uint64(begin - 1)] != NEWLINE:
        begin -= 1
    if begin < end:
        o = put_trace_key(out, o)
        o = put_byte(out, put_escaped(data, begin, end, out, o), QUOTE)
    return o
