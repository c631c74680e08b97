"""Workers that see another file at the log's path than the driver did: rows of what that saw, or a typed error."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from range_cases import Here, build_by_spans, damage

from jitdb import JITDB, Log
from jitdb.common.paths import TIMESTAMPS
from jitdb.errors import JitdbError, LogCorrupt
from jitdb.operators import equal

pytest.importorskip("pyspark")

from jitdb.spark_ext.data_source import JitdbDataSource
from jitdb.spark_ext.errors import CopyDiffers, LogChanged
from jitdb.spark_ext.options import as_options

BLOCK = 512
COUNT = 600
SOME = equal(["k"], 3)


def made(path: Path) -> list[int]:
    """The offsets of its records."""
    records = [{"n": n, "k": n % 7} for n in range(COUNT)]
    if path.suffix == ".ndjson":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return []
    with Log(path, block_size=BLOCK) as log:
        return list(map(int, log.append_many(records)))


def older(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: 10 * BLOCK])


def other(path: Path) -> None:
    """As long, of other records."""
    path.write_bytes(path.read_bytes().replace(b"k", b"j"))


def damaged(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[5 * BLOCK + 40] ^= 4
    damage(path, data)


COPIES: dict[str, tuple[Callable[[Path], object], tuple[type[JitdbError], ...]]] = {
    "none": (Path.unlink, (CopyDiffers,)),
    "older": (older, (CopyDiffers, LogChanged)),
    "another": (other, (CopyDiffers, LogChanged)),
}


@pytest.mark.parametrize("indexes", ["none", "build"])
@pytest.mark.parametrize("where", [None, SOME])
@pytest.mark.parametrize("name", ["x.log", "x.ndjson"])
@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
def test_tables(tmp_path: Path, copy: str, name: str, where: Any, indexes: str) -> None:
    """Every task says so; one that came to a machine with the right file has its rows."""
    path = tmp_path / name
    made(path)
    changed, errors = COPIES[copy]
    options = as_options(None, ["n"], where, {"indexes": indexes, "partitionBytes": 4 * BLOCK})
    source = JitdbDataSource(options={**options, "path": str(path)})
    reader = source.reader(source.schema())
    first, *others = reader.partitions()
    rows = [row["n"] for batch in reader.read(first) for row in batch.to_pylist()]
    assert rows == [n for n in range(COUNT) if where is None or n % 7 == 3][: len(rows)]
    changed(path)
    for partition in others:
        with pytest.raises(errors) as told:
            list(reader.read(partition))
        assert told.value.path == str(path)


@pytest.mark.parametrize("indexes", ["none", "build"])
@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
def test_a_damaged_copy(tmp_path: Path, indexes: str) -> None:
    path = tmp_path / "x.log"
    lost = [n for n, offset in enumerate(made(path)) if offset // BLOCK == 5]
    for skip in ("error", "skip"):
        options = as_options(None, ["n"], None, {"indexes": indexes, "corruptBlocks": skip})
        source = JitdbDataSource(options={**options, "path": str(path)})
        reader = source.reader(source.schema())
        (partition,) = reader.partitions()
        sound = path.read_bytes()
        damaged(path)
        if skip == "error":
            with pytest.raises(LogCorrupt, match="block 5 "):
                list(reader.read(partition))
        else:
            rows = [row["n"] for batch in reader.read(partition) for row in batch.to_pylist()]
            assert rows == [n for n in range(COUNT) if n not in lost]
        damage(path, sound)


@pytest.mark.parametrize("copy", [*COPIES, "damaged"])
@pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")
def test_indexes(tmp_path: Path, copy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """None counts that a worker made of another file; one that lacks a block's records is made anew when asked."""
    path, run = tmp_path / "x.log", Here.run
    made(path)
    sound = path.read_bytes()
    changed, errors = COPIES.get(copy, (damaged, ()))

    def elsewhere(self: Here, work: str, *arguments: Any) -> Any:
        times = path.stat()
        changed(path)
        try:
            return run(self, work, *arguments)
        finally:
            path.write_bytes(sound)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    monkeypatch.setattr(Here, "run", elsewhere)
    folder = tmp_path / "indexes"
    with Log(path, read_only=True) as log:
        if errors:
            with pytest.raises(errors):
                build_by_spans(log, folder, [SOME], 8 * BLOCK)
            assert not list(folder.glob("*.index"))
        else:
            build_by_spans(log, folder, [SOME], 8 * BLOCK)
        with JITDB(log, folder, timestamp=TIMESTAMPS) as db:
            assert db.count(SOME) == sum(n % 7 == 3 for n in range(COUNT))
