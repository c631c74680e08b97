"""Other processes, and a disk that fails, beside a file of lines: answers are right, or errors with a type."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from stepping import Stepping
from thoroughness import tries

import jitdb
from jitdb.errors import JitdbError
from jitdb.log.io import osfile
from jitdb.operators import field

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")]

ASKER = """
import json, sys, warnings
import jitdb
from jitdb.operators import field
warnings.simplefilter("ignore")
for line in sys.stdin:
    path = line.strip()
    with jitdb.open(path, progress=False, threads=1) as db:
        answers = [db.count(field(name) == 1) for name in ("a", "b", "c")]
        answers.append(len(db.all(field("n") >= 0, sort_by="arrival")))
    print(json.dumps(answers), flush=True)
"""


def line(number: int) -> str:
    return json.dumps({"n": number, "a": number % 2, "b": number % 3, "c": number % 5, "timestamp": number}) + "\n"


def answers(numbers: range) -> list[int]:
    return [*(sum(number % step == 1 for number in numbers) for step in (2, 3, 5)), len(numbers)]


@pytest.fixture
def askers() -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, "-c", ASKER]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    yield started
    for each in started:
        each.communicate(timeout=60)
        assert each.returncode == 0


def test_two_that_index_at_once(tmp_path: Path, askers: list[subprocess.Popen[str]]) -> None:
    """New files, files that grew, were rotated, truncated or replaced: both ask in the same moment, and agree."""
    chosen = random.Random(11)
    path = tmp_path / "app.log"
    numbers = range(0)
    for turn in range(tries(8, 600)):
        count = chosen.choice((3, 500, 4000))
        how = chosen.choice(("grow", "grow", "rotate", "truncate", "replace", "new"))
        start = numbers.stop
        if how == "rotate" and path.exists():
            path.replace(tmp_path / "app.log.1")
        elif how == "truncate" and path.exists():
            os.truncate(path, 0)
        elif how == "replace":
            other = tmp_path / "other"
            other.touch()
            other.replace(path)
        elif how == "new":
            path = tmp_path / f"{turn}.log"
        begin = numbers.start if how == "grow" else start
        numbers = range(begin, start + count)
        with open(path, "a") as file:
            file.writelines(map(line, range(start, numbers.stop)))
        for asker in askers:
            assert asker.stdin is not None
            asker.stdin.write(f"{path}\n")
            asker.stdin.flush()
        for asker in askers:
            assert asker.stdout is not None
            assert json.loads(asker.stdout.readline()) == answers(numbers), (turn, how)
        with jitdb.open(path, progress=False) as db:
            assert db.explain(field("a") == 1)["scan_bytes"] == 0, (turn, how)
            assert db.verify().ok, (turn, how)


WRITER = """
import sys
file = open(sys.argv[1], "ab", 0)
number = 0
while True:
    text = b'{"n": %d, "text": "%s"}\\n' % (number, b"x" * 300)
    for at in range(0, len(text), 100):
        file.write(text[at:at + 100])
    number += 1
"""


def test_a_writer_that_is_killed_within_a_line(tmp_path: Path) -> None:
    """What it wrote is counted, all but the line that has no end; who writes on after it ends that line."""
    path = tmp_path / "app.ndjson"
    path.touch()
    for _ in range(tries(2, 60)):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)])
        deadline = time.monotonic() + 30
        before = path.stat().st_size
        with jitdb.open(path, codec="json", progress=False) as db:
            while path.stat().st_size < before + 20_000 and time.monotonic() < deadline:
                db.log.refresh()
                whole = path.read_bytes().count(b"\n")
                assert db.count() <= whole
        writer.send_signal(signal.SIGKILL)
        writer.wait(30)
        lines = path.read_bytes().split(b"\n")
        wanted = sum(text.endswith(b"}") and text.count(b"{") == 1 for text in lines[:-1])
        with jitdb.open(path, codec="json", progress=False) as db:
            assert db.count() == db.count(field("n") >= 0) == wanted
            assert len(db.all()) == wanted


class Full(Stepping):
    """Every call that writes from some call on finds no room, or the disk broken."""

    STEPS = ("pwrite", "mkdir", "rename", "fsync")

    def __init__(self, number: int) -> None:
        self.calls, self.at, self.number = 0, sys.maxsize, number

    def step(self) -> None:
        self.calls += 1
        if self.calls > self.at:
            raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_full_disk_costs_indexes_and_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """From any call on; then there is room again, and all is well, whatever lies there."""
    at, step = 0, tries(17, 1)
    is_reached = True
    while is_reached:
        path = tmp_path / f"{at}.log"
        path.write_text("".join(map(line, range(300))))
        for stop, fails in (
            ((300, False), (500, True), (700, True), (900, False)) if at % 2 else ((300, True), (900, False))
        ):
            with open(path, "a") as file:
                file.writelines(map(line, range(path.read_text().count("\n"), stop)))
            if fails and at % 3 == 0:
                path.replace(path.with_name(f"{at}.log.1"))  # its folder is to be moved, then
                path.write_text("".join(map(line, range(stop))))
            fs = Full(number)
            fs.at = at if fails else sys.maxsize
            monkeypatch.setattr(osfile, "fs", fs)
            with suppress(*([JitdbError] if fails else [])), jitdb.open(path, progress=False) as db:
                found = [db.count(field(name) == 1) for name in "abc"]
                assert [*found, len(db.all())] == answers(range(stop))
            is_reached = fs.calls > at if fails else is_reached
            monkeypatch.undo()
        with jitdb.open(path, progress=False) as db:
            assert db.verify().ok
        at += step
    assert at > 5
