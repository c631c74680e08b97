"""Block sizes found by looking: all records are read, or it is said that the size must be given; never some of them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from jitdb.errors import NotALog
from jitdb.log import Log
from jitdb.log.blocks.block_format import largest_record
from jitdb.log.codecs import get_codec

pytestmark = pytest.mark.slow


def forget_sidecar(path: Path) -> None:
    shutil.rmtree(f"{path}.jitdb", ignore_errors=True)


def read(path: Path, **options: Any) -> list[tuple[int, Any]]:
    with Log(path, read_only=True, **options) as log:
        return [(record.offset, record.value) for record in log.stream()]


@pytest.mark.parametrize("block_size", [512, 1000, 1024, 2048, 3000, 4097, 65_535, 65_537, 100_000])
@pytest.mark.parametrize("records", [1, 20, 500])
def test_sizes_that_nobody_tries(tmp_path: Path, block_size: int, records: int) -> None:
    path = tmp_path / "a.log"
    with Log(path, block_size=block_size) as log:
        log.append_many([{"number": number, "text": "x" * (number % 60)} for number in range(records)])
    forget_sidecar(path)
    assert [value["number"] for _, value in read(path)] == list(range(records))
    forget_sidecar(path)
    with Log(path) as log:  # and for writing: what is there stays, what is new has the blocks of before
        log.append_many([{"number": number} for number in range(records, records + 100)])
        log.flush()
        assert (log.block_size, log.stats().records) == (block_size, records + 100)
        assert list(log.sidecar.glob("torn-*")) == []


@pytest.mark.parametrize("block_size", [1000, 10_000, 100_000])
@pytest.mark.parametrize("records", [1, 20])
@pytest.mark.parametrize(
    ("kind", "found"), [("deleted", "all its records are deleted"), ("raw", "no records of msgpack, bipf or json")]
)
def test_one_block_of_an_odd_size_that_nothing_speaks_for(
    tmp_path: Path, block_size: int, records: int, kind: str, found: str
) -> None:
    """It says what there is, and what to pass; who passes that has the log."""
    path = tmp_path / "a.log"
    with Log(path, codec="raw", block_size=block_size) as log:
        for offset in log.append_many([b"\xc1 record %d" % number for number in range(records)]):
            if kind == "deleted":
                log.delete(offset)
    forget_sidecar(path)
    for read_only in (True, False):
        with pytest.raises(NotALog, match=rf"{found}.*pass block_size={block_size}\b") as told:
            Log(path, read_only=read_only)
        assert "other bytes follow" not in str(told.value)
        assert told.value.offset == 0
    with Log(path, codec="raw", block_size=block_size, read_only=True) as log:
        assert log.stats().records == (0 if kind == "deleted" else records)


def test_zeros_are_told_from_a_log_that_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(bytes(1000))
    with pytest.raises(NotALog, match=r"nothing but zeros.*pass block_size=1000"):
        Log(path, read_only=True)


def random_log(path: Path, chance: random.Random) -> tuple[str, int]:
    """A closed log of random records and sizes, some of them deleted."""
    codec = chance.choice(["bipf", "msgpack", "raw"])
    block_size = chance.choice([chance.randint(48, 300), chance.randint(300, 5000), 1 << chance.randint(6, 17)])
    room = largest_record(block_size)
    longest = chance.choice([20, 60, 200, 2000])
    with Log(path, codec=codec, block_size=block_size) as log:
        encode = get_codec(codec).encode
        made = []
        for number in range(chance.choice([1, 2, 5, 40, 300])):
            text = "x" * chance.randint(0, longest)
            value: Any = b"%d" % number + text.encode() if codec == "raw" else {"n": number, "t": text}
            made += [value] if len(encode(value)) <= room else []
        offsets = log.append_many(made)
        log.flush()
        for offset in offsets:
            if chance.random() < 0.1:
                log.delete(offset)
    return codec, block_size


@pytest.mark.parametrize("seed", range(120))
def test_random_logs(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = tmp_path / "a.log"
    codec, block_size = random_log(path, chance)
    size = path.stat().st_size
    if size and chance.random() < 0.4:  # the end of a copy is missing
        with open(path, "r+b") as file:
            file.truncate(max(1, size - chance.randint(1, min(size, 2 * block_size) - 1)))
    forget_sidecar(path)
    kept = path.read_bytes()
    told = {"codec": "raw"} if codec == "raw" else {}
    try:
        wanted = read(path, codec=codec, block_size=block_size)
    except NotALog:  # nothing whole is left of it
        wanted = []
    forget_sidecar(path)
    try:
        found = read(path, **told)
    except NotALog:
        with pytest.raises(NotALog, match=r"block_size=|codec=|text file"):
            Log(path, **told)
        assert path.read_bytes() == kept
        return
    assert found == wanted
    forget_sidecar(path)
    with Log(path, **told) as log:
        assert [(record.offset, record.value) for record in log.stream()] == wanted
        aside = b"".join(each.read_bytes() for each in log.sidecar.glob("torn-*"))
    assert len(aside.lstrip(b"\0")) < block_size  # what is cut off is the one record that is not whole
    assert kept.startswith(path.read_bytes().rstrip(b"\0"))
