"""msgpack, where it differs from what bipf holds too."""

from __future__ import annotations

import datetime
import math
from collections import OrderedDict
from typing import Any, NamedTuple

import msgpack
import pytest
from codec_cases import msgpack_values
from hypothesis import given

from jitdb.common.values import UNDEFINED
from jitdb.errors import DecodeError, EncodeError
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.msgpack.codec import check, skip

CODEC = get_codec("msgpack")

GOLDEN = [
    (None, "c0"), (False, "c2"), (True, "c3"), (0, "00"), (127, "7f"), (-1, "ff"), (-33, "d0df"), (128, "cc80"),
    (2**64 - 1, "cfffffffffffffffff"), (-(2**63), "d38000000000000000"), (1.0, "cb3ff0000000000000"),
    ("", "a0"), ("é", "a2c3a9"), ("x" * 32, "d920" + "78" * 32), (b"", "c400"), (b"\xff", "c401ff"),
    ([], "90"), ([1, "a"], "9201a161"), ({}, "80"), ({"a": {"b": None}}, "81a16181a162c0"),
    ({1: 2, b"k": 3}, "820102c4016b03"),
    ([0] * 16, "dc0010" + "00" * 16), (msgpack.ExtType(5, b"x"), "d40578"), (msgpack.Timestamp(1), "d6ff00000001"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "encoded"), GOLDEN, ids=[encoded[:20] for _, encoded in GOLDEN])
def test_golden_bytes(value: Any, encoded: str) -> None:
    record = bytes.fromhex(encoded)
    assert CODEC.encode(value) == record
    assert CODEC.decode(record) == value
    assert type(CODEC.decode(record)) is type(value)


def test_numbers_that_bipf_refuses() -> None:
    values = [2**64 - 1, -(2**63), 2**53 + 1, math.inf]
    assert CODEC.decode(CODEC.encode(values)) == values
    assert math.isnan(CODEC.decode(CODEC.encode(math.nan)))
    assert math.copysign(1, CODEC.decode(CODEC.encode(-0.0))) == -1


def test_floats_stay_floats() -> None:
    assert type(CODEC.decode(CODEC.encode(1.0))) is float


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": UNDEFINED}, "^a: .*leave the key out"),
        ({"a": [1, -(2**63) - 1]}, r"^a\[1\]: an integer of 64 bits"),
        ({"a": datetime.datetime(2020, 1, 1)}, "^a: .*datetime"),
        ({"a": {2**64: 1}}, "^a: one of the keys: an integer of 65 bits"),
        ({"a": {"\ud800": 1}}, "^a: one of the keys: .*lone surrogate"),
        ({"a": {(1, object()): 1}}, "^a: one of the keys"),
    ],
)
def test_what_is_refused(value: Any, message: str) -> None:
    with pytest.raises(EncodeError, match=message):
        CODEC.encode(value)


@pytest.mark.parametrize("value", [{(1, (2, 3)): "x", "l": [1, [2]]}, {"deep": [{(): 1}]}, {None: 1, True: 2, 0.5: 3}])
def test_keys_of_every_hashable_type(value: Any) -> None:
    assert CODEC.decode(CODEC.encode(value)) == value


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        ("818001", "unhashable"),  # a map as a key
        ("81918001", "unhashable"),
        ("c1", "never uses"),
        ("9201", "ends inside"),
        ("d9", "ends inside"),
        ("dcff", "ends inside"),
        ("dbffffffff00", "ends inside"),
        ("ddffffffff00", "ends inside"),
        ("dfffffffff00", "ends inside"),
        ("c6ffffffff00", "ends inside"),
        ("c9ffffffff0500", "ends inside"),
        ("0101", "1 bytes follow"),
        ("d4ff01", "timestamp"),
        ("d7ffffffffffffffffff", "nanoseconds"),
    ],
)
def test_malformed(encoded: str, message: str) -> None:
    record = bytes.fromhex(encoded)
    with pytest.raises(DecodeError, match=message):
        CODEC.decode(record)
    assert not CODEC.is_valid(record)
    assert CODEC.find(record, ()) is UNDEFINED
    assert CODEC.find(b"\x81\xa1a" + record, ("a",)) is UNDEFINED


def test_reserved_extension_codes_survive() -> None:
    record = bytes.fromhex("d4fe01")
    assert CODEC.decode(record) == (-2, b"\x01")
    assert CODEC.encode(CODEC.decode(record)) == record


def test_large_false_claims_cost_no_memory() -> None:
    # Room for all that these arrays claim to hold would be gigabytes.
    record = b"\xdd\x00\x0f\x00\x00" * 200 + b"\0" * 1_000_000
    with pytest.raises(DecodeError, match="ends inside"):
        CODEC.decode(record)


def test_the_last_of_equal_keys_wins() -> None:
    a_in_four_forms = [b"\xa1a", b"\xd9\x01a", b"\xda\x00\x01a", b"\xdb\x00\x00\x00\x01a"]
    for form in a_in_four_forms:
        record = b"\x82\xa1a\x01" + form + b"\x02"
        assert CODEC.find(record, ("a",)) == CODEC.decode(record)["a"] == 2
    record = bytes.fromhex("82" + "a161" + "81a16201" + "a161" + "81a16302")  # {a: {b: 1}, a: {c: 2}}
    assert CODEC.find(record, ("a", "b")) is UNDEFINED


def test_a_path_leads_over_string_keys_only() -> None:
    record = CODEC.encode({b"a": 1, 5: 2, None: 3})
    for path in ("a", "5", "None"):
        assert CODEC.find(record, (path,)) is UNDEFINED


@given(value=msgpack_values)
def test_skip_and_check_reach_the_end(value: Any) -> None:
    record = CODEC.encode(value)
    assert skip(b"--" + record + b"--", 2) == len(record) + 2
    assert check(b"--" + record + b"--", 2) == len(record) + 2


def test_skip_knows_every_first_byte() -> None:
    body = bytes([1]) * 100
    for head in range(256):
        if head == 0xC1:
            continue
        record = bytes([head]) + body
        if head in (0xDA, 0xDB, 0xC5, 0xC6, 0xC8, 0xC9, 0xDC, 0xDD, 0xDE, 0xDF):
            continue  # they claim more than there is
        unpacker = msgpack.Unpacker(strict_map_key=False, raw=True)
        unpacker.feed(record)
        unpacker.skip()
        assert skip(record, 0) == unpacker.tell(), hex(head)


class Lying(dict[Any, Any]):
    """A dict whose methods contradict each other."""

    def items(self) -> Any:
        return [("a", 1), ("b", 2), ("c", 3)]

    def __len__(self) -> int:
        return 7


class Longer(list[Any]):
    def __len__(self) -> int:
        return 5


class Pair(NamedTuple):
    left: int
    right: str


@pytest.mark.parametrize("name", ["msgpack", "bipf"])
def test_a_subclass_is_stored_as_what_it_extends(name: str) -> None:
    codec = get_codec(name)
    for value, plain in [
        (Lying(a=1), {"a": 1}),
        ({"deep": [Lying(a=Lying(b=2))]}, {"deep": [{"a": {"b": 2}}]}),
        (Longer([1, 2]), [1, 2]),
        (Pair(1, "x"), [1, "x"]),
        ({"t": (1, (2, 3))}, {"t": [1, [2, 3]]}),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    ]:
        assert codec.decode(codec.encode(value)) == plain
        assert codec.encode(value) == codec.encode(plain)
