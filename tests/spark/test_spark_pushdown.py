"""push_down gives the rows of the frame that it was given, and reads no more of the log than these need."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitdb.spark_ext import push_down, pushdown, read_log
from jitdb.spark_ext.errors import PushDownWarning

LEVELS = ["info", "warn", "error"]


def record(chosen: random.Random, number: int) -> dict[str, Any]:
    whole = {
        "n": number, "level": chosen.choice(LEVELS), "ms": chosen.choice([0.5, 3.0, 250.0, None]),
        "ok": chosen.choice([True, False, None]), "user": {"id": chosen.randrange(9), "name": f"u{number % 5}"},
        "text": f"line {number}", "tags": ["a", "b"][: number % 3],
    }  # fmt: skip
    return {name: value for name, value in whole.items() if name == "n" or chosen.random() < 0.9}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = random.Random(3)
    found = tmp_path_factory.mktemp("pushdown") / "x.ndjson"
    found.write_text("".join(json.dumps(record(chosen, number)) + "\n" for number in range(1500)))
    return found


@pytest.fixture(scope="module")
def logs(spark: Any, path: Path) -> Iterator[Any]:
    frame = read_log(spark, path)
    frame.createOrReplaceTempView("logs")
    yield frame
    spark.catalog.dropTempView("logs")


def scans(frame: Any) -> list[tuple[set[str], str]]:
    """Of each log that is read, the columns and the question."""
    leaves = list(pushdown._within(frame._jdf.queryExecution().optimizedPlan().collectLeaves()))
    assert all(pushdown._is_of_log(leaf, "DataSourceV2ScanRelation") for leaf in leaves)
    uses = [pushdown.Use(leaf.relation()) for leaf in leaves]
    asked = [use.options.where for use in uses]
    names = [{each.name for each in use.schema} for use in uses]
    return [(some, "" if where is None else repr(where)) for some, where in zip(names, asked, strict=True)]


def rows(frame: Any) -> list[str]:
    return sorted(map(repr, frame.collect()))


def same(frame: Any) -> list[tuple[set[str], str]]:
    """What is read for the same rows."""
    narrow = push_down(frame)
    assert narrow.schema == frame.schema
    assert rows(narrow) == rows(frame)
    return scans(narrow)


WHOLE = {"seq", "offset", "timestamp", "n", "level", "ms", "ok", "user.id", "user.name", "text", "tags"}
ASKED: dict[str, tuple[set[str], str]] = {
    "select n from logs where level = 'error'": ({"n", "level"}, "equal('level', 'error')"),
    "select count(*) from logs": ({"offset"}, ""),
    "select count(*), count(`user.id`) from logs where n between 3 and 9": (
        {"n", "user.id"}, "and_(gte(3, 'n'), lte(9, 'n'))",
    ),
    "select level, sum(ms) from logs where upper(level) like 'E%' and n > 30 group by level": (
        {"level", "ms", "n"}, "gt(30, 'n')",
    ),
    "select * from logs where ok": (WHOLE, "equal('ok', True)"),
    "select text from (select *, n * 2 as twice from logs) where twice > 300 and level in ('fatal', 'error')": (
        {"text", "n", "level"}, "or_(equal('level', 'fatal'), equal('level', 'error'))",
    ),
    "select text from logs order by n desc limit 5": ({"text", "n"}, ""),
    "select max(seq) from logs where ms > 100": ({"seq", "ms"}, "gt(100.0, 'ms')"),
    "select level, n, row_number() over (partition by level order by n) from logs where n < 50": (
        {"level", "n"}, "lt(50, 'n')",
    ),
    "select explode(tags) from logs where n = 4 or n = 5": ({"tags", "n"}, "or_(equal('n', 4), equal('n', 5))"),
    "select level, count(*) from logs group by level having count(*) > 400": ({"level"}, ""),
    "select n from logs where n > 5 and rand(1) >= 0": ({"n"}, "gt(5, 'n')"),
    f"select n from logs where n in ({', '.join(map(str, range(20)))})": (
        {"n"}, f"or_({', '.join(f'equal({chr(39)}n{chr(39)}, {number})' for number in range(20))})",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", ASKED)
def test_one_table(spark: Any, logs: Any, text: str) -> None:
    assert same(spark.sql(text)) == [ASKED[text]]


def test_a_join_with_itself(spark: Any, logs: Any) -> None:
    found = same(spark.sql("select a.text, b.ms from logs a join logs b on a.n = b.n + 1 where a.n > 1400 and b.ok"))
    assert found == [({"text", "ms", "n", "ok"}, "or_(gt(1400, 'n'), equal('ok', True))")] * 2


def test_each_way_to_a_row_is_seen(spark: Any, logs: Any) -> None:
    both = logs.filter("n < 5").select("n").union(logs.filter("ok and n > 1490").select("n"))
    ((columns, where), _) = same(both)
    assert columns == {"n", "ok"}
    assert where.startswith("or_(lt(5, 'n')")
    assert {each for _, each in same(logs.select("n").union(logs.filter("n < 5").select("n")))} == {""}


def test_several_times_in_one_with(spark: Any, logs: Any) -> None:
    text = "with a as (select * from logs where n > 1450) select x.n, y.text from a x join a y on x.n = y.n where y.ok"
    assert all(columns == {"n", "text", "ok"} for columns, _ in same(spark.sql(text)))


def test_a_log_of_a_subquery_is_read_whole(spark: Any, logs: Any) -> None:
    for text in ("n > (select avg(n) from logs)", "exists (select 1 from logs b where b.`user.id` = a.n)"):
        frame = spark.sql(f"select n from logs a where n < 1000 and {text}")
        assert push_down(frame) is frame
        assert rows(frame)


def test_what_is_cached_stays(spark: Any, logs: Any) -> None:
    few = logs.filter("n < 9").cache()
    try:
        for frame in (few.select("n"), few.select("n").union(logs.select("n"))):
            assert push_down(frame) is frame
    finally:
        few.unpersist(blocking=True)


def test_nothing_to_leave_out(spark: Any, logs: Any) -> None:
    for frame in (logs, spark.range(3), spark.sql("select * from logs limit 0")):
        assert push_down(frame) is frame


def test_beside_a_question_of_its_own(spark: Any, path: Path) -> None:
    frame = read_log(spark, path, {"n": "n", "who": "user.id"}, "level == 'error'").filter("who = 3").groupBy().sum("n")
    assert same(frame) == [({"n", "who"}, "and_(equal('level', 'error'), equal('user.id', 3))")]


def test_columns_that_a_schema_renames(spark: Any, path: Path) -> None:
    schema = "who INT, n INT NOT NULL, level STRING, user STRUCT<id: INT, name: STRING>"
    frame = read_log(spark, path, {"who": "user.id", "n": "n", "level": "level", "user": "user"}, schema=schema)
    assert same(frame.filter("who < 3").select("user.name")) == [({"who", "n", "user"}, "lt(3, 'user.id')")]


def test_functions_of_python(spark: Any, logs: Any) -> None:
    found = same(logs.filter("n < 40").select("n", "text").mapInArrow(lambda batches: batches, "n LONG, text STRING"))
    assert found == [({"n", "text"}, "lt(40, 'n')")]


def test_folders(spark: Any, tmp_path: Path) -> None:
    for day in ("20", "21"):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / "a.ndjson").write_text('{"n": 1, "a": 2, "b": 3}\n{"n": 2}\n')
    found = same(read_log(spark, tmp_path).filter("day = 21").select("n"))
    assert found == [({"n", "day"}, "equal('day', 21)")]


def warned(spark: Any, frame: Any, monkeypatch: pytest.MonkeyPatch, large: int = 1) -> list[str]:
    """What is told when a frame is asked."""
    monkeypatch.setattr(pushdown, "SLOW", 0.0)
    monkeypatch.setattr(pushdown, "LARGE", large)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            frame.collect()
        spark._jsparkSession.sparkContext().listenerBus().waitUntilEmpty()
    return [str(each.message) for each in told if each.category is PushDownWarning]


def test_a_warning_once(spark: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (told,) = warned(spark, read_log(spark, path).filter("level = 'error'").select("n"), monkeypatch)
    assert "read all 11 columns, and used 2, read all records for a filter" in told
    assert "equal('level', 'error')" in told
    assert "push_down(frame)" in told


def test_no_warning_where_all_is_well(spark: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = read_log(spark, path).filter("level = 'error'").select("n")
    from pyspark.sql import functions

    where = read_log(spark, path, ["n", "level"], functions.col("level") == "error").select("n")
    assert warned(spark, frame, monkeypatch, path.stat().st_size + 1) == []
    for each in (push_down(frame), where, read_log(spark, path), spark.range(5)):
        assert warned(spark, each, monkeypatch) == []


def test_a_quick_query_is_not_looked_at() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pushdown._Watcher().onSuccess("collect", None, 999_999_999)
    assert told == []


def test_a_renamed_column_in_a_condition(spark: Any, path: Path) -> None:
    from pyspark.sql import functions

    columns = {"who": "user.id", "n": "n"}
    frame = read_log(spark, path, columns, functions.col("who") == 3, schema="who INT, n INT")
    every = read_log(spark, path, columns, schema="who INT, n INT").filter("who = 3")
    assert rows(frame) == rows(every)
    assert len(rows(frame)) > 50
