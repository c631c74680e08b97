"""What a program hands over becomes records, once each and in order, whatever the disk does; nobody waits for it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from thoroughness import tries

from jitdb.errors import EncodeError, LogClosed, LogLocked, LogWarning, LogWriteFailed
from jitdb.handlers import RecordSink
from jitdb.log import Log
from jitdb.log.io import osfile


class Disk(osfile.FileSystem):
    """Calls `before` before whatever changes something."""

    before: Callable[[], object] = staticmethod(lambda: None)

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        self.before()
        return super().pwrite(fd, data, offset)

    def fsync(self, fd: int) -> None:
        self.before()
        super().fsync(fd)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    fs = Disk()
    monkeypatch.setattr(osfile, "fs", fs)
    return fs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "program.log"


def records(path: Path) -> list[object]:
    with Log(path, read_only=True) as log:
        return [record.value for record in log.stream()]


def numbers(path: Path) -> list[object]:
    return [value["n"] for value in records(path) if isinstance(value, dict)]


def test_all_threads_records_are_durable_after_a_flush(path: Path) -> None:
    with RecordSink(path) as sink:
        threads = [
            threading.Thread(target=lambda first=first: [sink.put({"n": first + n}) for n in range(500)])  # type: ignore[misc]
            for first in range(0, 2000, 500)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sink.flush()
        found = numbers(path)
        assert sorted(found) == list(range(2000))
        for first in range(0, 2000, 500):
            assert [n for n in found if first <= n < first + 500] == list(range(first, first + 500))


def test_records_are_durable_soon_without_a_flush(path: Path) -> None:
    with RecordSink(path, interval=0.01) as sink, Log(path, read_only=True) as log:
        came = threading.Event()
        end = log.watch(came.set)
        sink.put({"n": 1})
        assert came.wait(30)
        log.refresh()
        assert [record.value for record in log.stream()] == [{"n": 1}]
        end()


def test_nobody_waits_for_a_disk_that_hangs(path: Path, disk: Disk) -> None:
    goes_on = threading.Event()
    sink = RecordSink(path, interval=0)
    disk.before = lambda: goes_on.wait(60)
    began = time.monotonic()
    for n in range(1000):
        assert sink.put({"n": n})
    assert time.monotonic() - began < 30
    with pytest.raises(TimeoutError, match="not all is durable"):
        sink.flush(timeout=0.01)
    goes_on.set()
    sink.flush()
    assert numbers(path) == list(range(1000))
    sink.close()


@pytest.mark.parametrize("failing", range(tries(6, 12)))
def test_a_failure_anywhere_loses_and_doubles_nothing(path: Path, disk: Disk, failing: int) -> None:
    calls = 0

    def fail_once() -> None:
        nonlocal calls
        calls += 1
        if calls == failing + 1:
            raise OSError(errno.ENOSPC, "no room")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        with RecordSink(path, block_size=256) as sink:
            disk.before = fail_once
            for first in range(0, 60, 20):
                for n in range(first, first + 20):
                    sink.put({"n": n})
                with suppress(LogWriteFailed):
                    sink.flush()
            for _ in range(3):
                with suppress(LogWriteFailed):
                    sink.flush()
    assert calls > failing
    assert numbers(path) == list(range(60))


def test_a_failure_that_lasts_is_told_once_and_raised_by_flush(path: Path, disk: Disk) -> None:
    is_full = True

    def fail() -> None:
        if is_full:
            raise OSError(errno.ENOSPC, "no room")

    sink = RecordSink(path)
    disk.before = fail
    sink.put({"n": 1})
    with pytest.warns(LogWarning, match="cannot be written now") as told:  # noqa: PT031
        for _ in range(2):
            with pytest.raises(LogWriteFailed, match="no room"):
                sink.flush()
    assert len(told) == 1
    is_full = False
    while True:
        try:
            sink.flush()
            break
        except LogWriteFailed:  # of an attempt that began before there was room
            continue
    assert numbers(path) == [1]
    sink.close()


def test_what_cannot_be_written_before_the_end_is_told(path: Path, disk: Disk) -> None:
    sink = RecordSink(path)

    def fail() -> None:
        raise OSError(errno.ENOSPC, "no room")

    disk.before = fail
    sink.put({"n": 1})
    sink.put({"n": 2})
    why = pytest.warns(LogWarning, match="cannot be written now")
    with why, pytest.warns(LogWarning, match="2 records could not be written before the end"):
        sink.close()


def test_what_finds_too_many_waiting_is_counted(path: Path, disk: Disk) -> None:
    goes_on = threading.Event()
    sink = RecordSink(path, capacity=10)
    disk.before = lambda: goes_on.wait(60)
    with pytest.warns(LogWarning, match="more than 10 records wait"):
        taken = [sink.put({"n": n}) for n in range(25)]
    goes_on.set()
    sink.flush()
    assert sink.put({"n": 25})
    sink.close()
    found = records(path)
    assert [value["n"] for value in found if "n" in value] == [n for n, kept in enumerate(taken) if kept] + [25]
    (note,) = [value for value in found if "dropped" in value]
    assert note["dropped"] == taken.count(False) > 0
    assert note["level"] == "WARNING"


def test_a_log_that_another_process_has_is_refused_at_once(path: Path) -> None:
    with Log(path), pytest.raises(LogLocked):
        RecordSink(path)


def test_values_that_no_record_can_hold(path: Path) -> None:
    with RecordSink(path, block_size=1024) as sink:
        sink.put({"text": "x" * 5000, "n": 1, "list": list(range(1000))})
        sink.put({"object": object, "n": 2})
        sink.put({"lone": "\ud800", "n": 2**70})
    large, told, odd = records(path)
    assert large["n"] == 1
    assert large["truncated"] > 5000
    assert large["text"].startswith("xxx")
    assert told == {"object": "<class 'object'>", "n": 2}
    assert odd == {"lone": "\\ud800", "n": str(2**70)}


def test_what_a_codec_refuses_is_told_in_its_place(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jitdb.log.codecs.bipf.codec import BipfCodec

    encode = BipfCodec.encode

    def picky(codec: BipfCodec, value: object) -> bytes:
        if isinstance(value, dict) and "bad" in value:
            raise EncodeError("nothing bad")
        return encode(codec, value)

    monkeypatch.setattr(BipfCodec, "encode", picky)
    with RecordSink(path, codec="bipf") as sink:
        sink.put({"bad": 1, "timestamp": 5})
        sink.put({"good": 1})
    refused, good = records(path)
    assert refused == {"timestamp": 5, "message": "{'bad': 1, 'timestamp': 5}", "refused": "nothing bad"}
    assert good == {"good": 1}


def test_a_closed_sink_takes_nothing(path: Path) -> None:
    sink = RecordSink(path)
    sink.close()
    sink.close()
    sink.flush()
    with pytest.raises(LogClosed):
        sink.put({"n": 1})


def test_a_value_is_taken_as_it_is_at_the_call(path: Path) -> None:
    with RecordSink(path) as sink:
        value = {"n": [1]}
        sink.put(value)
        value["n"].append(2)
    assert numbers(path) == [[1]]


PROGRAM = """
import os, sys
from jitdb.handlers import RecordSink
sink = RecordSink(sys.argv[1])
for n in range(1000):
    sink.put({"n": n})
"""


def run(program: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, timeout=120, check=False
    )


def test_the_end_of_a_program_waits_for_its_records(path: Path) -> None:
    finished = run(PROGRAM, path)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert numbers(path) == list(range(1000))


def test_a_kill_loses_nothing_that_was_flushed(path: Path) -> None:
    finished = run(PROGRAM + "sink.flush()\nsink.put({'n': -1})\nos.kill(os.getpid(), 9)", path)
    assert finished.returncode == -signal.SIGKILL
    assert numbers(path)[:1000] == list(range(1000))


def test_a_forked_child_writes_a_log_of_its_own(tmp_path: Path) -> None:
    program = PROGRAM + (
        "pid = os.fork()\n"
        "sink.put({'n': 'child' if pid == 0 else 'parent'})\n"
        "sink.close()\n"
        "if pid: assert os.waitpid(pid, 0)[1] == 0\n"
    )
    finished = run(program, tmp_path / "{pid}.log")
    assert (finished.returncode, finished.stderr) == (0, "")
    found = sorted((numbers(path) for path in tmp_path.glob("*.log")), key=len)
    assert found == [["child"], [*range(1000), "parent"]]


def test_a_forked_child_does_not_write_its_parents_log(path: Path) -> None:
    with RecordSink(path) as sink:
        sink.put({"n": 1})
        if (child := os.fork()) == 0:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                sink.put({"n": 2})
                sink.close()
            os._exit(0 if any("open for writing" in str(each.message) for each in told) else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert numbers(path) == [1]
