"""A log as a LazyFrame: what is read of it, when, what it costs to know its columns, and SQL over it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.engine.reading.field_batches import FieldBatches, LeafPaths
from jitdb.engine.reading.known_columns import FILE
from jitdb.errors import QueryError
from jitdb.tables import scan_jitdb

pl = pytest.importorskip("polars")


def event(number: int) -> dict[str, Any]:
    return {
        "time": f"2026-11-20T08:{number // 60 % 60:02}:{number % 60:02}Z",
        "level": ("info", "error", "info", "warn")[number % 4],
        "user": {"name": f"u{number % 7}"},
        "ms": number / 8,
    }


def written(path: Path, events: list[Any], mode: str = "w") -> Path:
    with path.open(mode) as file:
        file.writelines(f"{json.dumps(each)}\n" for each in events)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "events.ndjson", list(map(event, range(1000))))


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records each look at columns goes through."""
    found: list[int] = []
    data, look = LeafPaths._data, LeafPaths.look

    def of_look(self: LeafPaths) -> Any:
        found.append(0)
        return look(self)

    def of_page(self: LeafPaths, records: Any, at: Any) -> list[int]:
        found[-1] += len(at.seqs)
        return data(self, records, at)

    monkeypatch.setattr(LeafPaths, "look", of_look)
    monkeypatch.setattr(LeafPaths, "_data", of_page)
    return found


def test_columns_conditions_and_limits_of_a_file(path: Path) -> None:
    frame = scan_jitdb(path)
    schema = {"time": pl.Datetime("ns", "UTC"), "level": pl.String, "user.name": pl.String, "ms": pl.Float64}
    assert dict(frame.collect_schema()) == schema
    assert frame.select("ms", "level").head(3).collect().rows() == [(0.0, "info"), (0.125, "error"), (0.25, "info")]
    errors = frame.filter(pl.col("level") == "error", pl.col("ms") > 100)
    assert errors.select(pl.len()).collect().item() == 50
    assert errors.head(2).select("user.name").collect().rows() == [("u3",), ("u0",)]
    grouped = errors.group_by("user.name").agg(pl.col("ms").max()).sort("user.name").collect()
    assert grouped.rows()[0] == ("u0", 121.625)


def test_only_the_columns_that_are_asked_for_are_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame, read = scan_jitdb(path), []
    batch = FieldBatches._batch

    def told(self: FieldBatches, records: Any, at: Any) -> Any:
        read.append(([name for name, _ in self._question.select or ()], len(at.live)))
        return batch(self, records, at)

    monkeypatch.setattr(FieldBatches, "_batch", told)
    assert len(frame.filter(pl.col("user.name") == "u3").select("ms").collect()) == 143
    assert read == [(["user.name", "ms"], 143)]


def test_a_condition_of_jitdb_beside_those_of_polars(path: Path) -> None:
    frame = scan_jitdb(path, ["ms", "level"], where='level >= "warn"')
    assert frame.filter(pl.col("ms") < 1).collect().rows() == [
        (0.125, "error"), (0.375, "warn"), (0.625, "error"), (0.875, "warn"),
    ]  # fmt: skip


def test_what_came_since_is_in_the_next_answer(path: Path) -> None:
    frame = scan_jitdb(path).filter(pl.col("level") == "error").select(pl.len())
    assert frame.collect().item() == 250
    written(path, [event(1001), {"level": "error", "new": 1}], "a")
    assert frame.collect().item() == 252
    assert "new" in scan_jitdb(path).collect_schema()


def test_a_later_value_that_its_column_does_not_take_is_an_error(path: Path) -> None:
    frame = scan_jitdb(path)
    written(path, [{"level": "error", "ms": "late"}], "a")
    with pytest.raises(Exception, match="has a value in `ms` that is no double"):
        frame.collect()
    assert scan_jitdb(path).collect_schema()["ms"] == pl.String


def test_a_set_of_logs_with_the_fields_of_its_paths(tmp_path: Path) -> None:
    for day, part in (("19", range(10)), ("20", range(10, 15))):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        written(folder / "a.ndjson", list(map(event, part)))
        written(folder / "b.ndjson", [{"level": "error", "other": day}])
    frame = scan_jitdb(tmp_path, labelled=True)
    assert {"_path": pl.String, "day": pl.Int64, "other": pl.String}.items() <= dict(frame.collect_schema()).items()
    errors = frame.filter(pl.col("level") == "error")
    assert errors.group_by("day").len().sort("day").collect().rows() == [(19, 4), (20, 2)]
    assert frame.filter(pl.col("day") == 20, pl.col("ms") > 1.5).select("ms").collect().rows() == [(1.625,), (1.75,)]
    assert frame.filter(pl.col("_path").str.ends_with("19/b.ndjson")).collect()["other"].to_list() == ["19"]
    assert len(scan_jitdb([tmp_path / "day=19" / "a.ndjson", tmp_path / "day=20" / "a.ndjson"]).collect()) == 15


def test_a_thousand_small_files_are_read_together(tmp_path: Path) -> None:
    for number in range(300):
        written(tmp_path / f"{number:03}.ndjson", [event(number)])
    frame = scan_jitdb(tmp_path)
    assert sorted(frame.filter(pl.col("ms") >= 37).collect()["ms"].to_list()) == [37, 37.125, 37.25, 37.375]
    written(tmp_path / "007.ndjson", [{**event(7), "ms": 99}])
    assert sorted(frame.filter(pl.col("ms") >= 37.2).collect()["ms"].to_list()) == [37.25, 37.375, 99]


def test_times_in_larger_units(path: Path) -> None:
    frame = scan_jitdb(path, times="us")
    assert frame.collect_schema()["time"] == pl.Datetime("us", "UTC")
    late = pl.col("time") >= pl.lit("2026-11-20T08:16:00Z").str.to_datetime(time_unit="us", time_zone="UTC")
    assert frame.filter(late).select(pl.len()).collect().item() == 40
    written(path, [{"time": "2026-11-20T08:00:00.000000001Z"}], "a")
    with pytest.raises(Exception, match="that is no timestamp"):
        frame.collect()
    with pytest.raises(QueryError, match="times= is the unit"):
        scan_jitdb(path, times="s")  # type: ignore[arg-type]


def test_sql_of_duckdb_is_handed_down(path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    frame = scan_jitdb(path, times="us")  # noqa: F841
    asked = """select "user.name", count(*) from frame where level = 'error' and "user.name" in ('u1', 'u2')
        and time >= timestamptz '2026-11-20T08:10:00Z' group by 1 order by 1"""
    assert duckdb.sql(asked).fetchall() == [("u1", 14), ("u2", 14)]
    names = [index.name for index in jitdb.open(path).indexes().rows]
    assert {"level", "user.name", "time"} <= set(names), names


# --- which columns there are -----------------------------------------------------------------------------------------


def test_columns_are_known_to_later_processes_and_only_new_records_looked_at(path: Path, looked_at: list[int]) -> None:
    def columns() -> dict[str, str]:
        with jitdb.open(path) as db:
            return {each.name: str(each.type) for each in db.table_columns()}

    first = columns()
    assert (
        columns()
        == first
        == {"time": "timestamp[ns, tz=UTC]", "level": "string", "user.name": "string", "ms": "double"}
    )
    assert looked_at == [1000]
    written(path, [{"time": "soon", "ms": 1, "size": 2**63}, {"size": 1}], "a")
    assert columns() == {**first, "time": "string", "size": "uint64"}
    written(path, [{"size": -1}], "a")
    assert columns()["size"] == "double"
    assert looked_at == [1000, 2, 1]


def test_a_damaged_file_of_columns_is_made_anew(path: Path, looked_at: list[int]) -> None:
    with jitdb.open(path) as db:
        found = db.table_columns()
    (file,) = path.parent.glob(f".jitdb/*/indexes/{FILE}")
    data = file.read_bytes()
    for wrong in (b"", data[:-1], data.replace(b'"end"', b'"and"'), data[:20] + b"\0" + data[21:]):
        file.write_bytes(wrong)
        with jitdb.open(path) as db:
            assert db.table_columns() == found
        assert file.read_bytes() == data
    assert looked_at == [1000] * 5


def test_columns_of_a_log_that_is_another_one_are_looked_at_anew(path: Path, looked_at: list[int]) -> None:
    with jitdb.open(path) as db:
        db.table_columns()
    with jitdb.open(path, timestamp="ms") as db:
        assert {each.name: str(each.type) for each in db.table_columns()}["ms"] == "timestamp[ns, tz=UTC]"
    written(path, [{"ms": True}])
    with jitdb.open(path) as db:
        assert [(each.name, str(each.type)) for each in db.table_columns()] == [("ms", "bool")]
    assert looked_at == [1000, 1000, 1]


def test_columns_of_a_log_that_is_compacted(tmp_path: Path) -> None:
    with jitdb.Log(tmp_path / "log") as log:
        offsets = [log.append({"a": value}) for value in (1, "x", 2.5)]
        log.flush()
        with jitdb.JITDB(log) as db:
            assert [str(each.type) for each in db.table_columns()] == ["string"]
            log.delete(offsets[1])
            log.flush()
            assert [str(each.type) for each in db.table_columns()] == ["string"]  # it may be wider than it had to be
            db.compact()
            assert [str(each.type) for each in db.table_columns()] == ["double"]


def test_fields_that_are_named(path: Path) -> None:
    with jitdb.open(path) as db:
        named = db.table_columns(["ms", "user", "tags[]"])
        assert [(each.name, str(each.type), each.is_as_it_stands) for each in named] == [
            ("ms", "double", True), ("user", "string", False), ("tags[]", "list<item: string>", True),
        ]  # fmt: skip
        frame = scan_jitdb(db, ["ms", "user", "tags[]"])
        assert frame.filter(pl.col("user") == '{"name":"u1"}').select(pl.len()).collect().item() == 143
    with pytest.raises(QueryError):
        scan_jitdb(path, [])


def test_what_it_takes_is_named_where_it_is_missing(path: Path) -> None:
    program = (
        "import sys; sys.modules['polars'] = None\n"
        "from jitdb.tables import scan_jitdb\n"
        f"scan_jitdb({os.fspath(path)!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'jitdb[polars]'" in done.stderr
