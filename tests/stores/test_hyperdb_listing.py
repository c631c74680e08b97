"""Lists, iterators, prefixes and their order, of one writer and of several; keys that collide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hyperdb_writers import as_dict, meet, put, values, writers

from jitdb.stores.hyperdb import HyperDB, feed
from jitdb.stores.hyperdb.errors import HyperdbError
from jitdb.stores.hyperdb.format.path import path_digits
from jitdb.stores.hyperdb.graph import Graph

COLLIDING = ["idgcmnmna", "mpomeiehc"]  # segments with the same hash


@pytest.fixture
def db(tmp_path: Path) -> Any:
    with HyperDB(tmp_path / "db", create=True) as db:
        yield db


def keys(db: HyperDB, prefix: str = "", **options: Any) -> list[str]:
    return [nodes[0].key for nodes in db.list(prefix, **options)]


@pytest.mark.parametrize(
    ("written", "prefix", "expected"),
    [
        ("a b c", "", "a b c"),
        ("foo/a foo/b foo/c a b c", "foo", "foo/a foo/b foo/c"),
        ("foo/a foo/b foo/c", "bar", ""),
        ("a a/a a/b a/c a/a/a a/a/b a/a/c", "", "a a/a a/b a/c a/a/a a/a/b a/a/c"),
        ("foo/a foo/abc foo/a/b", "foo/a", "foo/a foo/a/b"),
        ("a b b/c", "/", "a b b/c"),
        ("", "foo/", ""),
    ],
)
def test_whole_segments(db: HyperDB, written: str, prefix: str, expected: str) -> None:
    put(db, written.split())
    for lookup in ("index", "trie"):
        found = db.list(prefix, lookup=lookup)
        assert {nodes[0].key: nodes[0].value for nodes in found} == {key: key.encode() for key in expected.split()}


def test_a_thousand_keys(db: HyperDB) -> None:
    names = [f"#{number}" for number in range(1000)]
    db.batch([(folder + name, name.encode()) for folder in ("", "foo/") for name in names])
    for lookup in ("index", "trie"):
        assert sorted(keys(db, "foo", lookup=lookup)) == sorted("foo/" + name for name in names)
        assert len(keys(db, lookup=lookup)) == 2000
    assert [nodes[0].key for nodes in db.iterator("foo")] == keys(db, "foo")


def test_below_a_key(db: HyperDB) -> None:
    """A slash at a prefix's end is one of the key: the key without it is another one, at the same path."""
    put(db, ["foo", "foo/a", "foo/b", "a", "bar/a", "foo/abc", "foo/b", "bar/b", "foo/bar", "foo/a/b"])
    below = sorted(["foo/a", "foo/abc", "foo/b", "foo/bar", "foo/a/b"])
    assert sorted(keys(db, "foo/")) == sorted(keys(db, "foo/", gt=True)) == sorted(keys(db, "foo", gt=True)) == below
    assert sorted(keys(db, "foo")) == ["foo", *below]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "names", ["a b c", "a/a a/b a/c b c", "a a/a a/b a/c a/a/a a/a/b a/a/c", "a a/b a/b/c b/c b/c/d"]
)
def test_order(tmp_path: Path, names: str, several: bool) -> None:
    """That of the paths, a key before all that is below it, and that before the next one."""
    written = names.split()
    expected = sorted(written, key=lambda key: path_digits(key)[:-1])
    with writers(tmp_path, 2) as (one, other):
        half = len(written) // 2
        put(one, written[:half])
        put(other if several else one, written[half:])
        one.replicate(other)
        for db in (one, other):
            assert keys(db) == expected
            assert keys(db, reverse=True) == expected[::-1]
            assert [nodes[0].key for nodes in db.iterator(reverse=True)] == expected[::-1]


def test_without_recursion(db: HyperDB) -> None:
    """Each segment once, whatever is below it: the newest of all nodes there."""
    put(db, ["a", "a/b/c/d", "a/c", "b", "b/b/c", "c/a", "c"])
    assert sorted(keys(db, recursive=False)) == ["a/c", "b/b/c", "c"]
    assert sorted(keys(db, "a", recursive=False)) == ["a", "a/b/c/d", "a/c"]
    assert sorted(keys(db, "a", recursive=False, gt=True)) == ["a/b/c/d", "a/c"]
    assert keys(db, recursive=False, reverse=True) == keys(db, recursive=False)[::-1]
    db.delete("a/c")
    assert sorted(keys(db, recursive=False)) == ["a/b/c/d", "b/b/c", "c"]
    assert "a/c" in keys(db, recursive=False, deletes=True)
    db.batch([("a", None, True), ("a/b/c/d", None, True)])
    assert sorted(keys(db, recursive=False)) == ["b/b/c", "c"]


def test_folders_of_two_writers(tmp_path: Path) -> None:
    """The reference tells one twice in which two writers' newest entries have other keys."""
    with writers(tmp_path, 2) as (one, other):
        put(one, ["a/x", "b"])
        put(other, ["a/y", "c"])
        one.replicate(other)
        assert sorted(values(nodes) for nodes in one.list(recursive=False)) == [[b"a/x", b"a/y"], [b"b"], [b"c"]]


@pytest.mark.parametrize("lookup", ["index", "trie"])
def test_colliding_keys(db: HyperDB, lookup: Any) -> None:
    put(db, [*COLLIDING, *(f"{key}/a" for key in COLLIDING), *(f"x/{key}" for key in COLLIDING)])
    for key in COLLIDING:
        assert db.get(key, lookup=lookup)[0].value == key.encode()
        assert keys(db, key, lookup=lookup) == [key, f"{key}/a"]
        assert keys(db, f"x/{key}", lookup=lookup) == [f"x/{key}"]
        assert keys(db, key, lookup=lookup, recursive=False, gt=True) == [f"{key}/a"]
    assert keys(db, "x", lookup=lookup) == [f"x/{key}" for key in COLLIDING]
    assert len(keys(db, lookup=lookup)) == 6
    assert len(keys(db, lookup=lookup, recursive=False)) == 3
    db.delete(COLLIDING[1])
    assert db.get(COLLIDING[0], lookup=lookup) != []
    assert db.get(COLLIDING[1], lookup=lookup) == []


def test_slashes_collide(db: HyperDB) -> None:
    """An empty last segment is none, so "a/" has the path of "a", and is another key."""
    put(db, ["a", "a/", "//a", "a//", "a//b"])
    assert set(keys(db)) == {"a", "a/", "/a", "a//", "a//b"}
    for key in keys(db):
        assert (
            [node.key for node in db.get("/" + key)] == [node.key for node in db.get("/" + key, lookup="trie")] == [key]
        )


def test_deleted_keys(db: HyperDB) -> None:
    put(db, "abc")
    db.delete("a")
    assert as_dict(db) == {"b": [b"b"], "c": [b"c"]}
    assert as_dict(db, deletes=True) == {"a": [None], "b": [b"b"], "c": [b"c"]}


@pytest.mark.parametrize("is_indexed", [False, True])
def test_many_versions(db: HyperDB, is_indexed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each key only the newest is decoded, and the others are read only once."""
    for version in range(20):
        db.batch((f"a/{number}", b"%d" % version) for number in range(5))
    if is_indexed:
        monkeypatch.setattr(feed, "RECENT_UNDER", 0)
    monkeypatch.setattr(Graph, "read", counting := Counting(Graph.read))
    expected = db.list("a", lookup="trie")
    assert [[node.value for node in nodes] for nodes in expected] == [[b"19"]] * 5
    for read in (100, 5):
        counting.calls = 0
        assert len(list(db.local.entries_under(["a"], 101))) == read
        assert db.list("a") == expected
        assert counting.calls == 5
    for seq in (1, 7, 50, 96, 100):
        past = db.checkout(seq)
        assert past.list("a") == past.list("a", lookup="trie")


class Counting:
    """A method whose calls are counted."""

    def __init__(self, method: Any) -> None:
        self.method, self.calls = method, 0

    def __get__(self, owner: Any, kind: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            return self.method(owner, *arguments, **named)

        return call


def test_a_fork(tmp_path: Path) -> None:
    with writers(tmp_path, 2) as (one, other):
        put(one, ["0"])
        one.replicate(other)
        one.put("1", b"1a")
        other.put("1", b"1b")
        put(one, ["10"])
        one.replicate(other)
        put(one, ["2", "1/0"])
        both = {"0": [b"0"], "1": [b"1a", b"1b"], "10": [b"10"]}
        assert as_dict(other) == both
        assert as_dict(one) == both | {"2": [b"2"], "1/0": [b"1/0"]}


def test_a_fork_among_many_keys(tmp_path: Path) -> None:
    with writers(tmp_path, 2) as (one, other):
        put(one, ["0"])
        put(other, "23456789")
        one.replicate(other)
        one.put("1", b"1a")
        other.put("1", b"1b")
        one.replicate(other)
        one.put("0", b"00")
        put(one, [f"i{number}" for number in range(100)])
        one.replicate(other)
        other.put("hi", b"ho")
        expected = {key: [key.encode()] for key in [*"23456789", *(f"i{number}" for number in range(100))]}
        expected |= {"0": [b"00"], "1": [b"1a", b"1b"]}
        assert as_dict(one) == expected
        assert as_dict(other) == expected | {"hi": [b"ho"]}


def test_an_overwrite_is_no_fork(tmp_path: Path) -> None:
    with writers(tmp_path, 2) as (one, other):
        one.put("a", b"a")
        one.replicate(other)
        other.put("a", b"b")
        one.put("b", b"c")
        one.replicate(other)
        assert as_dict(one) == as_dict(other) == {"a": [b"b"], "b": [b"c"]}


@pytest.mark.parametrize("with_deletes", [False, True])
def test_three_writers_and_two_forks(tmp_path: Path, with_deletes: bool) -> None:
    with writers(tmp_path, 3) as dbs:
        a, b, c = dbs
        put(a, "a")
        meet(dbs)
        b.put("a", b"ab")
        put(a, ["some"])
        a.replicate(c)
        put(c, "c")
        if with_deletes:
            c.delete("c")
            a.delete("a")
            a.delete("some")
        meet(dbs)
        for db in dbs:
            if with_deletes:
                assert as_dict(db, deletes=True) == {"a": [b"ab", None], "c": [None], "some": [None]}
                assert as_dict(db) == {"a": [b"ab", None]}
            else:
                assert as_dict(db) == {"a": [b"ab"], "c": [b"c"], "some": [b"some"]}


def test_prefixes_of_two_writers(tmp_path: Path) -> None:
    with writers(tmp_path, 2) as (one, other):
        put(one, ["b/a", "a/b/c", "b/c", "b/c/d"], b"A")
        one.replicate(other)
        put(other, ["a/b", "a/b/c", "b/c/d", "b/c"], b"B")
        one.replicate(other)
        assert as_dict(one, "b/") == {"b/c/d": [b"B"], "b/c": [b"B"], "b/a": [b"A"]}
        put(one, ["c/a", "c/b"], b"A")
        put(other, ["c/b", "c/a"], b"B")
        one.replicate(other)
        assert as_dict(other, "c") == {"c/a": [b"A", b"B"], "c/b": [b"A", b"B"]}


def test_an_iterator_is_of_one_moment_and_stops_nobody(db: HyperDB) -> None:
    put(db, "abc")
    seen = []
    iterator = db.iterator()
    put(db, "d")
    for nodes in iterator:
        db.put(nodes[0].key + "/new")
        seen.append(nodes[0].key)
    assert sorted(seen) == ["a", "b", "c"]


@pytest.mark.parametrize("use", ["get", "list"])
def test_what_is_no_lookup(db: HyperDB, use: str) -> None:
    with pytest.raises(HyperdbError, match="lookup is 'index' or 'trie', not 'walk'"):
        getattr(db, use)("a", lookup="walk")
