"""Every bit of every index file of a small database flipped, one at a time.

Whatever it hits, the answers are exact, and asking once more there is nothing to be said. (Every bit of the log and of
its sidecar is flipped by the tests of verify and repair.)
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import Any, Final

from engine_helpers import POSTS, TYPE, expected, message, oracle_of
from faults.campaign import Campaign
from faults.simulated import Process, running
from faults.simulated_disk import Disk

from jitdb import JITDB
from jitdb.errors import IndexWarning
from jitdb.log import Log
from jitdb.operators import absent, equal, gt, includes, not_, starts_with
from jitdb.operators.nodes.operation import Operation

PATH: Final = "/disk/a.log"
SHARES: Final = 1024  # cases that share the bits
QUESTIONS: Final[tuple[Operation, ...]] = (
    POSTS,
    not_(equal(TYPE, "vote")),
    equal("value.author", "@3"),
    includes("value.content.tags", "tag4"),
    absent("value.content.root"),
    starts_with("value.content.text", "text 1"),
    gt(1, "sequence"),
)


def database() -> tuple[Disk, Any]:
    """A log of 40 messages, some deleted, with its indexes in two segments each; and the oracle of it."""
    disk = Disk()
    disk.mkdir("/disk")
    with running(Process(disk)), Log(PATH, codec="bipf", block_size=4096, flush_interval=3600) as log:
        for first in (0, 25):
            offsets = log.append_many([message(number) for number in range(first, first + 25 - 10 * (first > 0))])
            log.flush()
            log.delete(offsets[3])
            log.flush()
            JITDB(log, threads=1).prepare(*QUESTIONS)
        log.flush()
        oracle = oracle_of_simulated(log, disk)
    disk.sync_all()
    return disk, oracle


def oracle_of_simulated(log: Log, disk: Disk) -> Any:
    class There:
        """The log's file, for an oracle that reads it whole."""

        path = type("Path", (), {"read_bytes": staticmethod(lambda: bytes(disk.files()[PATH].data))})
        durable_end, block_size, codec = log.durable_end, log.block_size, log.codec

    return oracle_of(There)  # type: ignore[arg-type]


def run(seed: int) -> int:
    """Every 1,024th bit of all index files; how many were flipped."""
    clean, oracle = database()
    answers = [expected(oracle, operation) for operation in QUESTIONS]
    paths = [path for path in clean.files() if path.endswith(".index")]
    bits = [(path, bit) for path in paths for bit in range(8 * len(clean.files()[path].data))]
    mine = bits[seed % SHARES :: SHARES]
    for path, bit in mine:
        disk = deepcopy(clean)
        disk.files()[path].data[bit // 8] ^= 1 << bit % 8
        try:
            with running(Process(disk)), Log(PATH, read_only=True) as log:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    check(JITDB(log, threads=1), answers)
                assert all(issubclass(each.category, IndexWarning) for each in told), told
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # it was mended
                    check(JITDB(log, threads=1), answers)
        except BaseException as error:
            error.add_note(f"{path}: bit {bit} of {8 * len(clean.files()[path].data)}")
            raise
    return len(mine)


def check(db: JITDB, answers: list[list[int]]) -> None:
    for operation, offsets in zip(QUESTIONS, answers, strict=True):
        assert db.all(operation, as_offsets=True) == offsets, operation
        assert db.count(operation) == len(offsets), operation


CAMPAIGN = Campaign(
    name="flipped",
    fault="every bit of every index file of a small database flipped, one at a time",
    holds="exact answers; a warning of the damage that was read; then the file is in order",
    run=run,
    short=1,
    full=SHARES,
)
