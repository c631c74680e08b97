"""A writer and readers in processes of their own, with one log and one index folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import POSTS, QUESTIONS, VOTES, check, make_log, messages, oracle_of

from jitdb import JITDB, Log
from jitdb.errors import IndexWarning
from jitdb.operators import everything, not_

OTHER = """
import json, sys, warnings
sys.path[:0] = sys.argv[2:]
warnings.simplefilter("error")
from engine_helpers import POSTS, QUESTIONS, VOTES, check, messages, oracle_of
from jitdb import JITDB, Log
from jitdb.operators import everything, not_

log = Log(sys.argv[1], read_only=READ_ONLY, flush_interval=3600)
db = JITDB(log)
for line in sys.stdin:
    print(json.dumps(eval(line)), flush=True)
"""


class Process:
    """Another process that has the log open as `log` and `db`; call with an expression, get its value."""

    def __init__(self, path: Path, read_only: bool) -> None:
        here = Path(__file__).parent
        program = OTHER.replace("READ_ONLY", str(read_only))
        command = [sys.executable, "-c", program, str(path), str(here), str(here.parent), str(here.parent.parent)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, expression: str) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(expression + "\n")
        stdin.flush()
        line = stdout.readline()
        assert line, "the other process ended; see its error output"
        return json.loads(line)

    def close(self) -> None:
        self._process.communicate(timeout=20)
        assert self._process.returncode == 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make_log(tmp_path / "log", 400)
    return tmp_path / "log"


@pytest.fixture
def reader(path: Path) -> Iterator[Process]:
    process = Process(path, read_only=True)
    yield process
    process.close()


@pytest.fixture
def writer(path: Path) -> Iterator[Process]:
    process = Process(path, read_only=False)
    yield process
    process.close()


pytestmark = pytest.mark.filterwarnings("error")


def test_a_reader_sees_what_a_writer_did_after_refresh(path: Path, reader: Process) -> None:
    with Log(path, flush_interval=3600) as log:
        db = JITDB(log)
        assert reader("db.count(POSTS)") == db.count(POSTS) == 160
        offsets = db.all(POSTS, as_offsets=True)
        log.append_many(messages(100, first=400))
        assert not reader("db.refresh()")  # not flushed
        log.flush()
        assert reader("db.count(POSTS)") == 160
        assert reader("db.refresh()")
        assert reader("db.count(POSTS)") == db.count(POSTS) == 200
        for offset in offsets[:5]:
            log.delete(offset)
        log.flush()
        assert db.count(POSTS) == 195
        assert reader("len(db.all(POSTS))") == 195  # their bytes are gone
        assert reader("db.refresh()")
        assert reader("[db.count(POSTS), db.count(not_(POSTS)), db.count()]") == [195, 300, 495]
        assert not reader("db.refresh()")
        assert reader("check(db, oracle_of(log))") is None
        check(db, oracle_of(log))


def test_a_reader_that_did_not_refresh_sees_the_log_as_it_was(path: Path, writer: Process) -> None:
    """Also when it meets index files that tell of records which it does not know of."""
    with Log(path, read_only=True) as log:
        db = JITDB(log)
        before = oracle_of(log)
        check(db, before, QUESTIONS[:2])
        writer("log.append_many(messages(300, first=400)) and log.flush()")
        writer("db.prepare(*QUESTIONS) > 0")
        check(db, before)
        check(JITDB(log), before)
        assert db.refresh()
        check(db, oracle_of(log))
        assert db.count() == 700


def test_a_reader_notices_deletions_when_it_reads_the_records(path: Path, writer: Process) -> None:
    with Log(path, read_only=True) as log:
        db = JITDB(log)
        offsets = db.all(everything(), as_offsets=True, sort_by="arrival")
        writer(f"[log.delete(offset) for offset in {offsets[10:20]}] and log.flush()")
        found = db.paginate(limit=20, sort_by="arrival")
        assert [record["key"] for record in found.data] == [f"%{n:06d}" for n in (*range(10), *range(20, 30))]
        assert db.refresh()
        check(db, oracle_of(log))


def test_what_one_process_indexed_another_need_not(path: Path, writer: Process) -> None:
    assert writer("db.prepare(*QUESTIONS) > 0")
    with Log(path, read_only=True) as log:
        db = JITDB(log)
        assert all(db.explain(question)["scan_bytes"] == 0 for question in QUESTIONS)
        check(db, oracle_of(log))


def test_both_index_what_is_new_in_turns(path: Path, writer: Process) -> None:
    """Two processes append to the same index files and never take each other's for damaged."""
    with Log(path, read_only=True) as log:
        db = JITDB(log)
        for turn in range(8):
            assert writer(f"len(log.append_many(messages(40, first={400 + 40 * turn}))) and log.flush()") is None
            if turn % 3 != 1:
                assert writer("db.prepare(*QUESTIONS) > 0")
            db.refresh()
            if turn % 3 != 0:
                db.prepare(*QUESTIONS)
            assert writer("[db.count(POSTS), db.count(VOTES)]") == [db.count(POSTS), db.count(VOTES)]
        check(db, oracle_of(log))
        assert writer("check(db, oracle_of(log))") is None
        check(JITDB(log), oracle_of(log))
    assert not list((path.parent / "log.jitdb" / "indexes").glob("*.tmp"))


def test_many_processes_begin_at_once(path: Path) -> None:
    readers = [Process(path, read_only=True) for _ in range(4)]
    for reader in readers:
        assert reader._process.stdin is not None
        reader._process.stdin.write("check(db, oracle_of(log))\n")
        reader._process.stdin.flush()
    for reader in readers:
        assert reader("db.count(not_(POSTS))") is None  # the answer to the first line
        reader.close()
    with Log(path) as log:
        check(JITDB(log), oracle_of(log))


def test_two_databases_in_one_process_share_a_folder(path: Path) -> None:
    with Log(path) as log:
        first, second = JITDB(log), JITDB(log)
        for turn in range(6):
            log.append_many(messages(30, first=400 + 30 * turn))
            log.flush()
            one, other = (first, second) if turn % 2 else (second, first)
            check(one, oracle_of(log), QUESTIONS[::2])
            check(other, oracle_of(log), QUESTIONS[1::2])
            assert one.count(VOTES) == other.count(VOTES)
        check(first, oracle_of(log))
        check(second, oracle_of(log))
        check(JITDB(log), oracle_of(log))


def test_a_log_whose_identity_is_not_stored(path: Path) -> None:
    """Indexes in a folder elsewhere could be taken for those of another log: they stay in memory."""

    class Unstored(Log):
        identity_is_stored = False

    with Unstored(path, read_only=True) as log:
        folder = path.parent / "elsewhere"
        db = JITDB(log, folder)
        with pytest.warns(IndexWarning, match="in memory") as told:
            check(db, oracle_of(log))
        assert len(told) == 1
        assert not folder.exists()
        assert JITDB(log, None).count(not_(VOTES)) == 320
