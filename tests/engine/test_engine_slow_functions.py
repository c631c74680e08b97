"""Functions of the user that are slow, that ask the database themselves, and what an end by force leaves of a scan."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import POSTS, QUESTIONS, check, index_files, make_log, messages, oracle_of
from index_cases import spans_of

from jitdb import JITDB, Log
from jitdb.engine.manager import IndexManager
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators import count, equal, from_db, predicate, query, to_awaitable, where
from jitdb.operators.nodes.operation import Operation

pytestmark = pytest.mark.slow

RECORDS = 2000


class Slow:
    """A predicate of which each call takes a while; `begun` is set when some records lie behind it."""

    def __init__(self, pause: float = 0.005) -> None:
        self.begun = threading.Event()
        self.calls = 0
        self.last = 0.0
        self._pause = pause

    def __call__(self, value: Any) -> bool:
        self.calls += 1
        if self.calls == 5:
            self.begun.set()
        time.sleep(self._pause)
        self.last = time.perf_counter()
        return str(value) >= "text 5"


def slow_predicate(slow: Slow) -> Operation:
    return predicate("value.content.text", slow, name="slow")


def slow_seek(slow: Slow) -> Operation:
    def seek(record: bytes, start: int) -> int | None:
        slow(record)
        return None

    return equal(seek, "post", index_type="slow")


@pytest.mark.parametrize("ask", [slow_predicate, slow_seek])
@pytest.mark.parametrize("way", ["event", "interrupt", "task"])
def test_a_scan_ends_within_a_call(tmp_path: Path, ask: Callable[[Slow], Operation], way: str) -> None:
    """All calls together take ten seconds."""
    make_log(tmp_path / "log", RECORDS)
    with Log(tmp_path / "log") as log:
        db, slow, cancel = JITDB(log), Slow(), threading.Event()
        ended: list[float] = []

        def end() -> None:
            assert slow.begun.wait(10)
            ended.append(time.perf_counter())
            if way == "event":
                cancel.set()
            else:
                os.kill(os.getpid(), signal.SIGINT)

        async def cancelled() -> None:
            task = asyncio.ensure_future(query(from_db(db), where(ask(slow)), count(), to_awaitable()))
            await asyncio.to_thread(slow.begun.wait, 10)
            ended.append(time.perf_counter())
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        if way == "task":
            asyncio.run(cancelled())  # which waits for the thread at its end
        else:
            thread = threading.Thread(target=end)
            thread.start()
            with pytest.raises(QueryCancelled if way == "event" else KeyboardInterrupt):
                db.count(ask(slow), cancel=cancel)
            thread.join()
        assert slow.last - ended[0] < 0.1 + 0.2  # and what a machine that is busy adds
        calls = slow.calls
        assert calls < RECORDS / 4
        check(db, oracle_of(log), QUESTIONS[1:3])
        assert slow.calls == calls


def test_a_value_is_asked_for_once(tmp_path: Path) -> None:
    make_log(tmp_path / "log", RECORDS)
    with Log(tmp_path / "log") as log:
        asked: list[Any] = []

        def accepts(value: Any) -> bool:
            asked.append(value)
            return value == "post"

        assert JITDB(log, threads=1).count(predicate("value.content.type", accepts)) == 2 * RECORDS // 5
        assert sorted(asked) == ["about", "contact", "post", "vote"]


@pytest.mark.parametrize("span", [300, 1 << 20])
def test_a_killed_scan_had_saved_what_it_had(tmp_path: Path, span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process that is killed leaves its files: looked at while the scan goes on."""
    monkeypatch.setattr("jitdb.engine.building.scan.SAVED_EVERY", 0.02)
    monkeypatch.setattr("jitdb.engine.building.scan.LONGEST", 0.01)
    monkeypatch.setattr("jitdb.engine.building.scan.SHORT", 0.002)
    make_log(tmp_path / "log", RECORDS)
    with spans_of(span), Log(tmp_path / "log") as log:
        db, seen = JITDB(log), set()
        slow = Slow(0.0002)

        def accepts(value: Any) -> bool:
            if slow.calls % 100 == 99:  # what another process would find now
                again = JITDB(log)
                seen.add(log.durable_end - again.explain(question)["scan_bytes"])
            return slow(value)

        question = predicate("value.content.text", accepts, name="slow")
        expected = sum(str(record["value"]["content"]["text"]) >= "text 5" for record in messages(RECORDS))
        assert db.count(question) == expected
        assert len(seen) > 4
        db.prepare(POSTS, question)
        check(db, oracle_of(log))
        whole = {path.name: path.read_bytes() for path in index_files(log)}
        for path in index_files(log):
            path.unlink()
        monkeypatch.setattr("jitdb.engine.building.scan.SAVED_EVERY", 1e9)
        again = JITDB(log)
        assert again.count(predicate("value.content.text", slow, name="slow")) == expected
        again.prepare(POSTS)
        check(again, oracle_of(log))
        assert whole == {path.name: path.read_bytes() for path in index_files(log)}  # nothing of it stays in the files


def test_an_interrupted_scan_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitdb.engine.building.scan.SAVED_EVERY", 0.02)
    monkeypatch.setattr("jitdb.engine.building.scan.LONGEST", 0.01)
    monkeypatch.setattr("jitdb.engine.building.scan.SHORT", 0.002)
    make_log(tmp_path / "log", RECORDS)
    with Log(tmp_path / "log") as log:
        slow = Slow(0.0002)
        question = slow_predicate(slow)
        expected = sum(str(record["value"]["content"]["text"]) >= "text 5" for record in messages(RECORDS))
        found = None
        for _ in range(100):
            cancel, db = threading.Event(), JITDB(log)
            timer = threading.Timer(0.1, cancel.set)
            timer.start()
            try:
                found = db.count(question, cancel=cancel)
            except QueryCancelled:
                continue
            finally:
                timer.cancel()
            break
        assert found == expected
        assert slow.calls < 2 * RECORDS
        check(db, oracle_of(log))


# --- functions that ask the database ---------------------------------------------------------------------------------


def _other(log: Log, db: JITDB) -> JITDB:
    return JITDB(log)


def _same(log: Log, db: JITDB) -> JITDB:
    return db


@pytest.mark.parametrize("which", [_same, _other])
@pytest.mark.parametrize(
    "act",
    [lambda db: db.count(equal("value.author", "@1")), lambda db: db.reindex(), lambda db: db.compact()],
    ids=["ask", "reindex", "compact"],
)
@pytest.mark.parametrize("is_seek", [False, True])
def test_what_would_wait_for_itself_is_an_error(tmp_path: Path, act: Any, which: Any, is_seek: bool) -> None:
    make_log(tmp_path / "log", 100)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)

        def asks(value: Any, start: int = 0) -> Any:
            act(which(log, db))

        question = equal(asks, 1, index_type="asks") if is_seek else predicate("value.sequence", asks)
        with pytest.raises(QueryError, match="same database"):
            db.count(question)
        check(db, oracle_of(log), QUESTIONS[1:3])


@pytest.mark.parametrize("is_seek", [False, True])
def test_a_function_may_ask_what_is_indexed(tmp_path: Path, is_seek: bool) -> None:
    make_log(tmp_path / "log", 100)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        db.prepare(POSTS)

        def asks(value: Any, start: int = 0) -> Any:
            return None if is_seek else db.count(POSTS) == 40

        question = equal(asks, 1, index_type="asks") if is_seek else predicate("value.sequence", asks)
        assert db.count(question) == (0 if is_seek else 100)


def test_a_seek_function_asks_while_candidates_are_read(tmp_path: Path) -> None:
    """It is called without a lock: another thread may be scanning."""
    make_log(tmp_path / "log", 100)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        ready = threading.Event()

        def seek(record: bytes, start: int) -> int | None:
            if ready.is_set():
                fresh = predicate("value.sequence", lambda value: value < 3, name=f"below {start}")
                assert db.count(fresh) == 33
                other = threading.Thread(target=db.count, args=(equal("value.author", "@1"),))
                other.start()
                other.join(10)
                assert not other.is_alive()
            at = record.find(b"%0000")
            return None if at < 0 else at - 1

        question = equal(seek, "%000007", index_type="key", prefix=32, prefix_offset=3)
        db.prepare(question)
        ready.set()
        assert db.count(question) == 1


def test_a_question_does_not_chase_the_end_of_the_log(tmp_path: Path) -> None:
    """More is appended and flushed whenever it scans: it answers all the same, of what there was when it was asked."""
    make_log(tmp_path / "log", 100)
    with Log(tmp_path / "log", flush_interval=3600) as log:
        db = JITDB(log)
        scans = 0
        read = log.read_blocks

        def reading(*args: Any) -> int:
            nonlocal scans
            scans += 1
            if scans > 50:
                raise AssertionError("it scans for ever")
            found = read(*args)
            log.append_many(messages(5, first=100 + 5 * scans))
            log.flush()
            return found

        log.read_blocks = reading  # type: ignore[method-assign]
        for question in QUESTIONS:
            before = len(db.all(question, as_offsets=True)) if scans else 0
            assert db.count(question) >= before
            assert scans < 50
        del log.read_blocks
        check(db, oracle_of(log))


def test_questions_of_many_threads_about_a_log_that_grows(tmp_path: Path) -> None:
    """Their indexes end at different places then, and count the same records all the same."""
    make_log(tmp_path / "log", 500)
    with Log(tmp_path / "log", flush_interval=3600) as log:
        db = JITDB(log)
        stop, errors = threading.Event(), []

        def ask(question: Operation) -> None:
            try:
                last = 0
                while not stop.is_set():
                    found = db.count(question)
                    assert found >= last
                    last = found
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=ask, args=(question,)) for question in (POSTS, *QUESTIONS[3:5])]
        for thread in threads:
            thread.start()
        for number in range(60):
            log.append_many(messages(20, first=500 + 20 * number))
            log.flush()
        stop.set()
        for thread in threads:
            thread.join()
        assert errors == []
        check(db, oracle_of(log))


@pytest.mark.filterwarnings("error")
def test_indexes_that_end_at_different_places_are_not_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the moment when a question is asked and its answer, another one has seen more of the log."""
    make_log(tmp_path / "log", 500)
    with Log(tmp_path / "log", flush_interval=3600) as log:
        db = JITDB(log)
        assert db.count(POSTS) == 200
        real = IndexManager.plan

        def plan(*args: Any, **options: Any) -> Any:
            monkeypatch.undo()
            log.append_many(messages(100, first=500))
            log.flush()
            assert db.count(equal("value.author", "@1")) == 55
            return real(*args, **options)

        monkeypatch.setattr(IndexManager, "plan", plan)
        assert db.count(POSTS) == 200  # as of the end when it was asked
        assert db.count(POSTS) == 240
        check(db, oracle_of(log))
