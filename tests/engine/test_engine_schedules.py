"""What comes between two steps of one question happens just there: the log is another one, the work was done."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb import JITDB, Log
from jitdb.engine.catalog import carry
from jitdb.engine.catalog.copies import LastRecords
from jitdb.engine.checking.check_indexes import IndexVerification
from jitdb.engine.manager import IndexManager
from jitdb.engine.records import Records
from jitdb.errors import IndexWarning, LogClosed, LogCorrupt, LogError
from jitdb.operators import field

SOME = (field("n") >= 5) & (field("n") < 15)


def database(path: Path) -> JITDB:
    """Records of one size, so that after a compaction a record begins wherever another one did."""
    db = jitdb.open(path, create=True)
    db.log.append_many([{"n": number, "timestamp": number} for number in range(100)])
    db.log.flush()
    assert db.count(SOME) == 10
    db.log.delete(0)
    db.log.flush()
    return db


def once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, *, before: Any = None, after: Any = None) -> None:
    """Do something before or after the first call of a method."""
    method = getattr(owner, name)

    def between(*arguments: Any) -> Any:
        monkeypatch.setattr(owner, name, method)
        if before is not None:
            before()
        found = method(*arguments)
        if after is not None:
            after()
        return found

    monkeypatch.setattr(owner, name, between)


def test_offsets_of_a_log_that_was_compacted_while_they_were_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database(tmp_path / "a.log") as db:
        once(monkeypatch, Records, "offsets_of", after=db.log.compact)
        offsets = db.all(SOME, as_offsets=True)
        assert [db.log.get(offset)["n"] for offset in offsets] == list(range(5, 15))


def test_records_of_a_log_that_was_compacted_before_they_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database(tmp_path / "a.log") as db:
        once(monkeypatch, Records, "read", before=db.log.compact)
        assert [record["n"] for record in db.all(SOME)] == list(range(5, 15))


def test_records_that_are_in_the_compacted_log_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with database(tmp_path / "a.log") as db:
        once(monkeypatch, Records, "read", before=db.log.compact)  # the last one's offset is past the end now
        assert [record["n"] for record in db.all(field("n") >= 90)] == list(range(90, 100))


@pytest.mark.parametrize(
    "error",
    [LogCorrupt("damaged", offset=0, block=0), LogError("it ends before"), OSError(5, "Input/output error")],
    ids=lambda error: type(error).__name__,
)
def test_what_a_read_says_of_a_log_that_was_compacted_meanwhile_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with database(tmp_path / "a.log") as db, warnings.catch_warnings():
        warnings.simplefilter("error")

        def fail() -> None:
            db.log.compact()
            raise error

        once(monkeypatch, Records, "read", before=fail)
        assert [record["n"] for record in db.all(SOME)] == list(range(5, 15))
        assert db.count() == 99


def test_a_log_that_is_closed_just_after_the_question_followed_a_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database(tmp_path / "a.log") as db:
        db.log.compact()
        once(monkeypatch, IndexManager, "follow", after=db.log.close)
        with pytest.raises(LogClosed):
            db.count(SOME)


def test_indexes_are_taken_over_once_where_compactions_follow_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    third = field("n").matches(lambda n: n % 3 == 0, name="third")
    carried = carry.carried
    with database(tmp_path / "a.log") as db:
        db.log.delete(db.log.since)  # so the index does not tell of its last record
        db.log.flush()
        assert db.count(third) == 32
        db.log.compact()

        def carried_late(log: Any, last: Any, offsets: Any, old: Any) -> Any:
            if old.spec.form == "predicate":
                monkeypatch.setattr(carry, "carried", carried)
                db.log.delete(next(db.log.stream()).offset)
                db.log.compact()
            return carried(log, last, offsets, old)

        monkeypatch.setattr(carry, "carried", carried_late)
        assert [record["n"] for record in db.all(third)] == list(range(3, 99, 3))
        assert not recwarn.list  # else they were taken for those of another copy of the log


def test_a_scan_that_reads_a_log_compacted_meanwhile_writes_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """The scan counts the records of the one log, the index is of the other: carried over, it would be one off."""
    third = field("n").matches(lambda n: n % 3 == 0, name="third")
    with database(tmp_path / "a.log") as db:
        db.log.delete(db.log.since)  # so the index would not tell of its last record
        db.log.flush()
        assert db.count() == 98
        once(monkeypatch, Log, "read_blocks", before=db.log.compact)
        assert [record["n"] for record in db.all(third)] == list(range(3, 99, 3))
    assert not recwarn.list


def test_indexes_of_a_log_that_is_compacted_while_they_are_looked_at_are_not_of_another_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    with database(tmp_path / "a.log") as db:
        db.log.append({"n": 1000, "text": "longer than all of the others"})
        db.log.flush()
        numbers = [record["n"] for record in db.all(SOME)]

        def compact() -> None:
            db.log.delete([record.offset for record in db.log.stream()][-2])
            db.log.compact()

        for _ in range(3):
            other = JITDB(db.log)
            once(monkeypatch, LastRecords, "check", before=compact)
            assert [record["n"] for record in other.all(SOME)] == numbers
            once(monkeypatch, LastRecords, "check", before=compact)
            other.reindex()
            assert [record["n"] for record in other.all(SOME)] == numbers
    assert not recwarn.list


def test_indexes_that_are_verified_while_the_log_is_compacted_are_not_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database(tmp_path / "a.log") as db:
        once(monkeypatch, IndexVerification, "_wrong", before=db.log.compact)
        report = db.verify()
        assert report.ok, str(report)


def test_offsets_of_a_page_are_those_of_the_log_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with database(tmp_path / "a.log") as db:
        pages = db.pages(SOME, limit=3, as_offsets=True)
        assert [db.log.get(offset)["n"] for offset in next(pages)] == [5, 6, 7]
        once(monkeypatch, IndexManager, "changed", after=db.log.compact)  # it was looked, and then it came
        rest = [offset for page in pages for offset in page]
        assert [db.log.get(offset)["n"] for offset in rest] == list(range(8, 15))


def test_two_questions_that_find_indexes_at_odds_start_over_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database(tmp_path / "a.log") as db:
        drop_all, horizon = IndexManager.drop_all, IndexManager.horizon

        def at_odds(manager: IndexManager, plan: Any) -> int | None:
            monkeypatch.setattr(IndexManager, "horizon", horizon)
            return None

        def both(self: IndexManager, *arguments: Any) -> None:
            drop_all(self, *arguments)
            drop_all(self, *arguments)  # as the other thread does, that waited for its turn

        monkeypatch.setattr(IndexManager, "horizon", at_odds)
        monkeypatch.setattr(IndexManager, "drop_all", both)
        with pytest.warns(IndexWarning, match="do not speak of the same records") as told:
            assert db.count(SOME) == 10
        assert len(told) == 1


def test_indexes_that_another_process_put_in_order_are_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database(tmp_path / "a.log") as db, jitdb.open(tmp_path / "a.log", read_only=True) as reader:
        assert reader.count(SOME) == 10
        horizon = IndexManager.horizon

        def at_odds(manager: IndexManager, plan: Any) -> int | None:
            monkeypatch.setattr(IndexManager, "horizon", horizon)
            db.log.append({"n": 7, "timestamp": 7})
            db.log.flush()
            assert db.count(SOME) == 11  # and so its indexes are others than the reader has read
            return None

        monkeypatch.setattr(IndexManager, "horizon", at_odds)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert reader.count(SOME) == 10
        reader.refresh()
        assert reader.count(SOME) == 11


def test_a_feed_that_begins_while_the_log_is_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with database(tmp_path / "a.log") as db:
        assert isinstance(db.log, Log)
        for offset in db.all(SOME, as_offsets=True):
            db.log.delete(offset)
        once(monkeypatch, Log, "counter", before=db.log.compact)
        feed = db.feed()
        db.log.append_many([{"n": number} for number in range(100, 105)])
        db.log.flush()
        portion = feed.read()
        assert portion is not None
        assert [record["n"] for record in portion.data] == list(range(100, 105))
