"""What is done to a whole log takes memory that does not follow how many records it has, or how long its lines are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jitdb import Log

_HEAD = """
import sys, warnings
import numpy
import jitdb
from jitdb import JITDB, Log
from jitdb.operators import field

path = sys.argv[1]

def most():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
"""


def growth(program: str, path: Path) -> float:
    """MiB by which the memory of a process grew since `begin = most()` of the program."""
    text = f"{_HEAD}\n{program}\nprint(most() - begin)\n"
    run = subprocess.run([sys.executable, "-c", text, str(path)], capture_output=True, text=True, timeout=200)
    assert run.returncode == 0, run.stderr
    return float(run.stdout)


@pytest.mark.parametrize(
    "asked",
    [
        "with jitdb.open(path, progress=False) as db: assert db.count() == 1",
        "with jitdb.open(path, progress=False) as db: assert db.log.stats().deleted_records == 6 << 20",
        "with jitdb.open(path, each='a[]', progress=False) as db: assert db.count() == 1",
    ],
)
def test_empty_lines(tmp_path: Path, asked: str) -> None:
    path = tmp_path / "empty.ndjson"
    path.write_bytes(b'{"a":[1]}\n' + b"\n" * (6 << 20))
    assert growth(f"begin = most()\n{asked}", path) < 110


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 300,000 records, two thirds of which are deleted."""
    path = tmp_path_factory.mktemp("large") / "x.log"
    with Log(path) as log:
        for first in range(0, 300_000, 10_000):
            log.append_many([{"n": number, "third": number % 3} for number in range(first, first + 10_000)])
    return path


@pytest.mark.parametrize(
    ("done", "most"),
    [
        ("with Log(path) as log: assert JITDB(log, progress=False).delete(field('third') < 2) == 200_000", 60),
        ("with Log(path, read_only=True) as log: assert log.deletion_position() > 200_000", 25),
        ("with Log(path) as log: assert log.compact().removed == 200_000", 60),
    ],
)
def test_many_deletions(large: Path, done: str, most: int) -> None:
    assert growth(f"begin = most()\n{done}", large) < most
