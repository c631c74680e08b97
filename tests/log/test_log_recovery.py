"""What is found when a log is opened: after a crash, after another program, after a replacement."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from recovery_cases import BLOCK, RECORDS, crashed, not_synced, open_log, values

from jitdb.errors import LogWarning, RecordDeleted
from jitdb.log.io import osfile
from jitdb.log.opening.recovery import Tail
from jitdb.log.sidecar import deletions, journal
from jitdb.log.sidecar.deletions import Deletion

pytestmark = pytest.mark.filterwarnings("error")


def test_everything_flushed_survives_a_crash(tmp_path: Path) -> None:
    with open_log(tmp_path / "a.log") as log:
        for number, record in enumerate(RECORDS):
            log.append(record)
            log.flush()
            if number % 10 == 9:
                path = crashed(tmp_path, f"{number}")
                for read_only in (True, False, True):
                    with open_log(path, read_only=read_only) as again:
                        assert values(again) == RECORDS[: number + 1]
                        assert again.since == log.since


@pytest.mark.parametrize("cut", [0, 1, 2, 3, 30, 61, 62])
def test_a_torn_group_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    """The group is in the journal, but only its first bytes reached the disk."""
    with open_log(tmp_path / "a.log") as log:
        log.append_many(RECORDS[:20])
        log.flush()
        end = log.durable_end
        before = (tmp_path / "a.log").read_bytes()
        log.append_transaction([b"t" * 20, b"u" * 40])
        path = not_synced(log, tmp_path, monkeypatch)
        content = path.read_bytes()
        start = log.durable_end - 64
        path.write_bytes(content[: start + cut].ljust(len(content), b"\0"))
    assert start in (end, -(-end // BLOCK) * BLOCK)
    with open_log(path, read_only=True) as again:
        assert values(again) == RECORDS[:20]
        assert again.durable_end == end
    if cut == 0:
        again = open_log(path)
    else:
        with pytest.warns(LogWarning, match=f"torn-{end}-0"):
            again = open_log(path)
        kept = (path.parent / "a.log.jitdb" / f"torn-{end}-0").read_bytes()
        assert kept == content[end : start + cut].rstrip(b"\0")
    with again:
        assert values(again) == RECORDS[:20]
        assert path.read_bytes() == before
        assert again.append(b"next") >= end
    with open_log(path) as again:
        assert values(again) == [*RECORDS[:20], b"next"]


def test_a_group_that_is_whole_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it reached the disk, though nobody had waited for it."""
    with open_log(tmp_path / "a.log") as log:
        log.append_many(RECORDS[:20])
        log.flush()
        log.append_many(RECORDS[20:])
        path = not_synced(log, tmp_path, monkeypatch)
    for read_only in (True, False):
        with open_log(path, read_only=read_only) as again:
            assert values(again) == RECORDS


def test_a_torn_journal(tmp_path: Path) -> None:
    with open_log(tmp_path / "a.log") as log:
        log.append_many(RECORDS[:20])
        log.flush()
        path = crashed(tmp_path)
    commit = path.parent / "a.log.jitdb" / "commit"
    whole = commit.read_bytes()
    whole = whole[: journal.ENTRY_SIZE * len(journal.decode_all(whole))]  # room is laid out behind the entries
    commit.write_bytes(whole[:-64])  # the SYNCED entry is lost: the DATA entry tells
    with open_log(path, read_only=True) as again:
        assert values(again) == RECORDS[:20]
    commit.write_bytes(whole + whole[:30])
    with open_log(path) as again:
        assert values(again) == RECORDS[:20]
        again.append(b"next")
    with open_log(path) as again:
        assert values(again) == [*RECORDS[:20], b"next"]


def test_a_group_behind_one_that_nothing_tells_of(tmp_path: Path) -> None:
    """Its own bytes have their CRC; whether those before it are what was written, nobody knows."""
    with open_log(tmp_path / "a.log") as log:
        log.append_many(RECORDS[:20])
        log.flush()
        end = log.durable_end
        for record in (b"one", b"two"):  # each is written, with an entry of its own, and not synced
            log.append_encoded(np.frombuffer(record, np.uint8), np.array([len(record)]))
        path = crashed(tmp_path)
    commit = path.with_name("a.log.jitdb") / "commit"
    entries = bytearray(commit.read_bytes())
    del entries[journal.ENTRY_SIZE * len(journal.decode_all(bytes(entries))) :]
    at = len(entries) - 4 * journal.ENTRY_SIZE
    assert journal.decode(bytes(entries[at : at + journal.ENTRY_SIZE])).start == end  # type: ignore[union-attr]
    for copy in (at, at + journal.ENTRY_SIZE):
        entries[copy : copy + 16] = bytes(16)
    commit.write_bytes(entries)
    with pytest.warns(LogWarning):
        again = open_log(path)
    with again:
        assert values(again) == RECORDS[:20]
        assert len(list(again.sidecar.glob("torn-*"))) == 1


def test_stale_entries_behind_a_torn_one_stay_dead(tmp_path: Path) -> None:
    with open_log(tmp_path / "a.log") as log:
        log.append(b"a")
    commit = tmp_path / "a.log.jitdb" / "commit"
    good = commit.read_bytes()
    commit.write_bytes(good + b"torn".ljust(64, b"!") + good[-64:])
    with open_log(tmp_path / "a.log") as log:
        log.append(b"b")
        log.flush()
        log.append(b"c")
    with open_log(tmp_path / "a.log", read_only=True) as log:
        assert values(log) == [b"a", b"b", b"c"]


def test_the_file_was_extended_and_no_more(tmp_path: Path) -> None:
    with open_log(tmp_path / "a.log") as log:
        log.append(RECORDS[5])
        log.flush()
        path = crashed(tmp_path)
    with open(path, "r+b") as file:
        file.truncate(3 * BLOCK)
    with open_log(path, read_only=True) as again:
        assert values(again) == [RECORDS[5]]
    with open_log(path) as again:
        assert values(again) == [RECORDS[5]]
        assert path.stat().st_size == BLOCK


def test_a_log_that_nothing_was_written_to(tmp_path: Path) -> None:
    open_log(tmp_path / "a.log").close()
    assert (tmp_path / "a.log").read_bytes() == b""
    with open_log(tmp_path / "a.log", read_only=True) as log:
        assert (log.since, log.durable_end, values(log)) == (-1, 0, [])


def test_deletions_cut_short_are_finished(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with open_log(path) as log:
        offsets = log.append_many([b"x" * 50] * 60)
        log.delete(offsets[3])
        log.flush()
        path = crashed(tmp_path)
    # A crash after the journal of deletions was written, before anything was zeroed; one entry is of no record.
    side = path.parent / "a.log.jitdb"
    with open(side / "deletions", "ab") as file:
        for each in (Deletion(offsets[10], 50), Deletion(offsets[59], 50), Deletion(offsets[20] + 1, 50)):
            file.write(deletions.encode_entry(each))
        file.write(b"torn")
    with open_log(path, read_only=True) as log:
        assert log.deletions()[1].tolist() == [offsets[3], offsets[10], offsets[59], offsets[20] + 1]
    for _ in range(2):
        with open_log(path) as log:
            assert len(values(log)) == 57
            for at in (3, 10, 59):
                with pytest.raises(RecordDeleted):
                    log.get(offsets[at])
            assert log.get_many_raw(offsets).count(None) == 3  # and every checksum holds


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("zeroed", [1, 25, 49])
def test_the_newest_record_was_half_zeroed(tmp_path: Path, zeroed: int, read_only: bool) -> None:
    """Its bytes are not those that the journal tells of; the log is the same nevertheless."""
    with open_log(tmp_path / "a.log") as log:
        offsets = log.append_many([b"x" * 50] * 30)
        log.flush()
        path, identity = crashed(tmp_path), log.identity
    with open(path.parent / "a.log.jitdb" / "deletions", "wb") as file:
        file.write(deletions.encode_head(1) + deletions.encode_entry(Deletion(offsets[29], 50)))
    with open(path, "r+b") as file:
        file.seek(offsets[29] + 2)
        file.write(bytes(zeroed))
    with open_log(path, read_only=read_only) as log:
        assert log.identity == identity
        assert log.deletions()[1].tolist() == [offsets[29]]
    with open_log(path) as log:
        assert values(log) == [b"x" * 50] * 29


def test_a_reader_in_the_middle_of_a_deletion(tmp_path: Path) -> None:
    """The bytes are zeroed, the checksum is not yet written: that is no damage."""
    path = tmp_path / "a.log"
    with open_log(path) as log:
        offsets = log.append_many([b"x" * 50] * 60)
    side = tmp_path / "a.log.jitdb"
    with open_log(path) as log:
        log.delete(offsets[3])
        log.flush()
        path = crashed(tmp_path)
    side = path.parent / "a.log.jitdb"
    (side / "checksums").write_bytes((tmp_path / "a.log.jitdb" / "checksums").read_bytes())
    raw = (side / "deletions").read_bytes()
    (side / "deletions").write_bytes(raw[:-16])
    sums = bytearray((side / "checksums").read_bytes())
    import zlib

    from jitdb.log.sidecar import checksums

    block = bytearray(path.read_bytes()[:BLOCK])
    block[offsets[3] + 2 : offsets[3] + 52] = b"x" * 50
    sums[24:32] = checksums.encode_entries([checksums.Entry(zlib.crc32(block))], 1)
    (side / "checksums").write_bytes(sums)
    with open_log(path, read_only=True) as log:
        assert log.get(offsets[4]) == b"x" * 50


def test_readers_follow_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with open_log(path, flush_interval=60) as log, open_log(path, read_only=True) as reader:
        identity = reader.identity
        assert not reader.refresh()
        offsets = log.append_many(RECORDS)
        assert not reader.refresh()
        log.flush()
        assert reader.refresh()
        assert values(reader) == RECORDS
        assert reader.since == log.since
        identity = reader.identity
        assert identity == log.identity
        log.delete(offsets[7])
        assert not reader.refresh()
        log.flush()
        position, gone = reader.deletions()  # is told at once, before refresh()
        assert gone.tolist() == [offsets[7]]
        reader.refresh()
        assert reader.deletions(position)[1].tolist() == []
        with pytest.raises(RecordDeleted):
            reader.get(offsets[7])
        assert reader.foreign_change_token() == log.foreign_change_token()
        token = reader.foreign_change_token()
        assert not reader.refresh()
    with open_log(path, read_only=True) as reader:
        assert reader.foreign_change_token() == token
        assert reader.identity == identity


def test_a_reader_follows_a_writer_whose_journal_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MAX_SIZE", 8 * journal.ENTRY_SIZE)
    with open_log(tmp_path / "a.log") as log, open_log(tmp_path / "a.log", read_only=True) as reader:
        commit = log.sidecar / "commit"
        sizes = []
        for number in range(12):
            log.append(b"%d" % number)
            log.flush()
            assert reader.refresh()
            assert len(values(reader)) == number + 1
            assert reader.foreign_change_token() == bytes(8)
            sizes.append(commit.stat().st_size)
        assert sum(later < before for before, later in pairwise(sizes)) > 3


def test_a_reader_sees_another_log_in_the_place_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with open_log(path) as log:
        log.append_many(RECORDS)
    with open_log(path, read_only=True) as reader:
        identity = reader.identity
        with open_log(tmp_path / "b.log") as log:
            log.append_many(RECORDS[:7])
        os.replace(tmp_path / "b.log", path)
        with pytest.warns(LogWarning, match="counts as a new log"):
            assert reader.refresh()
        assert values(reader) == RECORDS[:7]
        assert reader.identity != identity
        assert reader.get(0) == RECORDS[0]


def test_the_sidecar_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with open_log(path) as log:
        offsets = log.append_many(RECORDS)
        log.delete(offsets[1])
        identity = log.identity
    shutil.rmtree(tmp_path / "a.log.jitdb")
    with open_log(path) as log:
        assert values(log) == [RECORDS[0], *RECORDS[2:]]
        assert log.identity != identity


@pytest.mark.parametrize("read_only", [True, False])
def test_damaged_meta(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "a.log"
    with open_log(path) as log:
        log.append_many(RECORDS)
        identity = log.identity
    meta = tmp_path / "a.log.jitdb" / "meta"
    meta.write_bytes(b"rubbish")
    with pytest.warns(LogWarning, match="new identity"):
        log = open_log(path, read_only=read_only)
    with log:
        assert values(log) == RECORDS
        assert log.identity != identity
        assert log.generation == 2


def test_a_deletion_that_is_read_while_it_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "deletions"
    entry = deletions.encode_entry(Deletion(7, 6))
    with closing(deletions.DeletionReader(osfile.fs, path, 1)) as reader:
        for written in (entry[:5] + b"other bytes", entry[:3], entry):
            path.write_bytes(deletions.encode_head(1) + written)
            assert reader.poll() is (written == entry)
        assert reader.between(0, reader.position).tolist() == [7]


def test_entries_of_another_generation_are_void(tmp_path: Path) -> None:
    """As one finds them who has not looked yet whether the log was compacted or repaired."""
    entries = [Tail(end, 7).entry(journal.SYNCED, generation, bytes(8)) for generation, end in ((1, 9), (2, 18))]
    (tmp_path / "commit").write_bytes(b"".join(map(journal.encode, [entries[1], *entries])))
    for entry in entries:
        with closing(journal.JournalReader(osfile.fs, tmp_path / "commit", entry.generation)) as reader:
            assert reader.poll().base == entry


def test_the_journal_is_of_another_generation(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with open_log(path) as log:
        log.append_many(RECORDS)
    commit = tmp_path / "a.log.jitdb" / "commit"
    raw = commit.read_bytes()
    entries = [journal.decode(raw[at : at + 64]) for at in range(0, len(raw), 64)]
    commit.write_bytes(b"".join(journal.encode(entry._replace(generation=9)) for entry in entries if entry))
    with pytest.warns(LogWarning, match="meta is of generation 1, expected 9"):
        log = open_log(path)
    with log:
        assert values(log) == RECORDS
        assert log.generation == 10
