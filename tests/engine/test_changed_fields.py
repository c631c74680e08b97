"""Fields that become others within a log: a value moves into a map or an array, a name gets longer. The note says what
asks for both, and that finds what a plain loop finds.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_dialects import Record, count, hints, proposed, write

import jitdb
from jitdb.cli import main
from jitdb.operators import parse_expression

CODES: list[Record] = [
    *({"status": code} for code in (200, 404, 500, 404)),
    *({"status": {"code": code, "text": "x"}} for code in (404, 200, 404)),
    {"status": [404, 7]}, {"status": {"codes": [1, 404]}}, {"other": 404}, {"status": None},
]  # fmt: skip
INSIDE = {
    "status == 404": (2, 6, "other records have `status[] == 404`, `status.code == 404`, `status.codes[] == 404`: "),
    "status == 500": (1, 1, ""),
    'status == "x"': (0, 3, ""),
    "status == null": (1, 1, ""),
}  # fmt: skip


@pytest.mark.parametrize("files", [1, 3, 20])
def test_a_value_that_moves_into_a_map_or_an_array(tmp_path: Path, files: int) -> None:
    for number in range(files):
        write(tmp_path / f"{number}.ndjson", CODES)
    with jitdb.open_many([tmp_path]) if files > 1 else jitdb.open(tmp_path / "0.ndjson") as db:
        db.warns_of_questions = False
        for question, (number, every, hint) in INSIDE.items():
            assert count(db, question) == number * files
            told = hints(db, question, is_empty=not number)
            assert len(told) == bool(hint or not number)
            assert not hint or told[0].startswith(hint)
            assert count(db, proposed(told[0]) if told else question) == every * files


def test_maps_of_deleted_records_are_not_told(tmp_path: Path) -> None:
    with jitdb.Log(tmp_path / "a.log", codec="json") as log:
        log.append_many([{"status": 404}, {"status": {"code": 404}, "n": 1}])
        log.flush()
        db = jitdb.JITDB(log, "memory")
        db.warns_of_questions = False
        assert count(db, "status == 404") == 1
        assert len(hints(db, "status == 404", is_empty=False)) == 1
        db.delete(parse_expression("n == 1"))
        assert count(db, "status == 404") == 1
        assert hints(db, "status == 404", is_empty=False) == []


def told_each_time(path: Path, question: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of it, the third time from fresh indexes, as the first time."""
    found = []
    for _ in range(3):
        assert main([question[0], str(path), *question[1:]]) == 0
        found.append(capsys.readouterr().err)
    assert found[0] == found[1] == found[2]
    return found[0]


def test_a_count_at_a_glance_tells_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.ndjson", [{"status": 404}, {"status": {"code": 404}}])
    asked = "`status == 404 or status.code == 404` asks those, too"
    told = told_each_time(path, ["count", "status == 404"], capsys)
    assert told == f"jitdb: other records have `status.code == 404`: {asked}\n"


@pytest.mark.parametrize("question", ['level >= "error"', 'level == "error"', "status > 200"])
def test_lines_that_are_arrays_of_records(tmp_path: Path, question: str, capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"level": "error", "status": 500}, {"level": "info", "status": 200}] * 3
    path = write(tmp_path / "a.ndjson", [*records, records[:2], [records[1]]])
    both = f"{question} or [].{question}"
    told = told_each_time(path, ["count", question], capsys)
    name = question.split()[0]
    assert told == f"jitdb: `{name}` is called `[].{name}` in records without it: `{both}` asks those, too\n"
    assert jitdb.open(path).count(both) == 4


RENAMED = [("ms", "duration_ms"), ("duration", "durationMs"), ("timeTaken", "time"), ("a.ms", "a.total_ms")]


@pytest.mark.parametrize(("old", "new"), RENAMED)
@pytest.mark.parametrize("later", [3, 600])
def test_a_field_with_a_longer_name(
    tmp_path: Path, old: str, new: str, later: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def record(name: str, number: int) -> Record:
        return {"a": {name[2:]: number}} if name.startswith("a.") else {name: number}

    records = [record(old if number < later else new, number % 7) for number in range(2 * later)]
    path = write(tmp_path / "a.ndjson", records)
    for asked, other in ((old, new), (new, old)):
        told = told_each_time(path, ["count", f"{asked} == 3"], capsys)
        both = f"{asked} == 3 or {other} == 3"
        if asked != "time":  # whose other names are known
            units = ", if their units are the same" if "duration" in (asked, other) else ""
            named = f"`{asked}` is called `{other}` in records without it"
            assert told == f"jitdb: {named}: `{both}` asks those, too{units}\n"
        assert jitdb.open(path).count(both) == sum(number % 7 == 3 for number in range(2 * later))
        told = told_each_time(path, ["values", asked], capsys)
        assert (f"`{asked}` is called `{other}` in records without it" in told) or asked == "time"
        told = told_each_time(path, ["query", "--sort", f"-{asked}", "--limit", "1"], capsys)
        assert (
            f"in records without it: their records are sorted as those without `{asked}`" in told
        ) or asked == "time"


@pytest.mark.parametrize(
    "others",
    [
        [{"duration_ms": 5}, {"duration_ms": 5, "ms": 4}],  # one record has both
        [{"duration_ms": 5}, {"event": "start"}],  # one has neither
        [{"duration_ms": "slow"}],  # a text is no number
        [{"b": {"duration_ms": 5}}],  # in another map
        [{"msg": 5}],  # another word
    ],
)
def test_another_field_is_not_the_same(
    tmp_path: Path, others: list[Record], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.ndjson", [{"ms": 3}, *others])
    assert told_each_time(path, ["count", "ms == 3"], capsys) == ""


@pytest.mark.parametrize(("old", "new"), [("userId", "user_id"), ("user.id", "userId"), ("user.name", "user")])
def test_a_field_whose_name_is_written_otherwise(
    tmp_path: Path, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def record(name: str) -> Record:
        first, _, last = name.partition(".")
        return {first: {last: "u1"} if last else "u1"}

    path = write(tmp_path / "a.ndjson", [*([record(old)] * 3), *([record(new)] * 4)])
    told = told_each_time(path, ["count", f'{old} == "u1"'], capsys)
    both = f'{old} == "u1" or {new} == "u1"'
    assert told == f"jitdb: `{old}` is called `{new}` in records without it: `{both}` asks those, too\n"
    assert jitdb.open(path).count(both) == 7


@pytest.mark.parametrize(
    ("values", "asked", "meant"),
    [
        (["TRUE", "FALSE"], "x == true", 'x == "TRUE"'),
        ([True, "yes", "no"], "x == true", 'x == "yes"'),
        ([0, 1], "x == false", "x == 0"),
        (["00003", "00004"], "x == 3", 'x == "00003"'),
        (["\x1b[31merror\x1b[39m", "info"], 'x == "error"', "x == '\\x1b[31merror\\x1b[39m'"),
    ],
)
def test_a_value_that_is_written_otherwise(
    tmp_path: Path, values: list[object], asked: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.ndjson", [{"x": value, "n": 1} for value in values])
    code = main(["count", str(path), asked])
    assert f"`{meant}`" in capsys.readouterr().err
    assert code == 0
    assert jitdb.open(path).count(meant) == 1


def test_an_empty_cell_is_absent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time,v\n2026-11-28 08:00:00,x\n2026-11-28 08:00:01,\n")
    assert main(["count", str(path), 'v == ""']) == 0
    told = 'no record has "" in `v`, and some lack the field; did you mean `absent(v)`?'
    assert told in capsys.readouterr().err
    assert jitdb.open(path).count("absent(v)") == 1


def test_a_field_of_json_in_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.ndjson", [{"payload": '{"code": 1}', "n": 1}] * 3)
    assert main(["count", str(path), "payload.code == 1"]) == 0
    assert "did you mean `json(payload).code`?" in capsys.readouterr().err
    assert jitdb.open(path).count("json(payload).code == 1") == 3
