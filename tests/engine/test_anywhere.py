"""`* contains "text"`: any value of a record holds the text, however it is written, in each codec and format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import compress
from pathlib import Path
from random import Random
from typing import Any

import json_cases
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import EXAMPLES
from oracle import scalars, text_within
from own_codec import Masked

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import MalformedWarning, QueryError
from jitdb.indexes.spec import IndexSpec
from jitdb.log.codecs import Codec, get_codec
from jitdb.log.codecs.fields.located import RecordBatch
from jitdb.log.codecs.search import Search
from jitdb.operators import anywhere, not_, parse_expression
from jitdb.operators.nodes.anywhere import Anywhere, anywhere_of

TEXTS = st.text('aAbB <&/\\"é\nßẞK😀\x00', max_size=12)
SCALARS = st.one_of(TEXTS, st.sampled_from([None, True, False, 7, 2.5, -0.0, 1e300, 2**63]))
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
RECORDS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "text"]), VALUES, max_size=3), max_size=10)
ASKED = st.builds(
    lambda text, case: Anywhere(text, case),
    st.text('aAbéßkK"\\</&.7e+0😀nult', min_size=1, max_size=3) | st.sampled_from(["null", "true", "1e+300", "ss"]),
    st.booleans(),
)


class Spelled(str):
    """A number as it is written."""


def written_values(line: bytes) -> list[Any]:
    """The values of a line of JSON, those of repeated keys, too; a number is its text. Raises ValueError."""
    found = json.loads(
        line, parse_int=Spelled, parse_float=Spelled, parse_constant=Spelled, object_pairs_hook=lambda pairs: pairs
    )

    def within(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            for held in value:
                yield from within(held[1] if isinstance(held, tuple) else held)
        else:
            yield value

    return list(within(found))


def batch_of(records: list[bytes]) -> RecordBatch:
    return RecordBatch.of(records)


@pytest.mark.parametrize("codec", ["json", "msgpack", "bipf", Masked()])
def test_it_finds_what_python_finds(codec: str | Codec, tmp_path_factory: pytest.TempPathFactory) -> None:
    @given(first=RECORDS, second=RECORDS, asked=ASKED)
    @settings(max_examples=EXAMPLES, deadline=None)
    def check(first: list[Any], second: list[Any], asked: Anywhere) -> None:
        with Log(tmp_path_factory.mktemp("logs") / "log", codec=codec) as log:
            db = JITDB(log, progress=False)
            for more in (first, second):
                log.append_many(more)
                log.flush()
                records = first if more is first else first + second
                kept = [log.codec.decode(log.codec.encode(record)) for record in records]  # bipf has no -0.0
                holds = [any(text_within(asked, held) for held in scalars(record)) for record in kept]
                assert db.all(asked, sort_by="arrival") == list(compress(records, holds))
                assert db.count(not_(asked)) == holds.count(False)

    check()


def test_a_codec_that_writes_text_otherwise(tmp_path: Path) -> None:
    """The text does not stand in the bytes of its records."""
    with Log(tmp_path / "log", codec=Masked()) as log:
        log.append_many([{"a": f"hello {number}", "b": ["World"]} for number in range(20)])
        log.flush()
        db = JITDB(log, progress=False)
        assert db.count(anywhere("hello")) == db.count(anywhere("WORLD", ignore_case=True)) == 20
        assert db.count(anywhere("hello 7")) == 1
        assert db.count(anywhere("nothing")) == 0


@pytest.mark.parametrize("seed", range(EXAMPLES // 5))
def test_lines_are_searched_as_they_are_written(seed: int) -> None:
    """Escapes of any kind, repeated keys, blanks, numbers of all spellings; what is no JSON holds nothing."""
    random = Random(seed)
    lines = [line for line in json_cases.lines(random, 60) if line.strip()]
    codec = get_codec("json")
    known = [json.loads(line) if codec.is_valid(line) else None for line in lines]
    held = [written_values(line) if codec.is_valid(line) else [] for line in lines]
    assert any(found is not None for found in known)
    texts = [str(value) for values in held for value in values if isinstance(value, str) and value]
    for _ in range(20):
        whole = random.choice(texts)
        begin = random.randrange(len(whole))
        text = whole[begin : begin + random.choice([1, 3, 8])]
        for ignore_case in (False, True):
            try:
                asked = anywhere(text.swapcase() if ignore_case else text, ignore_case=ignore_case)
            except QueryError:
                continue  # half of a surrogate
            assert isinstance(asked, Anywhere)
            records = batch_of(lines)
            records.states[:] = [not codec.is_valid(line) for line in lines]
            found = Search(codec, asked.value, ignore_case)(records)
            expected = [any(text_within(asked, value) for value in values) for values in held]
            assert found.tolist() == expected, asked


@pytest.mark.parametrize(
    "record",
    [
        rb'{"a":"needle"}', rb'{"a":"\u006eeedle"}', rb'{"a":"nee\u0064le"}', rb'{"a" : [ {"b":"xneedlex"} ] }',
        rb'"needle"', rb'["needle"]', rb'{"a":"\\needle"}', rb'{"a":"\"needle\""}', '{"é":"éneedle"}'.encode(),
    ],
)  # fmt: skip
def test_one_is_found(record: bytes) -> None:
    for text, expected in (("needle", True), ("needles", False)):
        assert Search(get_codec("json"), text, False)(batch_of([b"{}", record, b"1"])).tolist() == [
            False, expected, False,
        ]  # fmt: skip


def test_keys_are_no_values(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b'{"needle":1}\n{"needle" : {"x":"needle"}}\n{"a":["needle"],"needle":0}\n')
    with jitdb.open(path) as db:
        assert db.all(anywhere("needle")) == [{"needle": {"x": "needle"}}, {"a": ["needle"], "needle": 0}]


def test_lines_that_are_no_json_hold_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b'{"a":"needle"}\n{"a":"needle"\n{"a":"x"}\n\n{"a":"needle"}\n' * 3)
    with jitdb.open(path, progress=False) as db:
        with pytest.warns(MalformedWarning):
            assert db.count(anywhere("needle")) == 6
        assert db.count(anywhere("eedl")) == 6
        assert db.count(not_(anywhere("eedl"))) == 3


def test_a_needle_of_a_few_bytes_at_the_end_of_the_buffer() -> None:
    for size in range(1, 70):
        records = batch_of([b"1", json.dumps("x" * size + "end").encode()])
        assert Search(get_codec("json"), "xend", False)(records).tolist() == [False, True]
        assert Search(get_codec("json"), "y", False)(records).tolist() == [False, False]


@pytest.mark.parametrize(
    ("lines", "text", "count"),
    [
        (b"2026-11-20T00:00:00Z stdout F {\"a\": \"needle\"}\n2026-11-20T00:00:01Z stderr F no\n", "needle", 1),
        (b"Nov 20 00:00:00 web sshd[1]: Failed for root\nNov 20 00:00:01 web sshd[1]: ok\n", "for root", 1),
        (b'time=2026-11-20T00:00:00Z msg="a needle"\ntime=2026-11-20T00:00:01Z msg=b\n', "eedl", 1),
        (b"id,name\n1,Ann\n2,Bob\n", "nn", 1),
    ],
)  # fmt: skip
def test_records_of_other_formats(lines: bytes, text: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / ("a.csv" if lines.startswith(b"id,") else "a.log")
    path.write_bytes(lines)
    with jitdb.open(path, progress=False) as db:
        assert db.count(anywhere(text)) == count
        assert db.count() == 2


def test_as_text_and_back() -> None:
    for text in ("* contains '9f3a'", "* icontains 'x'", "* not contains 'x'", "* contains 'a' and b == 1"):
        assert parse_expression(text).written() == text
    assert parse_expression('not * contains "x"') == not_(anywhere("x"))
    spec = Anywhere('a"b', True).spec
    assert anywhere_of(IndexSpec.from_descriptor(json.loads(json.dumps(spec.descriptor())))) == anywhere(
        'a"b', ignore_case=True
    )
    for name in ("contains", "contains 5", 'holds "x"', 'contains ""'):
        with pytest.raises(QueryError):
            anywhere_of(IndexSpec("text", (), name=name))


@pytest.mark.parametrize("text", ['* == "x"', "*", '* starts_with "x"', "* > 5", '* matches "x"'])
def test_a_star_goes_with_contains(text: str) -> None:
    with pytest.raises(QueryError, match=re.escape('* contains "timeout"')):
        parse_expression(text)


@pytest.mark.parametrize("bad", ["", b"x", None, 5, "\ud800"])
def test_what_is_no_text_is_refused(bad: Any) -> None:
    with pytest.raises(QueryError, match="anywhere"):
        anywhere(bad)


def test_the_rule_is_that_of_the_search() -> None:
    assert np.array_equal(
        Search(get_codec("json"), "ß", True)(batch_of([b'"STRASSE"', b'"Stra\\u00dfe"', b'"S"'])), [True, True, False]
    )
