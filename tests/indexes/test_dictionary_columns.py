"""The dictionary column of a field: built by scans however they are cut, merged, moved, and read as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_helpers import manager_of
from hypothesis import given, settings
from hypothesis import strategies as st
from index_cases import MISSING, items, opened, spans_of, values_of
from pyroaring import BitMap

from jitdb import JITDB, Log
from jitdb.common.values import UNDEFINED, value_at, value_key
from jitdb.engine.answering.coded_column import CodedColumns
from jitdb.engine.answering.members import Members
from jitdb.engine.building import scan as scan_module
from jitdb.errors import QueryError
from jitdb.indexes.kinds import dictionary
from jitdb.indexes.kinds.dictionary import DictionaryColumn
from jitdb.indexes.numbering import NumberingTable, key_at
from jitdb.indexes.spec import IndexSpec, Requirement

SPAN = 256
PATHS = (("k",), ("deep", "k"), ("many",))
NEEDS = tuple(Requirement(IndexSpec("dictionary", (path,))) for path in PATHS)
SHAPES = (None, True, False, 0, 2**53, -0.5, "", "ä" * 9, [1, "a"], {"b": [None], "a": 1}, [], {}, UNDEFINED)


def record(number: int) -> dict[str, Any]:
    out: dict[str, Any] = {"n": number, "many": f"value {number * 7 % 600}", "filler": "x" * (number % 60)}
    for place in (out, out.setdefault("deep", {})):
        value = SHAPES[number * (1 if place is out else 5) % len(SHAPES)]
        if value is not UNDEFINED:
            place["k"] = value
    return out


def check(db: JITDB, records: Sequence[dict[str, Any] | None], columns: CodedColumns) -> None:
    """`records` by seq; None: a deleted one."""
    manager_of(db).prepare(NEEDS, None)
    for need, path in zip(NEEDS, PATHS, strict=True):
        index = manager_of(db).catalog.get(need.spec)
        column = columns.get(index)
        live = BitMap(seq for seq, each in enumerate(records) if each is not None)
        some = BitMap(seq for seq in live if seq % 3)
        values = {seq: value_key(value_at(records[seq], path)) for seq in live}
        for chosen in (live, some, BitMap()):
            expected = Counter(values[seq] for seq in chosen)
            counts = column.counts(Members(chosen))
            assert {column.key(code): counts[code] for code in np.flatnonzero(counts).tolist()} == expected
            codes = column.codes(Members(chosen)).tolist()
            assert [column.key(code) for code in codes] == [values[seq] for seq in chosen]


@pytest.mark.parametrize("codec", ["bipf", "msgpack", "json"])
@pytest.mark.parametrize("table", [8, 1 << 18], ids=["small tables", "one table"])
def test_a_log_that_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str, table: int) -> None:
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", 1024)
    monkeypatch.setattr(dictionary, "VALUES", table)
    with spans_of(SPAN), Log(tmp_path / "log", codec=codec, block_size=1024, flush_interval=3600) as log:
        records: list[dict[str, Any] | None] = []
        db, columns = JITDB(log), CodedColumns()
        for count in (3, 40, 300, 700):
            more = [record(len(records) + number) for number in range(count)]
            log.append_many(more)
            log.flush()
            records += more
            check(db, records, columns)
        anew = JITDB(log, tmp_path / "anew", threads=1)
        check(anew, records, CodedColumns())
        assert merged(db) == merged(anew)
        assert db.verify(operations=()).ok


def merged(db: JITDB) -> dict[str, bytes]:
    """The files of dictionaries, once all that can be is merged."""
    indexes = [index for index in opened(db) if index.spec.form == "dictionary"]
    for index in indexes:
        index.merge()
    assert len(indexes) == len(PATHS)
    return {index.path.name: index.path.read_bytes() for index in indexes if index.path is not None}


def test_deletions_and_compaction(tmp_path: Path) -> None:
    with spans_of(SPAN), Log(tmp_path / "log", codec="msgpack", block_size=1024, flush_interval=3600) as log:
        records: list[dict[str, Any] | None] = [record(number) for number in range(900)]
        offsets = log.append_many(records)
        log.flush()
        db, columns = JITDB(log), CodedColumns()
        check(db, records, columns)
        for seq in range(0, 900, 7):
            log.delete(int(offsets[seq]))
            records[seq] = None
        log.flush()
        check(db, records, columns)
        db.compact()
        assert db.explain()["scan_bytes"] == 0
        check(db, [each for each in records if each is not None], columns)
        assert db.verify(operations=()).ok


def content_of(values: Sequence[Any]) -> DictionaryColumn:
    located, table = values_of(values), NumberingTable()
    numbers = table.number(located, np.zeros(len(values), np.uint8))
    assert numbers is not None
    return DictionaryColumn.of_codes(table.distinct_values(), numbers, 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(items, min_size=1, max_size=40), st.integers(1, 5))
def test_any_values_in_any_pieces(given_items: list[Any], size: int) -> None:
    parts = [content_of(given_items[at : at + size]) for at in range(0, len(given_items), size)]
    run = (0, len(given_items), 0, 100)
    segment = DictionaryColumn.concat(parts).segment(run)
    assert segment.parts() == content_of(given_items).segment(run).parts()
    again = DictionaryColumn.of(segment)
    assert not again.differing(content_of(given_items))
    found = [key_at(again.values, code - 1) if code else b"\0" for code in again.codes.tolist()]
    assert found == [b"\0" if each is MISSING else value_key(each) for each in given_items]


def test_values_too_large_to_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary, "MOST_BYTES", 1000)
    with Log(tmp_path / "log", codec="msgpack") as log:
        db = JITDB(log)
        log.append_many([{"k": f"{number}" * 20} for number in range(100)])
        log.flush()
        with pytest.raises(
            QueryError, match=r"asked of `k` needs .* take \S+ bytes in records 0 to 99.* 1,000 at most"
        ):
            manager_of(db).prepare(NEEDS[:1], None)
