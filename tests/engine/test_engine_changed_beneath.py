"""The log's bytes are others than those that its indexes were built from, and somebody wrote to the file since."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from jitdb import JITDB, Log
from jitdb.engine.catalog.log_content import Deletions
from jitdb.errors import IndexWarning
from jitdb.indexes.kinds.set import Fingerprint, unproven_rows
from jitdb.indexes.segment import Journal
from jitdb.operators import field

BLOCK = 256


def touch(path: Path) -> None:
    """As a program that writes to the file does."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10_000_000_000))


def overwrite(path: Path, *changes: tuple[int, bytes]) -> None:
    with open(path, "r+b") as file:
        for offset, data in changes:
            file.seek(offset)
            file.write(data)
    touch(path)


def make(path: Path, count: int = 100) -> list[int]:
    with Log(path, block_size=BLOCK) as log:
        offsets = log.append_many([{"n": number, "t": "a"} for number in range(count)])
        log.flush()
        db = JITDB(log)
        assert db.count(field("t") == "a") == count
    return [int(offset) for offset in offsets]


def ask(path: Path, read_only: bool = False) -> tuple[int, int, int, list[int]]:
    """How many have "a", how many "b", how many records of "a" are handed over, and the numbers of "b"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndexWarning)
        with Log(path, read_only=read_only) as log:
            db = JITDB(log)
            a, b = db.count(field("t") == "a"), db.count(field("t") == "b")
            records = db.all(field("t") == "a")
            assert all(record["t"] == "a" for record in records)
            return a, b, len(records), [record["n"] for record in db.all(field("t") == "b")]


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("which", [(3, 17, 40, 41, 80), (97,), (0,)])
def test_values_changed_in_place(tmp_path: Path, which: tuple[int, ...], read_only: bool) -> None:
    path = tmp_path / "x.log"
    offsets = make(path)
    overwrite(path, *((offsets[number] + 9, b"b") for number in which))
    b = len(which)
    for _ in range(2):
        assert ask(path, read_only) == (100 - b, b, 100 - b, list(which))


def test_values_changed_and_taken_back(tmp_path: Path) -> None:
    """Blocks that fit their checksums prove nothing of an index that was built while they did not."""
    path = tmp_path / "x.log"
    offsets = make(path)
    overwrite(path, (offsets[3] + 9, b"b"), (offsets[4] + 9, b"b"))
    assert ask(path) == (98, 2, 98, [3, 4])
    touch(path)
    overwrite(path, (offsets[3] + 9, b"a"), (offsets[4] + 9, b"a"))
    assert ask(path) == (100, 0, 100, [])


@pytest.mark.parametrize("number", [70, 98], ids=["in a sealed block", "in the last block"])
def test_values_changed_behind_what_the_fingerprint_knows(tmp_path: Path, number: int) -> None:
    """A power failure may take the end of its file, and leave that of an index of values."""
    path = tmp_path / "x.log"
    make(path, 40)
    (fingerprint,) = (tmp_path / "x.log.jitdb" / "indexes").glob("*.deleted-*")
    before = fingerprint.read_bytes()
    with Log(path) as log:
        offsets = log.append_many([{"n": each, "t": "a"} for each in range(40, 100)])
        log.flush()
        assert JITDB(log).count(field("t") == "a") == 100
    assert fingerprint.read_bytes().startswith(before)
    fingerprint.write_bytes(before)
    overwrite(path, (offsets[number - 40] + 9, b"b"))
    assert ask(path) == (99, 1, 99, [number])


def test_values_changed_where_the_checksums_are_lost(tmp_path: Path) -> None:
    """They proved the blocks when these were indexed; nothing says now that they are what they were."""
    path = tmp_path / "x.log"
    offsets = make(path)
    (tmp_path / "x.log.jitdb" / "checksums").unlink()
    overwrite(path, (offsets[3] + 9, b"b"))
    assert ask(path) == (99, 1, 99, [3])


def test_values_changed_in_a_block_without_a_checksum_in_which_a_record_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    offsets = make(path, 10)
    with Log(path) as log:
        log.delete(offsets[4])
    overwrite(path, (offsets[2] + 9, b"b"))
    assert ask(path) == (8, 1, 8, [2])


def test_values_changed_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    offsets = make(path)
    with Log(path, read_only=True) as log:
        db = JITDB(log, "memory")
        assert db.count(field("t") == "a") == 100
        for number in (5, 6):
            overwrite(path, (offsets[number] + 9, b"b"), (offsets[number + 20] + 9, b"b"))
            db.refresh()
            assert db.count(field("t") == "b") == 2 * (number - 4)
            assert all(record["t"] == "a" for record in db.all(field("t") == "a"))


def test_values_changed_before_a_compaction(tmp_path: Path) -> None:
    """Indexes of before are not carried over."""
    path = tmp_path / "x.log"
    offsets = make(path)
    overwrite(path, *((offsets[number] + 9, b"b") for number in (3, 17, 40)))
    with warnings.catch_warnings(), Log(path) as log:
        warnings.simplefilter("ignore")
        log.delete(offsets[50])
        log.compact()
    assert ask(path) == (96, 3, 96, [3, 17, 40])


def test_a_healthy_copy_keeps_its_indexes(tmp_path: Path) -> None:
    """Also where it grew, and records were deleted, since it was asked."""
    path = tmp_path / "x.log"
    offsets = make(path)
    with Log(path) as log:
        log.append_many([{"n": number, "t": "a"} for number in range(100, 130)])
        for number in (7, 33, 80):
            log.delete(offsets[number])
    touch(path)
    with warnings.catch_warnings(), Log(path, read_only=True) as log:
        warnings.simplefilter("error")
        db = JITDB(log)
        assert db.explain(field("t") == "a")["indexes"][0]["records"] == 100  # kept, and to be extended
        assert db.count(field("t") == "a") == 127
        assert db.count(field("n") >= 90) == 40
    touch(path)
    with warnings.catch_warnings(), Log(path, read_only=True) as log:
        warnings.simplefilter("error")
        assert JITDB(log).explain(field("t") == "a")["scan_bytes"] == 0
        assert JITDB(log).count(field("t") == "a") == 127


def test_blocks_swapped_under_an_index_older_than_that_of_offsets(tmp_path: Path) -> None:
    path = tmp_path / "x.log"

    def record(number: int) -> dict[str, object]:
        return {"n": number, "t": "a", "pad": "x" * (1 + number % 7 * 9)}

    with Log(path, block_size=BLOCK) as log:
        offsets = [int(each) for each in log.append_many([record(number) for number in range(40)])]
        log.flush()
        JITDB(log).count((field("n") >= 8) & (field("n") <= 22))
    with Log(path) as log:
        log.append_many([record(number) for number in range(40, 60)])
        log.flush()
        assert JITDB(log).count(field("t") == "a") == 60  # reaches further than the index of n
    counts = [sum(offset // BLOCK == block for offset in offsets) for block in range(4)]
    assert counts[0] != counts[3]
    data = bytearray(path.read_bytes())
    first, other = data[:BLOCK], data[3 * BLOCK : 4 * BLOCK]
    overwrite(path, (0, bytes(other)), (3 * BLOCK, bytes(first)))
    (newest,) = (tmp_path / "x.log.jitdb" / "indexes").glob("offsets.*")
    newest.unlink()  # it is built of the log as it is; the index of n was not
    with warnings.catch_warnings(), Log(path, read_only=True) as log:
        warnings.simplefilter("ignore")
        found = JITDB(log).all((field("n") >= 8) & (field("n") <= 22))
        assert sorted(each["n"] for each in found) == list(range(8, 23))


@pytest.mark.parametrize("elsewhere", [True, False])
def test_indexes_that_know_more_deletions_than_the_journal(tmp_path: Path, elsewhere: bool) -> None:
    path, folder = tmp_path / "x.log", tmp_path / "kept" if elsewhere else None
    offsets = make(path, 10)
    backup = tmp_path / "backup"
    backup.mkdir()
    shutil.copy2(path, backup)
    shutil.copytree(tmp_path / "x.log.jitdb", backup / "x.log.jitdb")
    with Log(path) as log:
        log.delete(offsets[4])
        log.flush()
        assert JITDB(log, folder).count(field("t") == "a") == 9
        assert JITDB(log, folder).count(field("n") == 4) == 0
    newer = tmp_path / "newer"
    if not elsewhere:
        shutil.copytree(tmp_path / "x.log.jitdb" / "indexes", newer)
        shutil.rmtree(backup / "x.log.jitdb" / "indexes")
        newer.rename(backup / "x.log.jitdb" / "indexes")
    shutil.copy2(backup / "x.log", path)
    shutil.rmtree(tmp_path / "x.log.jitdb")
    shutil.copytree(backup / "x.log.jitdb", tmp_path / "x.log.jitdb")
    for _ in range(2):
        with warnings.catch_warnings(), Log(path, read_only=True) as log:
            warnings.simplefilter("ignore")
            db = JITDB(log, folder)
            assert db.count(field("t") == "a") == len(db.all(field("t") == "a")) == 10
            assert db.count(field("n") == 4) == 1


def test_a_journal_of_as_many_other_deletions_is_not_the_one_that_was_known(tmp_path: Path) -> None:
    known = []
    for name, gone in (("a.log", 3), ("b.log", 4)):
        with Log(tmp_path / name, codec="raw", flush_interval=3600) as log:
            offsets = log.append_many([b"x" * 20] * 10)
            log.delete(offsets[gone])
            log.flush()
            journal = Deletions(log)
            known.append(journal.now())
            assert [journal.begins_with(each) for each in known] == [each == known[-1] for each in known]
            log.delete(offsets[5])
            log.flush()
            assert journal.begins_with(known[-1])
            later = journal.now()
            assert later.deletions > known[-1].deletions
    assert known[0].deletions == known[1].deletions


def test_what_a_fingerprint_says_of_two_parts_of_a_log() -> None:
    """Blocks of 100 bytes; the second part begins in block 2, of which the first may have seen less, or all."""

    def fingerprint(deletions: int, **lengths: int) -> Fingerprint:
        numbers = np.array([int(name[1:]) for name in lengths])
        return Fingerprint(
            100, Journal(deletions, 7), unproven_rows(numbers, np.array([*lengths.values()]), numbers + 10 * deletions)
        )

    def said(found: Fingerprint) -> dict[int, tuple[int, int]]:
        assert found.journal == Journal(2, 7)
        assert found.blocks["number"].tolist() == sorted(set(found.blocks["number"].tolist()))
        return {number: (length, crc // 10) for number, length, crc in found.blocks.tolist()}

    later = fingerprint(2, b3=100, b5=30)
    assert said(fingerprint(1, b0=100, b1=100, b2=60, b3=50).followed_by(later, 260)) == {
        0: (100, 1), 1: (100, 1), 3: (100, 2), 5: (30, 2)
    }  # fmt: skip
    assert said(fingerprint(1, b1=100, b2=100).followed_by(later, 260)) == {
        1: (100, 1), 2: (100, 1), 3: (100, 2), 5: (30, 2)
    }  # fmt: skip
    assert said(fingerprint(1, b1=100, b2=100).followed_by(fingerprint(2, b2=100), 260)) == {1: (100, 1), 2: (100, 2)}
    whole = fingerprint(2, b1=100, b2=100, b3=100, b4=20)
    for start, end, numbers in ((0, 420, [1, 2, 3, 4]), (199, 301, [1, 2, 3]), (200, 300, [2]), (0, 0, [])):
        assert list(said(whole.within(start, end))) == numbers
