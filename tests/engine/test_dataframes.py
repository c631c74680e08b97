"""Answers as columns of other programs hold what a program finds that decodes each record."""

from __future__ import annotations

import asyncio
import builtins
import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.common.json_text import json_of
from jitdb.common.values import UNDEFINED, value_at
from jitdb.display.columns import leaf_fields
from jitdb.errors import MissingLibrary, QueryError
from jitdb.operators import count, field, from_db, query, to_arrow, to_pandas, to_polars, where

pa = pytest.importorskip("pyarrow")

START = datetime(2026, 11, 1, tzinfo=UTC)


def event(number: int) -> dict[str, Any]:
    record: dict[str, Any] = {
        "time": (START + timedelta(seconds=(number * 7919) % 1009, microseconds=number)).isoformat(),
        "level": ("info", "error", "info", "warning")[number % 4],
        "user": {"name": f"user {number % 5}", "age": number % 60},
        "size": number * 1000,
        "took": number / 8,
        "tags": [f"t{number % 3}", "all"],
        "mixed": (number, f"n{number}", None, [number], {"n": number}, True)[number % 6],
    }
    if number % 5 == 0:
        del record["size"]
        record["user"]["rare"] = number % 2 == 0
    return record


EVENTS = [event(number) for number in range(60)]


@pytest.fixture(params=["msgpack", "bipf", "json", "lines", "lines each"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JITDB]:
    path = tmp_path / "events"
    if request.param.startswith("lines"):
        path = path.with_suffix(".ndjson")
        text = [json.dumps(each) for each in EVENTS]
        each = request.param == "lines each"
        path.write_text("\n".join([f'{{"all": [{", ".join(text)}]}}'] if each else text) + "\n")
        opened = jitdb.open(path, "memory", each="all[]") if each else jitdb.open(path, "memory")
    else:
        with Log(path, codec=request.param) as log:
            log.append_many(EVENTS)
        opened = jitdb.open(path, "memory", read_only=True)
    with opened as found:
        yield found


def rows(table: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]


def whole(value: Any) -> Any:
    """Fields hold numbers: 2.0 is 2."""
    return int(value) if isinstance(value, float) and abs(value) <= 2**63 and value == int(value) else value


def plain(record: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """What the columns hold of a record: times as such, and of fields of several kinds the JSON."""
    found = {name: value_at(record, tuple(name.split("."))) for name in names}
    if "mixed" in found and not isinstance(found["mixed"], str | None) and found["mixed"] is not UNDEFINED:
        found["mixed"] = json_of(found["mixed"])
    if "time" in found:
        found["time"] = datetime.fromisoformat(found["time"])
    return {name: value for name, value in found.items() if value is not UNDEFINED and value is not None}


NAMES = ["time", "user.name", "user.rare", "size", "took", "tags", "mixed"]


async def arrow_of(asked: Any) -> Any:
    return await asked.to_arrow(NAMES)


@pytest.mark.parametrize(
    "change",
    [
        lambda asked: asked,
        lambda asked: asked.where(field("level") == "info"),
        lambda asked: asked.descending(),
        lambda asked: asked.sort_by("-user.age", "took"),
        lambda asked: asked.sort_by_arrival().start_from(7),
        lambda asked: asked.where(field("level") == "nobody's"),
    ],
)
def test_a_table_has_what_the_records_have(db: JITDB, change: Callable[[Any], Any]) -> None:
    asked = change(db.query())
    wanted = [plain(record, NAMES) for record in asked.all()]
    assert rows(asked.to_arrow(NAMES)) == wanted
    assert rows(asked.to_arrow(NAMES, limit=5)) == wanted[:5]
    assert rows(asked.select(*NAMES).to_record_batches().read_all()) == wanted
    assert rows(pa.table(asked.select(*NAMES))) == wanted
    assert rows(asyncio.run(arrow_of(asked.aio))) == wanted


def test_types_are_told_by_the_values(db: JITDB) -> None:
    schema = db.query().to_arrow(NAMES).schema
    assert [str(each.type) for each in schema] == [
        "timestamp[ns, tz=UTC]", "string", "bool", "int64", "double", "list<item: string>", "string",
    ]  # fmt: skip
    assert pa.schema(db.query().select(*NAMES)) == schema
    assert str(db.query().to_arrow("time", times=False).schema.field("time").type) == "string"
    assert db.query().to_arrow("tags[]")["tags[]"].to_pylist()[0] == db.query().first()["tags"]


def test_columns_that_nobody_names_are_those_that_records_have(db: JITDB) -> None:
    table = db.query().to_arrow()
    assert table.column_names == list(leaf_fields(db.query().all()))
    assert db.query(field("level") == "nobody's").to_arrow().num_rows == 0


def test_pages_of_the_chain_are_as_long_as_they_say(db: JITDB) -> None:
    from jitdb.operators import paginate

    table = query(from_db(db), where(field("level") == "info"), paginate(4), to_arrow("took"))
    assert table["took"].to_pylist() == [record["took"] for record in db.query(field("level") == "info").page(4)]
    assert query(from_db(db), to_polars("took")).shape == (60, 1)
    assert query(from_db(db), to_pandas("took")).shape == (60, 1)


def test_other_libraries_take_answers_without_knowing_us(db: JITDB) -> None:
    polars, duckdb, pandas = (pytest.importorskip(name) for name in ("polars", "duckdb", "pandas"))
    asked = db.query(field("level") == "info").select("size", "user.name")
    wanted = [(record.get("size"), record["user"]["name"]) for record in db.query(field("level") == "info").all()]
    assert pa.table(asked).num_rows == len(wanted)
    assert polars.DataFrame(asked).rows() == wanted
    assert polars.from_arrow(asked).struct.unnest().rows() == wanted  # a Series of structs
    assert asked.to_polars().rows() == wanted
    assert duckdb.sql("select * from asked").fetchall() == wanted
    assert duckdb.sql('select "user.name", count(*) from asked group by 1 order by 1').fetchall()[0] == ("user 0", 6)
    frame = asked.to_pandas()
    assert str(frame.dtypes["size"]) == "Int64"
    assert [(None if size is pandas.NA else size, name) for size, name in frame.itertuples(index=False)] == wanted
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert pandas.DataFrame.from_arrow(asked).shape == (len(wanted), 2)


def test_arrays(db: JITDB) -> None:
    import numpy as np

    asked = db.query(field("level") == "info").descending()
    records, places = asked.all(), asked.offsets()
    found = asked.to_numpy("size", "took", "time", seqs=True, offsets=True)
    assert list(found) == ["seqs", "offsets", "size", "took", "time"]
    assert found["offsets"].tolist() == places
    ordered = db.query().sort_by_arrival().offsets()
    assert found["seqs"].tolist() == [ordered.index(place) for place in places]
    assert found["took"].tolist() == [record["took"] for record in records]
    sizes = [record.get("size", math.nan) for record in records]
    assert np.array_equal(found["size"], sizes, equal_nan=True)
    assert found["time"].dtype == "datetime64[ns]"
    assert asked.to_numpy(seqs=True, limit=3)["seqs"].tolist() == found["seqs"].tolist()[:3]
    assert db.query().to_numpy("user.age")["user.age"].dtype == "int64"
    with pytest.raises(QueryError, match="`level` is string"):
        asked.to_numpy("level")
    with pytest.raises(QueryError, match="none was given"):
        asked.to_numpy()


def test_what_is_no_table_is_refused(db: JITDB) -> None:
    for asked in (db.query().as_offsets(), db.query().live(), query(from_db(db), count())):
        with pytest.raises(QueryError):
            asked.to_arrow("size")
    with pytest.raises(QueryError, match="two columns of one name"):
        db.query().to_arrow(pa.schema([("size", pa.int64()), ("size", pa.int64())]))


def test_a_schema_says_the_types(db: JITDB) -> None:
    schema = pa.schema(
        [
            ("size", pa.int32()),
            ("user", pa.struct([("name", pa.string()), ("age", pa.int8())])),
            ("time", pa.timestamp("us", "UTC")),
            ("took", pa.string()),
        ]
    )
    table = db.query().sort_by_arrival().to_arrow(schema)
    assert table.schema == schema
    assert table["user"].to_pylist() == [
        {"name": record["user"]["name"], "age": record["user"]["age"]} for record in EVENTS
    ]
    assert table["time"].to_pylist() == [datetime.fromisoformat(record["time"]) for record in EVENTS]
    assert table["took"].to_pylist() == [json_of(whole(record["took"])) for record in EVENTS]
    for wrong in (("size", pa.int8()), ("took", pa.int64()), ("mixed", pa.int64()), ("time", pa.timestamp("s"))):
        with pytest.raises(QueryError, match=f"`{wrong[0]}` that is no"):
            db.query().to_arrow(pa.schema([wrong]))
    with pytest.raises(QueryError, match="no column of the type date32"):
        db.query().to_arrow(pa.schema([("time", pa.date32())]))


VALUES = {
    "late text": [1, 2, 3, 4, "text", 5],
    "late fraction": [1, 2**53, None, 4, 0.5],
    "late natural": [1, 2, 3, 2**64 - 1],
    "late nothing": [None, None, None, None],
    "late anything": [None, None, None, True],
    "late no time": ["2026-11-01", "2026-11-02T01:00Z", "2026-11-03", "soon"],
    "far times": ["2026-11-01", "0001-01-01", "2026-11-03"],
    "times": ["2026-11-01", None, "2026-11-02T01:00:00.123456789+01:00", "1969-12-31 23:59"],
    "empty lists first": [[], [], [], ["x"]],
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_another_kind_that_come_late_change_no_others(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jitdb.engine.reading import arrow_tables, field_batches

    values = VALUES[name]
    with Log(tmp_path / "log") as log:
        log.append_many([{"v": value} for value in values])
        log.flush()
        asked = JITDB(log, "memory").query()
        whole = asked.to_arrow("v")
        monkeypatch.setattr(field_batches, "ROWS", 2)
        assert asked.to_arrow("v").equals(whole)
        assert asked.to_record_batches("v").read_all().equals(whole)
        monkeypatch.setattr(arrow_tables, "_HELD", 1)
        assert asked.to_record_batches("v").read_all().equals(whole)
    kind = str(whole.schema.field("v").type)
    texts = [value if isinstance(value, str | None) else json_of(value) for value in values]
    wanted: list[Any] = texts if kind == "string" else values
    if kind.startswith("timestamp"):
        assert name == "times"
        assert whole["v"].cast(pa.int64()).to_pylist() == [1793491200 * 10**9, None, 1793577600123456789, -60 * 10**9]
    else:
        assert whole["v"].to_pylist() == wanted


WHOLE = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=4) | st.sampled_from(["2026-11-01", "2026-11-01T00:00:00.5Z", "-1", ""])
POOL = st.one_of(
    st.integers(-9, 9), st.floats(allow_nan=False), TEXTS, st.booleans(), st.none(), st.lists(TEXTS, max_size=2)
)


@settings(max_examples=tries(20, 1000), deadline=None)
@given(
    records=st.lists(st.fixed_dictionaries({}, optional={"a": POOL, "b": TEXTS, "c": WHOLE}), max_size=12),
    size=st.integers(1, 4),
)
def test_random_records(records: list[dict[str, Any]], size: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    from jitdb.engine.reading import field_batches

    path = tmp_path_factory.mktemp("random") / "records.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    before, field_batches.ROWS = field_batches.ROWS, size
    try:
        with jitdb.open(path, "memory") as db:
            asked = db.query().sort_by_arrival()
            table = asked.to_arrow(["a", "b", "c"], times=False)
            assert asked.to_record_batches(["a", "b", "c"], times=False).read_all().equals(table)
            timed = asked.to_arrow(["a", "b"])
    finally:
        field_batches.ROWS = before
    for name in ("a", "b", "c"):
        values = [record.get(name) for record in records]
        kinds = {type(value) for value in values if value is not None}
        if kinds == {list} or kinds <= {int, float} or kinds == {bool}:
            wanted = values
        else:
            wanted = [value if isinstance(value, str | None) else json_of(whole(value)) for value in values]
        assert table[name].to_pylist() == wanted
    for name in timed.column_names:
        values = [record[name] for record in records if record.get(name) is not None]
        are_times = bool(values) and all(isinstance(value, str) and value.startswith("2026") for value in values)
        assert str(timed.schema.field(name).type).startswith("timestamp") is are_times


def test_sets_of_logs_as_of_and_deleted(tmp_path: Path) -> None:
    for at in range(3):
        (tmp_path / f"{at}.ndjson").write_text("".join(json.dumps(each) + "\n" for each in EVENTS[at::3]))
    with jitdb.open_many(tmp_path, labelled=True) as logs:
        table = logs.query(field("level") == "info").to_arrow(["took", "_path", "time"])
        found = logs.query(field("level") == "info").all()
        assert table["took"].to_pylist() == [record["took"] for record in found]
        assert table["_path"].to_pylist() == [record["_path"] for record in found]
        assert str(table.schema.field("time").type) == "timestamp[ns, tz=UTC]"
        assert "_path" in logs.query().to_arrow().column_names
        with pytest.raises(QueryError, match="are of one log"):
            logs.query().to_numpy(seqs=True)
    with Log(tmp_path / "log") as log:
        places = log.append_many(EVENTS)
        log.flush()
        db = JITDB(log)
        assert db.query().as_of(places[9]).sort_by_arrival().to_arrow("took")["took"].to_pylist() == [
            each["took"] for each in EVENTS[:10]
        ]
        stream = db.query().sort_by_arrival().to_record_batches("took")
        db.delete(field("level") == "info")
        assert stream.read_all().num_rows == len(EVENTS)  # as of the call
        left = [each["took"] for each in EVENTS if each["level"] != "info"]
        assert db.query().sort_by_arrival().to_arrow("took")["took"].to_pylist() == left
        db.compact()
        assert db.query().sort_by_arrival().to_arrow("took")["took"].to_pylist() == left


@settings(max_examples=tries(12, 300), deadline=None)
@given(
    logs=st.lists(st.lists(st.none() | st.integers(-3, 3) | st.integers(2**60, 2**60 + 3), max_size=6), max_size=4),
    start=st.integers(0, 3),
    descending=st.booleans(),
    arrival=st.booleans(),
)
def test_columns_of_several_logs_are_in_the_order_of_their_records(
    logs: list[list[int | None]], start: int, descending: bool, arrival: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    (folder / "day=1").mkdir()
    for at, times in enumerate(logs):
        path = folder / ("day=1" if at % 2 else ".") / f"{at}.ndjson"
        records = [
            {"at": place, "v": at or None} | ({} if time is None else {"ts": time}) for place, time in enumerate(times)
        ]
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "last.ndjson").write_text('{"at": 0, "v": "text"}\n')
    with jitdb.open_many(folder, timestamp="ts", time_unit="ns") as found:
        asked = found.query().start_from(start)
        asked = asked.sort_by_arrival() if arrival else asked
        asked = asked.descending() if descending else asked
        names = ["_path", "day", "at", "v", "ts"]
        wanted = asked.select(*names).all()
        is_text = any(isinstance(record.get("v"), str) for record in wanted)
        for record in wanted:
            record.update({"v": json_of(record["v"])} if is_text and isinstance(record.get("v"), int) else {})
        table = asked.to_arrow(names, times=False)
        assert rows(table) == [{key: value for key, value in record.items() if value is not None} for record in wanted]
        assert asked.to_record_batches(names, times=False).read_all().equals(table)


def test_results_of_counting(db: JITDB) -> None:
    counts = db.value_counts("level")
    assert counts.to_arrow().to_pylist() == [
        {"level": row.value, "count": row.count, "share": row.count / 60} for row in counts
    ]
    assert pa.table(counts).equals(counts.to_arrow())
    assert counts.to_pandas()["count"].tolist() == list(counts.counts)
    mixed = db.value_counts("mixed")
    assert set(mixed.to_arrow()["mixed"].to_pylist()) == {
        row.value if isinstance(row.value, str | None) else json_of(row.value) for row in mixed
    }
    groups = db.group_count("level", "user.name").to_arrow()
    assert groups.column_names == ["level", "user.name", "count", "share"]
    bins = db.histogram("took")
    assert bins.to_arrow()["from"].to_pylist() == [row.low for row in bins]
    line = db.timeline(every="1m", by="level")
    table = line.to_arrow()
    assert table["time"].to_pylist() == [row.start for row in line]
    assert table["info"].to_pylist() == [row.counts[list(line.values).index("info")] for row in line]
    assert db.timeline(every="1m", tz="Europe/Berlin").to_arrow()["time"].to_pylist() == [row.start for row in line]
    stats = db.stats("took")
    assert stats.to_arrow().to_pylist()[0] | {"count": 60, "max": stats.max} == stats.to_arrow().to_pylist()[0]
    assert db.stats_by("took", "level").to_arrow().num_rows == 3
    assert db.fields().to_arrow()["field"].to_pylist()[0] == "time"
    nothing = field("level") == "nobody's"
    assert str(db.value_counts("level", nothing).to_arrow().schema.field("count").type) == "int64"
    assert db.timeline(nothing).to_arrow().num_rows == 0


def test_a_missing_library_is_named(db: JITDB, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    real = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "polars":
            raise ModuleNotFoundError("No module named 'polars'", name="polars")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingLibrary, match=r"pip install 'jitdb\[polars\]'") as told:
        db.query().to_polars("size")
    assert told.value.library == "polars"
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingLibrary, match=r"pip install 'jitdb\[arrow\]'"):
        db.query().to_arrow("size")


def test_importing_jitdb_imports_no_library() -> None:
    import subprocess
    import sys

    program = (
        "import jitdb, jitdb.operators.queries, sys; "
        "print([name for name in ('pyarrow', 'pandas', 'polars', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
