"""Summaries in groups (by several fields, by steps of time, in another order) against loops over decoded records."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import number_in
from test_counting import beginning, check_stats

import jitdb
from jitdb import JITDB, Log
from jitdb.common.values import UNDEFINED, value_at, value_key
from jitdb.engine.answering import placing
from jitdb.errors import QueryError
from jitdb.operators import count_distinct, equal, field, from_db, gte, query, stats_by, to_result
from jitdb.operators.summaries.groups import ranked

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 3600
MIXED = [None, True, 0, 1, 1.0, -2.5, "", "a", "1", [1], {"x": 1}]
TIMES = st.integers(0, 40).map(lambda n: 1_700_000_000 + n * 1800) | st.sampled_from(
    ["2023-11-15T03:30:00Z", "2023-11-14", "no time", None, "2023-10-29T00:30:00Z", "2023-10-29T01:30:00Z"]
)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "a": st.sampled_from(MIXED),
            "m": st.fixed_dictionaries({}, optional={"b": st.sampled_from(["x", "y", None, 3])}),
            "n": st.integers(-9, 9) | st.sampled_from([0.5, "7", None, "z", 2**53 + 1]),
            "ts": TIMES,
        },
    ),
    max_size=50,
)
PATHS = {"a": ("a",), "m.b": ("m", "b"), "n": ("n",)}
BYS = st.sampled_from([[], ["a"], ["m.b"], ["a", "m.b"], ["m.b", "a", "n"]])
EVERYS = st.sampled_from([None, "30m", "1h", "1d", "1mo"])
ZONES = st.sampled_from([None, "Europe/Berlin"])


def in_utc(start: datetime | None) -> datetime | None:
    """As two times of an hour that clocks show twice are told apart."""
    return start and start.astimezone(UTC)


def start_of(record: Any, every: str, tz: str | None) -> datetime | None:
    """Where the step of a record's time begins, by the calendar of Python."""
    time = value_at(record, ("ts",)) if isinstance(record, dict) else None
    if isinstance(time, str):
        try:
            moment = datetime.fromisoformat(time)
        except ValueError:
            return None
        moment = moment.replace(tzinfo=moment.tzinfo or UTC)
    elif isinstance(time, int):
        moment = EPOCH + timedelta(seconds=time)
    else:
        return None
    if tz is None:
        return beginning(moment, every)
    zone = ZoneInfo(tz)
    if every in ("30m", "1h"):
        return beginning(moment, every).astimezone(zone)
    local = moment.astimezone(zone).replace(tzinfo=UTC, fold=0)
    return beginning(local, every).replace(tzinfo=zone)


class Expected:
    """The groups of these records, each a list of them, by the start of its step and the keys of its values."""

    def __init__(self, records: list[Any], by: list[str], every: str | None, tz: str | None, has: str = "") -> None:
        self.groups: dict[tuple[Any, Any], list[Any]] = defaultdict(list)
        self.missing = 0
        for record in records:
            values = [value_at(record, PATHS[name]) for name in by]
            start = None if every is None else in_utc(start_of(record, every, tz))
            is_lacking = has and value_at(record, PATHS[has]) is UNDEFINED
            if UNDEFINED in values or (every is not None and start is None) or is_lacking:
                self.missing += 1
            else:
                self.groups[start, tuple(map(value_key, values))].append(record)


def keys_of(row: Any, by: list[str]) -> tuple[bytes, ...]:
    values = row.value if len(by) > 1 else [row.value] * len(by)
    return tuple(map(value_key, values))


def distinct_in(records: list[Any], name: str) -> int:
    return len({value_key(value_at(record, PATHS[name])) for record in records})


def check(db: Any, records: list[Any], by: list[str], every: str | None, tz: str | None, where: Any = None) -> None:
    """All summaries in these groups."""
    asked: Any = by[0] if len(by) == 1 else by
    zone = tz if every is not None else None
    expected = Expected(records, by, every, tz)
    found = db.stats_by("n", asked, where, every=every, tz=zone)
    rows = {(in_utc(row.start), keys_of(row, by)): row for row in found if row.count or every is None}
    if by or every is not None:
        assert set(rows) == set(expected.groups)
    assert (found.total, found.missing, found.others) == (len(records), expected.missing, 0)
    for group, own in expected.groups.items():
        numbers = [number for record in own if (number := number_in(value_at(record, ("n",)))) is not None]
        check_stats(rows[group].stats, numbers, len(own))
    if every is not None:
        starts = [row.start for row in found]
        assert starts == sorted(starts, key=datetime.timestamp)
        if not by and starts:  # steps without records, too
            distinct = {start.timestamp() for start in starts}
            assert len(starts) == len(distinct) == len(db.timeline(where, every=every, tz=zone))
    check_distinct(db, records, by, every, tz, where)
    check_shares(db, records, by, every, tz, where)


def check_distinct(db: Any, records: list[Any], by: list[str], every: str | None, tz: str | None, where: Any) -> None:
    asked: Any = by[0] if len(by) == 1 else by
    zone = tz if every is not None else None
    for name in ("a", "m.b"):
        expected = Expected(records, by, every, tz, has=name)
        found = db.count_distinct(name, asked, where, every=every, tz=zone)
        rows = {(in_utc(row.start), keys_of(row, by)): (row.count, row.distinct) for row in found if row.count}
        assert rows == {group: (len(own), distinct_in(own, name)) for group, own in expected.groups.items()}
        assert (found.total, found.missing, found.others) == (len(records), expected.missing, 0)


def check_shares(db: Any, records: list[Any], by: list[str], every: str | None, tz: str | None, where: Any) -> None:
    asked: Any = by[0] if len(by) == 1 else by
    zone = tz if every is not None else None
    expected = Expected(records, by, every, tz)
    for condition, test in (
        ("m.b == 'x' or n > 3", lambda record: value_at(record, ("m", "b")) == "x" or above(record, 3)),
        (~(field("n") > 0), lambda record: not above(record, 0)),
    ):
        found = db.share(condition, asked, where, every=every, tz=zone)
        rows = {(in_utc(row.start), keys_of(row, by)): (row.matching, row.count) for row in found if row.count}
        assert rows == {group: (sum(map(test, own)), len(own)) for group, own in expected.groups.items()}
        assert (found.total, found.matching, found.missing) == (
            len(records), sum(map(test, records)), expected.missing,
        )  # fmt: skip
        assert all(row.share == (row.matching / row.count if row.count else None) for row in found)
        if every is not None and not by:
            assert found.starts == [row.start for row in db.timeline(where, every=every, tz=zone)]


def above(record: Any, bound: int) -> bool:
    number = number_in(value_at(record, ("n",)))
    return number is not None and number > bound


@settings(max_examples=40, deadline=None)
@given(records=RECORDS, by=BYS, every=EVERYS, tz=ZONES, bitmaps=st.booleans())
def test_groups_of_one_log(
    tmp_path_factory: Any, records: list[Any], by: list[str], every: str | None, tz: str | None, bitmaps: bool
) -> None:
    path = tmp_path_factory.mktemp("log") / "a.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    with jitdb.open(path, "memory", timestamp="ts") as db:
        if bitmaps:
            db.prepare(equal("a", 1), equal("m.b", 1))
        check(db, records, by, every, tz)
        chosen = field("n") > 0
        check(db, db.all(chosen, sort_by="arrival"), by, every, tz, chosen)


@settings(max_examples=25, deadline=None)
@given(records=RECORDS, more=RECORDS, by=BYS, every=EVERYS, tz=ZONES, drawn=st.data())
def test_deleted_and_later_records(
    tmp_path_factory: Any,
    records: list[Any],
    more: list[Any],
    by: list[str],
    every: str | None,
    tz: str | None,
    drawn: st.DataObject,
) -> None:
    with Log(tmp_path_factory.mktemp("log") / "a.log") as log, JITDB(log, "memory", timestamp="ts") as db:
        offsets = list(log.append_many(records))
        log.flush()
        check(db, records, by, every, tz)
        gone = drawn.draw(st.sets(st.sampled_from(range(len(records))))) if records else set()
        for number in gone:
            log.delete(int(offsets[number]))
        log.append_many(more)
        log.flush()
        left = [record for number, record in enumerate(records) if number not in gone] + more
        check(db, left, by, every, tz)
        log.compact()
        check(db, left, by, every, tz)


@settings(max_examples=25, deadline=None)
@given(parts=st.lists(RECORDS, min_size=1, max_size=3), by=BYS, every=EVERYS, tz=ZONES, order=st.booleans())
def test_groups_of_many_logs(
    tmp_path_factory: Any, parts: list[list[Any]], by: list[str], every: str | None, tz: str | None, order: bool
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    for number, records in enumerate(parts):
        (folder / f"{number}.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
    whole = [record for records in parts for record in records]
    with jitdb.open_many(str(folder), "memory", timestamp="ts", threads=1) as logs:
        check(logs, whole, by, every, tz)
        (folder / "0.ndjson").write_text("".join(json.dumps(record) + "\n" for record in reversed(parts[0])) + "{}\n")
        logs.refresh()
        check(logs, [*whole, {}], by, every, tz)
        if by and order:
            check_order(logs, [*whole, {}], by)


def check_order(db: Any, records: list[Any], by: list[str], every: str | None = None) -> None:
    """The first values in an order are those of all of them in that order."""
    groups = Expected(records, by, None, None).groups
    whole = db.stats_by("n", by)
    orders = ("sum", "max", "count", "p95", "median", "stddev", "min", "span", "records")
    for order, asked, sign in ((order, order + way, sign) for order in orders for way, sign in ((" asc", 1), ("", -1))):
        found = db.stats_by("n", by, order=asked)
        weights = [stats_weight(row, order) for row in found]
        assert weights == sorted(weights, key=lambda weight: (weight is None, 0 if weight is None else sign * weight))
        assert {keys_of(row, by) for row in found} == {keys for _, keys in groups}
        tied = {weight: [row for row in whole if stats_weight(row, order) == weight] for weight in weights}
        assert list(found) == [row for weight in dict.fromkeys(weights) for row in tied[weight]]
        for limit in (1, 2, 5):
            shown = db.stats_by("n", by, order=asked, limit=limit)
            assert shown.rows == found.rows[:limit]
            assert (shown.distinct, shown.total, shown.missing) == (found.distinct, found.total, found.missing)
    rows = [row.distinct for row in db.count_distinct("a", by)]
    assert rows == sorted(rows, reverse=True)
    for way, falls in (("", True), (" asc", False), (" desc", True)):
        counts = [row.count for row in db.count_distinct("a", by, order="count" + way)]
        assert counts == sorted(counts, reverse=falls)
        for order in ("matching", "share", "count"):
            rows = [getattr(row, order) for row in db.share("n > 0", by, order=order + way)]
            assert rows == sorted(rows, reverse=falls)
            assert [getattr(row, order) for row in db.share("n > 0", by, order=order + way, limit=2)] == rows[:2]


def stats_weight(row: Any, order: str) -> Any:
    if order == "records":
        return row.count
    shares = {"p95": 0.95, "median": 0.5}
    return row.stats.quantile(shares[order]) if order in shares else getattr(row.stats, order)


@settings(max_examples=20, deadline=None)
@given(records=RECORDS, by=BYS.filter(bool))
@example(
    records=[{"m": {"b": "y"}}, {"ts": 1700000000, "m": {"b": "x"}}, {"ts": 1700000000, "m": {"b": "y"}}], by=["m.b"]
)
def test_order_and_limit(tmp_path_factory: Any, records: list[Any], by: list[str]) -> None:
    path = tmp_path_factory.mktemp("log") / "a.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    with jitdb.open(path, "memory", timestamp="ts") as db:
        check_order(db, records, by)
        # Over time, the values are those that come first of all; of equals, those of most records, timed or not.
        has_time = gte(float("-inf"), "timestamp")
        weights = {keys_of(row, by): row.stats.sum for row in db.stats_by("n", by, has_time)}
        most = [keys_of(row, by) for row in db.stats_by("n", by)]
        first = sorted(most, key=lambda keys: (weights.get(keys) is None, -(weights.get(keys) or 0)))[:2]
        timed = db.stats_by("n", by, order="sum", limit=2, every="1h")
        assert {keys_of(row, by) for row in timed} <= set(first)
        places = [(row.start, first.index(keys_of(row, by))) for row in timed]
        assert places == sorted(places)


@settings(max_examples=25, deadline=None)
@given(records=RECORDS, limit=st.integers(1, 4))
def test_timelines_by_several_fields(tmp_path_factory: Any, records: list[Any], limit: int) -> None:
    path = tmp_path_factory.mktemp("log") / "a.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    by = ["a", "m.b"]
    with jitdb.open(path, "memory", timestamp="ts") as db:
        line = db.timeline(every="1h", by=by, limit=limit)
        assert line.values == tuple(row.values for row in db.group_count(*by, limit=limit))
    groups = Expected(records, by, "1h", None).groups
    steps = Counter(start_of(record, "1h", None) for record in records)
    keys = [tuple(map(value_key, values)) for values in line.values]
    for row in line:
        assert row.count == steps[row.start]
        assert row.counts == tuple(len(groups.get((row.start, key), ())) for key in keys)


@pytest.fixture
def events(tmp_path: Path) -> Iterator[JITDB]:
    records = [
        {"ts": 1_700_000_000 + 60 * n, "user": f"u{n % 7}", "host": f"h{n % 3}", "ms": n % 10, "tags": [n % 4, n % 2]}
        for n in range(300)
    ]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
    with jitdb.open(tmp_path / "a.ndjson", "memory", timestamp="ts") as db:
        yield db


def test_every_way_to_ask(events: JITDB) -> None:
    expected = events.count_distinct("user", "host", every="1h")
    assert query(from_db(events), count_distinct("user", "host", every="1h"), to_result()) == expected
    assert events.query().count_distinct("user", "host", every="1h") == expected
    assert repr(count_distinct("user", ["host", "ms"])) == (
        "count_distinct(path='user', by=['host', 'ms'], order='distinct')"
    )
    timed = stats_by("ms", every="1h", tz="Europe/Berlin")
    assert query(from_db(events), timed, to_result()) == events.stats_by("ms", every="1h", tz="Europe/Berlin")
    assert len(events.stats_by("ms", every="auto")) <= 50


def test_distinct_values_of_all_records(events: JITDB) -> None:
    (row,) = events.count_distinct("user")
    assert (row.value, row.count, row.distinct, row.start) == (None, 300, 7, None)
    assert events.count_distinct("tags[]")[0].distinct == 4
    assert events.count_distinct("nobody's").missing == 300
    assert events.count_distinct("user", None, field("ms") > 100)[0].distinct == 0


def test_as_tables(events: JITDB) -> None:
    found = events.stats_by("ms", ["host", "user"], every="1h", limit=2)
    table = found.to_arrow()
    assert table.column_names[:4] == ["time", "host", "user", "records"]
    assert table["time"].to_pylist() == [row.start for row in found]
    assert [tuple(pair.values()) for pair in table.select(["host", "user"]).to_pylist()] == [row.value for row in found]
    distinct = events.count_distinct("user", every="1h")
    assert distinct.to_arrow()["distinct"].to_pylist() == [row.distinct for row in distinct]
    assert "<svg" in distinct._repr_html_()


def test_what_is_refused(events: JITDB) -> None:
    for wrong, told in (
        (lambda: events.stats_by("ms", "host", order="summ"), "did you mean sum"),
        (lambda: events.stats_by("ms", every="1h", order="sum"), "needs another field"),
        (lambda: events.stats_by("ms", "host", order="p98"), "no order by"),
        (lambda: events.stats_by("ms", "host", order="sum asc desc"), "no order by"),
        (lambda: events.stats_by("ms", "host", order="asc"), "no order by"),
        (lambda: events.stats_by("ms", "host", tz="UTC"), "needs steps of time"),
        (lambda: events.stats_by("ms", every="1us"), "bins"),
        (lambda: events.count_distinct("tags[]", "host"), "may lead to many"),
        (lambda: events.count_distinct("user", order="sum", by="host"), "distinct, count"),
        (lambda: events.stats_by("ms", ["host", "tags[]"]), "may lead to many"),
    ):
        with pytest.raises(QueryError, match=told):
            wrong()


def test_times_that_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"ts": 5, "n": 1}\n')
    with jitdb.open(tmp_path / "a.ndjson", "memory", timestamp="ts", time_unit="number") as db:
        with pytest.raises(QueryError, match="is a number here"):
            db.stats_by("n", every="1h")
        assert db.stats_by("n", "ts")[0].stats.sum == 1


def test_fields_of_paths(tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        lines = [json.dumps({"ts": f"2026-11-0{day}T0{n}:00:00Z", "user": n // day, "n": n}) for n in range(4)]
        (tmp_path / f"day={day}" / "a.ndjson").write_text("\n".join(lines) + "\n")
    with jitdb.open_many(str(tmp_path), "memory", timestamp="ts") as logs:
        assert [(row.value, row.distinct) for row in logs.count_distinct("user", "day")] == [(1, 4), (2, 2)]
        assert [(row.value, row.stats.sum) for row in logs.stats_by("n", ["day", "user"], order="sum", limit=2)] == [
            ((2, 1), 5), ((1, 3), 3),
        ]  # fmt: skip
        assert [row.distinct for row in logs.count_distinct("day", every="1d")] == [1, 1]
        assert next((row.value, row.distinct) for row in logs.count_distinct("_path", "user")) == (0, 2)
        assert [row.start.day for row in logs.stats_by("day", every="1d")] == [1, 2]


@pytest.mark.parametrize("cells", [0, 40])
def test_pairs_of_many_values(events: JITDB, monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """Where a byte for each pair of a group and a value is too much, pairs are sorted, some at a time."""
    whole, timed = events.count_distinct("user", "host"), events.count_distinct("ms", every="1h")
    monkeypatch.setattr(placing, "_CELLS", cells)
    monkeypatch.setattr(placing, "_SORTED", 5)
    assert events.count_distinct("user", "host") == whole
    assert events.count_distinct("ms", every="1h") == timed


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, -1.0, math.nan, math.inf, -math.inf]), max_size=60), st.integers(1, 20))
def test_the_greatest_first_of_equal_ones_the_first(weights: list[float], limit: int) -> None:
    """Of many groups those that are not among the greatest are not put in order."""
    wanted = sorted(range(len(weights)), key=lambda at: (weights[at] != weights[at], -weights[at], at))
    every = [each for each in wanted if weights[each] == weights[each]]
    every += [each for each in range(len(weights)) if weights[each] != weights[each]]
    for asked in (np.array(weights), weights):
        assert ranked(asked) == every
        assert ranked(asked, limit) == every[:limit]
