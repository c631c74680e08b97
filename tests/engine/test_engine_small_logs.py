"""Logs at the edges: empty, of one record, of deleted records only, of records without fields."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_helpers import POSTS, QUESTIONS, check, message, messages, oracle_of

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import LogClosed, NotALog
from jitdb.operators import absent, equal, everything, gt, includes, not_, offsets, predicate, seqs, starts_with


@pytest.mark.parametrize("codec", ["bipf", "msgpack", "raw"])
def test_empty(tmp_path: Path, codec: str) -> None:
    with Log(tmp_path / "log", codec=codec) as log:
        db = JITDB(log)
        for question in (*QUESTIONS, seqs([0]), offsets([0])):
            assert db.count(question) == db.count(not_(question)) == 0
            assert db.all(question) == []
            page = db.paginate(question, limit=3)
            assert (page.data, page.total, page.next_seq) == ([], 0, 0)
            assert list(db.pages(question, limit=3)) == []
            assert not db.lookup(question, 0)
        assert db.prepare(*QUESTIONS) >= 0
        assert db.explain(POSTS)["scan_bytes"] == 0
        assert not (log.sidecar / "indexes").exists()


def test_an_empty_log_that_a_reader_follows(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    with Log(tmp_path / "log", read_only=True) as reader:
        db = JITDB(reader)
        assert db.count() == 0
        with Log(tmp_path / "log", codec="bipf") as log:
            log.append_many(messages(10))
            log.flush()
            assert db.count() == 0
            assert db.refresh()
            check(db, oracle_of(log))
            assert not db.refresh()


@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
def test_one_record(tmp_path: Path, codec: str) -> None:
    with Log(tmp_path / "log", codec=codec) as log:
        log.append(message(0))
        log.flush()
        db = JITDB(log)
        check(db, oracle_of(log))
        assert db.all() == [message(0)]
        log.delete(0)
        check(db, oracle_of(log, [0]))


def test_only_deleted_records(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="bipf", block_size=4096) as log:
        for offset in log.append_many(messages(70)):
            log.delete(offset)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        check(db, oracle_of(log))
        assert db.count(not_(POSTS)) == db.count() == 0
        assert db.count(seqs(range(70))) == db.count(not_(seqs([]))) == 0
        assert list(db.pages(everything(), limit=5)) == []


def test_raw_records_have_no_fields(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="raw", block_size=4096) as log:
        places = list(map(int, log.append_many(f"record {number}".encode() for number in range(300))))
        log.flush()
        db = JITDB(log)
        for question in (
            equal("a", 1), equal("a", 1, prefix=32), includes("a", 1), starts_with("a", "r"), gt(0, "timestamp"),
            predicate("a", bool, name="bool"),
        ):  # fmt: skip
            assert db.count(question) == 0
            assert db.count(not_(question)) == 300
        assert db.count(absent("a")) == 300
        assert db.all(seqs([5, 7]), as_offsets=True) == [places[5], places[7]]
        assert db.all(offsets([places[9], places[9] + 1])) == [b"record 9"]
        assert db.paginate(limit=2, descending=True).data == [b"record 299", b"record 298"]
        log.delete(places[299])
        assert db.paginate(not_(seqs([298])), limit=1, descending=True).data == [b"record 297"]
        assert db.count() == 299


def test_records_that_are_no_maps(tmp_path: Path) -> None:
    values = [1, "text", None, True, [1, 2], [], {}, {"": 1}, 1.5, b"bytes"]
    with Log(tmp_path / "log", codec="msgpack") as log:
        log.append_many(values)
        log.flush()
        db = JITDB(log)
        check(db, oracle_of(log), [*QUESTIONS, equal(("",), 1), absent(("",)), not_(equal("0", 1))])
        assert db.all() == values


def test_opening_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "messages.log").touch()
    with pytest.raises(NotALog, match=r"did you mean .*messages\.log"):
        jitdb.open(tmp_path / "mesages.log")
    with pytest.raises(NotALog, match="create=True"):
        jitdb.open(tmp_path / "something else entirely")
    with pytest.raises(NotALog, match="no folder"):
        jitdb.open(tmp_path / "nowhere" / "log")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["messages.log"]
    with jitdb.open(tmp_path / "new.log", create=True, codec="bipf") as db:
        assert db.count() == 0
        assert db.log.codec.name == "bipf"
    with pytest.raises(LogClosed):
        db.count()
