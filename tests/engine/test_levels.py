"""Levels by name: `level >= "warn"` goes by rank, of names and of numbers in the scales that logs use."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import rank_of as expected_rank
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import QueryError, QuestionWarning
from jitdb.operators import (
    and_,
    between,
    equal,
    field,
    format_expression,
    from_json,
    gte,
    lte,
    parse_expression,
    to_json,
)
from jitdb.operators.nodes.levels import rank_of, rank_of_name

NAMES = ["trace", "DEBUG", "Info", "notice", "warn", "WARNING", "err", "error", "crit", "fatal", "alert", "emerg", "W"]
SHORT = ["TRC", "VRB", "DBG", "dbug", "DEBU", "INF", "Note", "WRN", "ERRO", "fail", "FTL", "FATA", "crt", "ERROR "]
ORDER = ["trace", "debug", "info", "notice", "warn", "error", "fatal", "alert", "emerg"]

values = (
    st.sampled_from([*NAMES, *SHORT, "D1", "E", "soon", "", "INFO+2", None, True, [50], "x" * 40])
    | st.integers(-2, 70)
    | st.integers(0, 70).map(str)
    | st.integers(90, 5100)
    | st.integers(9, 110).map(lambda number: number * 500)
    | st.floats()
    | st.sampled_from([35.5, 30.0, "30.0", "1e1", 2**70])
)
keys = st.sampled_from(["level", "PRIORITY", "severityNumber", "severity", "s"])


@settings(max_examples=tries(300, 5000), deadline=None)
@given(values, keys)
@example(35, "level")
@example(250, "level")
@example(400, "severity")
@example(5000, "level")
def test_ranks(value: Any, key: str) -> None:
    assert rank_of(value, (key,)) == (None if value is None else expected_rank(value, key))


def opened(tmp_path: Path, records: list[Any], **settings: Any) -> JITDB:
    log = Log(tmp_path / "x.log", codec="json")
    log.append_many(records)
    log.flush()
    return JITDB(log, "memory", progress=False, **settings)


@pytest.mark.parametrize(
    ("key", "held", "least", "found"),
    [
        ("level", [10, 20, 30, 35, 40, 50, 60, 70], "warn", [40, 50, 60, 70]),
        ("level", [10, 20, 30, 35, 40, 50, 60], "notice", [35, 40, 50, 60]),
        ("level", [7, 6, 5, 4, 3, 2, 1, 0], "warn", [4, 3, 2, 1, 0]),
        ("PRIORITY", ["7", "6", "5", "4", "3", "2", "1", "0"], "err", ["3", "2", "1", "0"]),
        ("severityNumber", [1, 5, 9, 12, 13, 17, 18, 21, 24], "error", [17, 18, 21, 24]),
        ("levelno", [10, 20, 30, 40, 50], "warning", [30, 40, 50]),
        ("level", ["TRACE", "debug", "Info", "WARN", "warning", "ERROR", "soon"], "warn", ["WARN", "warning", "ERROR"]),
        ("level_value", [5000, 10000, 20000, 30000, 40000, 50000], "error", [40000, 50000]),
        ("severity", [100, 200, 300, 400, 500, 600, 700, 800], "error", [500, 600, 700, 800]),
        ("level", [100, 200, 250, 300, 400, 500, 550, 600], "error", [400, 500, 550, 600]),
        ("level_number", [10, 20, 30, 40, 50], "error", [40, 50]),
        ("level", ["TRC", "VRB", "DBG", "INF", "WRN", "ERR", "FTL", "CRT", "fail", "ERROR ", "note"], "warn",
         ["WRN", "ERR", "FTL", "CRT", "fail", "ERROR "]),
        ("s", ["D5", "D1", "I", "W", "E", "F"], "W", ["W", "E", "F"]),
        ("severity", ["DEFAULT", "NOTICE", "CRITICAL", "EMERGENCY"], "critical", ["CRITICAL", "EMERGENCY"]),
    ],
)  # fmt: skip
def test_at_least_that_bad(tmp_path: Path, key: str, held: list[Any], least: str, found: list[Any]) -> None:
    with opened(tmp_path, [{key: value} for value in held]) as db:
        for _ in range(2):
            assert [record[key] for record in db.all(field(key) >= least)] == found
            assert db.count(~(field(key) >= least)) == len(held) - len(found)
            db.count(equal(key, held[0]))  # whose bitmaps serve as well
        db.log.append_many([{key: held[0]}, {key: found[0]}])
        db.log.flush()
        assert db.count(field(key) >= least) == len(found) + 1


def test_the_bitmaps_of_an_earlier_question_serve(tmp_path: Path) -> None:
    with opened(tmp_path, [{"level": name} for name in NAMES]) as db:
        db.count(equal("level", "warn"))
        assert db.explain(gte("error", "level"))["scan_bytes"] == 0
        assert db.count(gte("error", "level")) == 6


def test_how_it_is_written() -> None:
    for text in ('level >= "warn"', 'log.level < "Info"', '["log.level"] > "err" and s <= "W"', 'tags[] >= "error"'):
        asked = parse_expression(text)
        assert parse_expression(format_expression(asked)) == asked == from_json(to_json(asked))
    assert (field("level") >= "warn") == gte("warn", "level") == parse_expression('"warn" <= level')
    assert between("level", "info", "error") == and_(gte("info", "level"), lte("error", "level"))
    assert repr(gte("warn", "level")) == "gte('warn', 'level')"


def test_what_is_no_level(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="'wran' is no level; did you mean 'warn'"):
        parse_expression('level >= "wran"')
    with pytest.raises(QueryError, match="as a time or a level only, and 'soon' is neither"):
        parse_expression('level >= "soon"')
    with pytest.raises(QueryError, match="a time or a level only"):
        parse_expression('index("timestamp") >= "warn"')
    assert [rank_of_name(name) for name in ORDER] == list(range(9))


@pytest.mark.parametrize(
    ("records", "asked", "told"),
    [
        ([{"level": 50}, {"level": 30}], 'level == "error"',
         'no record has level == "error"; did you mean `level == 50`?'),
        ([{"PRIORITY": "3"}], 'PRIORITY == "err"', 'no record has PRIORITY == "err"; did you mean `PRIORITY == "3"`?'),
        ([{"PRIORITY": 3}], 'PRIORITY == "err"', 'no record has PRIORITY == "err"; did you mean `PRIORITY == 3`?'),
        ([{"level": "WARNING"}], 'level == "warn"',
         'no record has level == "warn"; did you mean `level == "WARNING"`?'),
        ([{"severityNumber": 17}], 'severityNumber == "error"',
         'no record has severityNumber == "error"; did you mean `severityNumber == 17`?'),
        ([{"s": "E"}], 's == "error"', 'no record has s == "error"; did you mean `s == "E"`?'),
        ([{"level_value": 40000}], 'level_value == "error"',
         'no record has level_value == "error"; did you mean `level_value == 40000`?'),
        ([{"severity": 9, "severityText": "INFO"}, {"severity": 17, "severityText": "ERROR"}], 'severity >= "error"',
         "numbers of `severity` are read as those of syslog, pino or Google; "
         'did you mean `severityText >= "error"`?'),
        ([{"msg": "it warns"}], 'msg >= "warn"',
         "`msg` holds no levels: no names such as info or error, and no numbers that stand for them"),
        ([{"reqId": "a", "level": 0}, {"level": 2}, {"level": 4}], 'level < "debug"',
         "numbers of `level` are read as syslog's, where 0 is the worst and 3 an error: if they grow with how bad it "
         "is, compare them as numbers: `level >= 3`"),
        ([{"short_message": "x", "level": 2}, {"short_message": "x", "level": 4}], 'level < "debug"', None),
        ([{"level": 10}, {"level": 4}], 'level > "fatal"', None),
        ([{"PRIORITY": 2}, {"PRIORITY": 4}], 'PRIORITY < "debug"', None),
        ([{"level": "info"}], 'level >= "warn"', None),
        ([{"level": ["warn"]}], 'level >= "warn"', '`level` holds arrays; did you mean `level[] >= "warn"`?'),
        ([{"level": "info"}], 'levle >= "warn"', "no record has the field `levle`; did you mean `level`?"),
    ],
)  # fmt: skip
def test_an_answer_of_nothing(tmp_path: Path, records: list[Any], asked: str, told: str | None) -> None:
    with opened(tmp_path, records) as db, warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", QuestionWarning)
        assert db.count(parse_expression(asked)) == 0
    assert [warning.message.reason for warning in found] == ([told] if told else [])  # type: ignore[union-attr]


def test_many_logs_and_a_level_in_the_path(tmp_path: Path) -> None:
    for name in ("info", "error", "fatal"):
        folder = tmp_path / f"level={name}"
        folder.mkdir()
        folder.joinpath("a.ndjson").write_text('{"n": 1, "severity": "WARN"}\n{"n": 2, "severity": 50}\n{"n": "x"}\n')
    with jitdb.open_many(tmp_path) as logs:
        assert logs.count(field("level") >= "error") == 6
        assert logs.count(field("severity") >= "warn") == 6
        assert logs.count((field("severity") > "warn") & (field("level") < "fatal")) == 2
