"""Whatever becomes of somebody else's file: an open log, and the next one to open it, answer from what it is now."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from homes import entry_of

import jitdb
from jitdb.engine.building import scan
from jitdb.engine.database import JITDB
from jitdb.log.lines import line_log
from jitdb.log.lines.files import file
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.keeping import known
from jitdb.log.lines.line_log import LineLog
from jitdb.operators import field

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")

ENDS = 256  # bytes, for 64 KiB


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of some kilobytes is a large one."""
    monkeypatch.setattr(line_log, "BLOCK", 128)
    monkeypatch.setattr(scan, "CHUNK_BYTES", 512)
    monkeypatch.setattr(file, "ENDS", ENDS)


def line(number: int) -> bytes:
    return json.dumps({"n": number, "even": int(number % 2 == 0), "timestamp": number}).encode() + b"\n"


def lines(count: int, first: int = 0) -> bytes:
    return b"".join(map(line, range(first, first + count)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.ndjson"
    path.write_bytes(lines(100))
    age(path)
    return path


def age(path: Path) -> None:
    """The file was last written long ago: what is done to it now shows in its times."""
    os.utime(path, ns=(10**18, 10**18))


def grow(path: Path) -> None:
    with path.open("ab") as out:
        out.write(lines(7, 500))


def grow_unfinished(path: Path) -> None:
    with path.open("ab") as out:
        out.write(lines(2, 500) + line(502)[:-5])


def nothing(path: Path) -> None:
    pass


def touch(path: Path) -> None:
    os.utime(path)


def put(path: Path, data: bytes, at: int = 0) -> None:
    with path.open("r+b") as out:
        out.seek(at)
        out.write(data)


def edit_first(path: Path) -> None:
    put(path, line(0).replace(b'"even": 1', b'"even": 7'))


def edit_middle(path: Path) -> None:
    data = path.read_bytes()
    put(path, b"7", data.index(b'"even": 1', len(data) // 2) + 8)


def move_lines_in_middle(path: Path) -> None:
    """Two lines become one and a bad one, of the same size together."""
    data = path.read_bytes()
    put(path, b" ", data.index(b"\n", len(data) // 2))


def edit_last(path: Path) -> None:
    put(path, b"7", path.stat().st_size - len(line(99)) + line(99).index(b'"even": ') + 8)


def truncate(path: Path) -> None:
    os.truncate(path, 3000)


def truncate_a_little(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 3)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def copy_and_truncate(path: Path) -> None:
    path.with_suffix(".1").write_bytes(path.read_bytes())
    os.truncate(path, 0)
    with path.open("ab") as out:
        out.write(lines(30, 900))


def copy_and_outgrow(path: Path) -> None:
    os.truncate(path, 0)
    with path.open("ab") as out:
        out.write(lines(200, 900))


def rotate(path: Path) -> None:
    path.rename(path.with_suffix(".1"))
    path.write_bytes(lines(5, 1000))


def rotate_to_nothing(path: Path) -> None:
    path.rename(path.with_suffix(".1"))
    path.write_bytes(b"")


def replace_with_a_grown_copy(path: Path) -> None:
    other = path.with_suffix(".tmp")
    other.write_bytes(path.read_bytes() + lines(3, 700))
    other.rename(path)


def replace_with_an_edited_copy(path: Path) -> None:
    other = path.with_suffix(".tmp")
    other.write_bytes(path.read_bytes() + lines(3, 700))
    edit_middle(other)
    other.rename(path)


def put_the_clock_back(path: Path) -> None:
    edit_middle(path)
    os.utime(path, ns=(10**17, 10**17))


CHANGES: list[Callable[[Path], None]] = [
    nothing, grow, grow_unfinished, touch, edit_first, edit_middle, move_lines_in_middle, edit_last, truncate,
    truncate_a_little, empty, copy_and_truncate, copy_and_outgrow, rotate, rotate_to_nothing, replace_with_a_grown_copy,
    replace_with_an_edited_copy, put_the_clock_back,
]  # fmt: skip


def expected(path: Path) -> list[Any]:
    found = []
    for text in path.read_bytes().split(b"\n")[:-1]:
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def answers(db: JITDB) -> tuple[int, int, list[Any]]:
    return db.count(), db.count(field("even") == 1), db.all(field("n") >= 0, sort_by="arrival")


def wanted(path: Path) -> tuple[int, int, list[Any]]:
    there = expected(path)
    return len(there), sum(record["even"] == 1 for record in there), there


@pytest.mark.parametrize("change", CHANGES)
def test_an_open_log_sees_it(path: Path, change: Callable[[Path], None]) -> None:
    with jitdb.open(path, progress=False) as db:
        assert answers(db) == wanted(path)
        change(path)
        db.log.refresh()
        assert answers(db) == wanted(path)
        grow(path)
        db.log.refresh()
        assert answers(db) == wanted(path)


@pytest.mark.parametrize("change", CHANGES)
def test_the_next_to_open_it_sees_it(path: Path, change: Callable[[Path], None]) -> None:
    with jitdb.open(path, progress=False) as db:
        answers(db)
    change(path)
    for _ in range(2):
        with jitdb.open(path, progress=False) as db:
            assert answers(db) == wanted(path)
        grow(path)


@pytest.mark.parametrize("change", CHANGES)
def test_another_process_agrees(path: Path, change: Callable[[Path], None]) -> None:
    with jitdb.open(path, progress=False) as one, jitdb.open(path, progress=False) as other:
        answers(one)
        change(path)
        one.log.refresh()
        assert answers(one) == wanted(path)
        other.log.refresh()
        assert answers(other) == wanted(path)
        assert (one.log.identity, one.log.foreign_change_token()) == (
            other.log.identity,
            other.log.foreign_change_token(),
        )


@pytest.mark.parametrize("change", [grow, touch, replace_with_a_grown_copy, edit_middle, truncate, rotate])
def test_only_what_must_be_is_scanned_again(path: Path, change: Callable[[Path], None]) -> None:
    with jitdb.open(path, progress=False) as db:
        db.count()
        end = db.status.total
        change(path)
        db.log.refresh()
        db.count()
        there = path.read_bytes().rindex(b"\n") + 1
        kept = change in (grow, touch, replace_with_a_grown_copy)
        assert db.status.total == (end if change is touch else there - end if kept else there)


def write_slowly(path: Path, monkeypatch: pytest.MonkeyPatch, when: int, lasts: int) -> None:
    """The file grows at this look at it; so many looks, from that one on, have the new time and the old size."""
    looks, size = 0, path.stat().st_size
    stamp = file.LineFile.stamp

    def look(self: file.LineFile) -> Stamp:
        nonlocal looks
        looks += 1
        if looks == when:
            grow(path)
        return stamp(self)._replace(size=size) if when <= looks < when + lasts else stamp(self)

    monkeypatch.setattr(file.LineFile, "stamp", look)


@pytest.mark.parametrize("when", range(1, 8))
def test_a_look_in_the_middle_of_a_write_is_no_edit(path: Path, when: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with jitdb.open(path, progress=False) as db:
        answers(db)
        token = db.log.foreign_change_token()
        write_slowly(path, monkeypatch, when, 6)
        db.log.refresh()
        answers(db)
        db.log.refresh()
        assert answers(db) == wanted(path)
        assert db.log.foreign_change_token() == token


@pytest.mark.parametrize("when", range(1, 40))
def test_a_change_between_two_steps_of_a_plan(path: Path, when: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What seems to be an edit at one look, and none at the next, leaves no question waiting for ever."""
    monkeypatch.setattr(known, "_is_growing", lambda *_: False)
    with jitdb.open(path, progress=False) as db:
        write_slowly(path, monkeypatch, when, 1)
        answers(db)
        db.log.refresh()
        assert answers(db) == wanted(path)


def test_a_file_that_is_gone_is_answered_from(path: Path) -> None:
    there = wanted(path)
    with jitdb.open(path, progress=False) as db:
        path.unlink()
        db.log.refresh()
        assert answers(db) == there
        path.write_bytes(lines(3))
        db.log.refresh()
        assert answers(db) == wanted(path)


def test_an_edit_beside_growth_is_found_by_verify(path: Path) -> None:
    with jitdb.open(path, progress=False) as db:
        answers(db)
        assert db.verify().ok
        before = wanted(path)
        edit_middle(path)
        grow(path)
        db.log.refresh()
        assert answers(db)[1] == before[1] + 4  # as documented
        report = db.verify()
        assert not report.ok
        assert "edited" in str(report.log)
        assert answers(db) == wanted(path)
        assert db.verify().ok
    with jitdb.open(path, progress=False) as db:
        assert answers(db) == wanted(path)


def test_without_a_refresh_an_answer_is_of_what_it_was_or_is(path: Path) -> None:
    with jitdb.open(path, progress=False) as db:
        before = answers(db)
        grow(path)
        assert answers(db) == before
        edit_middle(path)
        assert answers(db) == wanted(path)


class TestWhereItIsKept:
    def test_beside_the_file(self, path: Path) -> None:
        with jitdb.open(path, progress=False) as db:
            db.count()
        assert sorted(os.listdir(entry_of(path))) == ["indexes", "lines", "lines-lock"]
        assert sorted(os.listdir(path.parent)) == [".jitdb", path.name]
        data = (entry_of(path) / "lines").read_bytes()
        assert len(data) == 94 + len(path.name)
        assert data.startswith(b"JLINES2\n")
        assert data[88:-4] == bytes([len(path.name), 0]) + path.name.encode()

    def test_in_a_folder(self, path: Path, tmp_path: Path) -> None:
        with jitdb.open(path, tmp_path / "elsewhere", progress=False) as db:
            db.count()
        with jitdb.open(path, tmp_path / "elsewhere", progress=False) as db:
            assert db.explain()["scan_bytes"] == 0
        assert not path.with_name(".jitdb").exists()
        assert (tmp_path / "elsewhere" / "lines").exists()

    def test_nowhere(self, path: Path) -> None:
        with jitdb.open(path, "memory", progress=False) as db:
            assert answers(db) == wanted(path)
        assert os.listdir(path.parent) == [path.name]

    def test_in_the_cache(self, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr(os, "access", lambda place, mode: tmp_path / "cache" in Path(place).parents)
        for _ in range(2):
            with jitdb.open(path, progress=False) as db:
                assert answers(db) == wanted(path)
        assert not path.with_name(".jitdb").exists()
        (folder,) = (tmp_path / "cache" / "jitdb").iterdir()
        assert folder.name.startswith(f"{path.parent.name}-")
        assert (folder / ".jitdb" / str(path.stat().st_ino) / "lines").exists()

    @pytest.mark.parametrize("spoil", [b"", b"JLINES1\n", b"JLINES2\n" + b"\xff" * 88, bytes(102)])
    def test_what_is_spoilt_is_begun_anew(self, path: Path, spoil: bytes) -> None:
        with jitdb.open(path, progress=False) as db:
            answers(db)
        (entry_of(path) / "lines").write_bytes(spoil)
        for _ in range(2):
            with jitdb.open(path, progress=False) as db:
                assert answers(db) == wanted(path)

    def test_a_disk_that_is_full(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import errno

        from jitdb.log.io.osfile import FileSystem

        def full(self: FileSystem, fd: int, data: bytes, offset: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(FileSystem, "write", full)
        with jitdb.open(path, progress=False) as db:
            assert answers(db) == wanted(path)
            grow(path)
            db.log.refresh()
            assert answers(db) == wanted(path)

    def test_two_that_open_it_at_once_give_it_one_name(self, path: Path) -> None:
        with LineLog(path) as one, LineLog(path) as other:
            assert one.identity_is_stored
            assert other.identity_is_stored
            assert one.identity == other.identity


@pytest.mark.parametrize("year", [-400, 300, 470, 7000])
def test_a_file_of_any_time(path: Path, year: int) -> None:
    """Where nanoseconds since 1970 are more than 64 bits."""
    when = year * 31_556_952 * 10**9
    os.utime(path, ns=(when, when))
    for _ in range(2):
        with jitdb.open(path, progress=False) as db:
            assert db.query(field("even") == 1).count() == 50
    grow(path)
    os.utime(path, ns=(when, when))
    with jitdb.open(path, progress=False) as db:
        assert db.query(field("even") == 1).count() == 54
