"""How many indexes questions may have built."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from engine_helpers import POSTS, TYPE, VOTES, index_files, make_log

import jitdb
from jitdb.errors import InvalidArgument, TooManyIndexes
from jitdb.indexes.files.index import Index
from jitdb.operators import and_, equal, everything, gt, not_


@pytest.mark.parametrize("indexes", [None, "memory"], ids=["files", "memory"])
def test_no_more_indexes_than_that(tmp_path: Path, indexes: str | None) -> None:
    make_log(tmp_path / "log", 60)
    with jitdb.open(tmp_path / "log", indexes, max_indexes=1) as db:
        assert db.count(everything()) == 60  # what all answers need does not count
        assert db.all(gt(1000, "timestamp"))
        posts = db.count(POSTS)
        before = {path.name: path.read_bytes() for path in index_files(db.log)}
        for refused in (equal("value.author", "@3"), and_(POSTS, equal("key", "%000007")), not_(equal("x", 1))):
            with pytest.raises(
                TooManyIndexes, match=r"1 index more, and max_indexes=1 are allowed, and there are 1; ask"
            ):
                db.count(refused)
        assert {path.name: path.read_bytes() for path in index_files(db.log)} == before
        db.log.append({"value": {"content": {"type": "post"}}})
        db.log.flush()
        assert db.count(POSTS) == posts + 1  # what there is grows
        assert db.count(VOTES)


def test_what_was_refused_leaves_nothing_in_memory(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 60)
    with jitdb.open(tmp_path / "log", max_indexes=1) as db:
        db.count(POSTS)
        for number in range(20):
            with pytest.raises(TooManyIndexes):
                db.count(and_(POSTS, equal(f"x{number}", 1)))
        assert not [
            each for each in gc.get_objects() if isinstance(each, Index) and each.spec.file_name().startswith("x")
        ]
        db.prepare(equal("x7", 1))
        assert db.count(and_(POSTS, equal("x7", 1))) == 0


def test_prepared_ones_are_not_bound_and_dropping_makes_room(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 60)
    author = equal("value.author", "@3")
    with jitdb.open(tmp_path / "log", max_indexes=0) as db:
        with pytest.raises(TooManyIndexes, match="max_indexes=0"):
            db.count(POSTS)
        db.prepare(POSTS)
        assert db.count(POSTS)
    with jitdb.open(tmp_path / "log", max_indexes=1) as db:
        with pytest.raises(TooManyIndexes):
            db.count(author)
        assert db.drop_index(TYPE)
        assert db.count(author)
        with pytest.raises(TooManyIndexes):
            db.count(POSTS)


def test_no_more_bytes_than_that(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 60)
    with jitdb.open(tmp_path / "log", max_index_bytes=1) as db:
        assert db.count(POSTS)
        with pytest.raises(TooManyIndexes, match=r"1 index more, and max_index_bytes=1 are taken: \d+"):
            db.count(equal("value.author", "@3"))
        assert db.count(VOTES)


def test_bounds_are_whole_numbers(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 6)
    for wrong in (-1, 1.5, "3", True):
        with pytest.raises(InvalidArgument, match="max_indexes is a number, 0 or more"):
            jitdb.open(tmp_path / "log", max_indexes=wrong)  # type: ignore[arg-type]
