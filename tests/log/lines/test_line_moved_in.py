"""Folders that an earlier version put beside each file (`NAME.jitdb`) are read, and moved into the store."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from homes import entries_beside, entry_of
from stepping import Stepping
from thoroughness import tries

import jitdb
from jitdb import Log
from jitdb.common.zlib import crc32
from jitdb.log.io import osfile
from jitdb.operators import field

pytestmark = pytest.mark.filterwarnings("error")

ASKED = field("n") >= 0
ASKER = """
import sys
import jitdb
from jitdb.operators import field
for line in sys.stdin:
    with jitdb.open(line.strip(), progress=False) as db:
        print(db.explain(field("n") >= 0)["scan_bytes"], db.count(field("n") >= 0), flush=True)
"""


def write(path: Path, count: int) -> None:
    path.write_text("".join(f'{{"n": {number}}}\n' for number in range(count)))


def asked(path: Path, **options: object) -> tuple[int, int]:
    """The bytes to scan for a question, and its answer."""
    with jitdb.open(path, progress=False, **options) as db:  # type: ignore[arg-type]
        return db.explain(ASKED)["scan_bytes"], db.count(ASKED)


def put_back(path: Path, *tags: str) -> Path:
    """Bring what is kept of a file to where it was before, as it was written then."""
    sidecar = path.with_name(f"{path.name}.jitdb")
    for tag in tags or ("",):
        entry = entry_of(path, tag)
        data = (entry / "lines").read_bytes()[:88].replace(b"JLINES2", b"JLINES1")
        (entry / "lines").write_bytes(data + struct.pack("<I", crc32(data)))
        sidecar.mkdir(exist_ok=True)
        for each in entry.iterdir():
            (sidecar / tag).mkdir(exist_ok=True)
            each.rename(sidecar / tag / each.name)
        entry.rmdir()
    if path.with_name(".jitdb").exists() and not entries_beside(path.parent):
        path.with_name(".jitdb").rmdir()
    return sidecar


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.ndjson"
    write(path, 1000)
    asked(path)
    return path


def test_it_is_moved_when_the_file_is_opened(path: Path) -> None:
    sidecar = put_back(path)
    with jitdb.open(path, progress=False):
        pass
    assert not sidecar.exists()
    assert sorted(os.listdir(entry_of(path))) == ["indexes", "lines", "lines-lock"]
    assert asked(path) == (0, 1000)


def test_with_other_forms_and_with_sets(path: Path) -> None:
    asked(path, allow_prefix=True)
    with jitdb.open(path, progress=False) as db:
        db.sets["mine"] = db.query(field("n") < 5).set()
    sidecar = put_back(path, "", "prefix")
    assert asked(path, allow_prefix=True) == asked(path) == (0, 1000)
    assert not sidecar.exists()
    with jitdb.open(path, progress=False) as db:
        assert len(db.sets["mine"]) == 5


def test_another_form_alone(tmp_path: Path) -> None:
    write(path := tmp_path / "a.ndjson", 10)
    asked(path, allow_prefix=True)
    sidecar = put_back(path, "prefix")
    assert asked(path)[1] == 10
    assert asked(path, allow_prefix=True) == (0, 10)
    assert not sidecar.exists()


def test_those_of_files_that_were_rotated_since(path: Path) -> None:
    put_back(path)
    old = path.rename(path.with_name("a.ndjson.1"))
    write(path, 10)
    assert asked(path)[1] == 10
    assert asked(old) == (0, 1000)
    assert entries_beside(path.parent) == {str(each.stat().st_ino) for each in (path, old)}


def test_one_that_is_gone_by_now_leaves_nothing(path: Path) -> None:
    sidecar = put_back(path)
    (path.parent / "new").write_text('{"n": 1}\n')
    (path.parent / "new").replace(path)
    assert asked(path)[1] == 1
    assert not sidecar.exists()
    assert entries_beside(path.parent) == {str(path.stat().st_ino)}


def test_one_of_a_log_of_jitdb_stays(path: Path) -> None:
    with Log(path.with_name("own.log")) as log:
        log.append({"n": 1})
    before = sorted(os.listdir(path.with_name("own.log.jitdb")))
    put_back(path)
    assert asked(path) == (0, 1000)
    assert sorted(os.listdir(path.with_name("own.log.jitdb"))) == before


def test_a_link_to_another_disk_is_used_where_it_is(path: Path, tmp_path: Path) -> None:
    sidecar = put_back(path)
    sidecar.rename(tmp_path / "disk")
    sidecar.symlink_to(tmp_path / "disk")
    assert asked(path) == (0, 1000)
    assert sidecar.is_symlink()
    assert not entries_beside(tmp_path)


def test_one_that_an_earlier_version_made_again_goes(path: Path) -> None:
    sidecar = put_back(path)
    kept = {each.name: each.read_bytes() for each in sidecar.iterdir() if each.is_file()}
    assert asked(path) == (0, 1000)
    sidecar.mkdir()
    for name, data in kept.items():
        (sidecar / name).write_bytes(data)
    assert asked(path) == (0, 1000)
    assert not sidecar.exists()


def test_two_processes_at_once(path: Path) -> None:
    command = [sys.executable, "-c", ASKER]
    askers = [Popen(command, stdin=PIPE, stdout=PIPE, text=True, cwd=path.parent) for _ in range(2)]
    for _ in range(tries(10, 300)):
        put_back(path)
        for asker in askers:
            assert asker.stdin is not None
            asker.stdin.write(f"{path.name}\n")
            asker.stdin.flush()
        assert [asker.stdout and asker.stdout.readline() for asker in askers] == ["0 1000\n"] * 2
        assert entries_beside(path.parent) == {str(path.stat().st_ino)}
    for asker in askers:
        asker.communicate(timeout=60)
        assert asker.returncode == 0


class Dying(Stepping):
    """The process ends before the call of this number."""

    STEPS = ("mkdir", "open", "rename", "pwrite", "unlink", "rmdir")

    def __init__(self, at: int) -> None:
        self._at, self.calls = at, 0

    def step(self) -> None:
        self.calls += 1
        if self.calls >= self._at:
            raise KeyboardInterrupt


def test_one_that_dies_meanwhile_leaves_the_rest_to_the_next(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(path, allow_prefix=True)
    for at in range(1, 60):
        sidecar = put_back(path, "", "prefix")
        dying = Dying(at)
        with monkeypatch.context() as patched:
            patched.setattr(osfile, "fs", dying)
            try:
                jitdb.open(path, progress=False).close()
                is_done = True
            except KeyboardInterrupt:
                is_done = False
        assert asked(path) == asked(path, allow_prefix=True) == (0, 1000), at
        assert not sidecar.exists()
        if is_done:
            break
    assert is_done
    assert at > 5
