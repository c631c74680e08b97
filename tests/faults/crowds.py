"""Many processes with one log: a writer, readers that ask meanwhile, and builders of the same indexes.

The writer follows a fixed plan, so what the log holds is a function of how many steps of it are done. It notes which
step it begins and which are done; a reader looks at these before it refreshes and after its question, and the answer
must be that of one of the states in between: of the records that there were when it refreshed, less those that were
deleted by the time of the answer.
"""

from __future__ import annotations

import mmap
import shutil
import struct
import tempfile
import time
import warnings
from pathlib import Path
from random import Random
from typing import Any, Final

from faults.campaign import Campaign
from faults.forks import fork, in_fresh_process, succeeded
from faults.kills import merged, value, warm
from waiting import until as until_holds

from jitdb import JITDB
from jitdb.errors import LogLocked
from jitdb.log import Log
from jitdb.operators import equal, gt, not_

READERS: Final = 8
BUILDERS: Final = 4
BATCH: Final = 7  # records a step
ENOUGH: Final = 5  # questions of each reader at least, on however slow a machine
STEPS: Final = 10  # of the writer at least
BEHIND: Final = 30  # an odd step deletes the record so many before the newest
COMPACT_EVERY: Final = 60  # steps
KINDS: Final = 5


class Progress:
    """Steps begun and done, seen by all processes."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, 16)

    def begin(self, step: int) -> None:
        self._map[0:8] = struct.pack("<Q", step)  # pack_into would show zeros in between

    def done(self, step: int) -> None:
        self._map[8:16] = struct.pack("<Q", step)

    @property
    def begun(self) -> int:
        return int(struct.unpack_from("<Q", self._map, 0)[0])

    @property
    def finished(self) -> int:
        return int(struct.unpack_from("<Q", self._map, 8)[0])


class Plan:
    """What is live after each number of steps: odd steps append a batch, even ones delete a record."""

    def __init__(self) -> None:
        self._states: list[tuple[int, frozenset[int]]] = [(0, frozenset())]  # records appended, numbers deleted

    def state(self, steps: int) -> tuple[int, frozenset[int]]:
        while len(self._states) <= steps:
            count, deleted = self._states[-1]
            if len(self._states) % 2:
                count += BATCH
            elif count > BEHIND:
                deleted = deleted | {count - BEHIND}
            self._states.append((count, deleted))
        return self._states[steps]

    def between(self, first: int, last: int) -> list[list[int]]:
        """The live numbers that a reader may see: of the records of one state, less what is deleted in a later one."""
        counts = [self.state(steps)[0] for steps in range(first, last + 1)]
        deleted = [self.state(steps)[1] for steps in range(first, last + 1)]
        seen = {(count, later) for at, count in enumerate(counts) for later in deleted[at:]}
        return [[number for number in range(count) if number not in gone] for count, gone in seen]


def write(path: Path, progress: Progress, until: float, compacts: bool) -> None:
    """The writer: one step after the other, each flushed."""
    plan, rng = Plan(), Random(1)
    with Log(path, codec="msgpack", block_size=16384, flush_interval=3600) as log:
        offsets: dict[int, int] = {}
        step = 0
        while time.monotonic() < until or step < STEPS:
            step += 1
            before, now = plan.state(step - 1), plan.state(step)
            progress.begin(step)
            numbers = range(before[0], now[0])
            offsets |= zip(numbers, log.append_many([value(number) for number in numbers]), strict=True)
            for number in now[1] - before[1]:
                log.delete(offsets.pop(number))
            log.flush()
            progress.done(step)
            if compacts and step % COMPACT_EVERY == 0:
                log.compact()
                offsets = {record.value["number"]: record.offset for record in log.stream()}
            time.sleep(rng.choice([0, 0.001, 0.01]))


def read(path: Path, progress: Progress, until: float, seed: int) -> None:
    """A reader: every answer is that of a state between question and answer."""
    plan, rng, asked = Plan(), Random(seed), 0
    until_holds(lambda: path.exists() and progress.finished)
    log = Log(path, read_only=True)
    db = JITDB(log, threads=1)
    while time.monotonic() < until or asked < ENOUGH:
        if rng.random() < 0.05:
            log.close()
            log = Log(path, read_only=True)
            db = JITDB(log, threads=1)
        kind = rng.randrange(KINDS)
        first = progress.finished
        db.refresh()
        got, expected = _question(db, kind, rng)
        last = progress.begun
        possible = list(map(expected, plan.between(first, last)))
        assert got in possible, f"{got}: not the answer of any state from {first} to {last}: {sorted(possible)}"
        asked += 1
    log.close()


def _question(db: JITDB, kind: int, rng: Random) -> tuple[Any, Any]:
    """An answer, and what it should be of a list of live numbers."""
    which = rng.randrange(4)
    if which == 0:
        return db.count(equal("kind", kind)), lambda live: sum(number % KINDS == kind for number in live)
    if which == 1:
        return db.count(not_(equal("kind", kind))), lambda live: sum(number % KINDS != kind for number in live)
    if which == 2:
        return db.count(gt(50, "number")), lambda live: sum(number > 50 for number in live)
    page = db.paginate(equal("kind", kind), limit=5, descending=True, sort_by="arrival")
    numbers = (page.total, [record["number"] for record in page.data])

    def expected(live: list[int]) -> tuple[int, list[int]]:
        matching = [number for number in live if number % KINDS == kind]
        return len(matching), matching[::-1][:5]

    return numbers, expected


def build(path: Path) -> None:
    """A builder: all indexes, all answers."""
    with Log(path, read_only=True) as log:
        db = JITDB(log, threads=1)
        numbers = [record.value["number"] for record in log.stream()]
        for kind in range(KINDS):
            assert db.count(equal("kind", kind)) == sum(number % KINDS == kind for number in numbers)
        assert db.count(gt(50, "number")) == sum(number > 50 for number in numbers)


def main(seed: int, seconds: float) -> int:
    """Writer and readers, then builders that race; how many processes there were."""
    folder = Path(tempfile.mkdtemp(prefix="jitdb-crowd-"))
    path = folder / "a.log"
    try:
        warm(folder / "warm.log")
        warnings.simplefilter("error")
        progress, until = Progress(), time.monotonic() + seconds
        writer = fork(lambda: write(path, progress, until, compacts=seed % 2 == 0))
        readers = [fork(lambda number=number: read(path, progress, until, number)) for number in range(READERS)]  # type: ignore[misc]
        until_holds(lambda: path.exists() and progress.finished)
        assert succeeded(fork(lambda: expect_locked(path, writer))), "two writers"
        ended = [succeeded(pid) for pid in (writer, *readers)]
        assert all(ended), f"the writer and {READERS} readers: {ended}"
        for _ in range(3):
            shutil.rmtree(folder / "a.log.jitdb" / "indexes", ignore_errors=True)
            builders = [fork(lambda: build(path)) for _ in range(BUILDERS)]
            ended = [succeeded(pid) for pid in builders]
            assert all(ended), f"the builders: {ended}"
        with Log(path, read_only=True) as log:
            assert merged(log, log.sidecar / "indexes") == merged(log, folder / "other")
            assert not list((log.sidecar / "indexes").glob("*.tmp"))
    finally:
        shutil.rmtree(folder)
    return 1 + READERS + 3 * BUILDERS


def expect_locked(path: Path, writer: int) -> None:
    """A second writer is told who has it."""
    try:
        Log(path).close()
    except LogLocked as error:
        found = error.pid
    else:
        found = -1
    assert found == writer, f"{found} has it, expected {writer}"


def run(seed: int) -> int:
    """Five seconds of it; even seeds: the writer compacts now and then."""
    return in_fresh_process("faults.crowds", seed, SECONDS)


SECONDS: Final = 5.0

CAMPAIGN = Campaign(
    name="crowds",
    fault="a writer, 8 readers and 4 racing builders of the same indexes, in processes of their own; a second writer",
    holds="every answer is that of a state between question and answer; one index a file; LogLocked with the pid",
    run=run,
    short=1,
    full=12,
    alone=True,
)
