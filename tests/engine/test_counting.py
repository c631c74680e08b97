"""Summaries (counts by value, by time and by size, statistics) against loops over decoded records."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import number_in

import jitdb
from jitdb import JITDB, Log
from jitdb.common.values import UNDEFINED, kind_of, value_at, value_key
from jitdb.errors import QueryError
from jitdb.operators import (
    equal,
    field,
    from_db,
    paginate,
    query,
    to_awaitable,
    to_iter,
    to_result,
    value_counts,
    where,
)
from jitdb.operators.summaries.arithmetic import calendar
from jitdb.operators.summaries.arithmetic.calendar import parse_step
from jitdb.operators.summaries.histograms import Bin
from jitdb.operators.summaries.stats import Stats
from jitdb.operators.summaries.value_counts import ValueCounts

NUMBER = kind_of(1)

SPECIAL = [math.inf, -math.inf, math.nan]
values = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        1.0,
        -2.5,
        1e150,
        2**53 + 1,
        2**63 - 1,
        "",
        "a",
        "b",
        "7",
        "-1e3",
        [1],
        {"x": 1},
        *SPECIAL,
    ]
)
fields = st.fixed_dictionaries(
    {}, optional={"a": values, "b": st.sampled_from(["x", "y", 3, None]), "n": st.floats(-100, 100) | values}
)
records = st.lists(fields, max_size=60)


def held(found: list[Any], name: str) -> list[Any]:
    return [value_at(record, (name,)) for record in found]


def count_values(found: list[Any], name: str) -> tuple[Counter[bytes], int]:
    """How often there is each key, and how many lack the field."""
    keys = [value_key(value) for value in held(found, name) if value is not UNDEFINED]
    return Counter(keys), len(found) - len(keys)


def numbers_of(found: list[Any], name: str) -> list[int | float]:
    """The numbers that a field holds, or that its text spells."""
    numbers = map(number_in, held(found, name))
    return [number for number in numbers if number is not None and number == number]


def check_values(counts: ValueCounts, found: list[Any], name: str) -> None:
    expected, missing = count_values(found, name)
    assert {value_key(value): count for value, count in counts} == expected
    assert (counts.total, counts.missing, counts.distinct, counts.others) == (len(found), missing, len(expected), 0)
    assert list(counts.counts) == sorted(counts.counts, reverse=True)


def check_stats(stats: Stats, found: list[Any], total: int) -> None:
    assert (stats.count, stats.total) == (len(found), total)
    if not found:
        assert stats.min is stats.max is stats.sum is stats.mean is stats.stddev is None
        return
    ordered = sorted(found)
    assert (stats.min, stats.max) == (ordered[0], ordered[-1])
    for share, value in stats.quantiles:
        assert value == ordered[max(0, math.ceil(Fraction(repr(share)) * len(ordered)) - 1)]
    if not all(map(math.isfinite, found)):
        total = sum(value for value in found if math.isinf(value))  # NaN of both infinities
        assert [repr(stats.sum), repr(stats.mean)] == [repr(total)] * 2
        return
    exact = sum(map(Fraction, found))
    assert stats.sum == (exact if all(float(value).is_integer() for value in found) else float(exact))
    assert stats.mean == float(exact / len(found))
    if len(found) > 1:
        variance = sum((Fraction(value) - exact / len(found)) ** 2 for value in found) / (len(found) - 1)
        scale = max(abs(float(value)) for value in found)
        assert stats.stddev == pytest.approx(math.sqrt(variance), rel=1e-9, abs=1e-12 * scale)
    else:
        assert stats.stddev is None


@pytest.fixture(scope="module", params=["bipf", "msgpack", "json"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Makes a database of records, in a kind of log each."""
    folder = tmp_path_factory.mktemp("logs")
    made = iter(range(10**9))

    def make(found: list[Any]) -> JITDB:
        path = folder / f"{next(made)}.{request.param}"
        if request.param == "json":
            path.write_text("".join(json.dumps(record) + "\n" for record in found))
            return jitdb.open(path, "memory")
        log = Log(path, codec=request.param)
        log.append_many(found)
        log.flush()
        return JITDB(log, "memory")

    return make, request.param


def sayable(record: dict[str, Any], codec: str) -> dict[str, Any]:
    """What the codec can say of it."""
    wrong = {"json": [], "bipf": [*SPECIAL, 2**53 + 1, 2**63 - 1], "msgpack": []}[codec]
    return {key: 7 if kind_of(value) == NUMBER and value in wrong else value for key, value in record.items()}


@settings(max_examples=15, deadline=None)
@given(records, st.booleans())
def test_random_records(database: Any, found: list[Any], bitmaps: bool) -> None:
    make, codec = database
    found = [sayable(record, codec) for record in found]
    with make(found) as db:
        if bitmaps:
            db.prepare(equal("a", 1), equal("b", 1))
        for condition in (None, field("b") == "x", field("a").absent() | (field("b") == 3)):
            chosen = found if condition is None else db.all(condition)
            check_values(db.value_counts("a", condition), chosen, "a")
            groups = db.group_count("a", "b", where=condition)
            pairs = Counter(
                (value_key(record["a"]), value_key(record["b"])) for record in chosen if "a" in record and "b" in record
            )
            assert {tuple(map(value_key, row.values)): row.count for row in groups} == pairs
            assert (groups.total, groups.missing) == (len(chosen), len(chosen) - sum(pairs.values()))
            check_stats(db.stats("n", condition), numbers_of(chosen, "n"), len(chosen))
            by = db.stats_by("n", "b", condition)
            expected, missing = count_values(chosen, "b")
            assert ({value_key(row.value): row.count for row in by}, by.missing) == (expected, missing)
            for row in by:
                own = [record for record in chosen if "b" in record and value_key(record["b"]) == value_key(row.value)]
                check_stats(row.stats, numbers_of(own, "n"), len(own))
            check_histogram(db, chosen, condition)


def check_histogram(db: JITDB, chosen: list[Any], condition: Any) -> None:
    numbers = numbers_of(chosen, "n")
    for bins in (2, 5, 20, [-3, 0, 0.5, 100]):
        found = db.histogram("n", condition, bins=bins)
        assert found.missing == len(chosen) - len(numbers)
        assert sum(found.counts) + found.below + found.above == len(numbers)
        for row in found:
            assert row.count == sum(row.low <= value < row.high for value in numbers)
        if isinstance(bins, int):
            assert len(found) <= bins
            assert not found or (found[0].count and found[-1].count)
            assert list(found.edges) == sorted(set(found.edges))


SECONDS = {
    "30m": 1800, "1h": 3600, "6h": 21600, "1d": 86400, "3d": 3 * 86400, "1w": 7 * 86400, "1mo": 30 * 86400,
    "1q": 91 * 86400, "1y": 365 * 86400, "7y": 7 * 365 * 86400, timedelta(hours=5): 18000,
}  # fmt: skip


@pytest.mark.parametrize("every", SECONDS, ids=str)
@settings(max_examples=5, deadline=None)
@given(
    base=st.integers(-1_500_000_000, 3_000_000_000),
    drawn=st.lists(st.tuples(st.floats(-30, 30), st.sampled_from("xyz"), st.booleans()), min_size=1, max_size=40),
)
def test_random_times(every: Any, base: int, drawn: list[tuple[float, str, bool]]) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    found = [(base + int(steps * SECONDS[every]), by, text) for steps, by, text in drawn]
    with memory_log(
        [{"ts": (epoch + timedelta(seconds=at)).isoformat() if text else at, "by": by} for at, by, text in found]
    ) as db:
        line = db.timeline(every=every, by="by", limit=2)
    assert (line.total, line.missing, sum(line.counts)) == (len(found), 0, len(found))
    starts = [row.start for row in line]
    moments = [epoch + timedelta(seconds=at) for at, _, _ in found]
    for row, end in zip(line, [*starts[1:], datetime.max.replace(tzinfo=UTC)], strict=False):
        inside = [by for moment, (_, by, _) in zip(moments, found, strict=True) if row.start <= moment < end]
        assert row.count == len(inside)
        assert row.counts == tuple(inside.count(value) for value in line.values)
    if found:
        assert starts[0] == beginning(min(moments), every)
        assert line[0].count
        assert line[-1].count
    assert (
        list(line.values)
        == [by for by, _ in sorted(Counter(by for _, by, _ in found).items(), key=lambda x: (-x[1], x[0]))][:2]
    )


def beginning(moment: datetime, every: Any) -> datetime:
    """The start of its step, by the calendar of Python."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if every == "1w":
        return day - timedelta(days=day.weekday())
    if every == "1mo":
        return day.replace(day=1)
    if every == "1q":
        return day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1)
    if every == "1y":
        return day.replace(day=1, month=1)
    if every == "7y":
        return day.replace(day=1, month=1, year=1970 + (day.year - 1970) // 7 * 7)
    size = timedelta(seconds=SECONDS[every])
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + (moment - epoch) // size * size


@pytest.mark.parametrize(
    "name", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca"]
)
@settings(max_examples=6, deadline=None)
@given(
    drawn=st.lists(st.integers(0, 2_800_000_000), min_size=1, max_size=40), every=st.sampled_from(["1d", "1w", "1mo"])
)
@example(drawn=[1_792_886_400 + 1800 * half for half in range(8)], every="1d")  # Berlin's clocks are set back
def test_clocks_of_a_zone(name: str, drawn: list[int], every: str) -> None:
    zone = ZoneInfo(name)
    with memory_log([{"ts": at, "by": at % 2} for at in drawn]) as db:
        line = db.timeline(every=every, tz=name, by="by")
        hours = db.timeline(field("ts") < min(drawn) + 86_400 * 300, every="1h", tz=name)
    local = [datetime.fromtimestamp(at, zone) for at in drawn]
    expected = Counter(beginning(at.replace(tzinfo=UTC), every).replace(tzinfo=zone) for at in local)
    assert {row.start: row.count for row in line if row.count} == expected
    assert all(row.count == sum(row.counts) for row in line)
    near = [at for moment, at in zip(drawn, local, strict=True) if moment < min(drawn) + 86_400 * 300]
    begun = Counter(at.astimezone(UTC) - timedelta(minutes=at.minute, seconds=at.second) for at in near)
    assert {row.start.astimezone(UTC): row.count for row in hours if row.count} == begun
    assert {(row.start.tzinfo, row.start.microsecond) for row in hours} == {(zone, 0)}


@settings(max_examples=20, deadline=None)
@given(
    drawn=st.lists(st.integers(0, 400), min_size=1, max_size=40),
    every=st.sampled_from(["1h", "30m", "1d", "1mo"]),
    zone=st.sampled_from([None, "Europe/Berlin", "Australia/Lord_Howe"]),
    per=st.sampled_from(["1s", "1m", "1h", timedelta(hours=3)]),
)
def test_rates(drawn: list[int], every: str, zone: str | None, per: Any) -> None:
    """Over the days in which clocks change: steps are as long as time goes, not as clocks show."""
    begin = datetime(2023, 10, 25, tzinfo=UTC)
    with memory_log([{"ts": (begin + timedelta(hours=at)).isoformat(), "by": at % 3} for at in drawn]) as db:
        line = db.timeline(every=every, tz=zone, per=per, by="by", limit=2)
        plain = db.timeline(every=every, tz=zone, by="by", limit=2)
    assert (line.rows, plain.rates, plain.lengths) == (plain.rows, (), ())
    sizes = {"1s": 1, "1m": 60, "1h": 3600}
    size = sizes[per] if isinstance(per, str) else per.total_seconds()
    starts = [row.start.timestamp() for row in line]
    for length, start, end in zip(line.lengths, starts, starts[1:], strict=False):
        assert length == pytest.approx((end - start) / size)
    for row, rate, length, cells in zip(line, line.rates, line.lengths, line.sheet().rows, strict=True):
        assert rate == (row.count / length if length else 0)
        assert cells[1:3] == [row.count, rate]
        assert sum(cells[3:]) == pytest.approx(rate)


def test_rates_at_the_ends_of_the_calendar() -> None:
    with memory_log([{"ts": f"{year}-06-01T00:00:00Z"} for year in ("0001", "9999")]) as db:
        for zone in (None, "Asia/Kolkata", "America/New_York"):
            line = db.timeline(every="100y", tz=zone, per="1d")
            assert (line.counts[0], line.counts[-1]) == (1, 1)
            assert all(rate < 1 for rate in line.rates)
        with pytest.raises(QueryError, match="no rates"):
            db.timeline(per="1mo")
        with pytest.raises(QueryError, match="no step of time"):
            db.timeline(per="second")


def test_one_date_of_a_far_year_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The days on which no record is are not looked at."""
    looks, offset = [0], calendar._offset
    monkeypatch.setattr(calendar, "_offset", lambda *at: (looks.__setitem__(0, looks[0] + 1), offset(*at))[1])
    with memory_log([{"ts": f"{year}-07-01T00:00:00Z"} for year in (1970, 2026, 9999)]) as db:
        line = db.timeline(every="100y", tz="Europe/Berlin")
    assert [row.count for row in line if row.count] == [2, 1]
    assert looks[0] < 200


def test_names_of_zones() -> None:
    with memory_log([{"ts": 5}]) as db:
        with pytest.raises(QueryError, match="did you mean Europe/Berlin"):
            db.timeline(tz="Europe/Berln")
        for wrong in (5, "", "../UTC", "Europe"):
            with pytest.raises(QueryError, match="no zone"):
                db.timeline(tz=wrong)  # type: ignore[arg-type]


def memory_log(found: list[Any]) -> JITDB:
    import tempfile

    folder = Path(tempfile.mkdtemp())
    (folder / "a.ndjson").write_text("".join(json.dumps(record) + "\n" for record in found))
    return jitdb.open(folder / "a.ndjson", "memory", timestamp="ts")


@pytest.fixture
def events(tmp_path: Path) -> Iterator[JITDB]:
    """A thousand records, a quarter of them deleted."""
    log = Log(tmp_path / "events.log")
    offsets = log.append_many(
        {"host": f"h{n % 5}", "id": f"id{n:04}", "n": n, "time": 1_700_000_000 + 60 * n} for n in range(1000)
    )
    log.flush()
    with JITDB(log) as db:
        for offset in list(offsets)[::4]:
            log.delete(offset)
        log.flush()
        yield db


def test_deleted_records_are_in_no_count(events: JITDB) -> None:
    kept = [n for n in range(1000) if n % 4]
    assert events.value_counts("host").as_dict() == Counter(f"h{n % 5}" for n in kept)
    events.count(equal("host", "h1"))  # now there are bitmaps, too
    assert events.value_counts("host").as_dict() == Counter(f"h{n % 5}" for n in kept)
    assert events.stats("n").sum == sum(kept)
    assert sum(events.timeline(every="1h").counts) == len(kept)
    events.compact()
    assert events.value_counts("host").as_dict() == Counter(f"h{n % 5}" for n in kept)
    assert events.group_count("host", "id").distinct == len(kept)


def test_what_comes_is_counted(events: JITDB) -> None:
    assert events.value_counts("host").total == 750
    events.count(equal("host", "h1"))
    assert events.value_counts("host").total == 750
    events.log.append({"host": "new", "n": 5000, "time": 1_700_100_000})
    events.log.flush()
    assert events.value_counts("host").as_dict()["new"] == 1
    assert events.stats("n").max == 5000
    assert events.timeline(every="1d").rows[-1].count == 1


def test_counting_beside_a_writer_and_a_compaction(events: JITDB) -> None:
    """Each answer is that of one moment: what it says of parts adds up to what it says of all."""
    done = threading.Event()

    def write() -> None:
        try:
            for n in range(40):
                offsets = events.log.append_many(
                    {"host": f"h{n % 5}", "n": n, "time": 1_700_000_000 + n} for _ in range(50)
                )
                events.log.flush()
                events.log.delete(int(offsets[0]))
                if n % 20 == 10:
                    events.compact()
        finally:
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    totals = []
    while not done.is_set():
        counts = events.value_counts("host")
        assert sum(counts.counts) == counts.total
        totals.append(counts.total)
        line, by = events.timeline(every="1h", by="host", limit=9), events.stats_by("n", "host")
        assert sum(line.counts) == line.total
        assert all(row.count == sum(row.counts) for row in line)
        assert sum(row.stats.count for row in by) == by.total
    writer.join()
    assert events.value_counts("host").total == 750 + 40 * 49
    assert all(750 <= total <= 750 + 40 * 50 for total in totals)


def test_limits_and_ties(events: JITDB) -> None:
    """Of equally many the smaller value comes first, whichever index is asked."""
    expected = [(f"id{n:04}", 1) for n in range(1000) if n % 4]
    assert list(events.value_counts("id", limit=7)) == expected[:7]
    assert list(events.value_counts("id")) == expected
    assert list(events.value_counts("n", field("n") > 500, limit=3)) == [(501, 1), (502, 1), (503, 1)]
    top = events.value_counts("id", limit=2)
    assert (top.distinct, top.others, top.total) == (750, 748, 750)
    assert top.top(1).rows == top.rows[:1]
    assert events.stats_by("n", "id", limit=2).rows[1].value == "id0002"
    assert [row.values for row in events.group_count("id", "n", limit=2)] == [("id0001", 1), ("id0002", 2)]


def test_every_way_to_ask(events: JITDB) -> None:
    expected = events.value_counts("host", field("n") < 100)
    asked = query(from_db(events), where(field("n") < 100), value_counts("host"))
    assert query(asked, to_result()) == expected
    assert asyncio.run(query(asked, to_awaitable())) == expected
    assert events.query(field("n") < 100).value_counts("host") == expected
    assert events.query().value_counts("host", field("n") < 100) == expected
    assert list(query(asked, to_iter())) == [expected]
    assert repr(value_counts("host", limit=3)) == "value_counts(path='host', limit=3)"
    with pytest.raises(QueryError, match="all records that match"):
        query(asked, paginate(3), to_result())
    with pytest.raises(QueryError, match="all records that match"):
        events.query().start_from(3).value_counts("host")


def test_an_earlier_state(events: JITDB) -> None:
    places = events.all(as_offsets=True, sort_by="arrival")
    assert events.query().as_of(places[9]).value_counts("host").total == 10
    assert events.query().as_of(places[9]).stats("n").count == 10


def test_a_log_without_records(tmp_path: Path) -> None:
    with JITDB(Log(tmp_path / "none.log")) as db:
        assert (db.value_counts("a").rows, db.value_counts("a").total) == ((), 0)
        assert db.group_count("a", "b").rows == ()
        assert db.histogram("a").rows == db.timeline().rows == db.stats_by("a", "b").rows == ()
        assert db.stats("a").count == 0
        assert db.histogram("a", bins=[0, 1]).rows == (Bin(0, 1, 0),)


def test_elements_of_arrays(database: Any) -> None:
    """A record counts once for each value that stands in its array."""
    make, _ = database
    found = [
        {"tags": ["a", "b", "a"], "i": [{"s": 1}, {"s": 2}]},
        {"tags": ["b"], "i": [{"s": 1}]},
        {"tags": []},
        {"n": 1},
    ]
    with make(found * 3) as db:
        for _ in range(2):
            counts = db.value_counts("tags[]")
            assert (counts.as_dict(), counts.total, counts.missing, counts.others) == ({"b": 6, "a": 3}, 12, 6, 0)
            assert db.value_counts("i[].s").as_dict() == {1: 6, 2: 3}
            assert db.value_counts("i[0].s").as_dict() == {1: 6}
            assert db.value_counts("tags[]", field("tags[]") == "a").as_dict() == {"a": 3, "b": 3}
        for ask in (
            lambda: db.group_count("tags[]", "n"),
            lambda: db.stats("tags[]"),
            lambda: db.stats_by("n", "tags[]"),
            lambda: db.timeline(by="tags[]"),
            lambda: db.histogram("tags[]"),
        ):
            with pytest.raises(QueryError, match="may lead to many"):
                ask()


def test_bitmaps_that_turn_into_hashes(events: JITDB) -> None:
    """What was chosen to count from is another index once it is up to date."""
    events.count(equal("kind", "k1"))
    assert events.value_counts("kind").missing == 750
    events.log.append_many({"kind": f"k{n}"} for n in range(3000))
    events.log.flush()
    counts = events.value_counts("kind", limit=3)
    assert (counts.distinct, counts.total, counts.missing) == (3000, 3750, 750)


def test_numbers_at_the_edge_of_a_bin(tmp_path: Path) -> None:
    """Of 64 bits, and of doubles that are next to each other."""
    log = Log(tmp_path / "n.log")
    log.append_many({"n": n, "m": m} for n, m in [(2**63 - 1, 1e16), (2**62 - 1, 1e16 + 2), (2**62, 1e16)])
    log.flush()
    with JITDB(log) as db:
        found = db.histogram("n", bins=[0, 2**62, 2**63])
        assert (found.counts, found.above) == ((1, 2), 0)
        assert sum(db.histogram("n").counts) == 3
        assert db.stats("m", field("n") != 2**62).stddev == math.sqrt(2)


def test_far_times_and_others() -> None:
    with memory_log(
        [{"ts": "9999-12-31T23:00:00Z", "by": "x"}, {"ts": "0001-01-01"}, {"ts": "0000-01-01"}, {"ts": "soon"}, {}]
    ) as db:
        line = db.timeline(every="500y")
        assert (line.missing, line.counts[0], line.counts[-1], line[-1].start.year) == (3, 1, 1, 9970)
        assert db.timeline(every="500y", by="by")[-1].counts == (1,)
        assert db.timeline().every == "500y"
        with pytest.raises(QueryError, match="bins"):
            db.timeline(every="1h")


def test_steps_that_are_none() -> None:
    for wrong in ("hour", "1x", "", "0h", 5, None, timedelta(0), "-1h"):
        with pytest.raises(QueryError, match="step"):
            parse_step(wrong)


def test_arguments_are_checked(events: JITDB) -> None:
    for ask in (
        lambda: events.value_counts(5),  # type: ignore[arg-type]
        lambda: events.value_counts("a", limit=0),
        lambda: events.value_counts("a", "a = 1"),
        lambda: events.group_count(),
        lambda: events.histogram("a", bins=0),
        lambda: events.histogram("a", bins=[1]),
        lambda: events.histogram("a", bins=[1, 1]),
        lambda: events.histogram("a", bins=[0, math.inf]),
        lambda: events.stats("a", quantiles=[2]),
        lambda: events.stats("n").quantile(0.123),
    ):
        with pytest.raises(QueryError):
            ask()


def test_a_number_for_the_time(tmp_path: Path) -> None:
    log = Log(tmp_path / "n.log")
    with JITDB(log, time_unit="number") as db, pytest.raises(QueryError, match="number"):
        db.timeline()


def test_sums_are_exact(tmp_path: Path) -> None:
    numbers = [1e16, 1.0, -1e16, 0.1, 2**53 + 1, 1e-300, 5e-324, 2**63 - 1] * 50
    log = Log(tmp_path / "n.log")
    log.append_many({"n": number} for number in numbers)
    log.flush()
    with JITDB(log) as db:
        check_stats(db.stats("n", quantiles=[0, 0.5, 1]), numbers, 400)
        whole = [int(number) for number in numbers if float(number).is_integer()]
        assert db.stats("n", field("n") == 2**63 - 1).sum == 50 * (2**63 - 1)
        assert len(whole) == 250
