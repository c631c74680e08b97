"""The declared time, as it is found; times of all kinds in one log; and what is said of how they were taken."""

from __future__ import annotations

import json
import re
import warnings
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitdb
from jitdb import JITDB, Log
from jitdb.engine import database
from jitdb.engine.roles import USUAL, found_time
from jitdb.errors import QueryError, QuestionWarning
from jitdb.operators import declared_time, field, gt, gte, lt, parse_expression
from jitdb.operators.nodes.operation import Operation

# The same moment, and one a nanosecond later, in all the ways there are.
SAME = ["2023-11-14T22:13:20Z", "2023-11-14 23:13:20+01:00", 1_700_000_000, 1_700_000_000_000, 1_700_000_000_000_000]
EAST = timezone(timedelta(hours=5))
LATER = ["2023-11-14T22:13:20.000000001Z", 1_700_000_000_000_000_001]


def opened(tmp_path: Path, records: list[Any], **settings: Any) -> JITDB:
    path = tmp_path / "log.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return jitdb.open(path, "memory", **settings)


def numbers(db: JITDB, operation: Operation | None = None, **settings: Any) -> list[int]:
    return [record["n"] for record in db.all(operation, **settings)]


def test_text_and_numbers_are_one_order(tmp_path: Path) -> None:
    times = [*LATER, *SAME, None, "soon", "2023-11-14T22:13:19.999999999Z"]
    db = opened(tmp_path, [{"ts": time, "n": number} for number, time in enumerate(times)])
    assert db.declared_time == (("ts",),)
    assert numbers(db) == [7, 8, 9, 2, 3, 4, 5, 6, 0, 1]
    assert numbers(db, descending=True) == [1, 0, 6, 5, 4, 3, 2, 9, 8, 7]
    for bound in [*SAME, datetime(2023, 11, 14, 22, 13, 20), datetime(2023, 11, 15, 3, 13, 20, tzinfo=EAST)]:
        assert numbers(db, declared_time > bound) == [0, 1]
        if not isinstance(bound, int):
            assert numbers(db, field("ts") > bound) == [0, 1]
        assert numbers(db, declared_time <= bound) == [9, 2, 3, 4, 5, 6]
    assert db.count(gt(LATER[0], "timestamp")) == 0
    assert numbers(db, field("ts") > SAME[3]) == [4 + 2, 1]  # a number is above another, whatever that stands for


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (date(2023, 11, 14), "2023-11-14T00:00:00Z"),
        (np.datetime64("2023-11-14T01:02:03.000000004"), "2023-11-14T01:02:03.000000004Z"),
        (datetime(2023, 11, 14, 1, 2, 3, 4, tzinfo=UTC), "2023-11-14T01:02:03.000004Z"),
        (datetime(2023, 11, 14, tzinfo=timezone(timedelta(seconds=1))), "2023-11-13T23:59:59Z"),
        (datetime(3000, 1, 1, 5, tzinfo=EAST), "3000-01-01T00:00:00Z"),  # beyond 64 bits
        (np.datetime64("9999-01-01"), "9999-01-01T00:00:00Z"),
        (np.datetime64("1600", "Y"), "1600-01-01T00:00:00Z"),
        (np.datetime64("1969-12-31T23:59:59.5"), "1969-12-31T23:59:59.5Z"),
    ],
)
def test_what_is_compared_with(bound: Any, text: str) -> None:
    assert (field("a") < bound) == lt(text, "a")
    assert repr(field("a") < bound) == f"lt({text!r}, 'a')"


@pytest.mark.parametrize(
    "bound", [np.datetime64("20000-01-01"), datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))]
)
def test_years_that_no_time_has(bound: Any) -> None:
    with pytest.raises(QueryError, match="times are of the years 0 to 9999"):
        gt(bound, "a")


@pytest.mark.parametrize(
    ("records", "found"),
    [
        ([{"timestamp": 1}, {"time": "2023-11-14"}], [("timestamp",)]),
        ([{"timestamp": 1, "value": {"timestamp": 2}}], [("timestamp",), ("value", "timestamp")]),
        ([{"value": {"timestamp": 2}}], [("value", "timestamp")]),
        ([{"time": 1.7e9}, {"time": 1.7e9}], [("time",)]),
        ([{"time": 0.25, "ts": "2023-11-14"}], [("ts",)]),  # how long it took is no time
        ([{"@timestamp": "2023-11-14"}, {"@timestamp": "2023-11-14"}, {}], [("@timestamp",)]),
        ([{"date": "2023-11-14"}, {}, {}], [("timestamp",), ("value", "timestamp")]),
        ([{"other": 1}], [("timestamp",), ("value", "timestamp")]),
    ],
)
def test_the_time_that_nobody_named(tmp_path: Path, records: list[Any], found: list[Any]) -> None:
    assert list(opened(tmp_path, records).declared_time) == found


def test_it_is_found_once_there_are_records(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="msgpack") as log:
        db = JITDB(log)
        log.append("no record of fields says anything of time")
        log.flush()
        assert len(db.all()) == 1
        for number, time in enumerate(["2023-11-15", "2023-11-14"]):
            log.append({"ts": time, "n": number})
        log.flush()
        assert numbers(db, field("n") >= 0) == [1, 0]
        assert numbers(db, gte("2023-11-15", "timestamp")) == [0]


def test_a_count_does_not_look_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    monkeypatch.setattr(database, "found_time", lambda log: looked.append(log) or found_time(log))
    db = opened(tmp_path, [{"ts": "2023-11-15", "n": 0}, {"ts": "2023-11-14", "n": 1}])
    assert db.count(field("n") >= 0) == 2
    assert looked == []
    assert numbers(db, field("n") >= 0) == [1, 0]
    assert db.count(declared_time > "2023-11-14T12:00") == 1
    assert looked == [db.log]


def test_units(tmp_path: Path) -> None:
    records = [{"t": number, "n": number} for number in (5, 3, 10**12)]
    in_ms = opened(tmp_path, records, timestamp="t", time_unit="ms")
    assert numbers(in_ms, declared_time >= "2001-09-09") == [10**12]
    assert numbers(in_ms, declared_time < "1970-01-01T00:00:00.005Z") == [3]
    in_seconds = opened(tmp_path, records, timestamp="t", time_unit="s")
    assert in_seconds.count(declared_time > "9999-12-31") == 1
    plain = opened(tmp_path, records, timestamp="t", time_unit="number")
    assert numbers(plain, descending=True) == [10**12, 5, 3]
    assert numbers(plain, declared_time > 4) == [5, 10**12]
    with pytest.raises(QueryError, match="the declared time is a number here"):
        plain.count(declared_time > "1970-01-01")


def test_since_and_until(tmp_path: Path) -> None:
    db = opened(tmp_path, [{"time": f"2023-11-{day:02}", "n": day} for day in range(1, 31)])
    query = db.query(field("n") > 3).since("2023-11-03").until(date(2023, 11, 6))
    assert [record["n"] for record in query] == [4, 5]


def test_a_comparison_with_the_declared_time_needs_no_index_of_its_own(tmp_path: Path) -> None:
    db = opened(tmp_path, [{"ts": 1.7e9 + number, "n": number} for number in range(10)])
    db.paginate(limit=1)
    assert db.explain(parse_expression('ts > "2023-11-14" and ts < "2023-11-15"'))["scan_bytes"] == 0


def test_a_log_without_a_time_that_is_found_is_told(tmp_path: Path) -> None:
    db = opened(tmp_path, [{"_time": f"2023-11-{day:02}T10:00:00Z", "n": day} for day in range(1, 20)])
    told = "no record has a time under `timestamp` or `value.timestamp`; `_time` holds times: pass timestamp='_time'"
    with pytest.warns(QuestionWarning, match=re.escape(told)):
        assert db.query(field("n") > 3).since("2023-11-03").count() == 0
    named = jitdb.open(tmp_path / "log.ndjson", "memory", timestamp="_time")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert named.query(field("n") > 3).since("2023-11-03").count() == 16
        assert opened(tmp_path, [{"n": 1}]).query(field("n") > 0).count() == 1


def test_the_time_is_found_behind_many_records_without_one(tmp_path: Path) -> None:
    boot, later = [{"msg": "boot"}] * 100, [{"msg": "served", "time": f"2023-11-14T22:{n:02}:00Z"} for n in range(60)]
    assert opened(tmp_path, [*boot, *later]).declared_time == USUAL
    assert opened(tmp_path, [*boot, *later, *later]).declared_time == (("time",),)


def test_what_is_said_of_the_values(tmp_path: Path) -> None:
    db = opened(tmp_path, [{"ts": "2023-11-14", "a": 1}, {"ts": "soon", "a": "x"}, {"ts": 1.7e9, "a": None}])
    assert db.remarks() == []  # nothing was asked yet
    db.all(field("a") > 0)
    told = db.remarks(field("a") > 0)
    assert told == [
        "some values of `a` are no numbers: `<` and `>` leave these out",
        "values of `ts` such as 'soon' are no times: comparisons leave them out, and they sort first",
    ]
    assert db.remarks(field("ts") > "2023-11-14") == [
        told[1],
        "times of `ts` without a zone are read as UTC",
        "numbers of `ts` are read as seconds, by their size",
    ]
    assert db.remarks(db.query(field("a") > 0).sort_by_arrival().question) == told[:1]
