"""Posts and messages of cable: round trips, limits, and bytes that anybody may have sent."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pytest
from cable_posts import BROKEN, HEAD, channels, hashes, numbers, posts, raw, vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import tries

from jitdb.stores.cable.errors import InvalidMessage, InvalidPost, NotAuthentic, NotEncodable
from jitdb.stores.cable.message import (
    CancelRequest,
    ChannelListRequest,
    ChannelListResponse,
    HashResponse,
    Message,
    PostRequest,
    PostResponse,
    StateRequest,
    TimeRangeRequest,
    decode_message,
    encode_message,
    read_message,
)
from jitdb.stores.cable.post import INFO, JOIN, TEXT, Post, decode_post, encode_post, sign_post, verify_post

EXAMPLES = tries(200, 3000)
ids = st.binary(min_size=8, max_size=8)
messages = st.one_of(
    st.builds(HashResponse, ids, hashes),
    st.builds(PostResponse, ids, st.lists(st.binary(min_size=1, max_size=200), max_size=3).map(tuple)),
    st.builds(PostRequest, ids, hashes),
    st.builds(CancelRequest, ids, ids),
    st.builds(TimeRangeRequest, ids, channels, numbers, numbers, numbers),
    st.builds(StateRequest, ids, channels, st.integers(0, 1)),
    st.builds(ChannelListRequest, ids, numbers, numbers),
    st.builds(ChannelListResponse, ids, st.lists(channels, max_size=3).map(tuple)),
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(posts())
def test_a_post_comes_back(post: Post) -> None:
    assert decode_post(encode_post(post)) == post


@settings(max_examples=EXAMPLES, deadline=None)
@given(messages)
def test_a_message_comes_back(message: Message) -> None:
    data = encode_message(message)
    assert decode_message(data) == message
    assert read_message(b"before" + data + b"behind", 6) == (message, 6 + len(data))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_post_is_refused_with_a_position(name: str) -> None:
    record = HEAD + BROKEN[name]
    with pytest.raises(InvalidPost) as caught:
        decode_post(record)
    assert caught.value.position is not None
    assert 0 <= caught.value.position <= len(record)


def damaged(data: bytes, rng: Random) -> bytes:
    """The same with some bytes changed, and the end cut off or not."""
    record = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(record))
        record[at] = rng.choice([record[at] ^ 1 << rng.randrange(8), rng.randrange(256)])
    return bytes(record[: rng.choice([len(record), rng.randrange(len(record))])])


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=200) | st.builds(damaged, posts().map(encode_post), st.randoms(use_true_random=False)))
def test_hostile_bytes_are_a_post_or_refused(data: bytes) -> None:
    with suppress(InvalidPost):
        assert encode_post(decode_post(data)) == data  # each post has one form


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=60) | st.builds(damaged, messages.map(encode_message), st.randoms(use_true_random=False)))
def test_hostile_bytes_are_a_message_or_refused(data: bytes) -> None:
    with suppress(InvalidMessage):
        assert encode_message(decode_message(data)) == data


def test_every_signed_byte_counts() -> None:
    post = sign_post(bytes(32), TEXT, 1, channel="c", text="hello")
    for at in range(len(post)):
        with pytest.raises((InvalidPost, NotAuthentic)):
            verify_post(post[:at] + bytes([post[at] ^ 1]) + post[at + 1 :])


def test_every_post_of_the_vectors_is_whole() -> None:
    for case in vectors("posts", "posts"):
        data = raw(case["binary"])
        for end in range(len(data)):
            with pytest.raises(InvalidPost):
                decode_post(data[:end])
        with pytest.raises(InvalidPost, match="follow the end"):
            decode_post(data + b"\0")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"public_key": b"short"}, "public_key: 32 bytes"),
        ({"signature": bytes(63)}, "signature: 64 bytes"),
        ({"links": (b"short",)}, "links: 32 bytes"),
        ({"links": b"not a list"}, "links: a list of hashes"),
        ({"post_type": 6}, "post_type: 0 to 5"),
        ({"post_type": True}, "post_type: 0 to 5"),
        ({"timestamp": -1}, "timestamp: a whole number"),
        ({"timestamp": 2**64}, "timestamp: a whole number"),
        ({"channel": "\ud800"}, "channel: .*not Unicode"),
        ({"channel": b"c"}, "channel: text"),
        ({"post_type": INFO, "info": "name"}, "info: pairs"),
        ({"post_type": INFO, "info": [("name", b"\xff")]}, "no UTF-8"),
        ({"post_type": INFO, "info": [("name", None)]}, "info: text, a number or bytes"),
        ({"post_type": INFO, "info": [("accept-role", b"")]}, "cut short"),
        ({"post_type": INFO, "info": [("", b"")]}, "the key has 0 codepoints"),
        ({"post_type": INFO, "info": [("k", bytes(4097))]}, "the value has 4,097 bytes"),
    ],
)
def test_what_is_no_post_is_refused(fields: dict[str, Any], said: str) -> None:
    post = Post(bytes(32), bytes(64), (), JOIN, 1, channel="c")
    with pytest.raises(NotEncodable, match=said):
        encode_post(post._replace(**fields))


def test_a_signed_post_has_the_fields_of_its_type() -> None:
    with pytest.raises(NotEncodable, match="has no text"):
        sign_post(bytes(32), JOIN, 1, channel="c", text="x")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (None, "a message is one of"),
        (HashResponse(bytes(4), ()), "req_id: 8 bytes"),
        (CancelRequest(bytes(8), bytes(4)), "cancel_id: 8 bytes"),
        (PostResponse(bytes(8), (b"",)), "posts: the bytes of a post"),
        (PostResponse(bytes(8), 7), "posts: a list"),
        (StateRequest(bytes(8), "c", 2), "future: 0 or 1"),
        (StateRequest(bytes(8), "", 0), "the channel has 0 codepoints"),
        (ChannelListResponse(bytes(8), ("",)), "the channel has 0 codepoints"),
    ],
)
def test_what_is_no_message_is_refused(message: Any, said: str) -> None:
    with pytest.raises(NotEncodable, match=said):
        encode_message(message)
