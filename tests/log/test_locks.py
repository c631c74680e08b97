"""Locks that have numbers, as bytes of one file and as a file each: what Linux has, and what other systems have."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jitdb.indexes.files.folder import LOCK, place_of, take_locks
from jitdb.log.io import system
from jitdb.log.io.locks import FileLocks, Locks, is_any_held, locks_around
from jitdb.log.io.osfile import FileSystem

FORCED = "byte_locks,preadv,fdatasync"  # as in the shell
SMALL, LARGE = 0, (1 << 48) - 1
Around = Callable[[], Locks]


@pytest.fixture(params=["bytes", "files"])
def around(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Around:
    if request.param == "bytes" and sys.platform != "linux":
        pytest.skip("only Linux has locks of bytes that belong to an open file")
    monkeypatch.setattr(system, "HAS_BYTE_LOCKS", request.param == "bytes")
    return lambda: locks_around(FileSystem(), tmp_path / "lock")


def files_left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"lock"}


def test_one_holder_at_a_time(around: Around, tmp_path: Path) -> None:
    first, second = around(), around()
    assert [first.take(SMALL), first.take(LARGE)] == [True, True]
    assert [second.take(SMALL), second.take(LARGE), second.take(7)] == [False, False, True]
    assert is_any_held(FileSystem(), tmp_path / "lock")
    first.release()
    first.release()
    assert [second.take(SMALL), second.take(LARGE)] == [True, True]
    second.release()
    assert (tmp_path / "lock").exists() == system.HAS_BYTE_LOCKS
    assert files_left(tmp_path) == set()


def test_whether_any_is_held(around: Around, tmp_path: Path) -> None:
    fs, lock = FileSystem(), tmp_path / "lock"
    lock.touch()
    assert not is_any_held(fs, lock)
    held = around()
    assert held.take(LARGE)
    assert is_any_held(fs, lock)
    held.release()
    assert not is_any_held(fs, lock)


def test_all_or_none(around: Around, tmp_path: Path) -> None:
    held = take_locks(FileSystem(), tmp_path, ["b.index"])
    assert held is not None
    assert take_locks(FileSystem(), tmp_path, ["a.index", "b.index", "c.index"]) is None
    others = around()
    assert all(others.take(place_of(name)) for name in ("a.index", "c.index"))
    others.release()
    held.release()
    with take_locks(FileSystem(), tmp_path, ["a.index", "b.index", "c.index"]) or pytest.fail("nobody has them"):
        assert take_locks(FileSystem(), tmp_path, ["c.index"]) is None


_HOLDS = """
import sys, time
from pathlib import Path
from jitdb.log.io.locks import locks_around
from jitdb.log.io.osfile import fs
held = locks_around(fs, Path(sys.argv[1]))
print(held.take(5), flush=True)
time.sleep(100)
"""


def test_the_system_ends_those_of_a_process_that_ends(around: Around, tmp_path: Path) -> None:
    without = "" if system.HAS_BYTE_LOCKS else FORCED
    command = [sys.executable, "-c", _HOLDS, str(tmp_path / "lock")]
    environment = {**os.environ, "JITDB_WITHOUT": without}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        mine = around()
        is_free = mine.take(5)
        other.kill()
    assert not is_free
    assert mine.take(5)
    mine.release()
    assert files_left(tmp_path) == set()


def test_a_forked_child_leaves_them_to_its_parent(around: Around) -> None:
    held, other = around(), around()
    assert held.take(5)
    child = os.fork()
    if child == 0:
        held.leave()
        held.release()
        os._exit(0 if not other.take(5) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not other.take(5)
    held.release()
    assert other.take(5)
    other.release()


class Removed(FileSystem):
    """Files of which one is removed, and perhaps made anew and locked, between its opening and its lock."""

    def __init__(self, before: Callable[[], object]) -> None:
        self._before = [before]

    def lock(self, fd: int, *, shared: bool = False) -> bool:
        if self._before:
            self._before.pop()()
        return super().lock(fd, shared=shared)


@pytest.mark.parametrize("is_taken_again", [False, True])
def test_a_file_that_its_holder_removes_while_another_opens_it(tmp_path: Path, is_taken_again: bool) -> None:
    first, third = FileLocks(FileSystem(), tmp_path / "lock"), FileLocks(FileSystem(), tmp_path / "lock")
    assert first.take(5)
    second = FileLocks(Removed(lambda: (first.release(), is_taken_again and third.take(5))), tmp_path / "lock")
    assert second.take(5) is not is_taken_again
    fourth = FileLocks(FileSystem(), tmp_path / "lock")
    assert not fourth.take(5)
    second.release()
    third.release()
    assert fourth.take(5)


_ASKS = """
import sys, jitdb
from pathlib import Path
with jitdb.open(sys.argv[1]) as db:
    print(db.count("a == 1"), db.count("b == 'x' and a == 2"), db.query("a == 1").page(1).data[0]["n"])
"""


@pytest.mark.parametrize("without", ["", "preadv", FORCED])
def test_processes_that_ask_at_once(tmp_path: Path, without: str) -> None:
    """Every process builds, or waits for who does; the answers are those of the records."""
    lines = "".join(f'{{"n": {n}, "a": {n % 3}, "b": "{"xyz"[n % 2]}"}}\n' for n in range(30_000))
    (tmp_path / "some.ndjson").write_text(lines)
    command = [sys.executable, "-c", _ASKS, str(tmp_path / "some.ndjson")]
    environment = {**os.environ, "JITDB_WITHOUT": without}
    asking = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [each.communicate(timeout=100)[0] for each in asking]
    in_both = sum(n % 3 == 2 and n % 2 == 0 for n in range(30_000))
    assert said == [f"10000 {in_both} 1\n"] * 3
    indexes = next(tmp_path.glob(".jitdb/*/indexes"))
    assert len(list(indexes.glob("*.index"))) >= 3
    assert {path.name for path in indexes.glob(f"{LOCK}*")} == (set() if "byte_locks" in without else {LOCK})


def test_what_no_system_has_is_refused() -> None:
    command = [sys.executable, "-c", "import jitdb.log.io.osfile"]
    environment = {**os.environ, "JITDB_WITHOUT": "preadv,locks"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "JITDB_WITHOUT=locks,preadv names others than byte_locks, preadv, fdatasync, full_sync" in done.stderr


def test_a_file_that_cannot_be_synced_fully_is_synced(tmp_path: Path) -> None:
    unknown = 12345  # as F_FULLFSYNC is to a file system that does not know it
    with open(tmp_path / "file", "wb") as file:
        system.fully_synced(unknown)(file.fileno())
    with pytest.raises(OSError, match="Bad file descriptor"):
        system.fully_synced(unknown)(file.fileno() if not file.closed else 999_999)
