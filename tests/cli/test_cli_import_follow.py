"""`jitdb import --follow`: a pipe that goes on, from run to run, into one log."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cli_helpers import environment

from jitdb import Log
from jitdb.cli import main

COMMAND = [sys.executable, "-m", "jitdb", "import", "--follow", "-", "events.log"]


def numbers(path: Path) -> list[int]:
    with Log(path, read_only=True) as log:
        return [record.value["n"] for record in log.stream()]


def run(folder: Path, text: bytes, *more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *more], input=text, cwd=folder, env=environment(), capture_output=True, check=False
    )


def test_it_makes_the_log_and_then_adds_to_it(tmp_path: Path) -> None:
    for first in (0, 2):
        finished = run(tmp_path, b'{"n": %d}\n{"n": %d}\n' % (first, first + 1))
        assert (finished.returncode, finished.stderr) == (0, b"")
        assert b"2 records were imported" in finished.stdout
    assert numbers(tmp_path / "events.log") == [0, 1, 2, 3]


def test_bad_lines_are_passed_over_and_told(tmp_path: Path) -> None:
    finished = run(tmp_path, b'{"n": 0}\nTraceback\n{"n": 1}\n')
    assert finished.returncode == 1
    assert b"skipped standard input, line 2: not JSON" in finished.stderr
    assert numbers(tmp_path / "events.log") == [0, 1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_all_that_came(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "events.log"
    with subprocess.Popen(COMMAND, cwd=tmp_path, env=environment(), stdin=-1, stdout=-1, stderr=-1) as process:
        assert process.stdin is not None
        process.stdin.write(b"".join(b'{"n": %d}\n' % n for n in range(100)))
        process.stdin.flush()
        came = threading.Event()
        while not path.exists() and process.poll() is None:
            came.wait(0.02)
        with Log(path, read_only=True) as log:
            end = log.watch(came.set)
            while len(numbers(path)) < 100:
                came.wait(1)
                came.clear()
            end()
        process.send_signal(number)
        said, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"")
    assert b"100 records were imported" in said


def test_it_is_for_one_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.ndjson").write_text('{"n": 1}\n')
    assert main(["import", "--follow", "a.ndjson", "events.log"]) == 2
    assert "a.ndjson is a file" in capsys.readouterr().err
