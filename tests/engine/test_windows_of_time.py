"""Steps of the time that is asked about: also those before the first record and behind the last one."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitdb
from jitdb.operators import declared_time, field

EPOCH = datetime(2026, 3, 27, tzinfo=UTC)  # two days before the clocks of Berlin change
HOUR = timedelta(hours=1)


def at(hours: float) -> datetime:
    return EPOCH + hours * HOUR


def step_of(moment: datetime, every: str, zone: str | None) -> datetime:
    local = moment.astimezone(ZoneInfo(zone) if zone else UTC)
    return local.replace(minute=0, second=0, microsecond=0, fold=0, **({} if every == "1h" else {"hour": 0}))


def expected(times: list[datetime], first: datetime, last: datetime, every: str, zone: str | None) -> list[Any]:
    """Each step from that of `first` to that of `last`, found by going from minute to minute."""
    counts = Counter(step_of(time, every, zone).isoformat() for time in times)
    steps, moment = {}, first
    while moment < last:
        steps[step_of(moment, every, zone).isoformat()] = None
        moment = min(moment + HOUR / 2, last)
    steps[step_of(last, every, zone).isoformat()] = None
    return [(step, counts[step]) for step in steps]


@settings(max_examples=60, deadline=None)
@given(
    drawn=st.lists(st.integers(0, 400), max_size=8),
    first=st.none() | st.integers(-60, 400),
    length=st.integers(1, 200),
    has_end=st.booleans(),
    every=st.sampled_from(["1h", "1d"]),
    zone=st.sampled_from([None, "Asia/Kolkata", "America/Phoenix"]),
)
def test_random_windows(
    tmp_path_factory: Any,
    drawn: list[int],
    first: int | None,
    length: int,
    has_end: bool,
    every: str,
    zone: str | None,
) -> None:
    path = tmp_path_factory.mktemp("window") / "a.ndjson"
    path.write_text("".join(json.dumps({"time": at(hour / 4).isoformat(), "n": hour % 3}) + "\n" for hour in drawn))
    end = (first or 0) + length if has_end else None
    chosen = [at(hour / 4) for hour in drawn]
    chosen = [time for time in chosen if (first is None or time >= at(first)) and (end is None or time < at(end))]
    begins = at(first) if first is not None else min(chosen, default=None)
    ends = at(end) - timedelta(microseconds=1) if end is not None else max(chosen, default=None)
    wanted = expected(chosen, begins, ends, every, zone) if begins is not None and ends is not None else []
    with jitdb.open(path, "memory") as one, jitdb.open_many(str(path.parent), "memory") as many:
        for db in (one, many):
            asked = db.query()
            asked = asked if first is None else asked.since(at(first))
            asked = asked if end is None else asked.until(at(end))
            if not drawn:
                continue  # what the time is nobody knows
            found = asked.timeline(every=every, tz=zone)
            assert [(row.start.isoformat(), row.count) for row in found] == wanted
            by = asked.timeline(every=every, tz=zone, by="n")
            assert [(row.start, row.count) for row in by] == [(row.start, row.count) for row in found]
            assert all(row.count == sum(row.counts) and len(row.counts) == len(by.values) for row in by)
            for rows in (asked.stats_by("n", every=every, tz=zone), asked.count_distinct("n", every=every, tz=zone)):
                assert rows.starts == [row.start for row in found]
                assert sum(row.count for row in rows) == len(chosen)
            assert len(asked.timeline(every=every, tz=zone, per="1h").rates) == len(found)


@pytest.fixture
def db(tmp_path: Path) -> Any:
    """A record at ten, and one at noon."""
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps({"time": at(hour).isoformat(), "n": hour}) + "\n" for hour in (10, 12)))
    with jitdb.open(path, "memory") as opened:
        yield opened


def hours(line: Any) -> list[float]:
    return [(row.start - EPOCH) / HOUR for row in line]


def test_the_step_is_that_of_the_window(db: Any) -> None:
    assert db.timeline().every == "5m"
    line = db.query().since(at(0)).until(at(24 * 365)).timeline()
    assert (line.every, len(line), sum(line.counts)) == ("1mo", 13, 2)
    assert db.query().since(at(-40)).timeline().every == "3h"
    assert db.query().since(at(-40)).stats_by("n", every="auto").every == "3h"


def test_too_wide_a_window_keeps_to_its_records(db: Any) -> None:
    line = db.query().since("1970-01-01").until("2100-01-01").timeline(every="1h")
    assert (hours(line), line.counts) == ([10, 11, 12], (1, 0, 1))
    assert len(db.query("n == 5").since("1970-01-01").until("2100-01-01").timeline(every="1h")) == 0


def test_what_bounds_the_time(db: Any) -> None:
    """Conditions of the declared time, and of the field that holds it; of no other, and none that is denied or one of
    several.
    """
    late, early = declared_time >= at(8), declared_time < at(14)
    for operation in (late & early, (late & (field("n") > 0)) & early & (declared_time > at(2))):
        assert hours(db.timeline(operation, every="1h")) == list(range(8, 14))
    since, until = at(8).isoformat(), at(14).isoformat()
    assert hours(db.timeline(f'time >= "{since}" and time <= "{until}"', every="1h")) == list(range(8, 15))
    assert hours(db.timeline(late & (declared_time > at(9)), every="1h")) == [9, 10, 11, 12]
    assert hours(db.timeline(declared_time < at(14).timestamp(), every="1h")) == [10, 11, 12, 13]
    assert hours(db.timeline(late | (field("n") > 0), every="1h")) == [10, 11, 12]
    assert hours(db.timeline(~(declared_time < at(8)), every="1h")) == [10, 11, 12]
    for far in (declared_time >= float("-inf"), declared_time < 1e300, declared_time >= "0000-01-01"):
        assert hours(db.timeline(far, every="1h")) == [10, 11, 12]
    assert hours(db.timeline(declared_time > at(14), every="1h")) == []
