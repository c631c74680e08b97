"""Summaries of many logs are those of one log that has all their records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jitdb
from jitdb import JITDB, LogSet
from jitdb.operators import equal, field, query, timeline, to_result


def record(n: int) -> dict[str, object]:
    time = f"20{20 + n % 4}-0{n % 9 + 1}-1{n % 10}T{n % 24:02}:00:00Z"
    return {
        "time": time,
        "host": f"h{n % 7}",
        "id": f"id{n}",
        "ms": n * n % 101 / 4,
        **({"code": n % 3} if n % 5 else {}),
    }


@pytest.fixture
def both(tmp_path: Path) -> tuple[LogSet, JITDB]:
    """The records in four files of three folders, and in one."""
    records = [record(n) for n in range(400)]
    for number in range(4):
        path = tmp_path / "many" / f"part={number % 3}" / f"{number}.ndjson"
        path.parent.mkdir(parents=True, exist_ok=True)
        some = records[number * 100 : number * 100 + (100 if number < 3 else 400)]
        path.write_text("".join(json.dumps(each) + "\n" for each in some))
    (tmp_path / "one.ndjson").write_text("".join(json.dumps(each) + "\n" for each in records))
    logs = jitdb.open_many(str(tmp_path / "many"), "memory", threads=1)
    return logs, jitdb.open(tmp_path / "one.ndjson", "memory")


def test_counts_add_up(both: tuple[LogSet, JITDB]) -> None:
    logs, one = both
    with logs, one:
        one.count(equal("code", 1))  # which leaves bitmaps in one of them
        for condition in (None, field("code") == 1, field("ms") > 10):
            assert logs.value_counts("host", condition, limit=3) == one.value_counts("host", condition, limit=3)
            assert logs.value_counts("id", condition, limit=5) == one.value_counts("id", condition, limit=5)
            assert logs.value_counts("code", condition) == one.value_counts("code", condition)
            assert logs.group_count("host", "code", where=condition) == one.group_count("host", "code", where=condition)
            assert logs.histogram("ms", condition) == one.histogram("ms", condition)
            assert logs.timeline(condition) == one.timeline(condition)
            assert logs.timeline(condition, every="1mo", by="code", limit=2) == one.timeline(
                condition, every="1mo", by="code", limit=2
            )
            assert logs.stats("ms", condition) == one.stats("ms", condition)
            assert logs.stats_by("ms", "host", condition) == one.stats_by("ms", "host", condition)
        assert query(logs.query(), timeline(every="1y"), to_result()) == one.timeline(every="1y")


def test_fields_of_paths(both: tuple[LogSet, JITDB]) -> None:
    """What the folders' names say is counted like a field of the records."""
    logs, one = both
    with logs, one:
        assert logs.value_counts("part").as_dict() == {0: 200, 1: 100, 2: 100}
        assert logs.value_counts("part", field("part") > 0).as_dict() == {1: 100, 2: 100}
        assert [row.count for row in logs.value_counts("_path")] == [100] * 4
        assert logs.stats("part").sum == 300
        assert logs.group_count("part", "host").total == 400
        assert logs.timeline(every="1y", by="part").values == (0, 1, 2)
        assert [(row.value, row.stats.count) for row in logs.stats_by("ms", "part")] == [(0, 200), (1, 100), (2, 100)]


def test_a_folder_called_as_the_time_is(tmp_path: Path) -> None:
    """The declared time is that of the record."""
    for day in (1, 2):
        (tmp_path / f"date=x{day}").mkdir()
        (tmp_path / f"date=x{day}" / "a.ndjson").write_text(f'{{"date": "2026-11-0{day}", "n": {day}}}\n')
    with jitdb.open_many(str(tmp_path), "memory") as logs:
        assert logs.timeline(every="1d").counts == (1, 1)
        assert logs.value_counts("date").as_dict() == {"x1": 1, "x2": 1}


def test_nothing_that_matches(both: tuple[LogSet, JITDB]) -> None:
    logs, _ = both
    with logs:
        nowhere = field("part") == 9  # no log can have it
        assert logs.value_counts("host", nowhere).total == 0
        assert logs.timeline(nowhere).rows == logs.histogram("ms", nowhere).rows == ()
        assert logs.stats_by("ms", "host", nowhere).rows == ()
        assert logs.stats("ms", nowhere).count == 0
