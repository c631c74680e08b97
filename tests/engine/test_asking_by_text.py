"""Whatever asks takes its condition as text, too: the answers are those of a plain program, and of the operation."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb import JITDB, LogSet
from jitdb.errors import QueryError
from jitdb.operators import and_, deferred, field, from_db, not_, or_, parse_expression, query, to_result, where

RECORDS: list[dict[str, Any]] = [
    {"n": n, "level": ("info", "error", "warn")[n % 3], "status": 200 + n % 7 * 50, "time": 1_700_000_000_000 + n}
    for n in range(200)
]
TEXT = "level == 'error' and status >= 400"
ASKED = parse_expression(TEXT)


def plain(record: dict[str, Any]) -> bool:
    return record["level"] == "error" and record["status"] >= 400


FOUND = [record for record in RECORDS if plain(record)]


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[JITDB]:
    write(tmp_path / "a.ndjson", RECORDS)
    with jitdb.open(tmp_path / "a.ndjson", read_only=True) as db:
        yield db


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogSet]:
    for name in (0, 1, 2):
        write(tmp_path / f"{name}.ndjson", [record for record in RECORDS if record["n"] % 3 == name])
    with jitdb.open_many(tmp_path) as logs:
        yield logs


COUNTED = Counter(record["status"] for record in FOUND)
ASKERS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "query": (lambda db, asked: db.query(asked).count(), len(FOUND)),
    "query with others": (
        lambda db, asked: db.query(None, asked, "n < 100").count(), sum(record["n"] < 100 for record in FOUND),
    ),
    "where": (lambda db, asked: db.query("n >= 9").where(asked).all(), [each for each in FOUND if each["n"] >= 9]),
    "count": (lambda db, asked: db.count(asked), len(FOUND)),
    "all": (lambda db, asked: db.all(asked), FOUND),
    "paginate": (lambda db, asked: db.paginate(asked, limit=3).data, FOUND[:3]),
    "pages": (lambda db, asked: [page.total for page in db.pages(asked, limit=99)], [len(FOUND)]),
    "context": (lambda db, asked: db.context(asked, 1).total, len(FOUND)),
    "context among": (
        lambda db, asked: [seen.record for each in db.context("n == 4", 9, 9, among=asked) for seen in each],
        FOUND[:10],
    ),
    "among of a query": (
        lambda db, asked: [seen.record for each in db.query("n == 4").context(9, 9, among=asked) for seen in each],
        FOUND[:10],
    ),
    "value_counts": (lambda db, asked: dict(db.value_counts("status", asked)), dict(COUNTED)),
    "value_counts of a query": (lambda db, asked: dict(db.query().value_counts("status", asked)), dict(COUNTED)),
    "timeline": (lambda db, asked: db.timeline(asked, every="1y").total, len(FOUND)),
    "stats": (lambda db, asked: db.stats("status", where=asked).sum, sum(record["status"] for record in FOUND)),
    "field_batches": (
        lambda db, asked: [row["n"] for each in db.field_batches(asked, select=["n"]) for row in each.rows()],
        [record["n"] for record in FOUND],
    ),
    "leaf_paths": (lambda db, asked: len(db.leaf_paths(asked)), 4),
    "record_set": (lambda db, asked: len(db.record_set(asked)), len(FOUND)),
    "feed": (lambda db, asked: len(db.feed(asked, old=True, limit=500).read().data), len(FOUND)),
    "live": (lambda db, asked: next(db.live(asked, old=True)), FOUND[0]),
    "prepare": (lambda db, asked: (db.prepare(asked, "n > 3"), db.explain(asked).scan_bytes)[1], 0),
    "hints": (lambda db, asked: db.hints(asked, is_empty=False), []),
    "remarks": (lambda db, asked: db.remarks(asked, is_full=False), []),
    "chain": (lambda db, asked: len(query(from_db(db), where(asked), to_result())), len(FOUND)),
    "and_": (lambda db, asked: db.count(and_(asked, "n < 0 or n >= 0", None)), len(FOUND)),
    "or_": (lambda db, asked: db.count(or_(asked, "n < 0")), len(FOUND)),
    "not_": (lambda db, asked: db.count(not_(asked)), len(RECORDS) - len(FOUND)),
    "deferred": (lambda db, asked: db.count(deferred(lambda meta: asked)), len(FOUND)),
    "await": (lambda db, asked: asyncio.run(_awaited(db.query(asked))), FOUND),
}  # fmt: skip
OF_ONE: dict[str, tuple[Callable[[JITDB, Any], Any], Any]] = {
    "lookup": (lambda db, asked: [db.lookup(asked, n) for n in (3, 4)], [plain(record) for record in RECORDS[3:5]]),
    "distinct": (lambda db, asked: sorted(db.distinct("status", asked)), sorted(COUNTED)),
    "columns": (lambda db, asked: len(db.columns(["n"], where=asked).offsets), len(FOUND)),
    "verify": (lambda db, asked: db.verify(operations=[asked, "n == 1"]).ok, True),
}


async def _awaited(asked: Any) -> Any:
    return await asked


@pytest.mark.parametrize("name", ASKERS)
@pytest.mark.parametrize("source", ["db", "logs"])
def test_text_is_taken_as_operations_are(name: str, source: str, request: pytest.FixtureRequest) -> None:
    asker, expected = ASKERS[name]
    database = request.getfixturevalue(source)
    if source == "logs" and name == "prepare":
        database.prepare(TEXT, ASKED)
        return
    given, by_operation = (_listed(asker(database, asked)) for asked in (TEXT, ASKED))
    if source == "logs" and name in ("live", "feed"):  # one log after the other, in portions of their own
        assert given == by_operation
    else:
        assert given == by_operation == _listed(expected)


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("name", OF_ONE)
def test_text_is_taken_of_one_log(db: JITDB, name: str) -> None:
    asker, expected = OF_ONE[name]
    assert asker(db, TEXT) == asker(db, ASKED) == expected


def test_delete_takes_text(tmp_path: Path) -> None:
    with jitdb.open(tmp_path / "a.log", create=True) as db:
        db.log.append_many(RECORDS)
        db.log.flush()
        assert db.delete(TEXT) == len(FOUND)
        assert db.all(sort_by="arrival") == [record for record in RECORDS if not plain(record)]
        with pytest.raises(QueryError, match="delete"):
            db.delete(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*ASKERS, *OF_ONE])
def test_what_is_wrong_with_text_is_said_with_its_place(db: JITDB, name: str) -> None:
    asker, _ = {**ASKERS, **OF_ONE}[name]
    with pytest.raises(QueryError) as raised:
        asker(db, "level = 'error'")
    assert str(raised.value) == "equality is written `==`, not `=`\n  level = 'error'\n        ^"
    assert raised.value.__notes__ == ["did you mean: level == 'error'"]


def test_text_that_is_a_field_stays_one(db: JITDB) -> None:
    """Where a path stands, text is a path: it is never taken for a question."""
    db.count("status == 200")
    assert db.drop_index("status")
    assert [value for value, _ in db.value_counts("n", limit=2)] == [0, 1]
    with pytest.raises(QueryError, match="a field alone is no question"):
        db.count("level")
    with pytest.raises(QueryError, match="a value alone is no question"):
        db.count("'level'")
    with pytest.raises(QueryError, match="operations is a list of operations"):
        db.verify(operations="n == 1")
    with pytest.raises(QueryError, match=r"expression stands in where\('n == 1'\)"):
        query("n == 1")  # type: ignore[call-overload]
    with pytest.raises(QueryError, match=r"read by jitdb.operators.parse_expression\('n == 1'\)"):
        (field("n") == 1) & "n == 1"  # type: ignore[operator]
