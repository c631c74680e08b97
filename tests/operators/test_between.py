"""`between`: a range of numbers or times, both ends among them, in one operator."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb import JITDB
from jitdb.errors import QueryError
from jitdb.operators import (
    between,
    declared_sequence,
    declared_time,
    field,
    format_expression,
    from_json,
    gte,
    lte,
    parse_expression,
    to_json,
)
from jitdb.operators.nodes.operation import EVERYTHING, NOTHING

RECORDS: list[dict[str, Any]] = [
    {"n": 1, "time": "2026-11-01T00:00:00Z"},
    {"n": 5, "time": "2026-11-02T12:00:00Z"},
    {"n": 5.5, "time": "soon"},
    {"n": "3"},
    {"n": [3]},
    {"n": 2**70},
    {"n": float("inf")},
    {},
]


@pytest.fixture
def db(tmp_path: Path) -> JITDB:
    path = tmp_path / "a.log"
    with jitdb.Log(path, codec="msgpack") as log:
        log.append_many([record for record in RECORDS if record.get("n") != 2**70])
    return jitdb.open(path, timestamp="time")


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (1, 5, [1, 5, "3"]),
        (1.5, 5.5, [5, 5.5, "3"]),
        (5, 5, [5]),
        (5, 1, []),
        (float("-inf"), 1, [1]),
        (5.5, float("inf"), [5.5, float("inf")]),
        (6, 2**70, []),
    ],
)
def test_both_ends_are_among_them(db: JITDB, low: float, high: float, found: list[float]) -> None:
    asked = between("n", low, high)
    with db:
        assert [record["n"] for record in db.all(asked, sort_by="arrival")] == found
        assert db.all(asked) == db.all(gte(low, "n") & lte(high, "n"))
        assert db.count(~asked) == len(RECORDS) - 1 - len(found)


def test_of_times(db: JITDB) -> None:
    with db:
        for asked in (
            between("time", "2026-11-01", "2026-11-02"),
            field("time").between(date(2026, 11, 1), date(2026, 11, 2)),
            parse_expression('between(index("timestamp"), "2026-11-01", "2026-11-02")'),
            between(declared_time, "2026-11-01", "2026-11-02"),
        ):
            assert [record["n"] for record in db.all(asked)] == [1, 5]


def test_one_column_answers_it(db: JITDB) -> None:
    with db:
        assert db.count(between("n", 1, 5)) == 3
        assert [index["name"] for index in db.explain(between("n", 1, 5))["indexes"]].count("n") == 1
        (remark,) = db.remarks(between("n", 1, 5))
        assert remark == "some values of `n` are no numbers: `<` and `>` leave these out"


@pytest.mark.parametrize(
    "text",
    [
        "between(a.b, 1, 5)",
        'between(a.b, -1.5, float("inf"))',
        "between([\"a.b\"], '2026-11-01T00:00:00Z', '2026-11-02T00:00:00Z')",
        'between(index("timestamp"), 0, 0)',
        'between(index("sequence"), 1, 2)',
    ],
)
def test_it_is_written_and_read(text: str) -> None:
    asked = parse_expression(text)
    assert format_expression(asked) == text
    assert from_json(json.loads(json.dumps(to_json(asked)))) == asked
    assert eval(repr(asked)) == asked
    assert parse_expression(f"not {text}") == ~asked


def test_behind_its_field() -> None:
    assert parse_expression("a.b.between(1, 5)") == between("a.b", 1, 5) == field("a.b").between(1, 5)
    assert parse_expression('index("timestamp").between(1, 5)') == between("timestamp", 1, 5)
    assert to_json(between("a.b", 1, 5)) == {"op": "between", "index": ["a", "b"], "low": 1, "high": 5}


def test_what_it_is() -> None:
    assert between("a", 1, 5) == between("a", 1.0, 5)
    assert len({between("a", 1, 5), between("a", 5, 1), between("b", 1, 5), gte(1, "a") & lte(5, "a")}) == 4
    assert between(("timestamp",), 0, 1) != between("timestamp", 0, 1) == between(declared_time, 0, 1)
    assert between("a", "1970-01-01", "1970-01-02") != between("a", 0, 86_400 * 10**9)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a", 1, "2026-11-01"), "two numbers or two times"),
        (("a", None, 5), "only numbers and times"),
        (("a", 1, True), "only numbers and times"),
        (("a", float("nan"), 5), "NaN"),
        (("a", 1, "soon"), "text is above or below as a time or a level only"),
        (("a[].b", 1, 5), r"a field of between\(\)"),
        ((declared_sequence, "2026-11-01", "2026-11-02"), "a sequence is a number"),
        ((lambda record, start: 0, 1, 5), "takes a path"),
    ],
)
def test_what_it_refuses(arguments: tuple[Any, Any, Any], said: str) -> None:
    with pytest.raises(QueryError, match=said):
        between(*arguments)


@pytest.mark.parametrize("text", ["between(a, 1)", "between(a, 1, 5, 7)", "between(a, 1, 5, prefix=32)"])
def test_it_is_told_how_it_is_written(text: str) -> None:
    with pytest.raises(QueryError, match=r"it is written between\(field, 1, 5\)"):
        parse_expression(text)
    with pytest.raises(QueryError, match="a range is written"):
        parse_expression("a between 1 and 5")


def test_what_a_path_leaves_of_it() -> None:
    asked = between("hour", 3, 5)
    assert [asked.narrowed({"hour": hour}) for hour in (2, 3, 5, 6, "4", None)] == [
        NOTHING, EVERYTHING, EVERYTHING, NOTHING, EVERYTHING, NOTHING
    ]  # fmt: skip
    assert asked.narrowed({"day": 3}) == asked
    assert between("date", "2026-11-01", "2026-11-02").narrowed({"date": "2026-11-01"}) == EVERYTHING
