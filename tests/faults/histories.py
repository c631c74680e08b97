"""Random histories of a log on a simulated disk, cut short by power failures and kills.

A *case* is a seed. It opens a log, does this and that to it until the power goes (or the process is killed) at a random
call, opens what is left and compares it with what was acknowledged, several times over; at the end the log must go on
as if nothing had been.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any, Final

from faults.campaign import Campaign
from faults.model import Model
from faults.simulated import Process, Stopped, let_go, running
from faults.simulated_disk import Disk

from jitdb.errors import LogWarning
from jitdb.log import Log
from jitdb.log.blocks.block_format import largest_record
from jitdb.log.codecs import get_codec

PATH: Final = "/disk/a.log"
BLOCK_SIZES: Final = (64, 512, 1024, 4096, 65536, 65540)
NEVER: Final = 3600.0  # seconds between flushes of the timer's: threads have no place in what a seed replays


class History:
    """One log, and what happens to it."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.disk = Disk(seed)
        self.disk.mkdir("/disk")
        self.disk.sync_all()
        self.model = Model()
        self.block_size = self.rng.choice(BLOCK_SIZES)
        self.codec = "msgpack" if self.block_size >= 512 and self.rng.random() < 0.5 else "raw"
        self.log: Log | None = None
        self.reader: Log | None = None
        self.process = Process(self.disk)
        self.reader_process = Process(self.disk)
        self.done: list[str] = []  # for whoever looks for what went wrong

    # What can happen

    def value(self) -> tuple[Any, bytes]:
        """A record unlike all others: its value, and its bytes."""
        number = len(self.model.records) + self.rng.randrange(10**6) * 10**5
        size = self.rng.choice([0, 5, 30, 100, 300, 600, 1500, self.rng.randrange(3000)])
        limit = largest_record(self.block_size)
        if self.codec == "raw":
            record = (b"%d." % number + b"x" * size)[:limit]
            return record, record
        value = {"number": number, "kind": number % 5, "text": "x" * min(size, limit - 60)}
        return value, get_codec("msgpack").encode(value)

    def values(self, most: int) -> tuple[list[Any], list[bytes]]:
        pairs = [self.value() for _ in range(self.rng.randint(1, most))]
        return [value for value, _ in pairs], [record for _, record in pairs]

    def append(self, log: Log) -> None:
        value, record = self.value()
        self._appended([record], [log.append(value)])

    def append_many(self, log: Log) -> None:
        values, records = self.values(12)
        self._appended(records, log.append_many(values))

    def append_transaction(self, log: Log) -> None:
        values, records = self.values(5)
        while sum(map(len, records)) + 4 * len(records) > largest_record(self.block_size) and len(records) > 1:
            values.pop()
            records.pop()
        self._appended(records, log.append_transaction(values), transaction=len(self.model.records))

    def _appended(self, records: list[bytes], offsets: list[int], transaction: int = -1) -> None:
        self.model.appended(records, offsets, transaction)

    def delete(self, log: Log) -> None:
        model = self.model
        left = [at for at, number in enumerate(model.held) if number not in model.asked]
        for _ in range(self.rng.randint(1, 3)):
            if left:
                at = left.pop(self.rng.randrange(len(left)))
                if model.offsets[at] >= log.durable_end:
                    log.flush()
                    model.flushed()
                model.asked.add(model.held[at])  # from here on it may be gone
                log.delete(model.offsets[at])

    def flush(self, log: Log) -> None:
        log.flush()
        self.model.flushed()
        assert log.durable_end == 0 or log.since == self.model.offsets[-1]

    def reopen(self, log: Log) -> None:
        log.close()
        self.model.flushed()
        self.log = self.open(quiet=True)

    def compact(self, log: Log) -> None:
        self.model.compacting = True
        log.compact()
        self.model.compacted(log)
        self.model.check(log)

    def get(self, log: Log) -> None:
        for at in self.rng.sample(range(len(self.model.held)), min(3, len(self.model.held))):
            if self.model.held[at] not in self.model.asked:
                assert log.get_raw(self.model.offsets[at]) == self.model.records[self.model.held[at]]

    def read(self, log: Log) -> None:
        """Another process, which stays or comes anew. What it sees is never taken back."""
        with running(self.reader_process):
            if self.reader is None:
                self.reader = Log(PATH, read_only=True, codec=self.codec, block_size=self.block_size)
            else:
                self.reader.refresh()
            self._seen(self.reader)
            if self.rng.random() < 0.3:
                self.reader.close()
                self.reader = None

    def _seen(self, reader: Log) -> None:
        count = self.model.check(reader)
        self.model.durable = max(self.model.durable, count)

    STEPS: Final[tuple[tuple[int, Callable[[History, Log], None]], ...]] = (
        (30, append),
        (12, append_many),
        (12, append_transaction),
        (10, delete),
        (20, flush),
        (4, reopen),
        (8, read),
        (4, compact),
        (4, get),
    )

    # How it goes

    def open(self, *, quiet: bool) -> Log:
        """As the writer. `quiet`: it was closed in order, so nothing may need to be said."""
        known = self.model.durable > 0 and self.rng.random() < 0.5
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if not quiet:
                warnings.filterwarnings("ignore", "(?s).*cut off and kept in", LogWarning)
            if known:
                return Log(PATH, flush_interval=NEVER)
            return Log(PATH, codec=self.codec, block_size=self.block_size, flush_interval=NEVER)

    def live(self, steps: int) -> None:
        """Open the log and do things to it. Raises Stopped when the process ends on the way."""
        self.log = self.open(quiet=False)
        self.model.reopened(self.log)
        weights, actions = [weight for weight, _ in self.STEPS], [action for _, action in self.STEPS]
        for action in self.rng.choices(actions, weights, k=steps):
            self.done.append(action.__name__)
            action(self, self.log)
            self.model.acknowledged(self.log)

    def forget(self) -> None:
        """Let go of what is kept besides the log."""

    def killed(self) -> None:
        """The writer is no more. A reader that stays, or comes now, still sees what is there."""
        if self.log is not None:
            let_go(self.log, self.process)
        self.log = None
        if self.rng.random() < 0.3 and self.disk.exists(PATH) and self.model.durable:
            with reading(self) as reader:
                self._seen(reader)

    def power_failed(self) -> None:
        if self.reader is not None:
            let_go(self.reader, self.reader_process)
        self.disk = self.disk.crash(self.rng)
        self.reader_process, self.reader = Process(self.disk), None

    def after(self) -> None:
        """A reader, or no reader, then a writer that goes on, and all is in order."""
        if self.rng.random() < 0.5 and self.model.durable:
            with reading(self) as reader:
                self._seen(reader)
        with running(Process(self.disk)) as process:
            self.live(steps=3)
            assert self.log is not None
            self.append(self.log)
            self.flush(self.log)
            self.model.check(self.log)
            self.reopen(self.log)
            self.model.check(self.log)
            self.log.close()
            self.model.flushed()
            if self.reader is not None:
                self.reader.close()
                self.reader = None
            self.forget()
            assert process.open_files == 0, "files that were left open"
        with reading(self) as reader:
            self._seen(reader)
            assert self.model.durable == len(self.model.held)


@contextmanager
def reading(history: History) -> Iterator[Log]:
    """A reader in a process of its own."""
    with running(Process(history.disk)) as process:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "(?s).*they were never acknowledged.* are left out", LogWarning)
            log = Log(PATH, read_only=True)
        with log:
            yield log
        history.forget()
        assert process.open_files == 0, "files that were left open"


def run(seed: int, kind: type[History] = History) -> int:
    """One case; how many times the power went or the process was killed."""
    history = kind(seed)
    rng = history.rng
    rounds = rng.randint(1, 4)
    try:
        for number in range(rounds):
            process = Process(history.disk, stop_at=rng.choice([rng.randint(1, 30), rng.randint(1, 150)]))
            history.process = process
            history.done.append(f"round {number}, until change {process.stop_at}:")
            with running(process), suppress(Stopped):
                history.live(steps=rng.randint(0, 40))
            process.stop()
            history.killed()
            if rng.random() < 0.7:
                history.done.append("power failure")
                history.power_failed()
        history.done.append("after:")
        history.after()
    except BaseException as error:
        error.add_note(f"seed {seed}: {' '.join(history.done)}")
        for log, process in ((history.log, history.process), (history.reader, history.reader_process)):
            if log is not None:
                let_go(log, process)
        raise
    return rounds


CAMPAIGN = Campaign(
    name="power",
    fault="random histories, cut by power failures and kills at random calls",
    holds="acknowledged records and deletions; transactions whole or absent; nothing that never was; it goes on",
    run=run,
    short=100,
    full=100_000,
)
