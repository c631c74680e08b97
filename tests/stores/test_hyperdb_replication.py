"""What a database takes from another one, and what it refuses; replication in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jitdb.errors import LogCorrupt, RecordTooLarge
from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.errors import FeedDamaged, NotAuthentic, NotWritable, ReplicationFailed
from jitdb.stores.hyperdb.format.entry import HEADER, Entry, encode_entry
from jitdb.stores.hyperdb.signing.heads import CHUNK, SignedHead
from jitdb.stores.hyperdb.signing.keys import KeyPair
from jitdb.stores.hyperdb.signing.merkle import Tree

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


def signed(records: list[bytes], secret: bytes = SECRET) -> SignedHead:
    tree = Tree()
    tree.extend(records)
    return SignedHead(len(records), KeyPair.of(secret).sign(tree.head()))


def test_what_is_authentic_is_taken(source: HyperDB, copy: HyperDB) -> None:
    records, head = given(source)
    copy.receive(source.key, 0, records, head)
    assert [nodes[0].value for nodes in copy.list()] == [nodes[0].value for nodes in source.list()]
    copy.receive(source.key, 0, records, head)  # once more, and a part that is known
    copy.receive(source.key, 3, records[3:], head)
    assert copy.lengths()[source.key] == 5


def changed(records: list[bytes]) -> list[bytes]:
    return [*records[:2], records[2].replace(b"k1", b"kX"), *records[3:]]


def swapped(records: list[bytes]) -> list[bytes]:
    return [*records[:2], records[3], records[2], *records[4:]]


def truncated(records: list[bytes]) -> list[bytes]:
    return records[:-1]


def lengthened(records: list[bytes]) -> list[bytes]:
    return [*records, records[-1]]


def without_header(records: list[bytes]) -> list[bytes]:
    return records[1:]


@pytest.mark.parametrize("change", [changed, swapped, truncated, lengthened, without_header])
def test_what_was_changed_is_refused(
    change: Callable[[list[bytes]], list[bytes]], source: HyperDB, copy: HyperDB
) -> None:
    records, head = given(source)
    for claimed in (head.length, len(change(records))):
        with pytest.raises(NotAuthentic) as caught:
            copy.receive(source.key, 0, change(records), SignedHead(claimed, head.signature))
        assert caught.value.feed == source.key
    assert copy.lengths()[source.key] == 0
    assert copy.list() == []
    copy.receive(source.key, 0, records, head)


@pytest.mark.parametrize("signature", [b"", b"\0" * 64, b"x" * 65, KeyPair.of(b"x" * 32).sign(b"")])
def test_signature_of_another_is_refused(signature: bytes, source: HyperDB, copy: HyperDB) -> None:
    records, head = given(source)
    for wrong in (SignedHead(head.length, signature), signed(records, b"y" * 32)):
        with pytest.raises(NotAuthentic):
            copy.receive(source.key, 0, records, wrong)
    assert copy.lengths()[source.key] == 0


def test_gap_and_unknown_feed_are_refused(source: HyperDB, copy: HyperDB) -> None:
    records, head = given(source)
    for start in (1, -1):
        with pytest.raises(ReplicationFailed, match="follow"):
            copy.receive(source.key, start, records[1:], head)
    with pytest.raises(ReplicationFailed, match="no entry lists"):
        copy.receive(b"x" * 32, 0, records, head)


def test_feed_that_forked_is_refused(tmp_path: Path, source: HyperDB, copy: HyperDB) -> None:
    source.replicate(copy)
    with HyperDB(tmp_path / "fork", create=True, secret=SECRET) as fork:
        fork.put("k0", b"0")
        fork.put("other", b"1")
        for number in range(9):
            fork.put(f"more{number}")
        records, head = given(fork)
        with pytest.raises(NotAuthentic, match="another one is here") as caught:
            copy.receive(source.key, 0, records, head)
        assert caught.value.seq == 2
        with pytest.raises(NotAuthentic):  # what follows is signed, but not over what is here
            fork.replicate(copy)


def entry(seq: int, **said: Any) -> bytes:
    key = KeyPair.of(SECRET).public
    values: dict[str, Any] = {"key": "k", "value": b"", "deleted": False, "trie": b"", "clock": (seq + 1,)}
    values |= {"inflate": 1, "feeds": (key,) if seq == 1 else None}
    return encode_entry(Entry(**{**values, **said}))


@pytest.mark.parametrize(
    ("records", "seq"),
    [
        ([entry(1)], 0),
        ([b"\x0a\x05hyper"], 0),
        ([HEADER, HEADER], 1),
        ([HEADER, b"\xff\xff"], 1),
        ([HEADER, entry(1)[:-3]], 1),
        ([HEADER, entry(1, feeds=None)], 1),
        ([HEADER, entry(1, inflate=2)], 1),
        ([HEADER, entry(1, feeds=(b"short",))], 1),
        ([HEADER, entry(1, clock=(2, 1))], 1),
        ([HEADER, entry(1, clock=(3,))], 1),
        ([HEADER, entry(1), entry(2, inflate=2)], 2),
        ([HEADER, entry(1), entry(2, inflate=0)], 2),
        ([HEADER, entry(1), entry(2, inflate=2**40)], 2),
        ([HEADER, entry(1), entry(2), entry(3, inflate=2)], 3),
        ([HEADER, entry(1), entry(2, trie=b"\x01\x04\x02\x01")], 2),
        ([HEADER, entry(1), entry(2, trie=b"\x01")], 2),
        ([HEADER, entry(1, feeds=(KeyPair.of(SECRET).public, b"x" * 32), clock=(2, 2**60))], 1),
        ([HEADER, entry(1, key="k" * 70_000)], 1),
        ([HEADER, entry(1), entry(2, key="/" * 2000)], 2),
    ],
)
def test_signed_nonsense_is_refused(records: list[bytes], seq: int, copy: HyperDB) -> None:
    with pytest.raises(FeedDamaged) as caught:
        copy.receive(copy.key, 0, records, signed(records))
    assert (caught.value.feed, caught.value.seq) == (copy.key, seq)
    assert copy.lengths()[copy.key] == 0
    sound = [HEADER, entry(1), entry(2)]
    copy.receive(copy.key, 0, sound, signed(sound))
    assert copy["k"] == b""


OTHER = b"x" * 32
BOTH = (KeyPair.of(SECRET).public, OTHER)
LISTED = entry(1, feeds=BOTH, clock=(2, 5))


@pytest.mark.parametrize(
    ("after", "what"),
    [
        ([entry(2, clock=(3, 4))], "knows 4 records"),
        ([entry(2, clock=(3,))], "knows 0 records"),
        ([entry(2, clock=())], "knows 0 records"),
        ([entry(2, feeds=BOTH[:1], inflate=2)], "does not list"),
        ([entry(2, feeds=BOTH[::-1], inflate=2, clock=(3, 5))], "which cannot be"),
        ([entry(2, feeds=BOTH[::-1], inflate=2, clock=(5, 3)), entry(3, inflate=1, clock=(3, 4))], "knows 4 records"),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_writer_that_knows_less_than_before_is_refused(
    after: list[bytes], what: str, at_once: bool, copy: HyperDB
) -> None:
    """And so is one that takes an authorization back."""
    records = [HEADER, LISTED]
    if not at_once:
        copy.receive(copy.key, 0, records, signed(records))
    records += after
    with pytest.raises(FeedDamaged, match=what) as caught:
        copy.receive(copy.key, 0, records, signed(records))
    assert caught.value.seq == len(records) - 1
    assert copy.authorized(OTHER) is not at_once
    sound = [HEADER, LISTED, entry(2, clock=(1, 5)), entry(3, feeds=(b"y" * 32, *BOTH[::-1]), clock=(1, 6), inflate=3)]
    copy.receive(copy.key, 0, sound, signed(sound))
    assert all(map(copy.authorized, (OTHER, b"y" * 32)))


def test_entry_that_does_not_fit_is_refused(tmp_path: Path, source: HyperDB) -> None:
    source.put("large", bytes(9000))
    with HyperDB(tmp_path / "small", source.key, block_size=4096) as small:
        with pytest.raises(RecordTooLarge):
            source.replicate(small)
        assert small.lengths()[source.key] == 0


def test_several_chunks_and_both_ways(tmp_path: Path, source: HyperDB, copy: HyperDB) -> None:
    source.batch((f"n/{number}", b"x") for number in range(3 * CHUNK))
    source.authorize(copy.local.key)
    copy.put("theirs", b"1")
    source.replicate(copy)
    assert copy.version == source.version
    assert len(copy.list("n")) == 3 * CHUNK
    assert source["theirs"] == b"1"
    with HyperDB(tmp_path / "third", source.key) as third:
        third.replicate(copy)  # from one that owns neither feed
        assert third.version == source.version


def lie(db: HyperDB, secret: bytes, records: list[bytes]) -> None:
    """Have this in the feed of a secret: signed, and never looked at."""
    feed = next(feed for feed in db.feeds if feed.key == KeyPair.of(secret).public)
    feed.accept(records, signed(records, secret), lambda records: [None] * len(records))


def test_feed_that_is_refused_holds_up_no_other(source: HyperDB, copy: HyperDB) -> None:
    """It is told in the end, with all others that are."""
    secrets = [bytes([number]) * 32 for number in (1, 2, 3)]
    liars = [KeyPair.of(secret).public for secret in secrets]
    for key in (*liars, copy.local.key):
        source.authorize(key)
    copy.put("theirs", b"2")
    for secret, nonsense in zip(secrets, ([HEADER, b"\xff"], [b"\xff"], [b"\xff"] * 5 * CHUNK), strict=True):
        lie(source, secret, nonsense)
    for _ in range(2):
        source.put("late", b"1")
        with pytest.raises(FeedDamaged) as caught:
            copy.replicate(source)
        assert (caught.value.feed, caught.value.seq) == (liars[0], 1)
        assert [key.hex()[:16] in note for key, note in zip(liars[1:], caught.value.__notes__, strict=True)] == [
            True
        ] * 2
        assert [copy.lengths()[key] for key in liars] == [0, 0, 0]
        assert copy.lengths()[source.key] == len(source.local)
        assert source["theirs"] == b"2"


def test_feed_that_forked_holds_up_no_other(tmp_path: Path, source: HyperDB, copy: HyperDB) -> None:
    """Two copies have one each of two feeds that their writer signed: each keeps its own, and takes all the rest."""
    secret, forked = b"f" * 32, KeyPair.of(b"f" * 32).public
    with HyperDB(tmp_path / "third", source.key) as third:
        source.authorize(forked)
        source.authorize(copy.local.key)
        source.authorize(third.local.key)
        for db, name, length in ((copy, "east", 3), (third, "west", 4)):
            source.replicate(db)
            records = [HEADER, entry(1, key=name, feeds=(forked, source.key))]
            records += [entry(seq, key=name) for seq in range(2, length)]
            db.receive(forked, 0, records, signed(records, secret))
        copy.put("of", b"east")
        with pytest.raises(NotAuthentic) as caught:
            copy.replicate(third)
        assert caught.value.feed == forked
        assert copy["of"] == third["of"] == b"east"
        assert ("east" in copy, "west" in copy, "east" in third, "west" in third) == (True, False, False, True)


def test_feed_that_cannot_be_read_here_holds_up_no_other(tmp_path: Path, source: HyperDB, copy: HyperDB) -> None:
    """A block of another writer's feed gets damaged: all else is given."""
    with HyperDB(tmp_path / "third", source.key, block_size=4096) as third:
        source.authorize(copy.local.key)
        source.authorize(third.local.key)
        source.replicate(third)
        for number in range(20):
            third.put(f"n{number}", bytes(1000))
        third.flush()
        with third.local.log.path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 4096)
        with pytest.raises(LogCorrupt):
            third.replicate(copy)
        assert copy.lengths() == {source.key: len(source.local), copy.local.key: 1, third.local.key: 0}


def test_feeds_that_become_known_are_followed(tmp_path: Path, source: HyperDB, copy: HyperDB) -> None:
    with HyperDB(tmp_path / "third", source.key) as third, HyperDB(tmp_path / "fourth", source.key) as fourth:
        source.authorize(copy.local.key)
        source.replicate(copy)
        copy.authorize(third.local.key)
        third.replicate(copy)
        third.put("c", b"3")
        third.replicate(copy)
        copy.replicate(fourth)
        assert fourth["c"] == b"3"
        assert fourth.version == copy.version
        assert third.local.key not in source.shared()


def test_heads_that_come_after_the_records_are_given(tmp_path: Path, source: HyperDB, copy: HyperDB) -> None:
    source.flush()
    with HyperDB(tmp_path / "source", read_only=True) as reader:
        source.put("later", b"1")
        source.local.flush()  # the record is there, and nobody signed it yet
        assert reader.refresh()
        assert reader.shared()[source.key] == 5
        source.flush()
        reader.refresh()
        reader.replicate(copy)
        assert copy["later"] == b"1"


def test_only_authorized_feeds_are_given(source: HyperDB, copy: HyperDB) -> None:
    copy.put("mine", b"1")
    copy.replicate(source)
    assert set(copy.shared()) == {source.key}
    assert copy.local.key not in source.lengths()


def test_another_database_is_refused(tmp_path: Path, source: HyperDB) -> None:
    with HyperDB(tmp_path / "other", create=True) as other, pytest.raises(ReplicationFailed, match="database is"):
        source.replicate(other)


def test_reader_gives_and_takes_nothing(tmp_path: Path, source: HyperDB, copy: HyperDB) -> None:
    source.flush()
    with HyperDB(tmp_path / "source", read_only=True) as reader:
        reader.replicate(copy)
        assert copy.version == source.version
        records, head = given(source)
        with pytest.raises(NotWritable):
            reader.receive(source.key, 0, records, head)


def test_watchers_and_observers_hear_of_what_arrives(source: HyperDB, copy: HyperDB) -> None:
    calls: list[int] = []
    end = copy.on_change(lambda: calls.append(len(copy.local)))
    watcher = copy.watch()
    source.replicate(copy)
    assert [node.key for node in iter(lambda: watcher.take(0), None)] == ["k0", "k1", "k2", "k3"]
    assert len(calls) == 1
    end()
    copy.put("x")
    assert len(calls) == 1


def test_reader_sees_what_is_written_beside_it(tmp_path: Path, source: HyperDB, copy: HyperDB) -> None:
    source.flush()
    with HyperDB(tmp_path / "source", read_only=True) as reader:
        assert reader.version == source.version
        assert not reader.refresh()
        watcher = reader.watch("later")
        source.put("later/1", b"1")
        source.authorize(copy.local.key)
        source.replicate(copy)
        copy.put("later/2", b"2")
        source.replicate(copy)
        source.flush()
        assert reader.refresh()
        assert reader.version == source.version
        assert [reader[key] for key in ("later/1", "later/2")] == [b"1", b"2"]
        assert [node.key for node in iter(lambda: watcher.take(0), None)] == ["later/1", "later/2"]
        assert len(reader.history()) == len(source.history())
        assert reader.shared() == source.shared()
        for number in range(50):
            source.put(f"n{number}", b"")
            if number % 10 == 0:
                source.flush()
                reader.refresh()
                assert reader.version == source.version
                assert len(reader.list()) == len(source.list())
