"""A rotation that compresses leaves no sidecar behind; whatever may be a living file's stays."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from thoroughness import tries

import jitdb
from jitdb.log.lines.keeping.rotation import is_leftover, leftovers
from jitdb.operators import field

ASKED = field("n") >= 0
ASKER = """
import sys
import warnings
import jitdb
from jitdb.operators import field
warnings.simplefilter("error")
for line in sys.stdin:
    with jitdb.open(line.strip(), progress=False) as db:
        print(db.count(field("n") >= 0), flush=True)
"""


def write(path: Path, *numbers: int) -> None:
    with open(path, "a") as file:
        file.writelines(f'{{"n": {number}, "text": "{number:040}"}}\n' for number in numbers)


def count(path: Path, **options: object) -> int:
    with jitdb.open(path, progress=False, **options) as db:  # type: ignore[arg-type]
        return db.count(ASKED)


def pack(path: Path, name: str = "") -> Path:
    """As gzip does it: the file is gone once its copy is whole."""
    packed = path.with_name(name or f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    shutil.copystat(path, packed)
    path.unlink()
    return packed


def sidecars(folder: Path) -> set[str]:
    return {path.name.removesuffix(".jitdb") for path in folder.iterdir() if path.name.endswith(".jitdb")}


@pytest.mark.parametrize("form", [{}, {"allow_prefix": True}, {"each": "[]"}])
@pytest.mark.parametrize("rotated", ["app.log.1", "app.log-20261121", "app-2026-11-21.log"])
def test_who_asks_the_compressed_file_removes_it(tmp_path: Path, rotated: str, form: dict[str, object]) -> None:
    path = tmp_path / "app.log"
    write(path, *range(3000))
    if form.get("each"):
        path.write_text("".join(f"[{line}]\n" for line in path.read_text().splitlines()))
    old = path.rename(tmp_path / rotated)
    assert count(old, **form) == 3000
    packed = pack(old)
    assert sidecars(tmp_path) == {rotated}
    assert count(packed, **form) == 3000
    assert sidecars(tmp_path) == {packed.name}


@pytest.mark.parametrize("is_delayed", [False, True])
@pytest.mark.parametrize("names", [[f"app.log.{number}" for number in range(1, 5)], []], ids=["numbered", "dated"])
def test_a_month_of_rotations_leaves_none(tmp_path: Path, names: list[str], is_delayed: bool) -> None:
    """Only the file that is written is ever asked, before and after each of them."""
    path = tmp_path / "app.log"
    last: Path | None = None
    for day in range(8):
        write(path, *range(1000 * day, 1000 * day + 500))
        assert count(path) == 500
        if last is not None:
            pack(last)
        for older, newer in zip(names[:0:-1], names[-2::-1], strict=True):
            for suffix in ("", ".gz"):
                if (tmp_path / (newer + suffix)).exists():
                    (tmp_path / (newer + suffix)).replace(tmp_path / (older + suffix))
        last = path.rename(tmp_path / (names[0] if names else f"app.log-202611{day + 10}"))
        if not is_delayed:
            pack(last)
            last = None
        elif day % 2:
            assert count(last) == 500
    write(path, 1)
    assert count(path) == 1
    living = {each.name for each in tmp_path.iterdir() if each.is_file()}
    assert sidecars(tmp_path) <= living


def test_two_processes_that_remove_it_at_once(tmp_path: Path) -> None:
    """And others that ask: whoever is later finds nothing, and each answer is right."""
    command = [sys.executable, "-c", ASKER]
    askers = [Popen(command, stdin=PIPE, stdout=PIPE, text=True, cwd=tmp_path) for _ in range(2)]
    for turn in range(tries(8, 300)):
        old = tmp_path / f"app.log-202611{turn % 20 + 10}"
        write(old, *range(turn, turn + 500))
        assert count(old) == 500
        packed = pack(old)
        for asker in askers:
            assert asker.stdin is not None
            asker.stdin.write(f"{packed.name}\n")
            asker.stdin.flush()
        assert [asker.stdout and asker.stdout.readline() for asker in askers] == ["500\n", "500\n"]
        assert sidecars(tmp_path) == {packed.name}
        (tmp_path / f"{packed.name}.jitdb").rename(tmp_path / "done")
        shutil.rmtree(tmp_path / "done")
        packed.unlink()
    for asker in askers:
        asker.communicate(timeout=60)
        assert asker.returncode == 0


def is_kept(tmp_path: Path, packed: Path) -> bool:
    count(packed)
    return "app.log.1" in sidecars(tmp_path)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that was asked."""
    old = tmp_path / "app.log.1"
    write(old, *range(3000))
    count(old)
    return old


def test_one_whose_file_is_there_stays(tmp_path: Path, old: Path) -> None:
    text = old.read_bytes()
    packed = pack(old)
    old.write_bytes(text)
    assert is_kept(tmp_path, packed)


def test_one_whose_file_has_another_name_stays(tmp_path: Path, old: Path) -> None:
    os.link(old, tmp_path / "elsewhere")
    assert is_kept(tmp_path, pack(old))


def test_one_of_another_text_stays(tmp_path: Path, old: Path) -> None:
    write(tmp_path / "other", 5, 6, 7)
    packed = pack(tmp_path / "other", "app.log.1.gz")
    old.unlink()
    assert is_kept(tmp_path, packed)


@pytest.mark.parametrize("name", ["sets", "notes.txt", "prefix"])
def test_one_that_holds_anything_else_stays(tmp_path: Path, old: Path, name: str) -> None:
    (tmp_path / "app.log.1.jitdb" / name).mkdir()
    assert is_kept(tmp_path, pack(old))


def test_one_that_is_a_link_stays(tmp_path: Path, old: Path) -> None:
    sidecar = tmp_path / "app.log.1.jitdb"
    sidecar.rename(tmp_path / "kept")
    sidecar.symlink_to(tmp_path / "kept")
    assert is_kept(tmp_path, pack(old))
    assert (tmp_path / "kept" / "lines").exists()


def test_nothing_is_removed_where_nothing_is_kept(tmp_path: Path, old: Path) -> None:
    packed = pack(old)
    assert count(packed, indexes="memory") == count(packed, indexes=str(tmp_path / "else")) == 3000
    assert "app.log.1" in sidecars(tmp_path)


def test_one_in_the_cache_is_removed_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("jitdb.log.lines.keeping.known._is_writable", lambda _: False)
    logs = tmp_path / "logs"
    logs.mkdir()
    old = logs / "app.log.1"
    write(old, *range(100))
    assert count(old) == 100
    assert not sidecars(logs)
    (kept,) = (tmp_path / "cache" / "jitdb").iterdir()
    assert count(pack(old)) == 100
    assert not kept.exists()


def test_indexes_of_other_forms_are_told_too(tmp_path: Path, old: Path) -> None:
    count(old, allow_prefix=True)
    old.unlink()
    sidecar = tmp_path / "app.log.1.jitdb"
    assert leftovers(str(tmp_path)) == [sidecar]
    (sidecar / "prefix" / "mine").touch()
    assert not is_leftover(sidecar)
