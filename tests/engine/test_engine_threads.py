"""Several threads ask one database; functions of users fail; somebody presses Ctrl-C."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import DATA, FIXTURE, POSTS, QUESTIONS, TYPE, VOTES, calls_of, check, make_log, messages, oracle_of
from questions import load_cases, operation

from jitdb import JITDB, Log
from jitdb.engine.progress import Bar
from jitdb.errors import LogError
from jitdb.operators import and_, equal, not_, or_, predicate

pytestmark = pytest.mark.slow


def test_eight_threads_ask_a_fresh_database(tmp_path: Path) -> None:
    cases = [(found, answer) for case, answer in load_cases()[::3] if (found := operation(case["where"])) is not None]
    path = tmp_path / "ssb.bipf"
    path.write_bytes((DATA / "ssb-5k-deleted.bipf").read_bytes())
    with Log(path, codec="bipf") as log:
        db = JITDB(log)
        together = threading.Barrier(8)

        def ask(mine: list[Any]) -> list[bool]:
            together.wait(10)
            return [db.count(question) == answer["total"] for question, answer in mine]

        with ThreadPoolExecutor(8) as pool:
            right = [row for rows in pool.map(ask, [cases[number::8] for number in range(8)]) for row in rows]
        assert len(right) == len(cases) > 100
        assert all(right)


def test_threads_ask_while_the_log_grows_and_shrinks(tmp_path: Path) -> None:
    offsets = make_log(tmp_path / "log", 400)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        stop = threading.Event()

        def ask(question: Any) -> int:
            asked = 0
            while not stop.is_set():
                for page in db.pages(question, limit=20, descending=True):
                    keys = [record["key"] for record in page.data]
                    assert len(set(keys)) == len(keys)
                assert db.count(question) >= 0
                asked += 1
            return asked

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask, question) for question in (POSTS, not_(POSTS), QUESTIONS[4], QUESTIONS[-1])]
            try:
                for turn in range(15):
                    log.append_many(messages(20, first=400 + 20 * turn))
                    log.delete(offsets[7 * turn])
                    log.flush()
                    time.sleep(0.01)
            finally:
                stop.set()
            assert all(future.result() > 0 for future in asking)
        check(db, oracle_of(log))


def held(started: threading.Event, release: threading.Event) -> Callable[[Any], bool]:
    def wait(value: Any) -> bool:
        started.set()
        assert release.wait(20)
        return bool(value == "post")

    return wait


def test_fresh_indexes_answer_while_a_long_scan_runs(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 500)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        posts, pages = db.count(POSTS), db.all(POSTS)
        started, release = threading.Event(), threading.Event()
        with ThreadPoolExecutor(1) as pool:
            scan = pool.submit(db.count, predicate(TYPE, held(started, release), name="held"))
            try:
                assert started.wait(10)
                begin = time.perf_counter()
                assert db.count(POSTS) == posts
                assert db.all(POSTS) == pages
                assert db.count(or_(POSTS, not_(POSTS))) == 500
                assert next(db.pages(POSTS, limit=1000)).data == pages
                assert db.lookup(POSTS, 0)
                assert not db.lookup(VOTES, 0)
                assert db.explain(VOTES)["scan_bytes"] == 0
                assert not scan.done()
                assert time.perf_counter() - begin < 2
            finally:
                release.set()
            assert scan.result() == posts


def test_who_needs_the_same_index_waits_for_the_same_scan(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 500)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        started, release = threading.Event(), threading.Event()
        question = predicate(TYPE, held(started, release), name="held")
        with ThreadPoolExecutor(4) as pool:
            scans = [pool.submit(db.count, question) for _ in range(4)]
            assert started.wait(10)
            time.sleep(0.1)
            calls = calls_of(log, "read_blocks")
            release.set()
            assert {scan.result() for scan in scans} == {200}
            assert calls == []


def test_an_error_in_a_predicate_reaches_the_asker(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 500)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)

        def divide(value: Any) -> bool:
            return bool(1 / (value - 3))

        broken = predicate("value.sequence", divide)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                db.count(and_(POSTS, broken))
        check(db, oracle_of(log))
        with pytest.raises(ZeroDivisionError):
            db.count(broken)
        check(JITDB(log), oracle_of(log))


def test_an_error_in_a_seek_function_reaches_the_asker(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 100)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)

        def lost(record: bytes, start: int) -> int:
            raise LookupError("lost")

        with pytest.raises(LookupError, match="lost"):
            db.count(equal(lost, 1, index_type="lost"))
        check(db, oracle_of(log))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_keeps_what_was_indexed(tmp_path: Path, threads: int) -> None:
    """Ctrl-C comes to the thread that asks, wherever it is: here, in telling how far the scan is."""
    path = tmp_path / "big.bipf"
    path.write_bytes(FIXTURE.read_bytes() * 5)  # some chunks
    with Log(path, codec="bipf", block_size=65536) as log:
        db = JITDB(log, threads=threads)

        class Impatient(Bar):
            def __call__(self, done: int) -> None:
                if done > 5 << 20:
                    raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("jitdb.engine.maintenance.updater.Bar", Impatient)
            with pytest.raises(KeyboardInterrupt):
                db.count(POSTS)
        assert db.status.state == "idle"
        left = db.explain(POSTS)["scan_bytes"]
        assert 0 < left < log.durable_end - (4 << 20)
        assert JITDB(log).explain(POSTS)["scan_bytes"] == left
        check(db, oracle_of(log), QUESTIONS[1:3])


def test_closing_while_somebody_asks(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 500)
    log = Log(tmp_path / "log")
    db = JITDB(log)
    started, release = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        scan = pool.submit(db.count, predicate(TYPE, held(started, release), name="held"))
        assert started.wait(10)
        db.close()
        release.set()
        with pytest.raises(Exception, match="closed"):
            scan.result(10)
    with Log(tmp_path / "log") as log:
        check(JITDB(log), oracle_of(log))


@pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")
def test_threads_ask_while_the_log_is_replaced(tmp_path: Path) -> None:
    """Each answer is that of one log or of the other, never of something in between."""
    right: dict[int, list[list[str]]] = {}
    questions = (POSTS, QUESTIONS[3], QUESTIONS[5])
    for name, first, count in (("a", 0, 1500), ("b", 5000, 1000)):
        with Log(tmp_path / name, codec="bipf", block_size=4096) as log:
            log.append_many(messages(count, first))
            log.flush()
            db = JITDB(log, "memory")
            for number, question in enumerate(questions):
                right.setdefault(number, []).append([record["key"] for record in db.all(question)])
    shutil.copy(tmp_path / "a", tmp_path / "log")
    stop = threading.Event()

    with Log(tmp_path / "log", read_only=True, codec="bipf", block_size=4096) as log:
        db = JITDB(log)
        refused: list[str] = []

        def ask(number: int) -> int:
            asked = 0
            while not stop.is_set():
                assert [record["key"] for record in db.all(questions[number])] in right[number]
                assert db.count(questions[number]) in map(len, right[number])
                try:
                    pages = list(db.pages(questions[number], limit=300))
                except LogError as error:
                    refused.append(str(error))
                else:
                    assert [record["key"] for page in pages for record in page.data] in right[number]
                asked += 1
            return asked

        with ThreadPoolExecutor(3) as pool:
            asking = [pool.submit(ask, number) for number in range(3)]
            try:
                for turn in range(20):
                    before = log.identity
                    shutil.copy(tmp_path / "ba"[turn % 2], tmp_path / "next")
                    os.replace(tmp_path / "next", tmp_path / "log")
                    db.refresh()  # if a question has not done it yet
                    assert log.identity != before
                    time.sleep(0.05)
            finally:
                stop.set()
            assert all(future.result() > 0 for future in asking)
        assert all("ask again" in refusal for refusal in refused)
        assert db.count() == 1500
