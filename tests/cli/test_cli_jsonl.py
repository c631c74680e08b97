"""Every value that a log can hold has a line of JSON, and --tagged reads it back."""

from __future__ import annotations

import json
import math
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import tries

from jitdb.common.json_text import line_of, read_tagged
from jitdb.common.values import UNDEFINED, value_key
from jitdb.errors import EncodeError
from jitdb.log.codecs import get_codec

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
    | st.just("bytes that are no text: \udcff\udc80") | st.just(UNDEFINED)
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary())
    | st.builds(msgpack.Timestamp, st.integers(-(2**40), 2**40), st.integers(0, 10**9 - 1))
)  # fmt: skip
KEYS = st.text() | st.sampled_from(["$bytes", "$number", "$map", "$ext", "$undefined"]) | st.integers() | st.binary()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


def back(line: bytes) -> Any:
    return json.loads(line, object_hook=read_tagged)


@given(VALUES)
@settings(max_examples=tries(40, 400), deadline=None)
def test_round_trip(value: Any) -> None:
    line = line_of(value)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    json.loads(line, parse_constant=pytest.fail)  # NaN and Infinity are no JSON
    line.decode()
    assert value_key(back(line)) == value_key(value)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"a": b"hello"}, b'{"a":{"$bytes":"aGVsbG8="}}'),
        ([math.nan, math.inf, -math.inf], b'[{"$number":"NaN"},{"$number":"Infinity"},{"$number":"-Infinity"}]'),
        ({"a": UNDEFINED}, b'{"a":{"$undefined":true}}'),
        (msgpack.ExtType(5, b"x"), b'{"$ext":[5,"eA=="]}'),
        ({1: 2, "b": 3}, b'{"$map":[[1,2],["b",3]]}'),
        ({"$bytes": "AA=="}, b'{"$map":[["$bytes","AA=="]]}'),
        ({"$bytes": "AA==", "b": 1}, b'{"$bytes":"AA==","b":1}'),
        ("é\udcff", b'"\\u00e9\\udcff"'),
        ("é\u2028", '"é\u2028"'.encode()),
        ({True: 1, None: 2}, b'{"$map":[[true,1],[null,2]]}'),
    ],
)
def test_what_it_looks_like(value: Any, line: bytes) -> None:
    assert line_of(value) == line + b"\n"


def test_reserved_extension_codes_come_back() -> None:
    codec = get_codec("msgpack")
    value = codec.decode(b"\xd4\x80x")  # code -128, which msgpack's constructor refuses
    assert line_of(value) == b'{"$ext":[-128,"eA=="]}\n'
    assert tuple(back(line_of(value))) == tuple(value)


@pytest.mark.parametrize(
    "text",
    [
        '{"$bytes": 1}',
        '{"$bytes": "*"}',
        '{"$number": "one"}',
        '{"$ext": "x"}',
        '{"$ext": ["a", "eA=="]}',
        '{"$map": [1]}',
    ],
)
def test_tags_that_hold_something_else_are_refused(text: str) -> None:
    with pytest.raises(EncodeError, match="holds"):
        back(text.encode())
