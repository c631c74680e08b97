"""A reader that never refreshes, and a log that is compacted or repaired beneath it: deleted records are out of its
answers all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from engine_helpers import POSTS, check, expected, make_log, messages, oracle_of

import jitdb
from jitdb import JITDB
from jitdb.errors import LogSuperseded
from jitdb.log.sidecar import deletions
from jitdb.operators import everything

pytestmark = pytest.mark.slow


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make_log(tmp_path / "a.log", 300)
    return tmp_path / "a.log"


def delete(db: JITDB, count: int) -> None:
    """The first records that are left and match."""
    for offset in expected(oracle_of(db.log), POSTS)[:count]:
        db.log.delete(offset)  # type: ignore[attr-defined]
    db.log.flush()  # type: ignore[attr-defined]


def nothing(db: JITDB) -> None:
    pass


def a_deletion_before(db: JITDB) -> None:
    delete(db, 1)


@pytest.mark.parametrize("before", [nothing, a_deletion_before])
def test_what_was_deleted_and_compacted_away(path: Path, before: Callable[[JITDB], None]) -> None:
    with jitdb.open(path) as db:
        before(db)
        with jitdb.open(path, read_only=True) as reader:
            check(reader, oracle_of(db.log))
            delete(db, 7)
            db.compact()
            check(reader, oracle_of(db.log))


@pytest.mark.parametrize("before", [nothing, a_deletion_before])
def test_what_was_deleted_after_a_compaction(path: Path, before: Callable[[JITDB], None]) -> None:
    with jitdb.open(path) as db:
        before(db)
        with jitdb.open(path, read_only=True) as reader:
            check(reader, oracle_of(db.log))
            delete(db, 2)
            db.compact()
            delete(db, 5)
            check(reader, oracle_of(db.log))


def test_in_the_pages_that_are_still_to_come(path: Path) -> None:
    with jitdb.open(path) as db, jitdb.open(path, read_only=True) as reader:
        wanted = reader.all(POSTS, sort_by="arrival")
        pages = reader.pages(POSTS, limit=10, sort_by="arrival")
        got = list(next(pages))
        alive = expected(oracle_of(db.log), POSTS, arrival=True)
        for offset in alive[15:25]:
            db.log.delete(offset)  # type: ignore[attr-defined]
        db.compact()
        db.log.append_many(messages(20, 300))  # type: ignore[attr-defined]
        db.log.flush()  # type: ignore[attr-defined]
        for page in pages:
            got += page.data
        assert got == wanted[:15] + wanted[25:]


def test_in_the_portions_of_a_feed(path: Path) -> None:
    with jitdb.open(path) as db, jitdb.open(path, read_only=True) as reader:
        wanted = reader.all(POSTS, sort_by="arrival", as_offsets=True)
        feed = reader.feed(POSTS, limit=10, old=True, as_offsets=True)
        first = feed.read()
        assert first is not None
        assert first.data == wanted[:10]
        for offset in wanted[10:]:
            db.log.delete(offset)  # type: ignore[attr-defined]
        db.compact()
        assert feed.read() is None
        feed.close()


def test_after_a_repair_that_made_another_log_of_it(path: Path) -> None:
    with jitdb.open(path, read_only=True) as reader:
        check(reader, oracle_of(reader.log))
        data = bytearray(path.read_bytes())
        data[4096:4100] = b"\xff" * 4  # the first length of the second block
        with open(path, "r+b") as file:
            file.write(data)
        with jitdb.open(path) as db:
            assert db.repair().actions
            delete(db, 5)
            check(reader, oracle_of(db.log))


def test_the_log_below_tells_of_it_and_refresh_shows_it(path: Path) -> None:
    with jitdb.open(path) as db, jitdb.open(path, read_only=True) as reader:
        delete(db, 1)
        db.compact()
        with pytest.raises(LogSuperseded, match="refresh"):
            reader.log.deletions()
        assert reader.log.refresh()
        assert reader.log.deletions()[1].tolist() == []


def test_a_journal_of_a_generation_that_never_was_is_void(path: Path) -> None:
    """Somebody put it there: a question looks once whether there is such a log, and goes on without it."""
    with jitdb.open(path, read_only=True) as reader:
        before = reader.count(everything())
        (reader.log.sidecar / "deletions").write_bytes(
            deletions.encode_head(reader.log.generation + 3) + deletions.encode_entry(deletions.Deletion(0, 100))
        )
        assert reader.count(everything()) == before
        check(reader, oracle_of(reader.log))
        (reader.log.sidecar / "deletions").unlink()
        with jitdb.open(path) as db:
            delete(db, 3)
        check(reader, oracle_of(reader.log))
