"""Around the questions: prepare, explain, lookup, status, progress, refresh, close; mistakes read aloud."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engine_helpers import POSTS, QUESTIONS, VOTES, check, expected, make_log, manager_of, messages, oracle_of

import jitdb
from jitdb import JITDB, Log
from jitdb.engine import progress
from jitdb.engine.progress import Bar, Status
from jitdb.errors import LogClosed, QueryError
from jitdb.operators import and_, equal, everything, gt, not_, or_, predicate


@pytest.fixture
def log(tmp_path: Path) -> Any:
    make_log(tmp_path / "log", 300)
    with Log(tmp_path / "log") as log:
        yield log


def test_explain_names_what_a_question_needs(log: Log) -> None:
    db = JITDB(log)
    found = db.explain(and_(POSTS, not_(equal("value.author", "@1", prefix=32))))
    assert found["where"] == "and_(equal('value.content.type', 'post'), not_(equal('value.author', '@1', prefix=32)))"
    forms = {row["form"]: row for row in found["indexes"]}
    assert set(forms) == {"offsets", "deleted", "auto", "prefix"}
    assert forms["auto"]["index"].startswith("value_content_type")
    assert all(row["stale_bytes"] == log.durable_end and row["records"] == 0 for row in found["indexes"])
    assert found["scan_bytes"] == log.durable_end
    db.count(POSTS)
    rows = {row["form"]: row for row in db.explain(or_(POSTS, gt(3, "timestamp")))["indexes"]}
    assert rows["auto"]["records"] == 300
    assert rows["auto"]["bytes"] > 0
    assert rows["time"]["stale_bytes"] == log.durable_end  # a count needs no order
    db.paginate(equal("key", "k"), limit=1)
    rows = {row["form"]: row for row in db.explain(gt(3, "timestamp"))["indexes"]}
    assert rows["time"]["stale_bytes"] == 0  # the scan of the first page took it along
    assert db.explain()["where"] == "everything()"
    assert db.status == Status("idle", log.durable_end, log.durable_end, db.status.indexes)


def test_the_time_is_indexed_with_the_first_page_and_not_by_a_count(log: Log) -> None:
    db = JITDB(log)

    def built() -> set[str]:
        return {spec.form for spec in manager_of(db).index_names().values() if spec is not None}

    for number in range(300, 700, 200):
        assert db.count(POSTS) == len(oracle_of(log).matches(POSTS))
        assert built() == {"offsets", "deleted", "auto"}
        log.append_many(messages(200, first=number))
        log.flush()
    assert db.all(POSTS, as_offsets=True) == expected(oracle_of(log), POSTS)
    assert built() == {"offsets", "deleted", "auto", "time"}
    log.append_many(messages(200, first=700))
    log.flush()
    assert db.count(POSTS) == len(oracle_of(log).matches(POSTS))  # the times know fewer records by now
    assert db.all(POSTS, descending=True, as_offsets=True) == expected(oracle_of(log), POSTS, descending=True)


def test_status_while_a_scan_runs(log: Log) -> None:
    db = JITDB(log)
    seen: list[Status] = []

    def look(value: Any) -> bool:
        seen.append(db.status)
        return True

    assert db.status == Status("idle", 0, 0, ())
    assert db.status.percent == 100
    assert db.count(predicate("value.sequence", look)) == 300
    assert {status.state for status in seen} == {"scanning"}
    assert seen[0].total == log.durable_end
    assert seen[0].percent == 0
    assert any("look" in index.name for index in seen[0].indexes)
    assert (db.status.state, db.status.percent) == ("idle", 100)

    def fail(value: Any) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        db.count(predicate("value.sequence", fail))
    assert db.status.state == "idle"


def test_lookup(log: Log) -> None:
    db = JITDB(log)
    oracle = oracle_of(log)
    for question in QUESTIONS:
        for seq in (0, 1, 5, 77, 299):
            assert db.lookup(question, seq) == oracle.holds(question, seq)
        assert not db.lookup(question, 300)
        assert not db.lookup(question, 2**70)


def test_prepare_says_how_long_it_took(log: Log) -> None:
    db = JITDB(log)
    assert db.prepare(POSTS, VOTES) > 0
    assert db.explain(or_(POSTS, VOTES))["scan_bytes"] == 0
    assert db.prepare() >= 0


def test_on_ready_calls_at_once(log: Log) -> None:
    called: list[int] = []
    db = JITDB(log)
    db.on_ready(lambda: called.append(1))
    db.on_ready()
    assert called == [1]


def test_context_and_close(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 10)
    with jitdb.open(tmp_path / "log") as db:
        assert db.count() == 10
        pages = db.pages(everything(), limit=3)
        next(pages)
        assert "log" in repr(db)
    db.close()
    for ask in (
        db.count,
        db.all,
        db.explain,
        db.prepare,
        db.refresh,
        lambda: db.paginate(limit=1),
        lambda: next(pages),
    ):
        with pytest.raises(LogClosed):
            ask()


@pytest.mark.parametrize("bad", [-1, 1.0, "1", None, True])
def test_bad_numbers(log: Log, bad: Any) -> None:
    db = JITDB(log)
    asking: list[Callable[..., Any]] = [db.count, db.all, partial(db.paginate, limit=1), partial(db.pages, limit=1)]
    for ask in asking:
        with pytest.raises(QueryError, match="start_from"):
            ask(start_from=bad)
    paging: list[Callable[..., Any]] = [db.paginate, db.pages]
    for ask in paging:
        if bad is not None:  # all in one page
            with pytest.raises(QueryError, match="limit"):
                ask(limit=bad)
        with pytest.raises(QueryError, match="limit"):
            ask(limit=0)
    with pytest.raises(QueryError, match="seq"):
        db.lookup(POSTS, bad)
    assert db.status.total == 0  # nothing was scanned for them


def test_numbers_of_numpy(log: Log) -> None:
    db = JITDB(log)
    seven: Any = np.int64(7)
    zero: Any = np.uint8(0)
    assert db.count(POSTS, start_from=seven) == db.count(POSTS) - 7
    page = db.paginate(limit=seven, start_from=zero)
    assert len(page) == 7
    assert type(page.next_seq) is int
    assert db.lookup(POSTS, zero)


def test_other_mistakes(log: Log) -> None:
    db = JITDB(log)
    with pytest.raises(QueryError, match=r"sort_by.*not 5"):
        db.all(sort_by=5)  # type: ignore[typeddict-item]
    with pytest.raises(QueryError, match="a field alone is no question"):
        db.count("post")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="a field alone is no question"):
        db.prepare(POSTS, "value.content.type")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="path"):
        JITDB(log, timestamp="")


def test_no_bar_where_nobody_looks(
    log: Log, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    JITDB(log).prepare(*QUESTIONS)
    JITDB(log, "memory", progress=False).prepare(*QUESTIONS)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_no_bar_within_a_second(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    JITDB(log, progress=True).prepare(*QUESTIONS)
    assert capsys.readouterr().err == ""


def test_a_bar_for_those_who_wait(
    log: Log, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the stream for a terminal
    monkeypatch.setenv("TERM", "xterm")
    JITDB(log, progress=True).prepare(*QUESTIONS)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "indexing log" in captured.err


def test_a_bar_ends_with_an_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    bar = Bar("work", 100, True)

    def is_there() -> bool:
        return isinstance(bar._drawn, progress._Terminal) and bool(bar._drawn._progress.live.is_started)

    def work() -> None:
        with bar:
            bar(1)
            now[0] += 0.99
            bar(10)
            assert not is_there()
            now[0] += 0.02
            bar(50)
            assert is_there()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert bar._drawn is not None
    assert not is_there()


@pytest.mark.parametrize("terminal", [True, False])
def test_interactive_is_a_terminal_on_standard_error(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.setattr(sys, "stderr", Stream())
    assert progress.interactive() is terminal
    monkeypatch.setattr(sys, "stderr", None)  # pythonw
    assert not progress.interactive()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert progress.interactive()


def test_refresh_says_whether_there_was_anything(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 100)
    with Log(tmp_path / "log") as log, Log(tmp_path / "log", read_only=True) as reader:
        db = JITDB(reader)
        check(db, oracle_of(log))
        db.refresh()
        assert not db.refresh()
        log.append_many(messages(10, first=100))
        log.delete(0)
        log.flush()
        assert db.count() == 99  # what was deleted is gone at once, what was appended comes with refresh()
        assert db.refresh()
        check(db, oracle_of(log))
        assert not db.refresh()
