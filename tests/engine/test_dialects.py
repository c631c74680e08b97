"""Questions to logs that name the level, the message or the time otherwise: the note says what asks all of
them, and that finds what a plain loop finds.
"""

from __future__ import annotations

import json
import os
import re
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.cli import main
from jitdb.common.paths import format_path, parse_path
from jitdb.common.values import UNDEFINED, value_at
from jitdb.logset.logset import AnyDatabase
from jitdb.operators import parse_expression, predicate
from jitdb.operators.nodes.levels import rank_of, rank_of_name

Record = dict[str, Any]

#: The field, and its values for info, warn and error.
LEVELS: dict[str, tuple[Any, Any, Any]] = {
    "level": ("info", "warn", "error"), "log.level": ("info", "warn", "error"), "PRIORITY": ("6", "4", "3"),
    "severity": ("INFO", "WARNING", "ERROR"), '["log.level"]': ("info", "warn", "error"), "severityNumber": (9, 13, 17),
    "severityText": ("Info", "Warn", "Error"), "Level": ("Information", "Warning", "Error"),
    "levelname": ("INFO", "WARNING", "ERROR"), '["@l"]': ("Information", "Warning", "Error"),
}  # fmt: skip
MESSAGES = ("message", "msg", "MESSAGE", "textPayload", "event", "short_message", "CONTENT", "jsonPayload.message")
TIMES = ("time", "ts", '["@timestamp"]', "asctime", "timestamp")


def record_of(*fields: tuple[str, Any]) -> Record:
    found: Record = {"n": 1}
    for name, value in fields:
        *folders, last = parse_path(name)
        place = found
        for step in folders:
            place = place.setdefault(step, {})
        place[str(last)] = value
    return found


def write(path: Path, records: Sequence[Record]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    os.utime(path, (1e9, 1e9))  # it is at rest, and all logs of a folder are alike
    return path


def proposed(hint: str) -> str:
    """The question that a note names."""
    found = re.search(r"(?:: |did you mean )`(.*)`(?: asks those, too|\?)$", hint)
    assert found is not None, hint
    return found[1]


def count(db: AnyDatabase, question: str) -> int:
    return db.count(parse_expression(question))


def hints(db: AnyDatabase, question: str, is_empty: bool = True) -> list[str]:
    return db.hints(parse_expression(question), is_empty=is_empty)


def of_levels(name: str) -> list[Record]:
    return [record_of((name, LEVELS[name][number % 3]), ("message", "x")) for number in range(30)]


def as_bad_as(name: str) -> Callable[[Record], bool]:
    """Whether the record is as bad as a warning, by any name of the level."""

    def test(record: Record) -> bool:
        values = ((path, value_at(record, path)) for path in map(parse_path, LEVELS))
        ranks = [rank_of(value, path) for path, value in values if value is not UNDEFINED]
        return any(rank is not None and rank >= rank_of_name(name) for rank in ranks)  # type: ignore[operator]

    return test


@pytest.mark.parametrize("other", LEVELS)
@pytest.mark.parametrize("name", LEVELS)
def test_the_level_of_one_log(tmp_path: Path, name: str, other: str) -> None:
    records = of_levels(other)
    db = jitdb.open(write(tmp_path / "a.ndjson", records))
    db.warns_of_questions = False
    for asked, bad in ((f'{name} >= "warn"', 20), (f'{name} == "error"', 10), (f'{name} in ["warn", "error"]', 20)):
        number = count(db, asked)
        if parse_path(name) == parse_path(other) and number == bad:
            assert hints(db, asked, is_empty=False) == []
            continue
        found = hints(db, asked, is_empty=not number)
        assert found
        told = [proposed(hint) for hint in found]
        better = " or ".join(f"({each})" for each in told)
        if count(db, better) != bad:  # the value is spelled otherwise, too: the next note says how
            assert name.lower().replace('["', "").replace('"]', "") == other.lower().replace('["', "").replace('"]', "")
            better = " or ".join(f"({proposed(hint)})" for hint in hints(db, better))
        assert count(db, better) == bad, (asked, found)


def test_logs_of_a_bundle_that_are_not_asked_say_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(10):
        write(tmp_path / f"a{number}.ndjson", [{"level": "ERROR"}, {"level": "INFO"}])
        write(tmp_path / f"b{number}.ndjson", [{"level": 50}, {"level": 30}])
    of_some = tmp_path / "a*", 'level == "ERROR"', 10
    for path, asked, found in (of_some, (tmp_path, 'level >= "error"', 20), of_some):
        assert main(["count", str(path), asked]) == 0
        assert capsys.readouterr() == (f"{found}\n", "")


def test_the_levels_of_a_folder(tmp_path: Path) -> None:
    every = []
    for number, name in enumerate(LEVELS):
        records = of_levels(name)
        every += records
        write(tmp_path / f"{number}.ndjson", records)
    bad = sum(map(as_bad_as("warn"), every))
    with jitdb.open_many([tmp_path]) as logs:
        logs.warns_of_questions = False
        for name in LEVELS:
            asked = f'{name} >= "warn"'
            assert count(logs, asked) == 20
            (hint,) = hints(logs, asked, is_empty=False)
            assert all(f"`{format_path(parse_path(other))}` in " in hint for other in LEVELS if other != name)
            assert count(logs, proposed(hint)) == bad
            assert hints(logs, proposed(hint), is_empty=False) == []
            assert count(logs, f"not ({proposed(hint)})") == len(every) - bad
        (hint,) = hints(logs, 'not level >= "warn" and n == 1', is_empty=False)
        assert count(logs, proposed(hint)) == len(every) - bad
        (hint,) = hints(logs, "level is absent", is_empty=False)
        assert count(logs, proposed(hint)) == 0
        (hint,) = hints(logs, "level is not null", is_empty=False)
        assert hint.startswith("`level` is called ")
        assert hints(logs, "n == 1", is_empty=False) == []


@pytest.mark.parametrize("few", [True, False])
def test_only_logs_that_are_asked_count(tmp_path: Path, few: bool) -> None:
    for number in range(3 if few else 20):
        write(tmp_path / f"a{number}.ndjson", of_levels("level"))
    write(tmp_path / "b.ndjson", of_levels("severity"))
    with jitdb.open_many([tmp_path]) as logs:
        logs.warns_of_questions = False
        (hint,) = hints(logs, 'level == "error"', is_empty=False)
        assert hint == (
            f"`level` is called `severity` in {tmp_path}/b.ndjson: "
            '`level == "error" or severity >= "error" and severity <= "error"` asks those, too'
        )
        assert hints(logs, f'level == "error" and _path == "{tmp_path}/a1.ndjson"', is_empty=False) == []
        (hint,) = hints(logs, 'severity == "ERROR"', is_empty=False)
        assert f"is called `level` in {tmp_path}/a0.ndjson and {2 if few else 19} more logs: " in hint
        asked = logs.query(parse_expression('severity == "ERROR"')).where(predicate("n", bool, name="truth"))
        (hint,) = logs.hints(asked.question, is_empty=False)
        assert hint.startswith("`severity` is called `level` in ")
        assert "asks those, too" not in hint


def test_records_of_one_log(tmp_path: Path) -> None:
    records = [record for pair in zip(of_levels("level"), of_levels("PRIORITY"), strict=True) for record in pair]
    db = jitdb.open(write(tmp_path / "a.ndjson", records))
    db.warns_of_questions = False
    assert count(db, 'level >= "warn"') == 20
    assert hints(db, 'level >= "warn"', is_empty=False) == [
        '`level` is called `PRIORITY` in records without it: `level >= "warn" or PRIORITY >= "warn"` asks those, too'
    ]
    assert count(db, 'level >= "warn" or PRIORITY >= "warn"') == 40
    with pytest.warns(jitdb.errors.QuestionWarning, match="is called `PRIORITY` in records without it"):
        count(jitdb.open(tmp_path / "a.ndjson"), 'level >= "warn"')


@pytest.mark.parametrize("other", MESSAGES)
@pytest.mark.parametrize("name", MESSAGES)
def test_messages(tmp_path: Path, name: str, other: str) -> None:
    if name in (other, "event"):  # an event is something else in other logs
        return
    db = jitdb.open(write(tmp_path / "a.ndjson", [record_of((other, text)) for text in ("one", "two")]))
    db.warns_of_questions = False
    assert count(db, f'{name} contains "ne"') == 0
    (hint,) = hints(db, f'{name} contains "ne"')
    assert count(db, proposed(hint)) == 1


@pytest.mark.parametrize("other", TIMES)
@pytest.mark.parametrize("name", TIMES)
def test_times(tmp_path: Path, name: str, other: str) -> None:
    if name == other:
        return
    records = [record_of((other, f"2026-11-{day}T12:00:00Z")) for day in (20, 21, 22)]
    db = jitdb.open(write(tmp_path / "a.ndjson", records))
    db.warns_of_questions = False
    assert count(db, f'{name} >= "2026-11-21"') == 0
    (hint,) = hints(db, f'{name} >= "2026-11-21"')
    assert count(db, proposed(hint)) == 2


def test_a_key_with_a_dot(tmp_path: Path) -> None:
    """ECS is written in both ways; the path `a.b` is always that of `b` in `a`."""
    flat = write(tmp_path / "flat.ndjson", [{"http.status": 500, "log.level": "error"}, {"http.status": 200}])
    nested = write(tmp_path / "nested.ndjson", [{"http": {"status": 500}}])
    db = jitdb.open(flat)
    db.warns_of_questions = False
    asked = {
        "http.status == 500": 'no record has the field `http.status`; did you mean `["http.status"] == 500`?',
        "http.status > 300": 'no record has the field `http.status`; did you mean `["http.status"] > 300`?',
        'log.level == "error"': 'no record has the field `log.level`; did you mean `["log.level"] == "error"`?',
    }
    for question, hint in asked.items():
        assert count(db, question) == 0
        assert hints(db, question) == [hint]
        assert count(db, proposed(hint)) == 1
    with jitdb.open_many([flat, nested]) as logs:
        logs.warns_of_questions = False
        assert count(logs, "http.status == 500") == 1
        (hint,) = hints(logs, "http.status == 500", is_empty=False)
        assert proposed(hint) == 'http.status == 500 or ["http.status"] == 500'
        assert count(logs, proposed(hint)) == 2


@pytest.mark.parametrize("files", [1, 3, 20])
def test_values_in_another_form(tmp_path: Path, files: int) -> None:
    records = [
        {"level": level, "status": status} for level in ("error", "ERROR", "info", 50) for status in (200, "200", 500)
    ]
    for number in range(files):
        write(tmp_path / f"{number}.ndjson", records)
    asked = {
        'level == "error"': (
            3, 9, 'other records have `level == "ERROR"`, `level == 50`: '
            '`level == "error" or level == "ERROR" or level == 50` asks those, too'
        ),
        "status == 200": (
            4, 8, 'other records have `status == "200"`: `status == 200 or status == "200"` asks those, too'
        ),
        'status in [200, 500] and level != "ERROR"': (6, 3, (
            'other records have `status == "200"`, `level == "error"`, `level == 50`: `(status == 200 or '
            'status == "200" or status == 500) and not (level == "ERROR" or level == "error" or level == 50)` '
            "asks those, too"
        )),
        'level in ["error", "ERROR", 50]': (9, 9, ""),
        'level == "info"': (3, 3, ""),
        "status == 500": (4, 4, ""),
    }  # fmt: skip
    with jitdb.open_many([tmp_path]) if files > 1 else jitdb.open(tmp_path / "0.ndjson") as db:
        db.warns_of_questions = False
        for question, (number, every, hint) in asked.items():
            assert count(db, question) == number * files
            assert hints(db, question, is_empty=False) == ([hint] if hint else [])
            assert count(db, proposed(hint) if hint else question) == every * files


def test_values_of_deleted_records_are_not_told(tmp_path: Path) -> None:
    with jitdb.Log(tmp_path / "a.log", codec="json") as log:
        log.append_many([{"level": level} for level in ("error", "ERROR")])
        log.flush()
        db = jitdb.JITDB(log, "memory")
        db.warns_of_questions = False
        assert count(db, 'level == "error"') == 1
        assert len(hints(db, 'level == "error"', is_empty=False)) == 1
        db.delete(parse_expression('level == "ERROR"'))
        assert count(db, 'level == "error"') == 1
        assert hints(db, 'level == "error"', is_empty=False) == []


def test_a_value_with_its_own_index_is_not_looked_for(tmp_path: Path) -> None:
    """Nothing is read for the note."""
    records = [{"name": f"n{number}" if number else "N1", "x": 1} for number in range(2000)]
    db = jitdb.open(write(tmp_path / "a.ndjson", records))
    db.warns_of_questions = False
    assert count(db, 'name == "n1"') == 1
    assert hints(db, 'name == "n1"', is_empty=False) == []


def test_a_count_at_a_glance_tells_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.ndjson", [{"level": "error"}, {"level": "ERROR"}])
    for _ in range(3):
        assert main(["count", str(path), 'level == "error"']) == 0
        told = capsys.readouterr()
        assert told.out == "1\n"
        assert told.err == (
            'jitdb: other records have `level == "ERROR"`: `level == "error" or level == "ERROR"` asks those, too\n'
        )


NOON = 1_795_176_000  # 2026-11-20T12:00:00Z
FORMS: dict[str, Callable[[int], Any]] = {  # of the second after 1970
    "s": lambda at: at, "s.": lambda at: at + 0.5, "ms": lambda at: at * 1000, "us": lambda at: at * 10**6,
    "ns": lambda at: at * 10**9, "spelled": lambda at: str(at * 1000),
    "text": lambda at: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)),
}  # fmt: skip


def of_times(name: str, form: str) -> list[Record]:
    return [{name: FORMS[form](NOON + 60 * number), "n": number} for number in range(-10, 10)]


@pytest.mark.parametrize("unit", [1, 1000, 10**6, 10**9])
@pytest.mark.parametrize("form", FORMS)
def test_a_time_as_a_number_of_another_unit(tmp_path: Path, form: str, unit: int) -> None:
    db = jitdb.open(write(tmp_path / "a.ndjson", of_times("ts", form)))
    db.warns_of_questions = False
    for sign, right in ((">=", 10), ("<", 10), (">", 10 if form == "s." else 9), ("==", 0 if form == "s." else 1)):
        asked = f"ts {sign} {NOON * unit}"
        number = count(db, asked)
        found = hints(db, asked, is_empty=not number)
        if number != right:
            (better,) = (proposed(hint) for hint in found if "did you mean" in hint)
            assert count(db, better) == right, (asked, found)
            assert not [hint for hint in hints(db, better, is_empty=not right) if "did you mean" in hint]
        elif right:
            assert not [hint for hint in found if "since 1970" in hint], asked
    for asked in (f"n >= {NOON * unit}", "ts >= 5", f"ts < {10**30}", "ts > 1e400", f"between(ts, 0, {NOON * unit})"):
        assert not [hint for hint in hints(db, asked) if "since 1970" in hint]


def test_a_time_as_a_number_in_a_folder(tmp_path: Path) -> None:
    named = {"ts": "s.", "timestamp": "text", "time": "ms"}
    for name, form in named.items():
        write(tmp_path / f"{name}.ndjson", of_times(name, form))
    write(tmp_path / "more.ndjson", of_times("time", "text"))
    with jitdb.open_many([tmp_path]) as logs:
        logs.warns_of_questions = False
        for name, unit in (("time", 1000), ("ts", 1), ("timestamp", 10**9)):
            asked = f"{name} >= {NOON * unit}"
            other, *_ = hints(logs, asked, is_empty=not count(logs, asked))
            assert 'timestamp >= "2026-11-20T12:00:00Z"' in other
            assert count(logs, proposed(other)) == 40
            assert hints(logs, proposed(other), is_empty=False) == []
        found = hints(logs, f"time < {NOON * 1000} or ts < {NOON} or timestamp < {NOON}", is_empty=False)
        assert len(found) == 2
        assert all("holds times such as '2026-11-20T" in hint for hint in found)


def test_each_number_is_told_of_once(tmp_path: Path) -> None:
    db = jitdb.open(write(tmp_path / "a.ndjson", of_times("ts", "s")))
    assert db.count(f"ts >= {NOON}") == 10
    for told in (2, 0):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            assert db.count(f"ts < {NOON * 1000}") == 20
            assert db.count(f"ts > {NOON * 1000}") == 0
        assert len(found) == told
        assert all("1795176000000 has the size of milliseconds" in str(each.message) for each in found)


@pytest.mark.parametrize(("part", "right"), [("2026-11", 20), ("2026-11-20T12", 10), ("2026-11-20 12:05", 1)])
@pytest.mark.parametrize("form", FORMS)
def test_a_part_of_a_time(tmp_path: Path, form: str, part: str, right: int) -> None:
    write(tmp_path / "a.ndjson", of_times("ts", form))
    db = jitdb.open(tmp_path / "a.ndjson")
    db.warns_of_questions = False
    for asked, number in ((f'ts == "{part}"', 0), (f'ts != "{part}"', 20), (f'ts in ["{part}", "x"]', 0)):
        assert count(db, asked) == number
        (hint,) = hints(db, asked, is_empty=not number)
        assert hint.startswith(f"no time in `ts` is written '{part}'")
        assert count(db, proposed(hint)) == right
    assert hints(db, f'n == "{part}"') == []
    write(tmp_path / "b.ndjson", of_times("time", "text"))
    with jitdb.open_many([tmp_path]) as logs:
        logs.warns_of_questions = False
        first, _ = hints(logs, f'ts == "{part}"')
        assert count(logs, proposed(first)) == 2 * right
        assert hints(logs, proposed(first), is_empty=False) == []


def test_a_time_without_its_fraction(tmp_path: Path) -> None:
    db = jitdb.open(write(tmp_path / "a.ndjson", [{"at": f"2026-11-20T12:00:0{n // 4}.{n}Z"} for n in range(8)]))
    db.warns_of_questions = False
    (hint,) = hints(db, 'at == "2026-11-20T12:00:01Z"')
    assert count(db, proposed(hint)) == 4
    assert count(db, 'at == "2026-11-20T12:00:00.1Z"') == 1
    assert hints(db, 'at == "2026-11-20T12:00:00.1Z" or at == "2026-11-21T12:00:01.5Z"', is_empty=False) == []


@pytest.mark.parametrize("name", ["response_code", "elb_status_code", "httpstatus", "http.response.status_code"])
def test_a_status_that_is_called_otherwise(tmp_path: Path, name: str) -> None:
    """As Envoy, load balancers and S3 call it: of one log, too, whose other fields are not alike."""
    records = [{name: 503 if number == 3 else 200, "bytes": number} for number in range(9)]
    with jitdb.open(write(tmp_path / "a.ndjson", records)) as db:
        db.warns_of_questions = False
        assert count(db, "status >= 500") == 0
        (hint,) = hints(db, "status >= 500")
        (meant,) = re.findall(r"did you mean `(.*)`\?$", hint)
        assert count(db, f"{meant} >= 500") == 1


@pytest.mark.parametrize(
    ("record", "asked"),
    [
        ({"EdgeResponseStatus": 503, "OriginResponseStatus": 200}, "status >= 500"),
        ({"responseStatus": {"metadata": {}, "code": 503}}, "status == 503"),
        ({"sourceIPs": ["203.0.113.9"], "n": 1}, 'ip == "203.0.113.9"'),
        ({"ClientRequestURI": "/a", "ClientRequestHost": "h"}, 'path == "/a"'),
        ({"ClientRequestURI": "/a", "ClientRequestHost": "h"}, 'host == "h"'),
    ],
)
def test_a_field_whose_last_words_were_asked_for(tmp_path: Path, record: Record, asked: str) -> None:
    """As Cloudflare and Kubernetes call it."""
    with jitdb.open(write(tmp_path / "a.ndjson", [record] * 5)) as db:
        db.warns_of_questions = False
        assert count(db, asked) == count(db, 'id == "x"') == 0
        (hint,) = hints(db, asked)
        (meant,) = re.findall(r"did you mean `(.*)`\?$", hint)
        assert count(db, meant + asked[asked.index(" ") :]) == 5
        assert "did you mean" not in hints(db, 'id == "x"')[0]


@pytest.mark.parametrize("asked", ['level >= "warn"', 'level == "error"'])
def test_a_level_that_is_renamed_later(tmp_path: Path, asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Behind the records that a sample has: the index knows of some without it, and these are looked at."""
    records = [{"level": "error"}] * 1200 + [{"severity": "error"}] * 1200
    path = write(tmp_path / "a.ndjson", records)
    with jitdb.open(path) as db:
        db.warns_of_questions = False
        assert count(db, asked) == 1200
        (hint,) = hints(db, asked, is_empty=False)
        assert hint.startswith("`level` is called `severity` in records without it: ")
        assert count(db, proposed(hint)) == 2400
        assert hints(db, proposed(hint), is_empty=False) == []
    for _ in range(2):  # the second time at a glance, if that can tell
        assert main(["count", str(path), asked]) == 0
        assert "is called `severity` in" in capsys.readouterr().err


def test_a_message_that_is_renamed_where_a_sample_shows_it(tmp_path: Path) -> None:
    records = [{"message": "a b"}] * 100 + [{"msg": "a c"}] * 50
    with jitdb.open(write(tmp_path / "a.ndjson", records)) as db:
        db.warns_of_questions = False
        asked = 'message contains "a"'
        assert count(db, asked) == 100
        (hint,) = hints(db, asked, is_empty=False)
        assert count(db, proposed(hint)) == 150


@pytest.mark.parametrize("later", [0, 30])
@pytest.mark.parametrize("asked", ["status >= 500", "status == 500", "http.status >= 500"])
def test_a_status_inside_a_map_in_some_records(tmp_path: Path, asked: str, later: int) -> None:
    records: list[Record] = [{"status": 500}, {"http": {"status": 500}}] * 10
    records = sorted(records, key=str, reverse=asked[0] == "s") if later else records
    with jitdb.open(write(tmp_path / "a.ndjson", records)) as db:
        db.warns_of_questions = False
        assert count(db, asked) == 10
        (hint,) = hints(db, asked, is_empty=False)
        assert count(db, proposed(hint)) == 20
        assert hints(db, proposed(hint), is_empty=False) == []


@pytest.mark.parametrize(
    "other",
    [
        {"job": {"status": "done"}},  # no number
        {"job": {"result": 500}},
        {"a": 1},
    ],
)
def test_another_status_is_no_status_of_a_request(tmp_path: Path, other: Record) -> None:
    records = [{"status": 500}, other] * 30
    with jitdb.open(write(tmp_path / "a.ndjson", records)) as db:
        db.warns_of_questions = False
        for asked in ("status >= 500", "status == 500"):
            assert count(db, asked) == 30
            assert hints(db, asked, is_empty=False) == []
    records = [{"status": 500, "upstream": {"status": 200}}, {"upstream": {"status": 500}}] * 30
    with jitdb.open(write(tmp_path / "b.ndjson", records)) as db:
        db.warns_of_questions = False
        assert count(db, "status >= 500") == 30
        assert hints(db, "status >= 500", is_empty=False) == []


def test_a_value_with_blanks_around_it(tmp_path: Path) -> None:
    records = [{"level": level} for level in ("INFO ", "WARN ", "ERROR", "ERROR ", " ERROR", "WARNING")]
    with jitdb.open(write(tmp_path / "a.ndjson", records)) as db:
        db.warns_of_questions = False
        assert count(db, 'level == "WARN"') == 0
        (hint,) = hints(db, 'level == "WARN"')
        assert hint == 'no record has level == "WARN"; did you mean `level == "WARNING"`?'
        assert count(db, 'level == "INFO"') == 0
        (hint,) = hints(db, 'level == "INFO"')
        assert hint == 'no record has level == "INFO"; did you mean `level == "INFO "`?'
        assert count(db, proposed(hint)) == 1
        assert count(db, 'level == "ERROR"') == 1
        (hint,) = hints(db, 'level == "ERROR"', is_empty=False)
        assert count(db, proposed(hint)) == 3
        assert hints(db, proposed(hint), is_empty=False) == []


@pytest.mark.parametrize("asked", ["took > 1s", "not took <= 1s", "took > 1s and n == 1"])
def test_lengths_of_time_beside_plain_numbers(tmp_path: Path, asked: str) -> None:
    records = [{"took": took, "n": 1} for took in (1.5, "1500ms", 0.5, "500ms", 2, "2s")]
    with jitdb.open(write(tmp_path / "a.ndjson", records)) as db:
        db.warns_of_questions = False
        number = count(db, asked)
        (hint,) = (each for each in hints(db, asked, is_empty=False) if "plain numbers" in each)
        (meant,) = re.findall("if they are seconds, `(.*)` asks those, too", hint)
        assert (number, count(db, meant)) == ((5, 4) if "not" in asked else (2, 4))
    for name, values in (("b", ("1500ms", "2s", None)), ("c", ("1500ms", "2"))):
        with jitdb.open(write(tmp_path / f"{name}.ndjson", [{"took": took} for took in values])) as db:
            db.warns_of_questions = False
            count(db, "took > 1s")
            assert not [each for each in hints(db, "took > 1s", is_empty=False) if "plain numbers" in each]
