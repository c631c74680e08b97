"""Whatever a call to a logger carries becomes what records hold, and raises nothing."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import tries

from jitdb.common.values import value_key
from jitdb.handlers.plain import plain, shortened
from jitdb.log.codecs import get_codec


class Colour(Enum):
    RED = 1


class Number(IntEnum):
    TWO = 2


@dataclass
class Point:
    x: int


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class HostileMap(dict[str, int]):
    def __getitem__(self, key: str) -> int:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02 00:00:00+00:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("/a/b"), "/a/b"),
        (Decimal("1.50"), "1.50"),
        (Colour.RED, "Colour.RED"),
        (Number.TWO, 2),
        (Point(1), "Point(x=1)"),
        (ValueError("x"), "ValueError('x')"),
        (np.int32(3), 3),
        (np.float32(0.5), "0.5"),
        (np.float64(0.5), 0.5),
        (bytearray(b"x"), b"x"),
        (OrderedDict(a=(1,)), {"a": [1]}),
        (frozenset({1}), [1]),
        (Hostile(), "<Hostile: it raised RuntimeError when it was logged>"),
        (HostileMap(a=1), {"a": 1}),
        ({1: {None: True}}, {"1": {"None": True}}),
        (2**64, str(2**64)),
        (2**64 - 1, 2**64 - 1),
        (-(2**63), -(2**63)),
    ],
)
def test_values_of_all_kinds(value: Any, expected: Any) -> None:
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)


def test_what_contains_itself_ends() -> None:
    value: list[Any] = []
    value.append(value)
    assert "[...]" in str(plain(value))


keys = st.text(st.characters())
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | keys | st.binary() | st.datetimes(),
    lambda part: st.lists(part) | st.dictionaries(keys | st.integers(), part) | st.tuples(part, part),
    max_leaves=20,
)


@settings(max_examples=tries(50, 2000), deadline=None)
@given(value=anything)
def test_msgpack_takes_it(value: Any) -> None:
    codec = get_codec("msgpack")
    found = {"value": plain(value)}
    assert value_key(codec.decode(codec.encode(found))) == value_key(found)
    assert value_key(plain(found)) == value_key(found)


@settings(max_examples=tries(50, 2000), deadline=None)
@given(value=st.dictionaries(st.text(min_size=1), anything, max_size=30), size=st.integers(64, 5000))
def test_what_is_shortened_is_small_in_the_end(value: dict[str, Any], size: int) -> None:
    codec = get_codec("msgpack")
    found = plain(value)
    for room in (size >> step for step in range(13)):
        if len(codec.encode(shortened(found, room))) <= size:
            return
    raise AssertionError("it never fits")
