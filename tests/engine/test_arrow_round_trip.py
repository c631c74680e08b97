"""Tables go into a log and come back as they were: Arrow, log, Arrow; log, Arrow, log."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import tries

from jitdb import JITDB, Log
from jitdb.errors import InvalidRecord, MissingLibrary
from jitdb.operators import field

pa = pytest.importorskip("pyarrow")

TIMES = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1), timezones=st.just(datetime.UTC))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
TYPES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "natural": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "double": (pa.float64(), st.floats().map(lambda number: number + 0.0)),  # -0.0 is 0.0 (docs/dataframes.md)
    "bool": (pa.bool_(), st.booleans()),
    "text": (pa.string(), TEXT),
    "bytes": (pa.binary(), st.binary(max_size=5)),
    "time": (pa.timestamp("us", "UTC"), TIMES),
    "list": (pa.list_(pa.int64()), st.lists(st.integers(-5, 5) | st.none(), max_size=3)),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.integers(0, 9), "b": TEXT}),
    ),
}


@settings(max_examples=tries(25, 500), deadline=None)
@given(data=st.data(), codec=st.sampled_from(["msgpack", "bipf"]))
def test_arrow_log_arrow(data: st.DataObject, codec: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    known = (
        sorted(TYPES) if codec == "msgpack" else sorted(TYPES.keys() - {"whole", "natural", "double"})
    )  # bipf's limits
    names = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True))
    count = data.draw(st.integers(0, 8))
    columns = {
        name: pa.array(data.draw(st.lists(TYPES[name][1] | st.none(), min_size=count, max_size=count)), TYPES[name][0])
        for name in names
    }
    table = pa.table(columns)
    with Log(tmp_path_factory.mktemp("trip") / "log", codec=codec) as log:
        assert log.append_arrow(table) == count
        log.flush()
        asked = JITDB(log, "memory").query().sort_by_arrival()
        back = asked.to_arrow(table.schema)
        assert repr(back.to_pylist()) == repr(table.to_pylist())  # NaN is NaN
        assert back.schema == table.schema
        values = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
        if not {"time", "struct"} & set(names):
            assert repr([record.value for record in log.stream()]) == repr(values)


def test_log_arrow_log(tmp_path: Path) -> None:
    records = [
        {"n": n, "time": f"2026-11-20T08:00:{n % 60:02}Z", "text": "grün" * (n % 3), "tags": ["a"] * (n % 3)}
        for n in range(20_000)
    ]
    with Log(tmp_path / "one") as one, Log(tmp_path / "two") as two:
        one.append_many(records)
        one.flush()
        asked = JITDB(one).query(field("n") < 19_990)
        for table in (asked.sort_by_arrival().to_arrow(), asked.sort_by_arrival()):
            assert two.append_arrow(table) == 19_990
        two.flush()
        found = [record.value for record in two.stream()]
        assert found == 2 * records[:19_990]


def test_other_tables(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    with Log(tmp_path / "log") as log:
        assert log.append_arrow(polars.DataFrame({"a": [1, None], "b": ["x", "y"]})) == 2
        assert log.append_arrow(pa.table({"a": [3]}).to_reader()) == 1
        assert log.append_arrow(pa.table({"c": [{"d": [1.5, None]}]})) == 1
        log.flush()
        values = [record.value for record in log.stream()]
        assert values == [{"a": 1, "b": "x"}, {"b": "y"}, {"a": 3}, {"c": {"d": [1.5, None]}}]
        with pytest.raises(InvalidRecord, match="rows come from a table"):
            log.append_arrow([{"a": 1}])


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    with Log(tmp_path / "log") as log:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(MissingLibrary, match="jitdb\\[arrow\\]"):
            log.append_arrow(None)
