"""Levels by name: `level >= "warn"` goes by rank, of names and of numbers in the scales that logs use."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import rank_of as expected_rank
from test_dialects import write
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
        ("level", [700, 800, 900, 950, 1000], "warn", [900, 950, 1000]),
        ("level", [800, 900, 1000, 100, 600], "error", [1000, 600]),
        ("level", ["Information", "Hinweis", "Warnung", "Fehler", "erreur", "Avertissement"], "warn",
         ["Warnung", "Fehler", "erreur", "Avertissement"]),
        ("level", ["INFO", "CONNECT", "ERROR"], "notice", ["CONNECT", "ERROR"]),
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
        ([{"level": "[INFO]"}, {"level": "[ERROR]"}, {"level": "[WARN]"}], 'level >= "warn"',
         "`level` holds no levels: no names such as info or error, and no numbers that stand for them; "
         'did you mean `level == "[ERROR]" or level == "[WARN]"`?'),
        ([{"level": number} for number in (5, 9, 13, 17, 21)], 'level >= "warn"',
         "numbers of `level` are read as syslog's below 8 and as pino's from 10 on: OpenTelemetry has 17 for an error, "
         "and 13 for a warning; did you mean `level >= 13`?"),
        ([{"level": 10}, {"level": 20}], 'level >= "warn"', None),
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


def noted(tmp_path: Path, records: list[dict[str, Any]], asked: str) -> tuple[int, list[str], JITDB]:
    db = jitdb.open(written(tmp_path, records))
    db.warns_of_questions = False
    question = parse_expression(asked)
    number = db.count(question)
    return number, db.hints(question, is_empty=not number), db


def written(tmp_path: Path, records: list[dict[str, Any]]) -> Path:
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize(
    ("values", "asked", "number", "better"),
    [
        (["info", "Failure", "error"], 'level >= "error"', 1, 1),
        (["info", "Failure", "Panne"], 'level >= "error"', 0, 2),
        (["info", "Failure", "Failure", None, ""], 'level < "error"', 1, 2),
        (["info", "Failure", "-", "", "unknown", "DEFAULT"], 'level >= "info"', 2, 1),
    ],
)
def test_names_of_levels_that_are_not_known(
    tmp_path: Path, values: list[Any], asked: str, number: int, better: int
) -> None:
    found, hints, db = noted(tmp_path, [{"level": value} for value in values], asked)
    assert found == number
    (hint,) = hints
    assert hint.startswith(
        f"values of `level` such as 'Failure' are no levels that are known, and `{asked}` leaves them out: "
    )
    (meant,) = re.findall(r"out: `(.*)` finds (?:them|these)$", hint)
    assert db.count(parse_expression(meant)) == better
    assert db.hints(parse_expression(f"not {asked}"), is_empty=False) == []  # which has them
    db.close()


@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize(("often", "once"), [("info", "Panne"), ("low", "critical"), ("low", "error")])
def test_a_name_that_a_sample_does_not_show(tmp_path: Path, often: str, once: str, files: int) -> None:
    records = [{"level": once if number == 2500 else often, "n": number} for number in range(5000)]
    for number in range(files):
        write(tmp_path / f"{number}.ndjson", records)
    with jitdb.open_many([tmp_path]) if files > 1 else jitdb.open(tmp_path / "0.ndjson") as db:
        db.warns_of_questions = False
        assert db.count(parse_expression('level >= "error"')) == (once != "Panne") * files
        told = db.hints(parse_expression('level >= "error"'), is_empty=once == "Panne")
        unknown = once if often == "info" else often
        assert [hint for hint in told if f'`level == "{unknown}"` finds them' in hint]


def test_names_of_levels_that_are_not_known_in_text(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("time=2026-11-20T10:00:00Z level=info msg=a\ntime=2026-11-20T10:00:01Z level=Failure msg=b\n" * 9)
    with jitdb.open(path) as db:
        db.warns_of_questions = False
        asked = parse_expression('level >= "error"')
        assert db.count(asked) == 0
        (hint,) = db.hints(asked)
        assert 'out: `level == "Failure"` finds them' in hint


@pytest.mark.parametrize(
    ("records", "asked", "number", "told", "better"),
    [
        ([{"level": n} for n in (-4, 0, 4, 8)], 'level >= "error"', 1, "did you mean `level >= 8`?", 1),
        ([{"level": n} for n in (-4, 0, 4, 8)], 'level >= "warn"', 2, "did you mean `level >= 4`?", 2),
        ([{"level": n} for n in (-4, 0, 4, 8)], 'level > "debug"', 2, "did you mean `level > -4`?", 3),
        ([{"severity": n} for n in (2, 5, 8)], 'severity >= "error"', 1,
         "if they grow with how bad it is, compare them as numbers: `severity >= 8`", 1),
        ([{"level": n} for n in (20, 30, 40)], 'level >= "error"', 0,
         "if they are Python's, whose error is 40, ask `level >= 40`", 1),
        ([{"level": n} for n in (20, 30, 40)], 'level > "warn"', 0,
         "if they are Python's, whose error is 40, ask `level > 30`", 1),
    ],
)  # fmt: skip
def test_numbers_of_no_scale_that_is_known(
    tmp_path: Path, records: list[Any], asked: str, number: int, told: str, better: int
) -> None:
    found, hints, db = noted(tmp_path, records, asked)
    assert found == number
    (hint,) = hints
    assert hint.endswith(told)
    assert db.count(parse_expression(re.findall("`([^`]*)`", hint)[-1])) == better
    db.close()


@pytest.mark.parametrize(
    ("records", "asked"),
    [
        ([{"level": n, "pid": 1, "hostname": "a"} for n in (20, 30, 40)], 'level >= "error"'),  # pino itself
        ([{"level": n} for n in (20, 30)], 'level >= "error"'),
        ([{"level": n} for n in (20, 30, 40)], 'level >= "fatal"'),
        ([{"level": n} for n in (20, 40, 50)], 'level >= "error"'),
        ([{"level": n} for n in (20, 40, 35)], 'level >= "error"'),
        ([{"severityNumber": n} for n in (1, 5, 9)], 'severityNumber >= "error"'),
        ([{"deviceSeverity": n} for n in (1, 5, 9)], 'deviceSeverity >= "error"'),
        ([{"levelno": n} for n in (20, 30, 40)], 'levelno >= "error"'),
        ([{"level": n} for n in (200, 300, 400)], 'level >= "error"'),
        ([{"level": {"name": "INFO"}, "text": "a"}, {"level": {"name": "INFO"}, "text": "b"}], 'level.name >= "info"'),
        ([{"text": "a", "record": {"level": {"name": "INFO"}}}, {"text": "b"}], 'record.level.name >= "info"'),
    ],
)
def test_numbers_of_a_scale_that_is_known_have_no_note(tmp_path: Path, records: list[Any], asked: str) -> None:
    _, hints, db = noted(tmp_path, records, asked)
    assert hints == []
    db.close()


def test_maps_beside_a_text_are_no_text_without_a_level(tmp_path: Path) -> None:
    records = [{"text": "a", "record": {"level": {"name": "INFO"}}}, {"text": "b", "level": {"name": "INFO"}}]
    for asked in ('record.level >= "error"', 'level >= "error"'):
        _, hints, db = noted(tmp_path, records, asked)
        assert not [hint for hint in hints if "`absent(record.level)`" in hint]
        db.close()
    _, hints, db = noted(tmp_path, records[1:], 'level >= "error"')
    assert not [hint for hint in hints if "no level is found" in hint]
    db.close()
