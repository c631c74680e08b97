"""Streams verify what they give: the records of a block that is not what was written are left out, and it is told."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitdb import Log
from jitdb.errors import DamageWarning, LogCorrupt

BLOCK = 512
SIZES = {"small": 300, "compiled": 5000}  # of the second the walk is compiled, if the kernels are there


@pytest.fixture(params=SIZES, ids=SIZES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "compiled":
        from jitdb.log.blocks import walk_kernels  # noqa: F401
    path = tmp_path / "a.log"
    size = BLOCK if request.param == "small" else 4096
    with Log(path, codec="raw", block_size=size) as log:
        offsets = log.append_many([b"%06d" % number * 20 for number in range(SIZES[request.param])])
        log.delete(offsets[2])  # in the first block
    return path


def rot(path: Path, at: int) -> None:
    """A bit falls over; no program was there."""
    stamp = path.stat().st_mtime_ns
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 4]))
    os.utime(path, ns=(stamp, stamp))


def quiet(rows: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        return list(rows)


def batched(log: Log, **bounds: Any) -> Iterator[tuple[int, int, bytes]]:
    for batch in log.stream_batches(**bounds):
        for number, (offset, start, length) in enumerate(zip(batch.offsets, batch.starts, batch.lengths, strict=True)):
            if not batch.deleted[number]:
                assert not batch.damaged[number]
                yield int(offset), batch.first_seq + number, batch.data[start : start + length].tobytes()


def followed(log: Log, count: int) -> list[Any]:
    """The first records of a live stream, which never ends."""
    rows = log.stream(raw=True, live=True, limit=count)
    found: list[Any] = []
    reading = threading.Thread(target=lambda: found.extend(quiet(rows)), daemon=True)
    reading.start()
    reading.join(20)
    assert not reading.is_alive()
    return found


@pytest.mark.parametrize("block", [0, 3, -1], ids=["first", "middle", "last"])
def test_every_way_leaves_out_the_same(path: Path, block: int) -> None:
    with Log(path, read_only=True) as log:
        before = [tuple(row) for row in log.stream(raw=True)]
        size, blocks = log.block_size, -(-log.durable_end // log.block_size)
    block %= blocks
    rot(path, block * size + 9)
    wanted = [row for row in before if row[0] // size != block]
    assert len(wanted) < len(before)
    with Log(path, read_only=True) as log:
        with pytest.warns(DamageWarning, match=f"block {block} .* is damaged") as told:
            assert [tuple(row) for row in log.stream(raw=True)] == wanted
        assert [each.message.faults[0].block for each in told] == [block]
        assert quiet(batched(log)) == wanted
        assert [tuple(row) for row in followed(log, len(wanted))] == wanted
        with pytest.raises(LogCorrupt):
            log.get(block * size)
    with Log(path, read_only=True) as log:
        with pytest.warns(DamageWarning):  # told to who asks first, whichever way
            assert list(batched(log)) == wanted
        stats = log.stats()
        assert (stats.records, stats.damaged_records) == (len(wanted), len(before) - len(wanted) + (block == 0))
        assert stats.deleted_records == (block != 0)


def test_bounds_and_limits_count_what_is_given(path: Path) -> None:
    with Log(path, read_only=True) as log:
        size = log.block_size
        before = [tuple(row) for row in log.stream(raw=True)]
    rot(path, size + 9)
    wanted = [row for row in before if row[0] // size != 1]
    low, high = wanted[2][0], wanted[-3][0]
    with Log(path, read_only=True) as log:
        assert [tuple(row) for row in quiet(log.stream(raw=True, gt=low, lte=high))] == wanted[3:-2]
        assert [tuple(row) for row in quiet(log.stream(raw=True, limit=40))] == wanted[:40]
        assert quiet(batched(log, gt=low, lte=high)) == wanted[3:-2]


def test_a_warning_can_be_made_an_error(path: Path) -> None:
    rot(path, 9)
    with Log(path, read_only=True) as log, warnings.catch_warnings():
        warnings.simplefilter("error", DamageWarning)
        with pytest.raises(DamageWarning):
            list(log.stream(raw=True))
        with pytest.raises(DamageWarning):  # and not only once
            list(log.stream(raw=True))


def test_beside_a_writer_that_deletes_nothing_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with Log(path, codec="raw", block_size=128) as log, Log(path, read_only=True) as reader:
        offsets = log.append_many([b"record %03d" % number for number in range(300)])
        log.flush()
        gone: set[int] = set()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for number in range(0, 300, 7):
                rows = reader.stream(raw=True)
                first = next(rows, None)
                log.delete(offsets[number])
                log.flush()
                gone.add(offsets[number])
                rest = [row.offset for row in rows]  # read as it was when it began, or as it is
                assert first is None or set(offsets) - gone <= {first.offset, *rest}
                reader.refresh()
                assert {row.offset for row in reader.stream(raw=True)} == set(offsets) - gone
                assert {row[0] for row in batched(log)} == set(offsets) - gone
