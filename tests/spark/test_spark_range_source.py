"""What a worker reads of a log, and what it says where it cannot; and what it leaves to the garbage collector."""

from __future__ import annotations

import errno
import gc
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from range_cases import CORE

from jitdb import Log
from jitdb.engine.plan import requirements
from jitdb.log.io import osfile
from jitdb.operators import equal
from jitdb.spark_ext.building import worker
from jitdb.spark_ext.building.ranges import Range
from jitdb.spark_ext.building.tasks import Job, Task, scan_shared
from jitdb.spark_ext.building.work import Work
from jitdb.spark_ext.errors import CopyDiffers, SparkError
from jitdb.spark_ext.range_source import Blocks, Fingerprint, RangeSource, Shape, SharedFile
from jitdb.spark_ext.reading.options import Options
from jitdb.spark_ext.reading.parts import Part, Run
from jitdb.spark_ext.reading.window import Window
from jitdb.spark_ext.streaming.stream import LogStream
from jitdb.testing.sources import LogSourceTests, Records, ScanSourceTests

BLOCK = 512


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    with Log(folder / "x.log", block_size=BLOCK) as log:
        log.append_many([{"n": number} for number in range(100)])
    return folder / "x.log"


class Shared:
    """The log whose parts are read."""

    @pytest.fixture
    def records(self, path: Path) -> Records:
        with Log(path, read_only=True) as log:
            return [record.value for record in log.stream(raw=True)]

    @pytest.fixture
    def seen(self, path: Path) -> tuple[Shape, int, Fingerprint]:
        return _seen(path)

    @pytest.fixture
    def sums(self, path: Path) -> NDArray[np.int64]:
        with Log(path, read_only=True) as log:
            return log.checksums(0, -(-log.durable_end // BLOCK))


class TestSharedFile(Shared, ScanSourceTests):
    @pytest.fixture
    def source(self, seen: tuple[Shape, int, Fingerprint], sums: NDArray[np.int64]) -> RangeSource:
        return SharedFile(seen[0], seen[1], 0, sums)


class TestBlocks(Shared, ScanSourceTests):
    @pytest.fixture
    def source(self, path: Path, seen: tuple[Shape, int, Fingerprint], sums: NDArray[np.int64]) -> RangeSource:
        return Blocks(seen[0], seen[1], 0, sums, memoryview(path.read_bytes()))


class TestWindow(Shared, LogSourceTests):
    @pytest.fixture
    def source(self, path: Path, seen: tuple[Shape, int, Fingerprint], sums: NDArray[np.int64]) -> Window:
        shape, end, fingerprint = seen
        with Log(path, read_only=True) as log:
            name = log.identity, log.generation
        part = Part(shape, *name, fingerprint, (Run(0, end, 0),), sums, np.empty(0, np.int64), CORE)
        return Window(part, SharedFile(shape, end, 0, sums))


def prebuilds(path: Path) -> None:
    """What a task of a prebuild does."""
    shape, end, seen = _seen(path)
    job = Job(shape, seen, tuple(requirements(equal("n", 1), CORE)), frozenset())
    _break(path)
    scan_shared(job, Task(Range(0, 0, end, (0,)), None))


def reads(path: Path) -> None:
    """What a task of a read does."""
    shape, end, seen = _seen(path)
    part = Part(shape, bytes(16), 1, seen, (Run(0, end, 0),), None, np.empty(0, np.int64), CORE)
    _break(path)
    part.open()


def _seen(path: Path) -> tuple[Shape, int, Fingerprint]:
    with Log(path, read_only=True) as log:
        shape = Shape(str(path), log.codec, BLOCK)
        return shape, log.durable_end, Fingerprint.of(str(path), log.durable_end, BLOCK)


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
    shape, _, seen = _seen(path)

    def fails(*_: object) -> Any:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(osfile.fs, call, fails)
    with pytest.raises(CopyDiffers, match=os.strerror(code)):
        seen.check(shape.path, BLOCK)


def test_an_empty_log_of_another_program_has_no_identity(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.touch()
    wanted = (
        r"x\.log: it has no identity that is kept, so {}.*: its sidecar cannot be written, or it is empty and another"
    )
    with Log(path, read_only=True) as log, pytest.raises(SparkError, match=wanted.format("its index files could not")):
        Work(log, tmp_path / "indexes", [], CORE)
    with pytest.raises(SparkError, match=wanted.format("a stream could not tell it from another log")):
        LogStream(Options.of({"path": str(path)}))


def test_what_is_garbage_by_then_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Node:
        """One that holds itself."""

        def __init__(self) -> None:
            self.me = self

    monkeypatch.setattr(worker, "_settled", False)
    gc.disable()
    try:
        gone = weakref.ref(Node())
        worker.settle()
        gc.collect()
        assert gone() is None
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.enable()
