"""Where the JavaScript hyperdb 3.5.0 answers one writer otherwise, and what is right: the table of docs/hyperdb.md.

What it answered was seen by asking it beside this store, after random histories.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jitdb.stores.hyperdb import HyperDB

ONE, OTHER = "idgcmnmna", "mpomeiehc"  # segments with the same hash


class Case(NamedTuple):
    """Keys that are written, or deleted with a minus in front; a list, and the keys that it tells."""

    written: str
    prefix: str
    options: str
    theirs: str
    ours: str


CASES = {
    "a prefix is not below itself": Case("a b", "a", "gt", "a", ""),
    "nor the root": Case("//", "", "", "/", ""),
    "a deletion hides nothing else of its folder": Case("a/x b -a/y", "", "recursive", "b", "b a/x"),
    "nor a key a folder of its hash": Case(f"{ONE}/a {OTHER}/b", "", "recursive", f"{OTHER}/b", f"{OTHER}/b {ONE}/a"),
    "nor below it": Case(f"{ONE}/a {OTHER}/a", ONE, "recursive", "", f"{ONE}/a"),
    "colliding keys are turned round, too": Case(f"{ONE} {OTHER}", "", "reverse", f"{ONE} {OTHER}", f"{OTHER} {ONE}"),
    "deleted keys that collide are told": Case(f"{ONE} -{OTHER}", "", "deletes", ONE, f"{ONE} {OTHER}"),
}  # fmt: skip


@pytest.fixture
def db(tmp_path: Path) -> Any:
    with HyperDB(tmp_path / "db", create=True) as db:
        yield db


def write(db: HyperDB, written: str) -> None:
    for each in written.split():
        db.delete(each[1:]) if each.startswith("-") else db.put(each, b"")


def keys(db: HyperDB, prefix: str, **options: Any) -> list[str]:
    return [nodes[0].key for nodes in db.list(prefix, **options)]


@pytest.mark.parametrize("lookup", ["index", "trie"])
@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_lists(db: HyperDB, case: Case, lookup: str) -> None:
    write(db, case.written)
    options = {option: option != "recursive" for option in case.options.split()}
    assert keys(db, case.prefix, lookup=lookup, **options) == case.ours.split()


@pytest.mark.parametrize(
    ("prefix", "under"),
    [
        ("a", "a a/ a/b a/b/"), ("/a", "a a/ a/b a/b/"), ("a/", "a/ a/b a/b/"), ("a/b/", "a/b/"),
        ("//a", "/a /a/b"), ("//", "/a /a/b"), ("/", "/a a a/ /a/b a/b a/b/"),
    ],
)  # fmt: skip
def test_text_of_a_prefix_is_that_of_the_keys(db: HyperDB, prefix: str, under: str) -> None:
    """As in the reference; but there a slash in front of the prefix of a diff is part of it."""
    write(db, "a a/ a/b a/b/ //a //a/b")
    for lookup in ("index", "trie"):
        assert keys(db, prefix, lookup=lookup) == under.split()
    assert [change.key for change in db.diff(prefix=prefix)] == under.split()


def test_each_key_at_a_prefix_is_told_without_recursion(db: HyperDB) -> None:
    """Only what is below it is told as segments."""
    write(db, "a a/ a/b a/b/c a/b/ a/d/")
    assert keys(db, "a", recursive=False) == ["a", "a/", "a/b/", "a/d/"]
    assert keys(db, "a/b", recursive=False) == ["a/b", "a/b/", "a/b/c"]
    assert keys(db, "a", recursive=False, gt=True) == ["a/b/", "a/d/"]


def test_diff_tells_each_key_once_and_only_those_that_differ(db: HyperDB) -> None:
    """The reference merges two lists by an order that is not theirs, and tells the same node as gone and as new."""
    write(db, f"x x/{ONE} x/{OTHER} a a/b a/b/c")
    past = db.snapshot()
    write(db, f"-x x/{OTHER} a/b -b")
    sides = {each.key: ([node.seq for node in each.left], [node.seq for node in each.right]) for each in db.diff(past)}
    assert len(db.diff(past)) == len(sides)
    assert sides == {"a/b": ([9], [5]), "x": ([], [1]), f"x/{OTHER}": ([8], [3])}


def test_if_not_exists_beside_a_key_with_the_same_path(db: HyperDB) -> None:
    """The reference looks at one of them, and writes the other one again."""
    write(db, "a a/ -a/b")
    length = len(db.local)
    for key in ("a", "a/", "a/b"):
        assert db.put(key, b"again", if_not_exists=True) == db.get(key, deletes=True)[0]
    assert len(db.local) == length
