"""What is kept of a file goes with it, and with the text that was in it; what may be a living file's stays."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from homes import entries_beside, entry_of
from thoroughness import tries

import jitdb
from jitdb.indexes.files.folder import take_locks
from jitdb.log.io import osfile
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
SECRET = b"0000000secret"  # in texts


def write(path: Path, *numbers: int, word: str = "") -> None:
    with open(path, "a") as file:
        file.writelines(f'{{"n": {number}, "text": "{number:040}", "word": "{word}{number}"}}\n' for number in numbers)


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


def inodes(*paths: Path) -> set[str]:
    return {str(path.stat().st_ino) for path in paths}


@pytest.mark.parametrize("form", [{}, {"allow_prefix": True}, {"each": "[]"}])
@pytest.mark.parametrize("rotated", ["app.log.1", "app.log-20261121", "app-2026-11-21.log"])
def test_who_asks_the_compressed_file_removes_it(tmp_path: Path, rotated: str, form: dict[str, object]) -> None:
    path = tmp_path / "app.log"
    write(path, *range(3000))
    if form.get("each"):
        path.write_text("".join(f"[{line}]\n" for line in path.read_text().splitlines()))
    old = path.rename(tmp_path / rotated)
    assert count(old, **form) == 3000
    (before,) = entries_beside(tmp_path)
    packed = pack(old)
    assert entries_beside(tmp_path) == {before}
    assert count(packed, **form) == 3000
    (after,) = entries_beside(tmp_path)
    assert after.partition("-")[0] == str(packed.stat().st_ino)


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
    for entry in (tmp_path / ".jitdb").iterdir():
        long_ago(entry)
    write(path, 1)
    assert count(path) == 1
    assert entries_beside(tmp_path) <= inodes(*(each for each in tmp_path.iterdir() if each.is_file()))


def long_ago(entry: Path) -> None:
    """Nobody touched it for an hour."""
    for each in (*entry.iterdir(), entry):
        os.utime(each, (time.time() - 3700,) * 2)


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
        assert entries_beside(tmp_path) == inodes(packed)
        (tmp_path / ".jitdb").rename(tmp_path / "done")
        shutil.rmtree(tmp_path / "done")
        packed.unlink()
    for asker in askers:
        asker.communicate(timeout=60)
        assert asker.returncode == 0


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that was asked."""
    old = tmp_path / "app.log.1"
    write(old, *range(3000), word="secret")
    with jitdb.open(old, progress=False) as db:
        assert db.count(ASKED) == len(db.value_counts("word").as_dict()) == 3000
    assert tells(tmp_path, b"secret7")
    return old


def tells(folder: Path, text: bytes) -> bool:
    """Whether any file in the store has this text."""
    return any(text in each.read_bytes() for each in (folder / ".jitdb").rglob("*") if each.is_file())


def touch_another(folder: Path) -> None:
    write(folder / "another.log", 1, 2)
    assert count(folder / "another.log") >= 2


class TestGone:
    """A file that is nowhere in its folder."""

    def test_it_stays_for_an_hour(self, tmp_path: Path, old: Path) -> None:
        entry = entry_of(old)
        old.rename(tmp_path.parent / "away")
        touch_another(tmp_path)
        assert entry.exists()
        (tmp_path.parent / "away").rename(old)
        with jitdb.open(old, progress=False) as db:
            assert db.explain(ASKED)["scan_bytes"] == 0

    def test_it_goes_after_that(self, tmp_path: Path, old: Path) -> None:
        entry = entry_of(old)
        long_ago(entry)
        write(tmp_path / "another.log", 0)  # lest it gets the inode
        old.unlink()
        touch_another(tmp_path)
        assert not entry.exists()
        assert not [each for each in (tmp_path / ".jitdb").iterdir() if each.name.startswith(".")]

    def test_it_stays_while_somebody_builds(self, tmp_path: Path, old: Path) -> None:
        entry = entry_of(old)
        long_ago(entry)
        held = take_locks(osfile.fs, entry / "indexes", ["any.index"])
        assert held is not None
        old.unlink()
        with held:
            touch_another(tmp_path)
        assert entry.exists()

    @pytest.mark.parametrize("name", ["sets", "notes.txt"])
    def test_it_stays_with_what_cannot_be_made_again(self, tmp_path: Path, old: Path, name: str) -> None:
        entry = entry_of(old)
        (entry / name).mkdir()
        long_ago(entry)
        count(pack(old))
        touch_another(tmp_path)
        assert (entry / name).exists()

    def test_one_that_a_listing_shows_wrongly_stays(
        self, tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As of a file that is mounted there: the listing has the inode of what is beneath."""
        entry = entry_of(old)
        long_ago(entry)
        scandir = os.scandir

        class Wrong:
            def __init__(self, found: os.DirEntry[str]) -> None:
                self.name, self.stat, self.is_file, self.path = found.name, found.stat, found.is_file, found.path

            def inode(self) -> int:
                return 1

        @contextmanager
        def wrong(folder: Path) -> Iterator[Iterator[Wrong]]:
            with scandir(folder) as found:
                yield map(Wrong, found)

        monkeypatch.setattr(os, "scandir", wrong)
        touch_another(tmp_path)
        assert entry.exists()

    @pytest.mark.parametrize("is_linked", [False, True])
    def test_one_that_has_another_name_stays(self, tmp_path: Path, old: Path, is_linked: bool) -> None:
        entry = entry_of(old)
        long_ago(entry)
        (os.link if is_linked else os.rename)(old, tmp_path / "elsewhere")
        if is_linked:
            old.unlink()
        write(old, 5)
        assert count(old) == 1
        assert entry.exists()

    def test_nothing_is_removed_where_nothing_is_kept(self, tmp_path: Path, old: Path) -> None:
        entry = entry_of(old)
        packed = pack(old)
        assert count(packed, indexes="memory") == count(packed, indexes=str(tmp_path / "else")) == 3000
        assert entry.exists()

    def test_one_in_the_cache_is_removed_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr("jitdb.log.lines.keeping.places._is_writable", lambda _: False)
        logs = tmp_path / "logs"
        logs.mkdir()
        old = logs / "app.log.1"
        write(old, *range(100))
        assert count(old) == 100
        assert not entries_beside(logs)
        (kept,) = (tmp_path / "cache" / "jitdb").glob("*/.jitdb/*")
        assert count(pack(old)) == 100
        assert not kept.exists()


class TestAnotherText:
    """Nothing that was deleted from a file is kept."""

    def test_a_file_that_is_saved_anew(self, tmp_path: Path, old: Path) -> None:
        """By an editor, under another inode."""
        entry = entry_of(old)
        fresh = tmp_path / "fresh"
        write(fresh, *range(3000), word="public")
        fresh.replace(old)
        assert count(old) == 3000
        assert not entry.exists()
        assert not tells(tmp_path, b"secret")

    @pytest.mark.parametrize("is_shorter", [False, True])
    def test_a_file_that_is_written_over(self, tmp_path: Path, old: Path, is_shorter: bool) -> None:
        with open(old, "w"):
            pass
        write(old, *range(10 if is_shorter else 6000), word="public")
        with jitdb.open(old, progress=False):
            pass
        assert not tells(tmp_path, b"secret")
        assert count(old) == (10 if is_shorter else 6000)

    def test_a_file_that_is_edited_in_its_middle(self, tmp_path: Path) -> None:
        """Its size and its ends stay."""
        path = tmp_path / "a.log"
        write(path, *range(3000), word="")
        path.write_text(path.read_text().replace('"word": "1500"', '"word": "secret"'))
        with jitdb.open(path, progress=False) as db:
            assert db.count(ASKED) == len(db.value_counts("word").as_dict()) == 3000
        assert tells(tmp_path, b"secret")
        time.sleep(0.03)  # until a change shows in its times
        with open(path, "r+b") as file:
            file.seek(path.read_bytes().index(b"secret"))
            file.write(b"public")
        assert count(path) == 3000
        assert not tells(tmp_path, b"secret")

    def test_in_all_forms(self, tmp_path: Path, old: Path) -> None:
        with jitdb.open(old, progress=False, allow_prefix=True) as db:
            assert len(db.value_counts("word").as_dict()) == 3000
        shutil.rmtree(entry_of(old))
        assert tells(tmp_path, b"secret")
        assert count(old) == 3000
        os.truncate(old, 0)
        write(old, *range(10), word="public")
        assert count(old) == 10
        assert not tells(tmp_path, b"secret")
        assert count(old, allow_prefix=True) == 10

    def test_it_goes_to_the_copy_of_before(self, tmp_path: Path, old: Path) -> None:
        shutil.copyfile(old, tmp_path / "app.log.2")
        os.truncate(old, 0)
        write(old, *range(10), word="public")
        assert count(old) == 10
        with jitdb.open(tmp_path / "app.log.2", progress=False) as db:
            assert db.explain(ASKED)["scan_bytes"] == 0
            assert db.count(ASKED) == 3000
        assert entries_beside(tmp_path) == inodes(old, tmp_path / "app.log.2")

    def test_a_file_that_was_copied_back(self, tmp_path: Path, old: Path) -> None:
        """It begins and ends as the one did that had its name: what was kept is its own."""
        shutil.copyfile(old, tmp_path / "copy")
        old.unlink()
        (tmp_path / "copy").rename(old)
        size = old.stat().st_size
        write(old, 3000)
        with jitdb.open(old, progress=False) as db:
            assert db.count(field("n") == 3000) == 1
            assert db.explain(ASKED)["scan_bytes"] == old.stat().st_size - size
            assert db.count(ASKED) == 3001
        assert entries_beside(tmp_path) == inodes(old)
