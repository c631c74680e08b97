"""A scan verifies the blocks: what is not as it was written is never indexed, nor counted, nor kept quiet."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from damage_cases import LATER, SIZE, ask_elsewhere, check_without, flip, records_of, silence, told
from engine_helpers import POSTS, QUESTIONS, check, make_log, messages, oracle_of
from index_cases import opened

from jitdb import JITDB, Log
from jitdb.engine.building import scan as scan_module
from jitdb.errors import IndexWarning, LogWarning, QueryCancelled
from jitdb.indexes.kinds.bitmaps import distinct_keys, records_with
from jitdb.operators import everything, not_

pytestmark = pytest.mark.slow


# Found


def test_a_flipped_bit_in_any_sealed_block(tmp_path: Path) -> None:
    """Also in a header and in the zeros behind the records; the first scan finds it, whatever it looks for."""
    path = tmp_path / "log"
    make_log(path, 200, block_size=1024)
    choose = random.Random(5)
    sealed = path.stat().st_size // 1024 - 1
    assert sealed > 20
    places = [block * 1024 + choose.randrange(1024) for block in range(sealed)]
    places += [7 * 1024, 7 * 1024 + 1, 8 * 1024 + 1023]
    for number, place in enumerate(places):
        bit, block = choose.randrange(8), place // 1024
        flip(path, place, bit)
        with Log(path) as log:
            lost = set(records_of(path, block, 1024))
            right = sorted({offset for each in range(sealed + 1) for offset in records_of(path, each, 1024)} - lost)
            db = JITDB(log, tmp_path / f"indexes-{number}")
            with told(f"block {block} "):
                assert db.count() == len(right)
            with silence():
                assert db.all(as_offsets=True, sort_by="arrival") == right
        flip(path, place, bit)
    with Log(path) as log, silence():
        check(JITDB(log), oracle_of(log))


def test_block_sizes_and_pieces_of_any_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block is verified, wherever chunks and portions of checksums end."""
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", 5000)
    monkeypatch.setattr(scan_module, "SUMS", 10)
    path = tmp_path / "log"
    make_log(path, 120, block_size=700)
    sealed = path.stat().st_size // 700 - 1
    for block in range(sealed):
        flip(path, block * 700 + 699, 3)
        with Log(path) as log, told(f"block {block} "):
            assert JITDB(log, "memory").count() == 120 - len(records_of(path, block, 700))
        flip(path, block * 700 + 699, 3)


def test_all_questions_go_without_it_and_other_processes_agree(tmp_path: Path) -> None:
    path = tmp_path / "log"
    make_log(path, 500)
    flip(path, 5 * SIZE + 300, 4)
    with Log(path) as log:
        db = JITDB(log)
        with pytest.warns(LogWarning, match=r"block 5 .*expected CRC [0-9a-f]{8}, got [0-9a-f]{8}") as seen:
            check_without(db, log, 5)
        assert len(seen) == 1
        counts = [db.count(question) for question in QUESTIONS]
    for _ in range(2):
        elsewhere, texts = ask_elsewhere(path)
        assert elsewhere == counts
        assert len(texts) == 1, texts
        assert "block 5 " in texts[0]


def test_several_blocks_are_told_of_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    make_log(path, 500)
    lost = 0
    for block in (2, 3, 9):
        flip(path, block * SIZE + 50)
        lost += len(records_of(path, block))
    with Log(path) as log, told(f"2 more blocks). {lost} records are left out"):
        db = JITDB(log)
        db.prepare(POSTS)
        assert db.count() == 500 - lost


def test_a_block_that_was_the_last_one_when_it_was_indexed(tmp_path: Path) -> None:
    """Its first records were indexed before it had a checksum; they are left out with the others."""
    path = tmp_path / "log"
    with Log(path, codec="bipf", block_size=SIZE) as log:
        log.append_many(messages(100))
        log.flush()
        JITDB(log).prepare(*QUESTIONS)
        block = log.durable_end // SIZE
        log.append_many(messages(300, 100))
    assert block * SIZE < records_of(path, block)[3] < (block + 1) * SIZE
    flip(path, records_of(path, block)[1] + 20)
    with Log(path) as log:
        with told(f"block {block} "):
            check_without(JITDB(log), log, block)
        db = JITDB(log)
        with told(f"block {block} "):
            counts = [db.count(question) for question in QUESTIONS]
    assert ask_elsewhere(path)[0] == counts


def test_zeros_where_blocks_were(tmp_path: Path) -> None:
    """They look like empty blocks, which hold no records; their checksums say otherwise."""
    path = tmp_path / "log"
    make_log(path, 500)
    stat = path.stat()
    sealed = stat.st_size // SIZE - 1
    for first, count in ((3, 2), (sealed - 2, 2)):
        with open(path, "r+b") as file:
            file.seek(first * SIZE)
            file.write(bytes(count * SIZE))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with Log(path) as log:
        db = JITDB(log)
        with told("block 3 "):
            check(db, oracle_of(log))
    assert "block 3 " in ask_elsewhere(path)[1][0]


def test_zeros_up_to_the_end(tmp_path: Path) -> None:
    """No record stands behind them, so no index lists these blocks: every process finds them anew."""
    path = tmp_path / "log"
    make_log(path, 500)
    stat = path.stat()
    with open(path, "r+b") as file:
        file.seek(9 * SIZE)
        file.write(bytes(stat.st_size - 9 * SIZE))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    for _ in range(2):
        with Log(path, read_only=True) as log, told("block 9 is damaged at offset 36,864 (and "):
            db = JITDB(log)
            assert db.count() == sum(len(records_of(path, block)) for block in range(9))
            assert db.count(POSTS) + db.count(not_(POSTS)) == db.count()


def test_nothing_of_it_is_indexed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    make_log(path, 500)
    flip(path, 5 * SIZE + 300, 4)
    with Log(path) as log, told("block 5 "):
        db = JITDB(log)
        db.prepare(POSTS)
        offsets = oracle_of(log, records_of(path, 5)).offsets
        lost = {seq for seq, offset in enumerate(offsets) if offset // SIZE == 5}
        index = next(each for each in opened(db) if each.spec.paths == (("value", "content", "type"),))
        keys = distinct_keys(index.segments)
        assert len(keys) == 4
        found = {seq for key in keys for seq in records_with(index.segments, key)}
        assert found == set(range(500)) - lost


def test_without_checksums_nothing_is_verified(tmp_path: Path) -> None:
    path = tmp_path / "log"
    make_log(path, 500)
    flip(path, 5 * SIZE + 2, 1)
    (tmp_path / "log.jitdb" / "checksums").unlink()
    with Log(path) as log, silence():
        assert JITDB(log).count() == len({o for block in range(40) for o in records_of(path, block)})


def test_a_bit_that_flips_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong in memory alone is read once more, and the index is made of that."""
    path = tmp_path / "log"
    make_log(path, 500)
    with Log(path) as log:
        read = log.read_blocks

        def once_wrong(start: int, stop: int, buffer: Any) -> int:
            got = read(start, stop, buffer)
            for block in range(1, got // SIZE, 3):
                buffer[block * SIZE + 1] ^= 0x10
            return got

        monkeypatch.setattr(log, "read_blocks", once_wrong)
        with silence():
            check(JITDB(log), oracle_of(log))


# Remembered


def test_a_block_that_breaks_after_some_indexes_were_built(tmp_path: Path) -> None:
    """Whoever scans it says so to all, whose own indexes were built in time."""
    path = tmp_path / "log"
    make_log(path, 500)
    with Log(path) as log:
        JITDB(log).prepare(*QUESTIONS)
    flip(path, 5 * SIZE + 300, 4)
    with Log(path) as log:
        db = JITDB(log)
        with silence():
            assert db.count(POSTS) == 200
        with told("block 5 "):
            db.prepare(LATER)
        with silence():
            check_without(db, log, 5)
            assert db.count(not_(LATER)) + db.count(LATER) == 500 - len(records_of(path, 5))
        counts = [db.count(question) for question in QUESTIONS]
    elsewhere, texts = ask_elsewhere(path)
    assert elsewhere == counts
    assert ["block 5 " in text for text in texts] == [True]


def test_a_block_that_a_reader_found(tmp_path: Path) -> None:
    path = tmp_path / "log"
    make_log(path, 500)
    with Log(path) as log:
        JITDB(log).prepare(*QUESTIONS)
    flip(path, 5 * SIZE + 300, 4)
    with Log(path) as log, told("block 5 "):
        assert len(JITDB(log).all(everything())) == 500 - len(records_of(path, 5))
    with Log(path) as log:
        db = JITDB(log)
        with told("block 5 "):
            assert db.count() == 500 - len(records_of(path, 5))
        with silence():
            check_without(db, log, 5)


@pytest.mark.parametrize("how", ["cancelled", "killed"])
def test_a_scan_that_does_not_come_to_its_end(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had written by then knows of the block."""
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", SIZE)
    path = tmp_path / "log"
    make_log(path, 2000)
    last = path.stat().st_size // SIZE - 2
    flip(path, 2 * SIZE + 300)
    if how == "cancelled":
        with Log(path) as log:
            cancel = threading.Event()
            reads = []
            read = log.read_blocks

            def until(start: int, stop: int, buffer: Any) -> int:
                reads.append(start)
                if len(reads) > 10:
                    cancel.set()
                return read(start, stop, buffer)

            monkeypatch.setattr(log, "read_blocks", until)
            with pytest.raises(QueryCancelled), silence():
                JITDB(log).prepare(POSTS, cancel=cancel)
            assert len(reads) < last
    else:
        script = """
import os, sys
from jitdb import JITDB, Log
from jitdb.engine.building import scan
from jitdb.engine.building import targets as target
from jitdb.operators import equal
scan.CHUNK_BYTES = 4096
with Log(sys.argv[1]) as log:
    db = JITDB(log)
    read, count = log.read_blocks, []
    def until(start, stop, buffer):
        count.append(start)
        if len(count) > 10:
            os._exit(7)
        return read(start, stop, buffer)
    log.read_blocks = until
    target.SPAN = 64
    db.prepare(equal("value.content.type", "post"))
"""
        killed = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, check=False)
        assert killed.returncode == 7, killed.stderr
        assert len(list((tmp_path / "log.jitdb" / "indexes").glob("*.index"))) >= 4
    with Log(path) as log, told("block 2 "):
        db = JITDB(log)
        check_without(db, log, 2)


# RepairAction


@pytest.mark.parametrize("keep_time", [True, False], ids=["as if never written to", "by another program"])
def test_a_block_that_was_mended(tmp_path: Path, keep_time: bool) -> None:
    """Indexes that were built without its records are built again, also those that nobody asked for yet."""
    path = tmp_path / "log"
    make_log(path, 500)
    flip(path, 5 * SIZE + 300, 4)
    with Log(path) as log, told("block 5 "):
        JITDB(log).prepare(*QUESTIONS, LATER)
    flip(path, 5 * SIZE + 300, 4, keep_time=keep_time)
    with Log(path) as log:
        db = JITDB(log)
        with pytest.warns(IndexWarning, match="damaged, or repaired"):
            assert db.count() == 500
        with silence():
            check(db, oracle_of(log))
            assert db.count(LATER) == 1
    counts, texts = ask_elsewhere(path)
    assert (counts[0], texts) == (500, [])


def test_mended_while_others_watch(tmp_path: Path) -> None:
    path = tmp_path / "log"
    make_log(path, 500)
    flip(path, 5 * SIZE + 300, 4)
    with Log(path, read_only=True) as log:
        db = JITDB(log)
        with told("block 5 "):
            db.prepare(*QUESTIONS)
        flip(path, 5 * SIZE + 300, 4, keep_time=False)
        db.refresh()
        assert ask_elsewhere(path)[0][0] == 500
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert db.count() in (500, 500 - len(records_of(path, 5)))
            check_either(db, log)


def check_either(db: JITDB, log: Log) -> None:
    """Its questions add up."""
    for question in QUESTIONS:
        assert db.count(question) + db.count(not_(question)) == db.count()
        assert len(db.all(question)) == db.count(question)


def test_a_compacted_log_has_no_damage(tmp_path: Path) -> None:
    """A block that was repaired by hand, and then compacted before anybody asked."""
    path = tmp_path / "log"
    offsets = make_log(path, 500)
    flip(path, 5 * SIZE + 300, 4)
    with Log(path) as log, told("block 5 "):
        JITDB(log).prepare(*QUESTIONS)
    flip(path, 5 * SIZE + 300, 4)
    with Log(path) as log:
        for offset in offsets[::9]:
            log.delete(offset)
        log.compact()
        db = JITDB(log)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            db.prepare(*QUESTIONS)
        with silence():
            check(db, oracle_of(log))
            assert db.count() == len(offsets) - len(offsets[::9])
