"""Reading: by offset, many at once, in order, as arrays; and offsets where nothing begins."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jitdb.errors import DecodeError, InvalidOffset, LogCorrupt, LogWarning, RecordDeleted
from jitdb.log import Log, LogSource
from jitdb.log.blocks import walk_kernels
from jitdb.log.opening.opened import Opened


@pytest.fixture
def records() -> list[bytes]:
    chance = random.Random(1)
    return [b"%d:" % number + chance.randbytes(chance.choice([0, 5, 40, 400])) for number in range(2000)]


@pytest.fixture(params=[512, 65536, 1 << 17])
def log(request: pytest.FixtureRequest, tmp_path: Path, records: list[bytes]) -> Iterator[Log]:
    with Log(tmp_path / "a.log", codec="raw", block_size=request.param) as log:
        log.append_many(records)
        log.flush()
        yield log


def test_it_is_a_log_source(log: Log) -> None:
    assert isinstance(log, LogSource)


def test_records_by_offset(log: Log, records: list[bytes]) -> None:
    offsets = [record.offset for record in log.stream(raw=True)]
    assert [log.get_raw(offset) for offset in offsets] == records
    order = list(range(2000))
    random.Random(2).shuffle(order)
    assert [log.get(np.int64(offsets[at])) for at in order] == [records[at] for at in order]


def test_offsets_inside_records_are_refused(log: Log) -> None:
    offsets = {record.offset for record in log.stream(raw=True)}
    for offset in range(5000):
        if offset not in offsets:
            with pytest.raises(InvalidOffset):
                log.get_raw(offset)
            with pytest.raises(InvalidOffset):
                log.get_many_raw([0, offset])
            if offset % 50 == 0:
                with pytest.raises(InvalidOffset):
                    log.delete(offset)


@pytest.mark.parametrize("offset", [-1, -(2**70), 2**40, 2**64, 2**80, 1.0, "0", None, True, b"0", [0]])
def test_offsets_that_cannot_be(log: Log, offset: Any) -> None:
    for call in (log.get, log.get_raw, log.delete):
        with pytest.raises(InvalidOffset):
            call(offset)
    with pytest.raises(InvalidOffset):
        log.get_many_raw([offset])


def test_many(log: Log, records: list[bytes]) -> None:
    offsets = [record.offset for record in log.stream(raw=True)]
    chance = random.Random(3)
    for count in (1, 2, 10, 500):
        chosen = [chance.randrange(2000) for _ in range(count)]
        expected = [records[at] for at in chosen]
        asked = [offsets[at] for at in chosen]
        assert log.get_many_raw(asked) == expected
        assert log.get_many_raw(np.array(asked)) == expected
        assert log.get_many_raw(np.array(asked, np.uint32)) == expected
        assert log.get_many_raw(tuple(sorted(asked))) == [records[offsets.index(offset)] for offset in sorted(asked)]
    assert log.get_many_raw(np.array(offsets)) == records
    assert log.get_many_raw(np.empty(0, np.int64)) == []


def test_many_sees_what_is_not_written(log: Log) -> None:
    offset = log.append(b"new")
    assert log.get_many_raw([0, offset])[1] == b"new"


def test_bounds(log: Log, records: list[bytes]) -> None:
    rows = list(log.stream(raw=True))
    offsets = [row.offset for row in rows]
    assert [row.seq for row in rows] == list(range(2000))
    assert [row.value for row in rows] == records
    chance = random.Random(4)
    for _ in range(150):
        options = {
            name: chance.choice([chance.choice(offsets), chance.randrange(log.durable_end + 10), -1, 0])
            for name in chance.sample(["gt", "gte", "lt", "lte"], chance.randrange(4))
        }
        limit = chance.choice([None, None, 0, 1, 7, 100])
        expected = [
            row
            for row in rows
            if row.offset > options.get("gt", -2)
            and row.offset >= options.get("gte", -2)
            and row.offset < options.get("lt", 1 << 60)
            and row.offset <= options.get("lte", 1 << 60)
        ][:limit]
        assert list(log.stream(raw=True, limit=limit, **options)) == expected
        seen: list[tuple[int, int, bytes]] = []
        for batch in log.stream_batches(limit=limit, **options):
            data = batch.data.tobytes()
            for at, (offset, start, length) in enumerate(
                zip(batch.offsets.tolist(), batch.starts.tolist(), batch.lengths.tolist(), strict=True)
            ):
                seen.append((offset, batch.first_seq + at, data[start : start + length]))
        assert seen == expected


def test_a_fresh_log_knows_the_seq_of_a_late_record(log: Log) -> None:
    rows = list(log.stream(raw=True))
    for at in (1999, 1200, 3):
        with Log(log.path, read_only=True) as reader:
            assert next(reader.stream(gte=rows[at].offset, raw=True)) == rows[at]


def test_a_log_that_outgrows_a_stream_still_knows_the_seqs_of_its_records(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", block_size=64) as log:
        log.append_many([{"n": number} for number in range(3)])
        log.flush()
        stream = log.stream()
        first = next(stream)
        log.append_many([{"n": number} for number in range(3, 100)])  # the block that was read is sealed by now
        log.flush()
        assert [first.seq, *(record.seq for record in stream)] == [0, 1, 2]
        rows = list(log.stream())
        assert [record.seq for record in rows] == list(range(100))
        assert [next(log.stream(gte=record.offset)).seq for record in rows] == list(range(100))


@pytest.mark.parametrize("bound", [1.5, "0", True, b""])
def test_bounds_that_cannot_be(log: Log, bound: Any) -> None:
    with pytest.raises(InvalidOffset):
        log.stream(gt=bound)


def test_large_scans_use_the_kernel_and_agree(tmp_path: Path) -> None:
    records = [b"%07d" % number + b"x" * (number % 300) for number in range(30_000)]
    with Log(tmp_path / "a.log", codec="raw") as log:
        offsets = log.append_many(records)
        for offset in offsets[::1000]:
            log.delete(offset)
        log.flush()
        assert walk_kernels.walk  # the import is what makes streams use it
        expected = [(offset, seq, record) for seq, (offset, record) in enumerate(zip(offsets, records, strict=True))]
        live = [row for row in expected if row[1] % 1000]
        assert list(log.stream(raw=True)) == live
        batches = [(batch.first_seq, batch.offsets.tolist(), batch.deleted.tolist()) for batch in log.stream_batches()]
        assert [offset for _, some, _ in batches for offset in some] == offsets
        assert [dead for _, _, some in batches for dead in some] == [seq % 1000 == 0 for seq in range(30_000)]
        with Log(tmp_path / "a.log", read_only=True) as reader:
            assert list(reader.stream(gt=offsets[29_990], raw=True)) == live[-9:]


def test_read_blocks_gives_durable_bytes_only(log: Log) -> None:
    content = log.path.read_bytes()
    end = log.durable_end
    log.append(b"not durable")
    buffer = np.zeros(1 << 20, np.uint8)
    got = log.read_blocks(0, 1 << 20, buffer)
    assert got == end
    assert buffer[:got].tobytes() == content[:end]
    assert log.read_blocks(end - end % log.block_size + log.block_size, 1 << 30, buffer) == 0
    assert log.read_blocks(0, log.block_size, memoryview(bytearray(log.block_size))) == min(log.block_size, end)


def test_the_decoding_error_names_the_offset(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", codec="msgpack") as log:
        log.append_many([{"a": 1}, {"b": 2}])
    with Log(tmp_path / "a.log", codec="raw") as log:
        offset = log.append(b"\xc1 is never used by msgpack")
    with Log(tmp_path / "a.log", read_only=True) as log:
        assert log.codec.name == "msgpack"
        with pytest.raises(DecodeError) as caught:
            log.get(offset)
        assert caught.value.offset == offset
        stream = log.stream()
        assert [next(stream).value, next(stream).value] == [{"a": 1}, {"b": 2}]
        with pytest.raises(DecodeError) as caught:
            next(stream)
        assert caught.value.offset == offset


def test_a_stream_outlives_the_name_of_its_log(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", codec="raw") as log:
        log.append_many([b"x" * 500] * 1000)
    with pytest.warns(ResourceWarning):
        assert sum(1 for _ in Log(tmp_path / "a.log", read_only=True).stream()) == 1000


class TestDamage:
    """A bit that flips costs what it must and no more."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        with Log(tmp_path / "a.log", codec="raw", block_size=512) as log:
            log.append_many([b"%04d" % number + b"x" * 46 for number in range(100)])  # 9 in a block
        return tmp_path / "a.log"

    def damage(self, path: Path, offset: int, data: bytes) -> None:
        with open(path, "r+b") as file:
            file.seek(offset)
            file.write(data)

    def test_sealed_block_with_a_wrong_byte(self, path: Path) -> None:
        self.keep_stamp(path, lambda: self.damage(path, 512 + 60, b"!"))
        with Log(path, read_only=True) as log:
            with pytest.raises(LogCorrupt) as caught:
                log.get(512)
            assert (caught.value.block, caught.value.offset) == (1, 512)
            assert isinstance(caught.value.expected, int)
            assert caught.value.expected != caught.value.got
            with pytest.raises(LogCorrupt):
                log.get_many_raw([0, 512])
            assert log.get(1024)[:4] == b"0018"

    def test_length_that_leads_out_of_its_block(self, path: Path) -> None:
        (path.parent / "a.log.jitdb" / "checksums").unlink()
        self.keep_stamp(path, lambda: self.damage(path, 512 + 2 * 52, b"\xff\xff"))
        with Log(path, read_only=True) as log:
            assert log.get(512 + 52)[:4] == b"0010"
            with pytest.raises(LogCorrupt, match="leads out of the block") as caught:
                log.get(512 + 3 * 52)
            assert caught.value.offset == 512 + 2 * 52
            with pytest.warns(LogWarning, match="block 1 is damaged at offset 616"):
                rows = list(log.stream())
            assert [int(row.value[:4]) for row in rows] == [*range(11), *range(18, 100)]
            assert [row.seq for row in rows] == list(range(93))
            assert sum(len(batch.offsets) for batch in log.stream_batches()) == 93

    def test_damaged_checksum_entry(self, path: Path) -> None:
        self.damage(path.parent / "a.log.jitdb" / "checksums", 24 + 8, b"\x55")
        with Log(path, read_only=True) as log:
            assert log.get(512)[:4] == b"0009"

    def test_damaged_header_of_the_checksums(self, path: Path) -> None:
        self.damage(path.parent / "a.log.jitdb" / "checksums", 3, b"\x55")
        with Log(path) as log:
            assert log.get(512)[:4] == b"0009"

    def test_last_block_whose_chain_is_broken(self, path: Path) -> None:
        """New records go to the next block; nothing is cut off."""
        self.keep_stamp(path, lambda: self.damage(path, 11 * 512, b"\xff\xff"))
        size = path.stat().st_size
        with pytest.warns(LogWarning, match="last block is damaged"):
            log = Log(path)
        with log:
            assert log.since == 11 * 512
            assert log.append(b"new") == size
            log.flush()
            assert log.get(size) == b"new"
        with Log(path, read_only=True) as log, pytest.warns(LogWarning, match="block 11"):
            assert [row.value[:4] for row in log.stream()][-2:] == [b"0098", b"new"]

    def test_file_that_became_shorter_while_open(self, path: Path) -> None:
        with Log(path, read_only=True) as log:
            assert log.get(1024)
            with open(path, "r+b") as file:
                file.truncate(512)
            with pytest.raises(LogCorrupt, match="rewrote the file"):
                log.get(1024)

    def keep_stamp(self, path: Path, change: Any) -> None:
        """A disk that forgets does not change the modification time."""
        import os

        stamp = path.stat().st_mtime_ns
        change()
        os.utime(path, ns=(stamp, stamp))


def test_a_record_that_is_zeroed_while_many_are_read(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was deleted before the call is not in its answer, whenever the deletion reaches the disk."""
    offsets = [record.offset for record in log.stream(raw=True)]
    log.get_many_raw(offsets)
    read, times = Opened.read, [0]

    def read_and_flush(opened: Opened, size: int, position: int) -> bytes:
        found = read(opened, size, position)
        monkeypatch.undo()
        log.flush()
        times[0] += 1
        return found

    log.delete(offsets[5])
    monkeypatch.setattr(Opened, "read", read_and_flush)
    assert [at for at, record in enumerate(log.get_many_raw(offsets)) if record is None] == [5]
    assert times == [1]


def test_deleted_records(log: Log, records: list[bytes]) -> None:
    offsets = [record.offset for record in log.stream(raw=True)]
    gone = [0, 1, 2, 700, 1999]
    position, none = log.deletions()
    assert len(none) == 0
    for at in gone:
        log.delete(offsets[at])
    for flushed in (False, True):
        for at in gone:
            with pytest.raises(RecordDeleted):
                log.get(offsets[at])
            with pytest.raises(RecordDeleted):
                log.delete(offsets[at])
        assert log.get_many_raw(offsets) == [None if at in gone else record for at, record in enumerate(records)]
        assert [row.seq for row in log.stream(raw=True)] == [at for at in range(2000) if at not in gone]
        dead = [
            at for batch in log.stream_batches() for at in (np.flatnonzero(batch.deleted) + batch.first_seq).tolist()
        ]
        assert dead == gone
        if not flushed:
            log.flush()
    after, found = log.deletions(position)
    assert found.tolist() == [offsets[at] for at in gone]
    assert log.deletions(after)[1].tolist() == []
    header = 2 if log.block_size <= 65536 else 4
    assert log.stats().deleted_bytes == sum(header + len(records[at]) for at in gone)
    log.delete(offsets[5])
    log.flush()
    assert log.deletions(after)[1].tolist() == [offsets[5]]
    with Log(log.path, read_only=True) as reader:
        assert reader.deletions()[1].tolist() == [offsets[at] for at in [*gone, 5]]
        assert reader.get_many_raw(offsets[:7]) == [None, None, None, *records[3:5], None, records[6]]


def test_deleting_an_unwritten_record(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", codec="raw", flush_interval=60) as log:
        offsets = log.append_many([b"a", b"b"])
        log.delete(offsets[0])
        with pytest.raises(RecordDeleted):
            log.get(offsets[0])
        assert log.get(offsets[1]) == b"b"
    with Log(tmp_path / "a.log") as log:
        assert [row.value for row in log.stream()] == [b"b"]
        assert log.append(b"c") == 6


def test_checksums_follow_deletions(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", codec="raw", block_size=512) as log:
        offsets = log.append_many([b"x" * 50] * 100)
        for offset in offsets[::7]:
            log.delete(offset)
        log.flush()
        log.append_many([b"y" * 50] * 20)  # seals the block that was the last one, with deletions in it
    with Log(tmp_path / "a.log", read_only=True) as log:
        assert sum(record is not None for record in log.get_many_raw(offsets)) == 85
        assert log.get_many_raw([row.offset for row in log.stream()])


def test_a_file_time_before_1970(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with Log(path, codec="raw") as log:
        log.append(b"one")
    for stamp in (-1, -(10**18)):
        os.utime(path, ns=(stamp, stamp))
        with Log(path, read_only=True) as reader:
            assert next(iter(reader.stream())).value == b"one"
            assert reader.verify().ok
        with Log(path, read_only=True) as reader:
            token = reader.foreign_change_token()
        with Log(path, read_only=True) as reader:
            assert reader.foreign_change_token() == token  # it was noted, and is not found anew
        with Log(path) as log:
            log.append(b"more")
    with Log(path) as log:
        assert [record.value for record in log.stream()] == [b"one", b"more", b"more"]
