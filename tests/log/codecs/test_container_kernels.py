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

from jitdb.common.paths import ANY, Keys, Path
from jitdb.common.values import ARRAY, KIND_NAMES, UNDEFINED, value_at, value_key, values_at
from jitdb.errors import CodecError, DecodeError
from jitdb.indexes.kinds.prefixes import hash_prefixes
from jitdb.log.codecs import Codec, container_kernels, containers, get_codec
from jitdb.log.codecs.compiled import CompiledLocator
from jitdb.log.codecs.containers import Steps, decode_container, list_values
from jitdb.log.codecs.fields.constants import KEYS, MALFORMED
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch

pytestmark = pytest.mark.slow

BIPF, MSGPACK = get_codec("bipf"), get_codec("msgpack")
each = pytest.mark.parametrize("codec", [BIPF, MSGPACK], ids=["bipf", "msgpack"])


def listed(codec: Codec, records: Sequence[bytes], path: Keys, pluck: Keys) -> list[tuple[int, bytes]]:
    """What the kernel lists: owner and canonical key, in order."""
    values, owners = list_values(scan(codec, records, [path])[0][0], Steps.of((), included=pluck))
    return [(owner, key_at(values, number)) for number, owner in enumerate(owners.tolist())]


def expected(codec: Codec, records: Sequence[bytes], path: Keys, pluck: Keys) -> list[tuple[int, bytes]]:
    out = []
    for owner, record in enumerate(records):
        value = codec.find(record, path)
        if value is UNDEFINED:
            continue
        if type(value) is not list:
            out.append((owner, value_key(value)))
            continue
        for element in value:
            item = value_at(element, pluck)
            if item is not UNDEFINED:
                out.append((owner, value_key(item)))
    return out


@each
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), pluck=st.just(()) | paths)
def test_elements_of_any_records(codec: Codec, data: st.DataObject, pluck: Keys) -> None:
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
def test_pluck_paths(codec: Codec, pluck: Keys) -> None:
    records = [codec.encode(value) for value in MENTIONS]
    found = listed(codec, records, ("a",), pluck)
    assert found == expected(codec, records, ("a",), pluck)
    assert len(found) > 0


inner_steps = st.lists(st.sampled_from(["a", "b", "", 0, 1, 2, ANY]), max_size=4).map(tuple)
inner_values = st.recursive(
    st.sampled_from([None, True, 1, "x", UNDEFINED]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", ""]), inner, max_size=2),
    max_leaves=12,
)


@each
@pytest.mark.parametrize("absent", [False, True])
@settings(max_examples=EXAMPLES, deadline=None)
@given(found=st.lists(inner_values, max_size=5), path=inner_steps)
def test_any_path_inside_any_values(codec: Codec, absent: bool, found: list[Any], path: Path) -> None:
    if codec is MSGPACK:  # which has no word for it
        found = [without_undefined(value) for value in found]
    located = scan(codec, [codec.encode({"a": value}) for value in found], [("a",)])[0][0]
    values, owners = list_values(located, Steps.of(path), absent=absent)
    assert [(owner, key_at(values, number)) for number, owner in enumerate(owners.tolist())] == [
        (owner, value_key(item))
        for owner, value in enumerate(found)
        for item in list(values_at(value, path)) or [UNDEFINED] * absent
    ]


def without_undefined(value: Any) -> Any:
    if isinstance(value, list):
        return [without_undefined(item) for item in value]
    if isinstance(value, dict):
        return {key: without_undefined(item) for key, item in value.items()}
    return None if value is UNDEFINED else value


@each
def test_listing_paths_goes_on_where_there_was_no_room(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [[{"b": [number] * (number % 4)}, number, {"b": [1]}] * (number % 3) for number in range(30)]
    located = scan(codec, [codec.encode({"a": value}) for value in found], [("a",)])[0][0]
    whole = list_values(located, Steps.of((ANY, "b", ANY)), absent=True)
    for room in (1, 2, 5):
        monkeypatch.setattr(containers, "FIRST_ROOM", room)
        values, owners = list_values(located, Steps.of((ANY, "b", ANY)), absent=True)
        assert owners.tolist() == whole[1].tolist()
        assert values.kind.tolist() == whole[0].kind.tolist()


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
    monkeypatch.setattr(containers, "FIRST_ROOM", room)
    assert listed(codec, records, ("a",), ()) == expected(codec, records, ("a",), ())


@each
def test_an_array_of_more_elements_than_there_is_room_for(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [codec.encode({"a": value}) for value in ([], list(range(500)), [1], {}, list(range(70)))]
    monkeypatch.setattr(containers, "FIRST_ROOM", 1)
    for some in (records, records[1:2], records[::-1]):
        assert listed(codec, some, ("a",), ()) == expected(codec, some, ("a",), ())


@each
def test_room_is_for_elements_not_for_their_bytes(codec: Codec) -> None:
    values = scan(codec, [codec.encode({"a": ["x" * 100_000] * 100})], [("a",)])[0][0]
    listing = partial(list_values, values, Steps.of((ANY,)))
    assert len(listing()[1]) == 100
    tracemalloc.start()
    listing()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(values.buffer) / 2


@each
def test_the_kernel_stops_before_a_record_that_does_not_fit(codec: Codec) -> None:
    records = [codec.encode({"a": value}) for value in ([1, 2, 3], [4], 5, [6] * 10)]
    values = scan(codec, records, [("a",)])[0][0]
    room = 10  # elements, of the last record
    owner, out_kind = np.full(room, -1, np.int32), np.zeros(room, np.uint8)
    out_start, out_length, out_number = np.zeros(room, np.int32), np.zeros(room, np.int32), np.zeros(room)
    stack = np.empty(6, np.int64)
    first, owners = 0, []
    while first < len(records):
        steps = Steps.of((), included=())
        first, written = container_kernels.values_inside(
            *values, first, len(records), *steps, 0, stack, owner, out_kind, out_start, out_length, out_number
        )
        assert 0 < written <= room
        owners += owner[:written].tolist()
    assert owners == [0] * 3 + [1] + [2] + [3] * 10


SOME = [1, "x", None, [1, [2]], ["xy"], {"k": "xy"}, {"a": {"b": 1}}, True, b"q", 2**40, 0.5, [], {}]


@each
def test_read_value_says_where_the_next_one_begins(codec: Codec) -> None:
    buffer = np.frombuffer(bytearray(b"".join(map(codec.encode, SOME))), np.uint8)
    read = partial(container_kernels.read_value, scan(codec, [], [("a",)])[0][0].encoding, buffer)
    position = 0
    for value in SOME:
        size = len(codec.encode(value))
        found = read(position, len(buffer))
        assert (KIND_NAMES[found[0]], found[4]) == (KIND_NAMES[value_key(value)[0]], position + size)
        cut = read(position, position + size - 1)
        assert (cut[0], cut[4]) == (MALFORMED, -1)
        position += size
    assert read(position, len(buffer))[0] == MALFORMED


@each
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_values_at_are_what_decoding_finds_there(codec: Codec, data: st.DataObject) -> None:
    records = data.draw(st.lists(hostile(codec.name), min_size=1, max_size=4))
    positions = [data.draw(st.integers(-1, len(record))) for record in records]
    batch, locator = RecordBatch.of(records), codec.locator(())
    values = locator.values_at(batch, np.array(positions, np.int64))
    for number, (record, position) in enumerate(zip(records, positions, strict=True)):
        try:
            expected = value_key(codec.decode_at(record, position))
        except DecodeError:
            expected = value_key(UNDEFINED)
        assert key_at(values, number) == expected
    assert locator.invalid(batch).tolist() == [n for n, record in enumerate(records) if not codec.is_valid(record)]


def test_elements_of_keys_are_those_of_the_codecs() -> None:
    """Numbers keep their rest, also where it is negative."""
    array = [*SOME, 2**64 - 1, -(2**63) + 1, 2**53 + 1, 2**63 + 1]
    values, owners = list_values(FieldValues.of_keys([value_key(array), value_key({})]), Steps.of((), included=()))
    assert values.encoding == KEYS
    assert [key_at(values, number) for number in range(len(owners))] == [*map(value_key, array), value_key({})]


@pytest.mark.parametrize("encoding", [-1, 3, 255])
def test_no_kernel_is_given_an_unknown_encoding(encoding: int) -> None:
    records = [MSGPACK.encode({"a": [1]})]
    values = scan(MSGPACK, records, [("a",)])[0][0]._replace(encoding=encoding)
    refused = partial(pytest.raises, CodecError, match=f"{encoding} is no encoding")
    with refused():
        CompiledLocator(encoding, (refused, refused), [("a",)])
    with refused():
        list_values(values, Steps.of((), included=()))
    with refused():
        decode_container(encoding, ARRAY, values.payload(0))
    with refused():
        hash_prefixes(values)
