"""Real processes that are killed with SIGKILL at random instants while they write, delete, compact, index and merge.

What the writer acknowledges it says through a pipe, after flush() has returned; what it is about to do it says before.
After each kill a fresh process reads the log, and asks it, and finds just that.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from engine_helpers import stored_indexes
from faults.asked_questions import comparable
from faults.campaign import Campaign
from faults.forks import fork, in_fresh_process, succeeded
from thoroughness import tries

from jitdb import JITDB
from jitdb.errors import IndexWarning, LogWarning
from jitdb.indexes.files import index as index_module
from jitdb.log import Log
from jitdb.operators import equal, gt, not_

KILLS: Final = tries(10, 25)  # of one log
RUN: Final = 1_000_000  # each process numbers its records from a multiple of this
FAN_IN: Final = 2  # merges come often


def value(number: int) -> dict[str, Any]:
    return {"number": number, "kind": number % 5, "text": "x" * (number % 97 * (30 if number % 11 == 0 else 1))}


@dataclass
class Known:
    """What the parent knows of the log."""

    attempted: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)
    transactions: list[range] = field(default_factory=list)
    deleting: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)

    def hear(self, lines: bytes) -> None:
        """What a child said. A (append) and T (transaction) with first and count, D (delete), F (flushed)."""
        fresh: set[int] = set()
        gone: set[int] = set()
        for line in lines.split(b"\n")[:-1]:
            what, *numbers = line.split()
            first, count = (*map(int, numbers), 0, 0)[:2]
            if what in (b"A", b"T"):
                records = range(first, first + count)
                self.attempted.update(records)
                fresh.update(records)
                if what == b"T":
                    self.transactions.append(records)
            elif what == b"D":
                self.deleting.add(first)
                gone.add(first)
            else:
                self.acknowledged |= fresh
                self.deleted |= gone

    def check(self, live: list[int]) -> None:
        there = set(live)
        assert live == sorted(there), "out of order"
        assert there <= self.attempted, f"records that never were: {sorted(there - self.attempted)[:5]}"
        lost = self.acknowledged - self.deleting - there
        assert not lost, f"{len(lost)} acknowledged records are lost: {sorted(lost)[:5]}"
        assert not there & self.deleted, f"deleted records are back: {sorted(there & self.deleted)[:5]}"
        for transaction in self.transactions:
            kept = [number in there for number in transaction if number not in self.deleting]
            assert all(kept) or not any(kept), f"a part of the transaction {transaction}"
        self.acknowledged |= there  # it was seen


def live_numbers(path: Path) -> list[int]:
    with Log(path, read_only=True) as log:
        found = [record.value for record in log.stream()]
    assert all(each == value(each["number"]) for each in found)
    return [each["number"] for each in found]


class Worker:
    """The process that is killed."""

    def __init__(self, path: Path, run: int, seed: str, asks: bool, pipe: int) -> None:
        self.path, self.asks, self.pipe = path, asks, pipe
        self.rng = Random(seed)
        self.number = run * RUN

    def say(self, what: str) -> None:
        os.write(self.pipe, what.encode() + b"\n")

    def work(self) -> None:
        """Until it is killed."""
        warnings.simplefilter("ignore", (LogWarning, IndexWarning))  # type: ignore[arg-type]
        index_module.FAN_IN = FAN_IN  # type: ignore[misc]
        log = Log(self.path, codec="msgpack", block_size=32768, flush_interval=self.rng.choice([0.002, 3600]))
        db = JITDB(log, threads=1)
        offsets = {record.value["number"]: record.offset for record in log.stream()}
        while True:
            step = self.rng.choices(
                ["append", "transaction", "delete", "flush", "reopen", "compact", "ask"],
                [20, 6, 6, 10, 2, 2 if offsets else 0, 20 if self.asks else 0],
            )[0]
            if step in ("append", "transaction"):
                numbers = range(self.number, self.number + self.rng.randint(1, 12))
                self.number = numbers.stop
                self.say(f"{step[0].upper()} {numbers.start} {len(numbers)}")
                write = log.append_many if step == "append" else log.append_transaction
                offsets |= zip(numbers, write([value(number) for number in numbers]), strict=True)
            elif step == "delete" and offsets:
                number = self.rng.choice(list(offsets))
                self.say(f"D {number}")
                log.delete(offsets.pop(number))
            elif step == "ask":
                db.all(self.rng.choice([equal("kind", 1), not_(equal("kind", 2)), gt(7, "number")]))
            else:
                if step == "flush":
                    log.flush()
                elif step == "compact":
                    log.compact()
                else:
                    log.close()
                    log = Log(self.path, flush_interval=3600)
                    db = JITDB(log, threads=1)
                self.say("F")
                if step == "compact":
                    offsets = {record.value["number"]: record.offset for record in log.stream()}


def ask(path: Path) -> None:
    """Exact answers, from indexes as they were left; merged, they are those that are built anew."""
    warnings.simplefilter("ignore", (LogWarning, IndexWarning))  # type: ignore[arg-type]
    with Log(path, read_only=True) as log, tempfile.TemporaryDirectory() as other:
        gone = set(log.deletions()[1].tolist())  # perhaps not yet zero: the next writer sees to that
        numbers = [record.value["number"] for record in log.stream() if record.offset not in gone]
        folders = (log.sidecar / "indexes", Path(other))
        for folder in folders:
            db = JITDB(log, folder, threads=1)
            for kind in range(3):
                found = [each["number"] for each in db.all(equal("kind", kind), sort_by="arrival")]
                assert found == [number for number in numbers if number % 5 == kind]
                assert db.count(not_(equal("kind", kind))) == len(numbers) - len(found)
            assert db.count(gt(7, "number")) == sum(number > 7 for number in numbers)
        if not log.stats().deleted_records:
            kept, fresh = (merged(log, folder) for folder in folders)
            assert kept == fresh, "indexes are not what they are when they are built anew"


def warm(path: Path) -> None:
    """Load the kernels once, before there are children that would each do it."""
    with Log(path) as log:
        log.append_many([value(number) for number in range(20)])
        log.flush()
        log.delete(0)
    for _ in range(2):
        ask(path)


def merged(log: Log, folder: Path) -> dict[str, bytes]:
    JITDB(log, folder, threads=1).prepare(equal("kind", 1), gt(7, "number"))
    indexes = stored_indexes(folder)
    for index in indexes:
        index.merge()
    return {Path(index.name).name: comparable(index, Path(index.name).read_bytes()) for index in indexes}


def main(seed: int, kills: int) -> int:
    """One log; how many processes were killed."""
    rng, known = Random(seed), Known()
    asks = seed % 2 == 1
    folder = Path(tempfile.mkdtemp(prefix="jitdb-kills-"))
    path = folder / "a.log"
    warnings.simplefilter("ignore", LogWarning)
    try:
        if asks:
            warm(folder / "warm.log")
        for run in range(1, kills + 1):
            read, write = os.pipe()
            pid = fork(Worker(path, run, f"{seed} {run}", asks, write).work)
            os.close(write)
            time.sleep(rng.choice([rng.uniform(0.001, 0.01), rng.uniform(0.001, 0.04), rng.uniform(0.01, 0.15)]))
            os.kill(pid, signal.SIGKILL)
            lines = b"".join(iter(lambda: os.read(read, 1 << 16), b""))  # noqa: B023
            os.close(read)
            status = os.waitpid(pid, 0)[1]
            assert os.WIFSIGNALED(status), f"kill {run}: it had failed"
            known.hear(lines)
            if path.exists() and path.stat().st_size:
                known.check(live_numbers(path))
                assert not asks or succeeded(fork(lambda: ask(path))), f"kill {run}: a wrong answer"
        with Log(path) as log:
            log.append(value(0))
        assert live_numbers(path)[-1] == 0
    finally:
        shutil.rmtree(folder)
    return kills


def run(seed: int) -> int:
    """One log whose writers are killed; odd seeds: that is asked too."""
    return in_fresh_process("faults.kills", seed, KILLS)


CAMPAIGN = Campaign(
    name="kills",
    fault="SIGKILL of real processes while they append, transact, delete, flush, compact, reopen, index and merge",
    holds="as above; the next process answers exactly, and each index, merged, equals one that was built anew",
    run=run,
    short=2,
    full=200,
)
