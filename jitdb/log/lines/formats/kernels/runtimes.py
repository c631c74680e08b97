"""Lines of container runtimes, for kernels: Docker's json-file, CRI as Kubernetes has it, and what both print.

    {"log":"...\\n","stream":"stdout","time":"..."}          a text without a newline goes on in the next line
    2026-11-20T14:03:11.123456789Z stdout F text            F: the text ends here; P: it goes on in the next line
    2026-11-20T14:03:11.123456789Z text                     docker logs -t, kubectl logs --timestamps

A text that is a JSON object is the record, with what stands beside it. Other text is a field (bodies.py): `message`,
or `log` of Docker's json-file; a level near its beginning is one, too, as the runtime's time stands before it.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.json.read import skip_blanks, text_end
from jitdb.log.codecs.json.text import BACKSLASH, CLOSE_MAP, COLON, COMMA, NEWLINE, OPEN_MAP, QUOTE, SPACE, put_text
from jitdb.log.lines.formats.kernels.bodies import put_body
from jitdb.log.lines.formats.kernels.kinds import STAMPED
from jitdb.log.lines.formats.kernels.levels import put_level
from jitdb.log.lines.formats.kernels.patterns import matched, put_groups
from jitdb.log.lines.formats.kernels.traces import begins_with, goes_on, is_indented
from jitdb.log.lines.formats.kernels.writing import (
    line_end,
    put_byte,
    put_bytes,
    put_escaped,
    put_key,
    put_quoted,
    put_slack,
    without_blanks,
)

_DASH, _DOT, _ZERO, _NINE, _T = 45, 46, 48, 57, 84
_STAMP = 30  # bytes of a time of UTC
_MESSAGE = np.frombuffer(b'"message":        ', np.uint8)
_MESSAGE_SIZE = 10
_LOG = np.frombuffer(b'"log":            ', np.uint8)
_LOG_SIZE = 6
_LOG_KEY = np.frombuffer(b'"log"', np.uint8)
_TIME = np.frombuffer(b'"time":"        ', np.uint8)
_TIME_SIZE = 8
_STREAM = np.frombuffer(b',"stream":"        ', np.uint8)
_STREAM_SIZE = 11
_MAY_FIT = np.array(
    [chr(byte) in "0123456789abcdefABCDEF:IW[<JMSOND\x1b" for byte in range(256)], np.bool_
)  # first bytes of a match


@part
def stamped_text(data, p, end):
    """Where the text behind a time with nine digits of the second begins; -1 where no such time stands there."""
    nothing = np.int64(-1)
    first = p
    while p < end and data[np.uint64(p)] != SPACE:
        p += 1
    if (p - first != _STAMP and p - first != _STAMP + 5) or data[np.uint64(first)] > _NINE:
        return nothing
    if data[np.uint64(first + 4)] != _DASH or data[np.uint64(first + 10)] != _T or data[np.uint64(first + 19)] != _DOT:
        return nothing
    for at in range(first + 20, first + 29):
        if data[np.uint64(at)] < _ZERO or data[np.uint64(at)] > _NINE:
            return nothing
    return min(p + 1, end)


@part
def cri_text(how, data, p, end):
    """Of a line of CRI where its text begins, -1 where it is none; where the stream does; and whether it is cut. Of one
    that is STAMPED there is no stream.
    """
    nothing = np.int64(-1)
    if how == STAMPED:
        return stamped_text(data, p, end), nothing, False
    first = p
    while p < end and data[np.uint64(p)] != SPACE:
        p += 1
    stream = p + 1
    if p - first < 19 or p - first > 40 or end < stream + 9 or data[np.uint64(first)] > _NINE:
        return nothing, nothing, False
    if data[np.uint64(stream)] != 115 or data[np.uint64(stream + 3)] != (
        111 if data[np.uint64(stream + 5)] == 116 else 101
    ):
        return nothing, nothing, False
    if data[np.uint64(stream + 6)] != SPACE:
        return nothing, nothing, False
    tag = data[np.uint64(stream + 7)]
    p = stream + 8
    while p < end and data[np.uint64(p)] != SPACE:  # tags are divided by colons
        p += 1
    if (tag != 70 and tag != 80) or p > end:
        return nothing, nothing, False
    return min(p + 1, end), np.int64(stream), tag == 80


@part
def docker_text(data, p, end):
    """Of a line of Docker's where the text of `log` begins, -1 where it is none, where it ends, whether it is cut."""
    nothing = np.int64(-1)
    p = skip_blanks(data, p, end)
    if p >= end or data[np.uint64(p)] != OPEN_MAP:
        return nothing, nothing, False
    p = skip_blanks(data, p + 1, end)
    if end - p < 8 or not begins_with(data, p, end, _LOG_KEY):
        return nothing, nothing, False
    p = skip_blanks(data, p + 5, end)
    if p >= end or data[np.uint64(p)] != COLON:
        return nothing, nothing, False
    p = skip_blanks(data, p + 1, end)
    if p >= end or data[np.uint64(p)] != QUOTE:
        return nothing, nothing, False
    begin = p + 1
    p, _ = text_end(data, begin, end)
    if p < 0:
        return nothing, nothing, False
    is_whole = p - begin >= 2 and data[np.uint64(p - 1)] == 110 and data[np.uint64(p - 2)] == BACKSLASH
    return np.int64(begin), np.int64(p), not is_whole


@part
def same_stream(data, left, right):
    return data[np.uint64(left + 3)] == data[np.uint64(right + 3)]


@part
def docker_stream(data, p, end):
    """The byte that tells the stream of a line of Docker's, behind its text: `o` of stdout, `e` of stderr; 0."""
    while p + 9 < end:
        if data[np.uint64(p)] == 115 and data[np.uint64(p + 1)] == 116 and data[np.uint64(p + 2)] == 100:
            return np.int64(data[np.uint64(p + 3)])
        p += 1
    return np.int64(0)


@part
def begins_cri(how, data, before, before_end, p, end):
    """Whether the line data[p:end] begins a record, data[before:before_end] being the line before it (empty: none)."""
    if before >= before_end:
        return True
    text, stream, _ = cri_text(how, data, p, end)
    earlier, earlier_stream, is_cut = cri_text(how, data, before, before_end)
    if text < 0:
        return earlier < 0 and not goes_on(data, before, before_end, p, end)
    if earlier < 0:
        return True
    is_same = same_stream(data, stream, earlier_stream)
    if is_cut and is_same:
        return False
    if not is_same and text < end and is_indented(data, text, end):
        return True  # it goes on with an earlier line, which is of no record here
    return (text < end and data[np.uint64(text)] == OPEN_MAP) or not goes_on(data, earlier, before_end, text, end)


@part
def begins_docker(data, before, before_end, p, end):
    """The same of Docker's lines."""
    if before >= before_end:
        return True
    text, text_stop, goes_on_behind = docker_text(data, p, end)
    earlier, earlier_stop, is_cut = docker_text(data, before, before_end)
    if text < 0 or earlier < 0:
        return True
    is_same = docker_stream(data, text_stop, end) == docker_stream(data, earlier_stop, before_end)
    if is_cut and is_same:
        return False
    text_stop -= 0 if goes_on_behind else 2  # its newline
    earlier_stop -= 0 if is_cut else 2
    if not is_same and text < text_stop and is_indented(data, text, text_stop):
        return True
    return (text < text_stop and data[np.uint64(text)] == OPEN_MAP) or not goes_on(
        data, earlier, earlier_stop, text, text_stop
    )


@part
def put_said(data, p, stop, end, out, o, key, size, levels,
             program, classes, fields, keys, slots, stack, seen, latest):  # fmt: skip
    """What a container wrote, data[p:stop] in its first line: the level that its text has, and its fields. The pattern
    is of lines of programs that mostly run in containers; what it finds stands beside the text."""
    begin = skip_blanks(data, p, stop)
    if begin < stop and _MAY_FIT[data[np.uint64(begin)]]:
        last = without_blanks(data, begin, stop)
        if matched(data, begin, last, program, classes, slots, stack, seen) >= 0:
            after = without_blanks(data, p, end)
            o = put_quoted(data, p, after, out, put_key(key, np.int64(0), size, out, o))
            o, _ = put_groups(data, end, fields, keys, out, o, slots, levels, latest)
            return o
    if begin < stop and data[np.uint64(begin)] != OPEN_MAP and out[np.uint64(o - 1)] != OPEN_MAP:
        o = put_level(data, p, stop, out, o)
    return put_body(data, p, stop, end, out, o, key, 0, size, levels)


@part
def put_cri(how, data, start, end, out, o, spare, levels,
            program, classes, fields, keys, slots, stack, seen, latest):  # fmt: skip
    """A record of CRI: its time and stream, and what its lines say; -1 where its first line is no such."""
    stop, following = line_end(data, start, end)
    text, stream, is_cut = cri_text(how, data, start, stop)
    if text < 0:
        return np.int64(-1)
    o = put_byte(out, o, OPEN_MAP)
    o = put_bytes(_TIME, 0, _TIME_SIZE, out, o)
    after = stream if how != STAMPED else text
    after -= np.int64(data[np.uint64(after - 1)] == SPACE)
    o = put_byte(out, put_escaped(data, start, after, out, o), QUOTE)
    if how != STAMPED:
        o = put_bytes(_STREAM, 0, _STREAM_SIZE, out, o)
        o = put_byte(out, put_bytes(data, stream, 6, out, o), QUOTE)
    if following >= end:
        o = put_said(
            data, text, stop, stop, out, o, _MESSAGE, _MESSAGE_SIZE, levels,
            program, classes, fields, keys, slots, stack, seen, latest
        )  # fmt: skip
        return put_byte(out, o, CLOSE_MAP)
    at = put_bytes(data, text, stop - text, spare, np.int64(0))
    body = np.int64(-1)  # where the first line that is not cut ends
    while following < end:
        p = following
        stop, following = line_end(data, p, end)
        was_cut = is_cut
        text, stream, is_cut = cri_text(how, data, p, stop)
        if text < 0:
            text = p
        if not was_cut:
            body = at if body < 0 else body
            at = put_byte(spare, at, NEWLINE)
        at = put_bytes(data, text, stop - text, spare, at)
    body = at if body < 0 else body
    put_slack(spare, at)
    o = put_said(
            spare, np.int64(0), body, at, out, o, _MESSAGE, _MESSAGE_SIZE, levels,
            program, classes, fields, keys, slots, stack, seen, latest
        )  # fmt: skip
    return put_byte(out, o, CLOSE_MAP)


@part
def put_docker(data, start, end, out, o, spare, levels,
            program, classes, fields, keys, slots, stack, seen, latest):  # fmt: skip
    """A record of Docker's: what is beside `log` in its first line, and what its lines say; -1 where that is none."""
    broken = np.int64(-1)
    stop, following = line_end(data, start, end)
    text, text_stop, is_cut = docker_text(data, start, stop)
    if text < 0:
        return broken
    o = put_byte(out, o, OPEN_MAP)
    after = without_blanks(data, text_stop, stop)
    p = skip_blanks(data, text_stop + 1, after)
    if data[np.uint64(after - 1)] != CLOSE_MAP:
        return broken
    if data[np.uint64(p)] == COMMA:
        p = skip_blanks(data, p + 1, after)
        o = put_bytes(data, p, without_blanks(data, p, after - 1) - p, out, o)
    elif p != after - 1:
        return broken
    _, at = put_text(data, text, spare, np.int64(0))
    if _ < 0:
        return broken
    body = broken  # where the first line that is not cut ends
    while following < end:
        p = following
        stop, following = line_end(data, p, end)
        was_cut = is_cut
        text, text_stop, is_cut = docker_text(data, p, stop)
        if text < 0:
            continue
        if not was_cut and body < 0:
            body = at
        _, at = put_text(data, text, spare, at)
        if _ < 0:
            return broken
    body = at if body < 0 else body
    put_slack(spare, at)
    o = put_said(
            spare, np.int64(0), without_blanks(spare, np.int64(0), body), at, out, o, _LOG, _LOG_SIZE, levels,
            program, classes, fields, keys, slots, stack, seen, latest
        )  # fmt: skip
    return put_byte(out, o, CLOSE_MAP)
