"""Past 4 GiB, in a file of holes: offsets are 64 bits wide everywhere, and empty blocks cost next to nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from engine_helpers import POSTS, make_log, messages

from jitdb import JITDB, Log
from jitdb.log.io import osfile
from jitdb.operators import and_, equal, gt, not_, offsets, seqs

pytestmark = pytest.mark.slow

GIB = 1 << 30
BLOCK = 65536


class Holes(osfile.FileSystem):
    """Knows where the hole is, and spares the kernel from filling its cache with 4 GiB of zeros."""

    def preadv(self, fd: int, buffer: memoryview, offset: int) -> int:
        if offset < BLOCK or offset + len(buffer) > 4 * GIB + BLOCK:
            return super().preadv(fd, buffer, offset)
        np.frombuffer(buffer, np.uint8)[:] = 0
        return len(buffer)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    """300 records at the beginning, 300 behind 4 GiB of nothing, written as another program would."""
    make_log(tmp_path / "first", 300, block_size=BLOCK)
    with Log(tmp_path / "second", codec="bipf", block_size=BLOCK) as second:
        second.append_many(messages(300, first=300))
    path = tmp_path / "log"
    path.write_bytes((tmp_path / "first").read_bytes())
    os.truncate(path, 4 * GIB + BLOCK)
    with open(path, "r+b") as file:
        file.seek(4 * GIB + BLOCK)
        file.write((tmp_path / "second").read_bytes())
    if path.stat().st_blocks * 512 > GIB:
        pytest.fail("the file system of the temporary folder does not store holes")
    monkeypatch.setattr(osfile, "fs", Holes())
    return Log(path, codec="bipf", block_size=BLOCK)


def test_answers_on_both_sides_of_4_gib(log: Log) -> None:
    with log:
        db = JITDB(log)
        begin = time.perf_counter()
        assert db.count(POSTS) == 240
        assert time.perf_counter() - begin < 20
        begin = time.perf_counter()
        places = db.all(sort_by="arrival", as_offsets=True)
        assert len(places) == 600
        assert places[299] < BLOCK < 4 * GIB + BLOCK == places[300]
        assert db.count(not_(POSTS)) == 360
        author = equal("value.author", "@3")
        found = db.all(and_(author, POSTS), sort_by="arrival")
        assert [int(record["key"][1:]) for record in found] == [
            number for number in range(600) if number % 11 == 3 and number % 5 in (0, 4)
        ]
        assert [record["key"] for record in db.all(offsets([places[0], places[301]]))] == ["%000000", "%000301"]
        assert db.all(seqs([599]), as_offsets=True) == [places[599]]
        assert db.lookup(equal("key", "%000599"), 599)
        assert db.paginate(gt(40, "sequence"), limit=3, descending=True).total == 600 - 41 * 11
        log.delete(places[301])
        assert db.count() == 599
        assert db.count(offsets([places[301]])) == 0
        log.append_many(messages(10, first=600))
        log.flush()
        assert db.count(POSTS) == 244  # 301 was none; 600, 604, 605 and 609 are
        assert JITDB(log).count(POSTS) == db.count(POSTS)
        assert time.perf_counter() - begin < 5
