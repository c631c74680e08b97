"""Whatever happened to its files, the engine answers exactly, or says what it cannot read."""

from __future__ import annotations

import errno
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import POSTS, QUESTIONS, TYPE, check, expected, index_files, make_log, messages, oracle_of

from jitdb import JITDB, Log
from jitdb.errors import DecodeError, IndexWarning, LogCorrupt, LogWarning
from jitdb.indexes import segment
from jitdb.indexes.files.file import MAGIC
from jitdb.operators import absent, equal, everything, not_, seqs

pytestmark = pytest.mark.slow


@contextmanager
def silence() -> Iterator[None]:
    """No warning at all."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def prepared(path: Path, count: int = 500, **options: Any) -> list[int]:
    """A closed log with all its indexes; the offsets."""
    offsets = make_log(path, count, **options)
    with Log(path) as log:
        JITDB(log).prepare(*QUESTIONS)
    return offsets


def flip(path: Path, *places: int) -> None:
    """Flip all bits of the bytes at these places, as a disk does: nobody has written to the file."""
    stat = path.stat()
    with open(path, "r+b") as file:
        for place in places:
            file.seek(place)
            [byte] = file.read(1)
            file.seek(place)
            file.write(bytes([byte ^ 0xFF]))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


# Index files


@pytest.mark.parametrize("part", ["magic", "head", "segment head", "directory", "blob"])
def test_a_damaged_index_file_is_rebuilt(tmp_path: Path, part: str) -> None:
    prepared(tmp_path / "log")
    with Log(tmp_path / "log") as log:
        for path in index_files(log):
            head = 12 + int.from_bytes(path.read_bytes()[8:12], "little") + 4
            places = {"magic": 3, "head": 30, "segment head": head + 20, "directory": head + segment.HEAD_SIZE + 1}
            flip(path, places.get(part, path.stat().st_size - 3))
        with pytest.warns(IndexWarning, match="rebuilt"):
            check(JITDB(log), oracle_of(log))
        with silence():
            check(JITDB(log), oracle_of(log))


def test_every_byte_of_an_index_file_counts(tmp_path: Path) -> None:
    """Whichever byte is damaged, the answer stays right."""
    prepared(tmp_path / "log", 40)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        question = equal("value.author", "@3")
        right = db.all(question, as_offsets=True)
        [path] = [path for path in index_files(log) if path.name.startswith("value_author")]
        content = path.read_bytes()
        for place in range(0, len(content), 7):
            path.write_bytes(content)
            flip(path, place)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IndexWarning)
                assert JITDB(log).all(question, as_offsets=True) == right, place


def test_damage_while_the_database_is_open(tmp_path: Path) -> None:
    prepared(tmp_path / "log")
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        db.explain(QUESTIONS[-1])  # heads and directories are read
        for path in index_files(log):
            flip(path, *range(path.stat().st_size - 90, path.stat().st_size, 10))
        with pytest.warns(IndexWarning, match="expected .* CRC"):
            check(db, oracle_of(log))
        log.append_many(messages(100, first=500))
        log.flush()
        with silence():
            check(db, oracle_of(log))


def test_damage_is_found_when_segments_are_merged(tmp_path: Path) -> None:
    """A scan that merges small segments meets one that cannot be read."""
    with Log(tmp_path / "log", codec="bipf", block_size=4096) as log:
        db = JITDB(log)
        for turn in range(7):
            log.append_many(messages(10, first=10 * turn))
            log.flush()
            db.prepare(*QUESTIONS)
        again = JITDB(log)
        again.explain(QUESTIONS[-1])
        for path in index_files(log):
            flip(path, path.stat().st_size - 3)
        log.append_many(messages(10, first=70))
        log.flush()
        with pytest.warns(IndexWarning, match="rebuilt"):
            again.prepare(*QUESTIONS)
        check(again, oracle_of(log))


@pytest.mark.parametrize("left", [0, 5, 30, 100, 150, 0.5, 0.9, -1])
def test_a_truncated_index_file(tmp_path: Path, left: float) -> None:
    prepared(tmp_path / "log")
    with Log(tmp_path / "log") as log:
        for path in index_files(log):
            size = path.stat().st_size
            os.truncate(
                path, min(size, int(left if left >= 1 or left == 0 else left * size) if left >= 0 else size - 1)
            )
        with silence():  # a torn write is nothing to speak of
            check(JITDB(log), oracle_of(log))
            check(JITDB(log), oracle_of(log))


def test_removed_index_files(tmp_path: Path) -> None:
    """Whoever removes the index folder, to save space, need not close the database first."""
    prepared(tmp_path / "log")
    with Log(tmp_path / "log") as log, silence():
        db = JITDB(log)
        check(db, oracle_of(log))
        shutil.rmtree(log.sidecar / "indexes")
        check(db, oracle_of(log))
        log.append_many(messages(50, first=500))
        log.flush()
        check(db, oracle_of(log))
        assert JITDB(log).explain(POSTS)["scan_bytes"] == 0
        check(JITDB(log), oracle_of(log))


def test_indexes_of_another_log_are_not_used(tmp_path: Path) -> None:
    prepared(tmp_path / "other", 300)
    with Log(tmp_path / "log", codec="bipf", block_size=4096) as log:
        log.append_many(messages(300, first=1000))
    shutil.copytree(tmp_path / "other.jitdb" / "indexes", tmp_path / "log.jitdb" / "indexes")
    with Log(tmp_path / "log") as log:
        with pytest.warns(IndexWarning, match="of another log"):
            check(JITDB(log), oracle_of(log))
        with silence():
            check(JITDB(log), oracle_of(log))


@pytest.mark.parametrize("blocks", [1, 5])
def test_a_log_that_was_replaced(tmp_path: Path, blocks: int) -> None:
    """Another log of the same name, by another program: the indexes of the old one say nothing of it."""
    prepared(tmp_path / "log", 300)
    with Log(tmp_path / "other", codec="bipf", block_size=4096) as log:
        log.append_many(messages(300, first=1000))
    shutil.copy(tmp_path / "other", tmp_path / "log")
    os.truncate(tmp_path / "log", blocks * 4096)
    with pytest.warns(LogWarning, match="new log"):
        log = Log(tmp_path / "log")
    with log, warnings.catch_warnings():
        warnings.simplefilter("ignore", IndexWarning)
        check(JITDB(log), oracle_of(log))


def test_a_log_that_was_truncated(tmp_path: Path) -> None:
    prepared(tmp_path / "log", 500)
    os.truncate(tmp_path / "log", 3 * 4096)
    with pytest.warns(LogWarning, match="new log"):
        log = Log(tmp_path / "log")
    with log, warnings.catch_warnings():
        warnings.simplefilter("ignore", IndexWarning)
        assert 0 < JITDB(log).count() < 500
        check(JITDB(log), oracle_of(log))


def test_a_log_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    prepared(tmp_path / "log", 300)
    make_log(tmp_path / "other", 200)
    with Log(tmp_path / "log", read_only=True) as log:
        db = JITDB(log)
        check(db, oracle_of(log))
        pages = db.pages(POSTS, limit=10)
        next(pages)
        shutil.rmtree(tmp_path / "log.jitdb")
        shutil.rmtree(tmp_path / "other.jitdb")
        os.replace(tmp_path / "other", tmp_path / "log")
        assert db.refresh()
        assert db.count() == 200
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IndexWarning)
            check(db, oracle_of(log))
        with pytest.raises(Exception, match=r"replaced.*ask again"):
            next(pages)


# Indexes that cannot be written


def test_no_room_for_an_index_folder(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 100)
    (tmp_path / "file").write_text("no folder")
    with Log(tmp_path / "log") as log:
        for folder in (tmp_path / "file", tmp_path / "file" / "below"):
            db = JITDB(log, folder)
            with pytest.warns(IndexWarning) as told:
                db.prepare(*QUESTIONS)
            assert len(told) == 1
            assert str(folder) in str(told[0].message)
            assert "in memory" in str(told[0].message)
            with silence():
                check(db, oracle_of(log))
                log.append_many(messages(10, first=1000))
                log.flush()
                check(db, oracle_of(log))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT])
def test_the_disk_refuses_indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    prepared(tmp_path / "log", 100)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        check(db, oracle_of(log))
        log.append_many(messages(200, first=100))
        log.flush()

        def refuse(self: segment.Segment) -> Iterator[bytes]:
            yield b"some bytes are written before"
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patched:
            patched.setattr(segment.Segment, "parts", refuse)
            with pytest.warns(IndexWarning, match=os.strerror(code)) as told:
                db.prepare(*QUESTIONS)
            assert len(told) == 1
        with silence():
            check(db, oracle_of(log))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IndexWarning)  # what was written in part is rebuilt
            check(JITDB(log), oracle_of(log))


def test_indexes_in_memory_leave_no_files(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 100)
    with Log(tmp_path / "log") as log, silence():
        check(JITDB(log, "memory"), oracle_of(log))
        assert not (log.sidecar / "indexes").exists()


# The log


def test_a_broken_chain_in_the_middle(tmp_path: Path) -> None:
    """The block's records up to there, and all other blocks, answer."""
    offsets = make_log(tmp_path / "log", 500)
    broken = next(offset for offset in offsets if offset > 5 * 4096 + 1000)
    with open(tmp_path / "log", "r+b") as file:
        file.seek(broken)
        file.write(b"\xff\xff")
    (tmp_path / "log.jitdb" / "checksums").unlink()
    for _ in range(2):  # who comes later and scans nothing is told too
        with Log(tmp_path / "log") as log:
            db = JITDB(log)
            oracle = oracle_of(log)
            assert 450 < len(oracle.records) < 500
            with pytest.warns(LogWarning, match=f"block 5 .*{broken:,}") as told:
                check(db, oracle)
            assert len(told) == 1


def test_a_broken_chain_that_was_mended(tmp_path: Path) -> None:
    """By whoever has a copy: the indexes that were built without the records behind it are built anew."""
    offsets = make_log(tmp_path / "log", 500)
    whole = (tmp_path / "log").read_bytes()
    with open(tmp_path / "log", "r+b") as file:
        file.seek(next(offset for offset in offsets if offset > 5 * 4096 + 1000))
        file.write(b"\xff\xff")
    (tmp_path / "log.jitdb" / "checksums").unlink()
    with Log(tmp_path / "log", read_only=True) as log, pytest.warns(LogWarning, match="block 5 "):
        assert JITDB(log).count() < 500
    (tmp_path / "log").write_bytes(whole)
    with Log(tmp_path / "log", read_only=True) as log, pytest.warns(IndexWarning, match="or repaired"):
        check(JITDB(log), oracle_of(log))


def test_a_chain_that_broke_after_some_indexes_were_built(tmp_path: Path) -> None:
    """Indexes from before count other records than indexes from after: they are not mixed."""
    offsets = make_log(tmp_path / "log", 500)
    with Log(tmp_path / "log") as log:
        JITDB(log).prepare(*QUESTIONS[::2])
    broken = next(offset for offset in offsets if offset > 5 * 4096 + 1000)
    with open(tmp_path / "log", "r+b") as file:
        file.seek(broken)
        file.write(b"\xff\xff")
    (tmp_path / "log.jitdb" / "checksums").unlink()
    for _ in range(2):
        with Log(tmp_path / "log") as log, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            db = JITDB(log)
            db.prepare(*QUESTIONS[1::2])
            for question in (*QUESTIONS[1::2], everything()):
                found = db.all(question)
                assert {record["key"] for record in found} <= {f"%{number:06d}" for number in range(500)}
                assert len(found) == db.count(question)
                oracle = oracle_of(log)
                assert db.all(question, as_offsets=True) == expected(oracle, question)


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed before", "indexed after"])
def test_a_block_that_fails_its_checksum(tmp_path: Path, indexed: bool) -> None:
    """Its records are left out, also from counts, once it was scanned or somebody tried to read them; it is told."""
    offsets = make_log(tmp_path / "log", 500)
    if indexed:
        with Log(tmp_path / "log") as log:
            JITDB(log).prepare(*QUESTIONS)
    flip(tmp_path / "log", 5 * 4096 + 300, 5 * 4096 + 2000)
    lost = [offset for offset in offsets if offset // 4096 == 5]
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        if indexed:
            with silence():
                assert len(db.paginate(limit=5, sort_by="arrival").data) == 5  # it is not touched, so nobody notices
        ask = db.all if indexed else db.count
        with pytest.warns(LogWarning, match=f"block 5 .*{len(lost)} records are left out") as told:
            ask(everything())
        found = db.all(everything(), sort_by="arrival")
        assert len(told) == 1
        assert [record["key"] for record in found] == [
            f"%{number:06d}" for number, offset in enumerate(offsets) if offset not in lost
        ]
        with silence():
            assert db.count() == db.paginate(limit=1).total == 500 - len(lost)
            for question in QUESTIONS:
                assert db.all(question, as_offsets=True) == [
                    offset for offset in db.all(question, as_offsets=True) if offset not in lost
                ]
                assert db.count(question) + db.count(not_(question)) == 500 - len(lost)
                assert len(db.all(question)) == db.count(question)


def test_a_block_that_fails_its_checksum_under_a_prefix(tmp_path: Path) -> None:
    offsets = make_log(tmp_path / "log", 500)
    flip(tmp_path / "log", 5 * 4096 + 3000)
    lost = [offset for offset in offsets if offset // 4096 == 5]
    question = equal("value.author", "@3", prefix=32)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        with pytest.warns(LogWarning, match="block 5 "):
            total = db.count(question)
        right = [offset for number, offset in enumerate(offsets) if number % 11 == 3 and offset not in lost]
        assert total == len(right)
        with silence():
            assert sorted(db.all(question, as_offsets=True)) == right


@pytest.mark.parametrize("stored", [True, False], ids=["known", "found by looking"])
def test_a_damaged_tail_ends(tmp_path: Path, stored: bool) -> None:
    offsets = prepared(tmp_path / "log", 500)
    broken = offsets[-6]
    stat = (tmp_path / "log").stat()
    with open(tmp_path / "log", "r+b") as file:
        file.seek(broken)
        file.write(b"\xff\xff")
    os.utime(tmp_path / "log", ns=(stat.st_atime_ns, stat.st_mtime_ns))  # nobody seems to have written to it
    if not stored:
        shutil.rmtree(tmp_path / "log.jitdb")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Log(tmp_path / "log", block_size=4096, codec="bipf", read_only=True) as log:
            db = JITDB(log, "memory")
            for question in QUESTIONS:
                answers = db.all(question)  # where its CRC is known, reading it shows that the whole block is damaged
                assert db.count(question) == len(answers)
            in_tail = sum(offset // 4096 == broken // 4096 for offset in offsets)
            assert db.count() == (500 - in_tail if stored else 494)
            again = JITDB(log)  # indexes from before the damage, where there are any
            assert again.count() >= db.count()
            for question in QUESTIONS:
                assert len(again.all(question)) == again.count(question)
                assert again.count(question) + again.count(not_(question)) == again.count()
            again.prepare(equal("value.content.text", "text 3"))
            assert again.count(equal("value.content.text", "text 3")) == 1
            assert again.count(not_(equal("value.content.text", "text 3"))) == again.count() - 1


def test_a_tail_that_breaks_between_two_questions(tmp_path: Path) -> None:
    """Indexes of the second question end sooner than those of the first one: sets of both must not be mixed."""
    offsets = make_log(tmp_path / "log", 20)
    with Log(tmp_path / "log", read_only=True) as log, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        db = JITDB(log)
        assert db.count(POSTS) == 8
        with open(tmp_path / "log", "r+b") as file:
            file.seek(offsets[12])
            file.write(b"\xff\xff")
        for question in QUESTIONS:
            assert db.count(question) + db.count(not_(question)) == db.count()
        assert db.count() == 12


def test_malformed_records(tmp_path: Path) -> None:
    """Bytes that are no record: they have no fields, they count, and whoever decodes one learns where it lies."""
    with Log(tmp_path / "log", codec="bipf", block_size=4096) as log:
        encode = log.codec.encode
        good = [encode(record) for record in messages(50)]
    shutil.rmtree(tmp_path / "log.jitdb")
    os.remove(tmp_path / "log")
    bad = [b"\xff" * 20, good[0][:-3], good[1][:10] + b"\xfe" * 30, b"\x07"]
    with Log(tmp_path / "log", codec="raw", block_size=4096) as log:
        offsets = log.append_many([*good[:25], *bad, *good[25:]])
    shutil.rmtree(tmp_path / "log.jitdb")
    with Log(tmp_path / "log", codec="bipf", block_size=4096) as log:
        db = JITDB(log)
        places = offsets[25:29]
        with silence():
            assert db.count() == 54
            assert db.count(absent(TYPE)) == 4
            assert sorted(db.all(absent(TYPE), as_offsets=True)) == places
            assert db.count(not_(POSTS)) == 30 + 4
            assert db.count(absent("key")) == 4
            assert len(db.all(POSTS)) == 20
            assert db.all(seqs([24, 26, 29]), as_offsets=True, sort_by="arrival") == [offsets[n] for n in (24, 26, 29)]
        for place, seq in zip(places, range(25, 29), strict=True):
            with pytest.raises(DecodeError, match=f"{place}.*as_offsets") as caught:
                db.all(seqs([seq]))
            assert caught.value.offset == place
        with pytest.raises(DecodeError):
            db.all()


def test_corruption_that_cannot_be_set_aside_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_log(tmp_path / "log", 20)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)

        def corrupt(offsets: Any) -> list[bytes | None]:
            raise LogCorrupt("somewhere", path=log.path)

        monkeypatch.setattr(log, "get_many_raw", corrupt)
        assert db.count(POSTS) == 8
        with pytest.raises(LogCorrupt, match="somewhere"):
            db.all(POSTS)


def test_files_that_were_left_behind_are_no_indexes(tmp_path: Path) -> None:
    prepared(tmp_path / "log", 100)
    with Log(tmp_path / "log") as log:
        for path in index_files(log):
            path.write_bytes(MAGIC)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IndexWarning)
            check(JITDB(log), oracle_of(log))
        for path in index_files(log):
            path.unlink()
            path.mkdir()
        with pytest.warns(IndexWarning, match="in memory") as told:
            check(JITDB(log), oracle_of(log))
        assert len(told) == 1
