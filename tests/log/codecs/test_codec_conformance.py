"""What every codec with fields promises, run over each of them."""

from __future__ import annotations

import itertools
import json
import random
import sys
import time
from typing import Any

import pytest
from codec_cases import (
    CodecTests,
    bipf_values,
    json_maps,
    json_values,
    maps,
    msgpack_values,
    paths,
    records_of,
    same,
    walk,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import tries

from jitdb.common.values import UNDEFINED
from jitdb.errors import DecodeError, EncodeError, QueryError
from jitdb.log.codecs import Codec, get_codec
from jitdb.log.codecs.bipf.format import ARRAY, write_tag
from jitdb.log.codecs.fields.constants import MAX_NESTING
from jitdb.operators import equal

pytestmark = pytest.mark.slow

REAL = records_of("ssb-5k.bipf")


def accepted(codec: Codec, record: bytes) -> bool:
    """Whether `decode` takes the record; any error but DecodeError fails the test."""
    try:
        codec.decode(record)
    except DecodeError as error:
        failure = error
    else:
        return True
    assert failure.position is None or 0 <= failure.position <= len(record)
    return False


def nested(levels: int, key: str | None = None) -> Any:
    value: Any = {} if key else []
    for _ in range(levels - 1):
        value = {key: value} if key else [value]
    return value


VALUES = {"bipf": bipf_values, "msgpack": msgpack_values}


class TestBipf(CodecTests):
    codec = get_codec("bipf")
    values = maps | bipf_values


class TestMsgpack(CodecTests):
    codec = get_codec("msgpack")
    values = maps | msgpack_values


class TestJson(CodecTests):
    codec = get_codec("json")
    values = json_maps | json_values


class TestRaw(CodecTests):
    codec = get_codec("raw")
    values = st.binary(min_size=1, max_size=30)


each = pytest.mark.parametrize("codec", [get_codec("bipf"), get_codec("msgpack")], ids=["bipf", "msgpack"])


def real(codec: Codec) -> list[bytes]:
    bipf = get_codec("bipf")
    return [codec.encode(bipf.decode(record)) for record in REAL[::250]]


@each
@given(data=st.data())
def test_what_was_encoded_is_decoded(codec: Codec, data: st.DataObject) -> None:
    value = data.draw(VALUES[codec.name])
    record = codec.encode(value)
    assert type(record) is bytes
    assert same(codec.decode(record), value)
    assert codec.is_valid(record)
    assert codec.encode(codec.decode(record)) == codec.encode(value)


@each
@given(data=st.data(), path=paths)
def test_find_is_decode_then_walk(codec: Codec, data: st.DataObject, path: tuple[str, ...]) -> None:
    record = codec.encode(data.draw(maps | VALUES[codec.name]))
    assert same(codec.find(record, path), walk(codec.decode(record), path))


@each
def test_find_in_real_records(codec: Codec) -> None:
    everywhere = [("key",), ("value", "content", "type"), ("value", "content", "mentions"), ("value",), ("a", "b")]
    for record in real(codec):
        value = codec.decode(record)
        for path in everywhere:
            assert same(codec.find(record, path), walk(value, path))


@each
@given(data=st.data(), before=st.binary(max_size=9), after=st.binary(max_size=9))
def test_decode_at_reads_one_value_among_others(codec: Codec, data: st.DataObject, before: bytes, after: bytes) -> None:
    value = data.draw(VALUES[codec.name])
    assert same(codec.decode_at(before + codec.encode(value) + after, len(before)), value)


@each
@pytest.mark.parametrize("position", [-1, 3, 1 << 40])
def test_decode_at_outside_the_record(codec: Codec, position: int) -> None:
    with pytest.raises(DecodeError, match="outside"):
        codec.decode_at(codec.encode("xx"), position)


@each
def test_any_buffer_will_do(codec: Codec) -> None:
    record = codec.encode({"a": [1, "é", b"x"]})
    for buffer in (bytearray(record), memoryview(record), memoryview(b"--" + record)[2:]):
        assert codec.decode(buffer) == {"a": [1, "é", b"x"]}
        assert codec.find(buffer, ("a",)) == [1, "é", b"x"]
        assert codec.decode_at(buffer, 0) == {"a": [1, "é", b"x"]}
        assert codec.is_valid(buffer)


@each
def test_the_empty_record(codec: Codec) -> None:
    assert not accepted(codec, b"")
    assert not codec.is_valid(b"")
    assert codec.find(b"", ("a",)) is UNDEFINED
    assert codec.find(b"", ()) is UNDEFINED


@each
def test_trailing_bytes(codec: Codec) -> None:
    record = codec.encode({"a": 1})
    with pytest.raises(DecodeError, match="follow") as caught:
        codec.decode(record + b"\0")
    assert caught.value.position == len(record)
    assert not codec.is_valid(record + b"\0")
    assert codec.find(record + b"\0", ("a",)) is UNDEFINED


@each
def test_every_truncation(codec: Codec) -> None:
    record = real(codec)[3]
    for size in range(len(record)):
        assert not accepted(codec, record[:size])
        assert not codec.is_valid(record[:size])
        assert codec.find(record[:size], ("value", "author")) is UNDEFINED


@each
def test_flipped_bits(codec: Codec) -> None:
    chance = random.Random(7)
    records = real(codec)
    for _ in range(4000):
        record = bytearray(chance.choice(records))
        for _ in range(chance.randint(1, 4)):
            record[chance.randrange(len(record))] ^= 1 << chance.randrange(8)
        good = accepted(codec, bytes(record))
        assert codec.is_valid(record) == good
        found = codec.find(record, ("value", "content", "type"))
        if good:
            assert same(found, walk(codec.decode(record), ("value", "content", "type")))


@each
@settings(max_examples=tries(100, 2000))
@given(record=st.binary(max_size=60))
def test_random_bytes(codec: Codec, record: bytes) -> None:
    good = accepted(codec, record)
    assert codec.is_valid(record) == good
    codec.find(record, ("a", "b"))
    if good:
        assert same(codec.decode(codec.encode(codec.decode(record))), codec.decode(record))


@each
def test_a_long_run_of_every_byte(codec: Codec) -> None:
    for byte in range(256):
        record = bytes([byte]) * 20_000
        assert codec.is_valid(record) == accepted(codec, record)
        codec.find(record, ("a",))


@each
@pytest.mark.parametrize("key", [None, "k"])
def test_nested_as_deep_as_may_be(codec: Codec, key: str | None) -> None:
    value = nested(MAX_NESTING, key)
    record = codec.encode(value)
    assert codec.decode(record) == value
    assert codec.is_valid(record)


@each
@pytest.mark.parametrize("key", [None, "k"])
def test_nested_one_level_too_deep(codec: Codec, key: str | None) -> None:
    with pytest.raises(EncodeError, match="nested"):
        codec.encode(nested(MAX_NESTING + 1, key))


@each
def test_a_value_that_contains_itself(codec: Codec) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(EncodeError, match="nested"):
        codec.encode(endless)


@each
def test_find_decodes_the_field_alone(codec: Codec) -> None:
    # The field "bad" has a string that is not text; only a decoder that looks at it would have to escape it.
    record = codec.encode({"bad": "\udcff", "good": 1, "null": None})
    assert codec.find(record, ("good",)) == 1
    assert codec.find(record, ("null",)) is None
    assert codec.find(record, ("good", "below")) is UNDEFINED


@each
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"value": {"content": {"x": {1}}}}, r"^value\.content\.x: .*set"),
        ({"value": [0, {"n": 2**64 + 1}]}, r"^value\[1\]\.n: .*65 bits"),
        ({"a.b": {"c": object()}}, r'^\["a\.b"\]\.c: .*object'),
        (object(), "^a value of type object"),
        ({"a": "\ud800"}, "^a: .*lone surrogate"),
    ],
)
def test_an_error_names_the_path(codec: Codec, value: Any, message: str) -> None:
    with pytest.raises(EncodeError, match=message):
        codec.encode(value)


@each
def test_integers_too_large_to_be_shown(codec: Codec) -> None:
    for value in (1 << 100_000, {"a": 1 << 100_000}, {1 << 100_000: 1}):
        with pytest.raises(EncodeError, match=r"bits|of type int"):
            codec.encode(value)


@each
def test_bytes_that_are_not_utf8_survive(codec: Codec) -> None:
    text = b"caf\xe9".decode("utf-8", "surrogateescape")
    record = codec.encode({text: text})
    assert b"caf\xe9" in record
    assert codec.decode(record) == {text: text}


@each
def test_text_comes_back_as_it_was_or_is_refused(codec: Codec) -> None:
    pieces = ["", "a", "\u00e9", "\udce9", "\udcc3", "\udca9", "\ud800", "\U0001f600"]
    refused = 0
    for text in map("".join, itertools.product(pieces, repeat=3)):
        try:
            survives = text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") == text
        except UnicodeEncodeError:
            survives = False
        refused += not survives
        for value in (text, {text: 1}, {"a": [text]}):
            if survives:
                assert codec.decode(codec.encode(value)) == value
                assert equal("a", value) == equal("a", codec.decode(codec.encode(value)))
                continue
            with pytest.raises(EncodeError, match="surrogate"):
                codec.encode(value)
            with pytest.raises(QueryError, match="lone surrogate"):
                equal("a", value)
    assert refused > 100


@each
def test_subclasses_are_written_as_what_they_extend(codec: Codec) -> None:
    from collections import OrderedDict, namedtuple
    from enum import Enum, IntEnum

    class Colour(str, Enum):  # noqa: UP042  (str() of its members is not their value)
        RED = "red"

    class Size(IntEnum):
        BIG = 3

    pair = namedtuple("pair", "a b")
    value = OrderedDict(colour=Colour.RED, size=Size.BIG, pair=pair(1, 2))
    assert codec.decode(codec.encode(value)) == {"colour": "red", "size": 3, "pair": [1, 2]}


@each
def test_decoding_works_near_the_end_of_the_stack(codec: Codec) -> None:
    record = codec.encode(nested(MAX_NESTING))

    def dive(levels: int) -> None:
        if levels:
            dive(levels - 1)
        else:
            codec.decode(record)

    depth, frame = 0, sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        depth += 1
    dive(sys.getrecursionlimit() - depth - 60)


def test_many_levels_of_bipf_cost_nothing() -> None:
    codec = get_codec("bipf")
    record = b""
    for _ in range(5000):
        record = write_tag(len(record) << 3 | ARRAY) + record
    start = time.perf_counter()
    assert not accepted(codec, record)
    assert not codec.is_valid(record)
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize(
    "header", [b"\xdd\x00\x00\x0f\xff", b"\xdf\x00\x00\x0f\xff", b"\xdc\x0f\xff", b"\x91", b"\x81\xa1a"]
)
def test_many_levels_of_msgpack_cost_nothing(header: bytes) -> None:
    codec = get_codec("msgpack")
    record = header * 4000
    start = time.perf_counter()
    assert not accepted(codec, record)
    assert not codec.is_valid(record)
    codec.find(record, ("a", "a"))
    assert time.perf_counter() - start < 0.5


def test_both_codecs_hold_the_fixture() -> None:
    bipf, msgpack = get_codec("bipf"), get_codec("msgpack")
    for record in REAL:
        value = bipf.decode(record)
        assert bipf.encode(value) == record
        assert msgpack.decode(msgpack.encode(value)) == value
        json.dumps(value)
