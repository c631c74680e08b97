"""History, the history of a key, and differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hyperdb_writers import meet, put, values, writers

from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.errors import HyperdbError
from jitdb.stores.hyperdb.view import Change


@pytest.fixture
def db(tmp_path: Path) -> Any:
    with HyperDB(tmp_path / "db", create=True) as db:
        yield db


def test_history_of_one_writer(db: HyperDB) -> None:
    assert db.history() == []
    put(db, ["a", "b/0", "a"])
    db.delete("a")
    said = [("a", b"a", False), ("b/0", b"b/0", False), ("a", b"a", False), ("a", None, True)]
    assert [(node.key, node.value, node.deleted) for node in db.history()] == said
    assert db.history(reverse=True) == db.history()[::-1]
    assert [node.seq for node in db.checkout(2).history()] == [1, 2]


def test_history_of_two_writers(tmp_path: Path) -> None:
    with writers(tmp_path, 2) as (one, other):
        put(one, ["a"])
        put(other, ["b"])
        one.replicate(other)
        for db in (one, other):
            numbers = [(db.feeds[node.feed].key == one.key, node.seq) for node in db.history()]
            assert numbers == [(True, 1), (True, 2), (False, 1)]
            assert {node.pointer for node in db.history(reverse=True)} == {node.pointer for node in db.history()}
            assert db.history(reverse=True)[-1] == db.history()[0]


def history(db: HyperDB, key: str) -> list[list[bytes | None]]:
    return [values(nodes) for nodes in db.key_history(key)]


def test_what_a_key_was(db: HyperDB) -> None:
    assert history(db, "hello") == []
    for key, value in [("hello", b"welt"), ("null", b"void"), ("hello", b"darkness"), ("hello", b"world")]:
        db.put(key, value)
    assert history(db, "/hello") == [[b"world"], [b"darkness"], [b"welt"]]
    assert history(db, "null") == [[b"void"]]
    db.delete("null")
    assert [nodes[0].deleted for nodes in db.key_history("null")] == [True, False]


def test_what_a_key_was_to_several(tmp_path: Path) -> None:
    with writers(tmp_path, 3) as dbs:
        one, two, three = dbs
        put(one, ["hello"], b"welt")
        one.replicate(two)
        put(two, ["hello"], b"world")
        one.replicate(two)
        assert history(one, "hello") == [[b"world"], [b"welt"]]
        put(three, ["hello"], b"again")
        meet(dbs)
        assert history(one, "hello")[0] == [b"again", b"world"]
        assert sorted(value for group in history(one, "hello") for value in group) == [b"again", b"welt", b"world"]


def test_three_writers_one_after_the_other(tmp_path: Path) -> None:
    with writers(tmp_path, 3) as dbs:
        numbers = [b"%d" % number for number in range(15)]
        for number, db in enumerate(dbs):
            for value in numbers[5 * number : 5 * number + 5]:
                db.put("version", value)
            meet(dbs)
        assert history(dbs[0], "version") == [[value] for value in reversed(numbers)]


def test_three_writers_at_once(tmp_path: Path) -> None:
    with writers(tmp_path, 3) as dbs:
        for db, value in zip(dbs, (b"welt", b"world", b"again"), strict=True):
            db.put("hello", value)
        meet(dbs)
        assert history(dbs[0], "hello") == [[b"again", b"welt", b"world"]]


def sides(changes: list[Change]) -> dict[str, tuple[list[bytes | None], list[bytes | None]]]:
    return {change.key: (values(change.left), values(change.right)) for change in changes}


def test_differences_from_nothing(db: HyperDB) -> None:
    assert db.diff(prefix="a") == []
    put(db, ["a"], b"1")
    put(db, ["a"], b"2")
    assert sides(db.diff(prefix="a")) == {"a": ([b"2"], [])}
    put(db, ["a/foo", "a/bar", "b"])
    expected = {"a/foo": ([b"a/foo"], []), "a/bar": ([b"a/bar"], []), "a": ([b"2"], [])}
    assert sides(db.diff(None, "a")) == expected
    assert sides(db.diff()) == expected | {"b": ([b"b"], [])}
    assert [change.key for change in db.diff()] == [nodes[0].key for nodes in db.list()]


def test_differences_from_the_past(db: HyperDB) -> None:
    empty = db.snapshot()
    put(db, ["a"], b"1")
    put(db, ["a/d/r"], b"1")
    past = db.snapshot()
    assert db.diff(past) == db.diff(db) == []
    put(db, ["a"], b"2")
    put(db, ["b"], b"17")
    put(db, ["a/d/r"], b"3")
    assert sides(db.diff(past)) == {"a": ([b"2"], [b"1"]), "b": ([b"17"], []), "a/d/r": ([b"3"], [b"1"])}
    assert sides(past.diff(db)) == {"a": ([b"1"], [b"2"]), "b": ([], [b"17"]), "a/d/r": ([b"1"], [b"3"])}
    assert sides(db.diff(past, "a/d")) == {"a/d/r": ([b"3"], [b"1"])}
    assert sides(db.diff(empty, "b")) == {"b": ([b"17"], [])}
    put(db, ["//b", "b/"])
    assert sides(db.diff(past, "b")).keys() == {"b", "b/"}
    db.delete("a")
    assert sides(db.diff(past))["a"] == ([], [b"1"])


def test_a_small_difference_in_a_large_database(db: HyperDB) -> None:
    """Only what was written since is read."""
    db.batch((str(number), b"") for number in range(1000))
    past = db.snapshot()
    db.put("42", b"*")
    assert sides(db.diff(past)) == {"42": ([b"*"], [b""])}


def test_differences_of_several_writers(tmp_path: Path) -> None:
    with writers(tmp_path, 2) as (one, other):
        before = other.snapshot()
        put(one, ["a"], b"a")
        put(other, ["a"], b"b")
        one.replicate(other)
        assert sides(other.diff(before)) == sides(other.diff()) == {"a": ([b"a", b"b"], [])}
        with pytest.raises(HyperdbError, match=r"not one of this database; .*checkout"):
            one.diff(other)
