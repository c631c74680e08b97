"""Casts: `number(x)`, `time(x)`, `text(x)`, `json(x).a`, everywhere a field is, against the oracle."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Oracle, fields
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.common.paths import CASTS, format_path, parse_path
from jitdb.common.values import value_at, value_key, value_of_key, values_at
from jitdb.errors import QueryError
from jitdb.indexes.spec import IndexSpec
from jitdb.operators import (
    absent,
    contains,
    equal,
    everything,
    field,
    fits,
    format_expression,
    from_json,
    gt,
    gte,
    includes,
    lt,
    parse_expression,
    starts_with,
    to_json,
)
from jitdb.operators.nodes.selection import sort_keys

HELD: list[Any] = [
    None, True, False, 0, 2, 2.0, 0.5, -7, 1e300, 2**53 + 1, 2**64 - 1, -(2**63), "", "2", "2.0", "-7", "0.5", "x",
    "é\n", "12ms", "1h2m3.5s", "-1.5 s", "15µs", "1ms2",
    "1700000000", 1_700_000_000, 1_700_000_000_123, "2023-11-14T22:13:20Z", "2023-11-14 22:13:20.5",
    "0001-01-01", "14/Nov/2023:23:13:20 +0100", "9999-12-31T23:59:59.999999999Z", {"$date": 1_700_000_000_000}, [],
    [2, "2", "x"],
    '{"a": 2}', '{"a": "2", "b": {"c": [1, "2"]}}\n', ' {"a": {"b": "x"}} ', '{"a": 2', '{"a": 2} x', '"x"',
    "null", "[2]", '{"a": "{\\"a\\": 2}"}', '{"a": 12345678901234567890123}', '{"a": "\\ud800"}', '{"a": NaN}',
    '{"a": 1, "a": "2"}', '{"a": "2023-11-14"}', {"a": 2}, {"a": "2"},
    '[{"a": 2}, {"a": "3"}]', '{"a": [2, "2", {"a": 1}]}',
    "true", "took 5ms  by user12", "took <num>ms", "took 7s by\tada", "\udcff 5",
]  # fmt: skip
PATHS = [
    "number(x)", "time(x)", "text(x)", "json(x)", "json(x).a", "json(x).b.c[]", "json(x).a.b", "number(json(x).a)",
    "text(number(x))", "time(json(x).a)", "json(json(x).a).a", "number(x[])", "number(y.x)", "number(json(x)[].a)",
    "duration(x)", "duration(json(x).a)", "json(x).a[0]", "text(x[0])", "number(json(x).a[])",
    "pattern(x)", "pattern(json(x).a)", "pattern(x[])", "pattern(y.x)",
]  # fmt: skip

held = st.sampled_from(HELD)
records = st.lists(
    st.fixed_dictionaries({}, optional={"x": held, "y": st.fixed_dictionaries({"x": held})}), max_size=25
)
values = st.sampled_from(
    [2, "2", "took <num>ms", 0.5, "x", None, True, "2023-11-14T22:13:20Z", [2], {"a": 2}, "true", "1e+300", [], 3]
)
paths = st.sampled_from(PATHS).map(parse_path)
bounds = st.sampled_from([0, 2, 1e10, "2020-01-01"])
leaves = st.one_of(
    st.builds(equal, paths, values),
    st.builds(includes, paths, values),
    st.builds(absent, paths),
    st.builds(
        lambda f, v, p: f(v, p), st.sampled_from([gt, gte, lt]), st.sampled_from([0, 2, 1e10, "2020-01-01"]), paths
    ),
    st.builds(starts_with, paths, st.sampled_from(["", "2", "x", "2023"])),
    st.builds(contains, paths, st.sampled_from(["2", "x", "-"])),
    st.builds(lambda p, v: equal(p, v, prefix=32), paths, values),
    st.builds(fits, st.sampled_from(["x", "x[]", "json(x).a"]), st.sampled_from(["took <*> by <*>", "<num>", "<*>"])),
)
questions = st.one_of(
    leaves, st.builds(lambda a, b: a & ~b, leaves, leaves), st.builds(lambda a, b: a | b, leaves, leaves)
)


@pytest.fixture(scope="module", params=["json", "msgpack", "bipf"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder, number = tmp_path_factory.mktemp("casts"), iter(range(10**9))

    def make(found: list[Any]) -> tuple[JITDB, Oracle]:
        log = Log(folder / f"{next(number)}.log", codec=request.param)
        if request.param == "bipf":
            found = [
                json.loads(json.dumps(record).replace(str(2**64 - 1), "5").replace(str(2**53 + 1), "6"))
                for record in found
            ]
            found = json.loads(json.dumps(found).replace(str(-(2**63)), "-7"))
        offsets = log.append_many(found)
        log.flush()
        return JITDB(log, "memory", progress=False), Oracle(found, offsets, set())

    return make


def plain(value: Any) -> Any:
    """The value, whole numbers as integers: of a field it does not matter how they are written."""
    return value_of_key(value_key(value))


@settings(max_examples=tries(40, 1500), deadline=None)
@given(records, st.lists(questions, min_size=1, max_size=4), paths)
def test_random_questions(made: Any, found: list[Any], asked: list[Any], path: Any) -> None:
    db, oracle = made(found)
    with db:
        for question in asked:
            assert db.query(question).offsets() == [oracle.offsets[seq] for seq in oracle.ordered(question)]
            assert db.count(question) == len(oracle.matches(question))
            assert parse_expression(format_expression(question)) == question
            assert from_json(json.loads(json.dumps(to_json(question)))) == question
        if None not in path:
            keys = sort_keys("", [f"-{format_path(path)}"])
            seqs = oracle.sorted_by(everything(), keys)
            assert db.query().sort_by(*keys).offsets() == [oracle.offsets[seq] for seq in seqs]
            stats = db.stats(path)
            numbers = [number for record in oracle.records for number in fields(record, (*path, CASTS["number"]))]
            numbers = [number for number in numbers if number == number]
            assert (stats.count, stats.max) == (len(numbers), max(numbers, default=None))
        rows = db.query().sort_by_arrival().select(format_path(path)).all()
        for row, record in zip(rows, oracle.records, strict=True):
            expected = fields(record, path)
            listed = [expected] if expected and None in path else expected
            assert repr([plain(value) for value in row.values()]) == repr([plain(value) for value in listed])
            assert repr(list(values_at(record, path))) == repr(expected)
        counts = db.value_counts(path)
        assert counts.missing == sum(not fields(record, path) for record in oracle.records)


@pytest.mark.parametrize("text", PATHS)
def test_paths_are_written_and_read(text: str) -> None:
    path = parse_path(text)
    assert format_path(path) == text
    assert field(text).path == path == parse_path(list(path)) == pickle.loads(pickle.dumps(path))
    spec = IndexSpec("auto", (path,))
    assert IndexSpec.from_descriptor(json.loads(json.dumps(spec.descriptor()))) == spec
    assert parse_expression(f"{text} == 2") == equal(text, 2)


def test_an_index_of_times_that_an_earlier_version_took_is_of_no_use() -> None:
    spec = IndexSpec("dictionary", (("at", CASTS["time"]),))
    descriptor = spec.descriptor()
    assert IndexSpec.from_descriptor(dict(descriptor)) == spec
    times = descriptor.pop("times")
    for earlier in ({}, {"times": times - 1}):
        with pytest.raises(TypeError):
            IndexSpec.from_descriptor(descriptor | earlier)
    assert "times" not in IndexSpec("dictionary", (("at", CASTS["number"]),)).descriptor()


def test_in_python() -> None:
    assert (field("status").as_number() == 502) == equal("number(status)", 502)
    assert field("log").as_json()["level"].path == parse_path("json(log).level")
    assert field("a").as_text().contains("x") == contains("text(a)", "x")
    assert (field("t").as_time() > "2026-11-20") == gt("2026-11-20", "time(t)")
    assert -field("a").as_number() == sort_keys("", ["-number(a)"])[0]
    assert value_at({"a": "5"}, parse_path("number(a)")) == 5


@pytest.mark.parametrize("wrong", ["number()", "number(a", "number(a)b", "json(a)x", "number(a).b.", "time(text(a)"])
def test_what_is_no_path(wrong: str) -> None:
    if wrong == "number(a).b.":
        assert parse_path(wrong)[-1] == ""
        return
    with pytest.raises(QueryError):
        parse_path(wrong)
    with pytest.raises(QueryError):
        parse_expression(f"{wrong} == 1")


def test_from_a_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jitdb.cli import main

    path = tmp_path / "x.ndjson"
    lines = [{"log": '{"level":"error","took":"0.5"}\n', "status": "502"}, {"log": "plain\n", "status": 404}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run(*arguments: str) -> str:
        assert main([arguments[0], str(path), *arguments[1:]]) == 0
        return capsys.readouterr().out

    assert run("count", 'json(log).level == "error" and number(json(log).took) < 1') == "1\n"
    assert run("count", "number(status) == 502") == "1\n"
    assert run("count", 'text(status) starts_with "4"') == "1\n"
    assert json.loads(run("values", "json(log).level", "--format", "json"))["missing"] == 1
    assert '{"statistic":"max","number(status)":502}' in run("stats", "number(status)", "--format", "json")
    out = run("query", "--sort", "-number(status)", "--fields", "number(status),json(log).level")
    assert out.split("\n")[0] == '{"number(status)":502,"json(log).level":"error"}'
    with jitdb.open_many(tmp_path, progress=False) as logs:
        assert logs.count(parse_expression("number(status) >= 404")) == 2
