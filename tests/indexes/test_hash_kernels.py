"""The hashes of located values, arrays and maps among them, against the plain function of a value's key."""

from __future__ import annotations

import math
import struct
import time
from typing import Any
from unittest import mock

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_cases import MISSING, colliding_payload, items, numbers, texts, values_of
from kernel_cases import COMPILED, EXAMPLES, WELL_FORMED, hostile, key_at, map_of, scan

from jitdb.common import values as values_module
from jitdb.common.values import ABSENT, ARRAY, EXTENSION, MAP, STRING, value_key
from jitdb.indexes.hashing import hash_key
from jitdb.indexes.kinds import prefixes as hash_arrays
from jitdb.indexes.kinds.prefixes import hash_prefix, hash_prefixes
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.fields.constants import BIPF, KEYS, MAX_NESTING, MSGPACK
from jitdb.log.codecs.fields.located import FieldValues

pytestmark = pytest.mark.slow

CODECS = ["bipf", "msgpack"]
ENCODINGS = {"bipf": BIPF, "msgpack": MSGPACK, "keys": KEYS}

# These are on disk: if one changes, every index file of a many-valued field answers wrongly.
GOLDEN = [
    (None, 0xEB1AE35DD395C1AB),
    (False, 0xE0A8550B347EE17A),
    (True, 0xD635C6BAA72B8356),
    (0, 0xD11606FDA3A7F968),
    (1, 0x32B60EDD98FFD80D),
    (-1.5, 0xCFF43A613C49A8C6),
    (2**53 + 1, 0xBBB14D8EE9BEFDA5),
    (2**64 - 1, 0x2A1C998BF92CA8C9),
    (math.nan, 0x08D4C0D32A692724),
    (math.inf, 0x6E84F943536D78C3),
    ("", 0xC150AA1768FDC2F5),
    ("post", 0x0E589C890111A3D9),
    ("12345678", 0x3FF7FA8639DDF27B),
    ("123456789", 0xAFCDA2F5D6178B93),
    (b"post", 0x2E58400F4DC0CE77),
    ([], 0xAC6B8D744E5706AC),
    (["any"], 0xDB1813D18B4044B9),
    ([1, "a"], 0x8D3FCC4282F04D5A),
    ([[1], ["a"]], 0xFAB46C2E84054685),
    ({}, 0xA1F8FF23DF7CE270),
    ({1: "no text"}, 0xA1F8FF23DF7CE270),
    ({"any": 1}, 0xC00D3CE5BC435424),
    ({"b": None, "a": True}, 0x310CEFC3CB34EA6C),
    (msgpack.ExtType(5, b"abc"), 0x048216B8397E53B3),
]


def hashes_of(values: FieldValues) -> list[int]:
    return [int(found) for found in hash_prefixes(values)]


def located(name: str, encodings: list[bytes]) -> FieldValues:
    """These encoded values as the field `v` of records."""
    return scan(get_codec(name), [map_of(name, [(b"v", encoded)]) for encoded in encodings], [("v",)])[0][0]


def container(name: str, value: Any) -> tuple[int, bytes]:
    """The kind and the payload of one."""
    found = located(name, [get_codec(name).encode(value)])
    return int(found.kind[0]), found.payload(0)


def hash_of(encoding: int, kind: int, payload: bytes, behind: bytes = b"") -> int:
    """What is stored of the hash of a container, with these bytes behind it in the buffer."""
    buffer = np.frombuffer(bytearray(payload + behind), np.uint8)
    row = np.array([kind], np.uint8), np.zeros(1, np.int32), np.array([len(payload)], np.int32), np.zeros(1)
    return int(hash_prefixes(FieldValues(encoding, buffer, *row))[0])


@pytest.mark.parametrize(("value", "expected"), GOLDEN, ids=[repr(value) for value, _ in GOLDEN])
def test_golden_hashes(value: Any, expected: int) -> None:
    assert hash_key(value_key(value)) == expected


# --- the same hash as that of the value's key ------------------------------------------------------------------------


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(items, min_size=1, max_size=8))
def test_hashes_of_located_values_are_those_of_their_keys(given_items: list[Any]) -> None:
    values = values_of(given_items)
    assert hashes_of(values) == [0 if item is MISSING else hash_prefix(value_key(item)) for item in given_items]


@pytest.mark.parametrize("size", range(34))
def test_hashes_of_every_length(size: int) -> None:
    text = "".join(chr(33 + i) for i in range(size))
    assert hashes_of(values_of([text, text.encode()])) == [
        hash_prefix(value_key(text)), hash_prefix(value_key(text.encode()))
    ]  # fmt: skip


@pytest.mark.parametrize("name", CODECS)
def test_whatever_a_writer_wrote_has_the_hash_of_its_value(name: str) -> None:
    @settings(max_examples=4 * EXAMPLES, deadline=None)
    @given(st.lists(WELL_FORMED[name], min_size=1, max_size=4))
    def check(encodings: list[bytes]) -> None:
        values = located(name, encodings)
        keys = [key_at(values, number) for number in range(len(encodings))]
        for number, (found, key) in enumerate(zip(hashes_of(values), keys, strict=True)):
            kind = int(values.kind[number])
            if kind != EXTENSION:  # a timestamp is known by its bytes, but in a container
                assert found == (0 if kind == ABSENT else hash_prefix(key))

    check()


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**31), 2**31)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(plain, max_size=3) | st.dictionaries(texts, plain, max_size=3))
def test_codecs_and_keys_agree(value: Any) -> None:
    key = value_key(value)
    assert {hash_of(ENCODINGS[name], *container(name, value)) for name in CODECS} == {hash_prefix(key)}
    assert hash_of(KEYS, key[0], key[1:]) == hash_prefix(key)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(numbers | st.integers(-9, 9) | st.sampled_from([True, 2**70, -(2**53), 10**400]), max_size=4))
def test_keys_of_many_numbers_at_once(given_numbers: list[Any]) -> None:
    with mock.patch.object(values_module, "_MANY_NUMBERS", 0):
        assert value_key(given_numbers) == values_module._joined(bytes([ARRAY]), map(value_key, given_numbers))


def test_keys_of_any_size_have_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"n": list(range(500)), "t": [{"a": [2**64 - 1, math.nan, -0.0, {}]}] * 50}
    monkeypatch.setattr(hash_arrays, "_LARGE", 1 << 30)
    plainly = hash_prefix(value_key(value))
    monkeypatch.setattr(hash_arrays, "_LARGE", 1)
    assert hash_prefix(value_key(value)) == plainly


# --- what is equal, and what is not ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ([], [None]),
        ([], [[]]),
        ([[1], 2], [1, [2]]),
        ([1], [True]),
        ([0], [False]),
        (["a"], [b"a"]),
        ([2**53], [2**53 + 1]),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ({"a": 1}, {"a": 1, "b": None}),
        ({"a": {"b": 1}}, {"a": {"b": 2}}),
        ([{}], [[]]),
    ],
)
def test_containers_that_differ_have_other_hashes(left: Any, right: Any) -> None:
    assert hash_key(value_key(left)) != hash_key(value_key(right))


def test_pairs_in_any_order_with_repeats() -> None:
    for name in CODECS:
        encode = get_codec(name).encode
        pairs = [(b"%d" % number, encode(number)) for number in range(300)]
        old = [(key, encode("old")) for key, _ in pairs[::3]]
        forms = [pairs, pairs[::-1], old + pairs, old + old + pairs[::-1], [*pairs[:100], *old[:20], *pairs]]
        encodings = [map_of(name, form) for form in forms]
        key = value_key({str(number): number for number in range(300)})
        assert set(hashes_of(located(name, encodings))) == {hash_prefix(key)}
        assert hashes_of(located(name, [map_of(name, pairs + old)])) != [hash_prefix(key)]


def test_keys_of_one_hash_that_differ() -> None:
    first, second = (colliding_payload(STRING, bytes([number]) + bytes(15), 77) for number in (1, 2))
    assert {hash_key(bytes([STRING]) + key) for key in (first, second)} == {77}
    for name in CODECS:
        encode = get_codec(name).encode
        pairs = [(first, encode(1)), (b"between", encode(2)), (second, encode(3))]
        values = located(name, [map_of(name, pairs), map_of(name, pairs[::-1]), map_of(name, pairs[:1] + pairs)])
        key = key_at(values, 0)
        assert hashes_of(values) == [hash_prefix(key)] * 3
        assert hash_prefix(key) == hash_prefix(value_key({}))


def test_timestamps_of_any_form_in_an_array() -> None:
    short, long = b"\xd6\xff" + struct.pack(">I", 5), b"\xc7\x0c\xff" + struct.pack(">Iq", 0, 5)
    assert len(set(hashes_of(located("msgpack", [b"\x91" + short, b"\x91" + long])))) == 1


# --- hostile bytes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*CODECS, "keys"])
def test_no_bytes_lead_out_of_the_value(name: str) -> None:
    bytes_of = st.binary(max_size=40) if name == "keys" else hostile(name)

    @settings(max_examples=4 * EXAMPLES, deadline=None)
    @given(bytes_of, st.sampled_from([ARRAY, MAP]), st.binary(max_size=10))
    def check(payload: bytes, kind: int, behind: bytes) -> None:
        found = hash_of(ENCODINGS[name], kind, payload)  # uncompiled, every index is checked
        assert hash_of(ENCODINGS[name], kind, payload, behind) == found

    check()


def test_nesting_has_a_limit() -> None:
    deepest: Any = []
    for _ in range(MAX_NESTING - 1):
        deepest = [deepest]
    for name in CODECS:
        assert hash_of(ENCODINGS[name], *container(name, deepest)) == hash_prefix(value_key(deepest))
    for payload in (b"\x91" * 1000, b"\x81\xa0" * 1000):
        hash_of(MSGPACK, ARRAY, payload)


@pytest.mark.skipif(not COMPILED, reason="says how long the compiled kernel takes")
@pytest.mark.parametrize("shape", ["deep", "pairs of one key", "pairs of one hash", "pairs"])
def test_hostile_containers_take_no_longer_than_others(shape: str) -> None:
    count = 200_000
    numbers = [b"\x01"] * (8 * count)
    kind, payload = ARRAY, b"".join(numbers)
    hash_of(MSGPACK, kind, payload)
    began = time.perf_counter()
    hash_of(MSGPACK, kind, payload)
    plainly = time.perf_counter() - began
    if shape == "deep":
        payload = b"\x91" * (MAX_NESTING - 2) + b"\xdd" + struct.pack(">I", 8 * count) + payload
    else:
        kind = MAP
        made = {
            "pairs of one key": lambda number: b"\xa0",
            "pairs of one hash": lambda number: (
                b"\xb0" + colliding_payload(STRING, struct.pack("<I", number % 1000) + bytes(12), 77)
            ),
            "pairs": lambda number: b"\xa4" + struct.pack("<I", number),
        }[shape]
        payload = b"".join(made(number) + b"\x01" for number in range(count))
    began = time.perf_counter()
    hash_of(MSGPACK, kind, payload)
    assert time.perf_counter() - began < 50 * plainly + 1
