"""The kernels that hash, number, group and compare located values, against the plain functions that they speed up."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_cases import (
    MISSING,
    P1_INVERSE,
    before_last_word,
    colliding_payload,
    items,
    numbers,
    scalars,
    texts,
    values_of,
)
from kernel_cases import COMPILED, EXAMPLES

from jitdb.common.values import ABSENT, ARRAY, BYTES, MAP, NUMBER, STRING, UNDEFINED, split_number, value_key
from jitdb.engine import text_kernels
from jitdb.indexes import hash_kernels, numbering, numbering_kernels
from jitdb.indexes.hashing import P1, hash_key
from jitdb.indexes.kinds.casting import smallest_numbers
from jitdb.indexes.kinds.kernels import roaring as roaring_kernels
from jitdb.indexes.kinds.kernels.seen import OTHERS
from jitdb.indexes.kinds.numbers import extent_of
from jitdb.indexes.kinds.prefixes import hash_prefix, hash_prefixes, key_prefix
from jitdb.indexes.numbering import Limits, NumberingTable
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.containers import decode_container
from jitdb.log.codecs.fields import constants

pytestmark = pytest.mark.slow

MSGPACK = get_codec("msgpack")
ENCODING = constants.MSGPACK
LIMITS = Limits(1 << 16, 16 << 20, 1 << 16)


def key_of(item: Any) -> bytes:
    return bytes([ABSENT]) if item is MISSING else value_key(item)


def count_of(values: Any) -> int:
    return len(values.kind)


# --- numbering -------------------------------------------------------------------------------------------------------


def number_all(table: NumberingTable, given_items: Sequence[Any], states: Any = None) -> list[int] | None:
    values = values_of(given_items)
    found = table.number(values, np.zeros(count_of(values), np.uint8) if states is None else states)
    return None if found is None else found.tolist()


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.lists(items, min_size=1, max_size=12), min_size=1, max_size=4))
def test_numbers_are_those_of_a_dict(chunks: list[list[Any]]) -> None:
    table = NumberingTable()
    for chunk in chunks:
        found = number_all(table, chunk)
        assert found is not None
        keys = table.keys()
        assert [keys[number] for number in found] == [key_of(item) for item in chunk]
    keys = table.keys()
    assert keys[0] == bytes([ABSENT])
    # Only containers may have several numbers for one key: their bytes are not canonical.
    plain = [key for key in keys if key[0] < ARRAY]
    assert len(set(plain)) == len(plain)
    assert hash_prefixes(table.values()).tolist() == [0, *(hash_prefix(key) for key in keys[1:])]


def test_a_table_grows_to_any_size() -> None:
    size = 3000 if COMPILED else 600
    table = NumberingTable()
    words = [f"value {number} {'x' * (number % 50)}" for number in range(size)]
    assert number_all(table, words) == list(range(1, size + 1))
    assert number_all(table, words[::-1]) == list(range(size, 0, -1))
    assert number_all(table, list(range(size))) == list(range(size + 1, 2 * size + 1))
    assert table.keys()[1 : size + 1] == [value_key(word) for word in words]
    assert table.filled == 2 * size + 1


@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 64])
def test_values_that_differ_in_one_byte(size: int) -> None:
    words = ["a" * at + "b" + "a" * (size - at - 1) for at in range(size)] + ["a" * size, "a" * (size - 1)]
    table = NumberingTable()
    assert number_all(table, words * 2) == [*range(1, size + 3)] * 2
    values = values_of(words)
    # The kernel looks at bytes only where hashes are equal; here they all are.
    for left in range(size + 1):
        for right in range(size + 1):
            starts = int(values.start[left]), int(values.start[right])
            if size >= 8:
                same = numbering_kernels.same_long_bytes(values.buffer, starts[0], values.buffer, starts[1], size)
                assert same == (left == right)


def test_a_value_larger_than_the_arena() -> None:
    table = NumberingTable()
    large = ["x" * 60_000, b"y" * 60_000, "x" * 60_001]
    assert number_all(table, [*large, *large, ""]) == [1, 2, 3, 1, 2, 3, 4]
    assert [*map(len, table.keys())] == [1, 60_001, 60_001, 60_002, 1]


def test_values_whose_slots_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    # All of them begin their search at one slot of the first table, and of the next larger ones.
    monkeypatch.setattr(numbering, "urandom", lambda size: bytes(range(size)))
    keys = np.frombuffer(bytes(range(24)), np.uint64)
    buffer, kind, start, length, number = values_of([*map(str, range(60_000 if COMPILED else 6000))]).arrays
    rows = zip(kind.tolist(), start.tolist(), length.tolist(), number.tolist(), strict=True)
    with np.errstate(over="ignore"):  # a part of a kernel, asked by itself
        places = [int(numbering_kernels.slot_hash(keys, k, buffer, s, n, x)) & 1023 for k, s, n, x in rows]
    wanted = [str(word) for word, place in enumerate(places) if place in (1023, 0)]
    assert len(wanted) > (60 if COMPILED else 5)
    table = NumberingTable()
    assert number_all(table, wanted * 2) == [*range(1, len(wanted) + 1)] * 2
    others = [f"other {number}" for number in range(400)]  # the table grows, and enters all of them again
    assert number_all(table, others) is not None
    assert number_all(table, wanted) == [*range(1, len(wanted) + 1)]


def colliding_number(wanted: int) -> float:
    """The double of this hash, as far as its last word, the rest, is 0."""
    h = before_last_word(wanted, 10) * P1_INVERSE % 2**64
    h = (h ^ (h >> 29) ^ (h >> 58)) * P1_INVERSE % 2**64
    bits = h ^ (NUMBER + 1) * P1 % 2**64
    return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])


def hostile_values(count: int) -> dict[str, list[Any]]:
    """Values that somebody made who knows the hash on disk."""
    hashes = [number << 32 for number in range(1, 3 * count)]  # of equal lower halves: one slot, in any table
    prefixes = [7 << 32 | number for number in range(1, 3 * count)]  # of equal prefixes
    of_one_slot, of_one_prefix = (
        [x for x in map(colliding_number, wanted) if math.isfinite(x) and x != int(x)][:count]
        for wanted in (hashes, prefixes)
    )
    texts = [colliding_payload(BYTES, number.to_bytes(8, "little") + bytes(8), 77) for number in range(count)]
    head = MSGPACK.encode({"key": bytes(18)})[1:]  # of the one pair of the map: a3 key c4 12, then the bytes: 24 in all
    maps = [colliding_payload(MAP, head[:6] + number.to_bytes(4, "little") + bytes(14), 77) for number in range(count)]
    assert {hash_key(bytes([BYTES]) + text) for text in texts} == {77}
    assert {hash_key(value_key(number)) >> 32 for number in of_one_prefix} == {7}
    return {
        "numbers of one slot": of_one_slot,
        "numbers of one prefix": of_one_prefix,
        "bytes of one hash": texts,
        "maps of one hash": [{"key": found[6:]} for found in maps],
    }


def probes(table: NumberingTable) -> int:
    """How many slots a search for each value in the table looks at, all together."""
    slots = np.flatnonzero(table._slots)
    home = table._hash[table._slots[slots]] % np.uint64(len(table._slots))
    return int(((slots - home.astype(np.int64)) % len(table._slots) + 1).sum())


@pytest.mark.parametrize("kind", hostile_values(1))
def test_hostile_values_are_found_as_fast_as_others(kind: str) -> None:
    count = 4000 if COMPILED else 400
    hostile = hostile_values(count)[kind]
    assert len(hostile) == count
    table = NumberingTable(LIMITS)
    assert number_all(table, hostile * 2) == [*range(1, count + 1)] * 2
    assert probes(table) < 3 * count


def test_two_tables_give_a_value_different_slots() -> None:
    words = [f"w{number}" for number in range(100)]
    tables = [NumberingTable(LIMITS) for _ in range(2)]
    for table in tables:
        assert number_all(table, words) == [*range(1, 101)]
    assert (tables[0]._slots != tables[1]._slots).any()


def test_who_searches_too_long_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "MAX_PROBES", 1)  # so every collision is too much
    words = [f"w{number}" for number in range(200)]
    limited, free = NumberingTable(LIMITS), NumberingTable()
    assert number_all(limited, words) is None  # the records are known by their hashes from now on
    assert number_all(free, words * 2) == [*range(1, 201)] * 2
    assert probes(free) == 200


def test_equal_numbers_of_every_width_are_one_value() -> None:
    encodings = [b"\x01", b"\xcc\x01", b"\xcd\0\x01", b"\xce\0\0\0\x01", b"\xcf" + bytes(7) + b"\x01", b"\xd0\x01"]
    encodings += [b"\xd3" + bytes(7) + b"\x01", b"\xca\x3f\x80\0\0", b"\xcb\x3f\xf0" + bytes(6)]
    nans = [b"\xcb\x7f\xf8" + bytes(6), b"\xcb\xff\xf8" + bytes(5) + b"\x07", b"\xca\x7f\xc0\0\0"]
    zeros = [b"\x00", b"\xcb\x80" + bytes(7), b"\xca\x80\0\0\0"]
    from kernel_cases import scan

    records = [b"\x81\xa1v" + encoding for encoding in (*encodings, *nans, *zeros)]
    values = scan(MSGPACK, records, [("v",)])[0][0]
    table = NumberingTable()
    found = table.number(values, np.zeros(len(records), np.uint8))
    assert found is not None
    assert found.tolist() == [1] * len(encodings) + [2] * len(nans) + [3] * len(zeros)
    assert table.keys() == [b"\0", value_key(1), value_key(math.nan), value_key(0)]
    assert len(set(hash_prefixes(values).tolist())) == 3


def test_true_one_and_their_texts_are_values_of_their_own() -> None:
    table = NumberingTable()
    different = [True, 1, "1", b"1", "true", None, "", b"", False, 0, [], {}, [1], MISSING]
    assert number_all(table, different) == [*range(1, len(different)), 0]


def test_containers_of_equal_values_have_equal_keys() -> None:
    from kernel_cases import scan

    encodings = [b"\x91\x01", b"\xdc\0\x01\x01", b"\x91\xcb\x3f\xf0" + bytes(6)]
    maps = [b"\x82\xa1a\x01\xa1b\x02", b"\x82\xa1b\x02\xa1a\x01", b"\x82\xd9\x01a\xcc\x01\xa1b\x02"]
    values = scan(MSGPACK, [b"\x81\xa1v" + one for one in (*encodings, *maps)], [("v",)])[0][0]
    table = NumberingTable()
    found = table.number(values, np.zeros(6, np.uint8))
    assert found is not None
    keys = [table.keys()[number] for number in found.tolist()]
    assert keys == [value_key([1])] * 3 + [value_key({"a": 1, "b": 2})] * 3


def test_deleted_records_have_no_number() -> None:
    table = NumberingTable()
    values = values_of(["a", MISSING])
    kind = values.kind.copy()
    kind[0] = ABSENT
    found = table.number(values._replace(kind=kind), np.array([1, 0], np.uint8))
    assert found is not None
    assert found.tolist() == [int(numbering_kernels.NO_RECORD), int(numbering_kernels.NO_VALUE)]


def test_a_limited_table_is_full_at_its_limit_of_values() -> None:
    words = [f"w{number}" for number in range(2000)]
    limited, free = NumberingTable(Limits(500, 1 << 20, 1 << 20)), NumberingTable()
    assert number_all(limited, words[:500]) is not None
    assert number_all(limited, words) is None
    assert number_all(free, words) is not None


def test_a_limited_table_is_full_at_its_limit_of_bytes() -> None:
    table = NumberingTable(Limits(1 << 16, 100_000, 1 << 20))
    assert number_all(table, [f"{number}" * 1000 for number in range(10)]) is not None
    assert number_all(table, [f"{number:04}" * 1000 for number in range(50)]) is None


# --- prefixes --------------------------------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(items, min_size=1, max_size=8), st.integers(0, 12))
def test_byte_prefixes(given_items: list[Any], skip: int) -> None:
    out = np.empty(len(given_items), np.uint32)
    hash_kernels.byte_prefixes(*values_of(given_items).arrays, len(given_items), skip, out)
    assert out.tolist() == [0 if item is MISSING else key_prefix(value_key(item), skip) for item in given_items]


# --- numbers ---------------------------------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(numbers | st.just(MISSING) | st.just("x"), numbers | st.just(None)), min_size=1, max_size=8))
def test_smallest_numbers(rows: list[tuple[Any, Any]]) -> None:
    from kernel_cases import scan

    records = [
        MSGPACK.encode({name: item for name, item in zip("ab", row, strict=True) if item is not MISSING})
        for row in rows
    ]
    fields = scan(MSGPACK, records, [("a",), ("b",)])[0]
    hi, lo = np.empty(len(rows)), np.empty(len(rows), np.int16)
    seen = smallest_numbers(fields, hi, lo)
    low, high, rests, whole, zones = extent_of(hi, lo)
    others = [x for row in rows for x in row if x is not MISSING and x is not None]
    assert seen == (OTHERS if any(isinstance(x, bool) or not isinstance(x, (int, float)) for x in others) else 0)
    smallest = []
    for number_row, row in enumerate(rows):
        held = [x for x in row if isinstance(x, (int, float)) and not isinstance(x, bool) and x == x]
        if held:
            assert (float(hi[number_row]), int(lo[number_row])) == split_number(min(held))
            smallest.append(min(held))
        else:
            assert math.isnan(hi[number_row])
            assert lo[number_row] == 0
    highs = [split_number(x)[0] for x in smallest]
    assert (low, high) == (min(highs, default=math.inf), max(highs, default=-math.inf))
    lowest = -math.inf if np.isnan(hi).any() else min(highs)
    assert zones.tolist() == [[lowest], [max(highs, default=-math.inf)]]
    assert rests == any(split_number(x)[1] for x in smallest)
    assert whole == all(isinstance(x, int) or (math.isfinite(x) and x == int(x)) for x in smallest)


# --- comparing with one value ----------------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_equal_payloads(data: st.DataObject) -> None:
    given_items = data.draw(st.lists(scalars | st.just(MISSING), min_size=1, max_size=8))
    wanted = data.draw(st.sampled_from([item for item in given_items if item is not MISSING] or [None]) | scalars)
    key = value_key(wanted)
    out = np.empty(len(given_items), np.bool_)
    payload = np.frombuffer(key[1:] or b"\0", np.uint8)
    text_kernels.equal_payloads(
        *values_of(given_items).arrays, len(given_items), key[0], payload, len(key) - 1, True, out
    )
    assert out.tolist() == [key_of(item) == key for item in given_items]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(texts | st.binary(max_size=9) | st.just(MISSING) | st.integers(), min_size=1, max_size=8), texts)
def test_payloads_that_begin_with(given_items: list[Any], prefix: str) -> None:
    given_items = [item for item in given_items if not isinstance(item, int) or -(2**63) <= item < 2**64] or [MISSING]
    key = value_key(prefix)
    out = np.empty(len(given_items), np.bool_)
    payload = np.frombuffer(key[1:] or b"\0", np.uint8)
    text_kernels.equal_payloads(
        *values_of(given_items).arrays, len(given_items), STRING, payload, len(key) - 1, False, out
    )
    assert out.tolist() == [isinstance(item, str) and item.startswith(prefix) for item in given_items]


def test_a_number_no_record_can_hold_equals_none() -> None:
    key = value_key(10**400)
    assert key[0] == NUMBER
    out = np.empty(2, np.bool_)
    payload = np.frombuffer(key[1:], np.uint8)
    text_kernels.equal_payloads(*values_of([math.inf, 1]).arrays, 2, NUMBER, payload, len(key) - 1, True, out)
    assert out.tolist() == [False, False]


# --- grouping --------------------------------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_grouping(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))  # numbers in each table
    pieces = data.draw(
        st.lists(st.tuples(st.integers(0, len(sizes) - 1), st.lists(st.integers(-1, 5), max_size=9)), max_size=5)
    )
    bases = np.cumsum([0, *sizes])
    places = data.draw(st.lists(st.integers(0, 4), min_size=int(bases[-1]), max_size=int(bases[-1])))
    groups, lead = 4, data.draw(st.integers(0, 1000))  # place 4 is outside
    flat, piece_bases, bounds = [], [], [0]
    for table, held in pieces:
        flat += [int(numbering_kernels.NO_RECORD) if n < 0 else n % sizes[table] for n in held]
        piece_bases.append(int(bases[table]))
        bounds.append(len(flat))
    owners = sorted(data.draw(st.lists(st.integers(0, 20), min_size=len(flat), max_size=len(flat))))
    arrays = (np.array(flat, np.uint32), np.array(bounds, np.int64), np.array(piece_bases, np.int64))

    entries = [
        (None if number == int(numbering_kernels.NO_RECORD) else base + number, at)
        for base, start, stop in zip(piece_bases, bounds, bounds[1:], strict=False)
        for at, number in zip(range(start, stop), flat[start:stop], strict=True)
    ]
    counts = np.zeros(int(bases[-1]), np.int64)
    roaring_kernels.count_numbers(*arrays, counts)
    assert counts.tolist() == [sum(place == n for place, _ in entries) for n in range(len(counts))]

    for named in ([], owners):
        sorted_records = np.empty(len(flat), np.uint32)
        sizes = [sum(place is not None and places[place] == group for place, _ in entries) for group in range(groups)]
        begins = np.cumsum([0, *sizes])
        ends = begins[:-1].copy()
        roaring_kernels.group_records(
            *arrays, np.array(places, np.uint32), np.array(named, np.uint32), lead, sorted_records, ends
        )
        assert ends.tolist() == begins[1:].tolist()
        expected = [
            [named[at] if named else lead + at for place, at in entries if place is not None and places[place] == group]
            for group in range(groups)
        ]
        found = [sorted_records[begins[g] : begins[g + 1]].tolist() for g in range(groups)]
        assert found == expected


PARTS = [
    1, -1.5, 2**63, "text", "caf\udce9", b"bytes", None, True, [], {}, [1, [2, {"a": "b"}]], {"k": [None, {"x": 1.5}]},
    {("array", 1): "key"}, msgpack.ExtType(5, b"data"), msgpack.Timestamp(10**10, 7), "long " * 2_000,
    list(range(5_000)),
]  # fmt: skip


@pytest.mark.parametrize("part", PARTS, ids=lambda part: repr(part)[:20])
def test_payloads_decode_as_the_values_they_hold(part: Any) -> None:
    for value in ([part], [part, "next", part]):
        payload = b"".join(map(MSGPACK.encode, value))
        assert MSGPACK.decode(MSGPACK.encode(value)) == decode_container(ENCODING, ARRAY, payload)
    assert decode_container(ENCODING, MAP, MSGPACK.encode("key") + MSGPACK.encode(part)) == {"key": part}


@pytest.mark.parametrize("payload", [b"\x01\xc1", b"\x01\xcb\x00", b"\x92\x01", b"\xdd\xff\xff\xff\xff", b"\xa5abc"])
def test_a_malformed_payload_is_undefined(payload: bytes) -> None:
    for data in (payload, payload + b"\xdd\xff\xff\xff\xff" * 2_000):
        assert decode_container(ENCODING, ARRAY, data) is UNDEFINED
        assert decode_container(ENCODING, MAP, b"\x01" + data) is UNDEFINED
