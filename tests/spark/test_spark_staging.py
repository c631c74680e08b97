"""The image of a log that lies on a Hadoop file system, here a local folder: what is sent back, and what never is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jitdb import Log
from jitdb.log.io import filenames
from jitdb.spark_ext.building import hadoop
from jitdb.spark_ext.building.hadoop import Remote, Stage, Stamp, staged
from jitdb.spark_ext.errors import LogChanged, SparkError

BLOCK = 512


class Folder:
    """A log in a local folder in place of one on Hadoop's. `events` happen once, behind the calls of these names."""

    def __init__(self, path: Path, **events: Callable[[], None]) -> None:
        self.uri = str(path)
        self.path = path
        self.sent: list[str] = []
        self.fetched: list[tuple[str, int]] = []  # names, bytes
        self._events = events

    def _happens(self, name: str) -> None:
        self._events.pop(name, lambda: None)()

    def size(self) -> int:
        size = self.path.stat().st_size
        self._happens("size")
        return size

    def time(self) -> int:
        return self.path.stat().st_mtime_ns // 1_000_000 * 1_000_000

    def read(self, start: int, size: int) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(start)
            return file.read(size)

    def files(self, folder: str) -> dict[str, Stamp]:
        where = Path(self.uri + folder)
        every = [each for each in where.iterdir() if each.is_file()] if where.exists() else []
        found = {each.name: Stamp(each.stat().st_size, each.stat().st_mtime_ns // 1_000_000) for each in every}
        self._happens("files")
        return found

    def fetch(self, name: str, target: Path) -> None:
        try:
            shutil.copyfile(self.uri + name, target)
        except OSError as error:
            raise SparkError(f"{self.uri}{name}: cannot be read") from error
        self.fetched.append((name, target.stat().st_size))
        self._happens(f"fetch {name}")

    def check_writable(self, folder: str) -> None:
        Path(self.uri + folder).mkdir(parents=True, exist_ok=True)

    def send(self, source: Path, name: str) -> None:
        shutil.copyfile(source, self.uri + name)
        self.sent.append(name)

    def staged(self) -> Any:
        return staged(cast("Remote", self), None, {"a.index", "b.index"}.__contains__)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return made(tmp_path / "x.log")


def made(path: Path, key: str = "n") -> Path:
    append(path, 500, key)
    return path


def append(path: Path, count: int, key: str = "n") -> None:
    with Log(path, block_size=BLOCK) as log:
        log.append_many([{key: number} for number in range(count)])


def put(source: Path, target: Path) -> None:
    """Another log in the place of one, with its sidecar."""
    shutil.rmtree(filenames.sidecar_path(target))
    shutil.copytree(filenames.sidecar_path(source), filenames.sidecar_path(target))
    shutil.copyfile(source, target)


def scan(stage: Stage, name: str = "a.index") -> None:
    """What a prebuild does with the image."""
    with Log(stage.path, read_only=True) as log:
        stage.begin(log.durable_end, log.block_size)
        folder = log.sidecar / filenames.INDEXES
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"an index")


def prebuilt(remote: Folder, *steps: Callable[[Stage], object]) -> None:
    """All of a prebuild, with what happens meanwhile."""
    with remote.staged() as stage:
        for step in steps:
            step(stage)


def everything(path: Path) -> dict[str, bytes]:
    every = [path, *filenames.sidecar_path(path).rglob("*")]
    return {str(each): each.read_bytes() for each in every if each.is_file() and each.suffix != ".index"}


FETCHED = ["size", "files", "fetch .jitdb/commit", "fetch .jitdb/meta", "fetch .jitdb/checksums"]


@pytest.mark.parametrize("event", FETCHED)
def test_a_log_that_grows_while_it_is_fetched_stays_what_it_is(path: Path, event: str) -> None:
    remote = Folder(path, **{event: lambda: append(path, 500)})
    with remote.staged() as stage:
        with Log(stage.path, read_only=True) as image, Log(path, read_only=True) as log:
            assert (image.identity, image.generation) == (log.identity, log.generation)
            assert image.durable_end == log.durable_end
        before = everything(path)
        scan(stage)
        append(path, 100)  # nobody minds what comes while it is scanned
        after = everything(path)
    assert remote.sent == [".jitdb/indexes/a.index"]
    assert everything(path) == after != before


@pytest.mark.parametrize("event", FETCHED)
def test_a_log_that_is_compacted_while_it_is_fetched_is_fetched_anew(path: Path, event: str) -> None:
    remote = Folder(path, **{event: lambda: _compacted(path)})
    with remote.staged() as stage:
        with Log(stage.path, read_only=True) as image, Log(path, read_only=True) as log:
            assert (image.identity, image.generation) == (log.identity, 2)
            assert image.durable_end == log.durable_end
        scan(stage)
    assert remote.sent == [".jitdb/indexes/a.index"]


def test_what_a_prebuild_does_not_need_is_not_fetched(path: Path) -> None:
    """Other indexes, and what was set aside, may be larger than the log."""
    sidecar = filenames.sidecar_path(path)
    scan(cast("Stage", SimpleNamespace(path=path, begin=lambda *args: None)))
    for name in ("indexes/other.index", "indexes/lock", filenames.torn_name(512, 1), filenames.damaged_name(3, 1)):
        (sidecar / name).write_bytes(bytes(100_000))
    remote = Folder(path)
    with remote.staged():
        pass
    needed = ["checksums", "indexes/a.index", "meta", "commit"]
    assert {name for name, _ in remote.fetched} == {f".jitdb/{name}" for name in needed}
    assert sum(size for _, size in remote.fetched) < 10_000


def test_a_writer_that_died_after_the_image_was_made_has_lost_nothing(path: Path, tmp_path: Path) -> None:
    writer = Log(path)
    try:
        writer.append_many([{"n": number} for number in range(500)])
        writer.flush()
        remote = Folder(path)
        with remote.staged() as stage:
            scan(stage)
            writer.append_many([{"n": number} for number in range(500)])
            writer.flush()
        assert remote.sent == [".jitdb/indexes/a.index"]
        dead = tmp_path / "dead.log"
        shutil.copyfile(path, dead)
        shutil.copytree(filenames.sidecar_path(path), filenames.sidecar_path(dead), ignore=lambda *_: [filenames.LOCK])
        with Log(dead) as log:
            assert sum(1 for _ in log.stream()) == 1500
    finally:
        writer.close()


def _replaced(path: Path) -> None:
    other = made(path.with_name("other.log"), "m")
    assert other.stat().st_size == path.stat().st_size
    put(other, path)


def _compacted(path: Path) -> None:
    with Log(path) as log:
        log.delete(next(iter(log.stream())).offset)
        log.compact()


def _changed(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


EVENTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "another log": (_replaced, "compacted, truncated or replaced"),
    "compacted": (_compacted, "compacted, truncated or replaced"),
    "another first block": (lambda path: _changed(path, 9), "first or last block changed .*expected digest"),
    "another last block": (lambda path: _changed(path, -BLOCK + 9), "first or last block changed .*expected digest"),
    "shorter": (lambda path: path.write_bytes(path.read_bytes()[:-BLOCK]) and None, "truncated .*expected .* bytes"),
}


@pytest.mark.parametrize("name", EVENTS)
def test_what_became_another_log_gets_no_indexes(path: Path, name: str) -> None:
    happens, message = EVENTS[name]
    remote = Folder(path)
    with pytest.raises(LogChanged, match=message):
        prebuilt(remote, scan, lambda _: happens(path))
    assert remote.sent == []


def test_a_second_scan_is_held_against_the_first(path: Path) -> None:
    remote = Folder(path)
    with pytest.raises(LogChanged, match="first or last block"):
        prebuilt(remote, scan, lambda _: _changed(path, 9), scan)
    assert remote.sent == []


def test_a_sidecar_is_made_only_where_there_is_none(path: Path) -> None:
    shutil.rmtree(filenames.sidecar_path(path))
    remote = Folder(path)
    with remote.staged() as stage:
        scan(stage)
        with Log(stage.path, read_only=True) as log:
            identity = log.identity
    assert remote.sent == [".jitdb/meta", ".jitdb/commit", ".jitdb/indexes/a.index"]
    with remote.staged() as stage:
        scan(stage, "b.index")
        with Log(stage.path, read_only=True) as log:
            assert log.identity == identity
    assert remote.sent[3:] == [".jitdb/indexes/b.index"]


def test_a_sidecar_without_an_identity_gets_one(path: Path) -> None:
    (filenames.sidecar_path(path) / filenames.META).unlink()
    remote = Folder(path)
    prebuilt(remote, scan)
    assert remote.sent == [".jitdb/meta", ".jitdb/indexes/a.index"]


@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
def test_no_identity_is_believed_without_the_commit_journal(path: Path) -> None:
    (filenames.sidecar_path(path) / filenames.COMMIT).unlink()
    remote = Folder(path)
    with pytest.raises(SparkError, match="not the log that its sidecar tells of"):
        prebuilt(remote, scan)
    assert remote.sent == []


def test_a_sidecar_that_somebody_made_meanwhile_stays(path: Path) -> None:
    shutil.rmtree(filenames.sidecar_path(path))
    remote = Folder(path)
    with pytest.raises(LogChanged, match="start again"):
        prebuilt(remote, scan, lambda _: Log(path, read_only=True).close())
    assert remote.sent == []


@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
def test_a_log_that_its_sidecar_does_not_tell_of_is_not_scanned(path: Path, tmp_path: Path) -> None:
    path.write_bytes(made(tmp_path / "other.log", "m").read_bytes()[: 4 * BLOCK])
    remote = Folder(path)
    with pytest.raises(SparkError, match=r"not the log that its sidecar tells of.*or remove .*x\.log\.jitdb"):
        prebuilt(remote, scan)
    assert remote.sent == []


def test_a_damaged_sidecar_is_told(path: Path) -> None:
    (filenames.sidecar_path(path) / filenames.META).write_bytes(b"JITDBLOG")
    with pytest.raises(SparkError, match=r"x\.log\.jitdb/meta: damaged, expected 76 bytes .*got 8"):
        prebuilt(Folder(path))


def test_a_log_that_is_changing_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop, "PAUSE", 0.001)
    sign = filenames.sidecar_path(path) / filenames.NEXT
    sign.write_bytes(b"")
    with pytest.raises(LogChanged, match="at this very moment, again and again"):
        prebuilt(Folder(path))
    looks = [sign.unlink]
    remote = Folder(path, files=lambda: monkeypatch.setattr(hadoop.time, "sleep", lambda _: looks.pop()()))
    prebuilt(remote, scan)
    assert not looks
    assert remote.sent == [".jitdb/indexes/a.index"]
