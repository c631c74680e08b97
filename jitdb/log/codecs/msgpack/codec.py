"""msgpack, the default of new logs: a published format with readers in every language, and 64-bit integers.

The bytes are written and read by the `msgpack` package. This file adds what a log needs on top of it: every failure
is an EncodeError or DecodeError that says where, hostile records cost no memory, and one field is found in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgpack

from jitdb.common.paths import Keys, Step, format_path
from jitdb.common.values import UNDEFINED, hashable, text_bytes
from jitdb.errors import DecodeError, EncodeError
from jitdb.log.codecs.base import Buffer, Codec, encoded_path
from jitdb.log.codecs.fields.constants import MAX_NESTING, MSGPACK

if TYPE_CHECKING:
    from jitdb.log.codecs.fields.located import Locator


class MsgpackCodec(Codec):
    """Values as msgpack: what JSON has, and bytes, 64-bit integers, keys of any scalar type, extension values.

    >>> codec = MsgpackCodec()
    >>> codec.find(codec.encode({"a": {"b": 2**63}}), ("a", "b"))
    9223372036854775808
    """

    name: ClassVar[str] = "msgpack"
    writes_utf8: ClassVar[bool] = True

    def encode(self, value: Any) -> bytes:
        """The shortest msgpack encoding. Raises EncodeError; dates, sets and UNDEFINED have no encoding."""
        try:
            record = _pack(value)
        except (ValueError, TypeError, OverflowError) as error:
            raise _refused(value, error) from None
        if is_suspect(record):
            try:
                check(record)
            except DecodeError as error:
                raise EncodeError(str(error)) from None
        return record

    def decode(self, record: Buffer) -> Any:
        if is_suspect(record):
            check(bytes(record))
        try:
            return _unpack(record)
        except msgpack.ExtraData as error:
            position = len(record) - len(error.extra)
            raise DecodeError(f"{len(error.extra)} bytes follow the value", position=position) from None
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            check(bytes(record))  # says what and where, if the structure is at fault
            raise DecodeError(f"a part of the record is not valid: {error}") from None

    def decode_at(self, record: Buffer, position: int) -> Any:
        if not 0 <= position < len(record):
            raise DecodeError(f"position {position} lies outside a record of {len(record)} bytes", position=position)
        record = bytes(record)
        return self.decode(record[position : check(record, position)])

    def find(self, record: Buffer, path: Keys) -> Any:
        record = bytes(record)
        try:
            span = find_span(record, path)
            return UNDEFINED if span is None else self.decode(record[span[0] : span[1]])
        except DecodeError:  # a malformed record has no fields; decode says what is wrong with it
            return UNDEFINED

    def locator(self, paths: Sequence[Keys]) -> Locator:
        from jitdb.log.codecs.compiled import CompiledLocator
        from jitdb.log.codecs.msgpack.msgpack_kernels import locate_msgpack, msgpack_values_at  # with numpy

        return CompiledLocator(MSGPACK, (locate_msgpack, msgpack_values_at), paths)


CODEC = MsgpackCodec()


def decode_parts(parts: bytes, keyed: bool) -> Any:
    """The map (`keyed`) or array whose parts these are. Raises DecodeError, ValueError, TypeError."""
    count = _count(parts)
    if keyed and count % 2:
        raise DecodeError("a key has no value", position=len(parts))
    head = b"\xdf" + (count // 2).to_bytes(4, "big") if keyed else b"\xdd" + count.to_bytes(4, "big")
    return _unpack(head + parts)


def _count(values: bytes) -> int:
    """How many values stand one after the other; of malformed ones another number. Raises DecodeError, ValueError."""
    if not is_suspect(values):
        unpacker = msgpack.Unpacker(max_buffer_size=max(len(values), 1), **_UNPACKED, object_pairs_hook=len)
        unpacker.feed(values)
        return sum(1 for _ in unpacker)
    count = position = 0
    while position < len(values):
        position = check(values, position)
        count += 1
    return count


def _pack(value: Any) -> bytes:
    packed: bytes
    try:
        packed = _packed(value)
    except UnicodeEncodeError:  # it has text that is no Unicode
        packed = _packed(value, unicode_errors="surrogateescape")
        _check_texts(value)
    return packed


def _check_texts(value: Any) -> None:
    if isinstance(value, str):
        text_bytes(value)
    elif isinstance(value, dict):
        for key, item in dict(value).items():
            _check_texts(key)
            _check_texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check_texts(item)


def _exactly(value: Any) -> Any:
    """A subclass as what it extends: its own items() and len() may contradict each other, and so would the record."""
    for base, exactly in _BASES:
        if isinstance(value, base):
            return exactly(value)
    raise TypeError


# A tuple is among them because strict_types knows lists only.
_BASES: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (msgpack.ExtType, lambda value: msgpack.ExtType(*value)),
    (tuple, list),
    (dict, dict),
    (list, list),
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, bytes),
    (bytearray, bytes),
)
_packed: Final = partial(msgpack.packb, use_bin_type=True, strict_types=True, default=_exactly)


def _unpack(record: Buffer) -> Any:
    try:
        return msgpack.unpackb(record, **_UNPACKED)
    except TypeError:  # an array is a key: it has to become a tuple, which costs too much to do always
        return msgpack.unpackb(record, object_pairs_hook=_hashable_keys, **_UNPACKED)


def _hashable_keys(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    return {hashable(key): item for key, item in pairs}


def _extension(code: int, data: bytes) -> Any:
    # The constructor refuses the reserved codes -128 to -2; what a record holds is given back nevertheless.
    return tuple.__new__(msgpack.ExtType, (code, data))


_UNPACKED: Final[dict[str, Any]] = {
    "raw": False,
    "unicode_errors": "surrogateescape",
    "strict_map_key": False,
    "timestamp": 0,  # a Timestamp, which keeps the nanoseconds
    "ext_hook": _extension,
}


def _refused(value: Any, error: Exception) -> EncodeError:
    """Which part of `value` msgpack would not take, and why."""
    path: list[Step] = []
    if type(error) is ValueError and "recursion" in str(error):
        return EncodeError(f"containers are nested deeper than {MAX_NESTING} levels")
    while True:
        parts: list[tuple[Any, Any]] = []
        if isinstance(value, dict):
            for key in dict(value):
                if _failure(key) is not None:
                    return EncodeError(f"{_where(path)}one of the keys: {_reason(key)}")
            parts = list(dict(value).items())
        elif isinstance(value, (list, tuple)):
            parts = list(enumerate(value))
        for key, part in parts:
            if _failure(part) is not None:
                path.append(key if isinstance(value, (list, tuple)) else str(key))
                value = part
                break
        else:
            return EncodeError(f"{_where(path)}{_reason(value)}")


def _where(path: list[Step]) -> str:
    return f"{format_path(path)}: " if path else ""


def _failure(value: Any) -> Exception | None:
    try:
        _pack(value)
    except (ValueError, TypeError, OverflowError) as error:
        return error
    return None


def _reason(value: Any) -> str:
    if value is UNDEFINED:
        return "msgpack has no undefined; leave the key out"
    if isinstance(value, int):
        return f"an integer of {value.bit_length()} bits does not fit in 64"
    if isinstance(value, str):
        return "the string has a lone surrogate and is not Unicode text"
    return f"a value of type {type(value).__name__} has no encoding in msgpack"


# --- how far a value reaches, without decoding it ---------------------------------------------------------------------

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
