"""What an index does whose file cannot be read or written, or is not what was written: it is told of, and answers."""

from __future__ import annotations

import builtins
import errno
import os
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from index_cases import LOG, MSGPACK, contents, spans_of

from jitdb import JITDB, Log
from jitdb.catalog import Catalog
from jitdb.errors import IndexWarning
from jitdb.indexes import index as index_module
from jitdb.indexes.bitmap import make_bitmaps
from jitdb.indexes.index import Index
from jitdb.indexes.prefix import make_prefixes
from jitdb.indexes.roaring import bitmap_of
from jitdb.indexes.segment import BITMAPS, PREFIXES
from jitdb.indexes.spec import OFFSETS, IndexSpec
from jitdb.operators import equal
from jitdb.values import value_key

RECORDS = [{"type": "post" if number % 3 else "vote", "n": number} for number in range(500)]
POSTS = sum(1 for record in RECORDS if record["type"] == "post")
QUESTION = equal("type", "post")
ERRORS = [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "x.log", codec="msgpack", block_size=1024) as log:
        log.append_many(RECORDS)
        log.flush()
        yield log


def grows(db: JITDB) -> None:
    """The database answers rightly now, and after each of some more records."""
    assert db.count(QUESTION) == POSTS
    for more in range(1, 13):
        db.log.append({"type": "post"})  # type: ignore[attr-defined]
        db.log.flush()  # type: ignore[attr-defined]
        assert db.count(QUESTION) == POSTS + more


def told(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(one.message) for one in caught if issubclass(one.category, IndexWarning)]


def test_a_folder_that_is_a_file(log: Log, tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"mine")
    with pytest.warns(IndexWarning, match="kept in memory"):
        grows(JITDB(log, tmp_path / "taken"))
    assert (tmp_path / "taken").read_bytes() == b"mine"


def test_a_folder_below_a_file(log: Log, tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"mine")
    with pytest.warns(IndexWarning, match="kept in memory"):
        grows(JITDB(log, tmp_path / "taken" / "indexes"))


def test_an_index_whose_name_is_taken_by_a_folder(log: Log, tmp_path: Path) -> None:
    (tmp_path / "ix" / OFFSETS.file_name()).mkdir(parents=True)
    with pytest.warns(IndexWarning, match="kept in memory"):
        grows(JITDB(log, tmp_path / "ix"))


class Failing:
    """A module of which one function fails with this error from some call on."""

    def __init__(self, module: Any, name: str, code: int, calls: int) -> None:
        self._module, self._name, self._code, self._calls = module, name, code, calls

    def __getattr__(self, name: str) -> Any:
        original = getattr(self._module, name)
        if name != self._name:
            return original

        def fails(*args: Any, **options: Any) -> Any:
            self._calls -= 1
            if self._calls < 0:
                raise OSError(self._code, os.strerror(self._code))
            return original(*args, **options)

        return fails


@pytest.mark.parametrize("code", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("calls", [0, 1, 3, 10])
@pytest.mark.parametrize("name", ["writing", "mkdir", "reading"])
def test_a_call_that_fails(
    log: Log, tmp_path: Path, name: str, code: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = JITDB(log, tmp_path / "ix")
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if name == "mkdir":
            mkdir = Failing(Path, "mkdir", code, calls).mkdir
            patch.setattr(Path, "mkdir", lambda *args, **options: mkdir(*args, **options))
        elif name == "reading":
            patch.setattr(index_module, "os", Failing(os, "open", code, calls))
        else:
            patch.setattr(index_module, "open", Failing(builtins, "open", code, calls).open, raising=False)
        grows(db)
    assert len(told(caught)) <= 1  # once for all, not for each of a dozen
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with JITDB(Log(log.path, codec="msgpack", read_only=True), tmp_path / "ix") as again:
            assert again.count(QUESTION) == POSTS + 12
    assert told(caught) == []
    assert [entry for entry in os.listdir(tmp_path / "ix") if not entry.endswith(".index")] == []


@pytest.mark.parametrize("calls", range(6))
def test_a_disk_that_is_full_in_the_middle_of_a_write(
    log: Log, tmp_path: Path, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = open
    left = [calls]

    class Full:
        """A file that takes half of what is written to it at last."""

        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def writelines(self, parts: list[Any]) -> None:
            data = b"".join(parts)
            left[0] -= 1
            if left[0] < 0:
                self.file.write(data[: len(data) // 2])
                self.file.flush()
                raise OSError(errno.ENOSPC, "No space left on device")
            self.file.write(data)

    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(index_module, "open", lambda *args: Full(original(*args)), raising=False)
        grows(JITDB(log, tmp_path / "ix"))
    with JITDB(Log(log.path, codec="msgpack", read_only=True), tmp_path / "ix") as again:
        assert again.count(QUESTION) == POSTS + 12


@pytest.mark.parametrize("damage", ["head", "other log", "segment", "blob", "empty", "junk"])
def test_a_damaged_file_is_rebuilt(log: Log, tmp_path: Path, damage: str) -> None:
    db = JITDB(log, tmp_path / "ix")
    assert db.count(QUESTION) == POSTS
    sound = {path: path.read_bytes() for path in (tmp_path / "ix").iterdir()}
    for path, data in sound.items():
        broken = bytearray(data)
        place = data.index(b"JSEG")
        if damage == "head":
            broken[3] ^= 1
        elif damage == "other log":
            from zlib import crc32

            at = data.index(b'"log":"') + 7
            broken[at : at + 32] = b"0" * 32
            broken[place - 4 : place] = crc32(bytes(broken[: place - 4])).to_bytes(4, "little")
        elif damage == "segment":
            broken[place + 9] ^= 1
        elif damage == "blob":
            broken[-1] ^= 1
        elif damage == "empty":
            broken = bytearray()
        else:
            broken = bytearray(b"\x07" * 300)
        path.write_bytes(broken)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = JITDB(log, tmp_path / "ix")
        assert again.count(QUESTION) == POSTS
        assert len(again.all(QUESTION)) == POSTS
    assert bool(told(caught)) == (damage != "empty")  # an empty file is one that was torn at once
    for path in sound:
        if damage != "blob" or path.read_bytes()[-1] == sound[path][-1]:
            assert path.read_bytes() == sound[path]


def test_a_warning_that_is_an_error_leaves_the_index_in_order(log: Log, tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"")
    db = JITDB(log, tmp_path / "taken")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(IndexWarning):
            db.count(QUESTION)
        grows(db)


def test_bitmaps_become_hashes_when_a_segment_of_hashes_comes(tmp_path: Path) -> None:
    spec = IndexSpec("auto", (("k",),))
    for folder in (tmp_path, None):
        with spans_of(64):
            catalog = Catalog(folder, LOG)
            index = catalog.get(spec)
            names = sorted(value_key(word) for word in "ab")
            for first in (0, 64):
                bitmaps = [bitmap_of([1, 3]), bitmap_of([2])]  # type: ignore[arg-type]
                catalog.append(index, make_bitmaps(names, bitmaps, (first, 64, first, first + 64)))
            assert index.kind == BITMAPS
            import numpy as np

            hashed = make_prefixes(
                bitmap_of(np.array([0], np.uint32)), np.array([7, 0], np.uint32), -1, (128, 2, 128, 130)
            )
            catalog.append(index, hashed)
            assert {segment.kind for segment in index.segments} == {PREFIXES}
            assert index.end_seq == 130
            present = [row[1] for row in contents(index.segments) if row[3]]
            assert present == [1, 2, 3, 65, 66, 67, 128]
            if folder is not None:
                again = Index(spec, LOG, index.path)
                assert again.load()
                assert contents(again.segments) == contents(index.segments)


def test_records_are_msgpack() -> None:
    assert MSGPACK.decode(MSGPACK.encode(RECORDS[0])) == RECORDS[0]


def test_what_a_killed_process_left_half_written_is_removed(log: Log, tmp_path: Path) -> None:
    killed = subprocess.Popen(["sleep", "0"])
    killed.wait()
    folder = tmp_path / "indexes"
    folder.mkdir()
    leftover = folder / f"type.auto-0.index.{killed.pid}-7f.tmp"
    at_work = folder / f"type.auto-0.index.{os.getpid()}-7f.tmp"
    other = folder / "notes.tmp"
    for file in (leftover, at_work, other):
        file.write_bytes(b"half")
    assert JITDB(log, folder).count(QUESTION) == POSTS
    assert not leftover.exists()
    assert at_work.exists()
    assert other.exists()
