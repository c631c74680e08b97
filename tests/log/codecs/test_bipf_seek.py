"""The functions that read bipf in place."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

import pytest
from codec_cases import bipf_values, keys, maps, records_of
from hypothesis import given
from hypothesis import strategies as st

from jitdb.errors import DecodeError
from jitdb.log.codecs.bipf import codec as bipf

pytestmark = pytest.mark.slow

RECORD = bipf.encode({"name": "ada", "tags": ["x", None], "address": {"city": "λ", "": 5}})


@given(record=maps.map(bipf.encode), data=st.data())
def test_seek_key_finds_every_key(record: bytes, data: st.DataObject) -> None:
    value = bipf.decode(record)
    for key, item in value.items():
        for wanted in (key, key.encode("utf-8", "surrogateescape")):
            assert bipf.pluck(record, bipf.seek_key(record, 0, wanted)) == bipf.encode(item)
        assert bipf.seek_key2(record, 0, bipf.encode(key), 0) == bipf.seek_key(record, 0, key)
        assert bipf.seek_key_cached(record, 0, key) == bipf.seek_key(record, 0, key)
    other = data.draw(keys.filter(lambda key: key not in value))
    assert bipf.seek_key(record, 0, other) == -1


def test_seek_path() -> None:
    for path in (["address", "city"], [b"address", "city"]):
        assert bipf.decode(RECORD, bipf.seek_path(RECORD, 0, path)) == "λ"
        assert bipf.decode(RECORD, bipf.create_seek_path(path)(RECORD, 0)) == "λ"
    assert bipf.seek_path(RECORD, 0, ["address", "nowhere"]) == -1
    assert bipf.seek_path(RECORD, 0, ["name", "city"]) == -1
    assert bipf.seek_path(RECORD, 0, []) == 0


def test_not_there_may_be_passed_on() -> None:
    assert bipf.seek_key(RECORD, -1, "name") == -1
    assert bipf.seek_key2(RECORD, -1, bipf.encode("name"), 0) == -1


def test_a_malformed_record_has_no_keys() -> None:
    for size in range(len(RECORD)):
        assert bipf.seek_key(RECORD[:size], 0, "address") == -1
    assert bipf.seek_key(b"\x15\x08a", 0, "b") == -1


def test_any_buffer_will_do() -> None:
    for buffer in (bytearray(RECORD), memoryview(RECORD)):
        assert bipf.decode(buffer, bipf.seek_path(buffer, 0, ["address", ""])) == 5
        assert bipf.slice(buffer, bipf.seek_key(buffer, 0, "name")) == b"ada"
        assert bipf.pluck(buffer, bipf.seek_key(buffer, 0, "name")) == b"\x18ada"


def visited(record: bytes, start: int = 0) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    assert bipf.iterate(record, start, lambda _, position, key: found.append((key, position))) == start
    return found


@given(value=st.lists(bipf_values, max_size=5))
def test_iterate_visits_every_element(value: list[Any]) -> None:
    record = bipf.encode(value)
    assert [(index, bipf.pluck(record, at)) for index, at in visited(record)] == [
        (index, bipf.encode(item)) for index, item in enumerate(value)
    ]


@given(value=maps)
def test_iterate_visits_every_key(value: dict[str, Any]) -> None:
    record = bipf.encode(value)
    assert [(bipf.pluck(record, key), bipf.pluck(record, at)) for key, at in visited(record)] == [
        (bipf.encode(key), bipf.encode(item)) for key, item in value.items()
    ]


def test_the_last_value_is_not_missed() -> None:
    # In the npm module, 1.9.0, neither of these last values is reached.
    assert len(visited(bipf.encode(["a", None]))) == 2
    record = bipf.encode({"x": "y" * 200, "": None})
    assert bipf.decode(record, bipf.seek_key(record, 0, "")) is None


def test_iterate_stops_when_told_to() -> None:
    seen: list[int] = []

    def stop_at_one(_: bytes, position: int, index: int) -> bool:
        seen.append(index)
        return index == 1

    assert bipf.iterate(bipf.encode([7, 8, 9]), 0, stop_at_one) == 0
    assert seen == [0, 1]


def test_iterate_over_no_container() -> None:
    assert bipf.iterate(bipf.encode("text"), 0, lambda *_: None) == -1


def test_iterate_over_a_broken_container() -> None:
    for record in (b"\x0c\x08a", b"\x15\x08a", b"\x14\x22\x01"):
        with pytest.raises(DecodeError):
            bipf.iterate(record, 0, lambda *_: None)


def test_encoded_types_and_lengths() -> None:
    start = bipf.seek_key(RECORD, 0, "name")
    assert bipf.get_encoded_type(RECORD, start) == bipf.STRING
    assert bipf.get_encoded_length(RECORD, start) == 3
    assert bipf.get_encoded_type(RECORD, 0) == bipf.OBJECT
    for position in (-1, len(RECORD)):
        with pytest.raises(DecodeError, match="outside"):
            bipf.get_encoded_type(RECORD, position)


def order(first: Any, second: Any) -> int:
    return bipf.compare(bipf.encode(first), 0, bipf.encode(second), 0)


def test_compare_sorts_kinds_and_numbers() -> None:
    from jitdb.common.values import UNDEFINED

    ascending = [None, "a", "ab", "b", b"", b"a", -1.5, -1, 0, 0.5, 1, 2**40, [], {}, False, True, UNDEFINED]
    for i, first in enumerate(ascending):
        for j, second in enumerate(ascending):
            assert order(first, second) == (i > j) - (i < j), (first, second)


def test_not_there_sorts_first() -> None:
    one = bipf.encode(None)
    assert bipf.compare(one, -1, one, 0) == -1
    assert bipf.compare(one, 0, one, -1) == 1
    assert bipf.compare(one, -1, one, -1) == 0


def test_nan_sorts_last_among_numbers() -> None:
    nan, one = bytes.fromhex("43000000000000f87f"), bipf.encode(1e300)
    assert bipf.compare(nan, 0, one, 0) == 1
    assert bipf.compare(one, 0, nan, 0) == -1
    assert bipf.compare(nan, 0, nan, 0) == 0


def test_comparing_a_broken_number() -> None:
    with pytest.raises(DecodeError):
        bipf.compare(b"\x12\0\0", 0, bipf.encode(1), 0)


@given(first=st.text(max_size=4), second=st.text(max_size=4))
def test_compare_string_orders_by_utf8(first: str, second: str) -> None:
    a, b = first.encode(), second.encode()
    assert bipf.compare_string(bipf.encode(first), 0, second) == (a > b) - (a < b)


def test_compare_string_of_something_else() -> None:
    assert bipf.compare_string(bipf.encode(5), 0, "5") is None
    assert bipf.compare_string(b"", -1, "5") is None


def test_sorting_real_records() -> None:
    records = records_of("ssb-5k.bipf")[:300]
    paths = [["value", "content", "type"], ["value", "sequence"], ["key"]]
    ordered = sorted(records, key=cmp_to_key(bipf.create_compare_at(paths)))

    def fields(record: bytes) -> tuple[Any, ...]:
        value = bipf.decode(record)
        content = value["value"]["content"]
        # A content without a type (a private message is a string) is "not there", and sorts first.
        kind = content.get("type") if isinstance(content, dict) else None
        return kind is not None, kind or "", value["value"]["sequence"], value["key"]

    assert ordered == sorted(records, key=fields)
