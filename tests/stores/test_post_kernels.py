"""The kernels that find the fields of posts, and hash them, against what decoding and hashlib give."""

from __future__ import annotations

from hashlib import blake2b
from random import Random
from typing import Any

import numpy as np
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
from jitdb.stores.cable import post_kernels
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


@pytest.mark.parametrize("size", [0, 1, 7, 8, 127, 128, 129, 255, 256, 257, 1000])
def test_hashes_are_those_of_hashlib(size: int) -> None:
    records = [bytes(number * 7 % 256 for number in range(size)), b"other", bytes(size)]
    batch, out = RecordBatch.of(records), np.empty(96, np.uint8)
    scratch, verdicts = np.empty(post_kernels.SCRATCH, np.uint64), np.ones(3, np.uint8)
    post_kernels.hash_posts(batch.buffer, batch.starts, batch.lengths, verdicts, out, scratch)
    assert out.tobytes() == b"".join(blake2b(record, digest_size=32).digest() for record in records)


def test_deleted_records_have_no_fields() -> None:
    good = raw(vectors("posts", "posts")[0]["binary"])
    batch = RecordBatch.of([good, good])
    batch.states[0] = DELETED
    fields, broken = CODEC.locator(PATHS).fields(batch)
    assert broken == 0
    assert {int(values.kind[0]) for values in fields} == {0}
    assert batch.states[1] == LIVE
    assert fields[0].payload(1) == blake2b(good, digest_size=32).digest()
