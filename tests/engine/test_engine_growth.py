"""A log grows: answers follow, only the new part is scanned, files are appended to and stay small."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_helpers import POSTS, QUESTIONS, calls_of, check, expected, index_files, message, messages, oracle_of

from jitdb import JITDB, Log
from jitdb.operators import and_, equal, everything, not_, offsets, seqs

pytestmark = pytest.mark.slow


def test_counts_and_pages_follow_appends(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="bipf", block_size=4096) as log:
        db = JITDB(log)
        for turn in range(5):
            log.append_many(messages(137, first=137 * turn))
            log.flush()
            check(db, oracle_of(log))


def test_what_is_not_flushed_is_not_seen(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="bipf", flush_interval=3600) as log:
        db = JITDB(log)
        log.append_many(messages(10))
        assert db.count(POSTS) == 0
        assert db.paginate(POSTS, limit=3).total == 0
        log.flush()
        assert db.count(POSTS) == 4
        log.append(message(10))
        assert db.count() == 10
        assert db.all(not_(POSTS), as_offsets=True) == expected(oracle_of(log), not_(POSTS))
        log.flush()
        assert db.count() == 11


def test_only_the_new_part_is_scanned(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="bipf", block_size=4096) as log:
        db = JITDB(log)
        log.append_many(messages(2000))
        log.flush()
        assert db.explain(POSTS)["scan_bytes"] == log.durable_end
        db.count(POSTS)
        assert db.status.total == log.durable_end
        assert db.explain(POSTS)["scan_bytes"] == 0
        before = log.durable_end
        log.append_many(messages(20, first=2000))
        log.flush()
        assert db.explain(POSTS)["scan_bytes"] == log.durable_end - before
        assert db.count(POSTS) == 808
        assert db.status.total == log.durable_end - before
        db.count(and_(POSTS, equal("value.author", "@1")))  # another index: that one needs all of the log
        assert db.status.total == log.durable_end


def test_index_files_are_appended_to_not_rewritten(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="bipf", block_size=4096) as log:
        db = JITDB(log)
        log.append_many(messages(3000))
        log.flush()
        db.prepare(*QUESTIONS)
        before = {path: (path.stat().st_ino, path.read_bytes()) for path in index_files(log)}
        assert len(before) >= 10
        log.append_many(messages(30, first=3000))
        log.flush()
        db.prepare(*QUESTIONS)
        assert index_files(log) == list(before)
        for path, (inode, content) in before.items():
            assert path.stat().st_ino == inode
            grown = path.read_bytes()
            assert grown.startswith(content)
            assert len(grown) > len(content)


def test_many_small_appends_keep_files_small(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="bipf", block_size=4096) as log:
        db = JITDB(log, threads=1)
        for number in range(150):
            log.append_many(messages(3, first=3 * number))
            log.flush()
            assert db.count(POSTS) == sum(1 for n in range(3 * number + 3) if n % 5 in (0, 4))
            if number % 10 == 0:
                db.prepare(*QUESTIONS)
        check(db, oracle_of(log))
        fresh = JITDB(log, tmp_path / "fresh")
        fresh.prepare(*QUESTIONS)
        for path in index_files(log):
            once = tmp_path / "fresh" / path.name
            assert path.stat().st_size < 3 * once.stat().st_size + (1 << 17), path.name


def test_a_database_opened_later_goes_on_where_the_first_one_was(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for turn in range(4):
        with Log(path, codec="bipf", block_size=4096) as log:
            before = log.durable_end
            log.append_many(messages(200, first=200 * turn))
            log.flush()
            db = JITDB(log)
            assert db.explain(POSTS)["scan_bytes"] == log.durable_end - before
            check(db, oracle_of(log))


def test_one_scan_for_all_questions_that_are_prepared(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="bipf", block_size=4096) as log:
        log.append_many(messages(500))
        log.flush()
        db = JITDB(log)
        assert db.declared_time == (("timestamp",), ("value", "timestamp"))  # for which the first block was read
        reads = calls_of(log, "read_blocks")
        assert db.prepare(*QUESTIONS) > 0
        assert len(reads) == 1  # a log of one chunk is read in one piece
        check(db, oracle_of(log))
        assert len(reads) == 1


def test_positions_of_records_that_come_later(tmp_path: Path) -> None:
    """seqs() and offsets() may name records that do not exist yet; they match as soon as they do."""
    with Log(tmp_path / "log", codec="bipf", block_size=4096) as log:
        places = list(map(int, log.append_many(messages(10))))
        log.flush()
        db = JITDB(log)
        by_seq = seqs([2, 12, 2**40])
        by_offset = offsets([places[3], places[3] + 1, 10_000, 2**63 + 5, 2**64 - 1])
        assert db.count(by_seq) == 1
        assert db.all(by_offset, as_offsets=True) == [places[3]]
        log.append_many(messages(10, first=10))
        log.flush()
        oracle = oracle_of(log)
        check(db, oracle, [by_seq, by_offset, not_(by_seq), not_(by_offset), everything()])


def test_timestamps_and_sequences_are_where_the_database_says(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="msgpack") as log:
        log.append_many({"made": {"at": 100 - number}, "number": number} for number in range(10))
        log.flush()
        db = JITDB(log, timestamp="made.at", sequence="number")
        assert [record["number"] for record in db.all()] == list(range(9, -1, -1))
        assert [record["number"] for record in db.all(sort_by="arrival", descending=True)] == list(range(9, -1, -1))
        from jitdb.operators import gt, lte

        assert [record["number"] for record in db.all(gt(7, "sequence"))] == [9, 8]
        assert db.count(lte(92, "timestamp")) == 2
