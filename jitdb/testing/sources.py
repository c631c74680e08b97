"""What every kind of log holds to (jitdb.log.source), as tests: subclass those of its step, and give the fixtures.

    class TestMine(LogSourceTests):
        @pytest.fixture
        def records(self) -> list[bytes | None]:       # what it holds, in order; None for a deleted record
            return [b"one", None, b"three"]

        @pytest.fixture
        def source(self, records, tmp_path) -> Iterator[LogSource]:
            ...

A dozen records in three blocks or more find most of what can be wrong.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest

from jitdb.engine.database import JITDB
from jitdb.errors import InvalidOffset
from jitdb.log.blocks.checksum import DAMAGED, UNKNOWN, crc32
from jitdb.log.codecs.fields.constants import DELETED
from jitdb.log.codecs.fields.located import Scratch
from jitdb.log.source import LogSource, MaintainedSource, ScanSource

Records = list[bytes | None]

_SOON = 10.0  # seconds in which news must have come


class ScanSourceTests:
    """Blocks that stay where they are, and hold the records."""

    @pytest.fixture
    def source(self) -> Any:
        """The source, open."""
        raise NotImplementedError("a subclass gives the fixture `source`")

    @pytest.fixture
    def records(self) -> Records:
        """What it holds, in order; None for a deleted record."""
        raise NotImplementedError("a subclass gives the fixture `records`")

    def test_its_blocks_hold_the_records(self, source: ScanSource, records: Records) -> None:
        assert [record for _, record in _walked(source)] == records

    def test_nothing_is_read_behind_the_end(self, source: ScanSource, records: Records) -> None:
        end, size = source.durable_end, source.block_size
        whole = -(-end // size) * size
        assert _read(source, 0, whole + 2 * size) == _read(source, 0, end)
        assert _read(source, whole, whole + size) == b""

    def test_any_run_of_blocks_is_that_part_of_all(self, source: ScanSource, records: Records) -> None:
        data, size = _read(source, 0, source.durable_end), source.block_size
        for begin in range(0, len(data), size):
            for stop in range(begin + size, len(data) + size, size):
                assert _read(source, begin, stop) == data[begin:stop]

    def test_it_reads_into_arrays_and_views(self, source: ScanSource, records: Records) -> None:
        size = source.block_size
        array, view = np.zeros(size, np.uint8), memoryview(bytearray(size))
        assert source.read_blocks(0, size, array) == source.read_blocks(0, size, view) > 0
        assert array.tobytes() == bytes(view)

    def test_its_checksums_are_those_of_its_blocks(self, source: ScanSource, records: Records) -> None:
        data, size = _read(source, 0, source.durable_end), source.block_size
        count = -(-len(data) // size)
        sums = source.checksums(0, count + 3)
        assert sums.dtype == np.int64
        assert sums.shape == (count + 3,)
        for block, found in enumerate(sums.tolist()):
            part = data[block * size : (block + 1) * size]
            assert found == UNKNOWN or (len(part) == size and found in (DAMAGED, crc32(part)))
            assert source.checksums(block, 1).tolist() == [found]

    def test_a_second_look_finds_the_block(self, source: ScanSource, records: Records) -> None:
        data, size = _read(source, 0, source.durable_end), source.block_size
        for begin in range(0, len(data), size):
            found, fault = source.second_look(begin // size)
            assert fault is None
            assert found[: len(data) - begin] == data[begin : begin + size]

    def test_threads_read_the_same(self, source: ScanSource, records: Records) -> None:
        size = source.block_size
        blocks = [number * size for number in range(-(-source.durable_end // size))] * 20
        alone = [_read(source, begin, begin + size) for begin in blocks]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda begin: _read(source, begin, begin + size), blocks)) == alone


class LogSourceTests(ScanSourceTests):
    """It can be asked."""

    def test_it_ends_where_its_last_record_does(self, source: LogSource, records: Records) -> None:
        data, size = _read(source, 0, source.durable_end), source.block_size
        assert len(data) == source.durable_end
        is_full = len(data) % size == 0  # no more can come to the last block, wherever its records end
        if not (is_full and source.framing.is_blocked):
            last = source.framing.last_record(source, len(data))
            assert last.offset == _walked(source)[-1][0]

    def test_it_has_a_name(self, source: LogSource, records: Records) -> None:
        assert len(source.identity) == 16
        assert source.identity == source.identity
        assert source.generation == source.generation >= 0
        assert source.identity_is_stored in (True, False)
        assert source.sidecar != source.path

    def test_records_by_offset(self, source: LogSource, records: Records) -> None:
        offsets = [offset for offset, _ in _walked(source)]
        assert source.get_many_raw([]) == []
        assert source.get_many_raw(offsets) == records
        order = [random.Random(1).randrange(len(records)) for _ in range(3 * len(records))]
        wanted = [records[number] for number in order]
        assert source.get_many_raw([offsets[number] for number in order]) == wanted
        assert source.get_many_raw(np.array(offsets, np.int64)[order]) == wanted

    def test_records_in_one_buffer(self, source: LogSource, records: Records) -> None:
        offsets = np.array([offset for offset, _ in _walked(source)], np.int64)
        for some in (slice(None), slice(1, None, 3), slice(0, 1)):
            batch = source.read_batch(offsets[some], Scratch())
            there = [None if state else batch.record(number) for number, state in enumerate(batch.states.tolist())]
            if not source.framing.keeps_malformed:  # these may be there still
                there = [each if each is not None and source.codec.is_valid(each) else None for each in there]
            assert there == records[some]

    def test_no_record_begins_elsewhere(self, source: LogSource, records: Records) -> None:
        offsets = {offset for offset, _ in _walked(source)}
        for offset in {-1, source.durable_end, source.durable_end + source.block_size, *range(200)} - offsets:
            with pytest.raises(InvalidOffset):
                source.get_many_raw([min(offsets), offset])

    def test_what_is_deleted_is_told(self, source: LogSource, records: Records) -> None:
        position, told = source.deletions()
        assert source.deletion_position() == position
        assert told.dtype == np.int64
        assert source.deletions(position)[1].tolist() == []
        offsets = dict(_walked(source))
        assert all(offsets[offset] is None for offset in [*told.tolist(), *source.deleting()])

    def test_nothing_was_compacted_since_now(self, source: LogSource, records: Records) -> None:
        assert source.removals(source.generation) == []
        assert source.removals(source.generation + 1) is None

    def test_records_are_counted(self, source: LogSource, records: Records) -> None:
        count = source.counter()
        if count is not None:
            assert [count(offset) for offset, _ in _walked(source)] == list(range(len(records)))

    def test_nothing_is_new(self, source: LogSource, records: Records) -> None:
        source.refresh()
        token, news = source.foreign_change_token(), Event()
        unwatch = source.watch(news.set)
        assert source.refresh() is False
        unwatch()
        unwatch()
        assert source.foreign_change_token() == token

    def test_questions_are_answered(self, source: LogSource, records: Records) -> None:
        live = [record for record in records if record is not None]
        db = JITDB(source, "memory", progress=False)
        assert db.count() == len(live)
        assert [source.codec.decode(record) for record in live] == list(db.all(sort_by="arrival"))
        held = dict(_walked(source))
        assert [held[offset] for offset in db.all(sort_by="arrival", as_offsets=True)] == live


class GrowingSourceTests(LogSourceTests):
    """Others append to it while it is open."""

    def append(self, source: LogSource, record: bytes) -> None:
        """Append this record durably, as the writer of such a file does."""
        raise NotImplementedError("a subclass gives the method `append`")

    def test_what_comes_is_seen(self, source: LogSource, records: Records) -> None:
        db = JITDB(source, "memory", progress=False)
        before, end = db.count(), source.durable_end
        fresh = next(record for record in records if record is not None)
        self.append(source, fresh)
        source.refresh()
        assert source.durable_end > end
        assert source.refresh() is False
        assert db.count() == before + 1
        assert source.get_many_raw([_walked(source)[-1][0]]) == [fresh]

    def test_who_watches_hears_of_it(self, source: LogSource, records: Records) -> None:
        news, ended = Event(), Event()
        unwatch = source.watch(news.set)
        source.watch(ended.set)()
        source.refresh()
        news.clear()
        ended.clear()
        self.append(source, next(record for record in records if record is not None))
        assert news.wait(_SOON)
        assert not ended.is_set()
        unwatch()


class MaintainedSourceTests(LogSourceTests):
    """Its bytes are ours."""

    def test_it_is_sound(self, source: MaintainedSource, records: Records) -> None:
        assert source.verify().ok
        told: list[tuple[int, int]] = []
        source.verify(lambda done, total: told.append((done, total)))
        assert told[-1][0] == told[-1][1]

    def test_a_repair_finds_nothing_to_do(self, source: MaintainedSource, records: Records) -> None:
        identity = source.identity
        assert source.repair().before.ok
        assert source.identity == identity
        assert [record for _, record in _walked(source)] == records

    def test_a_compaction_removes_what_is_deleted(self, source: MaintainedSource, records: Records) -> None:
        before, generation = source.identity, source.generation
        live = [record for record in records if record is not None]
        done = source.compact()
        assert (done.removed, done.records) == (len(records) - len(live), len(live))
        assert [record for _, record in _walked(source)] == live
        assert source.identity == before
        assert sum(len(each.removed) for each in source.removals(generation) or ()) == done.removed


def _read(source: ScanSource, start: int, stop: int) -> bytes:
    """The bytes of these blocks, read over others."""
    buffer = np.full(stop - start, 0xA5, np.uint8)
    got = source.read_blocks(start, stop, buffer)
    assert (buffer[got:] == 0xA5).all()
    return buffer[:got].tobytes()


def _walked(source: ScanSource) -> list[tuple[int, bytes | None]]:
    """Where its records begin, and their bytes, as a scan finds them."""
    end, framing = source.durable_end, source.framing
    size = -(-end // source.block_size) * source.block_size
    walker = framing.walker(source, size, end)
    found: list[tuple[int, bytes | None]] = []
    if not end:
        return found
    for count, faults, _ in walker.walks(0, 0):
        assert not faults
        batch = walker.batch(0, count, -framing.before)
        if not framing.keeps_malformed:
            batch.states[source.codec.locator([]).invalid(batch)] = DELETED
        assert batch.offsets is not None
        for number, (offset, state) in enumerate(zip(batch.offsets.tolist(), batch.states.tolist(), strict=True)):
            found.append((offset, None if state == DELETED else batch.record(number)))
    return found
