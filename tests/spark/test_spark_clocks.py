"""Clocks that differ: of the machine that has the files, of the driver, of workers. Answers do not depend on them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from range_cases import build_by_spans
from reading_cases import table_rows

from jitdb import JITDB, Log
from jitdb.common.paths import TIMESTAMPS
from jitdb.log.lines.line_log import LineLog
from jitdb.operators import equal

pytest.importorskip("pyspark")

from jitdb.spark_ext.writing import job
from jitdb.spark_ext.writing.encoding import write_partition

HOURS = {"a year behind": -8766, "an hour behind": -1, "an hour ahead": 1, "a year ahead": 8766}
SOME = equal(["k"], 3)


def written(path: Path, numbers: range) -> None:
    """More records, of a log or of lines."""
    records = [{"n": n, "k": n % 7} for n in numbers]
    if path.suffix == ".ndjson":
        with open(path, "a") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
    else:
        with Log(path, block_size=512) as log:
            log.append_many(records)


def move_clock(path: Path, hours: int) -> None:
    """What was written now was written then."""
    for each in [path, *path.parent.rglob("*")]:
        if each.is_file():
            moved = each.stat().st_mtime_ns + hours * 3_600_000_000_000
            os.utime(each, ns=(moved, moved))


@pytest.mark.parametrize("hours", HOURS.values(), ids=HOURS)
@pytest.mark.parametrize("name", ["x.log", "x.ndjson"])
def test_tables(tmp_path: Path, name: str, hours: int) -> None:
    path = tmp_path / name
    for before, count in ((0, 300), (300, 500), (500, 700)):
        written(path, range(before, count))
        move_clock(path, hours)
        for indexes in ("none", "build", "auto"):
            rows = table_rows(path, columns=["n"], where=SOME, indexes=indexes, partition_bytes=2000)
            assert [row["n"] for row in rows] == [n for n in range(count) if n % 7 == 3]


@pytest.mark.parametrize("hours", HOURS.values(), ids=HOURS)
@pytest.mark.parametrize("name", ["x.log", "x.ndjson"])
def test_indexes(tmp_path: Path, name: str, hours: int) -> None:
    """Also of what comes later; those of lines lie where nothing else is."""
    path = tmp_path / name
    for before, count in ((0, 2000), (2000, 3000)):
        written(path, range(before, count))
        move_clock(path, hours)
        with Log(path, read_only=True) if path.suffix == ".log" else LineLog(path, folder=tmp_path / "kept") as log:
            folder = tmp_path / "indexes"
            build_by_spans(log, folder, [SOME], 8000)
            with JITDB(log, folder, timestamp=TIMESTAMPS) as db:
                assert db.explain(SOME)["scan_bytes"] == 0
                assert db.count(SOME) == sum(n % 7 == 3 for n in range(count))


@pytest.mark.parametrize("hours", HOURS.values(), ids=HOURS)
def test_a_job_that_begins_stays(tmp_path: Path, hours: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's clock, by which its folder, still empty, was made long ago."""
    path = tmp_path / "x.log"
    young = tmp_path / "x.log.spark-young"
    young.mkdir()
    monkeypatch.setattr(time, "time", lambda now=time.time: now() + 3600 * hours + 60)
    target = job.begin(str(path), "1", None, None, False)
    assert young.is_dir()
    os.utime(young, (0, 0))
    job.remove_leftovers(str(path), os.stat(target.folder).st_mtime)
    assert not young.exists()
    assert Path(target.folder).is_dir()
    part = write_partition(target, 0, "0", [{"n": 1}])
    moved = time.time()
    os.utime(Path(target.folder, part.name), (moved, moved))
    assert job.commit(target, [part]) == 1
    assert [row["n"] for row in table_rows(path, columns=["n"])] == [1]
