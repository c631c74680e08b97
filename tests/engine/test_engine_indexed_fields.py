"""Fields that come from indexes are those that the log has, of values of every kind, in any order and in any span."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_engine_spans import SMALL
from thoroughness import tries

import jitdb
from jitdb.cli.output.column_lines import objects, separated
from jitdb.engine.reading import indexed_fields
from jitdb.engine.reading.indexed_fields import IndexedFields
from jitdb.engine.reading.selecting import Selector
from jitdb.log.codecs.fields.located import FieldValues
from jitdb.operators import equal, gt, gte, not_

_numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.just(-0.0)
_texts = st.text(max_size=4) | st.sampled_from(["", "\ud800", "\udcff", "5", "2026-11-20T07:08:09Z", 'a"\n,'])
_scalars = st.none() | st.booleans() | _numbers | _texts | st.integers(0, 3)
_containers = st.lists(st.floats(0, 2), max_size=2) | st.dictionaries(st.sampled_from("ba"), st.integers(), max_size=2)
POOLS = {
    "numbers": _numbers,
    "small": st.integers(-3, 3),
    "texts": _texts,
    "scalars": _scalars,
    "any": _scalars | _containers,
    "map": st.fixed_dictionaries({"b": _scalars}),
}
BUILT = {
    "dictionary": lambda db, path: db.value_counts(path),
    "bitmaps": lambda db, path: db.count(equal(path, 1)),
    "column": lambda db, path: db.count(gt(1, path)),
}
NAMES = ["a", "b", "a.b", "number(a)", "time(b)"]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans of 64 records."""
    for name in ("engine.building.scan", "indexes.kinds.set_builders", "indexes.files.index", "engine.catalog.carry"):
        importlib.import_module(f"jitdb.{name}")
    for name, module in list(sys.modules.items()):
        for constant, value in SMALL.items():
            if name.startswith("jitdb.") and hasattr(module, constant):
                monkeypatch.setattr(module, constant, value)


@contextmanager
def from_the_log() -> Iterator[None]:
    """As if indexes had no fields."""
    with mock.patch.object(IndexedFields, "of", return_value=None):
        yield


def told(db: jitdb.JITDB, asked: dict[str, Any], names: list[str], portion: int) -> list[Any]:
    """What is made of the fields: rows, CSV, JSON, and Arrow's columns."""

    def batches() -> Iterator[Any]:
        return db.field_batches(select=names, limit=portion, **asked)

    limited = {**asked, "limit": 7}
    arrow = db.arrow(select=names, **asked)
    table, part = arrow.table(), db.arrow(select=names, **limited).table()
    return [
        repr([list(batch.rows()) for batch in batches()]),
        b"".join(separated(names, batches(), "csv", escaping=True)),
        b"".join(objects(names, batches())),
        str(table.schema), repr(table.to_pydict()), repr(part.to_pydict()),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore::jitdb.errors.MalformedWarning")
@pytest.mark.parametrize("is_small", [False, True])
@settings(max_examples=tries(25, 800), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_they_are_those_of_the_log(
    is_small: bool, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    if is_small:
        request.getfixturevalue("small")
    pools = [POOLS[data.draw(st.sampled_from(list(POOLS)), "pool")] for _ in range(2)]
    few = st.lists(st.tuples(*(pool | st.just(...) for pool in pools), st.integers(0, 99)), min_size=1, max_size=9)
    rows = data.draw(few, "rows")
    times = data.draw(st.integers(1, 40), "times") if is_small else 1
    lines = []
    for number in range(times):
        for a, b, at in rows:
            record = {"a": a, "b": b, "timestamp": 1_700_000_000_000 + at + 3 * number}
            lines.append(json.dumps({key: value for key, value in record.items() if value is not ...}))
            if at == 50:
                lines.append("{broken")  # counts as deleted
    path = tmp_path_factory.mktemp("fields") / "x.ndjson"
    path.write_text("\n".join(lines) + "\n")
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True), "names")
    with jitdb.open(path, indexes="memory", progress=False) as db:
        for name in names:
            BUILT[data.draw(st.sampled_from(list(BUILT)), name)](db, name)
        asked: dict[str, Any] = {
            "descending": data.draw(st.booleans()),
            "sort_by": data.draw(st.sampled_from(["declared", "arrival", "-b"])),
            "start_from": data.draw(st.sampled_from([0, 2])),
            "as_of": data.draw(st.sampled_from([None, len(lines[0])])),
        }
        where = data.draw(st.sampled_from([None, gte(1_700_000_000_040, "timestamp"), not_(equal("a", 1))]))
        if where is not None:
            asked["question"] = where
        portion = data.draw(st.sampled_from([3, 1000]), "portion")
        found = told(db, asked, names, portion)
        with from_the_log():
            assert found == told(db, asked, names, portion)


def write(path: Path, count: int, begin: int = 0) -> None:
    with path.open("a") as file:
        for n in range(begin, begin + count):
            record = {"n": n, "kind": f"k{n % 7}", "x": n / 4, "tags": [n], "timestamp": 1_700_000_000_000 + n * 7 % 50}
            file.write(json.dumps(record) + "\n")


@pytest.mark.parametrize("built", ["dictionary", "bitmaps", "column"])
def test_the_log_is_not_read(built: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    write(path, 200)
    name = "kind" if built == "bitmaps" else "n"
    with jitdb.open(path, progress=False) as db:
        BUILT[built](db, name)
        wanted = [record[name] for record in db.query()]
        with mock.patch.object(Selector, "read", side_effect=AssertionError):
            assert [row[name] for batch in db.field_batches(select=[name]) for row in batch.rows()] == wanted
            write(path, 50, 200)
            db.refresh()
            rows = [row[name] for batch in db.field_batches(select=[name]) for row in batch.rows()]
        assert rows == [record[name] for record in db.query()]


def test_what_indexes_do_not_have_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    write(path, 100)
    with jitdb.open(path, progress=False) as db:
        for name in ("n", "tags"):
            db.value_counts(name)
        for names in (["n", "x"], ["n", "tags"], ["tags[]"], ["tags[0]"]):
            read = mock.Mock(side_effect=Selector.read, autospec=True)
            with mock.patch.object(Selector, "read", lambda *given, read=read: read(*given)):
                rows = [row for batch in db.field_batches(select=names) for row in batch.rows()]
            assert read.called
            assert len(rows) == 100


def test_offsets_are_known_where_they_are_asked_for(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "x.ndjson"
    write(path, 100)
    with jitdb.open(path, progress=False) as db:
        db.value_counts("n")
        table = db.arrow(select=["n"], places=["seqs", "offsets"]).table()
        assert table.column("offsets").to_pylist() == list(db.query().as_offsets())
        with pytest.raises(jitdb.errors.QueryError, match="the record at offset 0 has a value in `n`"):
            db.arrow(select=["n"], schema=pyarrow.schema([("n", pyarrow.bool_())])).table()


def test_segments_that_do_not_fit_are_read_again_some_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the order leads to and fro between them, the log is read."""
    request_small(monkeypatch)
    monkeypatch.setattr(indexed_fields, "_HELD", 0)
    path = tmp_path / "x.ndjson"
    with path.open("w") as file:
        for n in range(500):
            file.write(json.dumps({"n": n, "timestamp": 1_700_000_000_000 + n * 7919 % 500}) + "\n")
    with jitdb.open(path, progress=False) as db:
        db.value_counts("n")
        found = [row["n"] for batch in db.field_batches(select=["n"], limit=10) for row in batch.rows()]
        assert found == [record["n"] for record in db.query()]


def request_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("jitdb.") and hasattr(module, "SPAN"):
            monkeypatch.setattr(module, "SPAN", 64)


def test_numbers_beside_nothing_are_read(tmp_path: Path) -> None:
    """A column does not tell NaN from null, or null from nothing."""
    path = tmp_path / "x.ndjson"
    path.write_text('{"n": 1}\n{"n": null}\n{}\n{"n": 2}\n')
    with jitdb.open(path, progress=False) as db:
        db.count(gt(0, "n"))
        assert [row for batch in db.field_batches(select=["n"]) for row in batch.rows()] == [
            {"n": 1}, {"n": None}, {}, {"n": 2}
        ]  # fmt: skip


def test_a_batch_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    write(path, 3)
    with jitdb.open(path, progress=False) as db:
        db.value_counts("n")
        assert not list(db.field_batches(equal("n", 99), select=["n"]))
        assert isinstance(next(iter(db.field_batches(select=["n"]))).values(0), FieldValues)
