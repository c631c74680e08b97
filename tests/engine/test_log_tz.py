"""Logs of clocks that show no UTC: `log_tz` says which."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

import jitdb
from jitdb.errors import InvalidArgument, QueryError
from jitdb.explorer.sampled import Sampled
from jitdb.operators import field

FIRST = datetime(2026, 10, 24, 20)  # clocks of Europe are set six hours later
COUNT = 48  # records, half an hour apart by the clock


def stamp(number: int) -> str:
    """Each third says that it is UTC."""
    return f"{FIRST + timedelta(minutes=30 * number):%Y-%m-%d %H:%M:%S}{'Z' if number % 3 == 2 else ''}"


def time_by(zone: str, number: int) -> datetime:
    """When that is, by datetime."""
    read_by = UTC if number % 3 == 2 else ZoneInfo(zone)
    return (FIRST + timedelta(minutes=30 * number)).replace(tzinfo=read_by).astimezone(UTC)


def write(path: Path) -> Path:
    stamps = map(stamp, range(COUNT))
    records = ({"time": text, "other": text, "date": {"$date": text}, "n": n} for n, text in enumerate(stamps))
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "a.ndjson")


def test_answers_are_those_of_datetime(log: Path) -> None:
    """Also where an index by another zone is fresh."""
    for zone in ("Europe/Berlin", None, "America/New_York", "Europe/Berlin"):
        times = [time_by(zone or "UTC", number) for number in range(COUNT)]
        with jitdb.open(log, log_tz=zone) as db:
            for bound in sorted({*times, times[0] - timedelta(1)})[::5]:
                expected = [n for n, time in enumerate(times) if time >= bound]
                for asked in (
                    db.query().since(bound).sort_by_arrival(),
                    db.query(field("other") >= bound).sort_by_arrival(),
                    db.query(field("date") >= bound).sort_by_arrival(),
                ):
                    assert [record["n"] for record in asked] == expected
            in_order = sorted(range(COUNT), key=lambda n: (times[n], n))
            assert [record["n"] for record in db.query()] == in_order
            assert [record["n"] for record in db.query().sort_by("other")] == in_order
            table = db.query().sort_by_arrival().to_arrow()
            assert table["time"].to_pylist() == table["other"].to_pylist() == times
            line = db.timeline(every="1h", tz="America/New_York")
            hours = [time.astimezone(ZoneInfo("America/New_York")).strftime("%d %H") for time in times]
            counts = {row.start.strftime("%d %H"): row.count for row in line.rows if row.count}
            assert counts == {hour: hours.count(hour) for hour in hours}


def test_files_are_merged_by_moment(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.ndjson")
    with jitdb.open_many(tmp_path, log_tz="Asia/Tokyo") as logs:
        times = [time_by("Asia/Tokyo", record["n"]) for record in logs.query()]
        assert len(times) == 2 * COUNT
        assert times == sorted(times)


def test_what_is_told(log: Path) -> None:
    with jitdb.open(log, log_tz="+02:00") as db:
        asked = db.query().since("2030-01-01")
        assert asked.count() == 0
        assert db.remarks(asked.question) == ["times of `time` without a zone are read as those of +02:00"]
        assert db.remarks(asked.question, is_full=False) == []
        assert "time (+02:00)" in [index.name for index in db.indexes()]
        assert db.times.settings == {"log_tz": "+02:00"}


def test_dates_alone_are_days_of_utc(tmp_path: Path) -> None:
    """As in questions, so that a question for the day that a record says finds it."""
    path = tmp_path / "a.ndjson"
    path.write_text("".join(f'{{"date": "2026-11-{day:02}", "n": {day}}}\n' for day in range(1, 31)))
    with jitdb.open(path, log_tz="Europe/Berlin") as db:
        assert [record["n"] for record in db.query(field("date") == "2026-11-20")] == [20]
        assert [record["n"] for record in db.query().since("2026-11-20").until("2026-11-22")] == [20, 21]
        assert db.query().to_arrow()["date"].to_pylist()[0] == datetime(2026, 11, 1, tzinfo=UTC)


def test_a_sample_is_read_so(log: Path) -> None:
    """What the page of `explore` shows first."""
    with jitdb.open(log, log_tz="Asia/Tokyo") as db, closing(Sampled(db, COUNT)) as sampled:
        for bound in ("2026-10-24T11:30:00Z", "2026-10-24T22:00:00Z"):
            assert sampled.db.query().since(bound).count() == db.query().since(bound).count()


def test_follow(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson")
    with jitdb.open(path, log_tz="Europe/Berlin", follow=True) as db:
        before = db.query().since("2026-11-20T14:00:00Z").count()
        with path.open("a") as file:
            file.write('{"time": "2026-11-20 15:00:00"}\n{"time": "2026-11-20 14:59:59"}\n')
        assert (before, db.query().since("2026-11-20T14:00:00Z").count()) == (0, 1)


def test_zones_that_are_none(log: Path) -> None:
    with pytest.raises(QueryError, match="there is no zone of time called 'Europe/Berln'"):
        jitdb.open(log, log_tz="Europe/Berln")
    with pytest.raises(InvalidArgument, match="leave one out"):
        jitdb.open(log, log_tz="Europe/Berlin", time_unit="number")
    with pytest.raises(InvalidArgument, match="time_unit is one of"):
        jitdb.open(log, time_unit="auto Europe/Berlin")  # type: ignore[arg-type]
