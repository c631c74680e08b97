"""One writer: across processes, within one, after a fork, after a kill."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from jitdb.errors import LogClosed, LogLocked, LogWarning, LogWriteFailed
from jitdb.log import Log
from jitdb.log.io import osfile

pytestmark = pytest.mark.slow

HOLD = """
import sys, time
from jitdb.log import Log
log = Log(sys.argv[1], codec="raw")
log.append(b"theirs"); log.flush()
print("ready", flush=True)
sys.stdin.read()
"""

# Appends numbered records for ever; says after each flush how many are durable.
WORK = """
import sys, random
from jitdb.log import Log
chance = random.Random(int(sys.argv[2]))
log = Log(sys.argv[1], codec="raw", block_size=512, flush_interval=0.001)
number = sum(1 for _ in log.stream_batches() for _ in _.offsets)
while True:
    for _ in range(chance.randrange(1, 40)):
        kind = chance.randrange(4)
        if kind:
            log.append(b"%d|" % number + b"x" * chance.randrange(200)); number += 1
        else:
            count = chance.randrange(1, 6)
            log.append_transaction([b"%d|t%d" % (number + at, count) for at in range(count)]); number += count
    log.flush()
    print(number, flush=True)
"""


def test_second_writer_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdin is not None
    assert other.stdout.readline() == b"ready\n"
    try:
        with pytest.raises(LogLocked, match=f"process {other.pid}") as caught:
            Log(path)
        assert caught.value.pid == other.pid
        with Log(path, read_only=True) as log:
            assert [record.value for record in log.stream()] == [b"theirs"]
    finally:
        other.kill()
        other.wait()
        other.stdin.close()
        other.stdout.close()
    with Log(path, codec="raw") as log:
        assert [record.value for record in log.stream()] == [b"theirs"]


def test_second_writer_in_this_process(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log"):
        with pytest.raises(LogLocked, match="this process") as caught:
            Log(tmp_path / "a.log")
        assert caught.value.pid == os.getpid()
    Log(tmp_path / "a.log").close()


def test_many_readers_come_and_go_beside_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    for number in range(30):
        with Log(path, codec="raw") as log:
            log.append(b"%d" % number)
        with Log(path, read_only=True) as one, Log(path, read_only=True) as other:
            assert one.identity == other.identity
            assert one.since == other.since


@pytest.mark.parametrize("seed", range(3))
def test_killed_while_writing(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "a.log"
    chance = random.Random(seed)
    for turn in range(4):
        worker = subprocess.Popen(
            [sys.executable, "-c", WORK, str(path), str(seed * 10 + turn)], stdout=subprocess.PIPE
        )
        assert worker.stdout is not None
        acknowledged = int(worker.stdout.readline())
        time.sleep(chance.random() * 0.1)
        worker.send_signal(signal.SIGKILL)
        said = worker.stdout.read().split(b"\n")[:-1]
        worker.stdout.close()
        worker.wait()
        acknowledged = int(said[-1]) if said else acknowledged
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LogWarning)
            with Log(path, read_only=True) as log:
                seen = [record.value for record in log.stream()]
            with Log(path) as log:
                values = [record.value for record in log.stream()]
                assert log.get_many_raw([record.offset for record in log.stream()]) == values
        assert values[: len(seen)] == seen
        assert len(values) >= acknowledged
        assert [int(value.partition(b"|")[0]) for value in values] == list(range(len(values)))
        last = values[-1].partition(b"|t")
        if last[1]:  # whole transactions only
            count = int(last[2])
            assert [value.partition(b"|t")[2] for value in values[-count:]] == [last[2]] * count
        assert path.stat().st_size % 512 == 0


def test_a_forked_child_may_read_and_not_write(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", codec="raw", flush_interval=60) as log:
        log.append(b"durable")
        log.flush()
        log.append(b"the parent's")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            code = 1
            try:
                assert [record.value for record in log.stream()] == [b"durable"]
                for call in (lambda: log.append(b"x"), log.flush):
                    with pytest.raises(LogClosed, match="forked"):
                        call()
                with pytest.raises(LogLocked):
                    Log(tmp_path / "a.log")
                log.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        with pytest.raises(LogLocked):
            Log(tmp_path / "a.log")
    with Log(tmp_path / "a.log") as log:
        assert [record.value for record in log.stream()] == [b"durable", b"the parent's"]


def test_a_program_that_ends_without_closing_loses_nothing(tmp_path: Path) -> None:
    script = "import sys\nfrom jitdb.log import Log\nlog = Log(sys.argv[1], codec='raw')\nlog.append(b'kept')\n"
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.log")], check=True)
    with Log(tmp_path / "a.log") as log:
        assert [record.value for record in log.stream()] == [b"kept"]


def test_a_lock_that_was_taken_away_is_noticed_before_anything_is_written(tmp_path: Path) -> None:
    """Another writer may have come in: it would meet another lock."""
    log = Log(tmp_path / "a.log", flush_interval=3600)
    log.append({"n": 1})
    log.flush()
    (log.sidecar / "lock").unlink()
    with Log(tmp_path / "a.log") as other:
        log.append({"n": 2})
        with pytest.raises(LogWriteFailed, match="the lock in it, was moved, removed or replaced"):
            log.flush()
        other.append({"n": 3})
    with pytest.raises(LogWriteFailed):
        log.close()
    with Log(tmp_path / "a.log", read_only=True) as again:
        assert [record.value["n"] for record in again.stream()] == [1, 3]


def test_a_reader_that_looks_at_the_lock_keeps_no_writer_out(tmp_path: Path) -> None:
    Log(tmp_path / "a.log").close()
    looking = osfile.Descriptor(osfile.fs, next(tmp_path.glob("**/lock")), os.O_RDONLY)
    assert osfile.fs.lock(looking.number, shared=True)
    late = threading.Timer(0.2, looking.close)  # the machine is busy, and runs the reader late
    late.start()
    with Log(tmp_path / "a.log") as log:
        log.append({"n": 1})
    late.join()
