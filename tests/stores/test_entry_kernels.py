"""The kernels that find the fields of a feed's records, against what these say and what decoding gives."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from feed_records import BROKEN, ENTRY, entries, field, keys, messages, records_of_vectors, said_by, values
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import COMPILED, EXAMPLES, keys_found

from jitdb.common.paths import Path
from jitdb.common.values import value_at, value_key
from jitdb.errors import DecodeError
from jitdb.log.codecs.fields.constants import DELETED, LIVE
from jitdb.log.codecs.fields.located import RecordBatch
from jitdb.stores.hyperdb.codec import HyperdbCodec

CODEC = HyperdbCodec()
NAMES = ("key", "value", "deleted", "trie", "clock", "inflate", "feeds", "contentFeed", "path", "protocol")
PATHS: list[Path] = [
    *((name,) for name in NAMES), *(("path", str(number)) for number in (0, 1, 2, 11, 999_999_999)),
    ("nowhere",), ("",), ("key", "0"), ("clock", "0"), ("path", "00"), ("path", "-1"), ("path", "٣"),
    ("path", "9" * 5000), ("path", "0", "0"),
]  # fmt: skip
NOTHING = b"\0"


def expected(said: Any) -> list[bytes]:
    """The keys of all PATHS in a record that says this; None: nothing."""
    return [NOTHING if said is None else value_key(value_at(said, path)) for path in PATHS]


def decoded(record: bytes) -> Any:
    try:
        return CODEC.decode(record)
    except DecodeError:
        return None


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(messages, min_size=1, max_size=6), st.binary(max_size=9))
def test_what_any_writer_says_is_found(written: list[Any], around: bytes) -> None:
    records = [b"".join(part.raw for part in message) for message in written]
    assert keys_found(CODEC, records, PATHS, before=around, after=around) == [expected(said_by(m)) for m in written]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(values, min_size=1, max_size=6))
def test_what_was_encoded_is_found(written: list[Any]) -> None:
    assert keys_found(CODEC, list(map(CODEC.encode, written)), PATHS) == list(map(expected, written))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_record_has_no_fields(name: str) -> None:
    batch = RecordBatch.of([ENTRY, BROKEN[name], ENTRY])
    fields, broken = CODEC.locator(PATHS).fields(batch)
    assert broken == 1
    assert CODEC.locator(PATHS).invalid(batch).tolist() == CODEC.locator(()).invalid(batch).tolist() == [1]
    assert {int(values.kind[1]) for values in fields} == {0}
    whole = expected({"key": "a/b", "path": {"0": "a", "1": "b"}, "deleted": False, "trie": b"", "clock": []})
    assert keys_found(CODEC, [ENTRY, BROKEN[name], ENTRY], PATHS) == [whole, expected(None), whole]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(entries, st.randoms(use_true_random=False)), min_size=1, max_size=6))
def test_of_damaged_records_the_same_is_found_as_decoded(written: list[tuple[Any, Random]]) -> None:
    records = []
    for value, rng in written:
        record = bytearray(CODEC.encode(value))
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(len(record))
            record[at] = rng.choice([record[at] ^ 1 << rng.randrange(8), rng.randrange(256)])
        records.append(bytes(record[: rng.choice([len(record), rng.randrange(len(record))])]))
    assert keys_found(CODEC, records, PATHS) == [expected(decoded(record)) for record in records]
    wrong = [number for number, record in enumerate(records) if decoded(record) is None]
    assert CODEC.locator(()).invalid(RecordBatch.of(records)).tolist() == wrong


def test_every_entry_cut_short() -> None:
    record = CODEC.encode({"key": "å/b", "value": b"1", "deleted": True, "trie": b"\1\2", "clock": [1, 300],
                           "inflate": 2**64 - 1, "feeds": [b"f" * 32], "contentFeed": b"c" * 32})  # fmt: skip
    records = [record[:size] for size in range(len(record))]
    assert keys_found(CODEC, records, PATHS) == [expected(decoded(record)) for record in records]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.binary(max_size=20) | keys.map(str.encode), min_size=1, max_size=6))
def test_keys_are_text_or_break_the_record(written: list[bytes]) -> None:
    records = [field(1, key) + field(4, b"") for key in written]
    found = [key for (key,) in keys_found(CODEC, records, [("key",)])]
    for key, there in zip(written, found, strict=True):
        try:
            assert there == value_key(key.decode())
        except UnicodeDecodeError:
            assert there == NOTHING


@pytest.mark.parametrize("count", [1, 2, 9, 10, 11, 12, 99, 100, 101, 110, 1000, 1001, 1234])
def test_a_path_of_many_segments(count: int) -> None:
    """Its map is sorted by the text of the numbers, as canonical keys are."""
    value = {"key": "/".join(f"s{number}" for number in range(count)), "trie": b""}
    path = {str(number): f"s{number}" for number in range(count)}
    (whole, *some), *_ = keys_found(
        CODEC, [CODEC.encode(value)], [("path",), ("path", str(count - 1)), ("path", str(count))]
    )
    assert whole == value_key(path)
    assert some == [value_key(f"s{count - 1}"), NOTHING]


def test_deleted_records_are_passed_over() -> None:
    records = [CODEC.encode({"key": str(number), "trie": b"", "clock": [number]}) for number in range(6)]
    batch = RecordBatch.of([*records, b"broken"])
    states = np.array([LIVE, DELETED, LIVE, DELETED, LIVE, DELETED, DELETED], np.uint8)
    batch = RecordBatch(batch.buffer, batch.starts, batch.lengths, states)
    locator = CODEC.locator([("key",), ("clock",)])
    (key, clock), broken = locator.fields(batch)
    assert broken == 0
    assert [key.payload(number) for number in np.flatnonzero(key.kind).tolist()] == [b"0", b"2", b"4"]
    assert np.flatnonzero(clock.kind).tolist() == [0, 2, 4]
    assert locator.invalid(batch).tolist() == []


def test_no_records() -> None:
    locator = CODEC.locator([("key",), ("clock",)])
    for records in ([], [ENTRY], []):
        fields, broken = locator.fields(RecordBatch.of(records))
        assert ([len(values.kind) for values in fields], broken) == ([len(records)] * 2, 0)


def test_the_records_of_the_vectors() -> None:
    records = records_of_vectors()
    records = records if COMPILED else records[:60]
    assert records
    assert keys_found(CODEC, records, PATHS) == [expected(CODEC.decode(record)) for record in records]


@pytest.mark.skipif(not COMPILED, reason="too many records for kernels that run as Python")
def test_a_large_batch() -> None:
    """Entries of a busy feed, some of them broken, and one locator for batches of any size."""
    rng = Random(4)
    records = []
    for number in range(30_000):
        key = "/".join(rng.choice(["life", "animal", "plant", "größe", f"n{number}"]) for _ in range(rng.randrange(6)))
        entry = {"key": key, "value": bytes(rng.randrange(60)), "deleted": number % 9 == 0, "clock": [number, 2**60],
                 "trie": rng.randbytes(rng.randrange(40)), "inflate": 1}  # fmt: skip
        record = CODEC.encode(entry | {"feeds": [rng.randbytes(32)] * 3} if number % 50 == 0 else entry)
        records.append(record[: rng.randrange(len(record))] if rng.random() < 0.01 else record)
    locator = CODEC.locator(PATHS[:13])
    for some in (records[:10], records, records[:3000]):
        fields, broken = locator.fields(RecordBatch.of(some))
        said = list(map(decoded, some))
        assert broken == said.count(None)
        for path, found in zip(PATHS[:13], fields, strict=True):
            there = [value is not None and value_key(value_at(value, path)) != NOTHING for value in said]
            assert (found.kind != 0).tolist() == there
        for number in range(0, len(some), 97):
            assert keys_found(CODEC, [some[number]], PATHS) == [expected(said[number])]
