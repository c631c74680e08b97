"""Compaction: what is deleted goes, all else stays in its order, whatever happens meanwhile."""

from __future__ import annotations

import gc
import os
import random
import threading
from pathlib import Path

import pytest
from compaction_cases import assert_sound, fill, make, numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import tries
from waiting import until

from jitdb.errors import InvalidOffset, LogClosed, LogCorrupt, LogReadOnly
from jitdb.log import Log
from jitdb.log.io import filenames
from jitdb.log.sidecar.removals import new_seq

pytestmark = pytest.mark.slow


def test_deleted_records_go_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    gone = [0, 1, 5, 17, 99, *range(40, 70)]
    make(path, 100, gone)
    size = path.stat().st_size
    with Log(path) as log:
        identity = log.identity
        done = log.compact()
        assert (done.removed, done.records) == (len(gone), 100 - len(gone))
        assert done.bytes_after < done.bytes_before
        assert numbers(log) == [number for number in range(100) if number not in gone]
        assert (log.identity, log.generation) == (identity, 2)
        assert log.stats().deleted_records == 0
        fill(log, 10, first=100)
    assert path.stat().st_size < size
    with Log(path) as log:
        assert numbers(log)[-11:] == [98, *range(100, 110)]
        assert (log.identity, log.generation) == (identity, 2)
    assert_sound(path)


def test_nothing_deleted_is_nothing_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make(path, 50, [])
    with Log(path) as log:
        inode = path.stat().st_ino
        assert log.compact().removed == 0
        assert (log.generation, path.stat().st_ino) == (1, inode)


def test_all_deleted_leaves_an_empty_log(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make(path, 50, list(range(50)))
    with Log(path) as log:
        assert str(log.compact()).startswith("removed 50 deleted records, 0 stay")
        assert (log.since, log.durable_end, numbers(log)) == (-1, 0, [])
        fill(log, 3)
    with Log(path) as log:
        assert numbers(log) == [0, 1, 2]
        assert log.block_size == 512


def test_what_moved_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make(path, 100, [3, 4, 50])
    with Log(path) as log:
        before = {record.seq: record.value for record in log.stream(raw=True)}
        log.compact()
        log.delete(next(log.stream(raw=True)).offset)  # record 0
        log.compact()
        assert log.generation == 3
        removals = log.removals(1)
        assert removals is not None
        assert [list(each.removed) for each in removals] == [[3, 4, 50], [0]]
        assert [each.records for each in removals] == [100, 97]
        after = {record.value: record.seq for record in log.stream(raw=True)}
        assert all(new_seq(removals, seq) == after[value] for seq, value in before.items() if seq)
        assert log.removals(3) == []
        assert log.removals(0) is None
        assert log.removals(4) is None


def test_what_moved_in_another_log_or_at_another_time_is_not_believed(tmp_path: Path) -> None:
    for name in "ab":
        with Log(tmp_path / name, codec="raw", block_size=512) as log:
            fill(log, 9)
            for _ in range(2):
                log.delete(next(log.stream(raw=True)).offset)
                log.compact()
            assert [each.generation for each in log.removals(1) or ()] == [2, 3]
    told = [tmp_path / "a.jitdb" / f"moved-{generation}" for generation in (2, 3)]
    kept = [path.read_bytes() for path in told]
    for number, other in ((0, (tmp_path / "b.jitdb" / "moved-2").read_bytes()), (0, kept[1]), (1, kept[0])):
        told[number].write_bytes(other)
        with Log(tmp_path / "a", read_only=True) as log:
            assert log.removals(1) is None
        told[number].write_bytes(kept[number])


def test_block_ends_give_the_lengths_of_all_records(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make(path, 200, [7, 8, 9])
    with Log(path) as log:
        ends: dict[int, int] = {}
        for batch in log.stream_batches():
            for offset, length in zip(batch.offsets.tolist(), batch.lengths.tolist(), strict=True):
                ends[offset // 512] = offset % 512 + 2 + length
        log.compact()
        (removals,) = log.removals(1) or []
        assert removals.ends.tolist() == [ends[block] for block in range(len(ends))]


def test_readers_go_on_with_the_old_log_until_they_refresh(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make(path, 300, list(range(0, 300, 3)))
    with Log(path) as log, Log(path, read_only=True) as reader:
        streams = [log.stream(raw=True), reader.stream(raw=True)]
        begun = [[int(next(stream).value[:6]) for _ in range(5)] for stream in streams]
        kept = reader.since
        log.compact()
        live = [number for number in range(300) if number % 3]
        assert reader.get_raw(kept)[:6] == b"%06d" % 299
        assert reader.refresh()
        assert numbers(reader) == live
        for head, stream in zip(begun, streams, strict=True):
            assert head + [int(record.value[:6]) for record in stream] == live
        assert not reader.refresh()


def test_closing_ends_streams_of_the_old_log_too(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make(path, 20_000, [0], block_size=4096)
    log = Log(path)
    stream = log.stream(raw=True)
    next(stream)
    log.compact()
    log.close()
    with pytest.raises(LogClosed):
        list(stream)


def test_old_files_are_let_go(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make(path, 300, [0])
    with Log(path) as log:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            log.compact()
            log.delete(next(log.stream(raw=True)).offset)
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) <= before + 3


def test_permissions_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make(path, 30, [0])
    path.chmod(0o640)
    with Log(path) as log:
        log.compact()
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    make(tmp_path / "a.log", 30, [0])
    (tmp_path / "link.log").symlink_to(tmp_path / "a.log")
    with Log(tmp_path / "link.log") as log:
        log.compact()
    assert (tmp_path / "link.log").is_symlink()
    with Log(tmp_path / "a.log") as log:
        assert numbers(log) == list(range(1, 30))


def test_a_damaged_block_is_not_compacted_away(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make(path, 100, [0])
    times = path.stat()
    with open(path, "r+b") as file:
        file.seek(512 + 20)
        file.write(b"?")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # the disk did it, no program
    before = path.read_bytes()
    with Log(path) as log:
        with pytest.raises(LogCorrupt, match="repair the log first") as caught:
            log.compact()
        assert (caught.value.block, log.generation) == (1, 1)
        fill(log, 1, first=100)  # and it goes on
    assert path.read_bytes()[:1024] == before[:1024]
    assert not set(os.listdir(filenames.sidecar_path(path))) & set(filenames.NEXT_FILES)


def test_readers_may_not_compact(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make(path, 10, [0])
    with Log(path, read_only=True) as log, pytest.raises(LogReadOnly):
        log.compact()


def test_progress_is_told_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make(path, 1000, [0])
    told: list[tuple[int, int]] = []
    with Log(path) as log:
        end = log.durable_end
        log.compact(lambda done, total: told.append((done, total)))
    assert told[-1] == (end, end)
    assert told == sorted(told)


@settings(max_examples=tries(30, 500), deadline=None)
@given(st.data())
def test_any_history(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Appends, deletions, compactions and re-openings in any order, against a list."""
    path = tmp_path_factory.mktemp("history") / "a.log"
    log = Log(path, codec="raw", block_size=64)
    model: list[bytes] = []
    number = 0
    for step in data.draw(st.lists(st.sampled_from("aadddcro"), max_size=30)):
        if step == "a":
            for _ in range(data.draw(st.integers(1, 8))):
                model.append(b"%d:" % number + bytes([65] * data.draw(st.integers(1, 40))))
                log.append(model[-1])
                number += 1
        elif step == "d" and model:
            log.flush()
            victim = model.pop(data.draw(st.integers(0, len(model) - 1)))
            log.delete(next(record.offset for record in log.stream(raw=True) if record.value == victim))
        elif step == "c":
            log.compact()
            assert log.stats().deleted_records == 0
        elif step == "o":
            log.close()
            log = Log(path)
        log.flush()
        assert [record.value for record in log.stream(raw=True)] == model
        assert [record.seq for record in log.stream(raw=True)] == sorted({r.seq for r in log.stream(raw=True)})
    log.close()


def test_appends_and_deletions_meanwhile_are_carried_over(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = Log(path, codec="raw", block_size=4096, flush_interval=0.002)
    fill(log, 30_000)
    offsets = [record.offset for record in log.stream(raw=True)]
    for number in range(0, 10_000, 2):
        log.delete(offsets[number])
    deleted = set(range(0, 10_000, 2))
    stop = threading.Event()
    appended: list[int] = []
    failures: list[BaseException] = []

    def append() -> None:
        try:
            number = 30_000
            while not stop.is_set():
                log.append(b"%06d" % number)
                appended.append(number)
                number += 1
                if number % 100 == 0:
                    stop.wait(0.0005)
        except BaseException as error:
            failures.append(error)

    def delete() -> None:
        chooser = random.Random(5)
        for number in chooser.sample(range(10_000, 30_000), 3000):
            try:
                if log.generation != 1:
                    return
                log.delete(offsets[number])
                deleted.add(number)
            except InvalidOffset:
                return  # the log was compacted: the offsets that we have are of before
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=append), threading.Thread(target=delete)]
    for thread in threads:
        thread.start()
    until(lambda: len(appended) > 100 and len(deleted) > 5000)
    done = log.compact()
    stop.set()
    for thread in threads:
        thread.join()
    log.flush()
    assert not failures
    assert done.removed >= 5000
    assert numbers(log) == [number for number in range(30_000) if number not in deleted] + appended
    log.close()
    with Log(path) as log:
        assert numbers(log) == [number for number in range(30_000) if number not in deleted] + appended
        for record in log.stream(raw=True):
            log.get_raw(record.offset)  # every checksum


def test_what_is_deleted_behind_the_copy_is_deleted_in_it_too(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = Log(path, codec="raw", block_size=512)
    offsets = fill(log, 300)
    for number in (0, 50):
        log.delete(offsets[number])
    told: list[int] = []

    def delete_some(done: int, total: int) -> None:
        if not told:
            assert done > offsets[200]  # these are copied
            for number in (1, 51, 200):
                log.delete(offsets[number])
            log.flush()
        told.append(done)

    assert log.compact(delete_some).removed == 2  # those that came too late stay as records of zeros
    live = [number for number in range(300) if number not in (0, 50, 1, 51, 200)]
    assert numbers(log) == live
    assert log.stats().deleted_records == 3
    assert len(log.deletions()[1]) == 3
    log.close()
    with Log(path) as log:
        assert numbers(log) == live
        for record in log.stream(raw=True):
            log.get_raw(record.offset)  # every checksum
        assert log.verify().ok
        assert log.compact().removed == 3
        assert numbers(log) == live


def test_live_streams_cross_compactions(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = Log(path, codec="raw", block_size=512)
    fill(log, 50)
    got: dict[str, list[int]] = {"writer": [], "reader": []}
    reader = Log(path, read_only=True)

    def follow(name: str, source: Log) -> None:
        for record in source.stream(gte=0, live=True, raw=True):
            got[name].append(int(record.value[:6]))
            if got[name][-1] == 999:
                return

    threads = [threading.Thread(target=follow, args=pair) for pair in (("writer", log), ("reader", reader))]
    for thread in threads:
        thread.start()
    for first in range(50, 1000, 50):
        fill(log, 50, first=first)
        # What is deleted before it was delivered is not delivered.
        until(lambda first=first: min(map(len, got.values())) >= first)
        log.delete(next(log.stream(raw=True)).offset)
        log.compact()
    for thread in threads:
        thread.join(20)
    assert got["writer"] == got["reader"] == list(range(1000))
    reader.close()
    log.close()


def test_a_live_stream_has_no_end(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", codec="raw") as log, pytest.raises(InvalidOffset, match="no end"):
        log.stream(live=True, lt=5)


def test_closing_wakes_a_live_stream(tmp_path: Path) -> None:
    make(tmp_path / "a.log", 3, [])
    for read_only in (False, True):
        log = Log(tmp_path / "a.log", read_only=read_only)
        stream = log.stream(live=True, raw=True)
        assert [next(stream).seq for _ in range(3)] == [0, 1, 2]
        threading.Timer(0.1, log.close).start()
        with pytest.raises(LogClosed):
            next(stream)
