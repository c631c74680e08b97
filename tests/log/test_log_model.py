"""The log against a plain list, through every order of appends, deletions, flushes, crashes and reopenings."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from thoroughness import tries

from jitdb.errors import InvalidOffset, LogWarning, RecordDeleted
from jitdb.log import Log

LARGEST = {16: 12, 64: 60, 512: 508, 65536: 600, 65537: 600}

records = st.integers(0, 10**6).flatmap(
    lambda number: st.integers(1, 70).map(lambda size: (b"%d." % number + b"x" * size)[:size])
)


class LogModel(RuleBasedStateMachine):
    @initialize(block_size=st.sampled_from(sorted(LARGEST)))
    def make(self, block_size: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "a.log"
        self.block_size = block_size
        self.offsets: list[int] = []
        self.records: list[bytes | None] = []  # None: deleted
        self.durable = 0  # records that a flush has covered
        self.durable_deletions: list[int] = []
        self.deletions: list[int] = []
        self.log = self.open()
        self.identity = self.log.identity
        self.token = self.log.foreign_change_token()
        self.reader = Log(self.path, read_only=True)
        self.reader.refresh()

    def open(self) -> Log:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return Log(self.path, codec="raw", block_size=self.block_size, flush_interval=60)

    def fitting(self, some: list[bytes]) -> list[bytes]:
        return [record[: LARGEST[self.block_size]] for record in some]

    def took(self, offsets: list[int], some: list[bytes]) -> None:
        assert offsets == sorted(set(offsets))
        assert not self.offsets or offsets[0] > self.offsets[-1]
        self.offsets += offsets
        self.records += some

    @rule(record=records)
    def append(self, record: bytes) -> None:
        [record] = self.fitting([record])
        self.took([self.log.append(record)], [record])

    @rule(some=st.lists(records, min_size=1, max_size=12))
    def append_many(self, some: list[bytes]) -> None:
        some = self.fitting(some)
        self.took(self.log.append_many(some), some)

    @rule(some=st.lists(records, min_size=1, max_size=4))
    def append_transaction(self, some: list[bytes]) -> None:
        header = 2 if self.block_size <= 65536 else 4
        some, room = self.fitting(some), self.block_size - header
        while sum(len(each) + header for each in some) > room:
            some.pop()
        offsets = self.log.append_transaction(some)
        assert len({offset // self.block_size for offset in offsets}) == 1
        self.took(offsets, some)

    @precondition(lambda self: self.offsets)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.offsets) - 1))
        if self.records[at] is None:
            with pytest.raises(RecordDeleted):
                self.log.delete(self.offsets[at])
            return
        if self.offsets[at] >= self.log.durable_end:
            self.log.delete(self.offsets[at])
            self.flushed()
        else:
            self.log.delete(self.offsets[at])
        self.records[at] = None
        self.deletions.append(self.offsets[at])

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed()

    def flushed(self) -> None:
        self.durable = len(self.offsets)
        self.durable_deletions = list(self.deletions)

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.flushed()
        self.log = self.open()

    @rule()
    def read_elsewhere(self) -> None:
        self.reader.refresh()
        assert not self.reader.refresh()
        self.check_durable(self.reader)

    @rule()
    def crash(self) -> None:
        """What is on the disk now is opened as another process would find it."""
        copy = self.folder / "crash"
        copy.mkdir()
        shutil.copy2(self.path, copy)
        shutil.copytree(self.folder / "a.log.jitdb", copy / "a.log.jitdb")
        for read_only in (True, False):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LogWarning)
                log: Any = Log(copy / "a.log", read_only=read_only, codec="raw", block_size=self.block_size)
            with log:
                self.check_durable(log)
                assert log.identity == self.identity
        shutil.rmtree(copy)

    def check_durable(self, log: Log) -> None:
        live = [
            (offset, seq, record)
            for seq, (offset, record) in enumerate(zip(self.offsets, self.records, strict=True))
            if seq < self.durable and offset not in self.durable_deletions
        ]
        assert [tuple(row)[:2] for row in log.stream()] == [row[:2] for row in live]
        assert all(row[2] in (None, got.value) for row, got in zip(live, log.stream(), strict=True))
        assert log.since == (self.offsets[self.durable - 1] if self.durable else -1)
        assert log.deletions()[1].tolist() == self.durable_deletions
        assert log.foreign_change_token() == self.token
        asked = self.offsets[: self.durable]
        gone = set(self.durable_deletions)
        assert [got is None for got in log.get_many_raw(asked)] == [offset in gone for offset in asked]
        assert log.stats().records == len(live)

    @precondition(lambda self: self.offsets)
    @rule(data=st.data())
    def get(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.offsets) - 1))
        if self.records[at] is None:
            with pytest.raises(RecordDeleted):
                self.log.get(self.offsets[at])
        else:
            assert self.log.get(self.offsets[at]) == self.records[at]

    @rule(data=st.data())
    def get_anywhere(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, (self.offsets[-1] if self.offsets else 0) + 5))
        if offset not in self.offsets:
            with pytest.raises(InvalidOffset):
                self.log.get(offset)

    @precondition(lambda self: self.offsets)
    @rule(data=st.data())
    def stream_some(self, data: st.DataObject) -> None:
        bound = data.draw(st.sampled_from(self.offsets))
        expected = [
            (offset, seq, record)
            for seq, (offset, record) in enumerate(zip(self.offsets, self.records, strict=True))
            if offset > bound and seq < self.durable and record is not None
        ]
        assert [tuple(row) for row in self.log.stream(gt=bound)] == expected

    @invariant()
    def whole_blocks(self) -> None:
        if hasattr(self, "path"):
            assert self.path.stat().st_size % self.block_size == 0

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.reader.close()
            self.log.close()
            shutil.rmtree(self.folder)


LogModel.TestCase.settings = settings(
    max_examples=tries(25, 300), stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLogModel = LogModel.TestCase
