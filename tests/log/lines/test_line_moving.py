"""Files that are rotated: their indexes go along, and whatever is moved or lost meanwhile, answers stay right."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import pytest
from homes import entries_beside
from thoroughness import tries

import jitdb
from jitdb import Log
from jitdb.log.lines.keeping import leaving
from jitdb.operators import field

ASKED = field("n") >= 0


def write(path: Path, *numbers: int) -> None:
    with open(path, "a") as file:
        file.writelines(f'{{"n": {number}, "text": "{number:040}"}}\n' for number in numbers)


def asked(path: Path, **options: object) -> tuple[int, list[int]]:
    """The bytes to scan for a question, and its answer."""
    with jitdb.open(path, read_only=True, progress=False, **options) as db:  # type: ignore[arg-type]
        unknown = db.explain(ASKED)["scan_bytes"]
        return unknown, [record["n"] for record in db.query(ASKED).sort_by_arrival()]


def settled() -> None:
    time.sleep(0.03)  # so that the times of a file tell of a change from now on


@pytest.mark.parametrize("rotated", ["app.log.1", "app.log-20261121", "app-2026-11-21.log", "app.2026-11-21T10.log"])
@pytest.mark.parametrize("is_first", [False, True], ids=["new one first", "old one first"])
@pytest.mark.parametrize("grows", [False, True])
def test_the_indexes_of_a_renamed_file_are_found(tmp_path: Path, rotated: str, is_first: bool, grows: bool) -> None:
    path, old = tmp_path / "app.log", tmp_path / rotated
    write(path, *range(1000))
    size = path.stat().st_size
    assert asked(path) == (size, [*range(1000)])
    settled()
    path.rename(old)
    if grows:
        write(old, 1000)
    write(path, 2000, 2001)
    wanted = [*range(1001 if grows else 1000)]
    for name in (old, path) if is_first else (path, old):
        scanned, numbers = asked(name)
        assert numbers == (wanted if name == old else [2000, 2001])
        assert scanned == name.stat().st_size - (size if name == old else 0)
    assert asked(old)[0] == asked(path)[0] == 0


def test_all_of_a_rotation_move_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As logrotate does it, with the oldest one deleted, and files asked in any order, or not at all."""
    random_ = random.Random(3)
    names = [tmp_path / name for name in ("app.log", *(f"app.log.{number}" for number in range(1, 5)))]
    for turn in range(tries(12, 200)):
        write(names[0], *range(100 * turn, 100 * turn + 60))
        order = random_.sample(names, random_.randrange(6) if turn % 2 else 5)
        for name in order:
            if name.exists():
                number = turn - names.index(name)
                assert asked(name)[1] == [*range(100 * number, 100 * number + 60)]
        if turn % 2 == 0:
            assert [asked(name)[0] for name in order if name.exists()] == [0] * sum(map(os.path.exists, names))
        settled()
        for older, newer in zip(names[:0:-1], names[-2::-1], strict=True):
            if newer.exists():
                newer.replace(older)
    monkeypatch.setattr(leaving, "_GRACE", 0.0)
    write(names[0], 7)
    assert asked(names[0])[1] == [7]
    assert entries_beside(tmp_path) <= {str(each.stat().st_ino) for each in names}
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == [".jitdb"]


def test_rotation_costs_nothing_for_any_that_was_asked(tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("app.log", "app.log.1", "app.log.2", "app.log.3")]
    for number, name in enumerate(names):
        write(name, *range(1000 * number, 1000 * number + 500))
        asked(name)
    settled()
    for older, newer in zip(names[:0:-1], names[-2::-1], strict=True):
        newer.replace(older)
    write(names[0], 7)
    asked(names[0])  # which others must not suffer from
    for number, name in enumerate(names[1:]):
        assert asked(name) == (0, [*range(1000 * number, 1000 * number + 500)])


def test_a_file_that_was_copied_and_truncated(tmp_path: Path) -> None:
    path, copy = tmp_path / "app.log", tmp_path / "app.log.1"
    write(path, *range(1000))
    asked(path)
    settled()
    shutil.copyfile(path, copy)
    os.truncate(path, 0)
    write(path, 5)
    assert asked(path)[1] == [5]
    assert asked(copy) == (0, [*range(1000)])


def test_a_folder_that_is_not_ours_stays(tmp_path: Path) -> None:
    """The log of this library that took the name of a file, and one whose folder tells of that file's inode."""
    path, old = tmp_path / "app.log", tmp_path / "app.log.1"
    write(path, 1, 2)
    asked(path)
    with Log(old) as log:
        log.append({"n": 9})
    kept = sorted(each.name for each in (tmp_path / "app.log.1.jitdb").iterdir())
    path.rename(tmp_path / "app.log.2")
    write(path, 3)
    assert asked(path)[1] == [3]
    assert asked(old)[1] == [9]
    assert sorted(each.name for each in (tmp_path / "app.log.1.jitdb").iterdir() if each.name != "indexes") == kept


def test_another_file_of_the_same_inode_is_scanned(tmp_path: Path) -> None:
    path, old = tmp_path / "app.log", tmp_path / "app.log.1"
    write(path, *range(100))
    asked(path)
    settled()
    path.rename(old)
    os.truncate(old, 0)
    write(old, *range(500, 700))
    write(path, 1)
    assert asked(path)[1] == [1]
    assert asked(old)[1] == [*range(500, 700)]


def test_two_names_of_one_file_have_one_entry(tmp_path: Path) -> None:
    path, other = tmp_path / "app.log", tmp_path / "app.log.1"
    write(path, 1, 2)
    asked(path)
    os.link(path, other)
    for _ in range(2):
        assert asked(other) == asked(path) == (0, [1, 2])
    assert len(entries_beside(tmp_path)) == 1


def test_lines_with_text_before_them(tmp_path: Path) -> None:
    path, old = tmp_path / "app.log", tmp_path / "app.log.1"
    with open(path, "w") as file:
        file.writelines(f'stdout F {{"n": {number}}}\n' for number in range(300))
    assert asked(path, allow_prefix=True)[1] == [*range(300)]
    settled()
    path.rename(old)
    path.write_text('stdout F {"n": 1}\n')
    assert asked(path, allow_prefix=True)[1] == [1]
    assert asked(old, allow_prefix=True) == (0, [*range(300)])
