"""Rows whose columns indexes have: those that are read from the log, and the log is not read for them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from reading_cases import table_rows

import jitdb
from jitdb.spark_ext import explain_log
from jitdb.spark_ext.errors import CopyDiffers, LogChanged, RecordMismatch
from jitdb.spark_ext.file_range import FileRange

COLUMNS = {
    "level": ("level", "string"), "ms": ("ms", "double"), "user": ("user.id", "string"), "n": ("n", "long"),
}  # fmt: skip


def record(chosen: random.Random, number: int) -> dict[str, Any]:
    found: dict[str, Any] = {"n": number, "ms": chosen.choice([1, 2.5, -3, 1e300, 2**53 + 1]), "user": {}}
    if chosen.random() < 0.8:
        found["level"] = chosen.choice(["info", "error", "é", "", None])
    if chosen.random() < 0.8:
        found["user"]["id"] = f"u{chosen.randrange(900)}"
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    chosen = random.Random(11)
    found = tmp_path / "x.ndjson"
    found.write_text("".join(json.dumps(record(chosen, number)) + "\n" for number in range(4000)))
    with jitdb.open(found) as db:
        for text in ("level == 'error'", "user.id == 'u7'", "n > 3", "ms > 3", "user.id in ['u1', 'u2']"):
            db.count(text)
        list(db.value_counts("user.id"))
        list(db.value_counts("level"))
    return found


def both(path: Path, columns: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """The rows, which are the same with indexes and without."""
    found = table_rows(path, columns=columns, **options)
    assert found == table_rows(path, columns=columns, indexes="none", **options)
    return found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often lines are read."""
    found: list[int] = []
    original = FileRange.texts
    monkeypatch.setattr(FileRange, "texts", lambda self: (found.append(1), original(self))[1])
    return found


@pytest.mark.parametrize("names", [["level"], ["n"], ["level", "ms", "n"], ["ms", "user", "level"]])
@pytest.mark.parametrize("where", [None, "level == 'error'", "n >= 3990"])
def test_the_log_is_not_read(path: Path, names: list[str], where: str | None, reads: list[int]) -> None:
    columns = {name: COLUMNS[name] for name in names}
    plan = explain_log(path, columns, where, core="seq,offset")
    assert (plan.columns, plan.blocks_read, plan.bytes_read) == ("indexes", 0, 0)
    rows = table_rows(path, columns=columns, where=where, core="seq,offset")
    assert reads == []
    assert rows == table_rows(path, columns=columns, where=where, core="seq,offset", indexes="none")
    assert len(rows) == plan.matches
    assert reads


def test_several_batches(path: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitdb.spark_ext.reading.from_indexes.ROWS", 700)
    assert len(table_rows(path, columns={"level": COLUMNS["level"]}, core="seq")) == 4000
    assert reads == []


def test_what_indexes_lose_is_read(tmp_path: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitdb.spark_ext.reading.from_indexes.ROWS", 700)
    path = tmp_path / "x.ndjson"
    odd = {2000: '{"a": 1.0}', 3000: '{"a": {"c": 1.0, "b": [1]}}'}
    path.write_text("".join(odd.get(number, '{"a": "x"}') + "\n" for number in range(4000)))
    with jitdb.open(path) as db:
        db.count("a == 'x'")
    rows = table_rows(path, columns={"a": ("a", "string")}, core="seq")
    assert reads == [1]
    assert [row["seq"] for row in rows] == [*range(4000)]
    assert rows == table_rows(path, columns={"a": ("a", "string")}, core="seq", indexes="none")
    assert [row["a"] for row in rows if row["a"] != "x"] == ["1", '{"c":1.0,"b":[1]}']


def test_all_kinds_of_values_in_columns_of_each_type(tmp_path: Path, reads: list[int]) -> None:
    path = tmp_path / "x.ndjson"
    values = ["x", "é\ud83e\udd8a", "1", "", 1, 1.0, -0.0, 2.5, 1e300, 2**53 + 1, -(2**63), 2**63, True, False, None]
    path.write_text("".join(json.dumps({"a": value}) + "\n" for value in values * 20) + "{}\n")
    with jitdb.open(path) as db:
        db.count("a == 'x'")
    for kind in ("string", "double", "long", "int", "boolean", "binary"):
        columns = {"a": ("a", kind)}
        rows = table_rows(path, columns=columns, core="seq", mode="PERMISSIVE")
        assert reads == []
        assert repr(rows) == repr(table_rows(path, columns=columns, core="seq", mode="PERMISSIVE", indexes="none"))
        reads.clear()


def test_times(tmp_path: Path, reads: list[int]) -> None:
    path = tmp_path / "x.ndjson"
    values = ["2026-11-20T10:00:00.123456Z", "2026-11-20", "no time", 1_700_000_000_000, 1.5, None]
    path.write_text("".join(json.dumps({"a": value}) + "\n" for value in values * 20))
    with jitdb.open(path) as db:
        db.count("a == 'x'")
    columns = {"a": ("a", "timestamp")}
    rows = table_rows(path, columns=columns, core="seq", mode="PERMISSIVE")
    assert reads == []
    assert rows == table_rows(path, columns=columns, core="seq", mode="PERMISSIVE", indexes="none")
    assert sum(row["a"] is not None for row in rows) == 80


def test_a_value_that_does_not_fit(path: Path) -> None:
    with pytest.raises(RecordMismatch, match="at offset 0 does not fit the column 'n'") as indexed:
        table_rows(path, columns={"n": ("n", "boolean")}, core="seq")
    with pytest.raises(RecordMismatch) as read:
        table_rows(path, columns={"n": ("n", "boolean")}, core="seq", indexes="none")
    assert str(indexed.value) == str(read.value)


def test_columns_that_no_index_has(path: Path) -> None:
    for columns in (
        {"other": ("other", "string")},
        {"whole": ("*", "string")},
        {"level": COLUMNS["level"], "o": ("o", "int")},
    ):
        assert explain_log(path, columns, core="seq").columns == "log"
    assert explain_log(path, {"level": COLUMNS["level"]}).columns == "log"  # with the time
    assert explain_log(path, {"level": COLUMNS["level"]}, core="seq", indexes="none").columns == "log"
    with open(path, "a") as file:
        file.write('{"n": 1, "level": "new"}\n')
    assert explain_log(path, {"level": COLUMNS["level"]}, core="seq").columns == "log"
    assert both(path, {"level": COLUMNS["level"]}, core="seq")[-1]["level"] == "new"


def test_a_log_that_changed_since(path: Path) -> None:
    from jitdb.spark_ext.data_source import JitdbDataSource
    from jitdb.spark_ext.options import as_options

    options = as_options(None, {"level": COLUMNS["level"]}, None, {"core": "seq"})
    source = JitdbDataSource(options={**options, "path": str(path)})
    reader = source.reader(source.schema())
    (partition,) = reader.partitions()
    path.write_text(path.read_text().replace("error", "fatal"))
    with pytest.raises((LogChanged, CopyDiffers)):
        list(reader.read(partition))


def test_with_spark(spark: Any, path: Path) -> None:
    from jitdb.spark_ext import read_log

    frame = read_log(spark, path, {"level": COLUMNS["level"]}, core="")
    found = {row["level"]: row["count"] for row in frame.groupBy("level").count().collect()}
    with jitdb.open(path, read_only=True) as db:
        assert found["error"] == db.count("level == 'error'")
    assert sum(found.values()) == 4000
