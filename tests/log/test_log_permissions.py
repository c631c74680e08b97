"""What lies beside a log is its owner's, and as open to others as the log; what is planted there is not followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.errors import LogError
from jitdb.log import Log
from jitdb.log.io import osfile
from jitdb.log.io.osfile import FileSystem
from jitdb.operators import field


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def made(path: Path, mode: int) -> Path:
    path.touch()
    path.chmod(mode)
    return path


def fill(path: Path) -> None:
    """So that each kind of file is made: journals, indexes, a compaction's, a torn end."""
    with Log(path, block_size=512) as log:
        offsets = log.append_many([{"kind": f"kind {number % 3}", "text": "secret"} for number in range(60)])
        log.flush()
        log.delete(offsets[3])
    with jitdb.open(path, progress=False) as db:
        assert db.count(field("kind") == "kind 1") == 20
    with Log(path) as log:
        log.compact()
        log.append({"kind": "more"})
    with open(path, "ab") as file:
        file.write(b"torn")
    with pytest.warns(match="cut off"), Log(path) as log:
        log.delete(0)


def beside(path: Path) -> list[Path]:
    sidecar = path.with_name(path.name + ".jitdb")
    if not sidecar.exists():
        (sidecar,) = path.with_name(".jitdb").iterdir()
    return [sidecar, *sidecar.rglob("*")]


def modes(path: Path) -> set[int]:
    return {stat.S_IMODE(each.stat().st_mode) for each in beside(path) if each.is_file()}


def folder_modes(path: Path) -> set[int]:
    return {stat.S_IMODE(each.stat().st_mode) for each in beside(path) if each.is_dir()}


@pytest.mark.parametrize(("mode", "folders"), [(0o600, 0o700), (0o640, 0o750), (0o644, 0o755), (0o660, 0o770)])
def test_all_beside_a_log_is_as_open_as_the_log(tmp_path: Path, mode: int, folders: int) -> None:
    path = made(tmp_path / "a.log", mode)
    fill(path)
    names = {each.name.partition("-")[0] for each in beside(path)}
    assert {"meta", "commit", "checksums", "deletions", "lock", "indexes", "moved", "torn"} <= names
    assert (modes(path), folder_modes(path)) == ({mode}, {folders})
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o600, 0o640])
@pytest.mark.parametrize("options", [{}, {"allow_prefix": True}, {"each": "all[]"}], ids=["plain", "prefix", "each"])
def test_all_beside_a_file_of_lines_is_as_open_as_the_file(tmp_path: Path, mode: int, options: dict[str, Any]) -> None:
    path = made(tmp_path / "a.ndjson", mode)
    path.write_text('{"kind": 1, "all": [{"kind": 1}]}\n' * 40)
    with jitdb.open(path, progress=False, **options) as db:
        assert db.count(field("kind") == 1) == 40
        db.sets["mine"] = db.query(field("kind") == 1).set()
    assert {"lines", "indexes", "sets"} <= {each.name for each in beside(path)}
    assert modes(path) == {mode}
    assert folder_modes(path) == {mode | 0o100 | (mode & 0o040) >> 2}


def test_what_lies_in_the_cache_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be made beside a file."""
    from jitdb.log.lines.keeping import places

    path = made(tmp_path / "a.ndjson", 0o600)
    path.write_text('{"kind": 1}\n' * 40)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(places, "_is_writable", lambda folder: False)
    with jitdb.open(path, progress=False) as db:
        assert db.count(field("kind") == 1) == 40
    (kept,) = (tmp_path / "cache" / "jitdb").glob("*/.jitdb/*")
    assert (kept / "indexes").is_dir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700


def test_it_follows_when_the_log_is_closed_to_others(tmp_path: Path) -> None:
    path = made(tmp_path / "a.log", 0o644)
    fill(path)
    path.chmod(0o600)
    before = set(beside(path))
    with Log(path) as log:
        log.delete(log.append({"kind": "more"}))
        log.compact()
        log.append({"kind": "last"})
    sidecar, *_ = beside(path)
    assert stat.S_IMODE(sidecar.stat().st_mode) == 0o700  # which closes those of before, too
    fresh = [each for each in beside(path) if each not in before]
    assert {stat.S_IMODE(each.stat().st_mode) for each in fresh} == {0o600}


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o600, 0o644)])
def test_what_is_kept_of_a_file_of_lines_follows_it(tmp_path: Path, before: int, after: int) -> None:
    path = made(tmp_path / "a.ndjson", before)
    path.write_text('{"kind": 1}\n' * 40)
    for mode in (before, after):
        path.chmod(mode)
        with jitdb.open(path, progress=False) as db:
            assert db.count(field("kind") == 1) == 40
        entry, *_ = beside(path)
        assert stat.S_IMODE(entry.stat().st_mode) == mode | 0o100 | (mode & 0o044) >> 2


def test_no_file_is_open_to_others_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Watched(FileSystem):
        def open(self, path: Any, flags: int, mode: int = 0o666) -> int:
            fd = os.open(path, flags, mode)
            status = os.fstat(fd)
            if flags & os.O_CREAT and ".jitdb" in str(path):
                seen.append(stat.S_IMODE(status.st_mode))
                assert flags & os.O_NOFOLLOW
                assert flags & os.O_EXCL
            return fd

        def mkdir(self, path: Path, mode: int = 0o777) -> None:
            os.mkdir(path, mode)
            seen.append(stat.S_IMODE(path.stat().st_mode))

    seen: list[int] = []
    monkeypatch.setattr(osfile, "fs", Watched())
    fill(made(tmp_path / "a.log", 0o600))
    assert len(seen) > 10
    assert not any(mode & 0o077 for mode in seen)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_what_root_writes_stays_the_owners(tmp_path: Path) -> None:
    path = made(tmp_path / "a.log", 0o640)
    os.chown(path, 12345, 54321)
    fill(path)
    assert {(each.stat().st_uid, each.stat().st_gid) for each in [path, *beside(path)]} == {(12345, 54321)}
    assert modes(path) == {0o640}


NAMES = [
    "lock", "meta", "commit", "checksums", "deletions", "moved-2", "next", "next-log", "next-checksums",
    "next-deletions", "meta.PID.tmp", "commit.PID.tmp", "torn-15-0",
]  # fmt: skip


def shared(tmp_path: Path) -> tuple[Path, Path]:
    """A log with records to compact, and its sidecar."""
    path = tmp_path / "a.log"
    with Log(path, codec="raw", block_size=64) as log:
        offset = log.append(b"first")
        log.append(b"second")
        log.delete(offset)
    return path, tmp_path / "a.log.jitdb"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dangling", [False, True], ids=["", "dangling"])
def test_a_planted_link_is_not_followed(tmp_path: Path, name: str, dangling: bool) -> None:
    path, sidecar = shared(tmp_path)
    name = name.replace("PID", str(os.getpid()))
    victim = tmp_path / "victim"
    if not dangling:
        victim.write_bytes(b"precious")
    if name.startswith("torn"):
        with open(path, "ab") as file:
            file.write(b"torn")
    (sidecar / name).unlink(missing_ok=True)
    (sidecar / name).symlink_to(victim)
    said = "remove it"  # or it went well
    try:
        with Log(path) as log:
            log.append(b"third")
            log.compact()
            log.delete(log.append(b"fourth"))
    except LogError as error:
        said = str(error)
    assert "remove it" in said or "exists" in said
    assert not victim.exists() if dangling else victim.read_bytes() == b"precious"


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
@pytest.mark.parametrize("name", ["lock", "meta", "commit", "checksums", "deletions"])
@pytest.mark.parametrize("read_only", [False, True], ids=["writing", "reading"])
def test_what_is_no_file_is_refused_by_name(tmp_path: Path, name: str, kind: str, read_only: bool) -> None:
    path, sidecar = shared(tmp_path)
    with Log(path) as log:
        log.append_many([b"x" * 20] * 100)  # nobody looks for the checksums of a log of one block
    place = sidecar / name
    place.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(path)
    with pytest.raises(LogError, match=f"{name} is a link, a folder, a pipe or a device .*: remove it"):  # noqa: SIM117
        with Log(path, read_only=read_only) as log:
            list(log.stream())


def test_a_sidecar_on_another_disk(tmp_path: Path) -> None:
    """A link that is the folder itself is the log's owner's wish."""
    path = made(tmp_path / "a.log", 0o600)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "a.log.jitdb").symlink_to(elsewhere)
    fill(path)
    assert {each.name for each in elsewhere.iterdir()} >= {"meta", "commit", "indexes"}
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["out.ndjson", "out.ndjson.gz"])
def test_an_export_is_as_open_as_the_log(tmp_path: Path, name: str) -> None:
    from jitdb.cli import main

    path = made(tmp_path / "a.log", 0o640)
    with Log(path) as log:
        log.append({"text": "secret"})
    out = tmp_path / name
    assert main(["export", str(path), "-o", str(out)]) == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o640
    out.chmod(0o604)
    assert main(["export", str(path), "-o", str(out)]) == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o604  # one that is there is its owner's affair
