"""The kernels that find the fields of posts, against what decoding and hashlib give."""

from __future__ import annotations

from hashlib import blake2b
from random import Random
from typing import Any

import pytest
from cable_posts import BROKEN, HEAD, posts, raw, vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import EXAMPLES, keys_found

from jitdb.common.paths import Path
from jitdb.common.values import value_at, value_key
from jitdb.errors import DecodeError
from jitdb.log.codecs.fields.constants import DELETED, LIVE
from jitdb.log.codecs.fields.located import RecordBatch
from jitdb.stores.cable.codec import CableCodec
from jitdb.stores.cable.post import Post

CODEC = CableCodec()
PATHS: list[Path] = [
    ("hash",), ("public_key",), ("signature",), ("links",), ("post_type",), ("timestamp",), ("channel",), ("text",),
    ("topic",), ("hashes",), ("info",), ("info", "name"), ("info", "accept-role"), ("nowhere",), ("channel", "0"),
]  # fmt: skip


def expected(record: bytes) -> list[bytes]:
    """The keys of all PATHS in a record, as decoding finds them; nothing where it is none."""
    try:
        said: Any = CODEC.decode(record)
    except DecodeError:
        return [b"\0"] * len(PATHS)
    return [value_key(value_at(said, path)) for path in PATHS]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(posts().map(CODEC.encode), min_size=1, max_size=6), st.binary(max_size=9))
def test_what_was_encoded_is_found(records: list[bytes], around: bytes) -> None:
    assert keys_found(CODEC, records, PATHS, before=around, after=around) == list(map(expected, records))


def test_the_posts_of_the_vectors_are_found() -> None:
    records = [raw(case["binary"]) for part in ("posts", "parse_cases") for case in vectors("posts", part)]
    assert keys_found(CODEC, records, PATHS) == list(map(expected, records))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_post_has_no_fields(name: str) -> None:
    good = raw(vectors("posts", "posts")[0]["binary"])
    records = [good, HEAD + BROKEN[name], good]
    batch = RecordBatch.of(records)
    assert CODEC.locator(PATHS).fields(batch)[1] == 1
    assert CODEC.locator(PATHS).invalid(batch).tolist() == CODEC.locator(()).invalid(batch).tolist() == [1]
    assert keys_found(CODEC, records, PATHS) == [expected(good), [b"\0"] * len(PATHS), expected(good)]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(posts(), st.randoms(use_true_random=False)), min_size=1, max_size=6))
def test_of_damaged_posts_the_same_is_found_as_decoded(written: list[tuple[Post, Random]]) -> None:
    records = []
    for post, rng in written:
        record = bytearray(CODEC.encode(post))
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(96, len(record))  # any key and signature will do
            record[at] = rng.choice([record[at] ^ 1 << rng.randrange(8), rng.randrange(256)])
        records.append(bytes(record[: rng.choice([len(record), rng.randrange(len(record))])]))
    assert keys_found(CODEC, records, PATHS) == list(map(expected, records))
    wrong = [number for number, record in enumerate(records) if not CODEC.is_valid(record)]
    assert CODEC.locator(()).invalid(RecordBatch.of(records)).tolist() == wrong


def test_deleted_records_have_no_fields() -> None:
    good = raw(vectors("posts", "posts")[0]["binary"])
    batch = RecordBatch.of([good, good])
    batch.states[0] = DELETED
    fields, broken = CODEC.locator(PATHS).fields(batch)
    assert broken == 0
    assert {int(values.kind[0]) for values in fields} == {0}
    assert batch.states[1] == LIVE
    assert fields[0].payload(1) == blake2b(good, digest_size=32).digest()
