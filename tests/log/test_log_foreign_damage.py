"""Logs without a sidecar that are damaged: what is in order is read all the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jitdb import Log
from jitdb.errors import NotALog

pytestmark = pytest.mark.slow

FIXTURE = Path(__file__).parent.parent / "data" / "ssb-5k.bipf"
BLOCK = 65_536


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(FIXTURE, tmp_path / "ssb.bipf"))


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


@pytest.mark.parametrize("block", [0, 1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"codec": "bipf", "block_size": BLOCK}])
def test_one_early_block_that_is_damaged_does_not_hide_the_log(path: Path, block: int, options: dict) -> None:
    overwrite(path, block * BLOCK, b"\xff" * 300)
    with Log(path, read_only=True, **options) as log, pytest.warns(UserWarning, match="damaged"):
        assert sum(1 for _ in log.stream(raw=True)) > 4_800


def test_a_malformed_record_in_the_last_block_does_not_cut_what_follows_it(path: Path) -> None:
    with Log(path, read_only=True) as log:
        offsets = [record.offset for record in log.stream(raw=True)]
        since = log.since
    shutil.rmtree(f"{path}.jitdb")
    overwrite(path, next(o for o in offsets if o > since - since % BLOCK) + 2, b"\x07" * 8)
    with Log(path, read_only=True) as log:
        assert log.since == since
        assert sum(1 for _ in log.stream(raw=True)) == 5_000


def test_a_malformed_last_record_is_a_torn_end(path: Path) -> None:
    with Log(path, read_only=True) as log:
        *_, before, last = (record.offset for record in log.stream(raw=True))
    shutil.rmtree(f"{path}.jitdb")
    overwrite(path, last + 2, b"\x07" * 8)
    with Log(path, read_only=True) as log:
        assert log.since == before


def test_random_bytes_are_no_log(tmp_path: Path) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(bytes((7 * i * i + 13) % 251 + 1 for i in range(4 * BLOCK)))
    with pytest.raises(NotALog):
        Log(noise, read_only=True)


def test_kernels_compile_where_nothing_can_be_kept() -> None:
    program = """
import sys
from numba.core import caching
caching.CacheImpl._locator_classes = []
from jitdb.common.kernels import kernel

@kernel
def twice(number):
    return 2 * number

assert twice(21) == 42
"""
    environment = {**os.environ, "JITDB_KERNELS": "numba"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=120)
