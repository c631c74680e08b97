"""Reading bipf: one loop and an explicit stack, so that depth costs no recursion.

Each value's end is checked against its container's, and the loop's `IndexError` against the record's, so nothing
outside a value's own bytes is ever taken for part of it.
"""

from __future__ import annotations

from typing import Any, Final

from jitdb.common.values import UNDEFINED
from jitdb.errors import DecodeError
from jitdb.log.codecs.bipf.format import (
    ARRAY,
    BOOL_TAG,
    BOOLNULL,
    BUFFER,
    DOUBLE,
    DOUBLE_STRUCT,
    DOUBLE_TAG,
    INT,
    INT_STRUCT,
    INT_TAG,
    NULL_TAG,
    OBJECT,
    STRING,
    TYPE_NAMES,
    read_tag,
)
from jitdb.log.codecs.fields.constants import MAX_NESTING

# Keys repeat from record to record: one string object each, its hash already known, is half the time of a key.
_KEYS: dict[bytes, str] = {}
_KEYS_KEPT: Final = 4096  # then the cache starts afresh: records whose keys are data must not fill the memory
_KEY_BYTES_KEPT: Final = 64

_BOOLS: Final = (False, True, UNDEFINED)
_EXACT: Final = 2.0**53  # integers up to here are doubles, one to one


def decode_span(record: bytes, position: int, levels: int = MAX_NESTING) -> tuple[Any, int]:
    """The value at `position`, and where it ends. Raises DecodeError, also for more containers in each other."""
    size = len(record)
    if not 0 <= position < size:
        raise DecodeError(f"position {position} lies outside a record of {size} bytes", position=position)
    tag, body = read_tag(record, position)
    end = body + (tag >> 3)
    if end > size:
        raise DecodeError(
            f"the value at byte {position} needs {end - size} bytes more than the record has", position=position
        )
    kind = tag & 7
    if kind == OBJECT or kind == ARRAY:
        return _decode_container(record, body, end, kind == OBJECT, levels), end
    return _decode_scalar(record, tag, body, end), end


def decode_parts(parts: bytes, keyed: bool) -> Any:
    """The object (`keyed`) or array whose parts these are. Raises DecodeError."""
    return _decode_container(parts, 0, len(parts), keyed, MAX_NESTING)


def _decode_container(record: bytes, p: int, end: int, keyed: bool, levels: int) -> Any:
    """The object or array with the body [p, end)."""
    if levels < 1:
        raise _too_deep(p)
    known_key = _KEYS.get
    read_double = DOUBLE_STRUCT.unpack_from
    read_int = INT_STRUCT.unpack_from
    root: Any = {} if keyed else []
    out = root
    key: Any = None
    value: Any
    stack: list[tuple[Any, int, bool]] = []  # the containers around this one
    try:
        while True:
            if p >= end:
                # A value ends at most where its container does, so the loop meets every end exactly.
                if not stack:
                    return root
                out, end, keyed = stack.pop()
                continue
            if keyed:
                tag = record[p]
                p += 1
                if tag > 127:
                    tag, p = read_tag(record, p - 1)
                if tag & 7:
                    raise _bad_key(tag, p)
                raw = record[p : p + (tag >> 3)]
                p += tag >> 3
                key = known_key(raw)
                if key is None:
                    key = _new_key(raw)
            tag = record[p]
            p += 1
            if tag > 127:
                more = record[p]
                if more < 128:  # two bytes: bodies of 16 to 2,047 bytes, worth the extra branch
                    tag += (more << 7) - 128
                    p += 1
                else:
                    tag, p = read_tag(record, p - 1)
            kind = tag & 7
            stop = p + (tag >> 3)
            if stop > end:
                raise DecodeError(
                    f"the {TYPE_NAMES[kind]} at byte {p} ends {stop - end} bytes behind the container it lies in",
                    position=p,
                )
            if kind == STRING:
                try:
                    value = record[p:stop].decode()
                except UnicodeDecodeError:
                    value = record[p:stop].decode("utf-8", "surrogateescape")
            elif tag == DOUBLE_TAG:
                (value,) = read_double(record, p)
                if value.is_integer() and -_EXACT <= value <= _EXACT:
                    value = int(value)
            elif tag == INT_TAG:
                (value,) = read_int(record, p)
            elif kind == OBJECT or kind == ARRAY:
                stack.append((out, end, keyed))
                if len(stack) >= levels:
                    raise _too_deep(p)
                value = {} if kind == OBJECT else []
                if keyed:
                    out[key] = value
                else:
                    out.append(value)
                out = value
                end = stop
                keyed = kind == OBJECT
                continue
            else:
                value = _decode_scalar(record, tag, p, stop)
            if keyed:
                out[key] = value
            else:
                out.append(value)
            p = stop
    except IndexError:
        raise DecodeError("the record ends inside a value", position=len(record)) from None


def _decode_scalar(record: bytes, tag: int, body: int, end: int) -> Any:
    """The value with this tag, no container, whose body is [body, end), a range inside the record."""
    kind = tag & 7
    if kind == STRING:
        return record[body:end].decode("utf-8", "surrogateescape")
    if kind == BUFFER:
        return record[body:end]
    if tag == INT_TAG:
        return INT_STRUCT.unpack_from(record, body)[0]
    if tag == DOUBLE_TAG:
        value: float = DOUBLE_STRUCT.unpack_from(record, body)[0]
        return int(value) if value.is_integer() and -_EXACT <= value <= _EXACT else value
    if tag == NULL_TAG:
        return None
    if tag == BOOL_TAG and record[body] < 3:
        return _BOOLS[record[body]]
    raise _bad_scalar(record, tag, body)


def _bad_scalar(record: bytes, tag: int, body: int) -> DecodeError:
    """What is wrong with a tag that no reader knows."""
    kind, length = tag & 7, tag >> 3
    if kind == INT or kind == DOUBLE:
        reason = f"a {TYPE_NAMES[kind]} has {4 if kind == INT else 8} bytes, not {length}"
    elif kind == BOOLNULL and length == 1:
        reason = f"a boolean is 0, 1 or 2, not {record[body]}"
    elif kind == BOOLNULL:
        reason = f"a boolean has one byte, not {length}"
    else:
        reason = f"type {kind} is reserved"
    return DecodeError(f"at byte {body}: {reason}", position=body)


def _too_deep(position: int) -> DecodeError:
    return DecodeError(f"containers are nested deeper than {MAX_NESTING} levels at byte {position}", position=position)


def _bad_key(tag: int, position: int) -> DecodeError:
    return DecodeError(f"the key at byte {position} is a {TYPE_NAMES[tag & 7]}, not a string", position=position)


def _new_key(raw: bytes) -> str:
    key = raw.decode("utf-8", "surrogateescape")
    if len(raw) <= _KEY_BYTES_KEPT:
        if len(_KEYS) >= _KEYS_KEPT:
            _KEYS.clear()
        _KEYS[raw] = key
    return key
