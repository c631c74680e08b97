"""OpenTelemetry's values, for kernels: `attributes`, which are arrays of key and value, become maps of plain values.

    [{"key": "a", "value": {"intValue": "1"}}]  ->  {"a":1}

A value that is none, or has more than one kind, is copied as it stands; so is an array of attributes in which anything
is more or less than a key and its value. Attributes that stand as above are read once. Others are looked at whole
first, because members may stand in any order, or twice; what is nested in them is read again a level, and MAX_NESTING
bounds the levels.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.fields.constants import BROKEN, MAX_NESTING
from jitdb.log.codecs.fields.part_kernels import same_bytes
from jitdb.log.codecs.json.numbers import fits_word, read_digits
from jitdb.log.codecs.json.read import scalar_end, skip_blanks, text_end
from jitdb.log.codecs.json.text import (
    CLOSE_ARRAY,
    CLOSE_MAP,
    COLON,
    COMMA,
    MINUS,
    OPEN_ARRAY,
    OPEN_MAP,
    QUOTE,
    put_text,
)
from jitdb.log.lines.formats.kernels.writing import put_byte, put_bytes
from jitdb.log.lines.line_kernels import value_end

# What a key is: the kinds of values; what an attribute has, and an array of values; what holds attributes or a value.
EMPTY, OTHER = -1, 0
STRING, BOOL, INT, DOUBLE, BYTES, ARRAY, LIST = range(1, 8)
KEY, VALUE, VALUES, BODY, ATTRIBUTES = range(8, 13)

_NAMES = (b"", b"stringValue", b"boolValue", b"intValue", b"doubleValue", b"bytesValue", b"arrayValue", b"kvlistValue",
          b"key", b"value", b"values", b"body", b"attributes", b"filteredAttributes", b"metadata")  # fmt: skip
_TEXT = np.frombuffer(b"".join(_NAMES), np.uint8)
_SIZES = np.array([len(name) for name in _NAMES], np.int64)
_STARTS = np.cumsum(_SIZES) - _SIZES
_END = len(_NAMES)
_MOST_KEY = 6 * max(map(len, _NAMES))  # bytes of a key with escapes that may be one of these
_MOST_DIGITS = 20  # of an integer of 64 bits
_NULL = np.frombuffer(b"null        ", np.uint8)
_ZERO, _NINE, _N, _I, _T, _F = 48, 57, 78, 73, 116, 102

# Of an open array: of values or of attributes, where what it stands for begins, where that is written, where it ends,
# and where the attribute ends that is written.
_KIND, _START, _OUT, _BEHIND, _ENTRY = range(5)
_FRAME = 5

_AT_VALUE, _AT_ENTRY, _BEHIND_VALUE, _RAW = range(4)


@part
def next_key(data, p, end, first, last, out, o):
    """The key at `p`, which of these names it is, and where its value begins; BROKEN for that where it is none."""
    broken = np.int64(BROKEN)
    nothing = np.int64(OTHER)
    if p >= end or data[np.uint64(p)] != QUOTE:
        return nothing, broken
    key = p + 1
    stop, is_plain = text_end(data, key, end)
    if stop < 0:
        return nothing, broken
    p = skip_blanks(data, stop + 1, end)
    if p >= end or data[np.uint64(p)] != COLON:
        return nothing, broken
    p = skip_blanks(data, p + 1, end)
    if p >= end:
        return nothing, broken
    size = stop - key
    if not is_plain:
        if size > _MOST_KEY:
            return nothing, p
        _, after = put_text(data, key, out, o)
        size = after - o
    for row in range(first, last):
        if size == _SIZES[row]:
            is_same = (
                same_bytes(data, key, _TEXT, _STARTS[row], size)
                if is_plain
                else same_bytes(out, o, _TEXT, _STARTS[row], size)
            )
            if is_same:
                return np.int64(min(row, ATTRIBUTES)), p
    return nothing, p


@part
def only_member(data, p, end, first, last, levels, out, o):
    """Of a map whose keys are one of these names, and all the same: which, where the last value begins, where the map
    ends. OTHER of another map, EMPTY of one without members; BROKEN for where it ends, if it is no JSON."""
    broken, other = np.int64(BROKEN), np.int64(OTHER)
    found = np.int64(EMPTY)
    p = skip_blanks(data, p + 1, end)
    if p < end and data[np.uint64(p)] == CLOSE_MAP:
        return found, p, p + 1
    while True:
        kind, at = next_key(data, p, end, first, last, out, o)
        if at < 0:
            return other, broken, broken
        p = value_end(data, at, end, levels, np.int64(0))
        if p < 0:
            return other, broken, broken
        found = kind if found == EMPTY or found == kind else other
        p = skip_blanks(data, p, end)
        if p < end and data[np.uint64(p)] == CLOSE_MAP:
            return found, at, p + 1
        if p >= end or data[np.uint64(p)] != COMMA:
            return other, broken, broken
        p = skip_blanks(data, p + 1, end)


@part
def entry_of(data, p, end, levels, out, o):
    """Of an attribute: where its key and its value begin, and where it ends. -1 where there is none; no key where it
    is something else. BROKEN for where it ends, if it is no JSON."""
    broken, nothing = np.int64(BROKEN), np.int64(-1)
    key, value = nothing, nothing
    is_other = False
    p = skip_blanks(data, p + 1, end)
    if p < end and data[np.uint64(p)] == CLOSE_MAP:
        return key, value, p + 1
    while True:
        kind, at = next_key(data, p, end, KEY, VALUES, out, o)
        if at < 0:
            return key, value, broken
        if kind == KEY:
            key = at
        elif kind == VALUE:
            value = at
        else:
            is_other = True
        p = value_end(data, at, end, levels, np.int64(0))
        if p < 0:
            return key, value, broken
        p = skip_blanks(data, p, end)
        if p < end and data[np.uint64(p)] == CLOSE_MAP:
            is_other = is_other or key < 0 or data[np.uint64(key)] != QUOTE
            return (nothing if is_other else key), value, p + 1
        if p >= end or data[np.uint64(p)] != COMMA:
            return key, value, broken
        p = skip_blanks(data, p + 1, end)


@part
def is_integer(text, p, end):
    """Whether these bytes spell an integer of 64 bits as JSON has it."""
    negative = p < end and text[np.uint64(p)] == MINUS
    first = p + 1 if negative else p
    count = end - first
    if count < 1 or count > _MOST_DIGITS or (count > 1 and text[np.uint64(first)] == _ZERO):
        return False
    for at in range(first, end):
        if text[np.uint64(at)] < _ZERO or text[np.uint64(at)] > _NINE:
            return False
    text[np.uint64(end)] = 0  # the digits end here
    _, digits = read_digits(text, first, np.uint64(0))
    return fits_word(digits, count, text[np.uint64(first)], negative)


@part
def put_plain(data, kind, p, end, out, o):
    """The value of this kind at `p`: where it ends, and where what is written ends; -1 where it is another one."""
    nothing = np.int64(-1)
    char = data[np.uint64(p)]
    if char == QUOTE:
        if kind == BOOL or kind > BYTES:
            return nothing, o
        stop, _ = text_end(data, p + 1, end)
        if stop < 0:
            return nothing, o
        if kind == INT:
            if stop - p > 6 * (_MOST_DIGITS + 1):
                return nothing, o
            _, after = put_text(data, p + 1, out, o)
            return (stop + 1 if is_integer(out, o, after) else nothing), after
        return stop + 1, put_bytes(data, p, stop + 1 - p, out, o)
    is_number = char == MINUS or _ZERO <= char <= _NINE or char == _N or char == _I
    if not (is_number and (kind == INT or kind == DOUBLE)) and not (kind == BOOL and (char == _T or char == _F)):
        return nothing, o
    after = scalar_end(data, p, end)
    return (nothing, o) if after < 0 else (after, put_bytes(data, p, after - p, out, o))


@part
def put_plain_entry(data, p, end, out, o):
    """An attribute with a plain value, whose members stand in their order: where it ends, and where what is written
    ends; -1 where it is any other."""
    nothing = np.int64(-1)
    kind, at = next_key(data, skip_blanks(data, p + 1, end), end, KEY, VALUES, out, o)
    if kind != KEY or data[np.uint64(at)] != QUOTE:
        return nothing, o
    stop, _ = text_end(data, at + 1, end)
    if stop < 0:
        return nothing, o
    p = skip_blanks(data, stop + 1, end)
    if p >= end or data[np.uint64(p)] != COMMA:
        return nothing, o
    o = put_byte(out, put_bytes(data, at, stop + 1 - at, out, o), COLON)
    kind, p = next_key(data, skip_blanks(data, p + 1, end), end, KEY, VALUES, out, o)
    if kind != VALUE or data[np.uint64(p)] != OPEN_MAP:
        return nothing, o
    kind, p = next_key(data, skip_blanks(data, p + 1, end), end, STRING, KEY, out, o)
    if kind == OTHER or p < 0:
        return nothing, o
    p, o = put_plain(data, kind, p, end, out, o)
    for _ in range(2):
        if p < 0:
            return nothing, o
        p = skip_blanks(data, p, end)
        p = p + 1 if p < end and data[np.uint64(p)] == CLOSE_MAP else nothing
    return p, o


@part
def array_in(data, p, end, levels, out, o):
    """Of the value of an array or of attributes: where its array begins (where it ends, if there is none), and where
    it ends; -1 where it is another one."""
    nothing = np.int64(-1)
    if data[np.uint64(p)] != OPEN_MAP:
        return nothing
    kind, at, behind = only_member(data, p, end, VALUES, BODY, levels, out, o)
    if behind < 0 or kind == OTHER or (kind == VALUES and data[np.uint64(at)] != OPEN_ARRAY):
        return nothing
    return at


@part
def put_unwrapped(data, p, end, kind, out, o, levels, frames, base):
    """The value at `p`, or the attributes (ATTRIBUTES), as plain values: where it ends, BROKEN where it is no JSON, and
    where what is written ends. `frames` has room from `base` on."""
    broken = np.int64(BROKEN)
    frame = np.int64(base - _FRAME)  # of the innermost array
    state = _AT_VALUE
    behind = np.int64(-1)
    start = p
    while True:
        if kind == ARRAY or kind == LIST or kind == ATTRIBUTES:  # its array begins at p
            frame += _FRAME
            if frame + _FRAME > frames.shape[0]:
                return broken, o
            frames[frame + _KIND] = kind
            frames[frame + _START] = start
            frames[frame + _OUT] = o
            frames[frame + _BEHIND] = behind
            o = put_byte(out, o, OPEN_ARRAY if kind == ARRAY else OPEN_MAP)
            char = data[np.uint64(p)]
            at = skip_blanks(data, p + 1, end) if char == OPEN_ARRAY else p
            if at >= end:
                return broken, o
            if data[np.uint64(at)] == CLOSE_ARRAY or char != OPEN_ARRAY:
                o = put_byte(out, o, CLOSE_ARRAY if kind == ARRAY else CLOSE_MAP)
                p = behind if behind >= 0 else at + 1
                frame -= _FRAME
                state = _BEHIND_VALUE
            else:
                p = at
                state = _AT_VALUE if kind == ARRAY else _AT_ENTRY
            kind = np.int64(OTHER)
        elif state == _AT_VALUE:
            start = p
            state = _BEHIND_VALUE
            if data[np.uint64(p)] != OPEN_MAP:
                p = value_end(data, p, end, levels, np.int64(0))
                if p < 0:
                    return broken, o
                o = put_bytes(data, start, p - start, out, o)
                continue
            kind, at, behind = only_member(data, p, end, STRING, KEY, levels, out, o)
            if behind < 0:
                return broken, o
            p = np.int64(-1)
            if kind == EMPTY:
                p, o = behind, put_bytes(_NULL, 0, 4, out, o)
            elif kind == ARRAY or kind == LIST:
                p = array_in(data, at, end, levels, out, o)
                if p >= 0:
                    continue
            elif kind != OTHER:
                p, after = put_plain(data, kind, at, end, out, o)
                o = after if p >= 0 else o
            if p < 0:
                o = put_bytes(data, start, behind - start, out, o)
            p = behind
            kind = np.int64(OTHER)
        elif state == _AT_ENTRY:
            state = _RAW
            if data[np.uint64(p)] != OPEN_MAP:
                continue
            at, after = put_plain_entry(data, p, end, out, o)
            if at >= 0:
                frames[frame + _ENTRY] = at
                o = after
                state = _BEHIND_VALUE
                continue
            at, p, behind = entry_of(data, p, end, levels, out, o)
            if behind < 0:
                return broken, o
            if at < 0:
                continue
            stop, _ = text_end(data, at + 1, end)
            o = put_byte(out, put_bytes(data, at, stop + 1 - at, out, o), COLON)
            frames[frame + _ENTRY] = behind
            state = _AT_VALUE if p >= 0 else _BEHIND_VALUE
            if p < 0:
                o = put_bytes(_NULL, 0, 4, out, o)
        elif state == _RAW:  # what the innermost array belongs to is of another shape
            start, o, p = frames[frame + _START], frames[frame + _OUT], frames[frame + _BEHIND]
            if p < 0:
                p = value_end(data, start, end, levels, np.int64(0))
                if p < 0:
                    return broken, o
            o = put_bytes(data, start, p - start, out, o)
            frame -= _FRAME
            state = _BEHIND_VALUE
        else:
            if frame < base:
                return p, o
            is_array = frames[frame + _KIND] == ARRAY
            p = skip_blanks(data, p if is_array else frames[frame + _ENTRY], end)
            char = data[np.uint64(p)] if p < end else np.uint8(0)
            p += 1
            if char == COMMA:
                o = put_byte(out, o, COMMA)
                p = skip_blanks(data, p, end)
                if p >= end:
                    return broken, o
                state = _AT_VALUE if is_array else _AT_ENTRY
            elif char == CLOSE_ARRAY:
                o = put_byte(out, o, CLOSE_ARRAY if is_array else CLOSE_MAP)
                p = frames[frame + _BEHIND] if frames[frame + _BEHIND] >= 0 else p
                frame -= _FRAME
            else:
                return broken, o


@part
def put_telemetry(data, p, end, is_record, out, o, levels, frames):
    """The map at `p` without its opening brace: where it ends, BROKEN where it is no JSON, and where what is written
    ends. Its attributes, those of all in it, and the body of a record are plain values."""
    broken = np.int64(BROKEN)
    level = np.int64(0)
    is_map = False
    copied = np.int64(p + 1)
    while True:
        if p >= end:
            return broken, o
        char = data[np.uint64(p)]
        if char == OPEN_MAP or char == OPEN_ARRAY:
            if level == MAX_NESTING:
                return broken, o
            frames[level] = is_map
            level += 1
            is_map = char == OPEN_MAP
            p = skip_blanks(data, p + 1, end)
            is_behind = p < end and data[np.uint64(p)] == (CLOSE_MAP if is_map else CLOSE_ARRAY)
        else:
            p = scalar_end(data, p, end)
            if p < 0:
                return broken, o
            is_behind = True
        while True:
            if is_behind:
                p = skip_blanks(data, p, end)
                if p >= end:
                    return broken, o
                char = data[np.uint64(p)]
                p += 1
                if char != COMMA:
                    if char != (CLOSE_MAP if is_map else CLOSE_ARRAY):
                        return broken, o
                    level -= 1
                    if level == 0:
                        return p, put_bytes(data, copied, p - copied, out, o)
                    is_map = frames[level] != 0
                    continue
                p = skip_blanks(data, p, end)
            if not is_map:
                break
            kind, p = next_key(data, p, end, BODY, _END, out, o)
            if p < 0:
                return broken, o
            char = data[np.uint64(p)]
            is_body = kind == BODY and level == 1 and is_record and char == OPEN_MAP
            if not is_body and not (kind == ATTRIBUTES and char == OPEN_ARRAY):
                break
            o = put_bytes(data, copied, p - copied, out, o)
            kind = np.int64(OTHER if is_body else ATTRIBUTES)
            p, o = put_unwrapped(data, p, end, kind, out, o, levels, frames, MAX_NESTING + 1)
            if p < 0:
                return broken, o
            copied = p
            is_behind = True
