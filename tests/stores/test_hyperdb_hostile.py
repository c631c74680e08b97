"""Feeds whose writer lies: what it says costs nobody else anything, and no walk goes on for long.

Their records are put into the log of an authorized feed as they are, as if they had come in whatever way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from hyperdb_tries import encode_trie

from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.errors import FeedDamaged
from jitdb.stores.hyperdb.format.entry import HEADER, Entry, encode_entry
from jitdb.stores.hyperdb.format.trie import Pointer, Trie
from jitdb.stores.hyperdb.graph import FEEDS_MOST
from jitdb.stores.hyperdb.signing.keys import KeyPair
from jitdb.stores.hyperdb.tries.growing import Growing
from jitdb.stores.hyperdb.view import View

LIAR: Final = KeyPair.of(b"h" * 32).public
OURS, THEIRS = 0, 1  # the feeds' numbers, for all
FAR: Final = 2**60
HONEST: Final = {f"{folder}/{number}": b"%d" % number for folder in "abc" for number in range(10)}
COLLIDING: Final = ("idgcmnmna", "mpomeiehc")


class Target:
    """A database of an honest writer, and the feed of a liar in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with HyperDB(folder, create=True) as db:
            db.batch(HONEST.items())
            db.authorize(LIAR)
            self.key, self.length = db.key, len(db.local)
        self.records = [HEADER]
        self.pointers = 0

    def lie(self, *records: bytes) -> None:
        """Have the liar write these."""
        first = not len(self.records) > 1
        with HyperDB(self.folder) as db:
            db.feeds[THEIRS].append_encoded([*([HEADER] if first else []), *records], [None] * (len(records) + first))
        self.records += records

    def entry(self, key: str, trie: Trie | bytes = b"", seq: int | None = None, **other: Any) -> bytes:
        """A liar's entry, all right but for what is given."""
        seq = len(self.records) if seq is None else seq
        if not isinstance(trie, bytes):
            self.pointers += sum(len(some) for bucket in trie.values() for some in bucket.values())
            trie = encode_trie(trie)
        feeds = (self.key, LIAR) if seq == 1 else None
        whole = Entry(key, b"lie", False, trie, (self.length, seq + 1), 1, feeds)
        return encode_entry(whole._replace(**other))

    @contextmanager
    def counted(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
        """How many pointers were followed to a node since the last time; of a put, how many nodes were read for it."""
        seen = [0]

        def counting(method: Any) -> Any:
            def count(*arguments: Any) -> Any:
                seen[0] += 1
                return method(*arguments)

            return count

        def since() -> int:
            found, seen[0] = seen[0], 0
            return found

        with monkeypatch.context() as patch:
            patch.setattr(View, "_pointed_at", counting(View._pointed_at))
            patch.setattr(Growing, "_add", counting(Growing._add))
            yield since


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(tmp_path)


def check_honest(db: HyperDB) -> None:
    """What the honest writer wrote is there, and can be written."""
    for key, value in HONEST.items():
        assert [node.value for node in db.get(key)] == [value]
    assert {nodes[0].key for nodes in db.list()} >= HONEST.keys()
    assert {node.key for node in db.history()} >= HONEST.keys()
    assert len(db.history(reverse=True)) == len(db.history())
    assert db.checkout(db.version).heads() == db.heads()
    db.put("a/0", b"new")
    assert [node.value for node in db.get("a/0")] == [node.value for node in db.get("a/0", lookup="trie")] == [b"new"]


# --- entries that cannot be read -------------------------------------------------------------------------------------

NO_TEXT: Final = b"\xff\xfe"
BROKEN: Final[dict[str, Callable[[Target], bytes]]] = {
    "cut short": lambda target: target.entry("k", seq=2)[:-3],
    "no protobuf": lambda target: b"\xff" * 40,
    "a second header": lambda target: HEADER,
    "a key that is no text": lambda target: target.entry("kk", seq=2).replace(b"kk", NO_TEXT),
    "a key too long": lambda target: target.entry("k" * 70_000, seq=2),
    "too many segments": lambda target: target.entry("/" * 2000, seq=2),
    "a clock longer than its feeds": lambda target: target.entry("k", seq=2, clock=(1, 3, 1)),
    "inflate at the header": lambda target: target.entry("k", seq=2, inflate=0),
    "no inflate": lambda target: target.entry("k", seq=2, inflate=-1),
    "inflate at itself": lambda target: target.entry("k", seq=2, inflate=2),
    "inflate ahead": lambda target: target.entry("k", seq=2, inflate=3),
    "inflate nowhere": lambda target: target.entry("k", seq=2, inflate=2**64 - 1),
    "a feed whose key is short": lambda target: target.entry("k", seq=2, feeds=(target.key, LIAR, b"short")),
    "too many feeds": lambda target: target.entry(
        "k", seq=2, feeds=tuple(number.to_bytes(32, "big") for number in range(FEEDS_MOST + 1))
    ),
}


@pytest.mark.parametrize("where", ["between", "last"])
@pytest.mark.parametrize("name", BROKEN)
def test_it_is_passed_over(target: Target, name: str, where: str) -> None:
    """And nothing else: what the same writer wrote before and after it counts."""
    target.lie(target.entry("before"), BROKEN[name](target))
    if where == "between":
        target.lie(target.entry("after"))
    with HyperDB(target.folder) as db:
        told = {"before", "after"} if where == "between" else {"before"}
        assert {nodes[0].key for nodes in db.list()} == HONEST.keys() | told
        assert [node.seq for node in db.heads()] == [3 if where == "between" else 1]
        assert len(db.feeds) == 2
        check_honest(db)
        assert db.get("k") == []
        assert db.key_history("k") == []
        with pytest.raises(FeedDamaged, match="entry 2 of the feed") as caught:
            db.checkout(LIAR + b"\2")
        assert [str(error) for error in db.damage()] == [str(caught.value)]


def test_a_feed_of_nothing_else(target: Target) -> None:
    target.lie(*[b"\xff"] * 1000)
    with HyperDB(target.folder) as db:
        assert db.authorized(LIAR)
        check_honest(db)


@pytest.mark.parametrize("trie", [b"\xff", b"\0\x20\0\1", b"\0\1\x08\1", b"\0\1\1\1", b"\0\1\0\1" * 2])
def test_a_trie_that_cannot_be_decoded_points_nowhere(target: Target, trie: bytes) -> None:
    """Its key and value count; only who follows pointers alone does not find what is behind it."""
    target.lie(target.entry("k", trie))
    with HyperDB(target.folder) as db:
        assert db["k"] == b"lie"
        assert db.get("a/1", lookup="trie") == []
        assert len(db.list(lookup="trie")) == 1
        assert [(error.feed, error.seq) for error in db.damage()] == [(LIAR, 1)]
        check_honest(db)


# --- clocks ----------------------------------------------------------------------------------------------------------


def test_a_clock_of_the_future_waits(target: Target) -> None:
    """So do those behind it in its feed; who knows of them does not wait."""
    target.lie(
        target.entry("before"), target.entry("k", seq=2, clock=(FAR, 3)), target.entry("k", seq=3, clock=(FAR, 4))
    )
    with HyperDB(target.folder) as db:
        assert "before" in db
        assert "k" not in db
        check_honest(db)


def test_who_knows_of_a_clock_of_the_future_does_not_wait(target: Target) -> None:
    """Another implementation may have taken it for an entry as others are."""
    other = KeyPair.of(b"o" * 32).public
    with HyperDB(target.folder) as db:
        db.authorize(other)
        length = len(db.local)
    target.lie(target.entry("k", clock=(FAR, 2)))
    with HyperDB(target.folder) as db:
        entry = Entry("honest", b"", False, b"", (length, 2, 2), 1, (target.key, LIAR, other))
        db.feeds[2].append_encoded([HEADER, encode_entry(entry)], [None, "honest"])
    with HyperDB(target.folder) as db:
        assert {nodes[0].key for nodes in db.list()} == HONEST.keys() | {"honest"}
        assert [node.key for node in db.heads()] == ["honest"]
        check_honest(db)


def test_a_clock_cannot_hide_what_is_written_knowing_it(target: Target) -> None:
    """Clocks only grow, so the last entry vouches for those before: here, wrongly. The first one claims to know all
    that will ever be written, so that it overwrote all of it; where both know each other, both stand.
    """
    target.lie(target.entry("a/1", clock=(FAR, 2)), target.entry("k", seq=2))
    with HyperDB(target.folder) as db:
        db.put("a/1", b"new")
        assert sorted(filter(None, (node.value for node in db.get("a/1")))) == [b"lie", b"new"]
        assert len(db.history()) == len(db.history(reverse=True)) == target.length + 2


def test_feeds_that_turn_up_while_it_is_written(target: Target) -> None:
    """In an entry that a put comes by, and that nobody lists any more."""
    other = KeyPair.of(b"o" * 32).public
    target.lie(
        target.entry("a/x", feeds=(target.key, LIAR, other)),
        target.entry("k", everywhere(Pointer(THEIRS, 1)), seq=2, inflate=2, feeds=(target.key, LIAR)),
    )
    with HyperDB(target.folder) as db:
        assert len(db.feeds) == 2
        db.batch(HONEST.items())
        assert db.feeds[2].key == other
        check_honest(db)


def test_clocks_that_go_round_in_a_circle(tmp_path: Path) -> None:
    """Of three liars, each knows the next: nobody comes last, and all stand."""
    keys = [KeyPair.of(bytes([number]) * 32).public for number in range(3)]
    with HyperDB(tmp_path, create=True) as db:
        for key in keys:
            db.authorize(key)
        source = db.key
    with HyperDB(tmp_path) as db:
        for number, key in enumerate(keys):
            clock = [0] * 4
            clock[number + 1] = clock[1 + (number + 1) % 3] = 2
            entry = Entry("k", b"%d" % number, False, b"", tuple(clock), 1, (source, *keys))
            feed = next(feed for feed in db.feeds if feed.key == key)
            feed.append_encoded([HEADER, encode_entry(entry)], [None, "k"])
    with HyperDB(tmp_path) as db:
        assert sorted(node.value or b"" for node in db.get("k")) == [b"0", b"1", b"2"]
        assert len(db.history()) == len(db.history(reverse=True)) == 6
        assert len(db.key_history("k")) == 1
        db.put("k", b"end")
        assert db["k"] == b"end"


# --- pointers --------------------------------------------------------------------------------------------------------


def everywhere(*pointers: Pointer, places: int = 65) -> Trie:
    """A trie that points there from each place, with each digit."""
    return {place: {digit: list(pointers) for digit in range(5)} for place in range(places)}


def loop(target: Target) -> list[bytes]:
    return [target.entry(f"x/{seq}", everywhere(Pointer(THEIRS, 3 - seq)), seq) for seq in (1, 2)]


def itself(target: Target) -> list[bytes]:
    return [target.entry("x/1", everywhere(Pointer(THEIRS, 1)))]


def nowhere(target: Target) -> list[bytes]:
    seqs = (0, 2, 1000, FAR, 2**64 - 1)
    return [target.entry("x/1", everywhere(*(Pointer(feed, seq) for feed in (OURS, THEIRS) for seq in seqs)))]


def duplicates(target: Target) -> list[bytes]:
    return [target.entry("x/1", everywhere(*[Pointer(OURS, 5)] * 100))]


def wrong_buckets(target: Target) -> list[bytes]:
    return [target.entry("x/1", everywhere(*(Pointer(OURS, seq) for seq in range(1, target.length))))]


def mesh(target: Target) -> list[bytes]:
    """All of them point at all, from everywhere."""
    some = range(1, 21)
    return [target.entry(f"x/{seq}", everywhere(*(Pointer(THEIRS, each) for each in some)), seq) for seq in some]


def far_places(target: Target) -> list[bytes]:
    return [target.entry("x/1", {place: {0: [Pointer(OURS, 1)]} for place in (10**6, FAR, 2**64 - 1)})]


@pytest.mark.parametrize("lies", [loop, itself, nowhere, duplicates, wrong_buckets, mesh, far_places])
def test_walks_end(target: Target, lies: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each node each bucket is followed once; and what is written after all that is of a size as ever."""
    target.lie(*lies(target))
    most = target.pointers + 40 * len(HONEST)  # those in the honest tries, amply
    with HyperDB(target.folder) as db, target.counted(monkeypatch) as since:
        for key in ("x/1", "a/1", "nowhere/at all"):
            db.get(key, lookup="trie")
            assert since() <= most
        for prefix in ("", "x", "a"):
            groups = db.list(prefix, lookup="trie")
            assert len({nodes[0].key for nodes in groups}) == len(groups)
            assert since() <= most
        for key in ("x/new", "x/1", "a/1", "new"):
            db.put(key, HONEST.get(key, b""))
            assert since() <= most
            assert len(db.local.record(len(db.local) - 1)) < 2000
        check_honest(db)


def test_no_more_pointers_are_taken_over_than_there_are_writers(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even such as belong where they are: a thousand keys that begin alike, all in one bucket."""
    names = [f"x/{number}" for number in range(1000)]
    target.lie(*(target.entry(name, seq=seq) for seq, name in enumerate(names, 1)))
    target.lie(target.entry("liar", everywhere(*(Pointer(THEIRS, seq) for seq in range(1, 1001)))))
    with HyperDB(target.folder) as db:
        db.put("new", b"")
        assert len(db.local.record(len(db.local) - 1)) < 2000
        assert len(db.list("x")) == 1000


# --- keys that collide -----------------------------------------------------------------------------------------------


def colliding_keys(segments: int) -> list[str]:
    """Keys with the same path: of each segment there are two, and slashes around them are four more ways."""
    words = ["/".join(some) for some in product(COLLIDING, repeat=segments)]
    return [before + word + after for word in words for before in ("", "/") for after in ("", "/")]


def test_a_thousand_keys_with_one_path(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost those who ask for that path a look at each, and nobody else."""
    keys = colliding_keys(8)
    assert len(keys) == 1024
    chain = [{256: {4: [Pointer(THEIRS, seq - 1)]}} for seq in range(1, len(keys) + 1)]
    target.lie(*(target.entry(key, trie, seq) for seq, (key, trie) in enumerate(zip(keys, chain, strict=True), 1)))
    with HyperDB(target.folder) as db, target.counted(monkeypatch) as since:
        for key in (keys[0], keys[512], keys[-1]):
            assert [node.key for node in db.get("/" + key)] == [key]
            assert since() == 0
            assert [node.key for node in db.get("/" + key, lookup="trie")] == [key]
            assert since() <= 1100
        assert [len(db.list(slashes + name)) for slashes in ("", "//") for name in COLLIDING] == [256] * 4
        since()
        db.put("a/1", HONEST["a/1"])
        assert since() <= 100
        check_honest(db)


def test_colliding_keys_of_an_honest_writer(tmp_path: Path) -> None:
    keys = colliding_keys(5)
    with HyperDB(tmp_path, create=True) as db:
        db.batch([("/" + key, key.encode()) for key in keys])
        for key in keys:
            assert db.get("/" + key) == db.get("/" + key, lookup="trie") != []
        assert db.list() == db.list(lookup="trie")
        assert [nodes[0].key for nodes in db.list()] == sorted(keys)
