"""Paths with positions and `[]`, asked of real logs: of each codec, of many records and few, of JSON Lines in place."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from oracle import Oracle

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import QueryError
from jitdb.operators import field, from_json, parse_expression, predicate, to_json

QUESTIONS = [
    '["log.level"] == "ERROR"',
    'user["first name"][""] is absent',
    'items[0].sku == "x1"',
    "items[1].price >= 50",
    "items[0] is absent",
    'items[].sku == "x1"',
    'items[].sku != "x1"',
    "items[].sku is absent",
    "items[].price > 95",
    "items[].price <= 2",
    "40 < items[].price < 45",
    'items[].at < "2015-12-02"',
    'items[].at >= "2015-12-30"',
    'starts_with(items[].sku, "x4")',
    "items[].tags[] == 7",
    "7 in items[].tags",
    "items[].tags[] is absent",
    "items[].tags == [1]",
    "equal(items[].tags[], 7, prefix=32)",
    "equal(items[].id, 700, use_map=true)",
    "items[].id == 700",
    "items[].id in [701, 702, 703]",
    'equal(items[].sku, "x1", index_all=true)',
    'includes(items, "x1", pluck="sku")',
    "items[0].tags[0] == 1",
    '[].sku == "top" or [1] == 5',
    "[] == 9 or [] is absent and items is absent",
    "items[][].sku == 1",
    'items[].sku contains "4" and not items[0].sku contains "4"',
    '["log.level"] istarts_with "err" and items[].at matches "-2[0-5]T"',
]


def records(count: int, large: int = 2**53) -> list[Any]:
    random = Random(count)
    found: list[Any] = []
    for number in range(count):
        items = [
            {
                "sku": f"x{random.randrange(50)}",
                "price": random.choice([random.randrange(100), "dear", large + random.randrange(3)]),
                "at": f"2015-12-{random.randrange(1, 32):02}T00:00:00Z",
                "id": random.randrange(count + 700),
                "tags": [random.randrange(20)] * random.randrange(3),
            }
            for _ in range(random.randrange(4))
        ]
        user = {"first name": {"": number}} if number % 3 else {"first": {"name": number}}
        found.append({"log.level": random.choice(["ERROR", "INFO"]), "user": user, "items": items})
    odd: list[Any] = [[{"sku": "top"}, 5], {"items": "x1"}, [], {}, [9], {"items": [[{"sku": 1}]]}, {"items": {"0": 1}}]
    return found + odd


@pytest.mark.parametrize("count", [30, 1200], ids=["few", "many"])
@pytest.mark.parametrize("codec", ["bipf", "msgpack", "json"])
def test_answers_are_the_oracles(codec: str, count: int, tmp_path: Path) -> None:
    held = records(count, 2**40 if codec == "bipf" else 2**53)
    with Log(tmp_path / "events.log", codec=codec) as log:
        offsets = [log.append(record) for record in held[:-10]]
        log.delete(offsets[3])
        db = JITDB(log)
        operations = [parse_expression(text) for text in QUESTIONS]
        operations.append(predicate("items[].tags[]", lambda tag: tag > 17, "above_17"))
        for _ in range(2):  # the indexes are made, then they grow
            log.flush()
            oracle = Oracle(held[: len(offsets)], offsets, {3})
            for operation in operations:
                expected = [offsets[seq] for seq in oracle.matches(operation)]
                assert db.all(operation, as_offsets=True, sort_by="arrival") == expected, operation
                assert db.count(operation) == len(expected)
            offsets += [log.append(record) for record in held[len(offsets) :]]
        assert db.verify(operations=operations).ok
        with JITDB(log) as again:  # from the files
            assert [again.count(operation) for operation in operations] == [db.count(each) for each in operations]


def test_lines_are_asked_in_place(tmp_path: Path) -> None:
    held = [record for record in records(300) if isinstance(record, dict)]
    path = tmp_path / "events.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in held))
    oracle = Oracle(held, range(len(held)), set())
    with jitdb.open(path) as db:
        for operation in map(parse_expression, QUESTIONS):
            assert db.all(operation, sort_by="arrival") == [held[seq] for seq in oracle.matches(operation)]


def test_json_questions_have_paths_as_lists_and_as_text() -> None:
    operation = field("items")[:]["sku"] == "x1"
    assert to_json(operation)["path"] == ["items", None, "sku"]
    assert from_json(json.loads(json.dumps(to_json(operation)))) == operation
    assert from_json({"op": "equal", "path": "items[].sku", "value": "x1"}) == operation
    assert from_json({"op": "gt", "index": ["items", 0, "n"], "value": 1}) == (field("items[0].n") > 1)


def test_an_index_of_a_path_is_found_by_its_spelling(tmp_path: Path) -> None:
    with Log(tmp_path / "events.log") as log:
        log.append({"items": [{"sku": "x1"}]})
        log.flush()
        db = JITDB(log)
        assert db.count(field("items[].sku") == "x1") == 1
        assert len(db.drop_index("items[].sku")) == 1
        with pytest.raises(QueryError, match=r"no index of 'items\[0\].sku'"):
            db.drop_index("items[0].sku")


@pytest.mark.parametrize(
    "named", [{"timestamp": "items[].at"}, {"sequence": ("items", None)}], ids=["time", "sequence"]
)
def test_a_record_has_one_time_and_one_sequence(named: dict[str, Any], tmp_path: Path) -> None:
    with Log(tmp_path / "events.log") as log, pytest.raises(QueryError, match="may lead to many"):
        JITDB(log, **named)


def test_a_position_can_be_the_time(tmp_path: Path) -> None:
    with Log(tmp_path / "events.log") as log:
        for day in (3, 1, 2):
            log.append({"items": [{"at": f"2015-12-0{day}"}], "day": day})
        log.flush()
        db = JITDB(log, timestamp="items[0].at")
        assert [record["day"] for record in db.all()] == [1, 2, 3]
        assert db.query().since("2015-12-02").count() == 2
