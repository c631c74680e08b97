"""A process that forks while its threads are at work: the child answers, or says why not, and waits for nobody."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import POSTS, VOTES, make_log, manager_of
from waiting import until

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import LogClosed
from jitdb.log.reading import log_reader
from jitdb.log.sidecar import deletions
from jitdb.log.writing.writer import FlushTimer
from jitdb.operators import predicate

pytestmark = pytest.mark.slow


def in_child(work: Callable[[], object]) -> None:
    """Run it in a forked child, which must be done within ten seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if not pid:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    deadline = time.monotonic() + 10
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        if time.monotonic() > deadline:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            raise AssertionError("the child waits for ever")
        time.sleep(0.01)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_child_asks_while_another_thread_of_its_parent_builds(tmp_path: Path, read_only: bool) -> None:
    make_log(tmp_path / "log", 500)
    with Log(tmp_path / "log", read_only=read_only) as log:
        db = JITDB(log)
        db.prepare(POSTS)
        started, release = threading.Event(), threading.Event()

        def held(value: Any) -> bool:
            started.set()
            return release.wait(30)

        scan = threading.Thread(target=db.count, args=(predicate("value.sequence", held, name="held"),))
        scan.start()
        assert started.wait(10)

        def ask() -> None:
            assert db.count(POSTS) == 200
            assert db.count(VOTES) == 100
            assert len(db.all(VOTES)) == 100
            assert len([record for page in db.pages(POSTS, limit=30) for record in page]) == 200

        try:
            holder = threading.Thread(target=lambda: _hold(db, release))
            holder.start()
            in_child(ask)
        finally:
            release.set()
            scan.join()
            holder.join()


def _hold(db: JITDB, release: threading.Event) -> None:
    with manager_of(db).lock:
        release.wait(30)


def test_a_child_of_one_that_compacts_is_told_that_the_log_is_not_its_own(tmp_path: Path) -> None:
    offsets = make_log(tmp_path / "log", 500)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        log.delete(offsets[3])
        started, release = threading.Event(), threading.Event()

        def held(done: int, total: int) -> None:
            started.set()
            release.wait(30)

        compaction = threading.Thread(target=log.compact, args=(held,))
        compaction.start()
        assert started.wait(10)

        def write() -> None:
            for call in (log.compact, db.compact, log.flush, lambda: log.append({}), lambda: log.delete(offsets[5])):
                with pytest.raises(LogClosed, match="forked"):
                    call()
            log.refresh()
            assert db.count(VOTES) == 100
            log.close()

        try:
            in_child(write)
        finally:
            release.set()
            compaction.join()


# --- what other threads hold ------------------------------------------------------------------------------------------


@contextmanager
def held(lock: Any) -> Iterator[None]:
    """Another thread has it."""
    taken, release = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            release.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert taken.wait(10)
        yield
    finally:
        release.set()
        thread.join()


def test_a_child_stops_a_timer_that_another_thread_had_in_hand() -> None:
    timer = FlushTimer(3600, lambda: None, "flush")
    timer.wake()
    with held(timer._lock):
        in_child(timer.stop)
    timer.stop()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_child_goes_on_with_a_stream_that_another_thread_waits_on(tmp_path: Path, read_only: bool) -> None:
    """As a reader it sees what comes; of a log that was open for writing it is told that this is its parent's."""
    offsets = make_log(tmp_path / "log", 20)
    with Log(tmp_path / "log", read_only=read_only) as log:
        stream = log.stream(live=True)
        got = [next(stream).offset for _ in range(10)]
        more: list[int] = []

        def read() -> None:
            more.extend(record.offset for record in stream)

        thread = threading.Thread(target=read)
        thread.start()
        until(lambda: len(more) >= 10)  # then it waits, and has the stream's lock

        def go_on() -> None:
            if not read_only:
                with pytest.raises(LogClosed, match="forked"):
                    next(stream)
                return
            with Log(tmp_path / "log") as writer:
                offset = writer.append({"a": 1})
                writer.flush()
            assert next(stream).offset == offset

        try:
            in_child(go_on)
        finally:
            stream.close()
            thread.join()
        assert got + more[:10] == offsets


@pytest.mark.parametrize("at", ["Extent", "RecordReader"])
def test_a_child_of_a_reader_that_was_changing_over(tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread had just found that the log was compacted, and had taken over some of it."""
    offsets = make_log(tmp_path / "log", 500)
    with Log(tmp_path / "log", read_only=True) as log:
        db = JITDB(log)
        assert db.count(VOTES) == 100
        with Log(tmp_path / "log") as writer:
            for offset in offsets[:250]:
                writer.delete(offset)
            writer.compact()
        reached, release = threading.Event(), threading.Event()
        real = getattr(log_reader, at)
        thread = threading.Thread(target=log.refresh)

        def halting(*arguments: Any) -> Any:
            if threading.current_thread() is thread:
                reached.set()
                assert release.wait(30)
            return real(*arguments)

        monkeypatch.setattr(log_reader, at, halting)
        thread.start()
        assert reached.wait(10)

        def ask() -> None:
            assert db.count(VOTES) == 50
            assert len(db.all(VOTES)) == 50
            assert log.get(0)["key"] == "%000250"
            assert log.refresh()
            assert not log.refresh()

        try:
            in_child(ask)
        finally:
            release.set()
            thread.join()
        assert db.count(VOTES) == 50


def test_an_interrupt_while_deletions_are_read_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = make_log(tmp_path / "log", 100)
    with Log(tmp_path / "log", flush_interval=3600) as writer, Log(tmp_path / "log", read_only=True) as log:
        db = JITDB(log)
        assert db.count() == 100
        for offset in offsets[:20]:
            writer.delete(offset)
        writer.flush()

        def interrupted(data: bytes, before: int) -> int:
            raise KeyboardInterrupt

        monkeypatch.setattr(deletions, "crc_of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.refresh()
        monkeypatch.undo()
        log.refresh()
        assert db.count() == len(db.all()) == 80
        with Log(tmp_path / "log", read_only=True) as fresh:
            assert [each.offset for each in log.stream()] == [each.offset for each in fresh.stream()] == offsets[20:]


def test_a_database_whose_log_was_closed_is_nobodys_concern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    make_log(tmp_path / "log", 50)
    log = Log(tmp_path / "log", read_only=True)
    db = JITDB(log)
    assert db.count(POSTS) == 20
    log.close()

    def ask() -> None:
        assert not ignored
        with pytest.raises(LogClosed):
            db.count(POSTS)
        with jitdb.open(tmp_path / "log", read_only=True) as another:
            assert another.count(POSTS) == 20

    in_child(ask)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("folder", [None, "memory"])
def test_a_child_turns_the_pages_of_its_parent(
    tmp_path: Path, read_only: bool, descending: bool, folder: str | None
) -> None:
    make_log(tmp_path / "log", 500)
    with Log(tmp_path / "log", read_only=read_only) as log:
        db = JITDB(log, folder)
        wanted = db.all(POSTS, descending=descending)
        pages = db.pages(POSTS, limit=30, descending=descending)
        first = next(pages).data

        def go_on() -> None:
            assert first + [record for page in pages for record in page] == wanted

        in_child(go_on)
        go_on()


def test_the_pages_of_one_who_forgot_an_index_go_on(tmp_path: Path) -> None:
    """The index that numbers the records is dropped, and built again."""
    make_log(tmp_path / "log", 500)
    with JITDB(Log(tmp_path / "log", read_only=True)) as db:
        wanted = db.all(POSTS, sort_by="arrival")
        pages = db.pages(POSTS, limit=30, sort_by="arrival")
        got = next(pages).data
        db.drop_index("offsets.offsets-9de5b6896cd5.index")
        got += [record for page in pages for record in page]
        assert got == wanted


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("waiting", [False, True], ids=["", "another thread waits"])
def test_a_child_goes_on_with_a_live_question(tmp_path: Path, read_only: bool, waiting: bool) -> None:
    make_log(tmp_path / "log", 20)
    with Log(tmp_path / "log", read_only=read_only) as log:
        found = JITDB(log).live(VOTES, old=True)
        assert [next(found)["key"] for _ in range(4)] == ["%000001", "%000006", "%000011", "%000016"]
        thread = threading.Thread(target=lambda: list(found))
        if waiting:
            thread.start()
            until(lambda: sys._current_frames()[thread.ident].f_code.co_name == "wait")  # type: ignore[index]

        def go_on() -> None:
            if not read_only:
                with pytest.raises(LogClosed, match="forked"):
                    next(found)
                return
            with Log(tmp_path / "log") as writer:
                writer.append_many([{"key": "new", "value": {"content": {"type": "vote"}}}])
                writer.flush()
                assert next(found)["key"] == "new"

        try:
            in_child(go_on)
        finally:
            found.close()
            if waiting:
                thread.join()
