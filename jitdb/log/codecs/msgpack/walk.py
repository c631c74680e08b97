"""Walking msgpack without decoding it: how far a value reaches, and where a field lies.

A first byte says all: a small value in itself, how many bytes follow, or how many bytes the length has. Containers
count their parts instead of their bytes, so finding the end of one means stepping over everything in it.
"""

from __future__ import annotations

from typing import Final

from jitdb.common.paths import Keys
from jitdb.errors import DecodeError
from jitdb.log.codecs.base import Buffer, encoded_path
from jitdb.log.codecs.fields.constants import MAX_NESTING

# By first byte. _SIZE: bytes of the value with its head where the head alone says so, else 0.
# _WIDTH: bytes of the length (or count) behind the head, else 0. _EXTRA: bytes between that length and the data.
_SIZE: Final = [0] * 256
_WIDTH: Final = [0] * 256
_EXTRA: Final = [0] * 256
_PARTS: Final = [0] * 256  # values an item of the count stands for: 1 in an array, 2 in a map, else 0

for _head in (*range(0x80), 0xC0, 0xC2, 0xC3, *range(0xE0, 0x100)):  # small integers, nil, booleans
    _SIZE[_head] = 1
for _head in range(0xA0, 0xC0):  # strings up to 31 bytes
    _SIZE[_head] = 1 + _head - 0xA0
for _head, _size in zip(range(0xCA, 0xD4), (4, 8, 1, 2, 4, 8, 1, 2, 4, 8), strict=True):  # floats, uints, ints
    _SIZE[_head] = 1 + _size
for _head, _size in zip(range(0xD4, 0xD9), (1, 2, 4, 8, 16), strict=True):  # extensions of a fixed size
    _SIZE[_head] = 2 + _size
for _heads in ((0xC4, 0xC5, 0xC6), (0xC7, 0xC8, 0xC9), (0xD9, 0xDA, 0xDB)):  # bytes, extensions, strings
    for _head, _size in zip(_heads, (1, 2, 4), strict=True):
        _WIDTH[_head] = _size
        _EXTRA[_head] = 1 if 0xC7 <= _head <= 0xC9 else 0
for _head in range(0x80, 0xA0):  # small maps and arrays
    _PARTS[_head] = 2 if _head < 0x90 else 1
for _head, _size in ((0xDC, 2), (0xDD, 4), (0xDE, 2), (0xDF, 4)):  # arrays and maps
    _WIDTH[_head] = _size
    _PARTS[_head] = 2 if _head > 0xDD else 1

_CONTAINERS: Final = bytes((*range(0x80, 0xA0), *range(0xDC, 0xE0)))
_NOT_CONTAINERS: Final = bytes(set(range(256)) - set(_CONTAINERS))
_LARGE: Final = 4096


def is_suspect(record: Buffer) -> bool:
    """Whether `record` must be checked before the C decoder may have it; most are not, and this costs a microsecond.

    The decoder makes room for as many elements as an array claims to have, at every level: a large record of nested
    false claims would cost it gigabytes. It also nests deeper than MAX_NESTING.
    """
    size = len(record)
    if size <= MAX_NESTING:
        return False
    record = bytes(record)
    if size > _LARGE and (b"\xdc" in record or b"\xdd" in record):
        return True
    return len(record.translate(None, _NOT_CONTAINERS)) > MAX_NESTING


def skip(record: bytes, position: int) -> int:
    """Where the value at `position` ends. Raises DecodeError when it does not end inside the record."""
    return check(record, position, len(record))


def check(record: bytes, position: int = 0, levels: int = MAX_NESTING) -> int:
    """As `skip`; also refuses containers nested deeper than so many levels."""
    p = position
    todo = 1
    stack: list[int] = []
    try:
        while True:
            while not todo:
                if not stack:
                    if p > len(record):
                        raise _ends_inside(record)
                    return p
                todo = stack.pop()
            head = record[p]
            todo -= 1
            size = _SIZE[head]
            if size:
                p += size
                continue
            count, p = _read_count(record, p)
            if not _PARTS[head]:
                p += count
                continue
            stack.append(todo)
            if len(stack) > levels:
                raise DecodeError(f"containers are nested deeper than {levels} levels at byte {p}", position=p)
            todo = count * _PARTS[head]
    except IndexError:
        raise _ends_inside(record) from None


def find_span(record: bytes, path: Keys) -> tuple[int, int] | None:
    """Start and end of the value at `path`, or None. Raises DecodeError when the record is malformed on the way."""
    position, end = 0, len(record)
    for wanted in encoded_path(path):
        if not record or _PARTS[record[position]] != 2:
            return None
        count, p = _read_count(record, position)
        found = found_end = -1
        for _ in range(count):
            value = skip(record, p)
            matches = _is_string(record, p, value, wanted)
            p = skip(record, value)
            if matches:
                found, found_end = value, p
        if p != end:
            raise DecodeError(f"{end - p} bytes follow the value", position=p)
        if found < 0:
            return None
        position, end = found, found_end
    return position, end


def _is_string(record: bytes, start: int, end: int, wanted: bytes) -> bool:
    """Whether the value [start, end) is the string `wanted`, in whichever of the four forms a string has."""
    head = record[start]
    if 0xA0 <= head < 0xC0:
        body = start + 1
    elif 0xD9 <= head <= 0xDB:
        body = start + 1 + _WIDTH[head]
    else:
        return False
    return end - body == len(wanted) and record.startswith(wanted, body)


def _read_count(record: bytes, p: int) -> tuple[int, int]:
    """The length or count of the value at `p`, and where its data begins."""
    head = record[p]
    width = _WIDTH[head]
    if width:
        data = p + 1 + width
        if data > len(record):
            raise _ends_inside(record)
        return int.from_bytes(record[p + 1 : data], "big") + _EXTRA[head], data
    if _PARTS[head]:
        return head & 15, p + 1
    raise DecodeError(f"byte {p} is {head:#x}, which msgpack never uses", position=p)


def _ends_inside(record: bytes) -> DecodeError:
    return DecodeError("the record ends inside a value", position=len(record))
