"""Records that are encoded already, many in one array: the log is the one that append_many writes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray
from thoroughness import tries

from jitdb.common import kernels
from jitdb.errors import InvalidOffset, InvalidRecord, LogReadOnly, LogWarning, LogWriteFailed, RecordTooLarge
from jitdb.log import Log
from jitdb.log.blocks.block_format import largest_record
from jitdb.log.io import osfile
from jitdb.log.io.osfile import FileSystem

pytestmark = pytest.mark.slow


def joined(records: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return np.frombuffer(b"".join(records) + b"behind", np.uint8), np.array(list(map(len, records)), np.int64)


def some_records(random: Random, count: int, block_size: int) -> list[bytes]:
    longest = min(largest_record(block_size), 9000)
    short = min(40, longest)
    sizes = [random.choice([1, 2, random.randrange(1, short), random.randrange(longest) + 1]) for _ in range(count)]
    return [random.choice([b"\1", b"\0\2"])[: max(1, size)].ljust(size, b"\3") if size > 1 else b"\1" for size in sizes]


@pytest.mark.parametrize("block_size", [16, 64, 4096, 65536, 65537, 1 << 20])
@pytest.mark.parametrize("seed", range(tries(2, 30)))
def test_the_same_bytes_as_one_by_one(tmp_path: Path, block_size: int, seed: int) -> None:
    random = Random(seed)
    all_records: list[bytes] = []
    plain = Log(tmp_path / "plain.log", codec="raw", block_size=block_size, flush_interval=100)
    log = Log(tmp_path / "a.log", codec="raw", block_size=block_size, flush_interval=100)
    offsets: list[int] = []
    for _ in range(12):
        records = some_records(random, random.choice([0, 1, 3, 40, 700]), block_size)
        expected = plain.append_many(records)
        match random.randrange(6):
            case 0 if records:
                given = [log.append(record) for record in records]
            case 1:
                given = log.append_many(records)
            case _:
                given = log.append_encoded(*joined(records)).tolist()
        assert given == expected
        offsets += given
        all_records += records
        if random.random() < 0.3:
            log.flush()
        elif random.random() < 0.3:
            log.close()
            log = Log(tmp_path / "a.log", flush_interval=100)
        for at in random.sample(range(len(offsets)), min(5, len(offsets))):
            assert log.get_raw(offsets[at]) == all_records[at]
    log.close()
    plain.close()
    assert (tmp_path / "a.log").read_bytes() == (tmp_path / "plain.log").read_bytes()
    sidecar, other = tmp_path / "a.log.jitdb", tmp_path / "plain.log.jitdb"
    assert (sidecar / "checksums").read_bytes()[32:] == (other / "checksums").read_bytes()[32:]
    with Log(tmp_path / "a.log", read_only=True) as log:
        assert log.verify().ok
        assert [record.value for record in log.stream()] == all_records


def test_more_than_is_written_at_once(tmp_path: Path) -> None:
    records = [bytes([number % 251 + 1]) * (number % 1000 + 1) for number in range(COUNT)]
    with Log(tmp_path / "a.log", codec="raw") as log:
        offsets = log.append_encoded(*joined(records))
        assert log.since == -1
        log.flush()
        assert log.since == offsets[-1]
        assert log.get_many_raw(offsets) == records


def test_durable_without_a_flush(tmp_path: Path) -> None:
    import threading

    told = threading.Event()
    with Log(tmp_path / "a.log", codec="raw", flush_interval=0.01) as log:
        log.on_since(lambda since: told.set())
        log.append_encoded(*joined([b"one"]))
        assert told.wait(30)


def test_deletions_wait_beside_them(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", codec="raw", flush_interval=100) as log:
        first = log.append(b"one")
        log.flush()
        log.delete(first)
        log.append_encoded(*joined([b"two"]))
        log.flush()
        assert [record.value for record in log.stream()] == [b"two"]
    with Log(tmp_path / "a.log", read_only=True) as log:
        assert [record.value for record in log.stream()] == [b"two"]


def test_what_is_refused(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", codec="raw", block_size=64) as log:
        for records, error in [
            ([b"ok", b""], InvalidRecord), ([b"ok", b"\0\0"], InvalidRecord), ([b"x" * 61], RecordTooLarge),
        ]:  # fmt: skip
            with pytest.raises(error):
                log.append_encoded(*joined(records))
        with pytest.raises(InvalidRecord, match="7 bytes of records are not in 3"):
            log.append_encoded(np.ones(3, np.uint8), np.array([3, 4]))
        assert log.append_encoded(*joined([])).tolist() == []
    with Log(tmp_path / "a.log", read_only=True) as log, pytest.raises(LogReadOnly):
        log.append_encoded(*joined([b"x"]))
    assert (tmp_path / "a.log").read_bytes() == b""


class Broken(FileSystem):
    """Raises at the given call of pwrite."""

    def __init__(self, call: int, error: BaseException) -> None:
        self.left = call
        self.error = error

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        self.left -= 1
        if self.left == 0:
            super().pwrite(fd, data[: len(data) // 2], offset)
            raise self.error
        return super().pwrite(fd, data, offset)


def record_at(log: Log, offset: int) -> bytes | None:
    """None where no record begins."""
    with suppress(InvalidOffset):
        return log.get_raw(offset)
    return None


COUNT = 40 if kernels.WAY == "python" else 4000


@pytest.mark.parametrize("call", range(1, 12))
def test_interrupted(tmp_path: Path, call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records are there all or none, and the log goes on, whatever becomes of the arrays."""
    records = [bytes([number % 251 + 1]) * 900 for number in range(COUNT)]
    with Log(tmp_path / "plain.log", codec="raw") as plain:
        offsets = plain.append_many([b"first", *records])[1:]
    monkeypatch.setattr(osfile, "fs", fs := Broken(-1, KeyboardInterrupt()))
    with Log(tmp_path / "a.log", codec="raw", flush_interval=100) as log:
        log.append(b"first")
        fs.left = call
        data, lengths = joined(records)
        data = data.copy()
        with suppress(KeyboardInterrupt):
            log.append_encoded(data, lengths)
        data[:], lengths[:] = 1, 1
        fs.left = -1
        there = [record_at(log, offset) for offset in offsets[:: COUNT // 40]]
        assert there in (records[:: COUNT // 40], [None] * len(there))
        assert [record_at(log, offset) for offset in (offsets[3] + 1, offsets[-1] + 1, offsets[-1] + 9000)] == [
            None
        ] * 3
        last = log.append(b"last")
        assert log.get_raw(last) == b"last"
        log.flush()
        found = [record.value for record in log.stream()]
        assert found in ([b"first", *records, b"last"], [b"first", b"last"])
    with Log(tmp_path / "a.log", read_only=True) as log:
        assert [record.value for record in log.stream()] == found
        assert log.verify().ok


@pytest.mark.parametrize("call", range(1, 8))
def test_a_disk_that_is_full(tmp_path: Path, call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [bytes([number % 251 + 1]) * 900 for number in range(COUNT)]
    monkeypatch.setattr(osfile, "fs", fs := Broken(-1, OSError(28, "No space left on device")))
    log = Log(tmp_path / "a.log", codec="raw", flush_interval=100)
    log.append(b"first")
    log.flush()
    fs.left = call
    with pytest.raises(LogWriteFailed):
        log.append_encoded(*joined(records))
    with pytest.raises(LogWriteFailed):
        log.append(b"more")
    with pytest.raises(LogWriteFailed):
        log.close()
    with Log(tmp_path / "a.log") as log:
        found = [record.value for record in log.stream()]
        assert found == [b"first", *records][: len(found)]
        assert found
        log.append(b"goes on")


def test_behind_a_damaged_block(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", codec="raw", block_size=64) as log:
        log.append_many([b"one", b"two"])
    stamp = (tmp_path / "a.log").stat().st_mtime_ns
    (tmp_path / "a.log").write_bytes(b"\xff\xff" + (tmp_path / "a.log").read_bytes()[2:])
    os.utime(tmp_path / "a.log", ns=(stamp, stamp))
    with pytest.warns(LogWarning, match="last block is damaged"):
        log = Log(tmp_path / "a.log")
    with log:
        assert log.append_encoded(*joined([b"three", b"four"])).tolist() == [64, 71]
        log.flush()
        assert log.get_raw(64) == b"three"
