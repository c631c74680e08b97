"""A writer and readers in processes of their own, with one log and one index folder."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import POSTS, QUESTIONS, VOTES, check, make_log, messages, oracle_of
from waiting import until

from jitdb import JITDB, Log
from jitdb.errors import IndexWarning, QueryCancelled
from jitdb.indexes.files.file import LogName
from jitdb.indexes.files.folder import index_files, take_locks
from jitdb.indexes.files.index import Index
from jitdb.indexes.spec import IndexSpec
from jitdb.log.io import osfile
from jitdb.operators import everything, not_, predicate

OTHER = """
import json, os, sys, threading, time, warnings
sys.path[:0] = sys.argv[2:]
warnings.simplefilter("error")
from engine_helpers import POSTS, QUESTIONS, TYPE, VOTES, check, messages, oracle_of
from index_cases import spans_of
from jitdb import JITDB, Log
from jitdb.engine.building import scan
from jitdb.operators import equal, everything, not_, predicate

scans = []  # from, to: bytes of the log

class Counted(scan.Scan):
    def run(self, progress):
        scans.append([self.start, self.stop])
        super().run(progress)

scan.Scan = Counted

def slowly(value):
    time.sleep(0.02)
    return value % 2 == 0

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
        self.begin(expression)
        return self.end()

    def begin(self, expression: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(expression + "\n")
        self._process.stdin.flush()

    def end(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the other process ended; see its error output"
        return json.loads(line)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=20)

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


pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("error")]


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
    assert [reader("1") for reader in readers] == [1] * 4  # all are ready
    for reader in readers:
        reader.begin("check(db, oracle_of(log))")
    assert [reader.end() for reader in readers] == [None] * 4
    for reader in readers:
        reader.close()
    with Log(path) as log:
        check(JITDB(log), oracle_of(log))


# --- one builds, the others wait -------------------------------------------------------------------------------------


def test_the_log_is_scanned_once_for_all_processes(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 8000, block_size=65536)
    readers = [Process(tmp_path / "log", read_only=True) for _ in range(3)]
    assert [reader("1") for reader in readers] == [1] * 3
    for reader in readers:
        reader.begin("db.prepare(*QUESTIONS) > 0")
    assert [reader.end() for reader in readers] == [True] * 3
    scans = [tuple(scan) for reader in readers for scan in reader("scans")]
    with Log(tmp_path / "log") as log:
        assert scans == [(0, log.durable_end)]
        oracle = oracle_of(log)
    for reader in readers:
        assert reader("[db.count(question) for question in QUESTIONS]") == [
            len(oracle.ordered(question)) for question in QUESTIONS
        ]
        assert reader("scans") in ([], [list(scan) for scan in scans])
        reader.close()


def test_each_part_of_a_growing_log_is_scanned_once(tmp_path: Path) -> None:
    """Three processes ask and ask while the log grows under them; each byte is scanned by one of them."""
    make_log(tmp_path / "log", 1000)
    with Log(tmp_path / "log", flush_interval=3600) as log:
        readers = [Process(tmp_path / "log", read_only=True) for _ in range(3)]
        assert [reader("1") for reader in readers] == [1] * 3
        for reader in readers:
            reader.begin("[db.refresh() + db.count(POSTS) for _ in range(40)] and None")
        for turn in range(20):
            log.append_many(messages(100, first=1000 + 100 * turn))
            log.flush()
            time.sleep(0.01)
        assert [reader.end() for reader in readers] == [None] * 3
        for reader in readers:
            assert reader("(db.refresh(), db.count(POSTS))[1]") == 1200
        scans = sorted(tuple(scan) for reader in readers for scan in reader("scans"))
        assert scans[0][0] == 0
        assert scans[-1][1] == log.durable_end
        assert all(before[1] == after[0] for before, after in pairwise(scans))
        for reader in readers:
            assert reader("check(db, oracle_of(log))") is None
            reader.close()
        check(JITDB(log), oracle_of(log))


SLOW = "[db.count(predicate('value.sequence', slowly)), scans, waited]"
SMALL_SPANS = (
    "[globals().update(waited=[], spans=spans_of(64)), spans.__enter__(), setattr(scan, 'CHUNK_BYTES', 4096)] and None"
)
WATCH = (
    "threading.Thread(target=lambda: [waited.append(db.status.state) or time.sleep(0.002) for _ in range(2000)], "
    "daemon=True).start()"
)


def test_who_waits_goes_on_where_a_killed_builder_was(path: Path) -> None:
    first, second = Process(path, read_only=True), Process(path, read_only=True)
    for process in (first, second):
        process(SMALL_SPANS)
        process(WATCH)
    spec = IndexSpec("predicate", (("value", "sequence"),), name="slowly")
    file = path.parent / "log.jitdb" / "indexes" / spec.file_name()
    first.begin(SLOW)
    until(file.exists)
    second.begin(SLOW)
    log_name = name_of(path)
    # Which of the files it writes first is open: it was where the last of them is.
    until(lambda: min(index.end_seq for index in stored(log_name, file.parent)) >= 128)
    least = min(index.end_offset for index in stored(log_name, file.parent))
    first.kill()
    count, scans, states = second.end()
    assert count == sum(1 for number in range(400) if number // 11 % 2 == 0)
    with Log(path) as log:
        ((start, end),) = scans
        assert 0 < least <= start < end == log.durable_end
        check(JITDB(log), oracle_of(log))
    assert "waiting" in states
    second.close()


def test_who_waits_can_be_cancelled(path: Path, reader: Process) -> None:
    with Log(path) as log:
        db = JITDB(log)
        db.prepare()
        reader("globals().update(waited=[]) and None")
        file = (
            path.parent
            / "log.jitdb"
            / "indexes"
            / IndexSpec("predicate", (("value", "sequence"),), name="slowly").file_name()
        )
        reader.begin(SLOW)
        until(lambda: not lock_is_free(file))
        cancel = threading.Event()
        threading.Timer(0.05, cancel.set).start()

        def slowly(value: Any) -> bool:
            raise AssertionError("the other process is at it")

        with pytest.raises(QueryCancelled, match="another process"):
            db.count(predicate("value.sequence", slowly), cancel=cancel)
        assert db.status.state == "idle"
        assert reader.end()[0] == db.count(predicate("value.sequence", slowly))


def lock_is_free(file: Path) -> bool:
    held = take_locks(osfile.fs, file.parent, [file.name])
    if held is None:
        return False
    held.release()
    return True


def stored(log: LogName, folder: Path) -> list[Index]:
    """The indexes in this folder, as far as their files go now."""
    heads = [head for _, head in index_files(osfile.fs, folder) if head is not None]
    indexes = [Index(head.spec, log, folder / head.spec.file_name()) for head in heads]
    for index in indexes:
        index.load()
    return indexes


def name_of(path: Path) -> LogName:
    with Log(path, read_only=True) as log:
        return LogName(log.identity, log.generation)


def test_databases_in_threads_of_one_process_exclude_each_other(path: Path) -> None:
    asked: list[Any] = []

    def note(value: Any) -> bool:
        asked.append(value)
        time.sleep(0.01)
        return True

    with Log(path) as log:
        databases = [JITDB(log, threads=1) for _ in range(3)]
        found: list[int] = []
        threads = [
            threading.Thread(target=lambda db=db: found.append(db.count(predicate("value.sequence", note))))
            for db in databases
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [400] * 3
        assert len(asked) == len(set(asked)) == 37


def test_an_index_that_seems_damaged_while_it_is_written_is_looked_at_again(path: Path) -> None:
    """A torn or wrong end of a file is told of only when nobody can be writing to it."""
    with Log(path) as log:
        JITDB(log).prepare(*QUESTIONS)
        folder = log.sidecar / "indexes"
        sound = {file: file.read_bytes() for file in folder.glob("*.index")}
        log.append_many(messages(50, first=400))
        log.flush()
        JITDB(log).prepare(*QUESTIONS)
        whole = {file: file.read_bytes() for file in sound}
        for file, data in sound.items():
            more = whole[file][len(data) :]
            file.write_bytes(data + more[:70] + bytes(len(more) - 70))  # some of it is there
        held = take_locks(osfile.fs, folder, [file.name for file in sound])
        assert held is not None
        db = JITDB(log)
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(db.count(POSTS)))
        thread.start()
        until(lambda: db.status.state == "waiting")
        for file, data in whole.items():
            file.write_bytes(data)
        held.release()
        thread.join()
        assert found == [180]
        assert db.status.state == "idle"
        assert all(file.read_bytes() == data for file, data in whole.items())
        check(db, oracle_of(log))


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
        assert JITDB(log, "memory").count(not_(VOTES)) == 320
