"""An index is saved while the file is rotated, and other processes ask: nothing is said, and nothing is wrong."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from homes import entries_beside, entry_of
from stepping import Stepping
from thoroughness import tries
from waiting import until

import jitdb
from jitdb.log.io import osfile
from jitdb.log.lines.keeping.known import stored_in
from jitdb.operators import field

pytestmark = pytest.mark.filterwarnings("error")

ASKED = field("m") == 1
OTHER = """
import sys
import jitdb
from jitdb.operators import field
for path in sys.argv[1:]:
    with jitdb.open(path, progress=False) as db:
        print(db.count(field("n") >= 0))
"""


class Moving(Stepping):
    """Before the call of this number another process rotates the log, and asks."""

    STEPS = ("mkdir", "open", "rename", "pwrite", "stat")

    def __init__(self, path: Path, at: int) -> None:
        self._path, self._at, self.calls = path, at, 0
        self._other: subprocess.Popen[str] | None = None

    def step(self) -> None:
        self.calls += 1
        if self.calls == self._at:
            self._other = rotate(self._path)

    def end(self) -> None:
        if self._other is not None:
            assert self._other.communicate(timeout=60)[0] == "3000\n1\n"
            assert self._other.returncode == 0


def rotate(path: Path) -> subprocess.Popen[str]:
    """The process that has seen that the file has another name. It goes on: what it asks for may be locked."""
    old = path.rename(path.with_name("app.log.1"))
    write(path, 7)
    command = [sys.executable, "-W", "error", "-c", OTHER, str(old), str(path)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    late = time.monotonic() + 1.5  # it may wait for the lock that is held just now
    until(lambda: other.poll() is not None or name_in(entry_of(old)) == old.name or time.monotonic() > late)
    return other


def name_in(entry: Path) -> str:
    known = stored_in(entry)
    return "" if known is None else known.name


def write(path: Path, *numbers: int) -> None:
    with open(path, "a") as file:
        file.writelines(f'{{"n": {number}, "m": {number % 3}}}\n' for number in numbers)


def counted(path: Path) -> list[int]:
    with jitdb.open(path, progress=False, threads=1) as db:
        return [db.count(ASKED), db.count(ASKED)]


def moved(folder: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> int:
    """Count while another process comes between, before the call of this number: how many calls there were."""
    folder.mkdir()
    path = folder / "app.log"
    write(path, *range(3000))
    with jitdb.open(path, progress=False) as db:
        assert db.count(field("n") >= 0) == 3000
    moving = Moving(path, at)
    with monkeypatch.context() as patched:
        patched.setattr(osfile, "fs", moving)
        found = counted(path)
    moving.end()
    is_rotated = moving.calls >= at
    assert set(found) <= ({1000, 1} if is_rotated else {1000}), at
    for name, right in ((path, 1), (folder / "app.log.1", 1000)) if is_rotated else ((path, 1000),):
        assert counted(name) == [right, right], at
    living = {each.name for each in folder.iterdir() if each.is_file()}
    assert entries_beside(folder) == {str((folder / name).stat().st_ino) for name in living}, at
    return moving.calls


def test_another_process_comes_between_any_two_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = moved(tmp_path / "none", monkeypatch, 1 << 30)
    for at in range(1, calls + 1, max(1, calls // tries(6, calls))):
        moved(tmp_path / str(at), monkeypatch, at)


def test_one_whose_folder_is_gone_makes_none(tmp_path: Path) -> None:
    """Of a file that was renamed or removed while it is open: it is asked on, and leaves nothing behind."""
    path = tmp_path / "app.log"
    write(path, *range(3000))
    with jitdb.open(path, progress=False) as db:
        assert db.count(field("n") >= 0) == 3000
        old = path.rename(tmp_path / "app.log-20261124")
        assert counted(old) == [1000, 1000]
        assert [db.count(ASKED), db.count(field("m") == 2)] == [1000, 1000]
        assert entries_beside(tmp_path) == {str(old.stat().st_ino)}


def test_an_index_that_is_opened_again_is_not_there(tmp_path: Path) -> None:
    """More indexes than a process has open: those of a file whose folder was moved are built anew, without a word."""
    path = tmp_path / "app.log"
    with open(path, "w") as file:
        fields = ", ".join(f'"f{number}": %d' for number in range(40))
        file.writelines(f"{{{fields % tuple(range(row, row + 40))}}}\n" for row in range(500))
    with jitdb.open(path, progress=False) as db:
        assert [db.count(field(f"f{number}") == 100) for number in range(40)] == [1] * 40
        old = path.rename(tmp_path / "app.log.1")
        with jitdb.open(old, progress=False) as other:
            assert other.count(field("f0") == 100) == 1
        for number in range(40):
            assert db.count((field(f"f{number}") == 101) & (field("f0") >= 0)) == 1
