"""What a log must hold: everything that was acknowledged, in order, and nothing that never was.

Records are known by their *number*, the order in which they were appended; the model keeps those that the log holds,
how many of them are acknowledged as durable, and which were deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from jitdb.log import Log


@dataclass
class Model:
    """A log of records that all differ. `held` lists the numbers of those it holds, deleted ones too, in order."""

    records: list[bytes] = field(default_factory=list)  # by number
    transactions: list[int] = field(default_factory=list)  # by number: which one it belongs to; -1: none
    held: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)  # of those in `held`
    durable: int = 0  # so many of `held` were acknowledged, or seen by a reader
    asked: set[int] = field(default_factory=set)  # numbers whose deletion was asked for
    deleted: set[int] = field(default_factory=set)  # and acknowledged
    identity: bytes = b""
    generation: int = 0
    compacting: bool = False  # a compaction began and did not end
    removed: set[int] = field(default_factory=set)  # by compactions

    # What is done to the log

    def appended(self, records: Sequence[bytes], offsets: Sequence[int], transaction: int = -1) -> None:
        first = len(self.records)
        self.records += records
        self.transactions += [transaction] * len(records)
        self.held += range(first, first + len(records))
        self.offsets += offsets
        assert len(records) == len(offsets)
        assert all(before < after for before, after in pairwise(self.offsets[-len(offsets) - 1 :]))

    def acknowledged(self, log: Log) -> None:
        """All below `durable_end` is durable, `since` says; so is what it says of the newest record."""
        while self.durable < len(self.offsets) and self.offsets[self.durable] < log.durable_end:
            self.durable += 1
        assert log.since == (self.offsets[self.durable - 1] if self.durable else -1)

    def flushed(self) -> None:
        self.durable = len(self.held)
        self.deleted = set(self.asked)

    def compacted(self, log: Log) -> None:
        """The deleted records are gone, all that were appended before are durable."""
        offsets = [record.offset for record in log.stream(raw=True)]  # this may fail: then nothing has changed
        self.compacting = False
        gone = self.asked & set(self.held)
        assert log.generation == self.generation + bool(gone)
        self.removed |= gone
        self.held = [number for number in self.held if number not in gone]
        self.durable = len(self.held)
        self.deleted = set(self.asked)
        self.identity = self.identity or log.identity
        self.offsets = offsets
        self.generation = log.generation

    # What is in it

    def live(self, stop: int | None = None) -> list[int]:
        """Numbers of the durable records (or the first `stop` held) whose deletion was not asked for."""
        return [number for number in self.held[: self.durable if stop is None else stop] if number not in self.asked]

    def reopened(self, log: Log) -> None:
        """A writer has opened it after whatever happened: check, and go on from what is there."""
        count = self.check(log)
        self.compacting = False
        del self.held[count:], self.offsets[count:]
        self.durable = count
        gone = set(self.held) - {self.held[record.seq] for record in log.stream(raw=True)}
        self.deleted = self.removed | gone
        self.asked = set(self.deleted)
        if self.durable and self.identity:
            assert (log.identity, log.generation) == (self.identity, self.generation), "another identity"
        self.identity, self.generation = log.identity, log.generation

    def check(self, log: Log) -> int:
        """Compare what the log, a writer or a reader, shows; how many records it holds."""
        if self.compacting and log.generation == self.generation + 1:
            self.compacted(log)  # it died, but it was done
        offsets: list[int] = []
        dead: list[bool] = []
        for batch in log.stream_batches():
            assert batch.first_seq == len(offsets)
            offsets += batch.offsets.tolist()
            dead += batch.deleted.tolist()
        count = len(offsets)
        assert count >= self.durable, f"{self.durable} records were acknowledged, {count} are there"
        assert offsets == self.offsets[:count], "records that never were, or elsewhere"
        assert log.since == (offsets[-1] if offsets else -1)
        if 0 < count < len(self.held):
            first, second = (self.transactions[number] for number in self.held[count - 1 : count + 1])
            assert first == -1 or first != second, f"a part of transaction {first}"
        for seq, (number, is_dead) in enumerate(zip(self.held, dead, strict=False)):
            assert not is_dead or number in self.asked, f"record {number} (seq {seq}) is gone"
            assert is_dead or number not in self.deleted, f"record {number} (seq {seq}) is back"
        for record in log.stream(raw=True):
            number = self.held[record.seq]
            if number not in self.asked:  # while it is deleted, a reader may see it half zero
                assert record.value == self.records[number], f"record {number} (seq {record.seq}) has other bytes"
        live = [seq for seq in range(count) if not dead[seq]]
        found = log.get_many_raw([offsets[seq] for seq in live[:3] + live[-3:]])
        for seq, got in zip(live[:3] + live[-3:], found, strict=True):
            assert self.held[seq] in self.asked or got == self.records[self.held[seq]]
        return count
