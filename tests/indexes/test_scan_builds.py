"""Building by scanning: the same index however the scan is cut, threaded, interrupted, or changes its mind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_cases import opened, spans_of
from thoroughness import combined, tries

from jitdb import JITDB, Log
from jitdb.engine.building import scan as scan_module
from jitdb.engine.building.targets import BuildTarget
from jitdb.errors import IndexDamaged, QueryCancelled
from jitdb.indexes.files.file import LogName
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds import bitmaps as index_limits
from jitdb.indexes.kinds import set_builders
from jitdb.indexes.kinds.builder import Piece
from jitdb.indexes.kinds.numbers import NumbersBuilder
from jitdb.indexes.kinds.offsets import load_offsets
from jitdb.indexes.kinds.set_builders import OffsetsBuilder
from jitdb.indexes.segment import BITMAPS, PREFIX_MAP, PREFIXES
from jitdb.indexes.spec import OFFSETS
from jitdb.operators import absent, and_, equal, gt, includes, lte, not_, predicate, starts_with
from jitdb.operators.nodes.operation import Operation

pytestmark = pytest.mark.slow

BLOCK = 1024
SPAN = 256


@pytest.fixture(autouse=True)
def _many_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Chunks of one block, spans of a few blocks: what otherwise takes a million records."""
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", BLOCK)
    with spans_of(SPAN):
        yield


def limits(monkeypatch: pytest.MonkeyPatch, *, few: int, most: int = 1 << 16, most_bytes: int = 16 << 20) -> None:
    """Other limits for the values that get bitmaps."""
    for module in (set_builders, index_limits):
        monkeypatch.setattr(module, "FEW_VALUES", few)
    monkeypatch.setattr(index_limits, "RECORDS_A_VALUE", 1 << 30)
    for module in (index_limits, set_builders):
        monkeypatch.setattr(module, "MAX_VALUES", most)
        monkeypatch.setattr(module, "MAX_VALUE_BYTES", most_bytes)


def record(number: int, values: int) -> dict[str, Any]:
    """One of many records; `values` is how many different ones the fields have."""
    out: dict[str, Any] = {"n": number, "timestamp": number * 37 % 101, "k": f"key {number * 7 % values}"}
    if number % 5 == 0:
        del out["k"]
    if number % 3 == 0:
        out["tags"] = [f"tag {number % values}", f"tag {number * 3 % values}", number % 2]
    if number % 7 == 0:
        out["k"] = [None, True, number % 4, [number % 3], {"a": number % 2}][number % 5]
    return out


def is_deleted(one: dict[str, Any]) -> bool:
    return bool(one["n"] % 13 == 5)


def questions(values: int) -> list[tuple[Operation, Callable[[dict[str, Any]], bool]]]:
    """Operations with what they mean."""
    out: list[tuple[Operation, Callable[[dict[str, Any]], bool]]] = [
        (absent("k"), lambda r: "k" not in r),
        (equal("k", None), lambda r: "k" in r and r["k"] is None),
        (equal("k", True), lambda r: r.get("k") is True),
        (equal("k", 2), lambda r: type(r.get("k")) is int and r["k"] == 2),
        (equal("k", [1]), lambda r: r.get("k") == [1]),
        (equal("k", {"a": 1}), lambda r: r.get("k") == {"a": 1}),
        (equal("k", "nowhere"), lambda r: False),
        (gt(500, "n"), lambda r: r["n"] > 500),
        (lte(40, "timestamp"), lambda r: r["timestamp"] <= 40),
        (includes("tags", 1), lambda r: 1 in r.get("tags", [])),
        (not_(equal("k", "key 1")), lambda r: r.get("k") != "key 1"),
        (
            and_(includes("tags", "tag 3"), gt(50, "timestamp")),
            lambda r: "tag 3" in r.get("tags", []) and r["timestamp"] > 50,
        ),
    ]
    for number in {0, 1, values // 2, values - 1, values}:
        key, tag = f"key {number}", f"tag {number}"
        out.append((equal("k", key), lambda r, key=key: r.get("k") == key))  # type: ignore[misc]
        out.append((includes("tags", tag), lambda r, tag=tag: tag in r.get("tags", [])))  # type: ignore[misc]
    return out


def check(db: JITDB, records: Sequence[dict[str, Any]], values: int) -> None:
    for operation, means in questions(values):
        expected = [r for r in records if means(r) and not is_deleted(r)]
        assert db.all(operation, sort_by="arrival") == expected, operation
        assert db.count(operation) == len(expected), operation
        by_time = sorted(expected, key=lambda r: (r["timestamp"], r["n"]))
        assert db.all(operation) == by_time, operation


def kind_of(db: JITDB, operation: Operation) -> set[int]:
    """The kinds of the segments of the index that the operation is answered from."""
    names = {row["index"] for row in db.explain(operation)["indexes"] if row["form"] == "auto"}
    found = [index for index in opened(db) if index.spec.file_name() in names]
    return {segment.kind for index in found for segment in index.segments}


def write(log: Log, records: Sequence[dict[str, Any]]) -> None:
    for offset, one in zip(log.append_many(records), records, strict=True):
        if is_deleted(one):
            log.delete(int(offset))
    log.flush()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "x.log", codec="msgpack", block_size=BLOCK) as log:
        yield log


KEY, TAG = equal("k", "key 1"), includes("tags", "tag 1")


# --- from bitmaps to hashes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
def test_many_values_at_the_first_build(log: Log, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, few=10)
    records = [record(number, 50) for number in range(700)]
    write(log, records)
    db = JITDB(log, threads=threads)
    check(db, records, 50)
    assert kind_of(db, KEY) == {PREFIXES}
    assert kind_of(db, TAG) == {PREFIX_MAP}
    check(JITDB(log), records, 50)


@pytest.mark.parametrize("reopened", [False, True])
def test_many_values_in_a_later_update(log: Log, reopened: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, few=25)
    records = [record(number, 3) for number in range(600)]
    write(log, records)
    db = JITDB(log)
    check(db, records, 3)
    assert kind_of(db, KEY) == kind_of(db, TAG) == {BITMAPS}
    for step in range(4):
        more = [record(number, 50) for number in range(len(records), len(records) + 90)]
        write(log, more)
        records += more
        db = JITDB(log) if reopened else db
        check(db, records, 50)
        assert kind_of(db, KEY) == {PREFIXES}, step
        assert kind_of(db, TAG) == {PREFIX_MAP}, step
    check(JITDB(log), records, 50)


@pytest.mark.parametrize("threads", [1, 3])
def test_many_values_in_the_middle_of_a_scan(log: Log, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The first spans have few values and are written as bitmaps; then the limit that never moves is passed.
    limits(monkeypatch, few=10, most=40)
    records = [record(number, 4 if number < 600 else 60) for number in range(2000)]
    write(log, records)
    db = JITDB(log, threads=threads)
    check(db, records, 60)
    assert kind_of(db, KEY) == {PREFIXES}
    assert kind_of(db, TAG) == {PREFIX_MAP}
    check(JITDB(log), records, 60)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_tables_that_are_full_while_others_are_not(log: Log, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, few=10, most=300)
    records = [record(number, 3000) for number in range(4000)]
    write(log, records)
    db = JITDB(log, threads=threads)
    check(db, records, 3000)
    assert kind_of(db, KEY) == {PREFIXES}


def test_too_many_bytes_of_values(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, few=1000, most_bytes=500)
    records = [record(number, 100) for number in range(600)]
    write(log, records)
    db = JITDB(log)
    check(db, records, 100)
    assert kind_of(db, KEY) == {PREFIXES}


def test_few_values_stay_bitmaps_to_the_last(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, few=60)
    db = JITDB(log)
    records: list[dict[str, Any]] = []
    for _ in range(10):
        more = [record(number, 40) for number in range(len(records), len(records) + 77)]
        write(log, more)
        records += more
        check(db, records, 40)
    assert kind_of(db, KEY) == kind_of(db, TAG) == {BITMAPS}


# --- the same bytes --------------------------------------------------------------------------------------------------

ALL = [
    equal("k", "x", prefix=32),
    equal("k", "x", prefix=32, use_map=True),
    equal("k", "x", prefix=32, prefix_offset=2),
    equal("k", "x", index_all=True),
    equal("k", "x"),
    includes("tags", "x"),
    includes("tags", "x", prefix=32),
    starts_with("k", "key"),
    predicate("k", lambda value: isinstance(value, str) and value > "key 2", name="late"),
    gt(3, "n"),
]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.index"))}


def test_threads_do_not_show(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, few=10, most=40)
    write(log, [record(number, 4 if number < 600 else 60) for number in range(1500)])
    found = []
    for threads in (1, 2, 5):
        JITDB(log, tmp_path / f"{threads}", threads=threads).prepare(*ALL)
        found.append(files_of(tmp_path / f"{threads}"))
    assert len(found[0]) == len(ALL) + 2  # starts_with and a prefix without offset share one; three are always prepared
    assert found[0] == found[1] == found[2]


def test_updates_do_not_show_once_merged(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, few=10)
    records = [record(number, 50) for number in range(900)]
    piecemeal = JITDB(log, tmp_path / "piecemeal")
    for start in range(0, 900, 45):
        write(log, records[start : start + 45])
        piecemeal.prepare(*ALL)
    at_once = JITDB(log, tmp_path / "at once")
    at_once.prepare(*ALL)
    for db in (piecemeal, at_once):
        for index in opened(db):
            index.merge()
    one, other = (files_of(tmp_path / name) for name in ("piecemeal", "at once"))
    (fingerprint,) = (name for name in one if name.startswith("deleted_"))
    del one[fingerprint], other[fingerprint]  # each segment says how much of the journal was known by then
    assert one == other


# --- interrupted -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "threads"), combined(2, [0, 1, 5, 17, 30], [1, 3]))
def test_a_cancelled_scan_keeps_what_it_built(log: Log, after: int, threads: int, tmp_path: Path) -> None:
    records = [record(number, 20) for number in range(1500)]
    write(log, records)
    db = JITDB(log, threads=threads)
    cancel = threading.Event()
    absorb = scan_module.Scan._absorb
    left = [after]

    def counted(self: Any, chunk: Any) -> None:
        absorb(self, chunk)
        left[0] -= 1
        if left[0] < 0:
            cancel.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_module.Scan, "_absorb", counted)
        with pytest.raises(QueryCancelled):
            db.prepare(*ALL, cancel=cancel)
    kept = {index.spec: index.end_seq for index in opened(db)}
    assert all(kept.values())
    again = JITDB(log)
    again.explain(KEY)
    assert all(index.end_seq == kept[index.spec] for index in opened(again))
    for one in (db, again):
        check(one, records, 20)
        one.prepare(*ALL)
        assert {index.end_seq for index in opened(one)} == {1500}


WORK = [
    (Piece, "cut"),
    (OffsetsBuilder, "make"),
    (set_builders.ValuesBuilder, "make"),
    (NumbersBuilder, "make"),
    (Index, "append"),
    (Index, "_take"),
    (Index, "_write"),
    (BuildTarget, "feed"),
    (BuildTarget, "take"),
]


@pytest.mark.parametrize(
    ("method", "calls", "late"),
    combined(2, WORK, [1, 3, 11][:: tries(2, 1)], [False, True]),
    ids=lambda value: value[0].__name__ + "." + value[1] if isinstance(value, tuple) else None,
)
def test_ctrl_c_anywhere(
    log: Log, method: tuple[type, str], calls: int, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name = method
    records = [record(number, 20) for number in range(1200)]
    write(log, records)
    db = JITDB(log, threads=2)
    original = getattr(owner, name)
    left = [calls]

    def interrupted(self: Any, *args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and not late:
            raise KeyboardInterrupt
        result = original(self, *args, **options)
        if left[0] == 0:
            raise KeyboardInterrupt
        return result

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        try:
            db.prepare(KEY, TAG, gt(3, "n"))
        except KeyboardInterrupt:
            assert left[0] <= 0
    for one in (db, JITDB(log)):
        for index in opened(one):
            assert index.damage is None
        check(one, records, 20)


def test_a_users_function_that_raises(log: Log) -> None:
    records = [record(number, 20) for number in range(1200)]
    write(log, records)
    db = JITDB(log, threads=2)

    def fails_late(value: Any) -> bool:
        if value == 1100:
            raise ZeroDivisionError
        return bool(value % 2)

    odd = predicate("n", fails_late, name="odd")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            db.count(odd)
        check(db, records, 20)


# --- alignment -------------------------------------------------------------------------------------------------------


def covering(seqs: int, end_offset: int) -> Index:
    from index_cases import make_offsets

    index = Index(OFFSETS, LogName(bytes(16), 0), None)
    index.segments = [make_offsets(np.arange(seqs) * 10, (0, seqs, 0, end_offset))]
    return index


def test_an_index_that_fits_is_fed_from_where_it_ends() -> None:
    given: list[Any] = []
    target = BuildTarget(covering(3, 30), OffsetsBuilder(), given.append)
    ends = np.array([10, 20, 30, 40, 50])
    target.feed(Piece(5, (ends - 10,)), 0, ends)
    target.feed(Piece(2, (ends[:2] + 40,)), 5, ends[:2] + 50)
    segment = target.make(last=True)
    assert segment.run == (3, 4, 30, 70)
    assert load_offsets(segment).tolist() == [30, 40, 50, 60]


@pytest.mark.parametrize(
    ("covered", "end", "seq"),
    [(3, 29, 0), (3, 31, 0), (2, 30, 0), (4, 30, 0), (3, 30, 1), (3, 30, 4), (9, 30, 0)],
)
def test_an_index_that_does_not_fit_is_damaged(covered: int, end: int, seq: int) -> None:
    target = BuildTarget(covering(covered, end), OffsetsBuilder(), lambda segment: None)
    ends = np.array([10, 20, 30, 40, 50])
    with pytest.raises(IndexDamaged, match="a block was damaged or repaired"):
        target.feed(Piece(5, (ends - 10,)), seq, ends)
    assert not target.is_fed
