"""One writer: put, get, batch, checkout, delete, reopening; what the reference's tests say of these, and more."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hyperdb_writers import as_dict, put, values, writers

from jitdb.errors import JitdbError, RecordTooLarge
from jitdb.operators import field
from jitdb.stores.cable.post import JOIN, sign_post
from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.errors import Conflict, HyperdbError, InvalidKey, InvalidVersion, NotWritable
from jitdb.stores.hyperdb.format.entry import decode_entry, encode_entry
from jitdb.stores.hyperdb.signing.keys import KeyPair


@pytest.fixture
def db(tmp_path: Path) -> Any:
    with HyperDB(tmp_path / "db", create=True) as db:
        yield db


def test_put_and_get(db: HyperDB) -> None:
    assert db.get("hello") == []
    node = db.put("hello", b"world")
    assert (node.key, node.value, node.seq) == ("hello", b"world", 1)
    assert db.get("hello") == [node]
    assert db.get("hej") == []


def test_one_slash_in_front_is_left_out(db: HyperDB) -> None:
    db.put("/hello", b"world")
    assert db.get("/hello") == db.get("hello") != []
    assert db.get("hello")[0].key == "hello"


@pytest.mark.parametrize(
    "keys",
    [
        ["hello", "world"], ["hello", "hello"], ["hello/world", "world"], ["hello", "hello/world"],
        ["hello/world", "hello"], ["hello/world", "hello", "hello/verden", "hello"], [f"#{i}" for i in range(100)],
    ],
)  # fmt: skip
def test_the_newest_value_of_each_key(db: HyperDB, keys: list[str]) -> None:
    for number, key in enumerate(keys):
        db.put(key, b"%d" % number)
    newest = {key: b"%d" % number for number, key in enumerate(keys)}
    for lookup in ("index", "trie"):
        assert {key: db.get(key, lookup=lookup)[0].value for key in keys} == newest  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, b"", b"\0", b"false", b"0"])
def test_any_value(db: HyperDB, value: bytes | None) -> None:
    """In the reference, values that are false in JavaScript were once lost."""
    db.put("key", value)
    assert [node.value for node in db.get("key")] == [value]
    assert as_dict(db) == {"key": [value]}


def test_a_value_is_bytes(db: HyperDB) -> None:
    with pytest.raises(HyperdbError, match=r"a value is bytes, not text.*encode"):
        db.put("key", "text")  # type: ignore[arg-type]
    assert len(db.local) == 1


def test_batches(db: HyperDB) -> None:
    nodes = db.batch([("hello", b"world"), ("hej", b"verden"), ("hello", b"welt")])
    assert [node.seq for node in nodes] == [1, 2, 3]
    assert as_dict(db) == {"hello": [b"welt"], "hej": [b"verden"]}
    db.batch([("hello", b"verden"), ("hej", None, True)])
    assert as_dict(db) == {"hello": [b"verden"]}
    assert db.batch([]) == []
    assert len(db.local) == 6
    with pytest.raises(InvalidKey):
        db.batch([("fine", b""), (7, b"")])
    assert len(db.local) == 6


def test_a_batch_of_a_thousand(db: HyperDB) -> None:
    db.batch((f"foo{number}", b"%d" % number) for number in range(1000))
    assert [db[f"foo{number}"] for number in (1, 50, 999)] == [b"1", b"50", b"999"]
    assert len(db.list(lookup="trie")) == 1000


def test_versions(db: HyperDB) -> None:
    assert db.version == b""
    put(db, ["hello"], b"world")
    version = db.version
    assert version == db.key + b"\x01"
    put(db, ["hello"], b"verden")
    for past in (db.checkout(version), db.checkout(version.hex()), db.checkout(1), db.checkout([db.history()[0]])):
        assert past["hello"] == b"world"
        assert past.version == version
        for write in (past.put, past.delete, past.batch, past.authorize):
            with pytest.raises(NotWritable):
                write("key")
    assert db["hello"] == b"verden"
    assert db.checkout(b"").list() == []
    snapshot = db.snapshot()
    db.delete("hello")
    assert "hello" in snapshot
    assert "hello" not in db


@pytest.mark.parametrize("version", ["x", "00", b"\0" * 33, b"\0" * 32 + b"\x80", b"\1", 0, -1, 2, 2**70])
def test_what_is_no_version(db: HyperDB, version: Any) -> None:
    db.put("hello")
    with pytest.raises(InvalidVersion):
        db.checkout(version)


def test_the_secret_that_a_key_comes_of(tmp_path: Path) -> None:
    secret = bytes(range(32))
    with HyperDB(tmp_path, create=True, secret=secret) as db:
        assert db.key == KeyPair.of(secret).public
        db.put("hello", b"world")
    assert secret.hex() == (tmp_path / "secret").read_text()
    with HyperDB(tmp_path) as db:
        assert db["hello"] == b"world"


@pytest.mark.parametrize("held", [b"", b"00" * 31, b"no hex" * 11, b"\xff" * 64])
def test_a_file_that_holds_no_secret(tmp_path: Path, held: bytes) -> None:
    HyperDB(tmp_path, create=True).close()
    (tmp_path / "secret").write_bytes(held)
    with pytest.raises(HyperdbError, match="a secret is 64 hex digits"):
        HyperDB(tmp_path)


def test_no_error_shows_a_secret(db: HyperDB) -> None:
    wrong: Any = "hunter2"
    for refused in (
        lambda: KeyPair.of(b"hunter2"), lambda: KeyPair.of(wrong), lambda: db.put("key", wrong),
        lambda: sign_post(b"hunter2", JOIN, 1, channel="c"),
    ):  # fmt: skip
        with pytest.raises(JitdbError) as raised:
            refused()
        assert "hunter2" not in str(raised.value)


def test_if_not_exists(tmp_path: Path, db: HyperDB) -> None:
    assert db.put("key", b"hello", if_not_exists=True).seq == 1
    assert db.put("key", b"goodbye", if_not_exists=True).value == b"hello"
    db.put("another", b"else", if_not_exists=True)
    assert as_dict(db) == {"key": [b"hello"], "another": [b"else"]}
    with writers(tmp_path, 2) as (one, other):
        one.put("1", b"1a")
        other.put("1", b"1b")
        one.replicate(other)
        one.put("1", b"1c", if_not_exists=True)
        assert values(one.get("1")) == [b"1a", b"1b"]


def test_as_a_mapping(db: HyperDB, tmp_path: Path) -> None:
    """A key with one value is that of a dict; where there are several, nobody chooses but who asks."""
    db["a/b"] = b"1"
    assert db["a/b"] == b"1"
    assert list(db) == ["a/b"]
    del db["a/b"]
    with pytest.raises(KeyError):
        db["a/b"]
    with writers(tmp_path, 2) as (one, other):
        one["a"], other["a"] = b"1", b"2"
        one.replicate(other)
        with pytest.raises(Conflict, match="'a' has 2 values"):
            one["a"]
        one["a"] = b"both"
        assert one["a"] == b"both"


def test_deletions(db: HyperDB) -> None:
    put(db, map(str, range(50)))
    db.delete("42")
    for lookup in ("index", "trie"):
        assert db.get("42", lookup=lookup) == []  # type: ignore[arg-type]
        assert db.get("43", lookup=lookup)[0].value == b"43"  # type: ignore[arg-type]
    assert sorted(as_dict(db)) == sorted(set(map(str, range(50))) - {"42"})
    (tombstone,) = db.get("42", deletes=True)
    assert (tombstone.deleted, tombstone.value) == (True, None)
    db.delete("never was")
    db.delete("43", b"why")
    assert db.get("43", deletes=True)[0].value == b"why"
    db.put("42", b"again")
    assert db["42"] == b"again"


def test_what_a_walk_reads(db: HyperDB) -> None:
    """From the head each node is pointed at by the one before it, up to the one that was looked for."""
    db.batch((str(number), b"") for number in range(200))
    path: list[Any] = []
    (found,) = db.get("0", lookup="trie", on_read=path.append)
    assert path[0] == db.heads()[0]
    assert path[-1] == found
    for node, after in pairwise(path):
        assert after.pointer in [each for bucket in node.trie.values() for some in bucket.values() for each in some]
    asked: list[Any] = []
    assert db.get("0", on_read=asked.append) == [found] == asked


def test_reopening(tmp_path: Path) -> None:
    """The entry that lists the feeds is still known of."""
    with writers(tmp_path, 3) as dbs:
        dbs[0].put("foo", b"bar")
    for number in range(2):
        with HyperDB(tmp_path / "0") as db:
            assert len(db.feeds) == 3
            db.put(f"foo{number}", b"bar")
    with HyperDB(tmp_path / "0") as db:
        entries = [decode_entry(db.local.record(seq)) for seq in range(1, 6)]
        assert [(entry.inflate, entry.feeds is not None) for entry in entries] == [
            (1, True), (2, True), (2, False), (2, False), (2, False),
        ]  # fmt: skip
        assert as_dict(db) == {"foo": [b"bar"], "foo0": [b"bar"], "foo1": [b"bar"]}


def test_the_key_of_a_content_feed_is_carried(tmp_path: Path) -> None:
    """What a value is too small for lies in a feed beside this one, whose key readers are to find."""
    with writers(tmp_path, 2) as (db, copy):
        entry = decode_entry(db.put("a", b"1") and db.local.record(len(db.local) - 1))
        other = entry._replace(key="b", content_feed=b"c" * 32, clock=(len(db.local) + 1, *entry.clock[1:]))
        db.local.append_encoded([encode_entry(other)], ["b"])
        copy.replicate(db)
        copy.flush()
        found = copy.feeds[0].index.all(field("contentFeed") == b"c" * 32)
        assert [(value["key"], value["contentFeed"]) for value in found] == [("b", b"c" * 32)]


def test_keys_and_values_have_limits(db: HyperDB) -> None:
    for key in ("a" * 65_537, "é" * 32_769, "/" + "a/" * 1024):
        for use in (db.put, db.get, db.delete, db.list, db.watch, db.key_history):
            with pytest.raises(InvalidKey, match=r"the most are 65,536 and 1,024; .*hash") as caught:
                use(key)  # type: ignore[operator]
            assert len(str(caught.value)) < 300
    db.put("a" * 65_536, b"")
    db.put("a/" * 1023, b"")
    with pytest.raises(RecordTooLarge, match="block"):
        db.put("big", bytes(2 << 20))
    assert len(db.local) == 3
    assert len(db.list()) == 2


def test_what_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HyperdbError, match="empty"):
        HyperDB("", create=True)
    assert not list(tmp_path.iterdir())
    with HyperDB(".", create=True) as db:
        db.put("a", b"1")


@pytest.mark.parametrize("key", [7, b"bytes", None, "\ud800"])
def test_what_is_no_key(db: HyperDB, key: Any) -> None:
    for use in (db.put, db.get, db.list):
        with pytest.raises(InvalidKey):
            use(key)  # type: ignore[operator]
