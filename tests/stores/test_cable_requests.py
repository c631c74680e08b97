"""What a peer is answered: the vectors' flows, and what they leave out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cable_posts import cases, raw

from jitdb.stores.cable import Cable, requests
from jitdb.stores.cable.errors import CableError
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
)
from jitdb.stores.cable.post import DELETE, INFO, JOIN, LEAVE, TEXT, TOPIC, hash_of, sign_post, verify_post
from jitdb.stores.cable.requests import Peer

SECRETS = [bytes([number]) * 32 for number in range(3)]


def req(number: int) -> bytes:
    return number.to_bytes(8, "big")


class Wire:
    """A store and a peer that asks it; all messages go as bytes."""

    def __init__(self, folder: Path) -> None:
        self.cable = Cable(folder, create=True)
        self.sent: list[Message] = []
        self.peer = Peer(self.cable, lambda message: self.sent.append(decode_message(encode_message(message))))

    def ask(self, request: Message) -> list[Message]:
        self.peer.receive(decode_message(encode_message(request)))
        return self.taken()

    def ingest(self, *posts: bytes) -> list[Message]:
        self.cable.ingest_many(posts)
        return self.taken()

    def taken(self) -> list[Message]:
        sent, self.sent = self.sent, []
        return sent


@pytest.fixture
def wire(tmp_path: Path) -> Any:
    made = Wire(tmp_path)
    yield made
    made.cable.close()


def request(step: list[Any], number: int, hashes: dict[str, bytes], asked: dict[str, int]) -> Message:
    kind, *said = step
    if kind == "post_request":
        return PostRequest(req(number), tuple(hashes.get(label, bytes(32)) for label in said[0]))
    if kind == "time_range":
        return TimeRangeRequest(req(number), *said)
    if kind == "state":
        return StateRequest(req(number), *said)
    if kind == "channel_list":
        return ChannelListRequest(req(number), *said)
    assert kind == "cancel"
    return CancelRequest(req(number), req(asked[said[0]]))


def said(message: Message, case: dict[str, Any]) -> dict[str, Any]:
    """A response as the vectors say it."""
    number = int.from_bytes(message.req_id, "big")
    posts = {raw(post["binary"]): post["label"] for post in case["posts"]}
    hashes = {raw(post["hash"]): post["label"] for post in case["posts"]}
    if isinstance(message, HashResponse):
        return {"req": f"r{number}", "msg_type": 0, "hashes": [hashes[each] for each in message.hashes]}
    if isinstance(message, PostResponse):
        return {"req": f"r{number}", "msg_type": 1, "posts": [posts[each] for each in message.posts]}
    assert isinstance(message, ChannelListResponse)
    return {"req": f"r{number}", "msg_type": 7, "channels": list(message.channels)}


def in_any_order(responses: list[dict[str, Any]]) -> list[Any]:
    """The order of hashes in a response of a state is nobody's."""
    return [{**each, "hashes": Counter(each["hashes"])} if "hashes" in each else each for each in responses]


@pytest.mark.parametrize("case", cases("request-flows", "flows"))
def test_vectors_of_flows(case: dict[str, Any], wire: Wire) -> None:
    posts = {post["label"]: raw(post["binary"]) for post in case["posts"]}
    hashes = {label: hash_of(post) for label, post in posts.items()}
    asked: dict[str, int] = {}
    for each in case["steps"]:
        if each["step"][0] == "ingest":
            found = wire.ingest(*(posts[label] for label in each["step"][1:]))
        else:
            asked[each["req"]] = int(each["req"][1:])
            found = wire.ask(request(each["step"], asked[each["req"]], hashes, asked))
        expected = each.get("expected", each["responses"])
        as_said = [said(message, case) for message in found]
        if each["step"][0] == "state":
            assert in_any_order(as_said) == in_any_order(expected)
        else:
            assert as_said == expected


def post(author: int, kind: int, time: int, *links: bytes, **body: Any) -> bytes:
    return sign_post(SECRETS[author], kind, time, links, **body)


def hashes_in(messages: list[Message]) -> list[list[bytes]]:
    return [list(message.hashes) for message in messages if isinstance(message, HashResponse)]


def test_a_live_state_tells_each_change_and_what_was_before(wire: Wire) -> None:
    join, one, two = (
        post(0, JOIN, 1, channel="c"),
        post(0, TOPIC, 2, channel="c", topic="1"),
        post(0, TOPIC, 3, channel="c", topic="2"),
    )
    name = post(0, INFO, 4, info=[("name", "ada")])
    assert wire.ask(StateRequest(req(1), "c", 1)) == []
    for each in (join, one, two, name):
        assert hashes_in(wire.ingest(each)) == [[hash_of(each)]]
    assert wire.ingest(post(0, TEXT, 5, channel="c", text="hi")) == []
    assert wire.ingest(post(1, JOIN, 5, channel="d")) == []
    gone = post(0, DELETE, 6, hashes=(hash_of(two),))
    assert hashes_in(wire.ingest(gone)) == [[hash_of(one)]]
    leave = post(0, LEAVE, 7, channel="c")
    assert hashes_in(wire.ingest(leave)) == [[hash_of(leave)]]
    assert hashes_in(wire.ingest(post(0, DELETE, 8, hashes=(hash_of(leave),)))) == [[hash_of(join)]]
    assert hashes_in(wire.ingest(post(0, LEAVE, 9, channel="c")))
    text = post(0, TEXT, 10, channel="c", text="back")  # a member again, whose information was sent before
    assert wire.ingest(text) == []
    other = post(0, INFO, 11, info=[("name", "bob")])
    assert hashes_in(wire.ingest(other)) == [[hash_of(other)]]
    wire.ask(CancelRequest(req(2), req(1)))
    assert wire.peer.alive == []
    assert wire.ingest(post(1, JOIN, 12, channel="c")) == []


def test_a_limit_ends_a_live_request(wire: Wire) -> None:
    texts = [post(0, TEXT, time, channel="c", text="") for time in range(1, 6)]
    wire.ingest(*texts[:2])
    found = wire.ask(TimeRangeRequest(req(1), "c", 0, 0, 3))
    assert hashes_in(found) == [[hash_of(texts[1]), hash_of(texts[0])]]
    assert hashes_in(wire.ingest(texts[2])) == [[hash_of(texts[2])], []]
    assert wire.ingest(texts[3]) == []
    assert hashes_in(wire.ask(TimeRangeRequest(req(2), "c", 0, 0, 1))) == [[hash_of(texts[3])], []]


def test_a_delete_is_told_of_when_it_concerns_the_channel(wire: Wire) -> None:
    text = post(0, TEXT, 1, channel="c", text="")
    gone = post(0, DELETE, 2, hashes=(hash_of(text),))
    wire.ask(TimeRangeRequest(req(1), "c", 0, 0, 0))
    assert wire.ingest(gone) == []
    assert hashes_in(wire.ingest(text)) == [[hash_of(gone)]]
    assert wire.ingest(text) == []


def test_information_belongs_to_the_channels_that_its_author_has_posts_in_now(wire: Wire) -> None:
    """So does a delete of it: not where these posts were deleted, and from when on they come."""
    text, name = post(0, TEXT, 1, channel="c", text=""), post(0, INFO, 2, info=[("name", "ada")])
    gone, no_name = post(0, DELETE, 3, hashes=(hash_of(text),)), post(0, DELETE, 4, hashes=(hash_of(name),))
    wire.ingest(text, name, gone)
    assert hashes_in(wire.ask(TimeRangeRequest(req(1), "c", 0, 0, 0))) == [[hash_of(gone)]]
    assert wire.ingest(no_name) == []
    assert wire.cable.concerns(hash_of(no_name)) == set()
    assert wire.cable.history("c") == []
    join = post(0, JOIN, 5, channel="c")
    assert hashes_in(wire.ingest(join)) == [[hash_of(no_name)]]
    assert wire.cable.messages("c") == [hash_of(no_name), hash_of(gone)]
    assert wire.ingest(post(0, TOPIC, 6, channel="c", topic="t")) == []
    wire.cable.prune([hash_of(join)])
    assert wire.cable.concerns(hash_of(no_name)) == {"c"}  # by the topic
    wire.cable.block(verify_post(join).public_key)
    assert wire.cable.messages("c") == []


def test_a_link_from_another_channel_changes_a_live_state(wire: Wire) -> None:
    late, early_by = post(0, TOPIC, 9, channel="c", topic="late"), post(1, TEXT, 1, channel="d", text="x")
    between = post(1, TEXT, 2, hash_of(late), channel="d", text="x")
    early = post(0, TOPIC, 3, hash_of(between), channel="c", topic="early")
    assert hashes_in(wire.ask(StateRequest(req(1), "c", 1))) == []
    assert hashes_in(wire.ingest(late, early, early_by)) == [[hash_of(late)]]
    assert [set(each) for each in hashes_in(wire.ingest(between))] == [{hash_of(early), hash_of(between)}]


def test_an_id_that_is_alive_is_not_taken_again(wire: Wire) -> None:
    wire.ingest(post(0, TEXT, 1, channel="c", text=""))
    assert len(wire.ask(TimeRangeRequest(req(1), "c", 0, 0, 0))) == 1
    assert wire.ask(TimeRangeRequest(req(1), "c", 0, 0, 0)) == []
    assert wire.ask(HashResponse(req(2), ())) == []
    wire.peer.close()
    assert wire.ingest(post(0, TEXT, 2, channel="c", text="")) == []


def test_only_so_many_requests_of_a_peer_stay_alive(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST_ALIVE", 2)
    for number in range(2):
        assert wire.ask(TimeRangeRequest(req(number), "c", 0, 0, 0)) == []
    assert wire.ask(StateRequest(req(2), "c", 1)) == [HashResponse(req(2), ())]
    assert wire.peer.alive == [req(0), req(1)]


def test_what_is_no_request_is_said(wire: Wire) -> None:
    with pytest.raises(CableError, match="a request is one of"):
        wire.peer.receive("nonsense")  # type: ignore[arg-type]


def test_a_state_comes_with_the_chain_that_decides_it(wire: Wire, tmp_path: Path) -> None:
    """A topic of an early time that links, by a text elsewhere, to one of a late time: who asks must see why."""
    late = post(0, TOPIC, 9, channel="c", topic="late")
    between = post(1, TEXT, 1, hash_of(late), channel="d", text="x")
    early = post(0, TOPIC, 3, hash_of(between), channel="c", topic="early")
    wire.ingest(late, between, early)
    answers = wire.ask(StateRequest(req(1), "c", 0))
    assert [set(each) for each in hashes_in(answers)] == [{hash_of(early), hash_of(between)}, set()]
    asked = wire.ask(PostRequest(req(2), tuple(each for part in hashes_in(answers) for each in part)))
    with Cable(tmp_path / "other", create=True) as other:
        other.ingest(late)
        other.ingest_many(data for message in asked if isinstance(message, PostResponse) for data in message.posts)
        assert other.topic("c") == "early"
    assert wire.cable.state("c") == [hash_of(early)]


def test_a_post_that_is_a_part_and_in_a_chain_comes_once(wire: Wire) -> None:
    late = post(0, TOPIC, 9, channel="c", topic="late")
    join = post(1, JOIN, 1, hash_of(late), channel="c")
    early = post(0, TOPIC, 3, hash_of(join), channel="c", topic="early")
    wire.ingest(late, join, early)
    (found, end) = hashes_in(wire.ask(StateRequest(req(1), "c", 0)))
    assert (sorted(found), end) == (sorted([hash_of(join), hash_of(early)]), [])


def test_many_posts_come_in_several_responses(wire: Wire) -> None:
    posts = [post(0, TEXT, time, channel="c", text="x" * 4096) for time in range(300)]
    wire.ingest(*posts)
    found = wire.ask(PostRequest(req(1), tuple(map(hash_of, posts))))
    parts = [list(message.posts) for message in found if isinstance(message, PostResponse)]
    assert len(parts) > 2
    assert parts[-1] == []
    assert [each for part in parts for each in part] == posts
