"""A repair that is killed, or loses power, at any of its calls: the log opens, and repairing it again ends the same."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from random import Random
from typing import Any

import pytest
from faults.simulated import Process, Stopped, let_go, running
from faults.simulated_disk import Disk, File
from log_damage import value
from thoroughness import tries

from jitdb.log import Log

pytestmark = pytest.mark.slow

LOG = Path("/a.log")
SIZE = 256
RECORDS = 26


def sound(codec: str) -> tuple[Disk, dict[int, Any]]:
    """A closed log on a simulated disk, and its records."""
    disk = Disk(1)
    with running(Process(disk)):
        with Log(LOG, codec=codec, block_size=SIZE) as log:
            offsets = log.append_many([value(codec, number) for number in range(RECORDS)])
            log.flush()
            log.delete(offsets[3])
        with Log(LOG, read_only=True) as log:
            records = {record.offset: record.value for record in log.stream(raw=True)}
    disk.sync_all()
    return disk, records


def corrupt(disk: Disk, path: Path, at: int, data: bytes) -> None:
    """Other bytes on the disk, though nobody wrote them: no time changes."""
    file = disk.find(path)
    assert isinstance(file, File)
    file.data[at : at + len(data)] = data
    file.disk[at : at + len(data)] = data


def a_bit(disk: Disk) -> None:
    corrupt(disk, LOG, SIZE + 50, bytes([data_of(disk)[SIZE + 50] ^ 8]))


def headers(disk: Disk) -> None:
    """The lengths in the first block, one and the next."""
    corrupt(disk, LOG, 0, b"\xff\xff")
    corrupt(disk, LOG, SIZE + 1, b"\x07")


def everywhere(disk: Disk) -> None:
    """A length, a record, the last block, a checksum and the journal of deletions."""
    corrupt(disk, LOG, 0, b"\xff\xff")
    corrupt(disk, LOG, 2 * SIZE + 40, b"\xc1\xc1\xc1\xc1\xc1\xc1\xc1\xc1")
    last = len(data_of(disk)) - SIZE
    corrupt(disk, LOG, last, b"\x03\x01\x07")
    corrupt(disk, LOG.with_name("a.log.jitdb") / "checksums", 24 + 8, b"\xaa\xaa\xaa")


def data_of(disk: Disk) -> bytes:
    file = disk.find(LOG)
    assert isinstance(file, File)
    return bytes(file.data)


def repair(process: Process) -> Any:
    """Open and repair; whatever was opened is let go of when the process ends before."""
    log = None
    try:
        log = Log(LOG)
        report = log.repair()
        log.close()
        return report
    except Stopped:
        if log is not None:
            let_go(log, process)
        raise


def state(disk: Disk) -> tuple[bool, bytes, int, dict[int, Any]]:
    """As a reader sees it: sound, identity, generation, records."""
    with running(Process(disk)), Log(LOG, read_only=True) as log:
        found = {record.offset: record.value for record in log.stream(raw=True)}
        return log.verify().ok, log.identity, log.generation, found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("harm", [a_bit, headers, everywhere])
def test_stopped_at_every_call(harm: Any, power: bool) -> None:
    stop_everywhere("bipf", harm, power, attempts=2 if power else 1, step=tries(5, 1))


def stop_everywhere(codec: str, harm: Any, power: bool, attempts: int, step: int = 1) -> int:
    """Stop a repair at each of its calls, or each so many, and repair again; gives how many calls there are."""
    warnings.simplefilter("ignore")
    disk, records = sound(codec)
    _, identity, generation, _ = state(disk)
    disk.sync_all()
    harm(disk)
    whole = copy.deepcopy(disk)
    process = Process(whole)
    with running(process):
        report = repair(process)
    ok, renewed, later, wanted = state(whole)
    assert ok
    assert bool(report.lost or report.kept) == (renewed != identity) == (later == generation + 1)
    assert set(wanted) <= set(records)
    assert all(wanted[at] == records[at] for at in wanted if at not in report.kept)
    for stop_at in range(1, process.changes + 1, step):
        for attempt in range(attempts):
            left = copy.deepcopy(disk)
            with running(Process(left, stop_at=stop_at)) as stopped, pytest.raises(Stopped):
                repair(stopped)
            if power:
                left = left.crash(Random(1000 * stop_at + attempt))
            if attempt % 2:
                _, seen, _, there = state(left)  # a reader looks before a writer comes
                assert seen != identity or set(there) <= set(records)
            before = data_of(left)
            with running(Process(left)), Log(LOG) as log:
                if data_of(left) != data_of(disk) and before and renewed != identity:
                    assert log.identity != identity, "an index of the old records would be used"
            with running(Process(left)) as again:
                repair(again)
            ok, _, _, found = state(left)
            assert ok, f"stopped at call {stop_at}"
            assert found == wanted, f"stopped at call {stop_at}"
    return process.changes
