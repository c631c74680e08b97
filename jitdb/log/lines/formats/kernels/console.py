"""An event of structlog's console, for kernels: `event   [logger] key=value other='a value'`.

Colours of a terminal may stand around each part, and end the event. Else an event is padded to 30 characters: two
blanks end it, or one behind that many bytes, or one before what is pairs alone.

A value is as Python's repr() has it. It goes on to the blank before the next key, but not within quotes and brackets:
`items=[1, 2] at=<Foo object>`. It is a number where it spells one, or True, False or None; others are text.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.json.text import BACKSLASH, COLON, COMMA, OPEN_MAP, QUOTE, SPACE
from jitdb.log.lines.formats.kernels.levels import before_colours, behind_blanks
from jitdb.log.lines.formats.kernels.traces import begins_with
from jitdb.log.lines.formats.kernels.writing import (
    put_byte,
    put_bytes,
    put_escaped,
    put_key,
    put_quoted,
    put_scalar,
    without_blanks,
)

_PADDED = 30  # bytes of an event that one blank may end
_LOGGER = np.frombuffer(b'"logger":........', np.uint8)
_LOGGER_SIZE = 9
_EQUALS, _SINGLE, _ESC, _BRACKET, _CLOSE, _SEMICOLON, _ZERO, _NINE = 61, 39, 27, 91, 93, 59, 48, 57
_M, _N, _R, _T, _X = 109, 110, 114, 116, 120
_LETTERS = np.array([bytes([byte]).isalpha() or byte == 95 or byte >= 128 for byte in range(256)], np.bool_)
_KEYS = np.array([bytes([byte]).isalnum() or byte in b"_.-" or byte >= 128 for byte in range(256)], np.bool_)
_HEX = np.array([bytes([byte]) in b"0123456789abcdef" and byte > 0 for byte in range(256)], np.bool_)
_DEPTHS = np.zeros(256, np.int64)
_DEPTHS[list(b"([{<")] = 1
_DEPTHS[list(b")]}>")] = -1
_TRUE = np.frombuffer(b"True", np.uint8)
_FALSE = np.frombuffer(b"False", np.uint8)
_NONE = np.frombuffer(b"None", np.uint8)
_LITERALS = np.frombuffer(b"true    false   null    ........", np.uint8)


@part
def behind_colours(data, p, end):
    """Where text goes on behind what says at `p` how a terminal shows it, as `ESC[31m` does."""
    while p + 2 < end and data[np.uint64(p)] == _ESC and data[np.uint64(p + 1)] == _BRACKET:
        q = p + 2
        while q < end and (_ZERO <= data[np.uint64(q)] <= _NINE or data[np.uint64(q)] == _SEMICOLON):
            q += 1
        if q >= end or data[np.uint64(q)] != _M:
            break
        p = q + 1
    return p


@part
def shown_key_end(data, p, end):
    """Where the key ends that begins at `p`, and where its value begins; -1 where no key does."""
    first = p
    while p < end and _KEYS[data[np.uint64(p)]]:
        p += 1
    value = behind_colours(data, p, end)
    is_one = first < p and _LETTERS[data[np.uint64(first)]] and value < end and data[np.uint64(value)] == _EQUALS
    return p, (np.int64(value + 1) if is_one else np.int64(-1))


@part
def shown_end(data, p, end):
    """Where the value that begins at `p` ends: before the next key, or at the end. Brackets that are not closed are
    none."""
    first = p
    depth, quote, open_end = np.int64(0), np.int64(0), np.int64(end)
    while p < end:
        char = data[np.uint64(p)]
        if char == SPACE:
            _, value = shown_key_end(data, behind_colours(data, behind_blanks(data, p, end), end), end)
            if value >= 0 and depth <= 0 and quote == 0:
                return np.int64(p)
            open_end = min(open_end, p) if value >= 0 else open_end
        elif quote:
            if char == BACKSLASH:
                p += 1
            elif char == quote and depth == 0:
                return np.int64(p + 1)
            elif char == quote:
                quote = np.int64(0)
        elif (char == _SINGLE or char == QUOTE) and (p == first or depth > 0):
            quote = np.int64(char)
        elif char != _BRACKET or data[np.uint64(max(first, p - 1))] != _ESC:
            depth += _DEPTHS[char]
        p += 1
    return open_end if depth > 0 else np.int64(end)


@part
def put_shown_text(data, p, end, out, o):
    """A text as repr() writes it between its quotes."""
    o = put_byte(out, o, QUOTE)
    while p < end:
        first = p
        while p < end and data[np.uint64(p)] != BACKSLASH:
            p += 1
        o = put_escaped(data, first, p, out, o)
        if p >= end:
            break
        char = data[np.uint64(p + 1)] if p + 1 < end else np.uint8(0)
        if char == _N or char == _R or char == _T:
            o = put_byte(out, put_byte(out, o, BACKSLASH), char)
            p += 2
        elif char == BACKSLASH or char == _SINGLE or char == QUOTE:
            o = put_escaped(data, p + 1, p + 2, out, o)
            p += 2
        elif char == _X and p + 3 < end and _HEX[data[np.uint64(p + 2)]] and _HEX[data[np.uint64(p + 3)]]:
            o = put_byte(out, put_byte(out, o, BACKSLASH), 117)
            o = put_bytes(data, p + 2, 2, out, put_byte(out, put_byte(out, o, _ZERO), _ZERO))
            p += 4
        else:
            o = put_escaped(data, p, p + 1, out, o)
            p += 1
    return put_byte(out, o, QUOTE)


@part
def put_shown(data, p, end, out, o):
    """A value."""
    size = end - p
    char = data[np.uint64(p)] if size else np.uint8(0)
    if char == _SINGLE or char == QUOTE:  # one that does not close was cut
        is_closed = size >= 2 and data[np.uint64(end - 1)] == char
        return put_shown_text(data, p + 1, end - 1 if is_closed else end, out, o)
    if size == 4 and begins_with(data, p, end, _TRUE):
        return put_bytes(_LITERALS, 0, 4, out, o)
    if size == 5 and begins_with(data, p, end, _FALSE):
        return put_bytes(_LITERALS, 8, 5, out, o)
    if size == 4 and begins_with(data, p, end, _NONE):
        return put_bytes(_LITERALS, 16, 4, out, o)
    return put_scalar(data, p, end, out, o)


@part
def put_shown_pairs(data, p, end, out, o):
    """The keys and values of data[p:end], as members of an object."""
    while p < end:
        p = behind_colours(data, behind_blanks(data, p, end), end)
        after, value = shown_key_end(data, p, end)
        if value < 0:
            p += 1
            continue
        if out[np.uint64(o - 1)] != OPEN_MAP:
            o = put_byte(out, o, COMMA)
        o = put_byte(out, put_quoted(data, p, after, out, o), COLON)
        first = behind_colours(data, value, end)
        p = shown_end(data, first, end)
        last = before_colours(data, first, without_blanks(data, first, p))
        o = put_shown(data, first, last, out, o)
    return o


@part
def logger_at(data, p, end):
    """Where the name in brackets at `p` begins and ends, and what is behind it begins; -1 where there is none."""
    nothing = np.int64(-1)
    first = behind_colours(data, p + 1, end) if p < end and data[np.uint64(p)] == _BRACKET else np.int64(end)
    q = first
    while q < end and _KEYS[data[np.uint64(q)]]:
        q += 1
    stop = behind_colours(data, q, end)
    if first >= q or not _LETTERS[data[np.uint64(first)]] or stop >= end or data[np.uint64(stop)] != _CLOSE:
        return nothing, nothing, nothing
    return np.int64(first), np.int64(q), np.int64(behind_colours(data, stop + 1, end))


@part
def begins_pairs(data, p, end):
    """Whether a key and its value stand at `p`."""
    _, value = shown_key_end(data, behind_colours(data, behind_blanks(data, p, end), end), end)
    return value >= 0


@part
def ends_event(data, p, end):
    """Whether a logger or pairs stand at `p`."""
    _, _, behind = logger_at(data, p, end)
    if behind < 0:
        return begins_pairs(data, p, end)
    return behind_blanks(data, behind, end) == end or (
        data[np.uint64(behind)] == SPACE and begins_pairs(data, behind, end)
    )


@part
def are_shown_pairs(data, p, end):
    """Whether pairs alone stand between `p` and the end, perhaps behind a logger."""
    _, _, behind = logger_at(data, p, end)
    p = behind_blanks(data, max(p, behind), end)
    is_one = p < end
    while p < end and is_one:
        _, value = shown_key_end(data, p, end)
        is_one = value >= 0
        p = max(p, value)
        quote = data[np.uint64(p)] if p < end else np.uint8(0)
        if quote == _SINGLE or quote == QUOTE:
            p += 1
            while p < end and data[np.uint64(p)] != quote:
                p += 1
        while p < end and data[np.uint64(p)] != SPACE:
            p += 1
        p = behind_blanks(data, p, end)
    return is_one


@part
def event_end(data, p, end):
    """Where the event ends that begins at `p` without colours, and where what follows begins."""
    first = p
    while p < end:
        if data[np.uint64(p)] != SPACE:
            p += 1
            continue
        after = behind_blanks(data, p, end)
        if (after - p > 1 or p - first >= _PADDED) and ends_event(data, after, end):
            return np.int64(p), np.int64(after)
        p = after
    for q in range(first, min(end, first + _PADDED)):
        if data[np.uint64(q)] == SPACE and are_shown_pairs(data, q + 1, end):
            return np.int64(q), np.int64(q + 1)
    return np.int64(end), np.int64(end)


@part
def put_shown_event(data, p, end, out, o, keys, key, size):
    """The members event and logger, and the pairs behind them. keys, key, size: where the key of the event stands."""
    end = without_blanks(data, p, end)
    first = behind_colours(data, p, end)
    stop = np.int64(first)
    if first > p:
        while stop < end and data[np.uint64(stop)] != _ESC:
            stop += 1
        after = behind_blanks(data, behind_colours(data, stop, end), end)
        if after < end and not ends_event(data, after, end):
            first, stop, after = p, end, end
    else:
        stop, after = event_end(data, np.int64(first), end)
    o = put_quoted(data, first, without_blanks(data, first, stop), out, put_key(keys, key, size, out, o))
    name, name_end, behind = logger_at(data, after, end)
    if behind >= 0:
        o = put_bytes(_LOGGER, 0, _LOGGER_SIZE, out, put_byte(out, o, COMMA))
        o = put_quoted(data, name, name_end, out, o)
        after = behind
    return put_shown_pairs(data, after, end, out, o)
