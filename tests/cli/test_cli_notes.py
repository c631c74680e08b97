"""Notes on standard error, where an answer is right and probably not what was meant: on fields and values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import make_log

import jitdb
from jitdb.cli import main
from jitdb.engine.hinting.fields import nearest_field

Run = Callable[..., Any]

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


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("nmae == 1 and type == 2", "`nmae`; did you mean `user.name`?"),
        ("user.role == 1", "`user.role`; did you mean `user.Role == 1`?"),
        ('"a" in tgas', "`tgas`; did you mean `tags`?"),
        ('starts_with(xyzzy, "x")', "`xyzzy`; there are `timestamp`, `type`, `user`, `tags`\n"),
        ("xyzzy is not absent", "`xyzzy`; there are `timestamp`, `type`, `user`, `tags`\n"),
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
    told = said(records, "count", "abc == 1", "--block-size", "64K")
    assert 'the field `abc`; there are `["0"]`, ' in told
    assert '`["7"]` and 4992 more\n' in told


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
def test_the_spelling_that_finds_something_issaid_by(said, typed: str, meant: str) -> None:
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
                         "compare with a number of the same unit, as in `took > 9110000`"),
        ('note.stringValue == "x"', "the field `note.stringValue`; did you mean `note`?"),
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


@pytest.mark.parametrize(
    ("question", "count", "told"),
    [
        ("err != null", 3, "is true of records without the field, too; did you mean `err is not null`?"),
        ("not (err == null)", 3, "is true of records without the field, too; did you mean `err is not null`?"),
        ("err is not null", 1, ""), ("err is not null or n == 7", 1, ""), ("n != null", 3, ""),
    ],
)  # fmt: skip
def test_what_is_not_null_and_may_not_be_there(said, question: str, count: int, told: str) -> None:
    records = [{"n": 1, "err": {"type": "x"}}, {"n": 2}, {"n": 3}]
    assert said(records, "count", question) == (told and f"jitdb: `err != null` {told}\n")
    with jitdb.open("x.log") as db:
        assert db.count(question) == count


@pytest.mark.parametrize("field", ["date", "datetime", "when", "at"])
def test_a_field_that_is_compared_with_a_time_is_the_time(said, field: str) -> None:
    records = [{"timestamp": f"2026-11-20T1{hour}:00:00Z"} for hour in range(5)]
    asked = f'{field} >= "2026-11-20T12:00" and n is absent'
    told = said(records, "count", asked)
    meant = 'timestamp >= "2026-11-20T12:00:00Z" and absent(n)'
    assert f"jitdb: no record has a number or a time in `{field}`; did you mean `{meant}`?\n" in told
    with jitdb.open("x.log") as db:
        assert (db.count(asked), db.count(meant)) == (0, 3)


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


def test_a_field_that_is_named_twice(said) -> None:
    told = "jitdb: none of these records has the field `xyzzy`; there are `timestamp`, `type`, `user`, `tags`\n"
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


def said_by(run: Run, *arguments: object) -> tuple[int, str, str]:
    done = run(*map(str, arguments))
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("field", ["Duration (ms)", '["Duration (ms)"]', "Status [code]", '["Status [code]"]'])
@pytest.mark.parametrize("command", ["values", "stats", "histogram"])
def test_a_field_may_have_brackets_in_its_name(tmp_path: Path, run: Run, command: str, field: str) -> None:
    (tmp_path / "x.csv").write_text(TABLE)
    code, out, err = said_by(run, command, tmp_path / "x.csv", field, '["Status [code]"] > 0')
    assert (code, err) == (0, "")
    assert "2 records" in out


def test_what_is_counted_of_a_folder_says_which_logs_call_the_field_otherwise(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.json").write_text('{"status": 503}\n' * 2)
    (tmp_path / "b.json").write_text('{"http": {"status": 503}}\n' * 3)
    for command in ("values", "stats"):
        code, _, err = said_by(run, command, tmp_path, "status")
        assert code == 0
        assert err.count("`status` is called `http.status` in ") == 1
    _, _, err = said_by(run, "values", tmp_path / "a.json", "status")
    assert "is called" not in err


def test_a_field_that_other_records_have_is_not_called_unknown(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.json").write_text('{"n": 1, "_rid": "x"}\n{"n": 2, "rid": "x"}\n')
    _, _, err = said_by(run, "query", tmp_path / "a.json", "--fields", "n,rid", "--limit", "1")
    assert "did you mean" not in err
    assert "none of these records has the field `rid`, which others have" in err
    _, _, err = said_by(run, "query", tmp_path / "a.json", "--fields", "*", "--limit", "1")
    assert "without --fields all fields are shown" in err


def test_braces_that_no_shell_has_seen(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.json").write_text('{"n": 1}\n')
    code, _, err = said_by(run, "count", tmp_path / "{a,b}.json")
    assert code == 1
    assert "where no quotes are around it" in err


@pytest.mark.parametrize("pattern", ["Failed password for <*> from <ip> port <num> ssh2", "Failed password for <*>"])
def test_a_pattern_that_no_text_is_of(said, pattern: str) -> None:
    records = [{"text": f"Failed password for ada from 203.0.113.{n} port 5{n} ssh2"} for n in range(3)]
    told = said(records, "count", f'text fits "{pattern}"')
    whole = "a pattern is of a whole text, as `jitdb patterns` writes it: <num> for digits, <*> for one word\n"
    assert told.endswith(whole)
    assert said(records, "count", 'text fits "Failed password for ada from <ip> port <num> ssh<num>"') == ""


def test_what_stands_behind_an_access_is_named(tmp_path: Path, run: Run) -> None:
    line = '203.0.113.9 - - [29/Nov/2026:18:03:00 +0000] "GET / HTTP/1.1" 200 9 "-" "curl" rt=0.090 host=a\n'
    (tmp_path / "a.log").write_text(line * 3)
    told = run("stats", "a.log", "rt").stderr
    rest = "`more` is the rest of the line, such as 'rt=0.090 host=a': nginx's log_format names its parts"
    assert rest in told
    given = '$remote_addr - $remote_user [$time_local] "$request" $status $size "$referer" "$agent" rt=$rt host=$host'
    assert "0.09" in run("stats", "a.log", "rt", "--log-format", given).stdout


def test_the_stream_of_records_with_traces_is_told(tmp_path: Path, run: Run) -> None:
    lines = ['stdout F {"n": 1}', "stderr F Traceback (most recent call last):", "stderr F   File x"]
    stamped = (f"2026-11-29T16:09:26.{number:09}Z {line}\n" for number, line in enumerate([*lines, "stderr F No: y"]))
    (tmp_path / "a.log").write_text("".join(stamped))
    told = "jitdb: records have the `stream` of their first line: stack traces on the other one belong to them\n"
    assert told in run("values", "a.log", "stream").stderr
    assert "stream" not in run("values", "a.log", "n").stderr
