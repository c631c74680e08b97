"""Who may write, and what replication makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hyperdb_writers import as_dict, meet, put, values, writers

from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.errors import HyperdbError, NotWritable


def test_the_source_and_whom_it_authorized(tmp_path: Path) -> None:
    with writers(tmp_path, 2) as dbs:
        for writer in dbs:
            put(writer, ["foo"])
            for db in dbs:
                assert db.authorized(db.key)
                assert db.authorized(db.local.key)
                assert db.authorized(dbs[1].local.key.hex())
        assert not dbs[0].authorized(bytes(32))
        with pytest.raises(HyperdbError, match="32 bytes"):
            dbs[0].authorize(b"short")


def test_who_is_not_authorized_writes_for_itself(tmp_path: Path) -> None:
    with HyperDB(tmp_path / "a", create=True) as a, HyperDB(tmp_path / "b", a.key) as b:
        put(a, ["foo", "foo"])
        put(b, ["bar"])
        a.replicate(b)
        put(b, ["baz"])
        b.replicate(a)
        assert not b.authorized(b.local.key)
        assert b.authorized(a.local.key)
        assert as_dict(a) == {"foo": [b"foo"]}
        assert as_dict(b) == {"foo": [b"foo"], "bar": [b"bar"], "baz": [b"baz"]}
        a.authorize(b.local.key)
        a.replicate(b)
        assert as_dict(a) == as_dict(b)
        assert a.authorized(b.local.key)
        assert b.authorized(b.local.key)


def test_only_one_of_two_new_ones(tmp_path: Path) -> None:
    with (
        HyperDB(tmp_path / "a", create=True) as a,
        HyperDB(tmp_path / "b", a.key) as b,
        HyperDB(tmp_path / "c", a.key) as c,
    ):
        put(a, ["foo"])
        a.authorize(b.local.key)
        a.replicate(b)
        a.replicate(c)
        assert not c.authorized(c.local.key)
        assert c.authorized(b.local.key)
        b.authorize(c.local.key)
        put(c, ["bar"])
        for left, right in ((b, c), (a, b)):
            left.replicate(right)
        assert a.authorized(c.local.key)
        assert a["bar"] == b"bar"


def test_a_copy_of_a_copy(tmp_path: Path) -> None:
    with (
        HyperDB(tmp_path / "a", create=True) as a,
        HyperDB(tmp_path / "b", a.key) as b,
        HyperDB(tmp_path / "c", a.key) as c,
    ):
        put(a, ["hello"])
        a.replicate(b)
        b.replicate(c)
        assert b["hello"] == c["hello"] == b"hello"


def test_nobody_without_the_secret_writes(tmp_path: Path) -> None:
    with HyperDB(tmp_path, create=True) as db:
        put(db, ["a"])
    with HyperDB(tmp_path, read_only=True) as db:
        assert not db.writable
        assert db["a"] == b"a"
        with pytest.raises(NotWritable, match="secret"):
            db.put("b")
    (tmp_path / "secret").unlink()
    with HyperDB(tmp_path) as db, pytest.raises(NotWritable, match="secret"):
        db.authorize(bytes(32))


def test_feed_of_which_nothing_is_here_needs_no_file(tmp_path: Path) -> None:
    """So a reader beside us meets none that is missing, and who lists a thousand costs nobody as many."""
    with HyperDB(tmp_path / "a", create=True) as a, HyperDB(tmp_path / "b", a.key) as b:
        for number in range(100):
            a.authorize(bytes([number]) * 32)
        a.authorize(b.local.key)
        a.flush()
        assert len(list((tmp_path / "a" / "feeds").glob("*.log"))) == 1
        with HyperDB(tmp_path / "a", read_only=True) as reader:
            assert len(reader.feeds) == 102
            assert reader.authorized(b.local.key)
            assert not reader.refresh()
            assert as_dict(reader) == as_dict(reader, "x") == {}
            assert reader.get("x", lookup="trie") == reader.list(lookup="trie") == reader.damage() == []
            put(b, ["x"])
            a.replicate(b)
            a.flush()
            assert reader.refresh()
            assert as_dict(reader) == as_dict(a) == {"x": [b"x"]}
        with HyperDB(tmp_path / "b", read_only=True) as reader:
            assert as_dict(reader) == {"x": [b"x"]}


def test_two_writers_in_turn(tmp_path: Path) -> None:
    with writers(tmp_path, 2) as (one, other):
        for db, names in ((one, "0"), (other, "a"), (other, "23456789"), (one, "b"), (other, "c"), (other, "d")):
            put(db, names)
            one.replicate(other)
        one.batch([(f"i{number}", b"%d" % number) for number in range(1000)])
        assert (other["a"], one["0"], one["i424"]) == (b"a", b"0", b"424")
        assert "i424" not in other
        one.replicate(other)
        assert as_dict(other) == as_dict(one)
        assert len(as_dict(one)) == 1013


def test_a_conflict_stays_until_somebody_who_knows_writes(tmp_path: Path) -> None:
    with writers(tmp_path, 2) as (one, other):
        put(one, ["a"])
        one.replicate(other)
        one.put("b", b"b")
        other.put("b", b"B")
        one.replicate(other)
        one.put("a", b"A")
        one.replicate(other)
        for db in (one, other):
            assert values(db.get("a")) == [b"A"]
            assert values(db.get("b")) == [b"B", b"b"]
        other.put("b", b"both")
        assert values(other.get("b")) == [b"both"]
        assert values(one.get("b")) == [b"B", b"b"]
        one.replicate(other)
        assert values(one.get("b")) == [b"both"]


def test_three_writers(tmp_path: Path) -> None:
    with writers(tmp_path, 3) as dbs:
        a, b, c = dbs
        c.put("a", b"ac")
        meet(dbs)
        put(a, ["foo"])
        meet(dbs)
        a.put("a", b"aa")
        a.replicate(b)
        put(b, map(str, range(50)))
        meet(dbs)
        put(c, map(str, range(5)), b"c")
        for db in dbs:
            assert values(db.get("a")) == [b"aa"]
        assert values(c.get("3")) == [b"c"]
        assert values(a.get("3")) == [b"3"]
