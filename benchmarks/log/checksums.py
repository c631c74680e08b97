"""What the checksums cost: verifying every block of a scan, and computing them in appending.

Both ways alternate in one run, for the machine is never quiet. The share is of processor time, the median over pairs of
neighbours; the milliseconds are the least of all. The log is the big one under another name, with checksums beside it.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from jitdb import Log
from jitdb.engine.building.scan import Scan
from jitdb.engine.building.targets import IndexBuilderFactory
from jitdb.engine.catalog.catalog import Catalog
from jitdb.engine.database import JITDB
from jitdb.engine.plan import requirements
from jitdb.indexes.files.file import LogName
from jitdb.indexes.spec import Requirement
from jitdb.log.codecs.base import Buffer
from jitdb.log.io import filenames
from jitdb.log.sidecar.checksums import encode_entry, encode_head

from ..data import FOLDER, big_log
from ..measure import Figure
from ..peers import THREADS
from ..questions import POST
from .writing import COUNT, remove

PAIRS = 31
_NO_SUMS = np.empty(0, np.int64)


def checked_log() -> Path:
    """The big log, with a sidecar that has the checksums of all its sealed blocks."""
    path = FOLDER / f"checked-{big_log().name}"
    if not path.exists():
        try:
            os.link(big_log(), path)
        except OSError:
            shutil.copyfile(big_log(), path)
    with Log(path, read_only=True) as log:
        size, blocks = log.block_size, log.durable_end // log.block_size
        sums = log.sidecar / filenames.CHECKSUMS
        if not sums.exists():
            data = memoryview(path.read_bytes())
            crcs = (zlib.crc32(data[at * size : (at + 1) * size]) for at in range(blocks))
            entries = b"".join(encode_entry(block, crc, log.generation) for block, crc in enumerate(crcs))
            sums.write_bytes(encode_head(log.generation, log.foreign_change_token()) + entries)
    return path


class Spent(NamedTuple):
    """Seconds."""

    passed: float
    worked: float  # by all threads of the process


@contextmanager
def timed(into: list[Spent]) -> Iterator[None]:
    """Add what was spent."""
    passed, worked = time.perf_counter(), time.process_time()
    yield
    into.append(Spent(time.perf_counter() - passed, time.process_time() - worked))


def scan(log: Log, core: tuple[Requirement, ...], threads: int, into: list[Spent]) -> None:
    """One scan that builds what the first question needs, in memory."""
    catalog, factory = Catalog(None, LogName(log.identity, log.generation)), IndexBuilderFactory()
    targets = factory.targets(core, catalog, catalog.append)
    one = Scan(log, targets, factory.paths, threads=threads)
    with timed(into):
        one.run()
    assert not one.corrupt
    assert not one.faults


class Compared(NamedTuple):
    """Two ways to do a thing: the least milliseconds of each, and how much more processor time the first takes."""

    with_it: float
    without: float
    share: float


def compare(with_it: Callable[[list[Spent]], None], without: Callable[[list[Spent]], None], count: int) -> Compared:
    """Do both, in turns."""
    spent: tuple[list[Spent], list[Spent]] = ([], [])
    with_it([]), without([])
    for number in range(count):
        for way in (number % 2, 1 - number % 2):
            (with_it, without)[way](spent[way])
    share = statistics.median(one.worked / other.worked for one, other in zip(*spent, strict=True)) - 1
    least = [1e3 * min(each.passed for each in one) for one in spent]
    return Compared(*least, share)


def scan_figure(threads: int) -> Figure:
    """Verified scans against unverified ones."""
    with Log(checked_log(), read_only=True) as log:
        assert (log.checksums(0, 100) >= 0).all()
        db = JITDB(log, "memory")
        core = (*db._manager.core_needs(True), *requirements(POST, db._core))
        plain = patch.object(log, "checksums", lambda first, count: _NO_SUMS)

        def unverified(into: list[Spent]) -> None:
            with plain:
                scan(log, core, threads, into)

        found = compare(lambda into: scan(log, core, threads, into), unverified, PAIRS)
    return Figure(
        f"a scan that verifies every block, {threads} threads: {100 * found.share:+.1f}%", found.with_it, "ms",
        "unverified", found.without, "0.95 x", "0.98 x",
    )  # fmt: skip


@contextmanager
def no_checksums() -> Iterator[None]:
    """A writer that computes none of the records' bytes. What it writes cannot be opened again."""

    def nothing(data: Buffer, before: int = 0) -> int:
        return 0

    with patch("jitdb.log.writing.groups.crc32", nothing), patch("jitdb.log.writing.committer.crc32", nothing):
        yield


def append_figure() -> Figure:
    """append_many with checksums against without."""
    path = FOLDER / "written.log"
    records = [b"\x01" + os.urandom(149) for _ in range(1000)] * (COUNT // 1000)

    def once(into: list[Spent]) -> None:
        remove(path)
        with Log(path, codec="raw", flush_interval=60) as log, timed(into):
            log.append_many(records)
            log.flush()

    def bare(into: list[Spent]) -> None:
        with no_checksums():
            once(into)

    found = compare(once, bare, PAIRS)
    remove(path)
    return Figure(
        f"append_many and flush, two checksums of each byte: {100 * found.share:+.1f}%", found.with_it, "ms",
        "none", found.without,
    )  # fmt: skip


def run() -> list[Figure]:
    return [scan_figure(THREADS), scan_figure(1), append_figure()]
