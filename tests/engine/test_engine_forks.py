"""A process that forks while its threads are at work: the child answers, or says why not, and waits for nobody."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import POSTS, VOTES, make_log

from jitdb import JITDB, Log
from jitdb.errors import LogClosed
from jitdb.operators import predicate


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
    with db._upkeep.state:
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
