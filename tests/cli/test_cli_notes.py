"""Notes on standard error, where an answer is right and probably not what was meant."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import make_log

import jitdb
from jitdb.cli import main
from jitdb.engine.hinting.fields import nearest_field


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """`said(records, "query", …)`: what a command that succeeds says besides its answer."""
    monkeypatch.chdir(tmp_path)

    def call(records: list[Any], command: str, *arguments: str) -> str:
        path = tmp_path / "x.log"
        if not path.exists():
            make_log(path, records)
        code = main([command, "x.log", *arguments])
        out, err = capsys.readouterr()
        is_told = command in ("count", "query") and not {"-q", "--quiet"}.isdisjoint(arguments)
        assert code == int(is_told and out in ("", "0\n"))  # as in grep, 1 says that none matches
        return err

    return call


Run = Callable[..., Any]
NO_ORDER = "this is the order of arrival; say --timestamp "


@pytest.mark.parametrize(
    ("key", "value", "advice"),
    [
        ("time", 17, "time"), ("ts", 1.5, "ts"), ("created_at", 17, "created_at"),
        ("@timestamp", 17, """'["@timestamp"]'"""),
        ("eventTime", 17, "eventTime"), ("n", 17, "PATH"), ("time", "yesterday", "PATH"),
        ("timestamp", "1/2/24", "PATH"),
    ],
)  # fmt: skip
def test_an_order_by_nothing_is_told_of(said, key: str, value: Any, advice: str) -> None:
    told = said([{key: value}, {key: value}], "query")
    assert told.startswith("jitdb: no record has a time under `timestamp` or `value.timestamp`: ")
    assert told.splitlines()[0].endswith(NO_ORDER + advice)
    assert ("holds no time" in told) == isinstance(value, str)


def test_a_nested_time_is_found(said) -> None:
    records = [{"meta": {"ts": 3, "n": 1}}, {"meta": {"ts": 2, "n": 1}}]
    assert NO_ORDER + "meta.ts\n" in said(records, "query", "meta.n == 1")
    assert said(records, "query", "--timestamp", "meta.ts") == ""
    assert "under `meta.n.x`: " in said(records, "query", "--timestamp", "meta.n.x")


def test_an_answer_in_order_is_not_commented(said) -> None:
    records = [{"timestamp": 2, "n": 1}, {"n": 1}, {"n": 2}, {"n": 2}, {"n": 3}]
    assert said(records, "query") == ""
    assert said(records, "query", "n == 1") == ""
    assert said(records, "query", "n == 3") == ""  # one record is in any order
    assert said(records, "query", "n == 2", "--arrival") == ""
    assert said(records, "query", "n == 2", "-q") == ""
    assert said(records, "query", "n == 2").startswith("jitdb: no record of this answer has a time under")


def test_raw_records_have_no_timestamps_to_name(said, tmp_path: Path) -> None:
    make_log(tmp_path / "x.log", [b"\x01a", b"\x01b"], codec="raw")
    assert said([], "query") == ""


RECORDS = [{"timestamp": 1, "type": "post", "user": {"name": "ada", "Role": "x"}, "tags": ["a"]}]


@pytest.mark.parametrize("command", ["count", "query", "export"])
def test_a_misspelt_field_of_an_empty_answer(said, command: str) -> None:
    assert said(RECORDS, command, 'tpye == "post"') == "jitdb: no record has the field `tpye`; did you mean `type`?\n"
    assert said(RECORDS, command, 'type == "vote"') == ""
    assert said(RECORDS, command, 'tpye == "post"', "-q") == ""


@pytest.mark.parametrize(
    ("question", "lack"),
    [
        ('tpye != "post"', "the field `tpye`; did you mean `type`?"),
        ("tpye is absent", "the field `tpye`; did you mean `type`?"),
        ('not tpye == "post"', "the field `tpye`; did you mean `type`?"),
        ('type == "post" or usr.name == "ada"', "the field `usr.name`; did you mean `user.name`?"),
        ("not (tiemstamp < 5)", "a number or a time in `tiemstamp`; did you mean `timestamp`?"),
    ],
)
@pytest.mark.parametrize(
    "command",
    ["count", "query", "export", "values type", "stats timestamp", "timeline", "histogram timestamp"],
)
def test_a_misspelt_field_is_told_whatever_the_answer_is(said, command: str, question: str, lack: str) -> None:
    assert said(RECORDS, *command.split(), question).count(f"jitdb: no record has {lack}\n") == 1
    assert said(RECORDS, *command.split(), question, "--quiet") == ""


def test_a_misspelt_field_of_columns(said) -> None:
    told = said(RECORDS, "export", 'tpye != "post"', "--format", "csv")
    assert told == "jitdb: no record has the field `tpye`; did you mean `type`?\n"


@pytest.mark.parametrize("question", ['type != "vote"', "user.nick is absent or type == 3", 'not ("b" in tags)'])
def test_fields_that_are_there_or_absent_in_all_but_one(said, question: str) -> None:
    assert said([*RECORDS, {"user": {"nick": 1}}], "count", question) == ""


@pytest.mark.parametrize("bounds", [["--since", "2013-03-01"], ["--until", "2030-03-01"]])
@pytest.mark.parametrize("command", ["count", "query", "timeline", "export", "tail"])
def test_a_time_under_no_field_is_an_error(said, command: str, bounds: list[str], capsys) -> None:
    assert said(RECORDS, "count", "-q", "--timestamp", "timestamp", *bounds) == ""
    capsys.readouterr()
    assert main([command, "x.log", "--timestamp", "tiemstamp", *bounds]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == (
        "", "jitdb: no record has a time under `tiemstamp`; did you mean `timestamp`?\n"
    )  # fmt: skip


def test_a_time_under_an_unusual_name_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "x.csv"
    log.write_text("Zeit;n\n28.11.2026 10:00:00;1\n28.11.2026 11:00:00;2\n")
    assert main(["count", str(log), "--since", "2026-11-28T10:30"]) == 1
    assert "say where it is: --timestamp Zeit" in capsys.readouterr().err
    assert main(["query", str(log)]) == 0
    assert "; say --timestamp Zeit" in capsys.readouterr().err
    assert main(["count", str(log), "--since", "2026-11-28T10:30", "--timestamp", "Zeit"]) == 0
    assert capsys.readouterr().out == "1\n"


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("nmae == 1 and type == 2", "`nmae`; did you mean `user.name`?"),
        ("user.role == 1", "`user.role`; did you mean `user.Role == 1`?"),
        ('"a" in tgas', "`tgas`; did you mean `tags`?"),
        ('starts_with(xyzzy, "x")', "`xyzzy`\n"),
        ("xyzzy is not absent", "`xyzzy`\n"),
    ],
)
def test_the_field_that_was_meant(said, question: str, told: str) -> None:
    assert f"no record has the field {told}" in said(RECORDS, "count", question)


def test_a_column_says_nothing_of_null(said) -> None:
    told = "jitdb: no record has a number or a time in `usr.name`; did you mean `user.name`?\n"
    assert said(RECORDS, "count", "usr.name > 3") == told
    told = "jitdb: some values of `user.name` are no numbers: `<` and `>` leave these out\n"
    assert said(RECORDS, "count", "user.name > 3") == told


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ('tags contains "re"', '`tags` holds arrays; did you mean `tags[] contains "re"`?'),
        ('starts_with(tags, "b")', '`tags` holds arrays; did you mean `tags[] starts_with "b"`?'),
        ('tags == "blue"', '`tags` holds arrays; did you mean `includes(tags, "blue")`?'),
        ('name contains "X"', 'no record has name contains "X"; did you mean `name icontains "X"`?'),
    ],
)
def test_text_that_is_asked_otherwise(said, question: str, told: str) -> None:
    records = [{"tags": ["Red", "blue"], "name": "x"}]
    assert said(records, "count", question) == f"jitdb: {told}\n"
    assert said(records, "count", question, "-q") == ""


def test_a_field_that_only_late_records_have_is_known(said) -> None:
    assert said([*({"n": 1} for _ in range(300)), {"late": 1}], "count", "late == 2") == ""


MIXED = [{"n": 5, "ok": True}, {"n": "12m", "ok": False}, {"n": 7.5}, {"n": None}]


def test_lengths_of_time_that_are_sorted_as_text(said) -> None:
    """The note says what sorts them; that is quiet."""
    records = [{"dur": text, "at": {"took": text}, "name": f"{text} long"} for text in ("99.9ms", "100ms", "1.5s")]
    for key, by in (("dur", "duration(dur)"), ("-dur", "-duration(dur)"), ("-at.took", "-duration(at.took)")):
        name = key.strip("-")
        text = f"`{name}` is text such as \"99.9ms\", sorted as text: --sort '{by}' sorts by the length of time"
        assert said(records, "query", "--sort", key) == f"jitdb: {text}\n"
        assert said(records, "query", "--sort", key, "-q") == ""
        assert said(records, "query", "--sort", by) == ""
    assert said(records, "query", "--sort", "-name") == ""


@pytest.mark.parametrize(
    ("texts", "is_told"),
    [
        (("$9,296.00", "$10,000.00"), True), (("99,7", "100,1"), True), (("9 MB", "10 MB"), True),
        (("9%", "10%"), True),
        (("9", "10"), False), (("10.0.0.9", "10.0.0.10"), False), (("1.2.9", "1.2.10"), False),
        (("2026-11-20", "2026-11-21"), False), (("abc9", "abc10"), False),
    ],
)  # fmt: skip
def test_numbers_that_are_sorted_as_text(said, texts: tuple[str, str], is_told: bool) -> None:
    told = said([{"price": text} for text in texts], "query", "--sort", "-price")
    assert (", which spells no number: sorted as text" in told) == is_told


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("query --sort n", "`n` holds values from number to string: each kind is sorted for itself"),
        ("query --sort -n", "`n` holds values from string to number: each kind is sorted for itself"),
        ("query --sort ok", ""),
        ("stats n", "some values of `n` are no numbers, and left out here: `jitdb values` counts them, too"),
        ("histogram n", "some values of `n` are no numbers, and left out here: `jitdb values` counts them, too"),
        ("export --format parquet -o x.parquet", "the column `n` is text, for it holds number and string"),
        ("export --format csv -o x.csv", ""),
    ],
)
def test_values_of_several_kinds(said, command: str, told: str) -> None:
    name, *options = command.split()
    if "parquet" in command:
        pytest.importorskip("pyarrow")
    assert said(MIXED, name, *options) == (f"jitdb: {told}\n" if told else "")
    assert said(MIXED, name, *options, "-q") == ""
    assert "kind" not in said(MIXED, "query", "n > 0", "--sort", "n")


@pytest.mark.parametrize(
    "command", ["query --sort n", "query --sort -n", "stats n", "histogram n", "stats_by", "count", "values ok"]
)
def test_numbers_written_as_text(said, command: str) -> None:
    records = [{"n": "12", "ok": True}, {"n": 5, "ok": True}, {"n": "0.5"}]
    name, *options = command.replace("stats_by", "stats n --by ok").split()
    options += ["n >= 0.5"] if name in ("count", "values") else []
    told = "jitdb: `n` holds numbers written as text: taken as numbers here, and by == as text\n"
    assert said(records, name, *options) == told
    assert said(records, name, *options, "-q") == ""
    assert said(records, "count", "n == 5") == ""
    assert said(records, "count", "n == 12") == 'jitdb: no record has n == 12; did you mean `n == "12"`?\n'


@pytest.mark.parametrize("command", ["stats", "histogram"])
def test_numbers_alone_or_none(said, command: str) -> None:
    assert said([{"n": 5}, {"n": None}, {}], command, "n") == ""


def test_an_empty_log_has_no_misspelt_fields(said) -> None:
    assert said([], "count", "tpye == 1") == "jitdb: x.log is empty\n"


def test_columns_that_no_record_has(said) -> None:
    told = "jitdb: none of these records has the field `tpye`; did you mean `type`?\n"
    for format_ in ("table", "ndjson"):
        assert said(RECORDS, "query", "--fields", "tpye,tags", "--format", format_) == told


def test_records_with_endless_keys_are_looked_at_in_part(said) -> None:
    records = [{str(number): number for number in range(5000)} for _ in range(20)]
    assert "the field `abc`\n" in said(records, "count", "abc == 1", "--block-size", "64K")


def test_nearest_field_prefers_the_same_name() -> None:
    known = [("a", "status"), ("state",), ("status",)]
    assert nearest_field(("Status",), known) == ("status",)
    assert nearest_field(("b", "status"), known) == ("a", "status")
    assert nearest_field(("zzz",), known) is None


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ('user.name == "ada"', 'user["first name"]'),
        ('items.sku == "x1"', "items[].sku"),
        ('items.0.sku == "x1"', "items[0].sku"),
        ('items[].sku.id == "x1"', "items[].sku"),
        ("one[].x == 1", "one.x"),
        ("tags[].x == 1", "tags"),
    ],
)
def test_the_spelling_that_finds_something_is_said(said, typed: str, meant: str) -> None:
    records = [
        {"log.level": "ERROR", "user": {"first name": "ada"}, "items": [{"sku": "x1"}], "one": {"x": 1}, "tags": [1]}
    ]
    assert f"did you mean `{meant}`?" in said(records, "count", typed)
    assert said(records, "count", f"present({meant})") == ""


def test_a_key_with_a_dot(said) -> None:
    records = [{"log.level": "ERROR"}]
    assert said(records, "count", 'log.level == "ERROR"') == (
        'jitdb: no record has the field `log.level`; did you mean `["log.level"] == "ERROR"`?\n'
    )
    assert said(records, "count", '["log.level"] == "ERROR"') == ""


def test_columns_have_the_keys_as_names(said, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    records = [{"log.level": "ERROR", "items": [{"sku": "x1"}, {"sku": "x2"}], "a,b": 1}]
    names = '["log.level"],items[0].sku,items[].sku,["a,b"]'
    make_log(tmp_path / "x.log", records)
    assert main(["query", "x.log", "--fields", names, "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "log.level": "ERROR", "items[0].sku": "x1", "items[].sku": ["x1", "x2"], "a,b": 1
    }  # fmt: skip
    assert main(["query", "x.log", "--format", "table", "--quiet"]) == 0
    assert '["log.level"]' in capsys.readouterr().out
    assert "none of these records has the field `log.level`; did you mean `[" in said(
        records, "query", "--fields", "log.level"
    )
    assert main(["query", "x.log", "--fields", "items[x]"]) == 2
    assert "in the brackets of a path stands a key in quotes" in capsys.readouterr().err


VALUES = [{"area": 180, "land": "Europe", "ok": True, "id": "7", "at": {"x": None}}, {"area": 3.5, "land": "ASIA"}]


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ('area == "180"', 'area == "180"; did you mean `area == 180`?'),
        ('area == "3.5" and ok == True', 'area == "3.5"; did you mean `area == 3.5`?'),
        ("id == 7", 'id == 7; did you mean `id == "7"`?'),
        ('land == "europe"', 'land == "europe"; did you mean `land == "Europe"`?'),
        ('area == 180 and land == "asia"', 'land == "asia"; did you mean `land == "ASIA"`?'),
        ('ok == "true"', 'ok == "true"; did you mean `ok == True`?'),
        ('at.x == "null"', 'at.x == "null"; did you mean `at.x == None`?'),
    ],
)
def test_the_value_that_was_meant(said, question: str, told: str) -> None:
    assert said(VALUES, "count", question) == f"jitdb: no record has {told}\n"
    assert said(VALUES, "count", question, "-q") == ""


@pytest.mark.parametrize(
    "question", ['land == "Africa"', 'area == "many"', 'area == 180 and land == "ASIA"', "id == 8"]
)
def test_values_like_which_there_are_none(said, question: str) -> None:
    assert said(VALUES, "count", question) == ""


LIKELY = {
    "took": 9110000, "scope": {"name": "x"}, "resource": {"attributes": {"service.name": "shop"}},
    "log": '{"severity": "ERROR", "http": {"code": 500}}', "note": "{no JSON",
}  # fmt: skip


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("took > 500ms", "a number or a time in `duration(took)`: `took` holds plain numbers such as 9110000: "
                         "compare with a number, as in `took > 1`"),
        ('service.name == "shop"', 'the field `service.name`; did you mean `resource.attributes["service.name"]`?'),
        ('scope.nam == "x"', "the field `scope.nam`; did you mean `scope.name`?"),
        ('severity == "x"', "the field `severity`; did you mean `json(log).severity`?"),
        ('level >= "error"', "the field `level`; did you mean `json(log).severity`?"),
        ("http.code == 500", "the field `http.code`; did you mean `json(log).http.code`?"),
    ],
)  # fmt: skip
def test_fields_that_are_there_in_another_way(said, question: str, told: str) -> None:
    assert said([LIKELY], "count", question) == f"jitdb: no record has {told}\n"
    meant = told.partition("did you mean `")[2].partition("`")[0]
    if meant:  # what is said is there
        assert "no record has the field" not in said([LIKELY], "count", f"{meant} is absent")


def test_lines_of_text_have_few_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"2026-11-20 13:00:{second:02},123 something happened\n" for second in range(30)))
    assert main(["count", str(path), "status == 500"]) == 0
    said = capsys.readouterr().err
    told = "no record has the field `status`: these are lines of text, with the fields `time`, `text`; look into `text`"
    assert told in said


def test_text_of_containers_has_few_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.log"
    path.write_text("2026-11-20T13:00:01.123456789Z stdout F 10.0.0.1 GET /a 500\n" * 3)
    assert main(["count", str(path), "status == 500"]) == 0
    assert "with the fields `time`, `stream`, `message`; look into `message`\n" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["file", "_file", "path", "filename"])
def test_the_file_of_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    for number in range(2):
        (tmp_path / f"{number}.ndjson").write_text('{"n": 1}\n')
    for command in (["values", str(tmp_path), name], ["query", str(tmp_path), f'{name} == "0.ndjson"']):
        assert main(command) == 0
        told = f"the field `{name}`; of several logs, `_path` is the path of each record's log\n"
        assert told in capsys.readouterr().err
    assert main(["values", str(tmp_path), "_path"]) == 0
    assert f"{tmp_path}/1.ndjson" in capsys.readouterr().out


def test_levels_of_windows_are_asked_by_their_names(said) -> None:
    """Its 3 is a warning, and syslog's an error."""
    names = {1: "Critical", 2: "Error", 3: "Warning", 4: "Information"}
    events = [{"Level": number, "LevelDisplayName": name, "in": {"Level": number}} for number, name in names.items()]
    told = 'numbers of `Level` are read as those of syslog; did you mean `LevelDisplayName >= "error"`?'
    assert said(events, "count", 'Level >= "error"') == f"jitdb: {told}\n"
    assert said(events, "count", 'Level >= "error"', "-q") == ""
    assert said(events, "count", 'LevelDisplayName >= "error"') == ""
    assert "read as syslog's, where 0 is the worst" in said(events, "count", 'in.Level >= "error"')
    with jitdb.open("x.log") as db:
        assert db.count(jitdb.operators.parse_expression('LevelDisplayName >= "error"')) == 2


DOTTED = b"20.11.26 13:00:00 INFO a\n20.11.26 14:30:00 ERROR b\n20.11.26 15:00:00 INFO c\n"


@pytest.mark.parametrize("command", ["count", "query", "export", "timeline", "values level", "stats n", "histogram n"])
def test_text_that_is_no_time_is_told_by_every_command(command: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.log").write_bytes(DOTTED)
    pattern = ("--log-format", r"(?P<time>\S+ \S+) (?P<level>[A-Z]+) (?P<text>.*)", "--timestamp", "time")
    name, *rest = command.split()
    main([name, "x.log", *rest, *pattern, "--since", "2026-11-20T14:00"])
    told = capsys.readouterr().err
    assert told.count("values of `time` such as '20.11.26 13:00:00' are no times") == 1


@pytest.mark.parametrize("command", ["count", "query", "export", "timeline", "values n"])
def test_records_that_are_all_older_are_told_by_every_command(said, command: str) -> None:
    name, *rest = command.split()
    told = said([{"timestamp": 1, "n": 1}], name, *rest, "--since", "2026-11-20")
    assert told.count("the newest record is of 1970-01-01T00:00:01Z, before --since") == 1


@pytest.mark.parametrize("first", ['{"level": "error"}', "hello"])
def test_a_stack_trace_on_the_other_stream_is_found_as_the_note_says(tmp_path: Path, capsys, first: str) -> None:
    time = "2026-11-20T13:00:00.1Z"
    path = tmp_path / "0.log"
    path.write_text(
        f"{time} stdout F {first}\n{time} stderr F Traceback (most recent call last):\n"
        f'{time} stderr F   File "a.py", line 1\n{time} stdout F {{"level": "info"}}\n'
    )
    assert main(["count", str(path), 'stream == "stderr"']) == 0
    told = capsys.readouterr()
    assert told.out == "0\n"
    asked = re.fullmatch(r"jitdb: records have the `stream` of their first line, .*; `(.*)` finds these\n", told.err)
    assert asked
    assert main(["count", str(path), asked[1]]) == 0
    assert capsys.readouterr().out == "1\n"
    assert main(["count", str(path), 'stream == "stdout"']) == 0
    assert capsys.readouterr() == ("2\n", "")


@pytest.mark.parametrize("command", [["count"], ["query"], ["values", "level"], ["timeline"]])
def test_a_day_beside_its_time_of_day_is_told(said, command: list[str]) -> None:
    told = "`date` holds days alone: records are at midnight, as the time of day in `time` is no part of it\n"
    days = [{"date": "2026-11-20", "time": time, "level": "info"} for time in ("10:30:00", "15:30:00")]
    assert told in said(days, *command, "--until", "2026-11-20T12:00")


@pytest.mark.parametrize("command", [["count"], ["query"], ["values", "level"], ["timeline"]])
def test_days_with_a_time_or_without_one_are_not_commented(said, command: list[str]) -> None:
    others = [{"date": "2026-11-20", "time": "tomorrow"}, {"date": "2026-11-20T10:30:00Z", "time": "10:30:00"}]
    assert "midnight" not in said(others, *command, "--until", "2026-11-20T12:00")


def test_patterns_of_a_shell_are_those_of_like(said) -> None:
    records = [{"path": "/item/1"}, {"path": "/cart"}]
    told = said(records, "count", 'path like "/item/*"')
    assert told == 'jitdb: no record has path like "/item/*"; did you mean `path like "/item/%"`?\n'
    assert 'like "/it_m/%"`?' in said(records, "count", 'path like "/it?m/*"')
    assert "did you mean" not in said(records, "count", 'path like "/cart/*"')


@pytest.mark.parametrize(
    "asked", ["values user", "values n --by user", "stats user --distinct", "stats n --by user", "timeline --by user"]
)
def test_maps_that_count_as_values_are_told_of(said, asked: str) -> None:
    records = [{"timestamp": n, "n": n, "user": {"id": n % 2} if n % 3 else "ada"} for n in range(9)]
    reason = "`user` holds maps in some records, and each different map counts as a value; ask a field in them"
    for _ in range(2):
        assert said(records, *asked.split()).splitlines()[-1] == f"jitdb: {reason}, such as `user.id`"
    assert said(records, *asked.split(), "-q") == ""
    assert said(records, *asked.replace("user", "user.id").split()) == ""


def test_no_stack_trace_is_spoken_of_where_there_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "abc-json.log"
    lines = [{"log": "served\n", "stream": "stdout", "time": f"2026-11-20T12:00:{n:02}Z"} for n in range(40)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["count", str(path), 'stream == "stderr"']) == 0
    assert capsys.readouterr() == ("0\n", "")


def test_a_field_that_is_named_twice(said) -> None:
    told = "jitdb: none of these records has the field `xyzzy`\n"
    assert said(RECORDS, "query", "--sort", "xyzzy", "--fields", "xyzzy") == told


@pytest.mark.parametrize(
    "command", ["count", "query", "values n", "stats n", "timeline", "histogram n", "find x", "fields"]
)
def test_files_without_anything(run, tmp_path: Path, command: str) -> None:
    name, *operands = command.split()
    (tmp_path / "logs").mkdir()
    for number in range(2):
        (tmp_path / "logs" / f"{number}.ndjson").touch()
    one, many = run(name, "logs/0.ndjson", *operands), run(name, "logs", *operands)
    assert (one.returncode, one.stderr) == (0, "jitdb: logs/0.ndjson is empty\n")
    assert (many.returncode, many.stderr) == (0, "jitdb: all 2 files are empty\n")
    assert run(name, "logs", *operands, "-q").stderr == ""
    (tmp_path / "logs" / "1.ndjson").write_text('{"n": 1}\n')
    assert "empty" not in run(name, "logs", *operands).stderr


def test_what_is_proposed_is_the_expression(run, tmp_path: Path) -> None:
    """It takes the place of the expression that was typed; the options stay."""
    (tmp_path / "logs").mkdir()
    for name, key, value in (("a", "level", "error"), ("b", "PRIORITY", "3")):
        (tmp_path / "logs" / f"{name}.ndjson").write_text(f'{{"time": "2026-11-20T14:00:00Z", "{key}": "{value}"}}\n')
    for window in ([], ["--since", "2026-11-20T13:00", "--until", "2026-11-20T15:00"]):
        done = run("count", "logs", 'level >= "error"', *window)
        assert done.stdout == "1\n"
        assert done.stderr.splitlines()[0] == (
            "jitdb: `level` is called `PRIORITY` in logs/b.ndjson: "
            '`level >= "error" or PRIORITY >= "error"` asks those, too'
        )


TABLE = "Time,Duration (ms),Status [code]\n2026-11-20 06:10:01,155.2,503\n2026-11-20 06:10:02,5,200\n"


def _said(run: Run, *arguments: object) -> tuple[int, str, str]:
    done = run(*map(str, arguments))
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("field", ["Duration (ms)", '["Duration (ms)"]', "Status [code]", '["Status [code]"]'])
@pytest.mark.parametrize("command", ["values", "stats", "histogram"])
def test_a_field_may_have_brackets_in_its_name(tmp_path: Path, run: Run, command: str, field: str) -> None:
    (tmp_path / "x.csv").write_text(TABLE)
    code, out, err = _said(run, command, tmp_path / "x.csv", field, '["Status [code]"] > 0')
    assert (code, err) == (0, "")
    assert "2 records" in out


def test_what_is_counted_of_a_folder_says_which_logs_call_the_field_otherwise(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.json").write_text('{"status": 503}\n' * 2)
    (tmp_path / "b.json").write_text('{"http": {"status": 503}}\n' * 3)
    for command in ("values", "stats"):
        code, _, err = _said(run, command, tmp_path, "status")
        assert code == 0
        assert err.count("`status` is called `http.status` in ") == 1
    _, _, err = _said(run, "values", tmp_path / "a.json", "status")
    assert "is called" not in err


def test_a_field_that_other_records_have_is_not_called_unknown(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.json").write_text('{"n": 1, "_rid": "x"}\n{"n": 2, "rid": "x"}\n')
    _, _, err = _said(run, "query", tmp_path / "a.json", "--fields", "n,rid", "--limit", "1")
    assert "did you mean" not in err
    assert "none of these records has the field `rid`, which others have" in err
    _, _, err = _said(run, "query", tmp_path / "a.json", "--fields", "*", "--limit", "1")
    assert "without --fields all fields are shown" in err


def test_a_time_of_day_alone_is_told_how_it_is_asked(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.json").write_text('{"time": "2026-11-20T06:10:01Z"}\n')
    code, _, err = _said(run, "count", tmp_path / "a.json", 'time >= "06:00"')
    assert code == 2
    assert "--since 06:00" in err


def test_braces_that_no_shell_has_seen(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.json").write_text('{"n": 1}\n')
    code, _, err = _said(run, "count", tmp_path / "{a,b}.json")
    assert code == 1
    assert "where no quotes are around it" in err


def test_how_times_are_held_is_told_of_the_logs_that_are_asked(tmp_path: Path, run: Run) -> None:
    for name, time in (("a", "1795155001123"), ("b", '"2026-11-20T06:10:01Z"')):
        (tmp_path / f"{name}.json").write_text(f'{{"ts": {time}}}\n' * 3)
    _, out, err = _said(run, "count", ".", 'ts > 1795155001000 and _path contains "a.json"')
    assert out == "3\n"
    assert "holds times such as" not in err
    _, out, err = _said(run, "count", ".", 'ts > 1795155001000 and _path contains "b.json"')
    assert out == "0\n"
    assert "holds times such as" in err


@pytest.mark.parametrize("command", [["query"], ["timeline"]])
def test_no_length_of_time_is_proposed_for_the_time(tmp_path: Path, run: Run, command: list[str]) -> None:
    (tmp_path / "dmesg.log").write_text("[    0.000000] Linux\n[    1.500000] usb 1-1: new\n" * 9)
    told = run(*command, str(tmp_path / "dmesg.log")).stderr
    assert "--timestamp uptime" not in told
    assert "time" in told


@pytest.mark.parametrize("command", [["query"], ["timeline"]])
def test_text_without_times_has_no_field_to_name(tmp_path: Path, run: Run, command: list[str]) -> None:
    (tmp_path / "a.log").write_text("up\ndown\n" * 9)
    told = run(*command, str(tmp_path / "a.log")).stderr
    assert "--timestamp" not in told
    assert "time" in told


@pytest.mark.parametrize("question", ['level >= "error"', 'level == "ERROR"', 'not level == "ERROR"'])
@pytest.mark.parametrize("lacking", [0, 1, 30])
def test_records_of_text_without_a_level_are_told(tmp_path: Path, run: Run, question: str, lacking: int) -> None:
    lines = [*["2026-11-20 10:00:00 ERROR a"] * 20, *["2026-11-20 10:00:00 b"] * lacking]
    (tmp_path / "a.log").write_text("\n".join([*lines, "2026-11-20 10:00:00 ERROR c\n"]))
    found = run("count", "a.log", question)
    out, told = found.stdout, found.stderr
    assert int(out) == (lacking if "not" in question else 21)
    which = (
        f"no level is found in the text of {lacking} of {21 + lacking} records looked at: `absent(level)` finds these"
    )
    assert (which in told) == (lacking > 0)
    assert ("no level" in told) == (lacking > 0)
    if lacking:
        assert run("count", "a.log", re.findall("`(.*)`", told)[-1]).stdout == f"{lacking}\n"


def test_few_records_of_text_without_a_level_are_told_where_an_index_knows(tmp_path: Path, run: Run) -> None:
    lines = ["2026-11-20 10:00:00 ERROR a\n"] * 40_000
    lines[20_001] = "2026-11-20 10:00:00 b\n"
    (tmp_path / "a.log").write_text("".join(lines))
    told = run("count", "a.log", 'level >= "error"').stderr
    assert "no level is found in the text of some records: `absent(level)` finds these" in told


def test_records_whose_level_is_called_otherwise_do_not_lack_one(tmp_path: Path, run: Run) -> None:
    lines = "I1128 10:00:00.000000 1 x.go:1] ok\nerror: cannot reach the server\n" * 20
    (tmp_path / "klog.log").write_text(lines)
    found = run("count", "klog.log", 'level >= "error"')
    assert found.stdout == "20\n"
    assert "`level` is called `severity` in" in found.stderr
    assert "no level is found" not in found.stderr


@pytest.mark.parametrize("question", ["level is absent", 'CONTENT contains "up"'])
def test_questions_that_no_level_answers_have_no_note_on_levels(tmp_path: Path, run: Run, question: str) -> None:
    (tmp_path / "syslog").write_text("Nov 20 13:00:00 web app[7]: up\nNov 20 13:00:00 web app[7]: error: no\n")
    found = run("count", "syslog", question)
    assert (found.stdout, found.stderr) == ("1\n", "")


def test_the_time_is_found_behind_lines_that_are_no_json(tmp_path: Path, run: Run) -> None:
    lines = ["127.0.0.1 GET /\n"] * 40 + ['{"level":30,"time":1795923647451}\n'] * 40
    (tmp_path / "a.log").write_text("".join(lines))
    assert run("count", "a.log", "--since", "2026-11-01").stdout == "40\n"


@pytest.mark.parametrize("question", ['level >= "error"', 'level == "error"'])
def test_a_level_that_only_late_records_of_text_have(tmp_path: Path, run: Run, question: str) -> None:
    line = "Nov 20 13:00:00 web app[7]: "
    (tmp_path / "syslog").write_text(f"{line}up\n" * 300 + f"{line}error: no\n" * 3)
    found = run("count", "syslog", question)
    assert found.stdout == "3\n"
    assert "no level is found in the text of 200 of 200 records looked at" in found.stderr


RENAMED = [{("ts" if number % 2 else "time"): f"2026-11-20T10:00:{number:02}Z", "n": number} for number in range(20)]


@pytest.mark.parametrize("bound", [["--since", "2026-11-20"], ["--until", "2026-11-21"]])
def test_records_whose_time_has_another_name_are_told(tmp_path: Path, run: Run, bound: list[str]) -> None:
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(record) + "\n" for record in RENAMED))
    for _ in range(2):
        found = run("count", "a.ndjson", *bound)
        assert found.stdout == "10\n"
        assert (
            "left out are records without a time in `time`, 10 of 20 looked at; these have one in `ts`" in found.stderr
        )
    both = re.findall("to read both: (.*)", found.stderr)[0].split()
    found = run("count", "a.ndjson", *bound, *both)
    assert (found.stdout, found.stderr) == ("20\n", "")


@pytest.mark.parametrize(
    "asked",
    [
        ["timeline", "a.ndjson", "--every", "1h"], ["query", "a.ndjson", "--descending", "--limit", "1"],
        ["query", "a.ndjson", "--limit", "2"],
    ],
)  # fmt: skip
def test_an_order_by_time_tells_of_records_whose_time_has_another_name(
    tmp_path: Path, run: Run, asked: list[str]
) -> None:
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(record) + "\n" for record in RENAMED))
    for _ in range(2):  # a second time the indexes are fresh
        told = run(*asked).stderr
        assert "by time are records without a time in `time`, 10 of 20 looked at; these have one in `ts`\n" in told
    both = re.findall("to read both: (.*)", told)[0].split()
    assert run(*asked, *both).stderr == ""
    assert "have one in" not in run(*asked, "--quiet").stderr
    (tmp_path / "a.ndjson").write_text('{"time":"2026-11-20T10:00:00Z"}\n{"n":1}\n')
    assert "without a time in" not in run(*asked).stderr


@pytest.mark.parametrize("value", ["null", None])
def test_records_without_a_time_are_told_where_one_is_asked_for(tmp_path: Path, run: Run, value: str | None) -> None:
    lines = ['{"time":"2026-11-20T10:00:00Z"}\n'] * 3 + ["{}\n" if value is None else f'{{"time":{value}}}\n']
    (tmp_path / "a.ndjson").write_text("".join(lines))
    found = run("count", "a.ndjson", "--since", "2026-11-20")
    assert found.stdout == "3\n"
    assert "left out are records without a time in `time`, 1 of 4 looked at\n" in found.stderr
    assert run("query", "a.ndjson", "--format", "ndjson").stderr == ""
    (tmp_path / "a.ndjson").write_text("".join(lines[:3]))
    assert run("count", "a.ndjson", "--since", "2026-11-20").stderr == ""


def test_a_timeline_of_days_alone_is_told(tmp_path: Path, run: Run) -> None:
    records = [{"Date": "2026-11-28", "Time": f"{hour}:00:00"} for hour in (10, 11)]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert (
        "records are at midnight, as the time of day in `Time`" in run("timeline", "a.ndjson", "--every", "1h").stderr
    )


def test_a_timeline_of_logs_with_and_without_zones_is_told(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.ndjson").write_text('{"time":"2026-11-28T11:00:00"}\n')
    (tmp_path / "b.ndjson").write_text('{"time":"2026-11-28T10:00:00Z"}\n')
    assert "without a zone are read as UTC" in run("timeline", "a.ndjson", "b.ndjson", "--every", "1h").stderr
    assert run("timeline", "b.ndjson", "--every", "1h").stderr == ""


@pytest.mark.parametrize("text", ["a: 1\rb: 2\rc", '{"a":1}\r{"a":2}\r', "x\r\r"])
def test_lines_that_end_with_carriage_returns_alone(tmp_path: Path, run: Run, text: str) -> None:
    (tmp_path / "a.log").write_bytes(text.encode())
    found = run("count", "a.log")
    if text == "x\r\r":
        assert found.stdout == "1\n"
        return
    assert "carriage returns alone end its lines" in found.stderr
    assert "tr '\\r' '\\n' < a.log > a.lines.log" in found.stderr
    (tmp_path / "a.lines.log").write_bytes(text.replace("\r", "\n").encode())
    assert run("count", "a.lines.log").stdout == f"{len(text.split(chr(13))) - text.endswith(chr(13))}\n"


@pytest.mark.parametrize(
    ("zone", "since", "count"),
    [
        (None, "2026-11-28T14:00", 2), ("Europe/Berlin", "2026-11-28T14:00", 2),
        ("Europe/Berlin", "2026-11-28T14:00Z", 1),
        ("Europe/Berlin", "2026-11-28T14:30+01:00", 2), ("+02:00", "2026-11-28 15:00", 1),
        ("Europe/Berlin", "Nov 28 14:00", 2),
        ("Europe/Berlin", "2026-11-28", 3), ("America/New_York", "2026-11-29", 0),
        ("Europe/Berlin", "1795872600", 2), ("Europe/Berlin", "1795872601", 1),
    ],
)  # fmt: skip
def test_bounds_are_of_the_zone_of_the_log(tmp_path: Path, run: Run, zone: str | None, since: str, count: int) -> None:
    lines = ("2026-11-28 10:00:00 a", "2026-11-28 14:30:00 b", "2026-11-28 15:30:00 c", "")
    (tmp_path / "a.log").write_text("\n".join(lines))
    found = run("count", "a.log", "--since", since, *(["--log-tz", zone] if zone else []))
    assert found.stdout == f"{count}\n"


def test_records_whose_time_has_another_name_late_in_a_file_are_told(tmp_path: Path, run: Run) -> None:
    lines = ['{{"{}":"2026-11-20T10:00:00Z"}}\n'.format("time" if number < 1200 else "ts") for number in range(1210)]
    (tmp_path / "a.ndjson").write_text("".join(lines))
    found = run("count", "a.ndjson", "--since", "2026-11-20")
    assert found.stdout == "1200\n"
    assert "left out are records without a time in `time`; these have one in `ts`\n" in found.stderr


HEAD = "2026-11-20 10:00:00 INFO "
ACCESS = '1.2.3.4 - - [28/Nov/2026:10:00:00 +0000] "GET /x HTTP/1.1" {} 10 "-" "curl"\n'
TRACED = "I1128 10:00:00.000000       1 x.go:1] {}\n"


@pytest.mark.parametrize(
    ("lines", "question", "format"),
    [
        ([ACCESS.format(500)] * 90 + ["2026-11-28T11:00:00Z GET /x 500 10\n"] * 90, "status >= 500", "combined"),
        (
            [ACCESS.format(500), ACCESS.format(200), f"{HEAD}up\n"] * 45 + [f"{HEAD}down\n"] * 45,
            "body_bytes_sent == 10", "combined",
        ),
        ([TRACED.format("a")] * 90 + ["2026-11-28 11:00:00 b\n"] * 90, "file == \"x.go\" or msg == \"z\"", ""),
        (["time=2026-11-28T10:00:00Z n=7 msg=a\n"] * 90 + ["2026-11-28 11:00:00 INFO b\n"] * 90, "n >= 5", "logfmt"),
    ],
)  # fmt: skip
def test_lines_of_another_format_are_told(
    tmp_path: Path, run: Run, lines: list[str], question: str, format: str
) -> None:
    (tmp_path / "a.log").write_text("".join(lines))
    for _ in range(2):  # the second answer needs no scan
        found = run("count", "a.log", question)
        assert found.stdout == "90\n"
        assert found.stderr.count("90 of 180 lines looked at are of another format than") == (format != "")
    if format:
        assert run("count", "a.log", re.findall("`([^`]*)` finds these", found.stderr)[-1]).stdout == "90\n"


@pytest.mark.parametrize(
    ("lines", "question"),
    [
        ([ACCESS.format(500), ACCESS.format("-")], "status >= 500"),  # which a line of this format may lack
        ([ACCESS.format(500)] * 60 + ["2026-11-28T11:00:00Z up\n"], "status >= 500"),
        ([ACCESS.format(500)] * 2 + ["2026-11-28T11:00:00Z up\n"], "status is absent"),
        ([ACCESS.format(500)] * 2 + ["2026-11-28T11:00:00Z up\n"], 'time_local >= "2026-11-28"'),
        (["INFO:     1.2.3.4:5 - \"GET /x HTTP/1.1\" 500\n"] * 2 + ["INFO:     up\n"], "status_code >= 500"),
        (["time=2026-11-28T10:00:00Z n=7\n", "time=2026-11-28T10:00:00Z msg=b\n"], "n >= 5"),
        (['{"status":500}\n', '{"n":1}\n'], "status >= 500"),
        (["<34>1 2026-11-28T10:00:00Z h a - - - up\n"] * 9, 'PROCID == "7" or APP_NAME == "a"'),
    ],
)  # fmt: skip
def test_lines_of_the_format_that_lack_a_field_are_not_told(
    tmp_path: Path, run: Run, lines: list[str], question: str
) -> None:
    (tmp_path / "a.log").write_text("".join(lines * 3))
    found = run("count", "a.log", question)
    assert int(found.stdout) > 0
    assert "another format" not in found.stderr


@pytest.mark.parametrize(
    ("first", "more"),
    [
        ("2026-11-28-08.09.29.169516+000 I{}E456            LEVEL: Warning", ["PID     : 0", "MESSAGE : failed {}"]),
        ("=ERROR REPORT==== 28-Nov-2026::08:09:{}9 ===", ["closing <0.0.{}>:", "{{handshake_timeout,frame_header}}"]),
        ("[ 11-28 10:00:00.{}00  12:34 I/tag ]", ["up {}"]),
    ],
)  # fmt: skip
def test_entries_of_several_lines_in_plain_text_are_told(tmp_path: Path, run: Run, first: str, more: list[str]) -> None:
    entries = ("\n".join((first, *more)).format(*[number] * 9) for number in range(9))
    (tmp_path / "a.log").write_text("\n\n".join(entries) + "\n")
    found = run("count", "a.log")
    assert found.stdout == f"{9 * (1 + len(more))}\n"
    assert "entries seem to have several lines" in found.stderr
    given = shlex.split(found.stderr.split("its other lines as `trace`: ")[1])
    told = run("count", "a.log", *given)
    assert (told.stdout, told.stderr) == ("9\n", "")
    last = more[-1].format(8)
    assert run("count", "a.log", *given, f'trace contains "{last}"').stdout == (
        "9\n" if last == more[-1].format(7) else "1\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "up\ndown\n\nup\n" * 9,
        "- a\n- b\n\n- c\n- d\n\n" * 9,
        "A title\n\nSome words of\na text.\n\nMore of\nthem.\n" * 9,
    ],
)
def test_other_plain_text_has_no_note_on_entries(tmp_path: Path, run: Run, text: str) -> None:
    (tmp_path / "a.log").write_text(text)
    assert run("count", "a.log").stderr == ""
