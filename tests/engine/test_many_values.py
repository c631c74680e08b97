"""Values of a field that has too many to be numbered all at once are counted as all others are."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.engine.answering import apart, summarizing
from jitdb.errors import QueryError
from jitdb.indexes import segment
from jitdb.operators import field

RANDOM = random.Random(7)


def made(kind: str, number: int) -> dict[str, Any]:
    """A record."""
    unique = f"{number * 7919 % 10_007:05}-{'x' * (number % 5)}"
    values: dict[str, Any] = {
        "unique": unique,
        "few again": unique if number % 50 else "again",
        "twice": str(number % 700),
        "missing": unique if number % 3 else None,
        "mixed": RANDOM.choice([unique, number, number / 4, None, True, [number % 40], {"a": number % 30}, b"", ""]),
    }
    value = values[kind]
    value = "" if value == b"" else value
    return {"n": number} if kind == "missing" and value is None else {"n": number, "v": value}


def oracle(records: list[dict[str, Any]]) -> tuple[Counter[str], int]:
    there = [json.dumps(record["v"]) for record in records if "v" in record]
    return Counter(there), len(records) - len(there)


@pytest.mark.parametrize("kind", ["unique", "few again", "twice", "missing", "mixed"])
@pytest.mark.parametrize("many", [1, 10, 100, 5000])
def test_they_are_those_of_an_oracle(tmp_path: Path, kind: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ndjson"
    records = [made(kind, number) for number in range(1500)]
    with jitdb.open(written(path, records[:600]), progress=False) as db:
        db.value_counts("v")  # so that there are several segments
    written(path, records)
    with jitdb.open(path, progress=False) as db:
        wanted = db.value_counts("v")
        some = db.value_counts("v", field("n") >= 400)
    monkeypatch.setattr(apart, "MANY", many)
    for limit in (1, 7, 2000):
        with jitdb.open(path, progress=False) as db:
            found = db.value_counts("v", limit=limit)
            assert (found.rows, found.distinct, found.missing) == (wanted.rows[:limit], wanted.distinct, wanted.missing)
            found = db.value_counts("v", field("n") >= 400, limit=limit)
            assert (found.rows, found.distinct, found.missing) == (some.rows[:limit], some.distinct, some.missing)
    counts, missing = oracle(records)
    assert wanted.missing == missing
    assert {json.dumps(row.value): row.count for row in wanted.rows} == counts or kind == "mixed"
    assert sum(row.count for row in wanted.rows) == counts.total()


def written(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_no_table_of_all_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.ndjson", [made("unique", number) for number in range(3000)])
    monkeypatch.setattr(apart, "MANY", 100)
    with jitdb.open(path, progress=False) as db:
        monkeypatch.setattr("jitdb.engine.answering.coded_column.CodedColumn.follow", None)
        before = segment.blob_cache.bytes
        assert db.value_counts("v", limit=2).distinct == 3000
        assert segment.blob_cache.bytes - before < 3000 * 4 + 1000  # offsets may be; no value is


def test_too_many_of_several_logs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        written(tmp_path / f"{name}.ndjson", [made("unique", number) for number in range(3000)])
    monkeypatch.setattr(apart, "MANY", 100)
    monkeypatch.setattr(summarizing, "MOST_OF_SEVERAL", 2000)
    with jitdb.open_many(tmp_path, progress=False) as logs:
        with pytest.raises(QueryError, match="`v` has 3,000 values in this log, and of several logs at most 2,000"):
            logs.value_counts("v", limit=3)
        assert logs.value_counts("v", field("n") < 1500, limit=3).distinct == 1500
    with jitdb.open(tmp_path / "a.ndjson", progress=False) as db:
        assert db.value_counts("v", limit=3).distinct == 3000
