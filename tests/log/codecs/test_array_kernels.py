"""The elements of arrays as the compiled kernel lists them, against a plain loop over decoded records."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import EXAMPLES, WELL_FORMED, hostile, key_at, paths, scan

from jitdb.common.paths import Path
from jitdb.common.values import ARRAY, KIND_NAMES, MAP, UNDEFINED, value_key
from jitdb.engine.answering.confirm import plucked
from jitdb.indexes.building import sources
from jitdb.indexes.building.sources import ElementsSource, list_elements
from jitdb.log.codecs import Codec, array_kernels, get_codec
from jitdb.log.codecs.base import MAX_NESTING
from jitdb.log.codecs.locate import codec_number

BIPF, MSGPACK = get_codec("bipf"), get_codec("msgpack")
each = pytest.mark.parametrize("codec", [BIPF, MSGPACK], ids=["bipf", "msgpack"])


def pluck_of(codec: Codec, pluck: Path) -> Any:
    return ElementsSource(0, pluck, codec_number(codec))._pluck


def listed(codec: Codec, records: Sequence[bytes], path: Path, pluck: Path) -> list[tuple[int, bytes]]:
    """What the kernel lists: owner and canonical key, in order."""
    values, owners = list_elements(codec_number(codec), scan(codec, records, [path])[0][0], pluck_of(codec, pluck))
    return [(owner, key_at(codec, values, number)) for number, owner in enumerate(owners.tolist())]


def expected(codec: Codec, records: Sequence[bytes], path: Path, pluck: Path) -> list[tuple[int, bytes]]:
    out = []
    for owner, record in enumerate(records):
        value = codec.find(record, path)
        if value is UNDEFINED:
            continue
        if type(value) is not list:
            out.append((owner, value_key(value)))
            continue
        for element in value:
            item = plucked(element, pluck)
            if item is not UNDEFINED:
                out.append((owner, value_key(item)))
    return out


@each
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), pluck=st.just(()) | paths)
def test_elements_of_any_records(codec: Codec, data: st.DataObject, pluck: Path) -> None:
    item = WELL_FORMED[codec.name] | hostile(codec.name)
    items = data.draw(st.lists(item, max_size=6))
    body = b"".join(items)
    array = bytes([0x90 | len(items)]) + body if codec is MSGPACK else _bipf(4, body)
    records = [_in_a_map(codec, array), *(_in_a_map(codec, one) for one in items[:2]), *items[:1]]
    assert listed(codec, records, ("a",), pluck) == expected(codec, records, ("a",), pluck)


def _bipf(code: int, body: bytes) -> bytes:
    from kernel_cases import bipf_value

    return bipf_value(code, body)


def _in_a_map(codec: Codec, value: bytes) -> bytes:
    return b"\x81\xa1a" + value if codec is MSGPACK else _bipf(5, b"\x08a" + value)


STACK = np.empty(MAX_NESTING + 1, np.int64)
MENTIONS = [
    {"a": [{"link": "x", "name": 1}, {"link": "y"}, {"name": "z"}, "plain", 5]},
    {"a": []},
    {"a": {}},
    {"a": {"link": "not in an array"}},
    {"a": "x"},
    {},
    {"a": None},
    {"a": [["x", "y"], [], [["z"]], None, True, False, 0.5, b"q"]},
    {"a": [{"link": {"deep": [1, 2]}}, {"link": None}, {"link": []}]},
    {"a": [1] * 50},
    {"a": [{"link": {"deep": 7}}, {"link": 3}, {"link": [{"deep": 8}]}]},
]


@each
@pytest.mark.parametrize("pluck", [(), ("link",), ("link", "deep"), ("nowhere",), ("",)], ids=".".join)
def test_pluck_paths(codec: Codec, pluck: Path) -> None:
    records = [codec.encode(value) for value in MENTIONS]
    found = listed(codec, records, ("a",), pluck)
    assert found == expected(codec, records, ("a",), pluck)
    assert len(found) > 0


def test_arrays_of_arrays_are_elements_not_taken_apart() -> None:
    records = [MSGPACK.encode({"a": [["x", "y"], "z"]})]
    assert listed(MSGPACK, records, ("a",), ()) == [(0, value_key(["x", "y"])), (0, value_key("z"))]


def test_undefined_is_no_element() -> None:
    records = [BIPF.encode({"a": [1, UNDEFINED, 2]}), BIPF.encode({"a": UNDEFINED})]
    assert listed(BIPF, records, ("a",), ()) == [(0, value_key(1)), (0, value_key(2))]


@each
@pytest.mark.parametrize("room", [1, 2, 7, 60])
def test_listing_goes_on_where_there_was_no_room(codec: Codec, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [codec.encode({"a": [number % 3] * (number % 11)}) for number in range(100)]
    records += [codec.encode({"a": number}) for number in range(9)]
    monkeypatch.setattr(sources, "_FIRST_ROOM", room)
    assert listed(codec, records, ("a",), ()) == expected(codec, records, ("a",), ())


@each
def test_an_array_of_more_elements_than_there_is_room_for(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [codec.encode({"a": value}) for value in ([], list(range(500)), [1], {}, list(range(70)))]
    monkeypatch.setattr(sources, "_FIRST_ROOM", 1)
    for some in (records, records[1:2], records[::-1]):
        assert listed(codec, some, ("a",), ()) == expected(codec, some, ("a",), ())


@each
def test_room_is_for_elements_not_for_their_bytes(codec: Codec) -> None:
    values = scan(codec, [codec.encode({"a": ["x" * 100_000] * 100})], [("a",)])[0][0]
    listing = partial(list_elements, codec_number(codec), values, pluck_of(codec, ()))
    assert len(listing()[1]) == 100
    tracemalloc.start()
    listing()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(values.buffer) / 2


@each
def test_the_kernel_stops_before_a_record_that_does_not_fit(codec: Codec) -> None:
    records = [codec.encode({"a": value}) for value in ([1, 2, 3], [4], 5, [6] * 10)]
    buffer, kind, start, length, number = scan(codec, records, [("a",)])[0][0]
    room = 10  # elements, of the last record
    owner, out_kind = np.full(room, -1, np.int32), np.zeros(room, np.uint8)
    out_start, out_length, out_number = np.zeros(room, np.int32), np.zeros(room, np.int32), np.zeros(room)
    first, owners = 0, []
    while first < len(records):
        first, written = array_kernels.elements(
            codec_number(codec), buffer, kind, start, length, number, first, len(records), *pluck_of(codec, ()),
            owner, out_kind, out_start, out_length, out_number,
        )  # fmt: skip
        assert 0 < written <= room
        owners += owner[:written].tolist()
    assert owners == [0] * 3 + [1] + [2] + [3] * 10


@each
def test_read_value_says_where_the_next_one_begins(codec: Codec) -> None:
    values = [1, "x", None, [1, [2]], ["xy"], {"k": "xy"}, {"a": {"b": 1}}, True, b"q", 2**40, 0.5, [], {}]
    buffer = np.frombuffer(bytearray(b"".join(map(codec.encode, values))), np.uint8)
    position = 0
    for value in values:
        size = len(codec.encode(value))
        for read in (array_kernels.read_value, lambda *value: array_kernels.read_whole(*value, STACK)):
            found = read(codec_number(codec), buffer, position, len(buffer))
            assert (KIND_NAMES[found[0]], found[4]) == (KIND_NAMES[value_key(value)[0]], position + size)
            cut = read(codec_number(codec), buffer, position, position + size - 1)
            assert (cut[0], cut[4]) == (array_kernels.MALFORMED, position)
        position += size
    assert array_kernels.read_value(codec_number(codec), buffer, position, len(buffer))[0] == array_kernels.MALFORMED


@each
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_read_whole_takes_what_decoding_takes(codec: Codec, data: st.DataObject) -> None:
    value = data.draw(hostile(codec.name))
    buffer = np.frombuffer(bytearray(value or b"\0"), np.uint8)
    kind, *_, following = array_kernels.read_whole(codec_number(codec), buffer, 0, len(value), STACK)
    good = kind != array_kernels.MALFORMED and following == len(value)
    assert good == codec.is_valid(value)
    if kind in (ARRAY, MAP):
        assert following <= len(value)
