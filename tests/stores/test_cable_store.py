"""A store of posts: what it takes and refuses, what goes and stays away, and that the order of arrival is nobody's."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from cable_model import Model
from cable_posts import BROKEN, HEAD, raw, vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import tries

from jitdb import Log
from jitdb.errors import JitdbError, LogClosed
from jitdb.stores.cable import Cable
from jitdb.stores.cable.codec import CableCodec
from jitdb.stores.cable.errors import CableError, InvalidPost, NotAuthentic, TooEarly
from jitdb.stores.cable.post import DELETE, INFO, JOIN, LEAVE, TEXT, TOPIC, hash_of, sign_post, verify_post

SECRETS = [bytes([number]) * 32 for number in range(3)]
KEYS = [verify_post(sign_post(secret, JOIN, 1, channel="c")).public_key for secret in SECRETS]
WEEK = 7 * 24 * 3600 * 1000


def text(author: int, time: int, channel: str = "c", *links: bytes, said: str = "") -> bytes:
    return sign_post(SECRETS[author], TEXT, time, links, channel=channel, text=said)


def delete(author: int, time: int, *posts: bytes) -> bytes:
    return sign_post(SECRETS[author], DELETE, time, hashes=tuple(map(hash_of, posts)))


def everything(cable: Cable) -> dict[str, Any]:
    """All views."""
    channels = cable.channels()
    return {
        "hashes": sorted(cable.hashes()),
        "channels": channels,
        "deleted": cable.deleted(),
        **{f"in {channel}": in_channel(cable, channel) for channel in channels},
        **{f"of {key.hex()}": (cable.joined(key), cable.info(key), cable.by(key)) for key in KEYS},
    }


def in_channel(cable: Cable, channel: str) -> list[Any]:
    return [
        cable.messages(channel), cable.messages(channel, 2, 5, 2), cable.topic(channel), cable.members(channel),
        cable.authors(channel), sorted(cable.state(channel)), sorted(cable.history(channel)),
    ]  # fmt: skip


def views_of(posts: Sequence[bytes], moderators: Sequence[int] = ()) -> dict[str, Any]:
    """Those of a new store that these come to."""
    with TemporaryDirectory() as folder, Cable(folder, create=True) as cable:
        for moderator in moderators:
            cable.trust(KEYS[moderator])
        for post in posts[:-2]:
            cable.ingest(post)
        everything(cable)  # what is remembered from now on must be so too
        cable.ingest_many(posts[-2:])
        return everything(cable)


# --- any order -------------------------------------------------------------------------------------------------------


KINDS = [TEXT, DELETE, DELETE, INFO, TOPIC, JOIN, LEAVE]


@st.composite
def histories(draw: st.DrawFn, kinds: Sequence[int] = KINDS, channels: str = "cd", latest: int = 6) -> list[bytes]:
    """Posts of a few users, that link to each other and delete each other; times say little."""
    made: list[bytes] = []
    for _ in range(draw(st.integers(2, 9))):
        secret, time = SECRETS[draw(st.integers(0, 1))], draw(st.integers(1, latest))
        some = st.lists(st.sampled_from(made), max_size=2, unique=True) if made else st.just([])
        links = tuple(map(hash_of, draw(some)))
        kind, channel = draw(st.sampled_from(kinds)), draw(st.sampled_from(channels))
        body: dict[str, Any] = {"channel": channel}
        if kind == TEXT:
            body["text"] = draw(st.sampled_from(["", "x"]))
        elif kind == DELETE:
            body = {"hashes": tuple(map(hash_of, draw(some)))}
        elif kind == INFO:
            body = {"info": [("name", draw(st.sampled_from("ab")))]}
        elif kind == TOPIC:
            body["topic"] = draw(st.sampled_from(["", "t", "u"]))
        made.append(sign_post(secret, kind, time, links, **body))
    return made


@settings(max_examples=tries(20, 400), deadline=None)
@given(st.data())
def test_any_order_of_arrival_gives_the_same_views(data: st.DataObject) -> None:
    history = data.draw(histories())
    moderators = data.draw(st.sampled_from([[], [0]]))
    again = data.draw(st.permutations([*history, *history[:2]]))
    model = Model(history, [KEYS[moderator] for moderator in moderators])
    assert views_of(again, moderators) == model.everything(KEYS)


@settings(max_examples=tries(6, 60), deadline=None)
@given(histories())
def test_the_logs_alone_give_the_same_views(history: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        with Cable(folder, create=True) as cable:
            cable.ingest_many(history)
            before = everything(cable)
        for indexes in Path(folder).glob("*.jitdb/indexes"):
            shutil.rmtree(indexes)
        with Cable(folder) as cable:
            assert everything(cable) == before


# --- what is taken ---------------------------------------------------------------------------------------------------


@pytest.fixture
def cable(tmp_path: Path) -> Any:
    with Cable(tmp_path / "chat", create=True, clock=lambda: 1000) as made:
        yield made


def refused(cable: Cable, post: bytes, error: type[JitdbError]) -> None:
    before = everything(cable)
    with pytest.raises(error):
        cable.ingest(post)
    assert everything(cable) == before


def test_what_is_no_post_is_refused_and_nothing_is_stored(cable: Cable) -> None:
    cable.ingest(text(0, 1))
    for name in BROKEN:
        refused(cable, HEAD + BROKEN[name], InvalidPost)
    for case in vectors("posts", "parse_cases"):
        if case["expected"] == "reject":
            refused(cable, raw(case["binary"]), CableError)
    refused(cable, text(0, 2)[:-1] + b"\x01", CableError)
    refused(cable, KEYS[1] + text(0, 2)[32:], NotAuthentic)


def test_a_post_of_next_week_is_refused(cable: Cable) -> None:
    refused(cable, text(0, 1000 + WEEK), TooEarly)
    assert cable.ingest(text(0, 999 + WEEK)) == "stored"


def test_of_many_posts_those_that_are_wrong_are_told(cable: Cable) -> None:
    good = text(0, 1)
    found = cable.ingest_many([good, good[:-1], good, text(0, 2)])
    assert [found[0], *found[2:]] == ["stored", "known", "stored"]
    assert isinstance(found[1], InvalidPost)


def test_posts_are_taken_from_any_bytes(cable: Cable) -> None:
    posts = [text(0, time) for time in range(4)]
    given: list[Any] = [bytearray(posts[1]), memoryview(posts[2]), "text", posts[3]]
    assert cable.ingest(bytearray(posts[0])) == "stored"
    found = cable.ingest_many(given)
    assert [*found[:2], found[3]] == ["stored"] * 3
    assert isinstance(found[2], InvalidPost)
    assert [cable.get(hash_of(post)) for post in posts] == posts


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda cable: cable.get("00" * 32), "hash of a post is 32 bytes"),
        (lambda cable: cable.find(b"short"), "hash of a post is 32 bytes"),
        (lambda cable: cable.links_to(None), "hash of a post is 32 bytes"),
        (lambda cable: cable.prune("abc"), "hash of a post is 32 bytes"),
        (lambda cable: cable.concerns(b""), "hash of a post is 32 bytes"),
        (lambda cable: cable.by("ada"), "public key is 32 bytes"),
        (lambda cable: cable.joined(None), "public key is 32 bytes"),
        (lambda cable: cable.info(b"x"), "public key is 32 bytes"),
        (lambda cable: cable.block(b"x"), "public key is 32 bytes"),
        (lambda cable: cable.members(b"c"), "name of a channel is text"),
        (lambda cable: cable.messages(None), "name of a channel is text"),
        (lambda cable: cable.messages("c", limit=-1), "a limit is a number of posts"),
        (lambda cable: cable.ingest("text"), "a post is bytes"),
    ],
)
def test_what_is_no_argument_is_said(cable: Cable, wrong: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(CableError, match=said):
        wrong(cable)


def test_all_64_bits_of_limits_and_times(cable: Cable) -> None:
    cable.ingest(text(0, 1))
    assert len(cable.messages("c", 0, 2**64 - 1, 2**64 - 1)) == 1
    assert cable.messages("c", 2**64 - 1) == []


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(CableError, match=r"no posts here.*create=True"):
        Cable(tmp_path / "none")
    assert not (tmp_path / "none").exists()


# --- what goes -------------------------------------------------------------------------------------------------------


def test_what_was_deleted_stays_away(cable: Cable) -> None:
    post = text(0, 1)
    cable.ingest(post)
    cable.ingest(delete(0, 2, post))
    assert cable.get(hash_of(post)) is None
    assert cable.ingest(post) == "deleted"
    assert cable.deleted() == [hash_of(post)]


def test_a_closed_store_takes_no_posts(cable: Cable) -> None:
    posts = [text(0, time) for time in range(1, 80)]
    cable.ingest_many(posts[:40])
    cable.close()
    with pytest.raises(LogClosed):
        cable.ingest_many(posts[40:])


def test_a_delete_waits_for_what_it_names(cable: Cable, tmp_path: Path) -> None:
    post = text(0, 1)
    cable.ingest(delete(0, 2, post))
    assert cable.deleted() == []
    cable.close()
    with Cable(tmp_path / "chat") as again:
        assert again.ingest(post) == "deleted"
        assert again.messages("c") == [hash_of(delete(0, 2, post))]


def test_only_its_author_deletes_a_post(cable: Cable) -> None:
    post = text(0, 1)
    cable.ingest(delete(1, 2, post))
    assert cable.ingest(post) == "stored"
    cable.ingest(delete(1, 3, post))
    assert cable.get(hash_of(post)) == post
    assert cable.messages("c") == [hash_of(post)]


def test_a_moderator_deletes_what_others_wrote_before_and_after(cable: Cable) -> None:
    early, late = text(0, 1), text(0, 2)
    cable.ingest(early)
    cable.ingest(delete(2, 3, early))
    cable.ingest(delete(2, 4, late))
    assert cable.get(hash_of(early))
    cable.trust(KEYS[2])
    assert cable.moderators() == [KEYS[2]]
    assert cable.get(hash_of(early)) is None
    assert cable.ingest(late) == "deleted"
    cable.distrust(KEYS[2])
    assert cable.ingest(early) == "deleted"
    post = text(1, 5)
    cable.ingest(post)
    cable.ingest(delete(2, 6, post))
    assert cable.get(hash_of(post)) == post


def test_no_delete_is_deleted(cable: Cable) -> None:
    post = text(0, 1)
    first = delete(0, 2, post)
    cable.ingest(delete(0, 3, first))
    assert cable.ingest(first) == "stored"
    cable.ingest(delete(0, 4, first))
    assert cable.get(hash_of(first)) == first
    assert cable.ingest(post) == "deleted"


def test_a_blocked_author_is_gone_until_unblocked(cable: Cable, tmp_path: Path) -> None:
    posts = [text(0, 1), text(0, 2, "d")]
    cable.ingest_many([*posts, text(1, 3)])
    assert cable.block(KEYS[0]) == 2
    assert cable.channels() == ["c"]
    assert cable.by(KEYS[0]) == []
    cable.close()
    with Cable(tmp_path / "chat") as again:
        assert again.blocked() == [KEYS[0]]
        assert again.ingest(posts[0]) == "blocked"
        again.unblock(KEYS[0])
        assert again.ingest(posts[0]) == "stored"
        assert again.deleted() == []


def test_what_is_pruned_may_come_again_but_deletes_stay(cable: Cable) -> None:
    old, new, gone = text(0, 1), text(0, 5), text(0, 6)
    last = delete(0, 7, gone)
    cable.ingest_many([old, new, gone, last])
    assert cable.prune_messages(5, "d") == 0
    assert cable.prune_messages(5) == 1
    assert cable.prune([hash_of(new), hash_of(last), bytes(32)]) == 1
    assert cable.messages("c") == [hash_of(last)]
    assert cable.deleted() == [hash_of(gone)]
    assert cable.ingest_many([old, new]) == ["stored", "stored"]


def test_a_chain_of_links_counts_for_more_than_time(cable: Cable) -> None:
    first = sign_post(SECRETS[0], TOPIC, 9, channel="c", topic="first")
    between = text(1, 1, "d", hash_of(first))
    second = sign_post(SECRETS[0], TOPIC, 3, (hash_of(between),), channel="c", topic="second")
    cable.ingest_many([first, second])
    assert cable.topic("c") == "first"  # nobody knows of the chain yet
    cable.ingest(between)
    assert cable.topic("c") == "second"
    assert cable.links_to(hash_of(first)) == [hash_of(between)]
    cable.ingest(delete(1, 4, between))
    assert cable.topic("c") == "first"


def test_who_left_is_no_member_in_any_view_where_links_overrule_the_join(cable: Cable) -> None:
    """The join is later than the leave; but a text links to it, and of that text and the leave the leave is later."""
    join = sign_post(SECRETS[0], JOIN, 22, channel="c")
    leave = sign_post(SECRETS[0], LEAVE, 15, channel="c")
    name = sign_post(SECRETS[0], INFO, 30, info=[("name", "ada")])
    cable.ingest_many([join, text(0, 7, "c", hash_of(join)), leave, name])
    assert (cable.members("c"), cable.joined(KEYS[0]), cable.is_member(KEYS[0], "c")) == ([], [], False)
    assert cable.state("c") == [hash_of(join)]


MOVES = [JOIN, LEAVE, LEAVE, TEXT, TEXT, INFO, DELETE]


@settings(max_examples=tries(40, 1500), deadline=None)
@given(histories(MOVES, "cccd", 30))
def test_all_views_agree_on_who_is_a_member(history: list[bytes]) -> None:
    """So does who gets to know of a channel by its state alone, but for those whom a text made a member."""
    model = Model(history)
    with TemporaryDirectory() as folder, Cable(folder, create=True) as cable:
        cable.ingest_many(history)
        for channel in model.channels():
            expected = [key for key in sorted(KEYS) if model.is_member(key, channel)]
            assert cable.members(channel) == expected
            assert [key for key in sorted(KEYS) if cable.is_member(key, channel)] == expected
            assert [key for key in sorted(KEYS) if channel in cable.joined(key)] == expected
            assert sorted(cable.state(channel)) == model.state(channel)
            with TemporaryDirectory() as elsewhere, Cable(elsewhere, create=True) as other:
                other.ingest_many(post for name in set(cable.parts(channel).values()) if (post := cable.get(name)))
                by_text = [key for key in KEYS if model.decides(key, channel) == TEXT]
                assert set(other.members(channel)) - set(by_text) == set(expected) - set(by_text)


def test_a_chain_through_a_delete_counts_too_when_opened_anew(cable: Cable, tmp_path: Path) -> None:
    first = sign_post(SECRETS[0], TOPIC, 9, channel="c", topic="first")
    between = sign_post(SECRETS[0], DELETE, 2, (hash_of(first),), hashes=())
    second = sign_post(SECRETS[0], TOPIC, 3, (hash_of(between),), channel="c", topic="second")
    cable.ingest_many([first, between, second])
    assert cable.topic("c") == "second"
    cable.close()
    with Cable(tmp_path / "chat") as again:
        assert again.topic("c") == "second"


def test_compacting_changes_no_view(cable: Cable) -> None:
    posts = [text(0, time) for time in range(20)]
    cable.ingest_many([*posts, delete(0, 50, *posts[3:9])])
    before = everything(cable)
    cable.compact()
    assert everything(cable) == before
    assert cable.ingest(posts[0]) == "known"
    assert cable.ingest(posts[3]) == "deleted"
    assert cable.ingest(text(0, 60)) == "stored"


def test_a_crash_in_a_deletion_is_made_up_for(tmp_path: Path) -> None:
    """The delete is on the disk, and nothing else of what it does."""
    post = text(0, 1)
    last = delete(0, 2, post)
    with Cable(tmp_path / "whole", create=True) as cable:
        cable.ingest_many([post, last])
        expected = everything(cable)
    with Cable(tmp_path / "half", create=True) as cable:
        cable.ingest(post)
    with Log(tmp_path / "half" / "posts.log", codec=CableCodec()) as log:
        log.append(verify_post(last))
    with Cable(tmp_path / "half") as cable:
        assert everything(cable) == expected
