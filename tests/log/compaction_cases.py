"""Small logs to compact, and what holds of them afterwards."""

from __future__ import annotations

import os
from pathlib import Path

from jitdb.log import Log
from jitdb.log.io import filenames


def fill(log: Log, count: int, first: int = 0, width: int = 40) -> list[int]:
    offsets = log.append_many(
        [b"%06d" % number + b"x" * (number * 7 % width) for number in range(first, first + count)]
    )
    log.flush()
    return offsets


def numbers(log: Log) -> list[int]:
    return [int(record.value[:6]) for record in log.stream(raw=True)]


def make(path: Path, count: int, deleted: list[int], block_size: int = 512) -> None:
    with Log(path, codec="raw", block_size=block_size) as log:
        offsets = fill(log, count)
        for number in deleted:
            log.delete(offsets[number])


def assert_sound(path: Path) -> None:
    """Every sealed block has a checksum that holds, and nothing is left over from a switch."""
    with Log(path, read_only=True) as log:
        for record in log.stream(raw=True):
            assert log.get_raw(record.offset) == record.value
        assert log.stats().deleted_records == 0 or log.generation == 1
    names = os.listdir(filenames.sidecar_path(path))
    assert not set(names) & set(filenames.NEXT_FILES), names
    assert not [name for name in names if name.endswith(".tmp") or name.startswith("torn")], names
