"""Watching a prefix."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hyperdb_writers import put, writers

from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.tries.node import Node


@pytest.fixture
def db(tmp_path: Path) -> Any:
    with HyperDB(tmp_path / "db", create=True) as db:
        yield db


def test_what_is_written_below_a_prefix(db: HyperDB) -> None:
    everything: list[Node] = []
    below: list[Node] = []
    db.watch(callback=everything.append)
    db.watch("/foo", below.append)
    put(db, ["hello", "foo/bar", "food", "foo"])
    db.batch([("foo/bar/baz", b"1"), ("b", b"2"), ("foo", None, True)])
    assert [node.key for node in everything] == ["hello", "foo/bar", "food", "foo", "foo/bar/baz", "b", "foo"]
    assert [node.key for node in below] == ["foo/bar", "foo", "foo/bar/baz", "foo"]


def test_who_watches_may_write(db: HyperDB) -> None:
    seen: list[Node] = []

    def again(node: Node) -> None:
        seen.append(node)
        if len(seen) < 20:
            db.put("foo", b"%d" % len(seen))

    db.watch("foo", again)
    db.put("foo", b"0")
    assert [node.value for node in seen] == [b"%d" % number for number in range(20)]


def test_who_watches_may_stop(db: HyperDB) -> None:
    seen: list[Node] = []
    watcher = db.watch("foo", lambda node: (seen.append(node), watcher.close()))
    put(db, ["foo/bar", "foo/bar/baz"])
    assert [node.key for node in seen] == ["foo/bar"]
    watcher.close()


def test_who_watches_may_fail(db: HyperDB) -> None:
    """What was written stays written, and others who watch are told before the error comes."""
    seen: list[Node] = []

    def fail(node: Node) -> None:
        raise ZeroDivisionError

    db.watch("", fail)
    db.watch("", seen.append)
    with pytest.raises(ZeroDivisionError):
        db.put("a", b"1")
    assert db["a"] == b"1"
    assert [node.key for node in seen] == ["a"]


def test_a_loop_waits_for_more(db: HyperDB) -> None:
    watcher = db.watch("a")
    seen: list[str] = []
    thread = Thread(target=lambda: seen.extend(node.key for node in watcher))
    thread.start()
    put(db, ["a/1", "b", "a/2"])
    watcher.close()
    thread.join(10)
    assert not thread.is_alive()
    assert seen == ["a/1", "a/2"]
    assert watcher.take() is None
    put(db, ["a/3"])
    assert watcher.take() is None


def test_closing_a_database_ends_its_loops(tmp_path: Path) -> None:
    with HyperDB(tmp_path, create=True) as db:
        watcher = db.watch()
        assert watcher.take(timeout=0.01) is None
    assert list(watcher) == []


def test_what_others_write(tmp_path: Path) -> None:
    with HyperDB(tmp_path / "a", create=True) as a, HyperDB(tmp_path / "b", a.key) as b:
        seen: list[Node] = []
        b.watch("hello", seen.append)
        put(a, [f"hello/{number}" for number in range(100)])
        put(a, ["flush"])
        a.replicate(b)
        assert [node.key for node in seen] == [f"hello/{number}" for number in range(100)]


def test_what_those_write_who_were_authorized_elsewhere(tmp_path: Path) -> None:
    with writers(tmp_path, 2) as (a, b), HyperDB(tmp_path / "c", a.key) as c:
        seen: list[Node] = []
        a.watch(callback=seen.append)
        a.replicate(b)
        b.replicate(c)
        b.authorize(c.local.key)
        b.replicate(c)
        c.put("hello2", b"world2")
        b.replicate(c)
        a.replicate(b)
        assert [node.key for node in seen] == ["", "hello2"]


def test_what_was_written_before_it_counted(tmp_path: Path) -> None:
    with HyperDB(tmp_path / "a", create=True) as a, HyperDB(tmp_path / "b", a.key) as b:
        put(b, ["early"])
        seen: list[Node] = []
        a.watch("early", seen.append)
        a.replicate(b)
        assert seen == []
        a.authorize(b.local.key)
        a.replicate(b)
        assert [node.key for node in seen] == ["early"]
