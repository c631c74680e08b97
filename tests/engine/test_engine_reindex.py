"""Looking at records again: after something outside the log changed, or the user's function itself."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import POSTS, QUESTIONS, VOTES, calls_of, check, index_files, make_log, messages, oracle_of
from index_cases import opened, spans_of

from jitdb import JITDB, Log
from jitdb.errors import IndexWarning, QueryError
from jitdb.indexes import segment
from jitdb.operators import absent, equal, includes, predicate
from jitdb.operators.nodes.operation import Operation

pytestmark = pytest.mark.slow

FAVOURITES: set[int] = set()


def is_favourite(value: Any) -> bool:
    """What it says depends on more than the record."""
    return value in FAVOURITES


LIKED = predicate("value.sequence", is_favourite)


@pytest.fixture(autouse=True)
def _favourites() -> None:
    FAVOURITES.clear()
    FAVOURITES.update([1, 5, 30])


def liked(count: int) -> int:
    return sum(1 for number in range(count) if number // 11 in FAVOURITES)


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_predicate_whose_world_changed(tmp_path: Path, in_memory: bool) -> None:
    make_log(tmp_path / "log", 400)
    with Log(tmp_path / "log") as log:
        db = JITDB(log, "memory" if in_memory else None)
        assert db.count(LIKED) == liked(400) == 33
        FAVOURITES.add(7)
        assert db.count(LIKED) == 33  # remembered
        db.reindex()
        assert db.count(LIKED) == liked(400) == 44
        assert db.status.total == log.durable_end
        check(db, oracle_of(log))
        FAVOURITES.discard(1)
        db.reindex(0)
        again = db if in_memory else JITDB(log)
        assert again.count(LIKED) == liked(400) == 33


@pytest.mark.parametrize("place", [0, 1, 63, 64, 65, 128, 250, 399])
def test_only_what_lies_behind_is_looked_at_again(tmp_path: Path, place: int) -> None:
    with spans_of(64):
        offsets = make_log(tmp_path / "log", 400)
        with Log(tmp_path / "log") as log:
            db = JITDB(log)
            db.prepare(*QUESTIONS, LIKED)
            whole = {path: path.read_bytes() for path in index_files(log)}
            db.reindex(offsets[place])
            stale = {row["records"] for row in db.explain(LIKED)["indexes"]}
            assert stale == {place - place % 64}
            assert all(len(path.read_bytes()) < len(whole[path]) for path in whole)
            asked: list[Any] = []

            def note(value: Any) -> bool:
                asked.append(value)
                return is_favourite(value)

            FAVOURITES.add(place // 11 + 1)
            noted = predicate("value.sequence", note, name="is_favourite")
            seen = sum(
                1
                for n in range(400)
                if n // 11 in FAVOURITES - ({place // 11 + 1} if n < place - place % 64 else set())
            )
            assert db.count(noted) == seen
            assert min(asked) == (place - place % 64) // 11
            check(db, oracle_of(log))
            db.prepare(*QUESTIONS, LIKED)
            for path in whole:
                if "is_favourite" not in path.name:
                    assert path.read_bytes() == whole[path]


def test_indexes_that_are_not_open_are_cut_too(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 400)
    with Log(tmp_path / "log") as log:
        assert JITDB(log).count(LIKED) == 33
        FAVOURITES.add(7)
        JITDB(log).reindex()
        assert JITDB(log).count(LIKED) == 44


def test_another_database_that_has_them_open_follows_when_it_indexes(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 400)
    with Log(tmp_path / "log", flush_interval=3600) as log:
        first, second = JITDB(log), JITDB(log)
        assert first.count(LIKED) == second.count(LIKED) == 33
        FAVOURITES.add(7)
        first.reindex()
        assert first.count(LIKED) == 44
        log.append_many(messages(11, first=400))
        log.flush()
        assert second.count(LIKED) == first.count(LIKED) == 44
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check(second, oracle_of(log))


def test_pages_go_on_over_a_reindexing(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 400)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        wanted = db.all(POSTS, as_offsets=True)
        pages = db.pages(POSTS, limit=30, as_offsets=True)
        got = list(next(pages).data)
        db.reindex()
        got += next(pages).data
        db.reindex()
        for page in pages:
            got += page.data
        assert got == wanted


def test_a_feed_goes_on_over_a_reindexing(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 400)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        feed = db.feed(POSTS, limit=30, old=True, as_offsets=True)
        got: list[int] = []
        while (portion := feed.read()) is not None:
            got += portion.data
            db.reindex()
        assert got == db.all(POSTS, as_offsets=True, sort_by="arrival")


def test_a_damaged_index_does_not_keep_the_others_from_being_cut(tmp_path: Path) -> None:
    with spans_of(64):
        offsets = make_log(tmp_path / "log", 400)
        with Log(tmp_path / "log") as log:
            JITDB(log).prepare(*QUESTIONS, LIKED)
            for damaged in index_files(log):
                db = JITDB(log)
                db.prepare(*QUESTIONS, LIKED)
                content = bytearray(damaged.read_bytes())
                first = next(index for index in opened(db) if index.path == damaged).segments[0]
                content[first.body_position] ^= 0xFF
                with open(damaged, "r+b") as file:
                    file.write(content)
                db = JITDB(log)
                segment.blob_cache.clear()
                with pytest.warns(IndexWarning, match="rebuilt"):
                    db.reindex(offsets[200])
                ends = {Path(index.name).name: index.end_seq for index in opened(db)}
                assert ends.pop(damaged.name, 0) == 0
                assert set(ends.values()) == {192}
            check(db, oracle_of(log))


def test_reindexing_what_is_not_there(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 40)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        db.reindex()
        assert index_files(log) == []
        db.prepare(POSTS)
        reads = calls_of(log, "read_blocks")
        db.reindex(10**12)
        assert db.count(POSTS) == 16
        assert not reads
        bad: Any
        for bad in (-1, 1.5, "0", None, True):
            with pytest.raises(QueryError, match="offset"):
                db.reindex(bad)


# --- versions --------------------------------------------------------------------------------------------------------


def type_at(record: bytes, start: int) -> int | None:
    """Finds the first byte of the word that the tests look for."""
    at = record.find(b"post")
    return None if at < 0 else at - 1


def author_at(record: bytes, start: int) -> int | None:
    return None


def versions(log: Log, word: str) -> int:
    return sum(word in path.name for path in index_files(log))


@pytest.mark.parametrize(
    "ask",
    [
        lambda seek, version: equal(seek, "post", index_type="mine", version=version),
        lambda seek, version: includes(seek, "post", index_type="mine", version=version),
        lambda seek, version: equal(seek, "post", index_type="mine", prefix=True, version=version),
    ],
    ids=["equal", "includes", "prefix"],
)
def test_a_function_that_finds_another_field(tmp_path: Path, ask: Any) -> None:
    make_log(tmp_path / "log", 400)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        assert db.count(ask(type_at, 0)) == db.count(POSTS)
        assert db.count(ask(author_at, 0)) == db.count(POSTS)  # by its name it is the same
        other = db.count(absent(type_at, index_type="another"))
        assert other == 400 - db.count(POSTS)
        assert db.count(ask(author_at, 1)) == 0
        assert db.count(ask(type_at, 3)) == db.count(POSTS)
        assert versions(log, "mine") == 1
        assert versions(log, "another") == 1
        assert JITDB(log).count(ask(type_at, 3)) == db.count(POSTS)
        assert db.count(ask(type_at, 2)) == db.count(POSTS)  # an older program: it has its own
        assert versions(log, "mine") == 2


def test_a_raised_version_of_a_predicate_takes_the_place_of_the_others(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 400)

    def ask(limit: int, version: int) -> Operation:
        return predicate("value.sequence", lambda value: value < limit, name="is low", version=version)

    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        db.prepare(VOTES, predicate("value.sequence", is_favourite))
        before = index_files(log)
        assert [db.count(ask(limit, limit)) for limit in (1, 2, 3)] == [11, 22, 33]
        assert len(index_files(log)) == len(before) + 1
        assert set(before) < set(index_files(log))


@pytest.mark.parametrize("version", [-1, 1.0, "1", True, None])
def test_versions_are_whole_numbers(version: Any) -> None:
    with pytest.raises(QueryError, match="version"):
        equal(type_at, "post", index_type="mine", version=version)


def test_a_path_has_no_version() -> None:
    with pytest.raises(QueryError, match="index_type"):
        equal("value.content.type", "post", version=1)
    assert equal("a", 1, index_type="x", version=2) != equal("a", 1, index_type="x")
    assert repr(equal("a", 1, index_type="x", version=2)) == "equal('a', 1, index_type='x', version=2)"
