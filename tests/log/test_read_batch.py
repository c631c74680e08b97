"""Records in one buffer are those that are read one by one."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jitdb import Log
from jitdb.errors import InvalidOffset
from jitdb.log.codecs.fields.constants import DELETED
from jitdb.log.codecs.fields.located import Scratch
from jitdb.log.lines.line_log import LineLog
from jitdb.log.source import LogSource

COUNT = 3000


def check(log: LogSource, offsets: np.ndarray, scratch: Scratch) -> None:
    batch = log.read_batch(offsets, scratch)
    found = [None if state == DELETED else batch.record(number) for number, state in enumerate(batch.states.tolist())]
    assert found == log.get_many_raw(offsets)


def choices(offsets: list[int]) -> list[np.ndarray]:
    """All, every tenth, some runs, those that lie far apart, and few."""
    chance = random.Random(3)
    some = sorted(chance.sample(range(len(offsets)), 400))
    runs = [number for first in some[::40] for number in range(first, min(first + 50, len(offsets)))]
    taken = [
        range(len(offsets)),
        range(0, len(offsets), 10),
        some,
        sorted(set(runs)),
        some[::100],
        [0],
        [len(offsets) - 1],
    ]
    return [np.array([offsets[number] for number in each], np.int64) for each in taken]


@pytest.mark.parametrize("block_size", [4096, 65_536, 1 << 17])
def test_records_of_a_log(tmp_path: Path, block_size: int) -> None:
    chance = random.Random(5)
    with Log(tmp_path / "log", codec="raw", block_size=block_size) as log:
        records = [
            b"\0" * chance.randrange(2) + chance.randbytes(chance.randrange(1, 900)) + b"x" for _ in range(COUNT)
        ]
        offsets = list(map(int, log.append_many(records)))
        scratch = Scratch()
        for chosen in choices(offsets):
            check(log, chosen, scratch)
        few = np.array(log.append_many([b"one of those that are not written yet"] * 50), np.int64)
        check(log, few, scratch)
        log.flush()
        log.delete_many(offsets[5::7])
        for chosen in choices(offsets):
            check(log, chosen, scratch)
        log.flush()
        for chosen in choices(offsets):
            check(log, chosen, scratch)
        with pytest.raises(InvalidOffset):
            log.read_batch(np.arange(100, dtype=np.int64) + offsets[50] + 1, scratch)
        with pytest.raises(InvalidOffset):
            log.read_batch(np.array([*offsets[:60], log.durable_end + 10], np.int64), scratch)


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n"])
@pytest.mark.parametrize("longest", [300, 40_000])
def test_lines_of_a_file(tmp_path: Path, before: bytes, longest: int) -> None:
    chance = random.Random(7)
    path = tmp_path / "lines.ndjson"
    lines = [
        b'{"n": %d, "text": "%s"}' % (n, b"x" * chance.randrange(longest if n % 50 == 0 else 300)) for n in range(COUNT)
    ]
    blank: Callable[[int], bytes] = lambda n: b" " if n % 100 == 9 else b""  # noqa: E731
    text = before + b"".join(line + b"\n" + (blank(n) + b"\n" if n % 100 == 9 else b"") for n, line in enumerate(lines))
    path.write_bytes(text)
    offsets, at = [], len(before)
    for line in text[len(before) :].split(b"\n")[:-1]:
        offsets.append(at)
        at += len(line) + 1
    log = LineLog(path, folder="memory")
    scratch = Scratch()
    for chosen in choices(offsets):
        check(log, chosen, scratch)
    with pytest.raises(InvalidOffset):
        log.read_batch(np.array([*offsets[:99], offsets[99] + 1], np.int64), scratch)
    with pytest.raises(InvalidOffset):
        log.read_batch(np.array([*offsets[:99], len(text)], np.int64), scratch)
    log.close()
