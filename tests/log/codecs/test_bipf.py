"""The bytes of bipf, case by case."""

from __future__ import annotations

import math
from typing import Any

import pytest

from jitdb.common.values import UNDEFINED
from jitdb.errors import DecodeError, EncodeError
from jitdb.log.codecs.bipf import codec as bipf
from jitdb.log.codecs.bipf import decode as bipf_decode
from jitdb.log.codecs.bipf import encode as bipf_encode
from jitdb.log.codecs.bipf.format import read_tag, write_tag
from jitdb.log.codecs.fields.constants import MAX_NESTING

CODEC = bipf.CODEC

GOLDEN = [
    ("", "00"),
    ("é", "10c3a9"),
    ("x" * 15, "78" + "78" * 15),
    ("x" * 16, "8001" + "78" * 16),
    ("x" * 2047, "f87f" + "78" * 2047),
    ("x" * 2048, "808001" + "78" * 2048),
    (b"", "01"),
    (b"\xff\x00", "11ff00"),
    (0, "2200000000"),
    (1, "2201000000"),
    (-1, "22ffffffff"),
    (2147483647, "22ffffff7f"),
    (-2147483647, "2201000080"),
    (-2147483648, "43000000000000e0c1"),  # one more than its absolute value may be: a double
    (2147483648, "43000000000000e041"),
    (2**53, "430000000000004043"),
    (0.5, "43000000000000e03f"),
    (None, "06"),
    (False, "0e00"),
    (True, "0e01"),
    (UNDEFINED, "0e02"),
    ([], "04"),
    ([1, "a", None], "4422010000000861" + "06"),
    ({}, "05"),
    ({"": None}, "150006"),
    ({"a": {"b": True}}, "3d0861" + "250862" + "0e01"),
]


@pytest.mark.parametrize(("value", "encoded"), GOLDEN, ids=[repr(value)[:30] for value, _ in GOLDEN])
def test_golden_bytes(value: Any, encoded: str) -> None:
    record = bytes.fromhex(encoded)
    assert CODEC.encode(value) == record
    assert CODEC.decode(record) == value
    assert type(CODEC.decode(record)) is type(value)
    assert CODEC.is_valid(record)
    assert bipf.encoding_length(value) == len(record)


@pytest.mark.parametrize(("written", "read"), [(1.0, 1), (-0.0, 0), (2.0**31, 2**31), (1e15, 10**15), ((1, 2), [1, 2])])
def test_what_comes_back_as_something_equal(written: Any, read: Any) -> None:
    value = CODEC.decode(CODEC.encode(written))
    assert value == read
    assert type(value) is type(read)


@pytest.mark.parametrize("value", [2.0**53 + 2, 1e300, -1e17])
def test_large_doubles_stay_floats(value: float) -> None:
    assert type(CODEC.decode(CODEC.encode(value))) is float


def test_a_large_integer_that_is_a_double() -> None:
    assert CODEC.decode(CODEC.encode(2**60)) == 2**60


@pytest.mark.parametrize("value", [2**53 + 1, -(2**63) + 1, 2**64 - 1])
def test_integers_that_are_no_doubles_are_refused(value: int) -> None:
    with pytest.raises(EncodeError, match=r"^n: .*not exactly a double.*msgpack holds 64-bit"):
        CODEC.encode({"n": value})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_only_finite_numbers_are_written(value: float) -> None:
    with pytest.raises(EncodeError, match=r"^a\[0\]: .*finite"):
        CODEC.encode({"a": [value]})


def test_any_double_is_read() -> None:
    assert math.isnan(CODEC.decode(bytes.fromhex("43000000000000f87f")))
    assert CODEC.decode(bytes.fromhex("43000000000000f07f")) == math.inf


def test_keys_are_strings() -> None:
    with pytest.raises(EncodeError, match=r'^a\["<int>"\]: .*keys are strings'):
        CODEC.encode({"a": {5: 1}})


def test_keys_keep_their_order() -> None:
    # JavaScript would put "1" and "2" first; bipf itself knows no order.
    assert list(CODEC.decode(CODEC.encode({"b": 1, "2": 2, "1": 3}))) == ["b", "2", "1"]


def obj(*entries: tuple[str, bytes]) -> bytes:
    body = b"".join(CODEC.encode(key) + value for key, value in entries)
    return write_tag(len(body) << 3 | bipf.OBJECT) + body


ONE, TWO = CODEC.encode(1), CODEC.encode(2)

DUPLICATES = [
    (obj(("a", ONE), ("a", TWO)), ("a",), 2),
    (obj(("a", ONE), ("b", ONE), ("a", CODEC.encode(None))), ("a",), None),
    (obj(("a", obj(("b", ONE))), ("a", obj(("c", TWO)))), ("a", "b"), UNDEFINED),
    (obj(("a", obj(("b", ONE))), ("a", TWO)), ("a", "b"), UNDEFINED),
    (obj(("a", ONE), ("a", obj(("b", ONE), ("b", TWO)))), ("a", "b"), 2),
    (obj(("a", ONE), ("a", CODEC.encode(UNDEFINED))), ("a",), UNDEFINED),
    (obj(("", ONE), ("", TWO)), ("",), 2),
]


@pytest.mark.parametrize(("record", "path", "value"), DUPLICATES)
def test_the_last_of_equal_keys_wins(record: bytes, path: tuple[str, ...], value: Any) -> None:
    assert CODEC.find(record, path) == value
    decoded = CODEC.decode(record)
    for key in path:
        decoded = decoded.get(key, UNDEFINED) if isinstance(decoded, dict) else UNDEFINED
    assert decoded == value


def test_seek_key_gives_the_first_of_equal_keys() -> None:
    record = obj(("a", ONE), ("a", TWO))
    assert bipf.decode(record, bipf.seek_key(record, 0, "a")) == 1


MALFORMED = [
    ("07", "reserved"),
    ("0f00", "reserved"),
    ("1a000000", "int has 4 bytes, not 3"),
    ("2a0000000000", "int has 4 bytes, not 5"),
    ("02", "int has 4 bytes, not 0"),
    ("3b00000000000000", "double has 8 bytes, not 7"),
    ("0e03", "boolean is 0, 1 or 2, not 3"),
    ("160000", "boolean has one byte, not 2"),
    ("80", "ends inside the tag"),
    ("ffffffffff", "larger than 32 bits"),
    ("808080808000", "larger than 32 bits"),
    ("ffffffff7f", "larger than 32 bits"),
    ("f8ffffff0f", "bytes more than the record has"),
    ("0861" + "00", "1 bytes follow"),
    ("34" + "2201000000" + "08", None),  # an element that reaches over its array
    ("24" + "22010000", None),  # the same, with nothing behind it
    ("15" + "0861", None),  # a key without a value
    ("25" + "0e01" + "0e01", "not a string"),
    ("25" + "1861" + "0e01", None),  # a key that reaches over its value
]


@pytest.mark.parametrize(("encoded", "message"), MALFORMED, ids=[encoded for encoded, _ in MALFORMED])
@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "in an object"])
def test_malformed(encoded: str, message: str | None, wrapped: bool) -> None:
    record = bytes.fromhex(encoded)
    if wrapped:
        record = obj(("a", record))
        message = None  # what is wrong may look different from inside
    with pytest.raises(DecodeError, match=message) as caught:
        CODEC.decode(record)
    assert caught.value.position is not None
    assert not CODEC.is_valid(record)
    assert CODEC.find(record, ("a",)) is UNDEFINED
    assert CODEC.find(record, ()) is UNDEFINED


def test_what_is_malformed_beside_the_way_does_not_matter() -> None:
    record = obj(("bad", obj(("x", b"\x07"))), ("good", ONE))
    assert CODEC.find(record, ("good",)) == 1
    assert CODEC.find(record, ("bad", "x")) is UNDEFINED
    assert not CODEC.is_valid(record)


def test_what_is_malformed_behind_the_field_hides_it() -> None:
    # The container itself does not add up, so a later value of the same key cannot be excluded.
    record = obj(("good", ONE), ("bad", b"\x18a"))
    assert CODEC.find(record, ("good",)) is UNDEFINED


def test_the_last_of_equal_keys_counts_whatever_is_wrong_with_the_others() -> None:
    assert CODEC.find(obj(("a", b"\x0a\0"), ("a", ONE)), ("a",)) == 1
    assert CODEC.find(obj(("a", obj(("b", b"\x07"))), ("a", obj(("b", ONE)))), ("a", "b")) == 1
    assert CODEC.find(obj(("a", ONE), ("a", b"\x0a\0")), ("a",)) is UNDEFINED


@pytest.mark.parametrize("tag", [0, 1, 127, 128, 16383, 16384, 2**21, 2**28, 2**32 - 1])
def test_tags(tag: int) -> None:
    assert read_tag(b"-" + write_tag(tag), 1) == (tag, 1 + len(write_tag(tag)))


def test_a_tag_longer_than_it_need_be_is_read() -> None:
    assert CODEC.decode(bytes.fromhex("888000") + b"a") == "a"
    record = bytes.fromhex("d58000" + "888000" + "61" + "8e80808000" + "01")  # {"a": true}, every tag too long
    assert CODEC.decode(record) == {"a": True}
    assert CODEC.is_valid(record)
    assert CODEC.find(record, ("a",)) is True
    assert bipf.decode(record, bipf.seek_key(record, 0, "a")) is True


def test_encoded_values_are_copied_in() -> None:
    inner = bipf.encode_idempotent({"street": "x"})
    assert bipf.is_idempotent(inner)
    assert not bipf.is_idempotent(bytes(inner))
    assert CODEC.encode({"address": inner, "list": [inner]}) == CODEC.encode(
        {"address": {"street": "x"}, "list": [{"street": "x"}]}
    )
    assert CODEC.encode(inner) == inner
    assert bipf.mark_idempotent(bytearray(inner)) == inner


def test_only_bipf_can_be_marked_as_encoded() -> None:
    for record in (b"", b"\x07", b"\x08a\x00"):
        with pytest.raises(DecodeError):
            bipf.mark_idempotent(record)


def test_encoded_values_count_their_levels() -> None:
    value: Any = []
    for _ in range(MAX_NESTING - 2):
        value = [value]
    inner = bipf.encode_idempotent(value)
    assert CODEC.is_valid(CODEC.encode([inner]))
    with pytest.raises(EncodeError, match=r"^\[0\]\[0\]: .*nested"):
        CODEC.encode([[inner]])


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("", bipf.STRING), (b"", bipf.BUFFER), (5, bipf.INT), (5.0, bipf.INT), (0.5, bipf.DOUBLE), (2**31, bipf.DOUBLE),
        ([object()], bipf.ARRAY), ((), bipf.ARRAY), ({}, bipf.OBJECT), (None, bipf.BOOLNULL), (True, bipf.BOOLNULL),
        (UNDEFINED, bipf.BOOLNULL), (object(), None), (math.nan, None),
    ],
)  # fmt: skip
def test_the_type_of_a_value(value: Any, kind: int | None) -> None:
    assert bipf.get_value_type(value) == kind


def test_key_caches_stay_small() -> None:
    for number in range(20_000):
        CODEC.decode(CODEC.encode({f"key {number}": 1, "k" * 100 + str(number): 2}))
    for cache in (bipf_decode._KEYS, bipf_encode._KEYS):
        assert len(cache) <= 4096
        assert all(len(key) <= 64 for key in cache)
