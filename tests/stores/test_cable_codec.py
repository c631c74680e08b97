"""The codec of posts: bytes to values and back, and every question over a log of posts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cable_posts import BROKEN, HEAD, posts, raw, vectors
from hypothesis import given
from own_codec import name_codecs, registered_here
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import DecodeError, EncodeError
from jitdb.log.codecs import guess_codec
from jitdb.operators import and_, equal, field, includes
from jitdb.stores.cable.codec import CableCodec
from jitdb.stores.cable.post import JOIN, Post, hash_of, sign_post
from jitdb.testing.codecs import CodecTests

CODEC = CableCodec()


class TestCable(CodecTests):
    tries = tries(20, 600)
    codec = CODEC
    values = posts().map(CODEC.encode).map(CODEC.decode)
    paths = (
        ("hash",), ("public_key",), ("signature",), ("links",), ("post_type",), ("timestamp",), ("channel",), ("text",),
        ("topic",), ("hashes",), ("info",), ("info", "name"), ("info", "accept-role"), ("nowhere",), ("channel", "0"),
    )  # fmt: skip


def records_of_vectors() -> list[bytes]:
    return [raw(case["binary"]) for case in vectors("posts", "posts")]


@given(posts())
def test_a_post_is_what_its_values_say(post: Post) -> None:
    record = CODEC.encode(post)
    assert CODEC.encode(CODEC.decode(record)) == record
    found = CODEC.decode(record)
    assert found["hash"] == hash_of(record)
    assert (found["public_key"], found["post_type"], found["timestamp"]) == (
        post.public_key,
        post.post_type,
        post.timestamp,
    )


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_record_is_refused(name: str) -> None:
    with pytest.raises(DecodeError):
        CODEC.decode(HEAD + BROKEN[name])
    assert not CODEC.is_valid(HEAD + BROKEN[name])


GOOD = {
    "public_key": bytes(32), "signature": bytes(64), "links": [], "post_type": JOIN, "timestamp": 1, "channel": "c"
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "a post is a dict"),
        ({**GOOD, "post_type": None}, "post_type: 0 to 5"),
        ({**GOOD, "text": "x"}, "has no field 'text'"),
        ({**GOOD, "hash": bytes(32)}, "hash: that of the post"),
        ({**GOOD, "links": 5}, "links: a list"),
        ({name: GOOD[name] for name in GOOD if name != "channel"}, "channel: every post"),
    ],
)
def test_what_is_no_post_is_refused(value: Any, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        CODEC.encode(value)


def test_posts_are_known_by_their_records() -> None:
    with registered_here():
        jitdb.register_codec(CODEC)
        assert guess_codec(records_of_vectors()) == "cable"
        assert guess_codec([*records_of_vectors(), b"else"]) is None
        assert guess_codec([]) is None


def test_questions_are_answered_as_a_filter_would(tmp_path: Path) -> None:
    records = [*records_of_vectors(), *(sign_post(bytes(32), JOIN, time, channel="dev") for time in range(50))]
    said = list(map(CODEC.decode, records))
    link = next(each["links"][0] for each in said if each["links"])
    asked = {
        "a hash": (equal("hash", said[3]["hash"]), lambda each: each["hash"] == said[3]["hash"]),
        "a channel": (equal("channel", "dev"), lambda each: each.get("channel") == "dev"),
        "an author": (
            and_(equal("public_key", said[0]["public_key"]), equal("post_type", 0)),
            lambda each: each["public_key"] == said[0]["public_key"] and each["post_type"] == 0,
        ),
        "a time": (field("timestamp") >= 1700000000003, lambda each: each["timestamp"] >= 1700000000003),
        "a link": (includes("links", link), lambda each: link in each["links"]),
        "a name": (equal("info.name", "cabler"), lambda each: each.get("info", {}).get("name") == "cabler"),
    }
    with Log(tmp_path / "posts.log", codec=CODEC) as log:
        offsets = [log.append(value) for value in said]
        log.append_many(said[:1])
        log.delete(log.append(said[0]))
        log.flush()
        db = JITDB(log, "memory")
        for operation, matches in asked.values():
            expected = [offset for offset, each in zip(offsets, said, strict=True) if matches(each)]
            assert 0 < len(expected) < len(said)
            found = db.all(operation, as_offsets=True, sort_by="arrival")
            assert [offset for offset in found if offset <= offsets[-1]] == expected


def test_the_package_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(name_codecs(tmp_path / "site"))
    with registered_here(alone=True):
        with Log(tmp_path / "x.log", codec="cable") as log:
            log.append_many(map(CODEC.decode, records_of_vectors()))
        with jitdb.open(tmp_path / "x.log", read_only=True) as db:
            assert type(db.log.codec) is CableCodec
            assert db.count(equal("channel", "dev")) > 0
