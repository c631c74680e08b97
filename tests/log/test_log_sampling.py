"""A sample of a log: live records from all over it, and no more work than they take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jitdb.log import Log
from jitdb.log.blocks import framing
from jitdb.log.reading.sampling import sample

pytestmark = pytest.mark.slow


def made(path: Path, count: int, block_size: int) -> Log:
    log = Log(path, block_size=block_size)
    log.append_many([{"n": number} for number in range(count)])
    log.flush()
    return log


def numbers(log: Log, count: int) -> list[int]:
    return [value["n"] for value in sample(log, count)]


@pytest.mark.parametrize("block_size", [64, 1024, 65536, 1 << 20])
def test_live_records_in_order_the_first_and_the_last_block_among_them(tmp_path: Path, block_size: int) -> None:
    with made(tmp_path / "x.log", 3000, block_size) as log:
        records = list(log.stream())
        for record in records[::3]:
            log.delete(record.offset)
        log.flush()
        live = [record for record in records if record.value["n"] % 3]
        blocks = {record.offset // block_size for record in live}
        found = numbers(log, 100)
        assert 90 <= len(found) <= 100
        assert found == sorted(set(found))
        assert all(number % 3 for number in found)
        seen = {record.offset // block_size for record in live if record.value["n"] in set(found)}
        assert {min(blocks), max(blocks)} <= seen
        assert found == numbers(log, 100)
        assert numbers(log, 10**6)[:1] == [1]


def test_a_log_without_records(tmp_path: Path) -> None:
    with Log(tmp_path / "x.log") as log:
        assert list(sample(log, 5)) == []


def test_records_whose_bytes_are_not_zero_yet_are_deleted_all_the_same(tmp_path: Path) -> None:
    with made(tmp_path / "x.log", 50, 4096) as log:
        records = list(log.stream())
        for record in records[:40]:
            log.delete(record.offset)
        assert log.deleting()
        assert numbers(log, 50) == list(range(40, 50))


def test_records_that_cannot_be_decoded_are_left_out(tmp_path: Path) -> None:
    with Log(tmp_path / "x.log", codec="raw") as log:
        log.append_many([b"\x01", b"\xc1", b"\x02"])  # msgpack has no 0xc1
    (tmp_path / "x.log.jitdb" / "meta").unlink()
    with Log(tmp_path / "x.log", codec="msgpack") as log:
        assert list(sample(log, 10)) == [1, 2]


@pytest.mark.parametrize("live", [0, 200, 9000])
def test_only_what_it_takes_is_read_of_a_large_block(
    tmp_path: Path, live: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And all of it, where the block begins with deleted records."""
    sizes: list[int] = []
    with made(tmp_path / "x.log", 200_000, 1 << 20) as log:
        read = log.read_blocks

        def counted(start: int, stop: int, buffer: Any) -> int:
            sizes.append(stop - start)
            return read(start, stop, buffer)

        monkeypatch.setattr(log, "read_blocks", counted)
        for record in log.stream(limit=live):
            log.delete(record.offset)
        assert numbers(log, 10)[0] == live
        assert max(sizes) == (65536 if live < 9000 else 8 * 65536)


def test_no_more_records_are_cut_out_than_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bytes] = []
    monkeypatch.setattr(framing, "is_zero", lambda record: looked.append(record) or not any(record))
    with made(tmp_path / "x.log", 5000, 4096) as log:
        assert len(numbers(log, 40)) == len(looked) == 40
