"""Many candidates of a prefix index are read without holding the lock: other questions are answered meanwhile."""

from __future__ import annotations

import struct
import threading
import warnings
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from engine_helpers import manager_of
from index_cases import opened

from jitdb import JITDB, Log
from jitdb.common import memory
from jitdb.engine.answering import evaluate
from jitdb.errors import IndexDamaged, QueryCancelled
from jitdb.indexes.segment import HEAD_SIZE, BlobCache
from jitdb.log.codecs import containers
from jitdb.log.codecs.containers import decode_container
from jitdb.operators import and_, equal, includes, not_, or_, predicate, starts_with

COUNT = 4000
MANY = equal("k", "same 3", prefix=32)


def record(number: int) -> dict[str, Any]:
    return {"k": f"same {number % 7}", "even": number % 2 == 0, "timestamp": number}


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with Log(tmp_path / "x.log", codec="bipf", flush_interval=3600) as log:
        log.append_many([record(number) for number in range(COUNT)])
        log.flush()
        yield log


class Gate:
    """Reading many records from this log waits until it is opened; `entered` tells that somebody waits."""

    def __init__(self, log: Log) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        self.reads = 0
        original = log.get_many_raw

        def get_many_raw(offsets: Any) -> Any:
            self.reads += len(offsets)
            if len(offsets) > 1000:
                self.entered.set()
                assert self.opened.wait(20)
            return original(offsets)

        log.get_many_raw = get_many_raw  # type: ignore[method-assign]


def test_other_questions_are_answered_while_candidates_are_read(log: Log) -> None:
    db = JITDB(log)
    db.prepare(MANY, equal("even", True))
    gate = Gate(log)
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(db.count(and_(MANY, equal("even", True)))))
    thread.start()
    assert gate.entered.wait(20)
    answered = threading.Event()
    other = threading.Thread(target=lambda: (db.count(equal("even", False)), answered.set()))
    other.start()
    assert answered.wait(10)
    assert found == []
    log.append_many([record(number) for number in range(COUNT, COUNT + 70)])
    log.delete(next(log.stream(gte=0)).offset)
    log.flush()
    gate.opened.set()
    thread.join()
    other.join()
    right = [n for n in range(1, COUNT + 70) if n % 7 == 3 and n % 2 == 0]
    assert found in ([len(right)], [len([n for n in right if n < COUNT])])
    assert db.count(and_(MANY, equal("even", True))) == len(right)
    before = gate.reads
    assert db.count(not_(MANY)) == COUNT + 69 - len([n for n in range(1, COUNT + 70) if n % 7 == 3])
    assert gate.reads == before  # what was read is remembered
    assert before < COUNT + 2 * 70  # and what came meanwhile was read alone


@pytest.mark.parametrize("at_once", [0, 1, 1024, 1 << 20])
def test_all_answers_however_many_are_read_at_once(log: Log, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "CONFIRMED_AT_ONCE", at_once)
    db = JITDB(log)
    question = and_(not_(MANY), starts_with("k", "same"), equal("even", True), not_(equal("k", "same 5", use_map=True)))
    right = [n for n in range(COUNT) if n % 7 not in (3, 5) and n % 2 == 0]
    assert db.count(question) == len(right)
    assert [one["timestamp"] for one in db.all(question)] == right
    assert not manager_of(db).evaluator._read


def test_reading_candidates_can_be_cancelled(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    db = JITDB(log)
    db.prepare(MANY)
    gate = Gate(log)
    cancel = threading.Event()
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            db.count(MANY, cancel=cancel)
        except QueryCancelled as error:
            failed.append(error)

    monkeypatch.setattr("jitdb.engine.answering.candidate_filter.BATCH", 1500)
    thread = threading.Thread(target=ask)
    thread.start()
    assert gate.entered.wait(20)
    cancel.set()
    gate.opened.set()
    thread.join()
    assert len(failed) == 1
    assert gate.reads == 1500
    assert db.count(MANY) == len(range(3, COUNT, 7))


# --- blobs that are kept ---------------------------------------------------------------------------------------------


def test_blobs_are_kept_up_to_one_bound_for_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_bound", 200)  # half of it
    kept = BlobCache()

    def reader() -> Any:
        return lambda position, length: b""

    readers = [reader() for _ in range(5)]
    for position in range(3):
        for one in readers:
            kept.put(one, position, bytes(10), 10)
            assert kept.bytes <= 100
    assert kept.bytes == 100
    assert kept.get(readers[0], 0) is None  # used longest ago
    assert kept.get(readers[4], 2) == bytes(10)
    kept.put(readers[0], 7, bytes(500), 500)
    assert kept.get(readers[0], 7) == bytes(500)  # larger than all others may be together
    assert kept.bytes == 500
    kept.put(readers[1], 0, bytes(20), 20)
    kept.put(readers[1], 0, bytes(20), 20)
    assert kept.bytes == 20


def test_blobs_of_a_file_go_with_its_reader() -> None:
    kept = BlobCache()

    def reader() -> Any:
        return lambda position, length: b""

    first, second = reader(), reader()
    kept.put(first, 0, b"12345", 5)
    kept.put(second, 0, b"123", 3)
    del first
    third = reader()  # may well have the identity of the first
    assert kept.get(third, 0) is None
    assert kept.get(second, 0) == b"123"
    assert kept.bytes == 3


def test_an_index_that_is_asked_beyond_its_end_says_so(log: Log) -> None:
    import numpy as np

    db = JITDB(log)
    db.prepare()
    with pytest.raises(IndexDamaged, match="covers 4,000 records"):
        manager_of(db).records.offsets_of(np.array([3, 4000], np.uint32))


def test_a_log_that_is_compacted_while_it_is_scanned(log: Log) -> None:
    """What was read before and after must never stand in one index."""
    places = [each.offset for each in log.stream()]
    for place in places[:1000]:
        log.delete(place)
    log.flush()
    db = JITDB(log, threads=1)
    asked: list[Any] = []

    def compacting(value: Any) -> bool:
        asked.append(value)
        if len(asked) == 3:
            log.compact()
        return value == "same 3"

    right = len([number for number in range(1000, COUNT) if number % 7 == 3])
    assert db.count(predicate("k", compacting)) == right
    assert len(asked) > 7  # it was scanned again
    assert db.count(MANY) == right
    again = JITDB(log)
    assert again.count(predicate("k", compacting)) == right
    assert again.count(not_(MANY)) == COUNT - 1000 - right
    assert {index.end_seq for index in opened(again)} == {COUNT - 1000}


# --- arrays and maps -------------------------------------------------------------------------------------------------

KINDS = {
    "arrays": lambda number: [number % 700, 0.5, {"x": [None, str(number % 700)]}],
    "maps": lambda number: {"x": number % 700, "y": [True]},
}


@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
@pytest.mark.parametrize("kind", KINDS)
def test_of_arrays_and_maps_only_those_that_match_are_read(tmp_path: Path, codec: str, kind: str) -> None:
    value = KINDS[kind]
    with Log(tmp_path / "x.log", codec=codec) as log:
        log.append_many([{"v": value(number), "of": [value(number), number]} for number in range(2100)])
        log.flush()
        db = JITDB(log)
        gate = Gate(log)
        wanted = [value(number) for number in (3, 5, 7, 8)]
        assert db.count(or_(*(equal("v", each) for each in wanted))) == 12
        assert db.count(or_(*(includes("of", each) for each in wanted))) == 12
        assert gate.reads == 24
        assert db.count(equal("v", {"x": 3})) == db.count(equal("v", [3])) == 0
        assert gate.reads == 24


@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
def test_arrays_of_the_same_bytes_are_decoded_once(tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    same, other = [1, "x", {"a": 1, "b": 2}], [1, "x", {"a": 2, "b": 1}]
    forms = [same, [1.0, "x", {"b": 2, "a": 1}], other]
    decoded = []
    with Log(tmp_path / "x.log", codec=codec) as log:
        log.append_many([{"v": forms[number % 3] if number < 3000 else [number]} for number in range(3400)])
        log.flush()
        db = JITDB(log)
        db.prepare(equal("v", same))

        def decode(*arguments: Any) -> Any:
            decoded.append(arguments)
            return decode_container(*arguments)

        monkeypatch.setattr(containers, "decode_container", decode)
        assert db.count(equal("v", same)) == 2000
        assert db.count(equal("v", other)) == 1000
        assert db.count(equal("v", [3003])) == 1
    assert 0 < len(decoded) <= 3  # batches hold more


def test_an_index_of_an_older_version_is_built_again_without_a_word(tmp_path: Path) -> None:
    values = [[number % 700] for number in range(2100)]
    with Log(tmp_path / "x.log") as log:
        log.append_many([{"v": value} for value in values])
        log.flush()
        db = JITDB(log)
        assert db.count(equal("v", [5])) == 3
        (path,) = [Path(index.name) for index in opened(db) if index.spec.paths == (("v",),)]
    data = bytearray(path.read_bytes())
    head = data.index(b"JSEG")
    size = 4 * len(values)
    data[-size:] = bytes([7]) * size  # every array has one hash, as it was
    table = head + HEAD_SIZE + 4
    struct.pack_into("<I", data, table + 12 + 8, crc32(data[-size:]))
    struct.pack_into("<I", data, head + 56, crc32(data[head + HEAD_SIZE : table + 24]))
    data[head + 5] = 1
    struct.pack_into("<I", data, head + 60, crc32(data[head : head + 60]))
    path.write_bytes(data)
    with Log(tmp_path / "x.log") as log, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert JITDB(log).count(equal("v", [5])) == 3
    assert path.read_bytes()[head + 5] == 3
