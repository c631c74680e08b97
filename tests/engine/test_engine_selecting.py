"""Selected fields are what the decoded records have there, whatever codec wrote them and however they are asked for."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import messages
from hypothesis import given, settings
from hypothesis import strategies as st
from own_codec import Masked
from test_random_questions import records, storable
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import DecodeError, QueryError
from jitdb.operators import as_offsets, equal, field, from_db, query, select, to_iter
from jitdb.operators.nodes.selection import selected, selection

NAMES = [
    "a",
    "b",
    "a.b",
    "type",
    "list",
    "value.sequence",
    "timestamp",
    "value",
    "none",
    "list[]",
    "list[0]",
    "list[].a",
    "[0]",
]


def same(left: Any, right: Any) -> bool:
    """Equal, and of one type, but that a number may be an int or a float; keys within maps may be in another order."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, bool) or not isinstance(left, (int, float)):
        return type(left) is type(right) and bool(left == right)
    return not isinstance(right, bool) and (left == right or (left != left and right != right))


@pytest.mark.parametrize("codec", ["bipf", "msgpack", "json", Masked()], ids=str)
@settings(max_examples=tries(12, 400), deadline=None)
@given(data=st.data())
def test_rows_are_those_of_the_records(
    codec: Any, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Log(tmp_path_factory.mktemp("selected") / "log", codec=codec, block_size=4096) as log:
        held = [each for each in data.draw(st.lists(records(codec), max_size=12)) if storable(log, each)]
        log.append_many(held)
        log.flush()
        names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4), "names")
        db = JITDB(log, "memory")
        whole = db.all(sort_by="arrival")
        rows = db.query().sort_by_arrival().select(*names).all()
        expected = [selected(record, selection("", names)) for record in whole]
        assert len(rows) == len(expected)
        assert all(map(same, rows, expected)), (rows, expected)
        assert [list(row) for row in rows] == [list(row) for row in expected]


def test_numbers_and_texts_exactly(tmp_path: Path) -> None:
    values = [
        2**63,
        2**64 - 1,
        -(2**63),
        2**53 + 1,
        1e300,
        -1.5,
        2.0,
        0,
        True,
        None,
        "é",
        "",
        "a\nb",
        "\U0001f600",
        [1, {"x": "y"}],
    ]
    path = tmp_path / "log.ndjson"
    path.write_text("".join(json.dumps({"v": value}) + "\n" for value in values))
    with jitdb.open(path, "memory") as db:
        rows = db.all(select="v", sort_by="arrival")
        assert [row["v"] for row in rows] == values
        assert [type(row["v"]) for row in rows] == [int if value == 2 else type(value) for value in values]


def test_ways_to_select(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="bipf") as log:
        log.append_many(messages(50))
        log.flush()
        db = JITDB(log)
        asked = db.query(equal("value.author", "@3")).select("key", field("value", "content", "type"))
        expected = [
            {"key": each["key"], "value.content.type": each["value"]["content"]["type"]}
            for each in db.all(asked.question.operation)
        ]
        assert expected
        assert asked.all() == list(asked) == [row for page in asked.pages(2) for row in page.data] == expected
        by_key = sorted(expected, key=lambda row: row["key"])
        assert asked.sort_by("-key").page(2).data == by_key[::-1][:2]
        assert asked.first() == expected[0]
        assert asked.count() == len(expected)
        assert db.all(asked.question.operation, select=["key"])[0] == {"key": expected[0]["key"]}
        assert list(query(from_db(db), select("key"), asked, to_iter())) == expected
        assert repr(asked.question.changed(db=None)).endswith("select('key', 'value.content.type'))")

        async def gone_through() -> list[Any]:
            return [row async for row in asked.batch(3)]

        assert asyncio.run(gone_through()) == expected
        with iter(asked.live(old=True)) as stream:
            assert [next(stream) for _ in expected] == by_key  # in the order of the log
        (first, *_) = asked.context(1, 0)
        assert [list(seen.record) for seen in first] == [["key", "value.content.type"]] * 2


def test_sets_give_what_paths_say(tmp_path: Path) -> None:
    for day in (1, 2):
        path = tmp_path / f"day={day}" / "log.ndjson"
        path.parent.mkdir()
        path.write_text(f'{{"a":{day * 10},"day":"own"}}\n{{"b":1}}\n')
    with jitdb.open_many(tmp_path, "memory") as logs:
        assert logs.query().sort_by("-day").select("day", "a").all() == [
            {"day": 2, "a": 20}, {"day": 2}, {"day": 1, "a": 10}, {"day": 1}
        ]  # fmt: skip
        assert logs.query().select("a").all() == [{"a": 10}, {}, {"a": 20}, {}]
        passages = logs.query(field("b") == 1).select("day", "b").context(1, 0)
        assert [seen.record for seen in next(iter(passages))] == [{"day": 1}, {"day": 1, "b": 1}]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda db: db.query().select(), "none was given"),
        (lambda db: db.query().select(""), "at least one key"),
        (lambda db: db.query().select(5), "not 5"),
        (lambda db: db.all(select=5), "a list of fields"),
        (lambda db: db.query().select("a").as_offsets(), "choose one"),
        (lambda db: query(from_db(db), as_offsets(), select("a")), "choose one"),
    ],
)
def test_what_cannot_be_selected_is_told(tmp_path: Path, wrong: Any, told: str) -> None:
    (tmp_path / "log.ndjson").write_text('{"a":1}\n')
    with jitdb.open(tmp_path / "log.ndjson", "memory") as db, pytest.raises(QueryError, match=told):
        wrong(db)


def test_a_record_that_cannot_be_decoded_is_told(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="raw") as log:
        log.append_many([b"\x81\xa1a\x01", b"\x81\xa1a\xc1"])
    with jitdb.open(tmp_path / "log", "memory", codec="msgpack") as db, pytest.raises(DecodeError, match="offset"):
        db.all(select=["a"], sort_by="arrival")
