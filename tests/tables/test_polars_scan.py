"""What Polars gets of a log when jitdb answers a part of its conditions is what it finds in all rows of the log."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from table_cases import BYTES, DOUBLES, INSTANTS, NEAR, ODD_DOUBLES, TEXTS, WHOLE, records
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.tables import scan_jitdb
from jitdb.tables.polars_conditions import kept_by
from jitdb.tables.table import Table

pl = pytest.importorskip("polars")
testing = pytest.importorskip("polars.testing")

_SIGNS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
_CLOSED = st.sampled_from(["both", "left", "right", "none"])
_PATTERNS = st.sampled_from(["a", "a.c", "^a", "b$", "(?i)AB", "1"])


def literals(kind: Any) -> st.SearchStrategy[Any]:
    """Values that a column of this type is compared with."""
    if kind.is_numeric():
        return st.one_of(NEAR, WHOLE, DOUBLES, ODD_DOUBLES)
    return {pl.String: TEXTS, pl.Boolean: st.booleans(), pl.Binary: BYTES}.get(kind, INSTANTS)


@st.composite
def conditions(draw: st.DrawFn, schema: Any, depth: int = 2) -> Any:
    if depth and draw(st.integers(0, 2)):
        kind = draw(st.sampled_from(["and", "or", "not"]))
        one = draw(conditions(schema, depth - 1))
        if kind == "not":
            return ~one
        other = draw(conditions(schema, depth - 1))
        return one & other if kind == "and" else one | other
    name = draw(st.sampled_from([name for name in schema if name != "id"] or ["id"]))
    column, kind = pl.col(name), schema[name]
    if isinstance(kind, pl.List):
        value = draw(literals(kind.inner))
        return draw(st.sampled_from([column.list.contains(value), column.is_null(), column.list.len() > 1]))
    values = literals(kind)
    made = [
        st.builds(lambda sign, value: sign(column, value), st.sampled_from(_SIGNS), values),
        st.builds(lambda sign, value: sign(column, value), st.sampled_from(_SIGNS), values),
        st.builds(lambda sign, value: sign(pl.lit(value), column), st.sampled_from(_SIGNS), values),
        st.builds(
            lambda found: column.is_in(pl.Series(found, strict=False).implode()),
            st.lists(st.one_of(st.none(), values), min_size=1, max_size=3),
        ),
        st.builds(lambda low, high, closed: column.is_between(low, high, closed=closed), values, values, _CLOSED),
        st.builds(lambda value: column.eq_missing(value), values),
        st.sampled_from([column.is_null(), column.is_not_null()]),
    ]
    if kind == pl.String:
        made += [
            st.builds(column.str.starts_with, TEXTS),
            st.builds(column.str.ends_with, TEXTS),
            st.builds(lambda text: column.str.contains(text, literal=True), TEXTS),
            st.builds(column.str.contains, _PATTERNS),
            st.just(column.str.len_chars() > 1),
        ]
    if kind.is_numeric():
        made += [
            st.sampled_from([column.is_nan(), column.is_not_nan(), column > pl.col("id")]),
            st.builds(lambda sign, value: sign(column.cast(pl.Float64), value), st.sampled_from(_SIGNS), values),
        ]
    if kind == pl.Boolean:
        made += [st.just(column)]
    return draw(st.one_of(made))


@contextmanager
def opened(kind: str, held: list[dict[str, Any]], folder: Path) -> Iterator[Any]:
    """The records as a log of this kind."""
    for file in folder.iterdir():
        file.unlink()
    if kind == "msgpack":
        with Log(folder / "log", codec="msgpack") as log:
            log.append_many(held)
            log.flush()
            yield JITDB(log, "memory")
        return
    half = len(held) // 2
    parts = [held] if kind == "lines" else [held[:half], held[half:]]
    for number, part in enumerate(parts):
        (folder / f"{number}.ndjson").write_text("".join(f"{json.dumps(record)}\n" for record in part))
    if kind == "lines":
        with jitdb.open(folder / "0.ndjson", "memory") as db:
            yield db
    else:
        with jitdb.open_many(folder, "memory", labelled=True) as logs:
            yield logs


@pytest.mark.parametrize("kind", ["lines", "msgpack", "set"])
@settings(
    max_examples=tries(25, 5000), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(data=st.data())
def test_random_conditions_keep_the_rows_that_polars_keeps(kind: str, data: Any, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("logs")
    held = data.draw(records(binary=kind == "msgpack"))
    with opened(kind, held, folder) as db:
        frame = scan_jitdb(db)
        whole = frame.collect()
        assert len(whole) == len(held)
        testing.assert_frame_equal(whole, db.query().sort_by_arrival().to_polars(), check_row_order=kind != "set")
        for _ in range(4):
            condition = data.draw(conditions(frame.collect_schema()))
            try:
                expected = whole.filter(condition)
            except pl.exceptions.PolarsError:
                continue  # of what cannot be compared
            testing.assert_frame_equal(frame.filter(condition).collect(), expected)
            counted = frame.filter(condition).select(pl.len()).collect().item()
            assert counted == len(expected)


# --- each value with each condition ----------------------------------------------------------------------------------

STEP = tries(3, 1)  # of the conditions one in so many: each kind of them with some of the values
BIG = 2**53
VALUES: dict[str, list[Any]] = {
    "whole": [0, 1, -1, BIG - 1, BIG, BIG + 1, BIG + 2, BIG + 3, -BIG - 1, 2**62, 2**63 - 1, -(2**63), None],
    "natural": [0, 1, BIG + 1, 2**63, 2**64 - 1, None],
    "double": [0.5, -0.0, 0, 1, BIG - 1, BIG, BIG + 1, BIG + 2, BIG + 3, BIG + 5, -BIG - 1, 1e300, -1e300, 0.1, None],
    "text": ["", "a", "ab", "abc", "ABC", "1", "true", "null", "ä", "a.c", "\ufffd", "\ud800", "x\ud800a", None],
    "mixed": ["", "a", "1", 1, 1.5, True, "true", [1], "[1]", {"k": 1}, '{"k":1}', None],
    "yes": [True, False, None],
    "time": [
        "2026-11-20T08:00:00Z", "2026-11-20T08:00:00.000000001Z", "2026-11-20T09:00:00+01:00", "2026-11-20",
        "1970-01-01T00:00:00.5Z", None,
    ],
    "timestamp": [1763625600, 1763625600123, 1763625600.25, "1763625600", "2026-11-20T08:00:00Z", 0, 1, None],
    "numbers": [[], [1], [1, 2], [BIG + 1], None],
    "halves": [[], [0.5, BIG + 1], [1], None],
    "texts": [[], ["a"], ["a", "b"], ["\ufffd"], None],
    "any": [[], ["a", 1], ["1"], [True], None],
    "flags": [[], [True], [True, False], None],
}  # fmt: skip
ODD: dict[str, list[Any]] = {
    "odd": [0.5, float("nan"), float("inf"), float("-inf"), 2, BIG + 1, None],
    "odd whole": [1, 2, float("nan"), None],
    "bytes": [b"", b"a", b"\xff", None],
    "odds": [[0.5, float("nan")], [float("nan")], [1], None],
}
LITERALS: dict[Any, list[Any]] = {
    "number": [
        0, 1, -1, 0.5, 0.1, -0.0, 1.0, BIG - 1, BIG, BIG + 1, BIG + 2, BIG + 4, float(BIG), BIG + 2.0, -BIG - 1,
        2**63 - 1, 2**63, 2**64 - 1, -(2**63), 1e300, float("nan"), float("inf"), float("-inf"),
    ],
    pl.String: ["", "a", "ab", "c", "1", "1.5", "true", "null", "ä", "a.c", "[1]", '{"k":1}', "\ufffd", "b"],
    pl.Boolean: [True, False],
    pl.Binary: [b"", b"a", b"\xff"],
    pl.Datetime: [
        datetime(2026, 11, 20, 8, tzinfo=UTC), datetime(2026, 11, 20, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2025, 11, 20, 8, tzinfo=UTC),
    ],
}  # fmt: skip


def rows_of(values: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """A record for each value of each field."""
    return [{name: value} for name, found in values.items() for value in found]


def fitting(kind: Any) -> list[Any]:
    return LITERALS["number"] if kind.is_numeric() else LITERALS[kind.base_type()]


def each_condition(column: Any, kind: Any) -> Iterator[Any]:
    yield from (column.is_null(), column.is_not_null(), ~column.is_null())
    if isinstance(kind, pl.List):
        for value in fitting(kind.inner):
            yield from (column.list.contains(value), ~column.list.contains(value))
        return
    values = fitting(kind)
    for value in values:
        for sign in _SIGNS:
            yield sign(column, value)
            yield ~sign(column, value)
            if kind.is_numeric():
                yield sign(column.cast(pl.Float64), value)
        yield pl.lit(value) > column
        yield column.eq_missing(value)
        yield column.is_in(pl.Series([value, None], strict=False).implode())
        yield ~column.is_in(pl.Series([value], strict=False).implode())
    for low, high in pairwise(values):
        for closed in ("both", "left", "right", "none"):
            yield column.is_between(low, high, closed=closed)
            yield ~column.is_between(low, high, closed=closed)
    if kind.is_float():
        yield from (column.is_nan(), column.is_not_nan(), ~column.is_nan())
    if kind == pl.Boolean:
        yield from (column, ~column)
    if kind == pl.String:
        for text in values:
            for test in (
                column.str.starts_with(text),
                column.str.ends_with(text),
                column.str.contains(text, literal=True),
            ):
                yield from (test, ~test)
            yield column.str.contains(text, strict=False)


def check_each_condition(db: Any, only: Any = None) -> int:
    """That all conditions on all columns keep the rows that they keep of all; gives how many were handed down."""
    frame = scan_jitdb(db)
    whole, table, handed = frame.collect(), Table(db), 0
    for name, kind in whole.schema.items():
        for condition in islice(each_condition(pl.col(name), kind), 0, None, STEP):
            try:
                expected = whole.filter(condition)
            except pl.exceptions.PolarsError:
                continue
            asked = kept_by(condition, table.columns).true
            assert frame.filter(condition).collect().equals(expected), (condition, asked)
            handed += asked is not None
    return handed


def test_each_value_with_each_condition_in_a_file_of_lines(tmp_path: Path) -> None:
    with opened("lines", rows_of(VALUES), tmp_path) as db:
        assert scan_jitdb(db).collect_schema().len() == len(VALUES) + 1  # mixed.k
        assert check_each_condition(db) > 1000 // STEP


def test_each_value_with_each_condition_in_a_log_of_msgpack(tmp_path: Path) -> None:
    with opened("msgpack", rows_of(ODD), tmp_path) as db:
        assert check_each_condition(db) > 300 // STEP


def test_a_map_in_one_log_and_another_value_in_the_next(tmp_path: Path) -> None:
    (tmp_path / "0.ndjson").write_text('{"a": {"k": 1}}\n')
    (tmp_path / "1.ndjson").write_text('{"a": true}\n{"a": null}\n')
    with jitdb.open_many(tmp_path, "memory") as logs:
        found = scan_jitdb(logs).collect().sort("a.k", nulls_last=True)
    assert found["a"].to_list() == ['{"k":1}', "true", None]
    assert found["a.k"].to_list() == [1, None, None]
