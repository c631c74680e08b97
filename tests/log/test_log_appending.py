"""Appending: what is stored, where, when it is durable, and what is refused."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from waiting import until, until_ended

from jitdb.errors import EncodeError, InvalidRecord, LogClosed, LogReadOnly, RecordTooLarge
from jitdb.log import Log


def new_log(path: Path, **options: Any) -> Log:
    return Log(path / "a.log", **{"codec": "raw", **options})


def test_offsets_are_byte_positions(tmp_path: Path) -> None:
    with new_log(tmp_path) as log:
        assert [log.append(b"abc"), log.append(b"d"), log.append(b"efgh")] == [0, 5, 8]
        assert log.since == -1
        log.flush()
        assert (log.since, log.durable_end) == (8, 14)
    assert (tmp_path / "a.log").read_bytes() == b"\3\0abc\1\0d\4\0efgh".ljust(65536, b"\0")


def test_the_default_codec_is_msgpack(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log") as log:
        values = [{"a": [1, None, "x"]}, "text", 17, {"b": b"bytes"}]
        offsets = [log.append(value) for value in values]
        assert [log.get(offset) for offset in offsets] == values
        assert log.codec.name == "msgpack"


def test_a_file_is_whole_blocks(tmp_path: Path) -> None:
    with new_log(tmp_path, block_size=64) as log:
        for number in range(1, 30):
            log.append(b"x" * number)
            log.flush()
            assert (tmp_path / "a.log").stat().st_size == -(-log.durable_end // 64) * 64


def test_appends_of_every_kind_give_one_file(tmp_path: Path) -> None:
    records = [bytes([1 + number % 255]) * (number * 7 % 60 + 1) for number in range(3000)]
    contents = set()
    for kind in ("one", "many", "thousands", "flushed", "generator"):
        path = tmp_path / kind
        with Log(path, codec="raw", block_size=64) as log:
            if kind == "one":
                offsets = [log.append(record) for record in records]
            elif kind == "many":
                offsets = [offset for at in range(0, 3000, 7) for offset in log.append_many(records[at : at + 7])]
            elif kind == "generator":
                offsets = log.append_many(record for record in records)
            elif kind == "thousands":
                offsets = [offset for at in range(0, 3000, 1500) for offset in log.append_many(records[at : at + 1500])]
            else:
                offsets = []
                for number, record in enumerate(records):
                    offsets.append(log.append(record))
                    if number % 50 == 0:
                        log.flush()
            assert [log.get(offset) for offset in offsets] == records
        contents.add(path.read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize("block_size", [16, 512, 65536, 65537, 1 << 20])
def test_largest_record(tmp_path: Path, block_size: int) -> None:
    largest = block_size - 2 * (2 if block_size <= 65536 else 4)
    with new_log(tmp_path, block_size=block_size) as log:
        assert log.append_many([b"x" * largest, b"y" * largest]) == [0, block_size]
        assert log.append_transaction([b"z" * largest]) == [2 * block_size]
        with pytest.raises(RecordTooLarge) as caught:
            log.append(b"x" * (largest + 1))
        assert (caught.value.size, caught.value.limit) == (largest + 1, largest)
        with pytest.raises(RecordTooLarge):
            log.append_many([b"small", b"x" * (largest + 1)])
        log.flush()
        assert log.since == 2 * block_size
    with Log(tmp_path / "a.log") as log:
        assert [len(record.value) for record in log.stream()] == [largest] * 3


@pytest.mark.parametrize("record", [b"", b"\0", bytes(100)])
def test_records_that_would_look_like_something_else(tmp_path: Path, record: bytes) -> None:
    with new_log(tmp_path) as log:
        with pytest.raises(InvalidRecord, match=r"length, 0|deleted record"):
            log.append(record)
        with pytest.raises(InvalidRecord):
            log.append_many([b"good", record])
        with pytest.raises(InvalidRecord):
            log.append_transaction([b"good", record])
        log.flush()
        assert log.since == -1
        assert log.append(b"\0\0x") == 0


def test_what_is_no_bytes(tmp_path: Path) -> None:
    with new_log(tmp_path) as log:
        for value in ("text", 5, None, ["x"]):
            with pytest.raises((InvalidRecord, EncodeError)):
                log.append(value)
        data = bytearray(b"mutable")
        offset = log.append(data)
        other = log.append_many([memoryview(b"view"), bytearray(b"array")])
        data[:] = b"changed"
        assert [log.get(at) for at in (offset, *other)] == [b"mutable", b"view", b"array"]


def test_the_zero_of_msgpack_is_all_zero(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log") as log, pytest.raises(InvalidRecord, match="deleted record"):
        log.append(0)


def test_nothing_appended(tmp_path: Path) -> None:
    with new_log(tmp_path) as log:
        assert log.append_many([]) == log.append_transaction([]) == []
        log.flush()
        assert (log.since, log.durable_end, list(log.stream()), log.get_many_raw([])) == (-1, 0, [], [])


def test_a_transaction_stands_in_one_block(tmp_path: Path) -> None:
    with new_log(tmp_path, block_size=64) as log:
        assert log.append(b"x" * 40) == 0
        assert log.append_transaction([b"a" * 10, b"b" * 10]) == [64, 76]  # 24 bytes; 20 are left in the first block
        assert log.append(b"y" * 10) == 88
        assert log.append_transaction([b"c" * 6, b"d" * 16]) == [100, 108]  # exactly full
        assert log.append_transaction([b"e"]) == [128]
        with pytest.raises(RecordTooLarge):
            log.append_transaction([b"f" * 29, b"g" * 30])
        log.append_transaction([b"f" * 29, b"g" * 29])
    with Log(tmp_path / "a.log") as log:
        assert [record.value[:1] for record in log.stream()] == [b"x", b"a", b"b", b"y", b"c", b"d", b"e", b"f", b"g"]


def test_unwritten_records_can_be_read_but_not_streamed(tmp_path: Path) -> None:
    with new_log(tmp_path, block_size=64, flush_interval=60) as log:
        offsets = [log.append(b"%d" % number * 9) for number in range(30)]
        offsets += log.append_transaction([b"t" * 9, b"u" * 9])
        assert log.get(offsets[0]) == b"0" * 9
        assert [log.get(offset) for offset in offsets[-2:]] == [b"t" * 9, b"u" * 9]
        assert log.get(offsets[17]) == b"17" * 9
        assert list(log.stream()) == []
        assert log.since == -1
        log.flush()
        assert len(list(log.stream())) == 32


def test_a_group_is_written_in_time(tmp_path: Path) -> None:
    with new_log(tmp_path, flush_interval=0.01) as log:
        seen: list[int] = []
        arrived = threading.Event()
        log.on_since(lambda since: (seen.append(since), arrived.set()))
        offset = log.append(b"record")
        assert arrived.wait(5)
        assert seen == [offset] == [log.since]
        until_ended("jitdb flush")
        arrived.clear()
        second = log.append(b"another")
        assert arrived.wait(5)
        assert log.since == second


def test_much_at_once_is_written_before_the_flush(tmp_path: Path) -> None:
    with new_log(tmp_path, flush_interval=60) as log:
        offsets = log.append_many([b"x" * 1000] * 5000)
        assert (tmp_path / "a.log").stat().st_size > 4_000_000
        assert log.since == -1
        assert log.get(offsets[-1]) == b"x" * 1000
        log.flush()
        assert log.since == offsets[-1]


def test_observers(tmp_path: Path) -> None:
    with new_log(tmp_path) as log:
        seen: list[int] = []

        def observer(since: int) -> None:
            seen.append(since)
            if len(seen) == 1:
                log.append(b"from the observer")  # no lock is held

        stop = log.on_since(observer)
        log.append(b"a")
        log.flush()
        log.flush()
        assert seen == [0, 3]
        log.append(b"b")
        stop()
        log.flush()
        assert seen == [0, 3]


def test_an_observer_that_fails_in_the_timer_does_not_stop_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", shown.append)
    with new_log(tmp_path, flush_interval=0.01) as log:
        log.on_since(lambda since: 1 // 0)
        log.append(b"a")
        until(lambda: log.since == 0)
        log.append(b"b")
        until(lambda: log.since == 3)
        assert log.since == 3
    assert shown


def test_threads(tmp_path: Path) -> None:
    written: dict[int, bytes] = {}
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for number in range(300):
                record = b"%d-%d-" % (name, number) + b"x" * (number % 90)
                offset = log.append(record) if number % 3 else log.append_many([record])[0]
                written[offset] = record
                if number % 50 == 0:
                    log.flush()
                assert log.get(offset) == record
        except BaseException as error:
            failures.append(error)

    with new_log(tmp_path, block_size=512, flush_interval=0.001) as log:
        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
    with Log(tmp_path / "a.log") as log:
        assert {record.offset: record.value for record in log.stream()} == written
        assert len(written) == 1200


def test_closed(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    offset = log.append(b"a")
    log.flush()
    stream = log.stream()
    log.close()
    log.close()
    assert log.closed
    for call in (
        lambda: log.append(b"b"),
        lambda: log.append_many([b"b"]),
        lambda: log.append_transaction([b"b"]),
        lambda: log.get(offset),
        lambda: log.get_raw(offset),
        lambda: log.get_many_raw([offset]),
        lambda: log.delete(offset),
        lambda: log.flush(),
        lambda: log.refresh(),
        lambda: log.stats(),
        lambda: log.stream(),
        lambda: log.stream_batches(),
        lambda: log.deletions(),
        lambda: list(stream),
    ):
        with pytest.raises(LogClosed):
            call()
    assert "closed" in repr(log)


def test_read_only(tmp_path: Path) -> None:
    with new_log(tmp_path) as log:
        offset = log.append(b"a")
    with Log(tmp_path / "a.log", read_only=True) as log:
        for call in (
            lambda: log.append(b"b"),
            lambda: log.append_many([b"b"]),
            lambda: log.append_transaction([b"b"]),
            lambda: log.delete(offset),
        ):
            with pytest.raises(LogReadOnly):
                call()
        log.flush()


def test_a_log_that_is_forgotten_is_closed(tmp_path: Path) -> None:
    def forget() -> None:
        new_log(tmp_path, flush_interval=0.01).append(b"a")
        # The timer's thread holds the log until it has flushed.
        until(lambda: not any(thread.name.startswith("jitdb flush") for thread in threading.enumerate()))
        gc.collect()

    with pytest.warns(ResourceWarning, match="unclosed log"):
        forget()
    with Log(tmp_path / "a.log") as log:
        assert [record.value for record in log.stream()] == [b"a"]


def test_nothing_heavy_is_imported() -> None:
    script = """
import sys, tempfile
from jitdb.log import Log
def loaded(*names): print([name for name in names if name in sys.modules])
loaded("numpy", "numba", "rich", "asyncio", "pyspark", "pandas")
with Log(tempfile.mkdtemp() + "/a.log") as log:
    log.append({"a": 1}); log.flush(); log.append_many([{"b": 1}]); log.get(0)
    loaded("numpy", "numba", "rich", "asyncio")
    list(log.stream()); list(log.stream_batches()); log.stats()
    loaded("numba", "rich", "asyncio")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n[]\n"
