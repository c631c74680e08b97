"""Timelines of logs of many zones, in the order of time, nearly so and not at all, against loops over the records."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import jitdb
from jitdb import JITDB
from jitdb.operators import field

COUNT = 17_000
BEGIN = datetime(2023, 10, 28, 20, tzinfo=UTC)  # the clocks of Europe go back some hours later
BERLIN = "Europe/Berlin"


def made(order: str) -> list[dict[str, Any]]:
    """Records over two days, the times in this order."""
    chance = random.Random(order)
    seconds = sorted(chance.uniform(0, 2 * 86400) for _ in range(COUNT))
    if order == "nearly":
        seconds = [second + chance.uniform(0, 900) for second in seconds]
    elif order == "none":
        chance.shuffle(seconds)
    records: list[dict[str, Any]] = []
    for second in seconds:
        time = (BEGIN + timedelta(seconds=second)).isoformat(timespec="microseconds")
        records.append({"time": time, "level": chance.choices(["info", "warn", "error"], [80, 15, 5])[0]})
    if order == "lacking":
        for each in chance.sample(records, 40):
            each["time"] = chance.choice(["no time", None])
        for each in records[4000:13000]:
            del each["time"]
    return records


@cache
def time_of(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def oracle(records: list[dict[str, Any]], every: str, tz: str | None) -> Counter[Any]:
    """How many records of which level are in the step that begins so by the clocks of the zone."""
    counts: Counter[Any] = Counter()
    zone = ZoneInfo(tz) if tz else UTC
    for each in records:
        time = time_of(each.get("time") or "")
        if time is not None:
            local = time.astimezone(zone).replace(second=0, microsecond=0)
            counts[beginning(local, every).astimezone(UTC), each["level"]] += 1
    return counts


def beginning(local: datetime, every: str) -> datetime:
    if every == "10m":
        return local.replace(minute=local.minute // 10 * 10)
    if every == "1h":
        return local.replace(minute=0)
    return local.replace(minute=0, hour=0, fold=0, **({"day": 1} if every == "1mo" else {}))


def check(db: JITDB, records: list[dict[str, Any]], question: Any = None) -> None:
    for every, tz in (("10m", None), ("1d", None), ("1mo", None), ("10m", BERLIN), ("1h", BERLIN)):
        wanted = oracle(records, every, tz)
        for by in (None, "level"):
            line = db.timeline(question, every=every, by=by, tz=tz)
            found: Counter[Any] = Counter()
            for row in line:
                start = row.start.astimezone(UTC)
                if by is None:
                    assert row.count == sum(wanted[start, level] for level in ("info", "warn", "error"))
                for level, count in zip(line.values, row.counts, strict=True):
                    found[start, level] += count
            assert line.total == len(records)
            assert line.total - line.missing == wanted.total()
            if by is not None:
                assert +found == wanted


@pytest.mark.parametrize("order", ["time", "nearly", "none", "lacking"])
def test_counts_are_those_of_a_loop(tmp_path: Path, order: str) -> None:
    records = made(order)
    path = tmp_path / "some.ndjson"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    with jitdb.open(path) as db:
        check(db, records)
        check(db, [each for each in records if each["level"] == "error"], 'level == "error"')
    with jitdb.open(path) as db:
        for level in ("info", "warn", "error"):  # which leaves bitmaps behind
            db.count(field("level") == level)
        check(db, [each for each in records if each["level"] != "warn"], 'level != "warn"')


def test_deleted_records_are_in_no_step(tmp_path: Path) -> None:
    records = made("time")
    with jitdb.open(tmp_path / "own.log", codec="msgpack", create=True) as db:
        db.log.append_many(records)
        db.log.flush()
        for offset in db.all('level == "error"', as_offsets=True):
            db.log.delete(offset)
        check(db, [each for each in records if each["level"] != "error"])


def test_times_as_numbers_near_the_edges_of_steps(tmp_path: Path) -> None:
    """Nanoseconds, which doubles do not hold: the rests decide in which step a time is."""
    hour = 3600 * 10**9
    begin = 1_700_000_000_000_000_000 // hour * hour
    times = sorted(begin + edge * hour + rest for edge in range(4) for rest in range(-3000, 3000))
    path = tmp_path / "some.ndjson"
    path.write_text("".join(json.dumps({"time": time}) + "\n" for time in times))
    with jitdb.open(path) as db:
        counts = Counter(time // hour for time in times)
        assert [row.count for row in db.timeline(every="1h")] == [counts[step] for step in sorted(counts)]


def test_an_hour_that_clocks_show_twice(tmp_path: Path) -> None:
    """From the first 2 o'clock to the second it is an hour: they are two steps."""
    spacing = 58  # seconds between records: 64 of them take an hour
    before = 20  # parts of 64 records before the first 2 o'clock
    first = datetime(2023, 10, 29, 0, 0, 30, tzinfo=UTC) - timedelta(seconds=before * 64 * spacing)
    times = [(first + timedelta(seconds=spacing * number)).isoformat() for number in range(2 * 4096)]
    records = [{"time": time, "level": "info"} for time in times]
    path = tmp_path / "some.ndjson"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    with jitdb.open(path) as db:
        check(db, records)
