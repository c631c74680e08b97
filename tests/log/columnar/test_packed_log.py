"""What is kept of a Parquet or Arrow file is packed: small, read as the log that it is, and never believed where a byte
of it is another one.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard
from homes import entry_of
from thoroughness import tries

import jitdb
from jitdb.common.digests import blake2b
from jitdb.errors import LogWriteFailed
from jitdb.log import Log
from jitdb.log.columnar import kept_rows, packed_log
from jitdb.log.columnar.packed_log import FRAME, PackedLog, packed_options
from jitdb.log.opening.open_log import open_log
from jitdb.operators import field

pa = pytest.importorskip("pyarrow")
from column_cases import flights, write  # noqa: E402

_ROWS = 4_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(flights(_ROWS), tmp_path / "x.parquet")


def log_of(path: Path) -> Path:
    return next(entry_of(path, "table").glob("rows/*/log"))


def put(log: Path, data: bytes) -> None:
    """Other bytes, at the same time: the disk, and no program, changed them."""
    times = log.stat()
    log.write_bytes(data)
    os.utime(log, ns=(times.st_atime_ns, times.st_mtime_ns))


def answers(path: Path) -> tuple[int, list[Any]]:
    with jitdb.open(path) as db:
        return db.count(field("status") == 500), db.query().all()


# --- as the log that it is -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_size", [4_096, 65_536, 1 << 20])
@pytest.mark.parametrize("seed", range(3))
def test_it_has_the_bytes_of_the_same_log(tmp_path: Path, seed: int, block_size: int) -> None:
    """Written in groups of any size, read in ranges of any place and size."""
    chance = random.Random(seed)
    plain = Log(tmp_path / "plain", codec="raw", block_size=block_size)
    packed = PackedLog(tmp_path / "packed", codec="raw", block_size=block_size)
    for _ in range(chance.choice([0, 1, 30])):
        group = [chance.randbytes(4) * chance.randint(1, 900) for _ in range(chance.randint(1, 300))]
        assert plain.append_many(group) == packed.append_many(group)
        if chance.random() < 0.3:
            plain.flush()
            packed.flush()
    plain.close()
    packed.close()
    text = (tmp_path / "plain").read_bytes()
    opened = open_log(tmp_path / "packed", packed_options(tmp_path / "packed"), read_only=True)
    try:
        assert opened.fs.size(opened.fd) == len(text)
        for _ in range(200):
            begin = chance.randint(0, len(text) + 10)
            size = chance.choice([chance.randint(0, 300), chance.randint(0, FRAME * 2), chance.randint(0, FRAME * 12)])
            assert opened.read(size, begin) == text[begin : begin + size]
            buffer = bytearray(size)
            found = opened.read_into(memoryview(buffer), begin)
            assert buffer[:found] == text[begin : begin + size]
        assert not any(opened.recovery.change)
    finally:
        opened.close()
    with PackedLog(tmp_path / "packed", read_only=True) as log:
        assert log.verify().ok
        assert [record.value for record in log.stream()] == [
            record.value for record in Log(tmp_path / "plain").stream()
        ]


def test_zstd_reads_it(path: Path, tmp_path: Path) -> None:
    answers(path)
    with open(log_of(path), "rb") as file:
        text = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    shutil.copytree(log_of(path).with_name("log.jitdb"), tmp_path / "plain.jitdb")
    (tmp_path / "plain").write_bytes(text)
    with Log(tmp_path / "plain", read_only=True) as log:
        assert len(list(log.stream())) == _ROWS


def test_it_is_small(path: Path) -> None:
    write(flights(60_000), path)
    with jitdb.open(path) as db:
        assert db.log.durable_end > 5 * db.log.kept.log.stat().st_size
        assert db.log.kept.bytes < 2 * path.stat().st_size


def test_what_is_packed_is_never_written_again(tmp_path: Path) -> None:
    with PackedLog(tmp_path / "packed", codec="raw") as log:
        log.append_many([b"x" * 1_000] * 500)
    before = (tmp_path / "packed").read_bytes()
    log = PackedLog(tmp_path / "packed")
    log.append(b"more")
    with pytest.raises(LogWriteFailed, match="never written again"):
        log.flush()
    with pytest.raises(LogWriteFailed):
        log.close()
    assert (tmp_path / "packed").read_bytes() == before


def test_counts_of_what_is_kept_take_no_pyarrow(path: Path) -> None:
    with jitdb.open(path) as db:
        count = db.count(field("status") == 500)
    program = (
        "import sys, jitdb\nfrom jitdb.operators import field\nsys.modules['pyarrow'] = None\n"
        "with jitdb.open(sys.argv[1]) as db: print(db.count(field('status') == 500))"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert int(done.stdout) == count


# --- every byte is owned ---------------------------------------------------------------------------------------------


def test_a_byte_that_is_another_one(path: Path) -> None:
    chance, expected = random.Random(5), answers(path)
    size = log_of(path).stat().st_size
    ends = [*range(8), *range(size - 130, size)]  # the first frame's head; the last frame's end, and the table
    for at in [*chance.sample(ends, tries(20, len(ends))), *(chance.randrange(size) for _ in range(tries(10, 500)))]:
        log = log_of(path)
        whole = log.read_bytes()
        put(log, whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
        shutil.rmtree(entry_of(path, "table") / "indexes", ignore_errors=True)
        assert answers(path) == expected, at


def test_it_is_cut_or_longer(path: Path) -> None:
    chance, expected = random.Random(6), answers(path)
    whole = log_of(path).read_bytes()
    cuts = [whole[: chance.randrange(len(whole))] for _ in range(8)]
    for data in (*cuts, b"", whole[:-1], whole + b"\0", whole + whole[-9:], b"\0" * len(whole)):
        put(log_of(path), data)
        assert answers(path) == expected, len(data)


def test_what_an_earlier_version_kept_is_made_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a log as any other one, under a name of the same file."""
    expected = answers(path)
    shutil.rmtree(path.parent / ".jitdb")
    with monkeypatch.context() as patch:
        patch.setattr(packed_log, "PackedLog", Log)
        patch.setattr(kept_rows, "_VERSION", b"")
        kept = kept_rows.RowKeeper(path, None).rows()
        assert kept_rows.RowKeeper(path, None).rows().read is None
    with Log(kept.log, read_only=True) as log:
        assert len(list(log.stream())) == _ROWS
    assert (kept.log.with_name("content")).read_bytes() == blake2b(path.read_bytes(), digest_size=32).digest()
    with jitdb.open(path) as db:
        assert db.log.kept.read == _ROWS
    assert answers(path) == expected
    assert not kept.log.exists()
    assert log_of(path).stat().st_size * 3 < _ROWS * 200


def test_another_program_writes_into_it_while_it_is_open(path: Path) -> None:
    expected = answers(path)
    with jitdb.open(path) as db:
        db.count()
        log = log_of(path)
        whole = log.read_bytes()
        put(log, b"\0" * (len(whole) // 2) + whole[len(whole) // 2 :])
        assert db.count(field("delay") > 3) == sum((row.get("delay") or 0) > 3 for row in expected[1])
        assert db.query().all() == expected[1]
