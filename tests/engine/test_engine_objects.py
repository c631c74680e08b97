"""Fields that hold objects: as values, and when there are too many of them for bitmaps."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from index_cases import opened
from oracle import Oracle

from jitdb import JITDB, Log
from jitdb.engine.declared_time import CoreFields
from jitdb.indexes import numbering
from jitdb.indexes.kinds import set_builders
from jitdb.indexes.kinds.bitmaps import MAX_CONTAINER_BYTES
from jitdb.indexes.segment import BITMAPS, PREFIXES
from jitdb.operators import absent, equal, gt, includes, predicate, starts_with
from jitdb.operators.nodes import equal as equal_file
from jitdb.operators.nodes.operation import Operation

pytestmark = pytest.mark.slow


def kind_of(db: JITDB) -> int:
    need = absent("user").need(CoreFields((), ()))
    assert need is not None
    (index,) = [index for index in opened(db) if index.spec == need.spec]
    return index.kind


@pytest.mark.parametrize(("users", "kind"), [(set_builders.FEW_VALUES, BITMAPS), (5_000, PREFIXES)])
@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
def test_objects_are_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str, users: int, kind: int) -> None:
    made = []
    key = numbering.key_at
    monkeypatch.setattr(numbering, "key_at", lambda values, entry: made.append(entry) or key(values, entry))
    with Log(tmp_path / "log", codec=codec) as log:
        log.append_many([{"user": {"id": number % users, "tags": ["a", number % users]}} for number in range(20_000)])
        log.append({"note": "no user"})
        log.flush()
        db = JITDB(log, threads=2)
        assert db.count(absent("user")) == 1
        assert kind_of(db) == kind
        assert len(made) <= 4 * set_builders.FEW_VALUES + 4, "every object was decoded to learn that they are many"
        same = sum(number % users == 7 for number in range(20_000))
        assert db.count(equal("user", {"tags": ["a", 7], "id": 7.0})) == same
        assert db.count(equal("user", {"id": 7})) == 0


LARGE = {
    "array": [number + 0.5 for number in range(9_000)],
    "map": {f"key {number}": number for number in range(8_000)},
    "maps": [{"id": number} for number in range(12_000)],
    "strings": [f"string {number}" for number in range(8_000)],
}


def counted(monkeypatch: pytest.MonkeyPatch, place: Any, name: str) -> list[int]:
    """The bytes of the last argument (or what it is made of) of each call of this function from now on."""
    calls: list[int] = []
    plain = getattr(place, name)

    def count(*arguments: Any) -> Any:
        calls.append(len(arguments[-1]) if hasattr(arguments[-1], "__len__") else 1)
        return plain(*arguments)

    monkeypatch.setattr(place, name, count)
    return calls


def questions(large: Any) -> list[Operation]:
    return [
        equal("field", "x"),
        equal("field", ["a"]),
        equal("field", large),
        equal("field", large[1:] if isinstance(large, list) else {"key 0": 0}),
        equal("other", 1),
        absent("field"),
        gt(3, "field"),
        starts_with("field", "x"),
        includes("field", "x"),
        includes("field", large[7] if isinstance(large, list) else large),
        predicate("field", lambda value: isinstance(value, (list, dict)) and len(value) > 1, name="is_large"),
    ]


@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
@pytest.mark.parametrize("shape", LARGE)
def test_one_large_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str, shape: str) -> None:
    large = LARGE[shape]
    small = [{"field": value, "other": 1} for value in ("x", "xy", ["a"], ["x", "y"], {"a": 1}, 5, None)]
    with Log(tmp_path / "log", codec=codec, block_size=1 << 20) as log:
        records = [*small, {"field": large, "other": 1}, {"other": 1}, *small]
        oracle = Oracle(records, log.append_many(records), set())
        log.flush()
        decoded = counted(monkeypatch, numbering, "container_key")
        db = JITDB(log)
        for question in questions(large):
            decoded.clear()
            assert db.count(question) == len(oracle.matches(question)), question
            times = 1 if "predicate" in str(question) else 0
            assert sum(size > MAX_CONTAINER_BYTES for size in decoded) == times, question


@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
def test_containers_are_decoded_once_to_be_numbered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    fields = [[number, *range(2_000)] for number in range(100)]
    with Log(tmp_path / "log", codec=codec) as log:
        log.append_many([{"field": value} for value in fields * 2])
        log.flush()
        decoded = counted(monkeypatch, numbering, "container_key")
        db = JITDB(log, threads=1)
        assert db.count(equal("field", fields[7])) == 2
        assert len(decoded) == 100


@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
def test_a_large_container_comes_later(tmp_path: Path, codec: str) -> None:
    with Log(tmp_path / "log", codec=codec, block_size=1 << 20) as log:
        log.append_many([{"user": value} for value in (["a"], "x", ["a"], 1)])
        log.flush()
        db = JITDB(log)
        assert db.count(equal("user", ["a"])) == 2
        assert kind_of(db) == BITMAPS
        log.append({"user": LARGE["array"]})
        log.flush()
        assert [db.count(equal("user", value)) for value in (["a"], "x", 1, LARGE["array"])] == [2, 1, 1, 1]
        assert kind_of(db) == PREFIXES


def test_no_key_is_made_of_a_container_of_another_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Log(tmp_path / "log", block_size=1 << 20) as log:
        log.append_many([{"field": LARGE["array"]}, {"field": ["a"]}, {"field": [1]}])
        log.flush()
        db, question = JITDB(log), equal("field", ["a"])
        keys = counted(monkeypatch, equal_file, "value_key")
        assert db.count(question) == 1
        assert set(keys) == {1}, "a key was made of the large one"


@pytest.mark.parametrize("ask", [lambda large: equal("field", "x"), lambda large: equal("field", large)])
@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
def test_memory_of_a_large_array(tmp_path: Path, codec: str, ask: Callable[[Any], Operation]) -> None:
    block, large = 1 << 20, [number + 0.5 for number in range(80_000)]
    with Log(tmp_path / "log", codec=codec, block_size=block) as log:
        log.append_many([{"field": large}, {"field": "x"}])
        log.flush()
        size = len(log.codec.encode(large))
        db, question = JITDB(log, "memory", threads=1), ask(large)
        assert question.identity
        tracemalloc.start()
        try:
            assert db.count(equal("another", "x")) == 0
            scan = tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()
            assert db.count(question) == 1
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak - scan < 10 * size, f"{(peak - scan) / size:.1f} times the record, and a scan's buffers"
