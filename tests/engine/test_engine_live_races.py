"""Live questions while the log is compacted: before the first look, and in the middle of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_helpers import manager_of

import jitdb
from jitdb.engine.building.targets import BuildTarget
from jitdb.engine.records import Records
from jitdb.errors import IndexDamaged
from jitdb.operators import field


def numbers(first: int, count: int) -> list[dict[str, int]]:
    return [{"n": number} for number in range(first, first + count)]


def drain(feed: Any) -> list[int]:
    found: list[int] = []
    while (portion := feed.read()) is not None:
        found += [record["n"] for record in portion.data]
    return found


@pytest.mark.parametrize("as_reader", [False, True])
@pytest.mark.parametrize("compactions", [1, 3])
def test_a_feed_begins_where_it_was_made_though_nobody_read_before_a_compaction(
    tmp_path: Path, as_reader: bool, compactions: int
) -> None:
    with jitdb.open(tmp_path / "a.log", create=True, block_size=128) as writer:
        offsets = writer.log.append_many(numbers(0, 200))
        writer.log.flush()
        db = jitdb.open(tmp_path / "a.log", read_only=True) if as_reader else writer
        feed = db.feed(limit=10)
        named = db.feed(limit=10)
        writer.log.append_many(numbers(200, 20))
        writer.log.delete(offsets[3])
        for number in range(compactions):
            writer.log.delete(writer.all(field("n") == 100 + number, as_offsets=True)[0])
            writer.compact()
        db.refresh()
        writer.log.append_many(numbers(220, 5))
        writer.log.flush()
        db.refresh()
        assert drain(feed) == list(range(200, 225))
        with jitdb.open(tmp_path / "a.log", read_only=True) as other:
            assert drain(other.feed(limit=10, after=named.cursor)) == list(range(200, 225))
        if as_reader:
            db.close()


def test_a_compaction_in_the_middle_of_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.log"
    with jitdb.open(path, create=True) as writer, jitdb.open(path, read_only=True) as reader:
        offsets = writer.log.append_many(numbers(0, 50))
        writer.log.flush()
        reader.refresh()
        feed = reader.feed(limit=10, old=True)
        assert len(feed.read().data) == 10  # type: ignore[union-attr]
        feed = reader.feed(limit=10, after=feed.cursor)
        for offset in offsets[2:7]:
            writer.log.delete(offset)
        rank = Records.rank
        seen: list[int] = []

        def slow(self: Records, offset: int) -> int:
            found = rank(self, offset)
            if self is manager_of(reader).records and not seen:  # just now it is compacted, and refreshed
                seen.append(offset)
                writer.compact()
                reader.log.refresh()
            return found

        monkeypatch.setattr(Records, "rank", slow)
        assert drain(feed) == list(range(10, 50))
        assert seen


def test_an_index_that_does_not_fit_the_log_of_this_moment_is_not_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    path = tmp_path / "a.log"
    with jitdb.open(path, create=True, block_size=128) as writer, jitdb.open(path, read_only=True) as reader:
        offsets = writer.log.append_many(numbers(0, 200))
        writer.log.flush()
        reader.refresh()
        assert reader.count(field("n") >= 0) == 200
        writer.log.append_many(numbers(200, 200))
        for offset in offsets[2:7]:
            writer.log.delete(offset)
        writer.log.flush()
        reader.refresh()
        feed = BuildTarget.feed
        seen: list[BuildTarget] = []

        def slow(self: BuildTarget, *args: Any) -> None:
            if not seen:  # another thread refreshes just now, and what is read next is of the compacted log
                seen.append(self)
                writer.log.compact()
                reader.log.refresh()
                raise IndexDamaged("has another number of records", path=self.index.name)
            feed(self, *args)

        monkeypatch.setattr(BuildTarget, "feed", slow)
        assert reader.count(field("n") >= 0) == 395
        assert seen
        assert not [str(each.message) for each in recwarn]
