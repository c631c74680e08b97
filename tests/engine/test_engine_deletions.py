"""A deleted record is in no answer from the moment that delete() has returned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_helpers import POSTS, QUESTIONS, VOTES, check, expected, make_log, messages, oracle_of

import jitdb
from jitdb import JITDB, Log
from jitdb.engine.reading import paging
from jitdb.errors import LogReadOnly, QueryError
from jitdb.operators import and_, equal, everything, not_, or_


def test_at_once_in_every_remembered_leaf(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 600)
    with Log(tmp_path / "log", flush_interval=3600) as log:
        db = JITDB(log)
        oracle = oracle_of(log)
        check(db, oracle)
        gone: list[int] = []
        for operation in QUESTIONS:
            for offset in expected(oracle, operation)[:2]:
                if offset not in gone:
                    log.delete(offset)
                    gone.append(offset)
        assert len(gone) > 10
        now = oracle_of(log, gone)
        check(db, now)  # not flushed yet
        log.flush()
        check(db, oracle_of(log))
        assert oracle_of(log).deleted == now.deleted


def test_at_once_in_another_database_on_the_same_log(tmp_path: Path) -> None:
    offsets = make_log(tmp_path / "log", 100)
    with Log(tmp_path / "log", flush_interval=3600) as log:
        first, second = JITDB(log), JITDB(log)
        assert first.count(POSTS) == second.count(POSTS) == 40
        log.delete(offsets[0])
        assert first.count(POSTS) == second.count(POSTS) == 39
        assert JITDB(log).count(POSTS) == JITDB(log, "memory").count(POSTS) == 39
        log.flush()
        assert first.count(POSTS) == second.count(POSTS) == 39
        assert JITDB(log, "memory").count(POSTS) == 39


def test_records_deleted_before_they_are_indexed(tmp_path: Path) -> None:
    offsets = make_log(tmp_path / "log", 100)
    with Log(tmp_path / "log", flush_interval=3600) as log:
        db = JITDB(log)
        log.delete(offsets[4])
        check(db, oracle_of(log, [offsets[4]]))
        later = list(map(int, log.append_many(messages(50, first=100))))
        log.flush()
        log.delete(later[0])
        check(db, oracle_of(log, [later[0]]))
        unwritten = log.append_many(messages(5, first=150))
        log.delete(unwritten[2])
        check(db, oracle_of(log, [unwritten[2]]))
        log.flush()
        check(db, oracle_of(log))
        assert db.count(everything()) == 152


def test_all_deleted_and_the_log_goes_on(tmp_path: Path) -> None:
    offsets = make_log(tmp_path / "log", 50)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        db.prepare(*QUESTIONS)
        for offset in offsets:
            log.delete(offset)
        check(db, oracle_of(log, offsets))
        assert db.count(not_(POSTS)) == db.count(or_(POSTS, VOTES)) == db.count(and_(POSTS, VOTES)) == 0
        log.append_many(messages(20, first=50))
        log.flush()
        check(db, oracle_of(log))
        assert db.count() == 20


def test_deletions_are_known_to_the_next_process(tmp_path: Path) -> None:
    offsets = make_log(tmp_path / "log", 300)
    with Log(tmp_path / "log") as log:
        JITDB(log).prepare(*QUESTIONS)
        for offset in offsets[10:200:7]:
            log.delete(offset)
    for read_only in (True, False):
        with Log(tmp_path / "log", read_only=read_only) as log:
            db = JITDB(log)
            assert db.explain(POSTS)["scan_bytes"] == 0
            check(db, oracle_of(log))


def test_lookup_knows_deletions(tmp_path: Path) -> None:
    offsets = make_log(tmp_path / "log", 30)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        assert db.lookup(POSTS, 5)
        assert not db.lookup(not_(POSTS), 5)
        log.delete(offsets[5])
        assert not db.lookup(POSTS, 5)
        assert not db.lookup(not_(POSTS), 5)
        assert not db.lookup(POSTS, 30)


def test_what_questions_find_goes(tmp_path: Path) -> None:
    """Each question's records, one question after the other: what is left is what the oracle leaves."""
    make_log(tmp_path / "log", 600)
    with Log(tmp_path / "log") as log:
        db, gone = JITDB(log), 0
        for operation in QUESTIONS:
            before = oracle_of(log)
            wanted = set(expected(before, operation))
            if len(wanted) > 200:
                continue
            everyone = set(expected(before, everything()))
            assert db.delete(operation) == len(wanted)
            assert set(expected(oracle_of(log), everything())) == everyone - wanted
            assert db.delete(operation) == 0
            gone += len(wanted)
        check(db, oracle_of(log))
        assert 100 < gone < 600


def test_all_go_only_where_that_is_said(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 20)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        for nothing in ((), (None,)):
            with pytest.raises(QueryError, match=r"delete|operation"):
                db.delete(*nothing)
        assert db.count() == 20
        assert db.delete(everything()) == 20
        assert db.count() == 0
    with pytest.raises(LogReadOnly), jitdb.open(tmp_path / "log", read_only=True) as reader:
        reader.delete(everything())


def test_who_deletes_while_others_delete_and_compact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets that mean other records by now are never deleted: records of one size stand where others stood."""
    with Log(tmp_path / "log") as log:
        log.append_many({"n": f"{number:03d}", "type": "ab"[number % 2]} for number in range(100))
        log.flush()
        db = JITDB(log)
        asked: list[int] = []

        def found_then(*arguments: Any) -> Any:
            found = offsets_of(*arguments)
            asked.append(len(found))
            if len(asked) == 1:
                log.delete(int(found[0]))
            elif len(asked) == 2:
                log.compact()
            return found

        offsets_of = paging.offsets_of
        monkeypatch.setattr(paging, "offsets_of", found_then)
        assert db.delete(equal("type", "a")) == 49
        assert asked == [50, 49, 49]
        assert [record.value["n"] for record in log.stream()] == [f"{number:03d}" for number in range(1, 100, 2)]
