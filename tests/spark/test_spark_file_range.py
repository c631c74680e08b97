"""What a worker reads of a log, and what it says where it cannot; and what it leaves to the garbage collector."""

from __future__ import annotations

import errno
import gc
import os
import pickle
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from range_cases import CORE

from jitdb import Log
from jitdb.engine.manager import IndexManager
from jitdb.engine.plan import requirements
from jitdb.indexes.kinds.roaring import members_of
from jitdb.log.io import osfile
from jitdb.operators import contains, equal
from jitdb.spark_ext.building import scanning
from jitdb.spark_ext.building.driver import Driver
from jitdb.spark_ext.building.scanning import Job, Range, Task, scan_shared
from jitdb.spark_ext.errors import CopyDiffers, SparkError
from jitdb.spark_ext.file_range import FileRange, Run, Snapshot
from jitdb.spark_ext.options import ReadOptions
from jitdb.spark_ext.reading.partitions import Partition
from jitdb.spark_ext.streaming.stream import LogStream
from jitdb.testing.sources import LogSourceTests, Records

BLOCK = 512


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    with Log(folder / "x.log", block_size=BLOCK) as log:
        offsets = log.append_many([{"n": number, "text": "x" * 32} for number in range(100)])
        for offset in offsets[7:9]:
            log.delete(offset)
    return folder / "x.log"


def seen(path: Path) -> Snapshot:
    with Log(path, read_only=True) as log:
        return Snapshot.of(log, log.durable_end)


#: Blocks, by their numbers: what a task of a prebuild reads, and tasks of reads.
RANGES = {
    "all": [range(9)],
    "the first": [range(2)],
    "the last": [range(2, 9)],
    "some": [range(1), range(2, 4), range(5, 9)],
}


class Shared(LogSourceTests):
    """The log of which blocks are read."""

    @pytest.fixture
    def records(self, path: Path, blocks: list[range]) -> Records:
        with Log(path, read_only=True) as log:
            live = {record.offset: record.value for record in log.stream(raw=True)}
            gone = dict.fromkeys(log.deletions()[1].tolist())
        wanted = [number for run in blocks for number in run]
        return [record for offset, record in sorted({**live, **gone}.items()) if offset // BLOCK in wanted]


@pytest.mark.parametrize("blocks", RANGES.values(), ids=RANGES)
class TestFile(Shared):
    """Runs of a file that this machine can open."""

    @pytest.fixture
    def source(self, path: Path, blocks: list[range]) -> FileRange:
        snapshot = seen(path)
        runs = [(run.start * BLOCK, min(run.stop * BLOCK, snapshot.end)) for run in blocks]
        with Log(path, read_only=True) as log:
            every = log.checksums(0, 9)
            sums = np.concatenate([every[run.start : run.stop] for run in blocks])
            return FileRange.of_file(snapshot, runs, snapshot.open(), sums, deleted=log.deletions()[1])


@pytest.mark.parametrize("blocks", [RANGES["all"], RANGES["the first"]], ids=["all", "the first"])
class TestBytes(Shared):
    """Bytes that somebody else has read, here from the log's beginning on."""

    @pytest.fixture
    def source(self, path: Path, blocks: list[range]) -> FileRange:
        snapshot = seen(path)
        stop = min(blocks[0].stop * BLOCK, snapshot.end)
        with Log(path, read_only=True) as log:
            sums = log.checksums(0, -(-stop // BLOCK))
        return FileRange.of_bytes(snapshot, stop, memoryview(path.read_bytes()), 0, sums)


def test_places_there_and_here(path: Path) -> None:
    source = FileRange.of_file(seen(path), [(512, 1024), (1536, 2300)], seen(path).open(), None)
    assert source.durable_end == 512 + 2300 - 1536
    assert [source.offset_in_log(here) for here in (0, 511, 512, 1000)] == [512, 1023, 1536, 2024]
    assert source.offsets_here(np.array([0, 511, 512, 1023, 1024, 1535, 1536, 2299, 2300])).tolist() == [
        0,
        511,
        512,
        1275,
    ]
    assert list(source.runs_in(0, 4096)) == [(0, 0, 512), (1, 512, 1536)]
    assert list(source.runs_in(512, 600)) == [(1, 512, 600)]


def prebuilds(path: Path) -> None:
    """What a task of a prebuild does."""
    snapshot = seen(path)
    job = Job(snapshot, tuple(requirements(equal("n", 1), CORE)), frozenset())
    _break(path)
    scan_shared(job, Task(Range(0, 0, snapshot.end, (0,)), None))


def reads(path: Path) -> None:
    """What a task of a read does."""
    snapshot = seen(path)
    _break(path)
    Partition(snapshot, (Run(0, snapshot.end, 0),), None, np.empty(0, np.int64), CORE).open()


def _break(path: Path) -> None:
    """Have another machine's folder there, in which the name of the log's folder is that of a file."""
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.touch()


@pytest.mark.parametrize("does", [prebuilds, reads])
def test_a_worker_tells_why_it_cannot_read(path: Path, does: Any) -> None:
    wanted = f"x.log: {os.uname().nodename} cannot read it \\(Not a directory\\); the path must lie on storage"
    with pytest.raises(CopyDiffers, match=wanted) as caught:
        does(path)
    assert ("or be a Hadoop URI" in str(caught.value)) is (does is prebuilds)


@pytest.mark.parametrize("call", ["open", "read"])
@pytest.mark.parametrize("code", [errno.EACCES, errno.ESTALE, errno.EIO])
def test_whatever_the_disk_says_is_told(path: Path, call: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = seen(path)

    def fails(*_: object) -> Any:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(osfile.fs, call, fails)
    with pytest.raises(CopyDiffers, match=os.strerror(code)):
        snapshot.open()


def test_an_empty_log_of_another_program_has_no_identity(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.touch()
    wanted = (
        r"x\.log: it has no identity that is kept, so {}.*: its sidecar cannot be written, or it is empty and another"
    )
    with Log(path, read_only=True) as log, pytest.raises(SparkError, match=wanted.format("its index files could not")):
        Driver(log, tmp_path / "indexes", [], CORE)
    with pytest.raises(SparkError, match=wanted.format("a stream could not tell it from another log")):
        LogStream(ReadOptions.of({"path": str(path)}))


def test_what_is_garbage_by_then_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Node:
        """One that holds itself."""

        def __init__(self) -> None:
            self.me = self

    monkeypatch.setattr(scanning, "_settled", False)
    gc.disable()
    try:
        gone = weakref.ref(Node())
        scanning.settle()
        gc.collect()
        assert gone() is None
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.enable()


#: What a fresh worker does with what it is sent; then, what of the package and of numba it has imported.
WORKER = """
import pickle, sys
function, *arguments = pickle.load(sys.stdin.buffer)
found = function(*arguments)
if not hasattr(found, "head"):
    assert sum(batch.num_rows for batch in found) == 98
print(*(name for name in sys.modules if name.partition(".")[0] in ("jitdb", "numba")))
"""
DRIVERS_OWN = {
    "jitdb.spark_ext." + name
    for name in (
        "sessions", "reading.planning", "streaming.stream", "writing.job",
        "building.prebuild", "building.driver", "building.transports", "building.hadoop",
    )
}  # fmt: skip


@pytest.mark.parametrize("does", ["scans", "reads"])
def test_a_worker_imports_what_it_does_itself(path: Path, does: str) -> None:
    pytest.importorskip("pyspark")
    if does == "scans":
        snapshot = seen(path)
        job = Job(snapshot, tuple(requirements(equal("n", 1), CORE)), frozenset())
        sent: Any = (scan_shared, job, Task(Range(0, 0, snapshot.end, (0,)), None))
    else:
        from jitdb.spark_ext.data_source import JitdbDataSource

        source = JitdbDataSource({"path": str(path), "where": "n >= 0", "indexes": "none"})
        reader = source.reader(source.schema())
        (partition,) = reader.partitions()
        sent = (reader.read.__func__, reader, partition)
    done = subprocess.run([sys.executable, "-c", WORKER], input=pickle.dumps(sent), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    imported = set(done.stdout.decode().split())
    assert not imported & DRIVERS_OWN
    assert "numba" not in imported


def test_long_texts_of_a_large_range_are_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task samples its range as a log is sampled, and keeps no dictionary for one question."""
    monkeypatch.setattr("jitdb.engine.plan.LARGE", 1)
    with Log(tmp_path / "x.log", block_size=BLOCK) as log:
        log.append_many({"text": f"{number} is a long text of a message that differs"} for number in range(900))
    runs = [(0, 4 * BLOCK), (10 * BLOCK, 60 * BLOCK)]
    source = FileRange.of_file(seen(tmp_path / "x.log"), runs, seen(tmp_path / "x.log").open(), None)
    manager = IndexManager(source, lambda: None, CORE, 1, False)
    asked = contains("text", "7 is")

    def look(end: int) -> list[int]:
        return manager.records.offsets_of(members_of(manager.evaluator.matches(asked, end))).tolist()

    found = [source.offset_in_log(here) for here in manager.ask(asked, False, None, look)]
    assert "text" in {index.spec.form for index in manager.opened()}
    with Log(tmp_path / "x.log", read_only=True) as log:
        within = [each for each in log.stream() if any(low <= each.offset < high for low, high in runs)]
    assert len(within) > 100
    assert found == [each.offset for each in within if "7 is" in each.value["text"]]
