"""What is kept of a Parquet or Arrow file: made once and whole, believed as long as the file is the same, made anew
when it is another, and removed when it is forgotten.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from homes import entries_beside, entry_of
from thoroughness import tries
from waiting import until

import jitdb
from jitdb.errors import LogCorrupt, LogError, LogWriteFailed, NotALog
from jitdb.log.columnar import kept_rows
from jitdb.log.io import osfile
from jitdb.log.lines.kept import forget, kept
from jitdb.operators import field

pa = pytest.importorskip("pyarrow")
from column_cases import flights, write  # noqa: E402


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(flights(2_000), tmp_path / "x.parquet")


def read(path: Path, **options: Any) -> int | None:
    """How many rows were read to open it; None where they were kept."""
    with jitdb.open(path, **options) as db:
        return db.log.kept.read


def in_folder(folder: Path) -> set[str]:
    return {each.relative_to(folder).as_posix() for each in folder.rglob("*")}


# --- is it still the same? -------------------------------------------------------------------------------------------


def test_the_rows_are_read_once(path: Path) -> None:
    assert (read(path), read(path), read(path)) == (2_000, None, None)
    assert len(list((entry_of(path, "table") / "rows").iterdir())) == 1


def test_another_file_of_the_same_size(path: Path) -> None:
    """Only what stat says of it, and a byte in its middle, are others."""
    table = flights(2_000)
    one = write(table, path, compression="none", use_dictionary=False)
    before = one.read_bytes()
    where = before.index(b"N1", len(before) // 3)
    assert read(path) == 2_000
    with open(path, "r+b") as file:
        file.seek(where)
        file.write(b"Q")
    with jitdb.open(path) as db:
        assert db.log.kept.read == 2_000
        tails = [record["plane"]["tail"] for record in db.query().all()]
    assert sum(tail.startswith("Q") for tail in tails) == 1
    assert len(list((entry_of(path, "table") / "rows").iterdir())) == 1, "what was kept before is removed"


def test_another_mtime_alone(path: Path) -> None:
    assert read(path) == 2_000
    with jitdb.open(path) as db:
        status = db.count(field("status") == 500)
        os.utime(path, ns=(1, 1))
        assert db.count(field("status") == 500) == status
        assert db.log.kept.read is None
        assert [index.state for index in db.indexes()] == ["fresh"] * len(db.indexes())
    path.chmod(0o600)
    assert read(path) is None
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.rename(path)
    assert read(path) is None, "another file of the same bytes"
    assert len(list((entry_of(path, "table") / "rows").iterdir())) == 1


def test_another_name(path: Path, tmp_path: Path) -> None:
    assert read(path) == 2_000
    path.rename(tmp_path / "y.parquet")
    assert read(tmp_path / "y.parquet") is None


def test_another_file_of_its_name(path: Path, tmp_path: Path) -> None:
    assert read(path) == 2_000
    write(flights(300), tmp_path / "new").rename(path)
    assert (read(path), read(path)) == (300, None)
    assert entries_beside(tmp_path) == {f"{path.stat().st_ino}-table"}, "what was kept of the old one is removed"


def test_a_database_that_is_open_sees_it(path: Path, tmp_path: Path) -> None:
    with jitdb.open(path) as db:
        assert db.count() == 2_000
        assert db.count(field("id") < 500) == 500
        write(flights(300), path)
        assert db.count(field("id") < 500) == 300
        write(flights(400), tmp_path / "new").rename(path)
        assert db.refresh()
        assert db.count(field("id") < 500) == 400
        assert not db.refresh()
        assert db.log.kind.name == "arrow"
        path.unlink()
        assert db.count(field("id") < 350) == 350, "the rows are asked on"
        assert db.query(field("id") == 7).all()[0]["id"] == 7


def test_a_database_that_is_open_sees_damage(path: Path) -> None:
    with jitdb.open(path) as db:
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        with pytest.raises(LogCorrupt, match="cut off"):
            db.count()
        path.write_bytes(b'{"a": 1}\n')
        with pytest.raises(NotALog, match="no Parquet or Arrow file any more"):
            db.count()
        path.write_bytes(whole)
        assert db.count() == 2_000


def test_it_is_changed_while_its_rows_are_read(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read of it is thrown away."""
    original, changes = kept_rows.RowKeeper._append, [300, 200, 100]

    def append(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        if changes:
            write(flights(changes.pop()), path)

    monkeypatch.setattr(kept_rows.RowKeeper, "_append", append)
    with jitdb.open(path) as db:
        assert db.count() == 300
    changes = list(range(10, 60))
    write(flights(50), path)
    with pytest.raises(LogError, match="written again each time"):
        jitdb.open(path)


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_it_is_listed_and_forgotten(path: Path, tmp_path: Path) -> None:
    with jitdb.open(path) as db:
        db.count(field("status") == 500)
        (one,) = kept(path)
        assert (one.path, one.form, one.is_gone) == (str(path), "table", False)
        size = sum(each.stat().st_size for each in entry_of(path, "table").rglob("*") if each.is_file())
        assert one.bytes == size > db.log.kept.bytes > 0
        assert [each.folder for each in forget(path)] == [one.folder]
        assert in_folder(tmp_path) == {"x.parquet"}
        assert db.count(field("status") == 500) == db.count(field("status") == 500)
        assert len(db.query(field("status") == 404).all()) == db.count(field("status") == 404)
    forget(path)
    assert read(path) == 2_000


def test_named_sets(path: Path) -> None:
    with jitdb.open(path) as db:
        db.sets["bad"] = db.query(field("status") == 500).set()
        count = db.count(field("status") == 500)
    with jitdb.open(path) as db:
        assert len(db.sets["bad"]) == count > 0
    (one,) = kept(path)
    assert one.sets == 1


def test_in_memory(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aside = tmp_path / "aside"
    aside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(aside))
    with jitdb.open(path, "memory") as db:
        assert db.count(field("status") >= 500) > 0
        assert len(list(aside.iterdir())) == 1
        write(flights(100), path)
        assert db.count() == 100
        assert len(list(aside.iterdir())) == 1
    assert in_folder(tmp_path) == {"x.parquet", "aside"}


def test_in_a_folder_of_the_callers(path: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    assert (read(path, indexes=there), read(path, indexes=there)) == (2_000, None)
    assert {each.name for each in tmp_path.iterdir()} == {"x.parquet", "there"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_where_the_folder_cannot_be_written(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "closed"
    folder.mkdir()
    path = path.rename(folder / "x.parquet")
    folder.chmod(0o500)
    try:
        assert (read(path), read(path)) == (2_000, None)
        assert in_folder(folder) == {"x.parquet"}
    finally:
        folder.chmod(0o700)


def test_where_nothing_can_be_kept(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As files of lines are then asked with indexes in memory."""
    monkeypatch.setattr(kept_rows.Keeper, "settle", _unkept(kept_rows.Keeper.settle))
    with jitdb.open(path, "memory") as db:
        assert db.count() == 2_000
    with jitdb.open(path) as db:
        assert (db.count(), db.log.is_kept) == (2_000, False)
        assert len(list((db.log.sidecar / "rows").iterdir())) == 1
        aside = db.log.sidecar
    assert not aside.exists()


def _unkept(settle: Any) -> Any:
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        self._keeps = False
        return settle(self, *arguments, **options)

    return call


def test_it_has_the_permissions_of_the_file(path: Path) -> None:
    path.chmod(0o640)
    assert read(path) == 2_000
    for each in entry_of(path, "table").rglob("*"):
        assert each.stat().st_mode & 0o007 == 0, each


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_no_room(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    class Full(osfile.FileSystem):
        left = 0

        def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
            if "/rows/" in os.readlink(f"/proc/self/fd/{fd}"):
                self.left -= len(data)
                if self.left < 0:
                    raise OSError(number, os.strerror(number))
            return super().pwrite(fd, data, offset)

    for left in (0, 100, 5_000, 100_000):
        fs = Full()
        fs.left = left
        monkeypatch.setattr(osfile, "fs", fs)
        with pytest.raises(LogWriteFailed, match=os.strerror(number)) as caught:
            jitdb.open(path)
        assert caught.value.path == str(path)
        assert "indexes=FOLDER" in str(caught.value)
        assert not list(tmp_path.glob(".jitdb/*/rows/*"))
    monkeypatch.undo()
    assert read(path) == 2_000


def test_what_is_kept_is_damaged(path: Path) -> None:
    """It is made anew, as long as the file is there."""
    assert read(path) == 2_000
    log = next(entry_of(path, "table").glob("rows/*/log"))
    whole, times = log.read_bytes(), log.stat()
    log.write_bytes(whole[:200_000] + b"XXXX" + whole[200_004:])
    with jitdb.open(path) as db:  # somebody wrote into it
        assert db.log.kept.read == 2_000
        assert db.count(field("status") >= 200) == 2_000
    log = next(entry_of(path, "table").glob("rows/*/log"))
    for ask in (lambda db: db.count(field("delay") > 3), lambda db: len(db.query().all())):
        times, whole = log.stat(), log.read_bytes()
        log.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
        os.utime(log, ns=(times.st_atime_ns, times.st_mtime_ns))  # the disk lost it
        with jitdb.open(path) as db:
            expected = ask(db)
        with jitdb.open(path, "memory") as other:
            assert ask(other) == expected
        log = next(entry_of(path, "table").glob("rows/*/log"))


# --- several processes -----------------------------------------------------------------------------------------------

_ASKS = """
import sys, jitdb
with jitdb.open(sys.argv[1]) as db:
    print(db.log.kept.read, db.count(), flush=True)
"""


def _begin(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", _ASKS, path], stdout=subprocess.PIPE, text=True)


def test_one_reads_and_the_others_wait(path: Path) -> None:
    write(flights(50_000), path)
    answers = sorted(each.communicate()[0].strip() for each in [_begin(path) for _ in range(3)])
    assert answers == ["50000 50000", "None 50000", "None 50000"]


def test_threads_wait_for_each_other(path: Path) -> None:
    found: list[int | None] = []
    threads = [threading.Thread(target=lambda: found.append(read(path))) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found, key=str) == [2_000, None, None, None, None, None]


def test_a_process_that_is_killed_leaves_nothing_that_is_believed(path: Path) -> None:
    write(flights(100_000), path)
    chance, entry = random.Random(3), entry_of
    for _ in range(tries(2, 40)):
        killed = _begin(path)
        until(lambda: list(path.parent.glob(".jitdb/*/rows/*/log")))
        time.sleep(chance.random() * 0.3)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        rows = entry(path, "table") / "rows"
        was_whole = any(each.suffix != ".tmp" for each in rows.iterdir())
        assert read(path) == (None if was_whole else 100_000)
        assert len(list(rows.iterdir())) == 1
        with jitdb.open(path) as db:
            assert db.count(field("id") >= 0) == 100_000
        shutil.rmtree(path.parent / ".jitdb")


def test_forgotten_while_it_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, times = kept_rows.RowKeeper._append, [1, 2]

    def append(self: Any, *arguments: Any) -> None:
        if times:
            times.pop()
            forget(path)
        original(self, *arguments)

    monkeypatch.setattr(kept_rows.RowKeeper, "_append", append)
    with jitdb.open(path) as db:
        assert db.count() == 2_000
    assert read(path) is None
