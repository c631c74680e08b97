"""`jitdb tail`, as a process beside processes that write: what comes, when, and what a later run goes on with."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from cli_helpers import EVENTS, environment, make_log
from waiting import until

import jitdb
from jitdb.cli.places import read_place, written
from jitdb.cli.signals import Ending, none_lost
from jitdb.engine.cursor import parse_cursor
from jitdb.log import Log

PATIENCE = 60.0  # seconds; the machine may be busy


class Tail:
    """A `jitdb tail` that runs. `lines` are those that came so far, whole ones."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jitdb", "tail", *arguments],
            cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines += []
        for line in self.process.stdout:
            if line.endswith("\n"):
                self.lines.append(line)

    @property
    def numbers(self) -> list[int]:
        return [json.loads(line)["n"] for line in self.lines]

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for it."""
        until(lambda: condition() or self.process.poll() is not None, PATIENCE)
        assert condition(), self.process.stderr and self.process.stderr.read()

    def end(self, number: int | None = None) -> tuple[int, str]:
        """Send the signal, if any, and wait for its end: exit code and what it said."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return code, said


@pytest.fixture
def tail(tmp_path: Path) -> Iterator[Callable[..., Tail]]:
    started: list[Tail] = []

    def start(*arguments: str) -> Tail:
        started.append(Tail(tmp_path, *arguments))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


def records(numbers: range) -> list[dict[str, Any]]:
    return [{"n": number, "kind": "even" if number % 2 == 0 else "odd"} for number in numbers]


@pytest.fixture
def hundred(tmp_path: Path) -> Path:
    return make_log(tmp_path / "x.log", records(range(100)))


def add(path: Path, numbers: range) -> None:
    with Log(path) as log:
        log.append_many(records(numbers))


def is_at_the_end(place: Path, path: Path) -> Callable[[], bool]:
    """Whether the kept place is behind all records: what comes from then on is new."""

    def look() -> bool:
        with Log(path, read_only=True) as log:
            found = read_place(place.read_text()) if place.exists() else None
            return found is not None and parse_cursor(found).offset >= log.since

    return look


# --- what comes ------------------------------------------------------------------------------------------------------


def test_old_records_in_the_order_of_the_log(process, run, events: Path) -> None:
    done = process("tail", "events.log", "--old", "--limit", "5")
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == EVENTS
    done = process("tail", "events.log", 'level == "error"', "--old", "-n", "2", "--fields", "status,user.name,nothing")
    assert done.stdout == '{"status":502,"user.name":"grace"}\n{"status":500,"user.name":"ada"}\n'
    offsets = run("query", "events.log", "--arrival", "--offsets").stdout
    assert process("tail", "events.log", "--old", "-n", "5", "--offsets").stdout == offsets


def test_what_another_process_writes_comes_at_once(tail, hundred: Path, tmp_path: Path) -> None:
    code = (
        "import sys, time; from jitdb import Log; log = Log('x.log')\n"
        "for line in sys.stdin:\n"
        "    log.append({'n': int(line), 'kind': 'even' if int(line) % 2 == 0 else 'odd'})\n"
        "    log.flush(); print(time.time(), flush=True)\n"
    )
    running = tail("x.log", 'kind == "even"', "--cursor", "place")
    running.until(is_at_the_end(tmp_path / "place", hundred))
    waits = []
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as writer:  # fmt: skip
        assert writer.stdin is not None
        assert writer.stdout is not None
        for number in range(100, 120):
            print(number, file=writer.stdin, flush=True)
            durable = float(writer.stdout.readline())
            if number % 2 == 0:
                running.until(lambda: len(running.lines) == (number - 98) // 2)  # noqa: B023
                waits.append(time.time() - durable)
        writer.stdin.close()
    assert running.numbers == list(range(100, 120, 2))
    assert sorted(waits)[len(waits) // 2] < 0.5
    assert running.end(signal.SIGINT) == (130, "")


def test_from_now_on_or_after_a_place(tail, process, hundred: Path) -> None:
    with jitdb.open(hundred, read_only=True) as db:
        feed = db.feed(limit=60, old=True)
        portion = feed.read()
        assert portion is not None
        place = portion.cursor(60)
    running = tail("x.log", "--after", place)
    running.until(lambda: len(running.lines) == 40)
    add(hundred, range(100, 110))
    running.until(lambda: len(running.lines) == 50)
    assert running.numbers == list(range(60, 110))
    assert running.end(signal.SIGTERM) == (143, "")
    done = process("tail", "x.log", 'kind == "odd"', "--after", written(place), "-n", "2")
    assert [json.loads(line)["n"] for line in done.stdout.splitlines()] == [61, 63]


def test_records_that_are_deleted_first_do_not_come(tail, hundred: Path, tmp_path: Path) -> None:
    running = tail("x.log", "--cursor", "place")
    running.until(is_at_the_end(tmp_path / "place", hundred))
    running.process.send_signal(signal.SIGSTOP)
    with Log(hundred) as log:
        offsets = log.append_many(records(range(100, 105)))
        log.flush()
        log.delete(offsets[1])
    running.process.send_signal(signal.SIGCONT)
    running.until(lambda: len(running.lines) == 4)
    assert running.numbers == [100, 102, 103, 104]


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal."""
    caught = re.search(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc here")
@pytest.mark.parametrize("keep", [[], ["--cursor", "place"]])
def test_an_empty_file_becomes_a_log(tail, run, tmp_path: Path, keep: list[str]) -> None:
    (tmp_path / "x.log").touch()
    running = tail("x.log", *keep)
    running.until(lambda: catches(running.process.pid, signal.SIGTERM))
    time.sleep(0.3)
    (tmp_path / "x.ndjson").write_text('{"n":1}\n{"n":2}\n')
    assert run("import", "--append", "x.ndjson", "x.log").returncode == 0
    running.until(lambda: len(running.lines) == 2)
    assert run("import", "--append", "x.ndjson", "x.log").returncode == 0
    running.until(lambda: len(running.lines) == 4)
    assert running.numbers == [1, 2, 1, 2]
    assert running.end(signal.SIGINT) == (130, "")


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc here")
def test_an_empty_file_becomes_json_lines(tail, tmp_path: Path) -> None:
    (tmp_path / "x.log").touch()
    running = tail("x.log")
    running.until(lambda: catches(running.process.pid, signal.SIGTERM))
    time.sleep(0.3)
    with (tmp_path / "x.log").open("a", buffering=1) as out:
        out.write('{"n":1}\n')
        running.until(lambda: running.numbers == [1])
        out.write('{"n":2}\n')
        running.until(lambda: running.numbers == [1, 2])
    assert running.end(signal.SIGINT) == (130, "")


@pytest.mark.parametrize("question", [[], ["n > 0"]], ids=["all", "some"])
def test_lines_that_are_no_json_are_told_of_as_they_come(tail, tmp_path: Path, question: list[str]) -> None:
    """A process that dies writes its last words as text: the first of them is shown; many are counted."""
    log = tmp_path / "x.ndjson"
    log.write_text('{"n":1}\n')
    running = tail("x.ndjson", *question)
    running.until(lambda: catches(running.process.pid, signal.SIGTERM))
    time.sleep(1)
    with log.open("a", buffering=1) as out:
        out.write('Error: \x1b[31mboom\n    at x (y.js:1:2)\n{"n":2}\n')
        running.until(lambda: running.numbers == [2])
        for number in range(3, 8):
            out.write("text\n" * 10 + f'{{"n":{number}}}\n')
            running.until(lambda number=number: running.numbers[-1:] == [number])
    code, said = running.end(signal.SIGINT)
    first, *more = said.splitlines()
    assert code == 130
    told = (
        "x.ndjson: 2 lines that came cannot be read as JSON, and are left out: 'Error: \\x1b[31mboom'; jitdb info says"
    )
    assert told in first
    assert len(more) == 1
    assert " lines that came cannot be read as JSON, and are left out, now: 'text'; jitdb info says" in more[0]


def test_a_field_that_no_record_has_is_told_of(tail, events: Path) -> None:
    running = tail("events.log", 'levle == "error"', "--cursor", "place")
    running.until(is_at_the_end(events.parent / "place", events))
    assert running.end(signal.SIGINT) == (130, "jitdb: no record has the field `levle`; did you mean `level`?\n")


def test_each_note_on_a_folder_comes_once(tail, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(10):
        (folder / f"{number}.ndjson").write_text('{"level": "info", "n": 0}\n')
    (folder / "other.ndjson").write_text('{"severity": "INFO", "n": 0}\n')
    (folder / "README").write_text("nothing for machines\n")
    os.utime(folder / "README", (1, 1))
    running = tail("logs", 'level >= "warn"', "--limit", "1")
    until(lambda: list(tmp_path.rglob("*.index")), PATIENCE)
    time.sleep(1)
    with (folder / "0.ndjson").open("a") as file:
        file.write('{"level": "error", "n": 1}\n')
    running.until(lambda: running.numbers == [1])
    assert running.end() == (0, (
        "jitdb: warning: logs/README: it is no log, and is passed over\n"
        "jitdb: `level` is called `severity` in logs/other.ndjson: "
        '`level >= "warn" or severity >= "warn"` asks those, too\n'
    ))  # fmt: skip


@pytest.mark.parametrize("where", ["logs", "logs/*", "logs/out"])
def test_output_into_a_log_that_is_followed_is_refused(tmp_path: Path, where: str) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.ndjson").write_text('{"n": 1}\n')
    (tmp_path / "logs" / "out").write_text('{"n": 1}\n')
    with (tmp_path / "logs" / "out").open("a") as out:
        done = subprocess.run(
            [sys.executable, "-m", "jitdb", "tail", where], cwd=tmp_path, env=environment(), stdout=out,
            stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr.replace(f"{tmp_path}/", "")) == (1, (
        "jitdb: logs/out: the output goes to one of the logs that are followed, so it would have no end\n"
        "  write it elsewhere, or to a file whose name begins with a dot\n"
    ))  # fmt: skip


# --- how it ends -----------------------------------------------------------------------------------------------------


def test_a_reader_who_has_gone_is_noticed_while_nothing_comes(tail, hundred: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "jitdb", "tail", "x.log", "--old"],
        cwd=hundred.parent, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(100):
            process.stdout.readline()
        time.sleep(0.7)
        assert process.poll() is None
        process.stdout.close()
        assert (process.wait(PATIENCE), process.stderr.read()) == (0, b"")


def test_a_reader_who_has_gone_is_noticed_before_the_first_record(tmp_path: Path) -> None:
    (tmp_path / "x.log").touch()
    line = f"set -o pipefail; {sys.executable} -m jitdb tail x.log | true; echo $?"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_ctrl_c_while_it_scans_for_the_first_time(tmp_path: Path) -> None:
    make_log(tmp_path / "x.log", records(range(100)))
    running = subprocess.Popen(
        [sys.executable, "-m", "jitdb", "tail", "x.log", "--cursor", "place"],
        cwd=tmp_path, env={**environment(), "JITDB_KERNELS": "numba", "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until(lambda: (tmp_path / "cache").exists() or running.poll() is not None)
    running.send_signal(signal.SIGINT)
    out, said = running.communicate(timeout=PATIENCE)
    # Interrupted within an exec() of text, as imports do some, `python -m` ends with the signal, not with the code.
    assert running.returncode in (130, -signal.SIGINT), said.decode()
    assert out == b""
    assert b"Traceback" not in said


def test_a_full_disk_is_told_of(hundred: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "jitdb", "tail", "x.log", "--old", "--cursor", "place"],
            cwd=hundred.parent, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "jitdb: standard output: No space left on device\n")
    place = read_place((hundred.parent / "place").read_text())
    assert place is not None
    assert parse_cursor(place).seq == 0


def test_another_log_in_its_place(tail, hundred: Path, tmp_path: Path) -> None:
    running = tail("x.log", "--cursor", "place")
    running.until(is_at_the_end(tmp_path / "place", hundred))
    other = make_log(tmp_path / "other.log", [{"n": 1000, "text": "x" * 100_00}])
    shutil.rmtree(tmp_path / "x.log.jitdb")
    os.replace(other, hundred)
    code, said = running.end()
    assert (code, running.lines) == (1, [])
    assert "another log has taken its place: it was truncated, replaced or repaired\n" in said
    code, said = tail("x.log", "--cursor", "place").end()
    assert code == 1
    assert "place: this is no place in x.log: it is of another log, or of this one before" in said
    assert said.endswith("\n  to begin anew, remove it: rm place\n")


# --- the place -------------------------------------------------------------------------------------------------------


class WritingProcess:
    """Appends records 0 to `total` to x.log, some at a time."""

    def __init__(self, folder: Path, total: int) -> None:
        code = (
            f"import time; from jitdb import Log; log = Log('x.log', flush_interval=0.02)\n"
            f"for n in range({total}):\n"
            f"    log.append({{'n': n, 'text': 'some text ' * (n % 20)}})\n"
            f"    if n % 40 == 0: time.sleep(0.02)\n"
            f"log.close()\n"
        )
        self.process = subprocess.Popen([sys.executable, "-c", code], cwd=folder, env=environment())

    def __enter__(self) -> WritingProcess:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            assert self.process.wait(PATIENCE) == 0
        finally:
            self.process.kill()
            self.process.wait()


def test_ended_and_gone_on_nothing_is_left_out_or_repeated(tail, tmp_path: Path) -> None:
    random.seed(5)
    make_log(tmp_path / "x.log")
    total, seen, endings = 8000, [], set()
    with WritingProcess(tmp_path, total):
        for how in itertools.cycle([signal.SIGINT, None, signal.SIGTERM]):
            count = min(random.randint(1, 1200), total - len(seen))
            running = tail("x.log", "--old", "--cursor", "place", *([] if how else ["--limit", str(count)]))
            if how is not None:
                running.until(lambda: len(running.lines) >= count)  # noqa: B023
                time.sleep(random.random() * 0.3)
            code, said = running.end(how)
            endings.add(code)
            assert (code, said) == (0 if how is None else 128 + how, "")
            seen += running.numbers
            assert seen == list(range(len(seen)))
            if len(seen) == total:
                break
    assert endings == {0, 130, 143}


def kept(place: Path) -> int:
    """How many records the kept place is behind."""
    found = read_place(place.read_text()) if place.exists() else None
    return parse_cursor(found).seq if found is not None else 0


def test_killed_and_gone_on_nothing_is_left_out(tail, tmp_path: Path) -> None:
    random.seed(7)
    make_log(tmp_path / "x.log")
    place = tmp_path / "place"
    total, reached, repeated = 6000, 0, 0
    with WritingProcess(tmp_path, total):
        while reached < total:
            begin = kept(place)
            assert begin <= reached
            repeated += reached - begin
            wanted = min(reached + random.randint(1, 1000), total)
            running = tail("x.log", "--old", "--cursor", "place")
            running.until(lambda: len(running.lines) >= wanted - begin)  # noqa: B023
            if random.random() < 0.5:
                running.until(lambda: kept(place) >= wanted)  # noqa: B023
            time.sleep(random.random() * 0.2)
            assert running.end(signal.SIGKILL)[0] == -signal.SIGKILL
            assert running.numbers == list(range(begin, begin + len(running.lines)))
            reached = max(reached, begin + len(running.lines))
    assert repeated > 0
    begin = kept(place)
    last = tail("x.log", "--old", "--cursor", "place")
    last.until(lambda: len(last.lines) == total - begin and kept(place) == total)
    assert last.numbers == list(range(begin, total))


def waiting_in(pipe: IO[bytes]) -> int:
    """Bytes that were written into the pipe and not read; 65,536 when it is full."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.parametrize("reads_on", [True, False])
def test_a_reader_who_is_slow_and_a_signal(tail, tmp_path: Path, reads_on: bool) -> None:
    """It writes until the pipe is full, then waits: a signal ends it there, and the place tells what went out whole."""
    count = 5000
    make_log(tmp_path / "x.log", [{"n": number, "text": "x" * 300} for number in range(count)])
    process = subprocess.Popen(
        [sys.executable, "-m", "jitdb", "tail", "x.log", "--old", "--cursor", "place"],
        cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    until(lambda: waiting_in(process.stdout) >= 15 * 4096 or process.poll() is not None)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    if not reads_on:
        assert process.wait(PATIENCE) == 143
    out, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (143, b"")
    whole = out[: out.rfind(b"\n") + 1].splitlines()
    assert 0 < len(whole) < count
    assert not reads_on or out.endswith(b"\n")
    place = read_place((tmp_path / "place").read_text())
    assert place is not None
    assert parse_cursor(place).seq == len(whole)
    rest = tail("x.log", "--cursor", "place", "--limit", str(count - len(whole)))
    assert rest.end() == (0, "")
    assert [json.loads(line)["n"] for line in whole] + rest.numbers == list(range(count))


def test_two_signals_at_once_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with Ending() as ending:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert (ending.asked, ending.code) == (True, 143)
        with pytest.raises(KeyboardInterrupt), ending.undisturbed():
            signal.raise_signal(signal.SIGINT)
        later = time.monotonic() + 2
        monkeypatch.setattr(time, "monotonic", lambda: later)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("within", [none_lost, Ending])
def test_a_signal_into_a_finalizer_comes_again(within, capfd: pytest.CaptureFixture[str]) -> None:
    class Gone:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def lose_one_and_wait() -> None:
        Gone()
        time.sleep(PATIENCE)

    with pytest.raises(KeyboardInterrupt), within():
        lose_one_and_wait()
    assert capfd.readouterr().err == ""


def test_a_compaction_goes_unnoticed(tail, run, hundred: Path, tmp_path: Path) -> None:
    stopped = tail("x.log", "--old", "--cursor", "stopped", "--limit", "50")
    assert stopped.end() == (0, "")
    running = tail("x.log", 'kind == "even"', "--old", "--cursor", "place")
    running.until(lambda: len(running.lines) == 50)
    running.until(is_at_the_end(tmp_path / "place", hundred))
    for first in (100, 200):
        with Log(hundred) as log:
            for record in list(log.stream()):
                if record.value["n"] % 5 == 0 and record.value["n"] < first:
                    log.delete(record.offset)
        assert run("compact", "x.log").stdout.startswith("removed ")
        add(hundred, range(first, first + 100))
        running.until(lambda: running.lines and running.numbers[-1] == first + 98)  # noqa: B023
    assert running.numbers == list(range(0, 300, 2))
    assert running.end(signal.SIGINT) == (130, "")
    left = [number for number in range(50, 300) if number % 5 or number >= 200]
    again = tail("x.log", "--cursor", "stopped", "--limit", str(len(left)))
    assert again.end() == (0, "")
    assert again.numbers == left
    add(hundred, range(300, 302))
    rest = tail("x.log", 'kind == "even"', "--cursor", "place", "--limit", "1")
    assert rest.end() == (0, "")
    assert rest.numbers == [300]


def test_the_place_reaches_beyond_what_does_not_match(tail, hundred: Path, tmp_path: Path) -> None:
    running = tail("x.log", "n == 3", "--old", "--cursor", "place")
    running.until(lambda: len(running.lines) == 1)
    running.until(is_at_the_end(tmp_path / "place", hundred))
    add(hundred, range(100, 150))
    running.until(is_at_the_end(tmp_path / "place", hundred))


def test_the_place_is_there_before_the_first_record(tail, hundred: Path, tmp_path: Path) -> None:
    running = tail("x.log", "--cursor", "place")
    running.until(is_at_the_end(tmp_path / "place", hundred))
    running.end(signal.SIGKILL)
    add(hundred, range(100, 103))
    again = tail("x.log", "--cursor", "place", "--limit", "3")
    assert again.end() == (0, "")
    assert again.numbers == [100, 101, 102]


def test_records_of_a_batch_come_as_it_is_written(tail, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    line = '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"n":%d},{"n":%d}]}],"resource":{"attributes":[]}}]}\n'
    path.write_text(line % (1, 2))
    follower = tail(path.name, "--old", "resource.attributes is not null")
    follower.until(lambda: len(follower.lines) == 2)
    with path.open("a") as file:
        file.write(line % (3, 4))
    follower.until(lambda: len(follower.lines) == 4)
    assert follower.numbers == [1, 2, 3, 4]
