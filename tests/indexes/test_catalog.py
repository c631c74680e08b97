"""What an index does whose file cannot be read or written, or is not what was written: it is told of, and answers."""

from __future__ import annotations

import errno
import os
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from index_cases import LOG, MSGPACK, contents, make_bitmaps, make_prefixes, make_set, spans_of
from pyroaring import BitMap
from thoroughness import combined, tries

from jitdb import JITDB, Log
from jitdb.common.values import value_key
from jitdb.engine.catalog.catalog import Catalog
from jitdb.errors import IndexWarning
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds.roaring import bitmap_of
from jitdb.indexes.segment import BITMAPS, PREFIXES
from jitdb.indexes.spec import OFFSETS, IndexSpec, deleted_spec
from jitdb.log.io import osfile, system
from jitdb.log.io.osfile import FileSystem
from jitdb.operators import equal

pytestmark = pytest.mark.slow

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


CALLS = ["open", "pwrite", "fsync", "truncate", "rename", "mkdir", "stat", "fstat", "listdir"]


class Failing(FileSystem):
    """Files of which one primitive fails with this error from some call on; `moved` of the bytes are written first."""

    def __init__(self, name: str, code: int, calls: int, moved: float = 0.0) -> None:
        self.failed = 0

        def fails(*args: Any, **options: Any) -> Any:
            nonlocal calls
            calls -= 1
            if calls >= 0:
                return getattr(osfile.FileSystem(), name)(*args, **options)
            self.failed += 1
            if name == "pwrite" and moved:
                descriptor, data, offset = args
                os.pwrite(descriptor, data[: int(len(data) * moved)], offset)
            raise OSError(code, os.strerror(code))

        setattr(self, name, fails)


@pytest.mark.parametrize(("name", "calls", "code"), combined(2, CALLS, [0, 3, 1, 10][: tries(2, 4)], ERRORS), ids=str)
def test_a_call_that_fails(
    log: Log, tmp_path: Path, name: str, code: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        patch.setattr(osfile, "fs", Failing(name, code, calls))
        grows(JITDB(log, tmp_path / "ix"))
    assert len(told(caught)) <= 1  # once for all, not for each of a dozen
    answers_again(log, tmp_path / "ix")


def answers_again(log: Log, folder: Path) -> None:
    """With files that fail no more: what is in the folder is sound, and nothing half-written lies there."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with JITDB(Log(log.path, codec="msgpack", read_only=True), folder) as again:
            assert again.count(QUESTION) == POSTS + 12
    assert told(caught) == []
    assert [entry for entry in os.listdir(folder) if not entry.endswith(".index")] in (["lock"], [])


@pytest.mark.parametrize("calls", [0, 1, 2, 5, 9, 14][:: tries(2, 1)])
@pytest.mark.parametrize("moved", [0.01, 0.5, 0.99])
def test_a_disk_that_is_full_in_the_middle_of_a_write(
    log: Log, tmp_path: Path, calls: int, moved: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        failing = Failing("pwrite", errno.ENOSPC, calls, moved)
        patch.setattr(osfile, "fs", failing)
        with pytest.warns(IndexWarning, match="kept in memory"):
            grows(JITDB(log, tmp_path / "ix"))
        assert failing.failed
    answers_again(log, tmp_path / "ix")


@pytest.mark.parametrize("name", ["lock_byte", "unlock_byte"] if system.HAS_BYTE_LOCKS else ["lock"])
def test_a_file_system_without_locks(log: Log, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes are kept all the same, and nobody is told."""
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        failing = Failing(name, errno.ENOLCK, 0)
        patch.setattr(osfile, "fs", failing)
        grows(JITDB(log, tmp_path / "ix"))
        assert failing.failed
    assert told(caught) == []
    with JITDB(Log(log.path, codec="msgpack", read_only=True), tmp_path / "ix") as again:
        assert again.explain(QUESTION)["scan_bytes"] == 0


class Interrupted(FileSystem):
    """Files whose writes move a few bytes, or none because of a signal, and whose reads fall short."""

    def __init__(self) -> None:
        self.turn = 0

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        self.turn += 1
        if self.turn % 3 == 0:
            raise InterruptedError
        return super().pwrite(fd, data[: max(1, len(data) // 2)], offset)

    def pread(self, fd: int, size: int, offset: int) -> bytes:  # type: ignore[override]
        return os.pread(fd, max(1, size // 2), offset)


def test_writes_and_reads_that_fall_short(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        patch.setattr(osfile, "fs", Interrupted())
        grows(JITDB(log, tmp_path / "ix"))
        assert JITDB(log, tmp_path / "ix").count(QUESTION) == POSTS + 12
    assert told(caught) == []
    plain = JITDB(log, tmp_path / "plain")
    assert plain.explain(QUESTION)["scan_bytes"] > 0
    answers_again(log, tmp_path / "ix")


@pytest.mark.parametrize("damage", ["head", "other log", "segment", "blob", "empty", "junk"])
def test_a_damaged_file_is_rebuilt(log: Log, tmp_path: Path, damage: str) -> None:
    db = JITDB(log, tmp_path / "ix")
    assert db.count(QUESTION) == POSTS
    sound = {path: path.read_bytes() for path in (tmp_path / "ix").glob("*.index")}
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
            present = sorted(seq for _, _, seq in contents(index.segments))
            assert present == [1, 2, 3, 65, 66, 67, 128]
            if folder is not None:
                again = Index(spec, LOG, index.path)
                assert again.load()
                assert contents(again.segments) == contents(index.segments)


def test_files_of_a_newer_generation_stay(tmp_path: Path) -> None:
    """Of indexes that are dropped, or superseded, by a process that does not know yet that the log was compacted."""

    def run_of(records: int) -> tuple[int, int, int, int]:
        return 0, records, 0, records

    later = LOG._replace(generation=LOG.generation + 1)
    catalog = Catalog(tmp_path, LOG)
    for log, stays in ((LOG, False), (later, True)):
        index = catalog.get(IndexSpec("predicate", (("k",),), "is odd"))
        catalog.append(index, make_set(BitMap([1]), run_of(3)))
        path = index.path
        assert path is not None
        Index(index.spec, log, path).replace([make_set(BitMap([0, 1]), run_of(2))])
        catalog.discard_all()
        assert (index.end_seq, path.exists()) == (0, stays)

        catalog = Catalog(tmp_path, LOG)
        deleted = catalog.get(deleted_spec(b"mine...."))
        catalog.append(deleted, make_set(BitMap([1]), run_of(3)))
        spec = deleted_spec(b"another.")
        other = Index(spec, log, tmp_path / spec.file_name())
        other.append(make_set(BitMap(), run_of(2)))
        catalog.tidy([deleted])
        assert (tmp_path / spec.file_name()).exists() is stays
        catalog = Catalog(tmp_path, LOG)


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
