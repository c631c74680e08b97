"""Records for the compiled scan, in every form the formats allow, and what it finds in them as keys of values.

The strategies write bytes themselves: the codecs' own encoders never repeat a key, pad a length or choose the longer of
two forms, and other writers do.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import strategies as st
from thoroughness import tries

from jitdb.common.kernels import WAY
from jitdb.common.paths import Path
from jitdb.common.values import ABSENT, NUMBER, number_key, value_key, value_of_key
from jitdb.common.values import ARRAY as ARRAY_KIND
from jitdb.common.values import MAP as MAP_KIND
from jitdb.log.codecs import Codec
from jitdb.log.codecs.bipf.format import ARRAY, BOOLNULL, BUFFER, DOUBLE, INT, OBJECT, STRING, write_tag
from jitdb.log.codecs.containers import container_key
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch, Rows

COMPILED = WAY != "python"
EXAMPLES = tries(25, 600) if COMPILED else tries(6, 60)  # a kernel that runs as Python is a hundred times slower

# --- bipf ------------------------------------------------------------------------------------------------------------


def bipf_value(code: int, body: bytes, padding: int = 0) -> bytes:
    """A value; `padding` makes its tag that many bytes longer than need be (at most 5 in all)."""
    tag = write_tag(len(body) << 3 | code)
    padding = min(padding, 5 - len(tag))
    if padding:
        tag = bytes([*(byte | 0x80 for byte in tag), *[0x80] * (padding - 1), 0])
    return tag + body


KEYS = [b"", b"a", b"b", b"ab", b"type", b"\xff", "é".encode(), b"k" * 16, b"k" * 300]
_keys = st.sampled_from([b"a", b"b"]) | st.sampled_from(KEYS)
_padding = st.sampled_from([0, 0, 0, 0, 1, 3])
_text = st.sampled_from([b"", b"x", b"\xff\xfe", b"post"]) | st.binary(max_size=20) | st.just(b"long" * 600)
_doubles = st.floats() | st.sampled_from([-0.0, 0.0, 1.0, 2.0**53, 2.0**63, 5e-324, float("inf"), float("nan")])
_double_bits = _doubles.map(lambda number: struct.pack("<d", number)) | st.sampled_from(
    [bytes.fromhex("010000000000f07f"), bytes.fromhex("ffffffffffffffff")]  # NaNs of other bits
)
_bipf_scalars = st.one_of(
    st.builds(bipf_value, st.just(STRING), _text, _padding),
    st.builds(bipf_value, st.just(BUFFER), _text, _padding),
    st.builds(bipf_value, st.just(INT), st.integers(-(2**31), 2**31 - 1).map(lambda n: struct.pack("<i", n)), _padding),
    st.builds(bipf_value, st.just(DOUBLE), _double_bits, _padding),
    st.builds(bipf_value, st.just(BOOLNULL), st.sampled_from([b"", b"\0", b"\1", b"\2"]), _padding),
)
_bipf_broken = st.sampled_from(
    [b"\x07", b"\x0f\0", b"\x1a\0\0\0", b"\x0e\x03", b"\x16\0\0", b"\x33" + bytes(6), b"\x80", b"\xf8\xff\xff\xff\xff"]
)


def _bipf_array(items: list[bytes], padding: int) -> bytes:
    return bipf_value(ARRAY, b"".join(items), padding)


def _bipf_map(items: list[tuple[bytes, bytes]], padding: int) -> bytes:
    return bipf_value(OBJECT, b"".join(bipf_value(STRING, key, padding) + item for key, item in items), padding)


def _bipf(leaves: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(_bipf_array, st.lists(inner, max_size=4), _padding)
            | st.builds(_bipf_map, st.lists(st.tuples(_keys, inner), max_size=5), _padding)
        ),
        max_leaves=20,
    )


# --- msgpack ---------------------------------------------------------------------------------------------------------


def _head(forms: list[tuple[int, int]], count: int, choice: int) -> bytes:
    """The head of a string, bytes, array, map or extension: one of the forms (first byte, width) that can hold it."""
    fit = [(first, width) for first, width in forms if width or count <= (15 if first < 0xA0 else 31)]
    fit = [(first, width) for first, width in fit if not width or count < 256**width]
    first, width = fit[choice % len(fit)]
    return bytes([first]) + count.to_bytes(width, "big") if width else bytes([first | count])


_STR, _BIN = [(0xA0, 0), (0xD9, 1), (0xDA, 2), (0xDB, 4)], [(0xC4, 1), (0xC5, 2), (0xC6, 4)]
_ARRAYS, _MAPS, _EXT = [(0x90, 0), (0xDC, 2), (0xDD, 4)], [(0x80, 0), (0xDE, 2), (0xDF, 4)], [(0xC7, 1), (0xC8, 2)]
_choice = st.sampled_from([0, 0, 0, 1, 2])


def _msgpack_string(text: bytes, choice: int) -> bytes:
    return _head(_STR, len(text), choice) + text


def _msgpack_integer(number: int, choice: int) -> bytes:
    forms = [(head, size) for head, size in ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8)) if 0 <= number < 256**size]
    signed = ((0xD0, 1), (0xD1, 2), (0xD2, 4), (0xD3, 8))
    forms += [(head, size) for head, size in signed if -(128 * 256 ** (size - 1)) <= number < 128 * 256 ** (size - 1)]
    if -32 <= number < 128 and choice == 0:
        return struct.pack("b", number)
    head, size = forms[choice % len(forms)]
    return bytes([head]) + (number % 256**size).to_bytes(size, "big")


def _float32(bits: int) -> bytes:
    return b"\xca" + struct.pack(">I", bits)


def _timestamp(seconds: int, nanoseconds: int, size: int) -> bytes:
    if size == 4:
        return b"\xd6\xff" + struct.pack(">I", seconds % 2**32)
    if size == 8:
        return b"\xd7\xff" + struct.pack(">Q", nanoseconds % 2**30 << 34 | seconds % 2**34)
    return b"\xc7\x0c\xff" + struct.pack(">Iq", nanoseconds, seconds)


_integers = st.integers(-(2**63), 2**64 - 1) | st.sampled_from(
    [edge + near for edge in (0, 2**31, 2**53, 2**63, -(2**53)) for near in (-1, 0, 1)] + [-(2**63), 2**64 - 1]
)
_msgpack_scalars = st.one_of(
    st.sampled_from([b"\xc0", b"\xc2", b"\xc3"]),
    st.builds(_msgpack_string, _text, _choice),
    st.builds(lambda data, choice: _head(_BIN, len(data), choice) + data, _text, _choice),
    st.builds(_msgpack_integer, _integers, st.integers(0, 5)),
    st.builds(_float32, st.integers(0, 2**32 - 1)),
    _double_bits.map(lambda bits: b"\xcb" + bits[::-1]),
    st.sampled_from([b"\xd4\x05a", b"\xd5\x80ab", b"\xd6\x00abcd", b"\xd8\x7f" + b"x" * 16]),
    st.builds(lambda data, choice: _head(_EXT, len(data), choice) + b"\x07" + data, _text, _choice),
    st.builds(
        _timestamp,
        st.integers(-(2**40), 2**40),
        st.sampled_from([0, 1, 999_999_999, 10**9]),
        st.sampled_from([4, 8, 12]),
    ),
)
_msgpack_broken = st.sampled_from(
    [b"\xc1", b"\xd4\xff\0", b"\xc7\x03\xffabc", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff",
     b"\xdb\xff\xff\xff\xff", b"\xc6\x7f\xff\xff\xff", b"\xd9", b"\xcf\0", b"\x9f"]
)  # fmt: skip
_msgpack_keys = st.builds(_msgpack_string, _keys, _choice) | st.sampled_from(
    [b"\x01", b"\xc0", b"\xc4\x01a", b"\x91\x01", b"\x91\x80", b"\x80", b"\x91\x91\xc0", b"\xd4\x01a"]
)


def _msgpack(leaves: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    def array(items: list[bytes], choice: int) -> bytes:
        return _head(_ARRAYS, len(items), choice) + b"".join(items)

    def mapping(items: list[tuple[bytes, bytes]], choice: int) -> bytes:
        return _head(_MAPS, len(items), choice) + b"".join(key + item for key, item in items)

    string_keys = st.builds(_msgpack_string, _keys, _choice)
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(array, st.lists(inner, max_size=4), _choice)
            | st.builds(mapping, st.lists(st.tuples(string_keys, inner), max_size=5), _choice)
            | st.builds(mapping, st.lists(st.tuples(_msgpack_keys, inner), max_size=3), _choice)
        ),
        max_leaves=20,
    )


# --- records ---------------------------------------------------------------------------------------------------------

WELL_FORMED = {"bipf": _bipf(_bipf_scalars), "msgpack": _msgpack(_msgpack_scalars)}
_SOME_BROKEN = {
    "bipf": _bipf(st.one_of(_bipf_scalars, _bipf_scalars, _bipf_broken)),
    "msgpack": _msgpack(st.one_of(_msgpack_scalars, _msgpack_scalars, _msgpack_broken)),
}


def map_of(name: str, pairs: list[tuple[bytes, bytes]]) -> bytes:
    """A map of these keys (their text) and values (encoded), in this order, repeats and all."""
    if name == "bipf":
        return _bipf_map(pairs, 0)
    return _head(_MAPS, len(pairs), 0) + b"".join(_msgpack_string(key, 0) + value for key, value in pairs)


def crowded(name: str) -> st.SearchStrategy[bytes]:
    """Maps in maps with so few keys that many are there more than once."""
    scalars = {"bipf": _bipf_scalars | _bipf_broken, "msgpack": _msgpack_scalars}[name]
    return st.recursive(
        scalars,
        lambda inner: st.lists(st.tuples(st.sampled_from([b"a", b"b"]), inner), min_size=1, max_size=5).map(
            lambda pairs: map_of(name, pairs)
        ),
        max_leaves=15,
    )


paths = st.lists(st.sampled_from(["a", "b", "", "ab", "type", "é", "k" * 16]), min_size=1, max_size=4).map(tuple)
path_sets = st.lists(paths, min_size=1, max_size=6, unique=True)


@st.composite
def damaged(draw: st.DrawFn, name: str) -> bytes:
    """A record with anything done to it: bits turned, bytes cut out, put in, cut off."""
    record = bytearray(draw(WELL_FORMED[name] | _SOME_BROKEN[name]))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(len(record) - 1, 0)))
        action = draw(st.sampled_from(["turn", "cut", "insert", "truncate", "set"]))
        if action == "turn" and record:
            record[at] ^= 1 << draw(st.integers(0, 7))
        elif action == "set" and record:
            record[at] = draw(st.integers(0, 255))
        elif action == "cut":
            del record[at : at + draw(st.integers(1, 4))]
        elif action == "truncate":
            del record[at:]
        else:
            record[at:at] = draw(st.binary(min_size=1, max_size=6))
    return bytes(record)


def hostile(name: str) -> st.SearchStrategy[bytes]:
    """Anything that could stand in a record of this codec."""
    return st.one_of(damaged(name), st.binary(max_size=40), _SOME_BROKEN[name])


def scan(
    codec: Codec, records: Sequence[bytes], paths: Sequence[Path], *, before: bytes = b"", after: bytes = b""
) -> tuple[list[FieldValues], int]:
    """What the kernel finds in the records, field by field, and how many are malformed.

    Each record lies between `before` and `after`; without them, the last one ends where the buffer does.
    """
    whole = b"".join(before + record + after for record in records)
    buffer = np.frombuffer(bytearray(whole), np.uint8)
    lengths = np.array([len(record) for record in records], np.int64)
    starts = np.cumsum(lengths + len(before) + len(after)) - lengths - len(after)
    with mock.patch.object(Rows, "empty", dirty_rows):
        return codec.locator(paths).fields(RecordBatch(buffer, starts, lengths, np.zeros(len(records), np.uint8)))


def dirty_rows(fields: int, records: int, empty: Any = Rows.empty) -> Rows:
    """Room in which something stands: whatever the kernel leaves alone must not matter."""
    rows: Rows = empty(fields, records)
    for array in rows:
        array.view(np.uint8).fill(0xA5)
    return rows


def key_at(values: FieldValues, number: int) -> bytes:
    """The canonical key of one located value."""
    kind = int(values.kind[number])
    if kind == ABSENT:
        return value_key_of_absent
    if kind == NUMBER:
        hi = float(values.number[number])
        return number_key(hi, int(values.length[number])) if hi == hi else value_key(hi)
    payload = values.payload(number)
    if kind in (ARRAY_KIND, MAP_KIND):
        return container_key(values.encoding, kind, payload)
    return value_key(value_of_key(bytes([kind]) + payload))


value_key_of_absent = bytes([ABSENT])


def keys_found(codec: Codec, records: Sequence[bytes], paths: Sequence[Path], **around: Any) -> list[list[bytes]]:
    """The canonical keys that the kernel finds: a list a record, a key a path."""
    fields, _ = scan(codec, records, paths, **around)
    return [[key_at(values, number) for values in fields] for number in range(len(records))]
