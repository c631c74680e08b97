"""The messages of a session between two databases, and those that are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.errors import HyperdbError, NotAuthentic, ReplicationFailed
from jitdb.stores.hyperdb.format.entry import HEADER
from jitdb.stores.hyperdb.replication.session import CHUNK as CHUNK_MESSAGE
from jitdb.stores.hyperdb.replication.session import END, FINISHED, HELLO, PROTOCOL, REFUSED, VERSION, WANT, Session
from jitdb.stores.hyperdb.signing.heads import SignedHead
from jitdb.stores.hyperdb.signing.keys import KeyPair

SECRET = bytes(range(32))


@pytest.fixture
def source(tmp_path: Path) -> Iterator[HyperDB]:
    with HyperDB(tmp_path / "source", create=True, secret=SECRET) as db:
        for number in range(4):
            db.put(f"k{number}", b"%d" % number)
        yield db


@pytest.fixture
def copy(tmp_path: Path, source: HyperDB) -> Iterator[HyperDB]:
    with HyperDB(tmp_path / "copy", source.key) as db:
        yield db


def given(db: HyperDB) -> tuple[list[bytes], SignedHead]:
    db.flush()
    chunk = db.chunk(db.key, 0)
    assert chunk is not None
    return chunk


def test_many_feeds_take_a_message_or_two_each(source: HyperDB, copy: HyperDB) -> None:
    """And what is told of all of them is not made anew for each."""
    for number in range(200):
        source.authorize(number.to_bytes(32, "big"))
    source.replicate(copy)
    left, right, said = Session(source), Session(copy), []
    while not (left.is_done and right.is_done):
        for giving, taking in ((left, right), (right, left)):
            message = giving.next_message()
            if message is not None:
                taking.receive(message)
                said.append(message[0])
    assert [said.count(what) for what in (HELLO, WANT, END, CHUNK_MESSAGE)] == [2, 403, 403, 0]
    assert source.shared() is source.shared()
    before = source.shared()
    source.put("new", b"1")
    assert source.shared() != before
    message = left.next_message()
    assert message is not None
    assert message[:2] == [CHUNK_MESSAGE, source.key]


KEY = KeyPair.of(SECRET).public


@pytest.mark.parametrize(
    "message",
    [
        None, [], {}, [9], [True, 1], ["0"], [WANT], [WANT, KEY], [WANT, KEY, -1], [WANT, b"short", 0], [WANT, "x", 0],
        [END, KEY, 1], [END, b""], [FINISHED, "1"], [CHUNK_MESSAGE, KEY, 0, [1], 1, b""],
        [CHUNK_MESSAGE, KEY, 0, [b"x"], -1, b""],
        [HELLO, PROTOCOL, VERSION, KEY],
        [FINISHED, 1], [CHUNK_MESSAGE, KEY, 0, [HEADER], 1, bytes(64)], [END, b"x" * 32],
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(message: Any, source: HyperDB) -> None:
    session = Session(source)
    session.receive([HELLO, PROTOCOL, VERSION, source.key])
    with pytest.raises(ReplicationFailed):
        session.receive(message)


@pytest.mark.parametrize(
    "hello", [[HELLO, PROTOCOL, 2, KEY], [HELLO, "other", 1, KEY], [HELLO, PROTOCOL, 1, b"x"], [WANT, KEY, 0]]
)
def test_greeting_of_another_kind_is_refused(hello: Any, source: HyperDB) -> None:
    with pytest.raises(HyperdbError):
        Session(source).receive(hello)


def taking(copy: HyperDB) -> Session:
    """A session that said what it wants."""
    session = Session(copy)
    session.receive([HELLO, PROTOCOL, VERSION, copy.key])
    while session.next_message() is not None:
        pass
    return session


def test_chunk_that_was_not_asked_for_ends_it(source: HyperDB, copy: HyperDB) -> None:
    """One that comes again, one from before, a gap, none at all; what came before stays."""
    records, head = given(source)
    for start, some in ((0, records), (0, records[:2]), (2, records[2:]), (6, records[2:]), (5, [])):
        session = taking(copy)
        if not copy.lengths()[copy.key]:
            session.receive([CHUNK_MESSAGE, copy.key, 0, records, *head])
        with pytest.raises(ReplicationFailed, match="not wanted"):
            session.receive([CHUNK_MESSAGE, copy.key, start, some, *head])
        assert copy.lengths()[copy.key] == 5


@pytest.mark.parametrize("length", [0, 4, 6, 2**63, 2**64 - 1])
def test_length_that_is_a_lie_is_refused_and_told(length: int, source: HyperDB, copy: HyperDB) -> None:
    session = taking(copy)
    records, head = given(source)
    session.receive([CHUNK_MESSAGE, copy.key, 0, records, length, head.signature])
    assert session.next_message() == [REFUSED, copy.key]
    session.receive([CHUNK_MESSAGE, copy.key, 5, records, 10, head.signature])  # it was on its way
    session.receive([END, copy.key])
    with pytest.raises(NotAuthentic):
        session.check()
    assert copy.lengths()[copy.key] == 0


def test_feed_that_was_not_wanted_is_not_refused(source: HyperDB) -> None:
    session = taking(source)
    session.receive([WANT, source.key, 0])
    session.receive([REFUSED, source.key])
    for key in (source.key, b"y" * 32):
        with pytest.raises(ReplicationFailed, match="was not wanted"):
            session.receive([REFUSED, key])


def test_feed_is_wanted_once(source: HyperDB) -> None:
    session = Session(source)
    session.receive([HELLO, PROTOCOL, VERSION, source.key])
    session.receive([WANT, source.key, 0])
    with pytest.raises(ReplicationFailed, match="twice"):
        session.receive([WANT, source.key, 0])
