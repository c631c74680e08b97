"""What lies beside a log is no file, or may not be read or written: who meets it is told which, and nothing is lost.

Every file of the sidecar and of the folder of indexes, in every odd way, under every operation.
"""

from __future__ import annotations

import errno
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from thoroughness import combined

import jitdb
from jitdb import Log
from jitdb.cli import main
from jitdb.errors import JitdbError, JitdbWarning
from jitdb.indexes.files.folder import known_indexes
from jitdb.log.io import osfile
from jitdb.log.io.osfile import FileSystem
from jitdb.operators import field

KIND = field("kind") == "kind 1"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with something in each file that may lie beside one."""
    path = tmp_path_factory.mktemp("template") / "a.log"
    with Log(path, block_size=512) as log:
        offsets = log.append_many([{"kind": f"kind {number % 3}", "n": number} for number in range(60)])
        log.delete(offsets[1])
    with jitdb.open(path, progress=False) as db:
        db.count(KIND)
        db.compact()
        db.log.delete(db.all(KIND, as_offsets=True)[0])
        assert db.count(KIND) == 18
    for name in ("torn-5-0", "meta.1.tmp", "indexes/more.index"):
        (sidecar_of(path) / name).write_bytes(b"bytes of before")
    return path


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileSystem, "fsync", lambda self, fd: None)


def sidecar_of(path: Path) -> Path:
    return path.with_name(path.name + ".jitdb")


def records(path: Path) -> list[Any]:
    with Log(path) as log:
        return [record.value for record in log.stream()]


FILES = [
    "lock", "meta", "commit", "checksums", "deletions", "moved-2", "torn-5-0", "meta.1.tmp", "mend", "next",
    "indexes", "indexes/lock", "indexes/kind", "indexes/offsets", "indexes/more.index",
]  # fmt: skip


class Refusing(FileSystem):
    """One file or folder may not be read, or the names in a folder not be changed, or nothing in it be written."""

    def __init__(
        self, number: int = errno.EACCES, *, unreadable: Path | None = None, fixed: Path | None = None
    ) -> None:
        self._unreadable, self._fixed, self._number = unreadable, fixed, number

    def _read(self, path: str | os.PathLike[str]) -> None:
        if self._unreadable == Path(path):
            self._refuse(path)

    def _change(self, path: str | os.PathLike[str]) -> None:
        if self._fixed == Path(path).parent:
            self._refuse(path)

    def _refuse(self, path: str | os.PathLike[str]) -> None:
        raise OSError(self._number, os.strerror(self._number), os.fspath(path))

    def open(self, path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> int:  # type: ignore[override]
        self._read(path)
        writes = self._number == errno.EROFS and flags & os.O_ACCMODE != os.O_RDONLY
        if writes or (flags & os.O_CREAT and not os.path.exists(path)):
            self._change(path)
        return os.open(path, flags, mode)

    def listdir(self, folder: Path) -> list[str]:
        self._read(folder)
        return os.listdir(folder)

    def unlink(self, path: Path) -> None:
        self._change(path)
        os.unlink(path)

    def rename(self, source: Path, target: Path) -> None:
        self._change(source)
        self._change(target)
        os.replace(source, target)

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        self._change(path)
        os.mkdir(path, mode)


def folder(place: Path) -> None:
    place.mkdir()
    (place / "mine").write_bytes(b"precious")


def link(place: Path) -> None:
    victim = place.with_name("victim")
    victim.write_bytes(b"precious")
    place.symlink_to(victim)


def dangling(place: Path) -> None:
    place.symlink_to(place.with_name("nowhere"))


PLANTED: dict[str, Callable[[Path], None]] = {"pipe": os.mkfifo, "folder": folder, "link": link, "dangling": dangling}


def on_log(work: Callable[[Log], Any], *, read_only: bool = False) -> Callable[[Path], int]:
    def run(path: Path) -> int:
        with Log(path, read_only=read_only) as log:
            work(log)
        return 0

    return run


def on_db(work: Callable[[jitdb.JITDB], Any], *, read_only: bool = False) -> Callable[[Path], int]:
    def run(path: Path) -> int:
        with jitdb.open(path, read_only=read_only, progress=False) as db:
            work(db)
        return 0

    return run


def compact(db: jitdb.JITDB) -> None:
    db.compact()
    db.count(KIND)


def command(name: str, *rest: str) -> Callable[[Path], int]:
    return lambda path: main([name, str(path), *rest])


OPERATIONS: dict[str, Callable[[Path], int]] = {
    "append": on_log(lambda log: log.delete(log.append({"kind": "gone"}))),
    "stream": on_log(lambda log: list(log.stream()), read_only=True),
    "verify": on_db(lambda db: db.verify()),
    "reader's verify": on_db(lambda db: db.verify(0.5), read_only=True),
    "repair": on_db(lambda db: db.repair()),
    "compact": on_db(compact),
    "count": on_db(lambda db: db.count(KIND)),
    "explain": on_db(lambda db: db.explain(KIND), read_only=True),
    "drop_index": on_db(lambda db: [db.drop_index(name) for name in known_indexes(osfile.fs, db.folder)]),
    "jitdb verify": command("verify"),
    "jitdb repair": command("repair"),
    "jitdb info": command("info"),
    "jitdb indexes": command("indexes"),
    "jitdb indexes --forget": command("indexes", "--forget"),
}


@pytest.fixture
def log(template: Path, tmp_path: Path) -> Path:
    """A copy of the template."""
    shutil.copy2(template, tmp_path / "a.log")
    shutil.copytree(sidecar_of(template), tmp_path / "a.log.jitdb")
    return tmp_path / "a.log"


def place_of(path: Path, name: str) -> Path:
    found = sidecar_of(path) / name
    return next(found.parent.glob(f"{found.name}.*.index"), found) if found.parent.name == "indexes" else found


def outcome(what: str, path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What it was told of who did this; empty where it went well. Nothing but a JitdbError may come out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = OPERATIONS[what](path)
        except JitdbError as error:
            return str(error)
    said = capsys.readouterr()
    assert code == 0 or (code == 1 and said.err + said.out)
    assert "mistake in jitdb" not in said.err
    return said.err + said.out if code else ""


def nothing_is_lost(path: Path, before: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JitdbWarning)
        assert records(path) == before
    assert {each.read_bytes() for each in sidecar_of(path).rglob("victim")} <= {b"precious"}


@pytest.mark.parametrize(("name", "kind", "what"), combined(4, FILES, PLANTED, OPERATIONS))
def test_what_is_no_file_is_told_by_name(
    log: Path, name: str, kind: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = records(log)
    place = place_of(log, name)
    saved = log.with_name("saved")
    if os.path.lexists(place):
        place.rename(saved)
    PLANTED[kind](place)
    said = outcome(what, log, capsys)
    assert not said or place.name in said or "verify" in what
    if kind == "folder":
        assert (place / "mine").read_bytes() == b"precious"
    if not place.is_file() or place.is_symlink():
        shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink(missing_ok=True)
        if saved.exists():
            saved.rename(place)
    nothing_is_lost(log, before)


@pytest.mark.parametrize("what", OPERATIONS)
@pytest.mark.parametrize("name", [*FILES, ""])
def test_what_may_not_be_read_is_told_by_name(
    log: Path, name: str, what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = records(log)
    place = place_of(log, name)
    with monkeypatch.context() as patch:
        patch.setattr(osfile, "fs", Refusing(unreadable=place))
        said = outcome(what, log, capsys)
    assert not said or place.name in said or "verify" in what
    nothing_is_lost(log, before)


@pytest.mark.parametrize("what", OPERATIONS)
@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
@pytest.mark.parametrize("name", ["", "indexes"])
def test_a_folder_that_may_not_be_written_is_told_by_name(
    log: Path, name: str, number: int, what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = records(log)
    place = place_of(log, name)
    with monkeypatch.context() as patch:
        patch.setattr(osfile, "fs", Refusing(number, fixed=place))
        said = outcome(what, log, capsys)
    assert not said or place.name in said or "verify" in what
    nothing_is_lost(log, before)
