"""The reference's own posts and messages: tests/data/vectors/cable, or $JITDB_VECTORS/cable."""

from __future__ import annotations

from typing import Any

import pytest
from cable_posts import cases, post_of, raw, vectors

from jitdb.stores.cable.errors import InvalidPost, NotAuthentic, NotEncodable
from jitdb.stores.cable.message import KINDS, decode_message, encode_message
from jitdb.stores.cable.post import INFO, TEXT, TOPIC, decode_post, encode_post, hash_of, sign_post, verify_post


@pytest.mark.parametrize("case", cases("posts", "posts"))
def test_posts(case: dict[str, Any]) -> None:
    post, data = post_of(case), raw(case["binary"])
    assert encode_post(post) == data
    assert decode_post(data) == verify_post(data) == post
    assert hash_of(data) == raw(case["hash"])
    secret = raw(vectors("posts", "keys")[case["author"]]["seed"])
    body = {name: getattr(post, name) for name in case["fields"] if name not in ("links", "post_type", "timestamp")}
    assert sign_post(secret, post.post_type, post.timestamp, post.links, **body) == data


@pytest.mark.parametrize("case", cases("posts", "parse_cases"))
def test_parsing(case: dict[str, Any]) -> None:
    if case["expected"] == "accept":
        assert encode_post(verify_post(raw(case["binary"]))) == raw(case["binary"])
    else:
        with pytest.raises((InvalidPost, NotAuthentic)):
            verify_post(raw(case["binary"]))


# What the names of the cases say that is to be made, and whether the draft allows it.
LIMITS: dict[str, tuple[int, dict[str, Any], bool]] = {
    "channel 65 bytes": (TEXT, {"channel": "x" * 65, "text": ""}, False),
    "channel empty": (TEXT, {"channel": "", "text": ""}, False),
    "channel 33 two-byte codepoints (66 bytes, legal in spec)": (TEXT, {"channel": "é" * 33, "text": ""}, True),
    "text 4097 bytes": (TEXT, {"channel": "c", "text": "x" * 4097}, False),
    "topic 513 bytes": (TOPIC, {"channel": "c", "topic": "x" * 513}, False),
    "name 33": (INFO, {"info": [("name", "x" * 33)]}, False),
    "name empty": (INFO, {"info": [("name", "")]}, False),
    "unknown info key (legal in spec)": (INFO, {"info": [("colour", b"red")]}, True),
}


@pytest.mark.parametrize("case", cases("posts", "create_limits"))
def test_limits(case: dict[str, Any]) -> None:
    post_type, body, is_legal = LIMITS[case["name"].removeprefix("create: ")]
    if is_legal:
        assert verify_post(sign_post(bytes(32), post_type, 1, **body)).post_type == post_type
    else:
        with pytest.raises(NotEncodable):
            sign_post(bytes(32), post_type, 1, **body)


@pytest.mark.parametrize("case", cases("messages", "messages"))
def test_messages(case: dict[str, Any]) -> None:
    in_hex = ("hashes", "posts", "cancel_id")
    said = {name: raw(value) if name in in_hex else value for name, value in case["fields"].items()}
    said |= {"channels": tuple(said["channels"])} if "channels" in said else {}
    said.pop("ttl", None)  # the draft has none any more
    message = KINDS[case["msg_type"]](req_id=raw(case["req_id"]), **said)
    assert encode_message(message) == raw(case["draft8"])
    assert decode_message(raw(case["draft8"])) == message
