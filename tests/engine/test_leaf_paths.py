"""The fields that the records of an answer have are found without decoding them: all of them, in their order."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitdb
from jitdb import JITDB, Log
from jitdb.display.columns import leaf_fields
from jitdb.engine.reading import field_batches as module
from jitdb.errors import QueryError
from jitdb.log.codecs.container_kernels import first_with_more
from jitdb.operators import equal, gt
from jitdb.operators.nodes.selection import named

CODECS = ["bipf", "msgpack", "json"]
KEYS = st.sampled_from(["a", "b", "ab", "a.b", "ü", "", "created at", 'q"', "\\", "c\n"])
VALUES = st.recursive(
    st.sampled_from([None, 1, 2.5, "x", "ü\n", True, [], {}, [{"a": 1}], -(2**63), "y" * 40]),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=6,
)
RECORDS = st.lists(st.dictionaries(KEYS, VALUES, max_size=4) | st.just(17), max_size=12)


def expected(records: list[Any]) -> list[Any]:
    return list(leaf_fields(records).values())


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=15, deadline=None)
@given(records=RECORDS, limit=st.integers(1, 5))
def test_they_are_those_of_the_decoded_records(
    tmp_path_factory: pytest.TempPathFactory, codec: str, records: list[Any], limit: int
) -> None:
    with Log(tmp_path_factory.mktemp("log") / "x.log", codec=codec) as log:
        log.append_many(records)
        log.flush()
        db = JITDB(log, "memory", progress=False)
        db.warns_of_questions = False
        ordered = db.query().sort_by_arrival()
        assert db.leaf_paths(ordered.question) == expected(records)
        assert db.leaf_paths(ordered.question.changed(limit=limit)) == expected(records[:limit])
        assert db.leaf_paths(ordered.descending().question.changed(limit=limit)) == expected(records[::-1][:limit])
        some = db.query(equal("a", 1)).sort_by_arrival()
        assert db.leaf_paths(some.question) == expected(some.all())


def deep(levels: int) -> Any:
    return {"k": deep(levels - 1)} if levels else {}


@pytest.mark.parametrize("codec", CODECS)
def test_depths_and_odd_keys(tmp_path: Path, codec: str) -> None:
    records = [deep(levels) for levels in range(12)]
    records += [{"a": {}}, {"a": {"b": {}}}, {"a": 1}, {"": 1}, {"": {"": 1}}, {"x" * 300: {"y" * 70_000: 1}}]
    with Log(tmp_path / "x.log", codec=codec, block_size=1 << 20) as log:
        log.append_many(records)
        log.flush()
        assert JITDB(log, progress=False).leaf_paths() == expected(records)


@pytest.mark.parametrize("codec", CODECS)
def test_a_field_of_one_record_among_many(tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [{"n": number, "u": {"name": "x"}} for number in range(12_000)]
    records[9_456] = {"n": 1, "u": {"name": "x", "err": [1]}, "late": None}
    with Log(tmp_path / "x.log", codec=codec) as log:
        log.append_many(records)
        log.flush()
        db = JITDB(log, progress=False)
        decoded: list[Any] = []
        real = module.LeafPaths._decode
        monkeypatch.setattr(module.LeafPaths, "_decode", lambda *args: decoded.append(1) or real(*args))
        assert db.leaf_paths() == [("n",), ("u", "name"), ("u", "err"), ("late",)]
        assert len(decoded) == 2
        assert db.leaf_paths(gt(10_000, "n")) == [("n",), ("u", "name")]
        log.delete(db.all(equal("late", None), as_offsets=True)[0])
        log.flush()
        assert db.leaf_paths() == [("n",), ("u", "name")]


def test_lines_that_kernels_leave_to_python(tmp_path: Path) -> None:
    lines = ['{"a": 1}', '{"a": 1, "big": 1e999}', '  {"b" : {"\\u00fc": 2}}', '{"a": 1, "a": {"c": 1}}', "[1]", '"x"']
    lines += ['{"s": "\\u00e9\\ud83d\\ude00"}', '{"d": ' + "[" * 30 + "]" * 30 + "}", '{"z": 9}']
    (tmp_path / "x.ndjson").write_text("\n".join(lines) + "\n")
    db = jitdb.open(tmp_path / "x.ndjson", progress=False)
    assert db.leaf_paths(db.query().sort_by_arrival().question) == expected(list(map(json.loads, lines)))


def test_records_of_ever_other_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    records = [{f"id{chance.randrange(5000)}": 1, "m": {f"x{number}": 2}} for number in range(3000)]
    with Log(tmp_path / "x.log", codec="json") as log:
        log.append_many(records)
        log.flush()
        db = JITDB(log, progress=False)
        stops: list[Any] = []
        monkeypatch.setattr(module, "first_with_more", lambda *args: stops.append(1) or first_with_more(*args))
        assert db.leaf_paths() == expected(records)
        assert len(stops) < 20
        monkeypatch.setattr(module, "MOST_FIELDS", 100)
        with pytest.raises(QueryError, match="more than 100 fields"):
            db.leaf_paths()
        assert len(db.leaf_paths(db.query().question.changed(limit=10))) == 20


def test_sets_have_the_fields_of_all_logs(tmp_path: Path) -> None:
    for day, records in ((1, [{"a": 1, "b": 2}]), (2, [{"a": 1, "late": 3}]), (3, [])):
        (tmp_path / f"day={day}").mkdir()
        with Log(tmp_path / f"day={day}" / "x.log", codec="json") as log:
            log.append_many(records)
    with jitdb.open_many(tmp_path / "day=*" / "*.log", "memory") as logs:
        assert logs.leaf_paths() == [("a",), ("b",), ("late",)]
        assert logs.leaf_paths(equal("day", 2)) == [("a",), ("late",)]
        assert logs.leaf_paths(logs.query().question.changed(limit=1)) == [("a",), ("b",)]


@given(paths=st.lists(st.lists(KEYS | st.sampled_from(["\ud83d", "[]"]) | st.integers(0, 2) | st.none(), min_size=1)))
def test_names_are_plain_and_differ(paths: list[list[Any]]) -> None:
    found = named([("a", *path) for path in paths] + [tuple(path) for path in paths if isinstance(path[0], str)])
    names = [name for name, _ in found]
    assert len(set(names)) == len(names)
    assert all(name.encode() for name in names)
    again = named([path for _, path in found])
    assert again == found
