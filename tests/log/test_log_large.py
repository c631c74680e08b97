"""Past 4 GiB, with a file of holes; and blocks larger than a u16 header can speak of."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from jitdb.errors import InvalidOffset, RecordDeleted
from jitdb.log import Log
from jitdb.log.io import osfile

pytestmark = pytest.mark.slow

GIB = 1 << 30


class Holes(osfile.FileSystem):
    """Knows where the hole is, and spares the kernel from filling its cache with 4 GiB of zeros."""

    _zeros = bytes(1 << 20)

    def pread(self, fd: int, size: int, offset: int) -> bytes:  # type: ignore[override]
        if offset >= 65536 and offset + size <= 4 * GIB:
            return self._zeros[:size]
        return os.pread(fd, size, offset)

    def preadv(self, fd: int, buffer: memoryview, offset: int) -> int:
        if offset >= 65536 and offset + len(buffer) <= 4 * GIB:
            buffer[:] = self._zeros[: len(buffer)]
            return len(buffer)
        return super().preadv(fd, buffer, offset)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A block of records, then a hole of empty blocks, and a block of records behind 4 GiB."""
    path = tmp_path / "a.log"
    with Log(path, codec="raw") as log:
        log.append_many([b"first", b"second"])
    os.truncate(path, 4 * GIB + 65536)
    with open(path, "r+b") as file:
        file.seek(4 * GIB)
        file.write(b"\5\0third\6\0fourth")
    if path.stat().st_blocks * 512 > GIB:
        pytest.fail("the file system of the temporary folder does not store holes")
    return path


@pytest.mark.parametrize("read_only", [True, False])
def test_past_4_gib(path: Path, read_only: bool) -> None:
    with Log(path, read_only=read_only) as log:
        assert log.since == 4 * GIB + 7
        assert log.durable_end == 4 * GIB + 15
        assert log.get(4 * GIB) == b"third"
        assert log.get_many_raw([4 * GIB + 7, 0]) == [b"fourth", b"first"]
        assert log.get_many_raw(np.array([0, 4 * GIB])) == [b"first", b"third"]
        with pytest.raises(InvalidOffset):
            log.get(2 * GIB)
        with pytest.raises(InvalidOffset):
            log.get(4 * GIB + 1)
        buffer = np.zeros(65536, np.uint8)
        assert log.read_blocks(4 * GIB, 4 * GIB + 65536, buffer) == 15
        assert buffer[:7].tobytes() == b"\5\0third"


def test_appending_and_deleting_past_4_gib(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(osfile, "fs", Holes())
    with Log(path) as log:
        offset = log.append(b"fifth")
        assert offset == 4 * GIB + 15
        log.delete(4 * GIB)
    with Log(path, read_only=True) as log:
        assert log.get(offset) == b"fifth"
        with pytest.raises(RecordDeleted):
            log.get(4 * GIB)
        assert log.deletions()[1].tolist() == [4 * GIB]
        records = [(record.offset, record.seq, record.value) for record in log.stream()]
        assert records == [(0, 0, b"first"), (7, 1, b"second"), (4 * GIB + 7, 3, b"fourth"), (offset, 4, b"fifth")]
        assert [record.seq for record in log.stream(gt=GIB)] == [3, 4]
        assert [batch.offsets.tolist() for batch in log.stream_batches()] == [[0, 7], [4 * GIB, 4 * GIB + 7, offset]]


@pytest.mark.parametrize("block_size", [65537, 1 << 17, 1 << 20, 1 << 24])
def test_wide_headers(tmp_path: Path, block_size: int) -> None:
    largest = block_size - 8
    records = [
        b"s",
        b"m" * min(65_535, largest),
        b"l" * min(70_000, largest),
        b"x" * largest,
        b"e",
        b"f" * (largest - 5),
        b"g",
    ]
    with Log(tmp_path / "a.log", codec="raw", block_size=block_size) as log:
        offsets = log.append_many(records[:4]) + [log.append(record) for record in records[4:]]
        assert [log.get(offset) for offset in offsets] == records
        log.flush()
        log.delete(offsets[2])
    content = (tmp_path / "a.log").read_bytes()
    assert len(content) % block_size == 0
    for offset, record in zip(offsets, records, strict=True):
        assert int.from_bytes(content[offset : offset + 4], "little") == len(record)
    with Log(tmp_path / "a.log") as log:
        assert log.block_size == block_size
        expected = [(offset, seq, record) for seq, (offset, record) in enumerate(zip(offsets, records, strict=True))]
        assert [tuple(record) for record in log.stream()] == expected[:2] + expected[3:]
        assert log.get_many_raw(offsets) == [*records[:2], None, *records[3:]]
        seen = [offset for batch in log.stream_batches() for offset in batch.offsets.tolist()]
        assert seen == offsets
