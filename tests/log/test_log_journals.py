"""Flipped bits in the journals of a sidecar: what an entry says its copy says, and no acknowledged record is lost."""

from __future__ import annotations

import os
import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from thoroughness import tries

from jitdb.errors import LogWarning
from jitdb.log import Log
from jitdb.log.io import osfile
from jitdb.log.sidecar import checksums, deletions, journal
from jitdb.log.sidecar.deletions import Deletion
from jitdb.log.sidecar.framing import is_torn

ENTRY = journal.Entry(10, 522, 99, b"\1\2\3\4\5\6\7\x08", 0xAABBCCDD, 8, 0x11223344, 1, 2, 3, journal.SYNCED)
RECORDS = [b"record %d" % number for number in range(40)]


def flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def test_every_bit_of_an_entry() -> None:
    """Its copy says the same."""
    data, following = journal.written(ENTRY), journal.written(ENTRY._replace(end=600))
    for bit in range(8 * len(data)):
        found = journal.decode_all(flipped(data, bit) + following)
        assert found.count(None) == 1
        assert [entry for entry in dict.fromkeys(found) if entry] == [ENTRY, ENTRY._replace(end=600)]
        assert ENTRY in journal.decode_all(flipped(data, bit))


def test_every_bit_of_a_checksum_and_of_a_deletion() -> None:
    of_block = checksums.encode_entries([checksums.Entry(0xDEADBEEF)], 2, 5)
    of_record = deletions.encode_entry(Deletion(1 << 40, 77))
    for bit in range(8 * len(of_block)):
        assert checksums.decode_entries(flipped(of_block, bit), 5, 2) == [None]
    for bit in range(8 * len(of_record)):
        found = deletions.decode_all(flipped(of_record, bit) + deletions.MARK)
        assert found == [None, Deletion(deletions.APPLIED, 0)]
    assert checksums.decode_entries(bytes(8), 5, 2) == [None]
    for block, generation in ((4, 2), (5, 3)):
        of_another = checksums.encode_entries([checksums.Entry(0xDEADBEEF)], generation, block)
        assert checksums.decode_entries(of_another, 5, 2) == [None]


def test_a_journal_entry_that_is_gone_hides_no_later_one() -> None:
    data = journal.encode(ENTRY)
    for lost in (bytes(64), b"\xff" * 64, random.Random(1).randbytes(64)):
        assert journal.decode_all(data + lost + data) == [ENTRY, None, ENTRY]
        assert journal.decode_all(data + lost) == [ENTRY]
        assert journal.decode_all(data + lost + lost[:20]) == [ENTRY]


def test_what_is_torn_and_what_is_damaged() -> None:
    data = journal.encode(ENTRY)
    assert all(is_torn(data[:size].ljust(64, b"\0")) for size in range(61))
    assert not any(is_torn(flipped(data, bit)) for bit in range(512))


class TestAcknowledgedRecords:
    """Every bit of `commit`, in each state in which a log is left: what flush() acknowledged is there, no more."""

    def closed(self, log: Log, left: Path) -> None:
        log.close()
        copied(log, left)

    def killed(self, log: Log, left: Path) -> None:
        copied(log, left)

    def without_the_word_that_all_is_synced(self, log: Log, left: Path) -> None:
        """It is not synced itself: a power failure may take it."""
        copied(log, left)
        commit = left.with_name("a.log.jitdb") / "commit"
        data = entries_in(commit)
        last = journal.decode(data[-64:])
        assert last is not None
        assert last.kind == journal.SYNCED
        commit.write_bytes(data[: -len(journal.written(last))])

    def with_a_group_that_was_not_acknowledged(self, log: Log, left: Path) -> None:
        log.append_many([b"never acknowledged" * 4] * 3)
        log._writer._write()  # type: ignore[union-attr]  # and no more: as if killed now
        copied(log, left)
        with left.open("r+b") as file:
            file.seek(log.durable_end + 9)
            file.write(b"?")

    def with_a_journal_begun_anew(self, log: Log, left: Path) -> None:
        log.close()
        copied(log, left)
        with Log(left):  # killed before it wrote anything
            shutil.copytree(left.with_name("a.log.jitdb"), left.with_name("kept"))
        shutil.rmtree(left.with_name("a.log.jitdb"))
        left.with_name("kept").rename(left.with_name("a.log.jitdb"))

    @pytest.mark.parametrize(
        "leave",
        [
            closed,
            killed,
            without_the_word_that_all_is_synced,
            with_a_group_that_was_not_acknowledged,
            with_a_journal_begun_anew,
        ],
    )
    def test_every_bit(self, tmp_path: Path, leave: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "left").mkdir()
        left = tmp_path / "left" / "a.log"
        log = Log(tmp_path / "a.log", codec="raw", block_size=128, flush_interval=3600)
        for at in range(0, len(RECORDS), 10):
            log.append_many(RECORDS[at : at + 10])
            log.flush()
        leave(self, log, left)
        log.close()
        data = (left.with_name("a.log.jitdb") / "commit").read_bytes()
        monkeypatch.setattr(osfile.FileSystem, "fsync", lambda self, fd: None)
        used = 8 * len(data.rstrip(b"\0"))  # behind it is room that is laid out, each bit of which is as the others
        for bit in (*range(0, used, tries(101, 1)), *range(used, 8 * len(data), tries(4001, 1))):
            case = tmp_path / "case"
            shutil.rmtree(case, ignore_errors=True)
            shutil.copytree(left.parent, case)
            (case / "a.log.jitdb" / "commit").write_bytes(flipped(data, bit))
            for read_only in (True, False):
                with warnings.catch_warnings():
                    warnings.filterwarnings("error", category=LogWarning)
                    warnings.filterwarnings("ignore", ".*the bytes from offset", LogWarning)
                    with Log(case / "a.log", read_only=read_only) as again:
                        assert [record.value for record in again.stream()] == RECORDS, bit
                        assert again.generation == 1, bit


def entries_in(commit: Path) -> bytes:
    """Without the room that is laid out behind them."""
    data = commit.read_bytes()
    return data[: journal.ENTRY_SIZE * len(journal.decode_all(data))]


def copied(log: Log, left: Path) -> None:
    shutil.copy2(log.path, left)
    shutil.copytree(log.sidecar, left.with_name("a.log.jitdb"))


def test_entries_are_read_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deletions"
    entries = [deletions.encode_entry(Deletion(number, 7)) for number in range(7)]
    damaged, zeros = b"\xff" * 16, bytes(16)
    for found in (
        entries,
        [*entries[:3], zeros, zeros, damaged, entries[3], zeros],
        [damaged] * 5,
        [entries[0], b"abc"],
    ):
        path.write_bytes(deletions.encode_head(1) + b"".join(found))
        seen = []
        for together in (1, 2, 3, 100):
            monkeypatch.setattr(deletions, "_TOGETHER", together)
            reader = deletions.DeletionReader(osfile.fs, path, 1)
            reader.poll()
            offsets = reader.between(0, reader.position).tolist()
            seen.append(
                (reader.position, reader.known.crc, offsets, list(reader.unapplied), reader.extends(reader.known))
            )
            reader.close()
        assert seen == [seen[-1]] * 4
        whole = deletions.decode_all(b"".join(found))
        assert (seen[0][0], seen[0][3]) == (len(whole), [entry for entry in whole if entry is not None])


def test_a_flush_makes_the_journal_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str]] = []

    def noting(name: str) -> None:
        real = getattr(osfile.FileSystem, name)

        def call(self: osfile.FileSystem, fd: int, *rest: object) -> object:
            calls.append((name, Path(os.readlink(f"/proc/self/fd/{fd}")).name))
            return real(fd, *rest)

        monkeypatch.setattr(osfile.FileSystem, name, call)

    with Log(tmp_path / "a.log", codec="raw", flush_interval=3600) as log:
        commit = log.sidecar / "commit"
        log.append(b"first")
        log.flush()
        size = commit.stat().st_size
        assert size == journal.ROOM
        monkeypatch.setattr(journal, "LAG", 1 << 62)  # a slow machine syncs the time, too
        for name in ("fsync", "fdatasync", "truncate"):
            noting(name)
        for _ in range(20):
            log.append(b"more")
            log.flush()
            assert sorted(calls) == [("fdatasync", "a.log"), ("fdatasync", "commit")]  # in any order
            calls.clear()
        assert commit.stat().st_size == size
        assert not log.verify().notes
        left = tmp_path / "left" / "a.log"
        left.parent.mkdir()
        copied(log, left)
    assert commit.stat().st_size == len(entries_in(commit))  # cut off by who closes it
    with Log(left, read_only=True) as killed:
        assert [record.value for record in killed.stream()] == [b"first", *[b"more"] * 20]
        assert not killed.verify().notes
