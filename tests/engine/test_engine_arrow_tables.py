"""Arrow's columns hold what the records do: of random values, in batches of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import tries

from jitdb import JITDB, Log
from jitdb.errors import QueryError
from jitdb.operators.nodes.selection import selection

pytest.importorskip("pyarrow")

EDGES = st.sampled_from([0, -1, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1025, 2**64 - 1025, 2**64 - 1, -(2**63)])
WHOLE = st.integers(-(2**63), 2**63 - 1)
POOLS = {
    "whole": WHOLE,
    "natural": EDGES.filter(lambda value: value >= 0) | st.integers(0, 2**64 - 1),
    "any whole": EDGES | st.integers(-(2**63), 2**64 - 1),
    "double": st.floats(width=64) | st.integers(-5, 5),
    "bool": st.booleans(),
    "text": st.text(max_size=5),
    "bytes": st.binary(max_size=5),
    "list": st.lists(WHOLE | st.none(), max_size=3),
    "lists": st.lists(st.lists(st.text(max_size=2), max_size=2), max_size=2),
    "mixed": st.booleans() | st.integers(0, 9) | st.text(max_size=3) | st.lists(st.integers(0, 3), max_size=2),
    "map": st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2),
}

KINDS: dict[str, Callable[[list[Any]], str]] = {
    "whole": lambda there: "int64",
    "natural": lambda there: "uint64" if max(there) >= 2**63 else "int64",
    "any whole": lambda there: "int64" if max(there) < 2**63 else "double" if min(there) < 0 else "uint64",
    "bool": lambda there: "bool",
    "bytes": lambda there: "binary",
    "lists": lambda there: "list<item: list<item: string>>" if any(there) else "list<item: string>",
}


def expected(value: Any, kind: str) -> Any:
    """What a column of this type holds for a value."""
    if value is None:
        return None
    if kind.startswith("list<"):
        return [expected(item, kind.removeprefix("list<item: ").removesuffix(">")) for item in value]
    if kind == "double":
        return float(value) + 0.0  # fields give -0.0 as 0.0: docs/format-codecs.md
    if kind in ("int64", "uint64"):
        return int(value)
    if kind == "string" and not isinstance(value, str):
        from jitdb.common.json_text import json_of

        return json_of(value)
    return value


@settings(max_examples=tries(60, 2000), deadline=None)
@given(data=st.data())
def test_columns_hold_what_records_hold(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    from jitdb.engine.reading.arrow_tables import ArrowAnswer

    name = data.draw(st.sampled_from(list(POOLS)), "pool")
    pool = POOLS[name]
    values = data.draw(st.lists(pool | st.none() | st.just(...), min_size=1, max_size=12), "values")
    with Log(tmp_path_factory.mktemp("arrow") / "log", codec="msgpack") as log:
        log.append_many([{"n": at} if value is ... else {"n": at, "v": value} for at, value in enumerate(values)])
        log.flush()
        db = JITDB(log, "memory")
        size = data.draw(st.integers(1, 5), "size")

        def batches() -> Any:
            return db.field_batches(sort_by="arrival", select=["v"], limit=size)

        table = ArrowAnswer(selection("", ["v"]), batches).table()
        schema, found = table.schema, table.column(0).to_pylist()
        assert ArrowAnswer(selection("", ["v"]), batches).reader().read_all().equals(table) or name == "double"  # NaN
    kind = str(schema.field("v").type)
    there = [value for value in values if value is not None and value is not ...]
    if there and name in KINDS:
        assert kind == KINDS[name](there)
    wanted = [None if value is ... else expected(value, kind) for value in values]
    assert list(map(repr, found)) == list(map(repr, wanted)), kind  # so that NaN is NaN, and 1 is not 1.0


def test_a_type_that_takes_no_more_is_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    from jitdb.engine.reading.arrow_tables import ArrowAnswer

    with Log(tmp_path_factory.mktemp("arrow") / "log", codec="msgpack") as log:
        log.append_many([{"v": 1}])
        log.flush()
        db = JITDB(log, "memory")
        answer = ArrowAnswer(selection("", ["v"]), lambda: db.field_batches(select="v"))
        assert str(answer.schema().field("v").type) == "int64"
        log.append_many([{"v": "text"}])
        log.flush()
        with pytest.raises(QueryError, match="the log has grown"):
            answer.reader().read_all()
        with pytest.raises(QueryError, match="selected fields"):
            db.field_batches()
