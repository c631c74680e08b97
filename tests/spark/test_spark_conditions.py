"""Conditions in Spark's words find the rows that Spark's own filter of all rows finds, and reach the log."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from jitdb.errors import QueryError
from jitdb.spark_ext import explain_log, read_log
from jitdb.spark_ext.conditions import question_of

VALUES = {
    "status": [200, 404, 500, 503, 2**53 + 1, None],
    "ms": [0.5, 3, -1.25, 1e300, None],
    "ok": [True, False, None],
    "user": ["ada", "bob", "", "5", 5, 5.0, True, {"a": 1}, "YWRh", None],
    "seq": [1, 2, 3],
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = random.Random(7)
    found = tmp_path_factory.mktemp("conditions") / "x.ndjson"
    with open(found, "w") as file:
        for _ in range(2000):
            record = {name: chosen.choice(values) for name, values in VALUES.items() if chosen.random() < 0.9}
            file.write(json.dumps(record) + "\n")
    return found


ASKED = [
    "status >= 500",
    "500 < status",
    "status > 500.5",
    "status = 404",
    "status != 404",
    "status in (200, 503)",
    "status not in (200, 503)",
    "status between 201 and 499",
    "not (status between 201 and 499)",
    "status >= 9007199254740993",
    "status <=> 404",
    "status = 404L or ms < 0",
    "ms > 3",
    "ms <= 3",
    "ms = 3",
    "ms = 0.5D",
    "not (ms > 0.5D)",
    "ok",
    "not ok",
    "ok = false",
    "ok <> true",
    "user = 'ada'",
    "user != 'ada'",
    "user = '5'",
    "user = '5.0'",
    "user = 'true'",
    "user = 'YWRh'",
    "user in ('ada', '')",
    "not (user = 'ada' and status = 200)",
    "not (user = 'ada' or not (status < 500 and ok))",
    "status = null",
    "user is not null and ok",
    "1 = 1",
    "1 = 2",
    "status in (1,2,3,4,5,6,7,8,9,10,11,12,404)",
    "status not in (1,2,3,4,5,6,7,8,9,10,11,12,404)",
    "`seq_` = 2",
    "not (`seq_` >= 2)",
]


@pytest.mark.parametrize("text", ASKED)
def test_the_rows_of_the_filter(spark: Any, path: Path, text: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    every = read_log(spark, path)
    expected = [row["seq"] for row in every.filter(text).select("seq").collect()]
    found = read_log(spark, path, where=F.expr(text))
    assert found.columns == every.columns
    assert [row["seq"] for row in found.select("seq").collect()] == expected


def test_it_reaches_the_log(spark: Any, path: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    columns = {"code": "status", "who": ("user", "string")}
    every = read_log(spark, path, columns)
    question = question_of(every, (F.col("code") >= 500) & (F.col("who") == "bob"))
    plan = explain_log(path, columns, question, indexes="build")
    found = read_log(spark, path, columns, (F.col("code") >= 500) & (F.col("who") == "bob"))
    assert plan.matches == found.count() > 0
    assert question_of(every, F.lit(True)).__class__.__name__ == "Everything"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("user like 'a%'", "Spark's StartsWith"),
        ("lower(user) = 'a'", "Spark's Lower"),
        ("user > 'a'", "a comparison of the type string"),
        ("user is null", "Spark's IsNull"),
        ("status = seq", "two columns"),
        ("seq > 5", "the column seq, which is no field"),
        ("status / 100 = 5", "Spark's Divide"),
        ("user = '[1]'", "a map or an array"),
        ("nothing = 1", "of no column of the table"),
    ],
)
def test_what_cannot_be_asked(spark: Any, path: Path, text: str, said: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    with pytest.raises(QueryError, match=said) as told:
        read_log(spark, path, where=F.expr(text))
    assert told.value.remedy is not None
