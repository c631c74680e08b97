"""400 questions about a log that async-append-only-log wrote and deleted from, answered by a plain program."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from questions import DATA, digest, load_cases, operation

import jitdb
from jitdb import JITDB, Log
from jitdb.operators import (
    and_,
    as_offsets,
    count,
    descending,
    from_db,
    paginate,
    query,
    sort_by_arrival,
    start_from,
    to_result,
    where,
)  # fmt: skip

CASES = load_cases()


@pytest.fixture(scope="module", params=["sidecar", "memory", "one thread"])
def db(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("log") / "ssb.bipf"
    shutil.copy(DATA / "ssb-5k-deleted.bipf", path)
    options: dict[str, Any] = {"memory": {"indexes": None}, "one thread": {"threads": 1}}.get(request.param, {})
    with jitdb.open(path, **options) as db:
        yield db


@pytest.mark.parametrize(("case", "answer"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_question(db: JITDB, case: dict[str, Any], answer: dict[str, Any]) -> None:
    parts: list[Any] = [from_db(db), where(operation(case["where"])), start_from(case.get("start_from", 0))]
    assert query(*parts, count(), to_result()) == answer["count"]
    if case.get("descending"):
        parts.append(descending())
    if case.get("arrival"):
        parts.append(sort_by_arrival())
    if "limit" in case:
        page = query(*parts, paginate(case["limit"]), as_offsets(), to_result())
        assert page.total == answer["total"]
        found = page.data
    else:
        found = query(*parts, as_offsets(), to_result())
    assert len(found) == answer["n"]
    assert found[:10] == answer["first"]
    assert found[-3:] == answer["last"]
    assert digest(found) == answer["sha256"]


def test_all_questions_prepared_in_one_scan(tmp_path: Path) -> None:
    path = tmp_path / "ssb.bipf"
    shutil.copy(DATA / "ssb-5k-deleted.bipf", path)
    operations = [found for case, _ in CASES if (found := operation(case["where"])) is not None]
    with jitdb.open(path) as db:
        db.prepare(*operations)
        stale = [row for one in operations for row in db.explain(one)["indexes"] if row["stale_bytes"]]
        assert stale == []
        assert db.count(and_(*operations[:3])) == len(db.all(and_(*operations[:3])))


def test_indexes_are_read_back_by_another_database(tmp_path: Path) -> None:
    path = tmp_path / "ssb.bipf"
    shutil.copy(DATA / "ssb-5k-deleted.bipf", path)
    chosen = [(found, answer) for case, answer in CASES[::7] if (found := operation(case["where"])) is not None]
    with jitdb.open(path) as first:
        first.prepare(*(found for found, _ in chosen))
    with JITDB(Log(path, codec="bipf", read_only=True)) as second:
        for found, answer in chosen:
            assert not any(row["stale_bytes"] for row in second.explain(found)["indexes"])
            assert second.count(found) == answer["total"]
