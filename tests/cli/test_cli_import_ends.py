"""Imports that are interrupted, killed, or find no room: what is in the log, and how to go on."""

from __future__ import annotations

import errno
import fcntl
import gzip
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from cli_helpers import environment, make_log, records_of, write
from waiting import until

from jitdb.cli import main
from jitdb.log import Log
from jitdb.log.io import osfile


@contextmanager
def unending(path: Path, lines: list[str]) -> Iterator[None]:
    """A pipe of these lines that does not end, and a file of them afterwards: files are imported in no time."""
    data = "".join(lines).encode()
    done = threading.Event()
    os.mkfifo(path)

    def write_all() -> None:
        with suppress(BrokenPipeError), open(path, "wb", buffering=0) as pipe:
            pipe.write(data[: len(data) * 9 // 10])
            done.wait()

    writer = threading.Thread(target=write_all, daemon=True)
    writer.start()
    try:
        yield
    finally:
        done.set()
        writer.join(20)
        path.unlink()
        path.write_bytes(data)


def test_ctrl_c_keeps_what_was_imported_and_says_how_to_go_on(folder: Path) -> None:
    lines = numbered(0, 400_000)
    with unending(folder / "in.ndjson", lines), subprocess.Popen(
        [sys.executable, "-m", "jitdb", "import", "in.ndjson", "out.log"],
        cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        log = folder / "out.log"
        until(lambda: log.exists() and log.stat().st_size)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said.startswith("jitdb: interrupted\n")
    imported = records_of(log)
    assert 0 < len(imported) < 400_000
    assert re.search(rf"{len(imported):,} records? w\w+ imported, in.ndjson up to line {len(imported):,}", said)
    advice = next(line for line in said.splitlines() if "to go on from there: " in line)
    assert main(["-q", *shlex.split(advice.partition("jitdb ")[2])]) == 0
    assert [record["n"] for record in records_of(log)] == list(range(400_000))


def numbered(first: int, stop: int) -> list[str]:
    """Lines that take some time."""
    return [f'{{"n":{number},"text":"some text to make it longer, {number % 977}"}}\n' for number in range(first, stop)]


def advice_in(said: str) -> list[str]:
    """The command that the message says to go on with."""
    (line,) = (line for line in said.splitlines() if "jitdb import --append" in line)
    return shlex.split(line[line.index("jitdb import") :])[1:]


def test_ctrl_c_while_lines_are_passed_over(folder: Path) -> None:
    """What is passed over is in the log: going on must not begin before it."""
    text = "".join(numbered(0, 1400))
    os.mkfifo(folder / "in.ndjson")
    make_log(folder / "out.log", [json.loads(line) for line in numbered(0, 1000)])
    for sent in (0, 300, 600):  # lines that have come when it is interrupted
        process = subprocess.Popen(
            [sys.executable, "-m", "jitdb", "import", "--append", "--from-line", "1001", "in.ndjson", "out.log"],
            cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        with process, open(folder / "in.ndjson", "wb", buffering=0) as pipe:  # returns when it is opened to read
            pipe.write(text[: sum(map(len, numbered(0, sent)))].encode())
            until(lambda sent=sent: not sent or not unread(pipe.fileno()))
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert "0 records were imported, in.ndjson up to line 1,000; they stay in out.log" in said
        assert advice_in(said)[:4] == ["import", "--append", "--from-line", "1001"]
    (folder / "in.ndjson").unlink()
    (folder / "in.ndjson").write_text(text)
    assert main(["-q", *advice_in(said)]) == 0
    assert [record["n"] for record in records_of(folder / "out.log")] == list(range(1400))


def unread(fd: int) -> int:
    """Bytes in the pipe that nobody has read yet."""
    found = bytearray(4)
    fcntl.ioctl(fd, termios.FIONREAD, found)
    return int.from_bytes(found, sys.byteorder)


@pytest.mark.parametrize("options", [[], ["--skip-bad"]])
def test_a_gzip_cut_off_among_lines_that_are_passed_over(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    lines = numbered(0, 60_000)
    make_log(folder / "out.log", [json.loads(line) for line in lines[:50_000]])
    data = gzip.compress("".join(lines).encode(), 1)
    write(folder, data[: len(data) // 2], "in.ndjson.gz")
    command = ["import", "--append", "--from-line", "50001", *options, "in.ndjson.gz", "out.log"]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert "the gzip data are cut off" in said
    write(folder, data, "in.ndjson.gz")
    assert main(["-q", *advice_in(said)]) == 0
    assert [record["n"] for record in records_of(folder / "out.log")] == list(range(60_000))


@pytest.mark.parametrize("options", [[], ["--skip-bad"]])
def test_ctrl_c_again_and_again(folder: Path, options: list[str]) -> None:
    """However often: the message comes, and says what is true."""
    lines = numbered(0, 200_000)
    log = folder / "out.log"
    with unending(folder / "in.ndjson", lines), subprocess.Popen(
        [sys.executable, "-m", "jitdb", "import", *options, "in.ndjson", "out.log"],
        cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        patience = time.monotonic() + 60
        until(lambda: log.exists() and log.stat().st_size)
        while process.poll() is None and time.monotonic() < patience:
            process.send_signal(signal.SIGINT)
            time.sleep(0.001)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said.startswith("jitdb: interrupted\n")
    assert "Traceback" not in said
    if "they stay" in said:  # else it had just come to its end
        assert main(["-q", *advice_in(said)]) == 0, said
    assert [record["n"] for record in records_of(log)] == list(range(200_000)), said


def test_ctrl_c_while_standard_input_is_silent(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "jitdb", "import", "-", "out.log"],
        cwd=folder, env=environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        process.stdin.write('{"n":1}\n{"n":2}\n{"n":')
        process.stdin.flush()
        # What a pipe brings is imported without waiting for more.
        until(lambda: (folder / "out.log").exists() and len(records_of(folder / "out.log")) == 2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "2 records were imported, standard input up to line 2" in said
    assert records_of(folder / "out.log") == [{"n": 1}, {"n": 2}]


def test_an_import_killed_leaves_a_log_in_order(folder: Path) -> None:
    write(folder, b'{"n":1}\n' * 200_000)
    with subprocess.Popen(
        [sys.executable, "-m", "jitdb", "import", "in.ndjson", "out.log"],
        cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        log = folder / "out.log"
        until(lambda: (log.exists() and log.stat().st_size) or process.poll() is not None)
        os.kill(process.pid, signal.SIGKILL)
    assert set(map(str, records_of(folder / "out.log"))) <= {"{'n': 1}"}


class Full(osfile.FileSystem):
    """A disk that is full after so many writes, and has room for half of the next one."""

    def __init__(self, writes: int) -> None:
        self.left = writes

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        self.left -= 1
        if self.left < -1 or (self.left < 0 and len(data) < 2):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().pwrite(fd, data if self.left >= 0 else data[: len(data) // 2], offset)


def test_a_full_disk_keeps_what_was_imported_and_says_how_to_go_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.dumps({"n": number, "text": "some text" * 80}) + "\n" for number in range(4000)]
    for name, part in (("a.ndjson", lines[:1500]), ("b.ndjson", lines[1500:])):
        (folder / name).write_text("\n".join(part))  # each second line is blank
    seen = set()
    for writes in range(100):
        name = f"out-{writes}.log"
        with monkeypatch.context() as full:
            full.setattr(osfile, "fs", Full(writes))
            code = main(["import", "a.ndjson", "b.ndjson", name])
        said = capsys.readouterr().err
        if code == 0:
            break
        assert "No space left on device" in said
        imported = [record["n"] for record in records_of(folder / name)] if "they stay" in said else []
        seen.add(len(imported))
        assert imported == list(range(len(imported)))
        assert f"rm -r {name} {name}.jitdb" in said or not (folder / name).exists()
        if not imported:
            assert "nothing was imported" in said or "cannot be" in said
            continue
        assert re.search(rf"{len(imported):,} records? w\w+ imported", said)
        advice = next(line for line in said.splitlines() if "make room on the disk, then go on with: " in line)
        assert main(["-q", *shlex.split(advice.partition("jitdb ")[2])]) == 0
        assert [record["n"] for record in records_of(folder / name)] == list(range(4000))
        capsys.readouterr()
    assert len(seen) > 3
    assert max(seen) > 1500


class Punctual(Log):
    """What was appended is durable when more is, as it is after a while."""

    def append_encoded(self, data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        self.flush()
        return super().append_encoded(data, lengths)

    def append_many(self, values: Iterable[Any]) -> list[int]:
        self.flush()
        return super().append_many(values)


def test_a_full_disk_around_blocks_that_grow(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever log is there by then, what is told of it is right: offsets are others in the larger blocks."""
    monkeypatch.setattr("jitdb.log.Log", Punctual)
    for name, sizes in (("a.ndjson", [40_000] * 8), ("b.ndjson", [40_000] * 4 + [70_000] + [40_000] * 4)):
        (folder / name).write_text("".join(f'{{"text": "{"x" * size}"}}\n' for size in sizes))
    seen = set()
    for writes in range(20, 100, 2):
        name = f"out-{writes}.log"
        with monkeypatch.context() as full:
            full.setattr(osfile, "fs", Full(writes))
            code = main(["import", "a.ndjson", "b.ndjson", name])
        said = capsys.readouterr().err
        if code == 0:
            break
        there = len(records_of(folder / name))
        place = f"b.ndjson up to line {there - 8}" if there >= 8 else f"a.ndjson up to line {there}"
        assert re.search(rf"\b{there} records? w\w+ imported, ({place}|a.ndjson up to line 8);", said), said
        with Log(folder / name, read_only=True) as log:
            seen.add((there > 12, log.block_size))
    assert seen == {(False, 1 << 16), (False, 1 << 17), (True, 1 << 17)}


def test_a_full_disk_while_adding_to_a_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_log(folder / "out.log", [{"n": -1}] * 100)
    (folder / "in.ndjson").write_text("".join(f'{{"n": {number}}}\n' for number in range(30_000)))
    with monkeypatch.context() as full:
        full.setattr(osfile, "fs", Full(3))
        assert main(["import", "--append", "--from-line", "11", "in.ndjson", "out.log"]) == 1
    said = capsys.readouterr().err
    assert "rm -r" not in said
    advice = next(line for line in said.splitlines() if "make room on the disk, then go on with: " in line)
    assert main(["-q", *shlex.split(advice.partition("jitdb ")[2])]) == 0
    assert [record["n"] for record in records_of(folder / "out.log")][100:] == list(range(10, 30_000))
