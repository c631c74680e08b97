"""One spelling of paths: what is written is read again, as text, in expressions, from JSON and in lists."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitdb.common.paths import ANY, MAX_POSITION, Path, format_path, parse_path, split_paths
from jitdb.common.values import UNDEFINED, value_at, values_at
from jitdb.errors import QueryError
from jitdb.log.lines.form import parse_each
from jitdb.operators import equal, format_expression, from_json, parse_expression, to_json

keys = (
    st.text("ab.[]\"'\\ ,0\n_é", max_size=4) | st.text(max_size=3) | st.sampled_from(["from", "true", "None", "in", ""])
)
paths = st.lists(keys | st.integers(0, MAX_POSITION) | st.just(ANY), min_size=1, max_size=5).map(tuple)


@given(path=paths)
def test_what_is_written_is_read_again(path: Path) -> None:
    text = format_path(path)
    assert parse_path(text) == path
    operation = equal(path, 1)
    assert parse_expression(f"{text} == 1") == operation
    assert parse_expression(format_expression(operation)) == operation
    assert from_json(json.loads(json.dumps(to_json(operation)))) == operation
    assert from_json({"op": "equal", "path": text, "value": 1}) == operation
    assert eval(repr(operation), {"equal": equal}) == operation


@given(some=st.lists(paths, min_size=1, max_size=3))
def test_lists_of_paths_are_taken_apart_at_their_commas(some: list[Path]) -> None:
    assert [parse_path(text) for text in split_paths(", ".join(map(format_path, some)))] == some


@given(path=st.lists(keys.filter(bool) | st.just(ANY), max_size=4).map(lambda steps: (*steps, ANY)))
def test_batches_have_the_same_spelling(path: Any) -> None:
    assert parse_each(format_path(path)) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("@timestamp", ("@timestamp",)),
        ("first-name.x y", ("first-name", "x y")),
        ("a..b.", ("a", "", "b", "")),
        ("['it\\'s'].b", ("it's", "b")),
        ('a.["b"]', ("a", "b")),
        ('["\\u00e9"]', ("é",)),
        ("x]y", ("x]y",)),
    ],
)
def test_other_ways_to_write_one(text: str, path: Path) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "at least one key"),
        ("a[b]", "in the brackets of a path stands"),
        ("a[-1]", "in the brackets of a path stands"),
        ("a[1", "in the brackets of a path stands"),
        ("a[0]b", "a dot or a bracket was expected"),
        ('["\\x"]', "written as in JSON"),
        (f"a[{MAX_POSITION + 1}]", "count from 0 and end at"),
        ("a[" + "9" * 5000 + "]", "count from 0 and end at"),
        ('["\\ud800"]', "not valid Unicode"),
        (".".join("a" * 65), "at most 64"),
    ],
)
def test_what_is_no_path(text: str, reason: str) -> None:
    with pytest.raises(QueryError, match=reason):
        parse_path(text)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("a", 0, "b"), [1]),
        (("a", ANY, "b"), [1, 2]),
        (("a", ANY, ANY), [5]),
        (("a", 9), []),
        (("a", "b"), []),
        (("t", ANY), []),
        (("t", 0), []),
    ],
)
def test_what_a_path_leads_to(path: Path, found: list[Any]) -> None:
    record = {"a": [{"b": 1}, {"b": 2}, [5, UNDEFINED]], "t": "text"}
    assert list(values_at(record, path)) == found
    assert value_at(record, path) == (UNDEFINED if not found else found if ANY in path else found[0])
