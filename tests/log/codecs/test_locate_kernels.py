"""The compiled scan against `find`, record by record: any record that the formats allow, and any that they do not."""

from __future__ import annotations

import time

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import (
    COMPILED,
    EXAMPLES,
    KEYS,
    WELL_FORMED,
    bipf_value,
    crowded,
    hostile,
    keys_found,
    map_of,
    path_sets,
    scan,
)  # fmt: skip

from jitdb.common.paths import MAX_DEPTH, Path
from jitdb.common.values import ABSENT, KIND_NAMES, value_key
from jitdb.log.codecs import Codec, get_codec
from jitdb.log.codecs.bipf.format import ARRAY, OBJECT, STRING
from jitdb.log.codecs.compiled import build_trie
from jitdb.log.codecs.fields.constants import DELETED, MAX_NESTING
from jitdb.log.codecs.fields.located import RecordBatch

pytestmark = pytest.mark.slow

BIPF, MSGPACK = get_codec("bipf"), get_codec("msgpack")
each = pytest.mark.parametrize("codec", [BIPF, MSGPACK], ids=["bipf", "msgpack"])


def found_one_by_one(codec: Codec, records: list[bytes], paths: list[Path]) -> list[list[bytes]]:
    return [[value_key(codec.find(record, path)) for path in paths] for record in records]


@each
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), paths=path_sets)
def test_well_formed_records(codec: Codec, data: st.DataObject, paths: list[Path]) -> None:
    records = data.draw(st.lists(WELL_FORMED[codec.name], min_size=1, max_size=4))
    assert keys_found(codec, records, paths) == found_one_by_one(codec, records, paths)
    decodable = [record for record in records if codec.is_valid(record)]
    assert scan(codec, decodable, paths)[1] == 0


@each
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), paths=st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(tuple), unique=True))
def test_the_last_of_equal_keys_counts(codec: Codec, data: st.DataObject, paths: list[Path]) -> None:
    record = data.draw(crowded(codec.name))
    paths = paths or [("a",)]
    assert keys_found(codec, [record], paths) == found_one_by_one(codec, [record], paths)


@each
def test_what_the_first_of_equal_keys_held_is_forgotten(codec: Codec) -> None:
    one, two = codec.encode(1), codec.encode(2)
    inner = [map_of(codec.name, pairs) for pairs in ([(b"b", one)], [(b"a", two)], [(b"b", two), (b"b", one)])]
    values = [one, *inner, codec.encode({}), codec.encode([3])]
    paths: list[Path] = [("a",), ("a", "a"), ("a", "b"), ("a", "b", "a"), ("b",)]
    for first in values:
        for second in values:
            record = map_of(codec.name, [(b"a", first), (b"b", one), (b"a", second)])
            assert keys_found(codec, [record], paths) == found_one_by_one(codec, [record], paths)
            deeper = map_of(codec.name, [(b"x", record), (b"a", first), (b"x", record), (b"a", record)])
            below: list[Path] = [("x", *path) for path in paths] + [("a", *path) for path in paths]
            assert keys_found(codec, [deeper], below) == found_one_by_one(codec, [deeper], below)


@each
@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(data=st.data(), paths=path_sets)
def test_hostile_records(codec: Codec, data: st.DataObject, paths: list[Path]) -> None:
    records = data.draw(st.lists(hostile(codec.name), min_size=1, max_size=4))
    expected = found_one_by_one(codec, records, paths)
    assert keys_found(codec, records, paths) == expected


@each
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), paths=path_sets)
def test_what_lies_around_a_record_does_not_matter(codec: Codec, data: st.DataObject, paths: list[Path]) -> None:
    record = data.draw(hostile(codec.name))
    alone = keys_found(codec, [record], paths)
    for canary in (b"\0", b"\xff", b"\x08a", b"\xa1a", b"\x05", b"\x80", bytes(range(256))):
        assert keys_found(codec, [record], paths, before=canary * 3, after=canary * 12) == alone


@each
@given(data=st.data())
@settings(max_examples=EXAMPLES // 3, deadline=None)
def test_a_field_does_not_depend_on_the_others_asked_for(codec: Codec, data: st.DataObject) -> None:
    record = data.draw(WELL_FORMED[codec.name])
    paths = data.draw(path_sets)
    together = keys_found(codec, [record], paths)[0]
    assert [keys_found(codec, [record], [path])[0][0] for path in paths] == together


@each
def test_every_truncation_and_every_bit_of_one_record(codec: Codec) -> None:
    value = {"a": {"b": [1, "x"], "ab": None}, "b": True, "type": b"q", "": {"": 2.5}}
    whole = codec.encode(value)
    flips = [whole[:i] + bytes([whole[i] ^ 1 << bit]) + whole[i + 1 :] for i in range(len(whole)) for bit in range(8)]
    records = [whole[:size] for size in range(len(whole) + 1)] + flips + [whole + b"\0", whole + whole]
    paths: list[Path] = [("a",), ("a", "b"), ("a", "ab"), ("b",), ("type",), ("", ""), ("nowhere",)]
    for start in range(0, len(records), 50):
        part = records[start : start + 50]
        assert keys_found(codec, part, paths) == found_one_by_one(codec, part, paths)


@each
def test_deleted_records_have_no_fields(codec: Codec) -> None:
    record = codec.encode({"a": 1})
    buffer = np.frombuffer(bytearray(record * 2), np.uint8)
    states = np.array([DELETED, 0], np.uint8)
    starts, lengths = np.array([0, len(record)]), np.array([len(record)] * 2)
    (values,), malformed = codec.locator([("a",)]).fields(RecordBatch(buffer, starts, lengths, states))
    assert malformed == 0
    assert [KIND_NAMES[kind] for kind in values.kind] == ["absent", "number"]


def test_raw_records_have_no_fields() -> None:
    fields, malformed = scan(get_codec("raw"), [MSGPACK.encode({"a": 1}), b"x"], [("a",)])
    assert (fields[0].kind.tolist(), malformed) == ([ABSENT, ABSENT], 0)


@each
def test_malformed_records_are_counted(codec: Codec) -> None:
    good = codec.encode({"a": {"b": 1}})
    broken = {"bipf": b"\x10\x08ab", "msgpack": b"\x81\xa1a"}[codec.name]
    cut = {"bipf": b"\x35" + good[1:], "msgpack": good[:-1]}[codec.name]
    assert scan(codec, [good, broken, good, cut, good + b"\0", b""], [("a", "b")])[1] == 4
    scalars = [codec.encode(value) for value in (1, "x", None, True, [1, 2], b"q", 0.5)]
    assert scan(codec, scalars, [("a",)])[1] == 0


@each
def test_the_deepest_path(codec: Codec) -> None:
    path = tuple("k" for _ in range(MAX_DEPTH))
    value: object = "bottom"
    for _ in range(MAX_DEPTH):
        value = {"k": value}
    record = codec.encode(value)
    assert keys_found(codec, [record], [path, path[:-1], path[:1]]) == found_one_by_one(
        codec, [record], [path, path[:-1], path[:1]]
    )
    assert keys_found(codec, [codec.encode({"k": value})], [path]) == [[value_key({"k": "bottom"})]]


@each
def test_a_key_that_begins_like_another(codec: Codec) -> None:
    record = codec.encode({"a": 1, "ab": 2, "abc": 3, "": 4, "b" * 40: 5, "b" * 39 + "c": 6})
    paths: list[Path] = [("abc",), ("ab",), ("a",), ("",), ("b" * 40,), ("b" * 39 + "c",), ("abcd",)]
    assert keys_found(codec, [record], paths) == found_one_by_one(codec, [record], paths)


def _nested(codec: Codec, levels: int, inner: bytes, *, maps: bool) -> bytes:
    value = inner
    for _ in range(levels):
        if codec is MSGPACK:
            value = (b"\x81\xa1k" if maps else b"\x91") + value
        else:
            value = bipf_value(OBJECT if maps else ARRAY, (b"\x08k" if maps else b"") + value)
    return value


@each
@pytest.mark.parametrize("maps", [False, True], ids=["arrays", "maps"])
@pytest.mark.parametrize("levels", [MAX_NESTING - 1, MAX_NESTING, MAX_NESTING + 1, 3000])
def test_nesting_at_the_limit(codec: Codec, levels: int, maps: bool) -> None:
    inner = codec.encode("x")
    field = _nested(codec, levels, inner, maps=maps)
    empty = _nested(codec, levels - 1, codec.encode({} if maps else []), maps=maps)
    keys = [codec.encode("a"), codec.encode("e"), codec.encode("z")]
    body = keys[0] + field + keys[1] + empty + keys[2] + inner
    record = b"\x83" + body if codec is MSGPACK else bipf_value(OBJECT, body)
    paths: list[Path] = [("a",), ("e",), ("z",), ("a", "k")]
    assert keys_found(codec, [record], paths) == found_one_by_one(codec, [record], paths)


@pytest.mark.parametrize(
    "key",
    [{"x": 1}, [{"x": 1}], [[1, [{}]]], [1, [2]], {}, [], msgpack.ExtType(4, b"x"), msgpack.Timestamp(1, 2), 1.5, b"b"],
    ids=repr,
)
def test_msgpack_maps_whose_keys_python_cannot_hold(key: object) -> None:
    inner = b"\x82" + msgpack.packb(key) + b"\x01" + b"\xa1k\x02"
    record = b"\x82\xa1a" + inner + b"\xa1b" + b"\x91" + inner
    paths: list[Path] = [("a",), ("b",), ("a", "k")]
    assert keys_found(MSGPACK, [record], paths) == found_one_by_one(MSGPACK, [record], paths)


@pytest.mark.parametrize(
    "value",
    [
        b"\xd6\xff" + b"\xff" * 4,
        b"\xd7\xff" + (999_999_999 << 34 | 5).to_bytes(8, "big"),
        b"\xd7\xff" + (1_000_000_000 << 34 | 5).to_bytes(8, "big"),
        b"\xc7\x0c\xff" + (999_999_999).to_bytes(4, "big") + b"\xff" * 8,
        b"\xc7\x0c\xff" + (1_000_000_000).to_bytes(4, "big") + bytes(8),
        b"\xc7\x0c\xff" + b"\xff" * 12,
        b"\xd4\xff\0",
        b"\xd5\xff\0\0",
        b"\xd8\xff" + bytes(16),
        b"\xc7\x00\xff",
        b"\xc7\x00\x05",
    ],
    ids=lambda value: value.hex(),
)
def test_timestamps_that_are_none(value: bytes) -> None:
    record = b"\x82\xa1a" + value + b"\xa1b\x91" + value
    assert keys_found(MSGPACK, [record], [("a",), ("b",)]) == found_one_by_one(MSGPACK, [record], [("a",), ("b",)])


HUGE = {
    "bipf": [
        b"\xfd\xff\xff\xff\x7f" + b"\x08a",  # an object of 2**32 bytes and more
        b"\xfd\xff\xff\xff\x0f" + b"\x08a",
        bipf_value(OBJECT, b"\xf8\xff\xff\xff\x7f" + b"a"),
        bipf_value(OBJECT, b"\x08a" + b"\xf8\xff\xff\xff\x0f"),
        bipf_value(OBJECT, b"\x08a" + b"\x80" * 40),
        bipf_value(OBJECT, b"\x80" * 5000),
    ],
    "msgpack": [
        b"\xdf\xff\xff\xff\xff\xa1a\x01",
        b"\xdd\xff\xff\xff\xff\x01",
        b"\x81\xa1a\xdd\xff\xff\xff\xff\x01",
        b"\x81\xa1a\xdb\xff\xff\xff\xff\x01",
        b"\x81\xdb\xff\xff\xff\xff\x01",
        b"\x81\xa1b" + b"\xdf\xff\xff\xff\xff" * 2000,
        b"\x81\xa1a" + b"\xdd\xff\xff\xff\xff" * 2000,
        b"\x81\xa1a" + b"\xdc\xff\xff" * 3000,
    ],
}


@each
def test_huge_lengths_and_counts(codec: Codec) -> None:
    paths: list[Path] = [("a",), ("a", "a"), ("b",)]
    records = HUGE[codec.name]
    assert keys_found(codec, records, paths) == found_one_by_one(codec, records, paths)
    assert scan(codec, records, paths)[1] == len(records)


@pytest.mark.skipif(not COMPILED, reason="it is the compiled kernels' time that is measured")
@each
def test_no_record_takes_long(codec: Codec) -> None:
    size = 1 << 20
    filler = {
        "bipf": [
            bipf_value(OBJECT, b"\0\0" * (size // 2)),
            bipf_value(OBJECT, b"\x08k" + bipf_value(ARRAY, bytes(size))),
        ],
        "msgpack": [
            b"\x81\xa1k" + b"\x91" * size,
            b"\xdf\0\x08\0\0" + b"\xa0\xa0" * (size // 2),
            b"\x91" * size + b"\1",
        ],
    }[codec.name]
    deep = _nested(codec, 3000, codec.encode("x"), maps=True)
    paths = [tuple("k" * depth) for depth in range(1, MAX_DEPTH + 1)]
    scan(codec, [deep], paths)
    begin = time.perf_counter()
    scan(codec, [*filler, deep], paths)
    assert time.perf_counter() - begin < 1.0


def test_the_trie_holds_every_path_once() -> None:
    paths: list[Path] = [("a", "b"), ("a",), ("b",), ("a", "c"), ("a", "b", "c"), ("é",)]
    trie = build_trie(paths)
    walked: dict[int, Path] = {}

    def walk(node: int, path: Path) -> None:
        start, length = trie.key_start[node], trie.key_length[node]
        key = trie.keys[start : start + length].tobytes().decode()
        path = (*path, key) if node else ()
        if trie.field[node] >= 0:
            walked[int(trie.field[node])] = path
        child, seen = trie.first_child[node], node + 1
        while child >= 0:
            assert child == seen  # in preorder, without a gap
            walk(child, path)
            seen, child = trie.subtree_end[child], trie.next_sibling[child]
        assert trie.subtree_end[node] == seen

    walk(0, ())
    assert [walked[number] for number in range(len(paths))] == paths


def test_keys_of_every_length_are_told_apart() -> None:
    names = [key for key in KEYS if key != b"\xff"]
    record = bipf_value(OBJECT, b"".join(bipf_value(STRING, key) + bipf_value(STRING, key + b"!") for key in names))
    paths = [(key.decode(),) for key in names]
    assert keys_found(BIPF, [record], paths) == [[value_key(f"{key.decode()}!") for key in names]]
