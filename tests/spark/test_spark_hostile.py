"""Questions that strangers write: an answer of a plain loop, or a QueryError; nothing else, and no code that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import oracle_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reading_cases import table_rows
from thoroughness import tries

from jitdb import Log
from jitdb.errors import QueryError
from jitdb.operators.text.expression import parse_expression
from jitdb.operators.text.json import from_json, to_json

pytest.importorskip("pyspark")

from jitdb.spark_ext import jitdb_errors, read_log
from jitdb.spark_ext.columns import ColumnSource
from jitdb.spark_ext.conditions import Field, _parsed, _translated

COLUMNS = {"n": ("n", "long")}
COUNT = 60


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("hostile") / "x.log"
    with Log(found, block_size=512) as log:
        log.append_many([{"n": n, "text": f"t{n % 5}'\"\0é\\", "a": {"b": [n, "x"]}} for n in range(COUNT)])
    return found


def answer(path: Path, text: str, indexes: str = "none", is_slow: bool = False) -> list[int] | None:
    """The records' numbers, which a plain loop gives too, unless it would take years; None for a QueryError."""
    try:
        rows = table_rows(path, columns=COLUMNS, where=text, indexes=indexes)
    except QueryError:
        return None
    found = [row["seq"] for row in rows]
    if is_slow:
        return found
    is_json = text.lstrip().startswith("{")
    with Log(path, read_only=True) as log:
        asked = from_json(json.loads(text)) if is_json else parse_expression(text) if text.strip() else None
        assert found == (list(range(COUNT)) if asked is None else oracle_of(log).matches(asked))
    return found


def nested(times: int, question: Any = None) -> str:
    inner = json.dumps(question or to_json(parse_expression("n == 1")))
    return '{"op": "not", "operation": ' * times + inner + "}" * times


CRAFTED: dict[str, tuple[str, int | None]] = {
    "parentheses": ("(" * 5000 + "n == 1" + ")" * 5000, None),
    "no end": ("(" * 100_000, None),
    "not": ("not " * 400 + "n == 1", 1),
    "many nots": ("not " * 50_000 + "n == 1", None),
    "a long chain": (" and ".join(f"n != {n}" for n in range(1, 400)), 1),
    "deep JSON": (nested(10_000), None),
    "JSON without an end": ('{"op":' * 100_000, None),
    "a long text": (f"text == '{'x' * 900_000}'", 0),
    "too long a text": (f"text == '{'x' * 5_000_000}'", None),
    "a long number": ("n == " + "9" * 10_000, None),
    "beyond doubles": ("n < 1e999999999", COUNT),
    "long paths": (".".join("a" * 5000) + " == 1", None),
    "NUL": ("text contains '\0'", COUNT),
    "NUL outside": ("\0 == 1", None),
    "quotes": ("text contains '\\'\"'", COUNT),
    "an open quote": ("text == 'a''b\"", None),
    "half a character": ("text == '\ud800'", None),
    "marks of direction": ("text != '\u202e\u2066'", COUNT),
    "white space": (" \t\r\n", COUNT),
    "names of files": ("@../../etc/passwd", None),
    "a program": ("__import__('os').system('touch pwned')", None),
    "a program as a value": ("n == __import__('os')", None),
    "a pickled predicate": ('{"op": "predicate", "field": ["n"], "name": "x", "function": "cos\\nsystem\\n."}', None),
    "SQL": ("n == 1; drop table x", None),
    "a slow regular expression": ("text matches '(t+)+$'", 0),
    "a large regular expression": ("text matches '(x{900}){900}'", None),
    "a deep regular expression": ("text matches '" + "(" * 5000 + ")" * 5000 + "'", COUNT),
    "a slow pattern": (f"text like '{'%' * 5000}q'", 0),
}  # fmt: skip

SLOW = ("a slow regular expression", "a deep regular expression", "a slow pattern")


@pytest.mark.parametrize("name", CRAFTED)
@pytest.mark.parametrize("indexes", ["none", "build"])
def test_crafted(path: Path, name: str, indexes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, count = CRAFTED[name]
    found = answer(path, text, indexes, name in SLOW)
    assert (None if found is None else len(found)) == count
    assert list(tmp_path.iterdir()) == []


PIECES = (
    "n text a.b a.b[0] a.b[] * @x == != < >= in not and or ( ) [ ] , 1 -1.5 1e400 't1' null true contains is absent "
    "like matches between number( time( present( level { } -- ; ' \\"
)
TOKENS = (*PIECES.split(), '["a"]', '"é"', "'\0'", "\u2028", "\ufeff")
WORDS = st.lists(st.sampled_from(TOKENS), max_size=12).map(" ".join) | st.text(max_size=40)


@settings(max_examples=tries(60, 3000), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=WORDS)
def test_random_words(path: Path, text: str) -> None:
    answer(path, text)


FORMS = [
    to_json(parse_expression(text)) for text in ("n == 1 and not text contains 't1'", "n in [1, 2] or a.b[] == 'x'")
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(FORMS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=tries(60, 3000), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_json(path: Path, data: st.DataObject) -> None:
    """A question in which something is something else."""
    form = json.loads(json.dumps(data.draw(st.sampled_from(FORMS))))
    place: Any = form
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], (dict, list)) and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(VALUES)
        break
    answer(path, json.dumps(form))


def test_through_spark(spark: Any, path: Path) -> None:
    """What Python can hold, and Java, or Spark's parser, cannot."""
    from pyspark.sql import functions as F  # noqa: N812

    for where, said in (
        ("text == '\ud800'", "the option where is not valid Unicode"),
        (F.expr("n = = 1"), "Spark does not take the condition"),
        (F.udf(lambda n: n == 1, "boolean")("n"), "no column of the table"),
    ):
        with pytest.raises(QueryError, match=said), jitdb_errors():
            read_log(spark, path, COLUMNS, where).collect()
    with pytest.raises(QueryError, match="the path is not valid Unicode"):
        read_log(spark, "/tmp/\udce9.log", COLUMNS)
    for text in ("text contains '\0'", "text contains '\\'\"'"):
        assert read_log(spark, path, COLUMNS, text).count() == COUNT


def test_a_chain_that_spark_nests() -> None:
    """Each AND and OR is a part of the next one."""
    name = {"class": "org.AttributeReference", "num-children": 0, "name": "n", "dataType": "long"}
    negation = {"class": "org.Not", "num-children": 1}
    fields = {"n": Field(ColumnSource(path=("n",)), "long")}
    for join, op, negated in (("And", "and", "or"), ("Or", "or", "and")):
        forms: list[dict[str, Any]] = [{"class": f"org.{join}", "num-children": 2}] * 3000
        for number in range(3001):
            literal = {"class": "org.Literal", "num-children": 0, "dataType": "long", "value": f"{number}"}
            forms += [{"class": "org.GreaterThan", "num-children": 2}, name, literal]
        assert to_json(_translated(_parsed(forms), fields))["op"] == op
        assert to_json(_translated(_parsed([negation, *forms]), fields))["op"] == negated
    with pytest.raises(QueryError, match="nests so deep"):
        _translated(_parsed([negation] * 5000 + [name]), fields)
