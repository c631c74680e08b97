"""What is done to a whole log takes memory that does not follow how many records it has, or how long its lines are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
