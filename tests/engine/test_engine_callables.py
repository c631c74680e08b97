"""Fields that a function finds, predicates and their versions, and which questions share an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_helpers import TYPE, VOTES, check, expected, index_files, make_log, messages, oracle_of

from jitdb import JITDB, Log
from jitdb.errors import QueryError
from jitdb.log.codecs.bipf import codec as bipf
from jitdb.operators import absent, and_, equal, includes, not_, or_, predicate
from jitdb.operators.nodes.operation import Operation

pytestmark = pytest.mark.slow


def seek_bipf(*path: str) -> Any:
    def seek(record: bytes, start: int) -> int:
        return bipf.seek_path(record, start, path)

    return seek


def seek_msgpack(record: bytes, start: int) -> int | None:
    """Where the value of "type" begins: the key's bytes are looked for, as a hand-written function may do."""
    at = record.find(b"\xa4type", start)
    return None if at < 0 else at + 5


def questions(codec: str) -> list[tuple[Operation, Operation]]:
    """A question with a function, and the same with a path."""
    seek = seek_bipf("value", "content", "type") if codec == "bipf" else seek_msgpack
    found: list[tuple[Operation, Operation]] = []
    for options in ({}, {"prefix": 32}, {"prefix": 32, "prefix_offset": 1}, {"use_map": True}, {"prefix": False}):
        values = ("post", "vote", "none", 7)
        found += [(equal(seek, value, index_type="the type", **options), equal(TYPE, value)) for value in values]
        found.append((includes(seek, "post", index_type="the type", **options), includes(TYPE, "post")))
        found.append((absent(seek, index_type="the type", **options), absent(TYPE)))
    found.append((predicate(seek, is_vote, index_type="the type"), VOTES))
    return found


def is_vote(value: Any) -> bool:
    return bool(value == "vote")


@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
def test_a_function_finds_what_a_path_finds(tmp_path: Path, codec: str) -> None:
    make_log(tmp_path / "log", 400, codec=codec)
    with Log(tmp_path / "log") as log:
        log.append_many([{"value": {"content": {"other": 1}}}, {"a": 1}, [1], 5])
        log.flush()
        db = JITDB(log)
        for sought, plain in questions(codec):
            assert db.all(sought, as_offsets=True) == db.all(plain, as_offsets=True) == expected(oracle_of(log), plain)
            assert db.count(not_(sought)) == db.count(not_(plain))
            assert db.count(and_(sought, plain)) == db.count(or_(sought, plain)) == db.count(plain)
        log.append_many(messages(100, first=400))
        log.flush()
        for sought, plain in questions(codec):
            assert db.count(sought) == db.count(plain)


@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
@pytest.mark.parametrize("place", [-1, None, 10**9, 3])
def test_a_function_that_points_anywhere(tmp_path: Path, codec: str, place: int | None) -> None:
    make_log(tmp_path / "log", 100, codec=codec)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        for options in ({}, {"prefix": 32}, {"use_map": True}):
            lost = [equal(lambda r, s: place, value, index_type="lost", **options) for value in ("post", 1, None)]
            assert all(db.count(question) == 0 for question in lost)
            assert [db.count(not_(question)) for question in lost] == [100] * 3


def test_option_sets_that_differ_share_no_index(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 200)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        sets: list[dict[str, Any]] = [
            {},
            {"prefix": False},
            {"prefix": 32},
            {"prefix": 32, "prefix_offset": 1},
            {"prefix": 32, "prefix_offset": 2},
            {"use_map": True},
            {"use_map": True, "prefix_offset": 1},
            {"index_type": "a"},
            {"index_type": "b"},
        ]
        names = set()
        for options in sets:
            question = equal("value.content.root", "%0003root", **options)
            assert db.all(question, as_offsets=True) == expected(oracle_of(log), question)
            names |= {
                row["index"] for row in db.explain(question)["indexes"] if row["form"] not in ("offsets", "deleted")
            }
        assert len(names) == len(sets)
        assert names <= {path.name for path in index_files(log)}


def test_an_index_type_is_an_index_of_its_own(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 200)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        author = equal(seek_bipf("value", "author"), "@3", index_type="author")
        kind = equal(seek_bipf("value", "content", "type"), "post", index_type="kind")
        assert db.count(author) == db.count(equal("value.author", "@3"))
        assert db.count(kind) == db.count(equal(TYPE, "post"))
        assert db.count(and_(author, kind)) == db.count(and_(equal("value.author", "@3"), equal(TYPE, "post")))
        with pytest.raises(QueryError, match="index_type"):
            equal(seek_bipf("value", "author"), "@3")


def test_a_new_version_of_a_predicate_is_asked_anew(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 200)
    with Log(tmp_path / "log") as log:
        asked: list[Any] = []

        def first(value: Any) -> bool:
            asked.append(value)
            return bool(value % 2 == 0)

        def second(value: Any) -> bool:
            return bool(value % 3 == 0)

        db = JITDB(log)
        evens = db.count(predicate("value.sequence", first, name="nice"))
        assert evens == sum(1 for n in range(200) if n // 11 % 2 == 0)
        calls = len(asked)
        assert calls == len(set(asked))  # once for each value of a chunk
        assert db.count(predicate("value.sequence", first, name="nice")) == evens
        assert JITDB(log).count(predicate("value.sequence", first, name="nice")) == evens
        assert len(asked) == calls
        assert db.count(predicate("value.sequence", second, name="nice")) == evens  # known by its name
        thirds = db.count(predicate("value.sequence", second, name="nice", version=1))
        assert thirds == sum(1 for n in range(200) if n // 11 % 3 == 0)
        assert db.count(predicate("value.sequence", first, name="nice")) == evens
        assert JITDB(log).count(predicate("value.sequence", second, name="nice", version=1)) == thirds


def test_predicates_see_values_of_all_kinds(tmp_path: Path) -> None:
    values = [1, 1.5, True, False, None, "text", b"bytes", [1, [2]], {"a": 1}, 2**63, -1, "", float("inf")]
    with Log(tmp_path / "log", codec="msgpack") as log:
        log.append_many({"a": value} for value in values)
        log.append({"b": 1})
        log.flush()
        db = JITDB(log)
        seen: list[Any] = []

        def look(value: Any) -> bool:
            seen.append(value)
            return isinstance(value, str)

        assert [record["a"] for record in db.all(predicate("a", look))] == ["text", ""]
        assert sorted(map(repr, seen)) == sorted(map(repr, values))
        check(db, oracle_of(log), [predicate("a", look), not_(predicate("a", look))])
