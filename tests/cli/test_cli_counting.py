"""values, timeline, stats, histogram and fields: what they print, in each format."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import FIXTURE
from test_cli_startup import _HEAVY, loaded

import jitdb
from jitdb import JITDB
from jitdb.display.sheet import Sheet, table_lines, width_of

Run = Callable[..., Any]


@pytest.fixture
def rows(run: Run) -> Callable[..., list[dict[str, Any]]]:
    """Runs a command with --format ndjson: its rows."""

    def call(*arguments: str) -> list[dict[str, Any]]:
        done = run(*arguments, "--format", "ndjson", "-q")
        assert (done.returncode, done.stderr) == (0, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    return call


def test_values_as_they_are_shown(run: Run, events: Path) -> None:
    done = run("values", "events.log", "status")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "status  count   share",
        "   200      2  40.0 %  ████████████████████████████████████████",
        "   404      1  20.0 %  ████████████████████",
        "   500      1  20.0 %  ████████████████████",
        "   502      1  20.0 %  ████████████████████",
        "5 records; 4 values",
    ]
    short = run("values", "events.log", "user.name", 'level == "info"', "--limit", "1")
    assert short.stdout.splitlines()[-1] == "3 records; 2 values; 1 with other values; 1 without `user.name`"


def test_patterns_as_they_are_shown(run: Run, events: Path) -> None:
    done = run("patterns", "events.log", "--every", "2s")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "count   share  time  pattern",
        "    1  20.0 %   █    disk is full",
        "    1  20.0 %   █    hi",
        "    1  20.0 %  █     login",
        "    1  20.0 %    █   not here",
        "    1  20.0 %  █     upstream is gone",
        "5 records; 5 patterns; 3 steps of 2s from 2023-11-14 22:13",
    ]
    where = ("events.log", 'level == "error"', "--new-since", "2023-11-14T22:13:22")
    comma = run("patterns", *where, "--format", "csv").stdout
    assert list(csv.reader(io.StringIO(comma))) == [
        ["count", "share", "new", "pattern"],
        ["1", "0.5", "new", "disk is full"],
        ["1", "0.5", "", "upstream is gone"],
    ]
    whole = json.loads(run("patterns", *where, "--every", "2s", "--format", "json").stdout)
    assert whole["rows"][0] == {"pattern": "disk is full", "count": 1, "share": 0.5, "counts": [0, 1], "new": True}
    assert whole["start"] == "2023-11-14T22:13:20Z"
    assert run("count", "events.log", 'message fits "disk <*> full"').stdout == "1\n"
    other = run("patterns", "events.log", "--field", "nothing")
    assert "none of these records has the field `nothing`" in other.stderr
    assert run("patterns", "events.log", "--field", "a[]").returncode == 2


def test_every_format(run: Run, events: Path) -> None:
    expected = [["ada", 2, 0.4], ["grace", 2, 0.4]]
    comma, tab = (run("values", "events.log", "user.name", "--format", form).stdout for form in ("csv", "tsv"))
    assert comma == tab.replace("\t", ",")
    head, *lines = csv.reader(io.StringIO(comma))
    assert head == ["user.name", "count", "share"]
    assert [[name, int(count), float(share)] for name, count, share in lines] == expected
    whole = json.loads(run("values", "events.log", "user.name", "--format", "json").stdout)
    assert whole.pop("rows") == [dict(zip(head, row, strict=True)) for row in expected]
    assert whole == {"field": "user.name", "total": 5, "missing": 1, "distinct": 2}


def test_values_by_another(rows: Any, events: Path) -> None:
    assert rows("values", "events.log", "level", "--by", "status", "--limit", "2") == [
        {"level": "info", "status": 200, "count": 2, "share": 0.4},
        {"level": "error", "status": 500, "count": 1, "share": 0.2},
    ]


def test_values_with_and_without_the_engine(rows: Any, ssb: Path) -> None:
    """Whichever index there is, and whether or not numpy was needed."""
    with jitdb.open(ssb, "memory", read_only=True) as db:
        expected = Counter(
            record["value"]["content"]["type"] for record in db.all() if "type" in record["value"]["content"]
        )
    for _ in range(2):
        found = rows("values", "ssb.log", "value.content.type")
        assert {row["value.content.type"]: row["count"] for row in found} == expected
        assert main_count("ssb.log") >= 0


def main_count(log: str) -> int:
    from jitdb.cli import main

    return main(["count", log, 'value.content.type == "post"', "-q"])


def test_values_of_fresh_bitmaps_need_no_numpy(run: Run, events: Path, tmp_path: Path) -> None:
    run("count", "events.log", 'level == "error"')
    modules = loaded(tmp_path, "values", "events.log", "level")
    assert modules.isdisjoint({*_HEAVY, "numpy", "jitdb.engine.database"})
    assert (
        run("values", "events.log", "level").stdout == run("values", "events.log", "level", "--indexes", "none").stdout
    )


def test_deleted_records_are_left_out(rows: Any, run: Run, events: Path) -> None:
    run("count", "events.log", 'level == "error"')
    run("delete", "events.log", "status == 404", "--yes")
    assert rows("values", "events.log", "level") == [
        {"level": "error", "count": 2, "share": 0.5},
        {"level": "info", "count": 2, "share": 0.5},
    ]


def test_timeline(run: Run, rows: Any, events: Path) -> None:
    done = run("timeline", "events.log", "--every", "2s", "--by", "level")
    assert done.stdout.splitlines() == [
        "time                  count  info  error",
        "2023-11-14T22:13:20Z      2     1      1  ██████████████████████████████████████",
        "2023-11-14T22:13:22Z      2     1      1  ██████████████████████████████████████",
        "2023-11-14T22:13:24Z      1     1      0  ███████████████████",
        "5 records; 3 steps of 2s",
    ]
    assert done.stderr == ""
    none = run("timeline", "events.log", "--since", "2099-01-01").stderr
    assert "the time is `time`" in none
    assert "read as milliseconds" in none
    assert rows("timeline", "events.log", "--every", "1mo", "status >= 500") == [{"time": "2023-11-01", "count": 2}]
    assert sum(row["count"] for row in rows("timeline", "events.log", "--since", "2023-11-14T22:13:22")) == 3
    kolkata = rows("timeline", "events.log", "--every", "1h", "--tz", "Asia/Kolkata")
    assert kolkata == [{"time": "2023-11-15T03:00:00+05:30", "count": 5}]
    assert "did you mean Asia/Kolkata" in run("timeline", "events.log", "--tz", "Asia/Kolkatta").stderr
    wrong = run("timeline", "events.log", "--every", "fortnight")
    assert wrong.returncode == 2
    assert "no step of time" in wrong.stderr


def test_rates(run: Run, rows: Any, events: Path) -> None:
    assert run("timeline", "events.log", "--every", "2s", "--per", "1m").stdout.splitlines()[-2:] == [
        "2023-11-14T22:13:24Z      1    30  ████████████████████",
        "5 records; 3 steps of 2s; rates per 1m",
    ]
    assert rows("timeline", "events.log", "--every", "2s", "--per", "1s", "--by", "level")[-1] == {
        "time": "2023-11-14T22:13:24Z", "count": 1, "rate": 0.5, "info": 0.5, "error": 0.0,
    }  # fmt: skip
    wrong = run("timeline", "events.log", "--per", "1y")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "no rates for them" in wrong.stderr


def test_a_timeline_without_times(run: Run, folder: Path) -> None:
    (folder / "a.ndjson").write_text('{"n": 1, "when": "2024-01-01"}\n')
    done = run("timeline", "a.ndjson")
    assert (done.returncode, done.stdout) == (0, "1 record; 0 steps of 1d; 1 without a time\n")
    assert "say --timestamp when" in done.stderr


def test_stats(run: Run, rows: Any, events: Path) -> None:
    found = {row["statistic"]: row["status"] for row in rows("stats", "events.log", "status")}
    assert (found["count"], found["min"], found["max"], found["sum"], found["median"]) == (5, 200, 502, 1806, 404)
    by = rows("stats", "events.log", "status", "--by", "level")
    assert [(row["level"], row["records"], row["max"]) for row in by] == [("info", 3, 404), ("error", 2, 502)]
    assert run("stats", "events.log", "status", "--by", "level").stdout.splitlines()[-1] == "5 records; 2 values"


def test_quantiles_that_are_named(run, rows, events: Path) -> None:
    (error, info) = rows("stats", "events.log", "status", "--by", "level", "--quantiles", "0,1")[::-1]
    assert [(row["p0"], row["p100"]) for row in (error, info)] == [(500, 502), (200, 404)]
    assert "median" not in error
    assert rows("stats", "events.log", "status", "--quantiles", "1")[-1] == {"statistic": "p100", "status": 502}
    assert "shares from 0 to 1" in run("stats", "events.log", "status", "--quantiles", "99").stderr


def test_one_field_where_one_stands(run, events: Path) -> None:
    assert "one field is expected here" in run("stats", "events.log", "level,status").stderr
    assert "here stands one field" in run("stats", "events.log", '["level,status"]').stderr
    unknown = run("stats", "events.log", "status", "--by", "levle").stderr
    assert "the field `levle`; did you mean `level`?" in unknown
    assert "`status`" not in unknown
    assert run("histogram", "events.log", "status", "--bins", "-50,0,600").returncode == 0


def test_groups(run, rows, events: Path) -> None:
    """By several fields, over time, in another order; and how many different values."""
    said = ["--by", "level", "--by", "user.name"]
    groups = rows("stats", "events.log", "status", *said)
    assert groups == rows("stats", "events.log", "status", "--by", "level,user.name")
    assert {(row["level"], row["user.name"]): row["sum"] for row in groups} == {
        ("error", "ada"): 500, ("error", "grace"): 502, ("info", "ada"): 200, ("info", "grace"): 200,
    }  # fmt: skip
    first = rows("stats", "events.log", "status", *said, "--order", "sum", "--limit", "1")
    assert [row["sum"] for row in first] == [502]
    assert "p99" in rows("stats", "events.log", "status", "--by", "level", "--order", "p99")[0]
    timed = rows("stats", "events.log", "status", "--every", "2s", "--tz", "Asia/Kolkata")
    assert [(row["time"][-14:], row["records"]) for row in timed] == [
        ("03:43:20+05:30", 2), ("03:43:22+05:30", 2), ("03:43:24+05:30", 1),
    ]  # fmt: skip
    assert rows("stats", "events.log", "user.name", "--distinct") == [{"distinct": 2, "count": 4}]
    assert rows("stats", "events.log", "user.name", "--distinct", "--by", "level", "--every", "1d") == [
        {"time": "2023-11-14", "level": "info", "distinct": 2, "count": 2},
        {"time": "2023-11-14", "level": "error", "distinct": 2, "count": 2},
    ]
    whole = json.loads(run("stats", "events.log", "user.name", "--distinct", *said, "--format", "json").stdout)
    assert (whole["field"], whole["by"], whole["missing"]) == ("user.name", ["level", "user.name"], 1)
    several = run("timeline", "events.log", "--every", "1d", "--by", "level,user.name", "--limit", "1").stdout
    assert "error, ada" in several
    assert (
        "1 without `user.name` or a time"
        in run("stats", "events.log", "user.name", "--distinct", "--every", "1d").stdout
    )


def test_shares(run: Run, rows: Any, events: Path) -> None:
    bad = ("--share", "status >= 400")
    assert rows("stats", "events.log", *bad) == [{"matching": 3, "count": 5, "share": 0.6}]
    assert rows("stats", "events.log", 'level == "info"', *bad, "--every", "1d") == [
        {"time": "2023-11-14", "matching": 1, "count": 3, "share": 1 / 3}
    ]
    by = rows("stats", "events.log", *bad, "--by", "level", "--order", "share")
    assert [(row["level"], row["share"]) for row in by] == [("error", 1), ("info", 1 / 3)]
    empty = run(
        "stats", "events.log", *bad, "--every", "2s", "--since", "2023-11-14T22:13:24", "--until", "2023-11-14T22:13:28"
    )
    assert empty.stdout.splitlines()[1:] == [
        f"2023-11-14T22:13:24Z         1      1  100.0 %  {'█' * 32}",
        "2023-11-14T22:13:26Z         0      0",
        "1 of 1 record; 2 steps of 2s",
    ]
    about = json.loads(run("stats", "events.log", *bad, "--format", "json").stdout)
    assert (about["condition"], about["matching"], about["total"]) == ("status >= 400", 3, 5)
    for wrong, told in (
        ("statsu >= 400", "no record has a number or a time in `statsu`; did you mean `status`?"),
        ('level == "Error"', 'did you mean `level == "error"`?'),
    ):
        assert told in run("stats", "events.log", "--share", wrong).stderr
    assert run("stats", "events.log", *bad, "--distinct").returncode == 2
    assert run("stats", "events.log", "status", *bad).returncode == 2
    assert "matching, share, count" in run("stats", "events.log", *bad, "--by", "level", "--order", "sum").stderr


def test_groups_that_nobody_has(run, events: Path) -> None:
    """Of several fields that is said which no record has."""
    for command in (["values", "level"], ["stats", "status"], ["stats", "user.name", "--distinct"]):
        told = run(command[0], "events.log", *command[1:], "--by", "level,usr.name").stderr
        assert told == "jitdb: none of these records has the field `usr.name`; did you mean `user.name`?\n"
    for options, told in (
        (["--order", "sum"], "say --by user"),
        (["--tz", "UTC"], "say --every 1h"),
        (["--by", "level", "--order", "som"], "did you mean sum?"),
        (["--distinct", "--quantiles", "0.5"], "of any kind"),
    ):
        done = run("stats", "events.log", "status", *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert told in done.stderr
    assert "say --timestamp time" in run("stats", "events.log", "status", "--every", "1h", "--timestamp", "ts").stderr
    rare = run("stats", "events.log", "user.name", "--by", "level", "--limit", "1")
    assert "holds no numbers, only string" in rare.stderr


def test_histogram(run: Run, rows: Any, events: Path) -> None:
    assert rows("histogram", "events.log", "status", "--bins", "0,300,502") == [
        {"from": 0, "below": 300, "count": 2},
        {"from": 300, "below": 502, "count": 2},
    ]
    assert [row["count"] for row in rows("histogram", "events.log", "status", "--bins", "4")] == [2, 0, 1, 2]
    assert run("histogram", "events.log", "status", "--bins", "0,502").stdout.endswith("5 records; 1 above\n")
    assert run("histogram", "events.log", "status", "--bins", "x").returncode == 2


def test_fields(run: Run, rows: Any, events: Path) -> None:
    found = {row["field"]: row for row in rows("fields", "events.log")}
    assert found["user.name"] == {
        "field": "user.name",
        "kinds": {"string": 4},
        "share": 0.8,
        "examples": ["ada", "grace"],
    }
    assert set(found["tags"]["kinds"]) == {"array"}
    assert found["tags[]"] == {"field": "tags[]", "kinds": {"string": 1}, "share": 0.2, "examples": ["a"]}
    assert run("fields", "events.log").stdout.endswith("5 records looked at\n")


def test_what_is_said_of_nothing(run: Run, events: Path) -> None:
    assert "did you mean `level`?" in run("values", "events.log", "levle").stderr
    assert "holds no numbers, only string" in run("stats", "events.log", "level").stderr
    assert "holds no numbers, only string" in run("histogram", "events.log", "level").stderr
    assert "did you mean `status`?" in run("stats", "events.log", "statu").stderr
    assert "no record has the field `levle`" in run("values", "events.log", "level", "levle == 1").stderr
    assert run("values", "events.log", "levle", "-q").stderr == ""
    for arguments in (["events.log"], ["events.log", 'level == "info"']):
        done = run("values", *arguments)
        assert (done.returncode, "a field is missing" in done.stderr) == (2, True)


@pytest.mark.parametrize("command", ["values", "stats", "histogram"])
def test_one_field_is_expected(run: Run, events: Path, command: str) -> None:
    done = run(command, "events.log", 'level like "e%"')
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f'jitdb: {command}: one field is expected here, not level like "e%"\n'
        f"  an expression stands behind the field: jitdb {command} events.log FIELD 'level like \"e%\"'\n"
    )
    for several in ("level,status", "level, status", 'user["a"],status'):
        done = run(command, "events.log", several)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"jitdb: {command}: one field is expected here, not {several}\n  the field whose")
        assert ("--by status" in done.stderr) == (command != "histogram")
    for one in ('["level,status"]', '["level like 5"].x', "user name", '["a, b"]["c d"]'):
        assert run(command, "events.log", one).returncode == 0


def test_many_logs(run: Run, rows: Any, events: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    for number in range(3):
        (tmp_path / "more" / f"{number}.ndjson").write_text('{"level": "info"}\n' * (number + 1))
    assert rows("values", "more", "level") == [{"level": "info", "count": 6, "share": 1.0}]
    assert [row["count"] for row in rows("values", "more", "_path")] == [3, 2, 1]
    files = [f"more/{number}.ndjson" for number in range(3)]
    assert rows("values", *files, "level") == [{"level": "info", "count": 6, "share": 1.0}]
    assert rows("values", *files, "level", 'level == "x"') == []
    assert rows("fields", *files)[0]["share"] == 1.0
    assert rows("timeline", "more") == []


def test_an_earlier_state(run: Run, rows: Any, events: Path) -> None:
    places = run("query", "events.log", "--offsets", "--arrival", "-q").stdout.split()
    assert rows("values", "events.log", "level", "--as-of", places[0]) == [{"level": "info", "count": 1, "share": 1.0}]


def test_a_table_shows_hostile_values() -> None:
    """Nothing in a record paints on the terminal, or moves a column."""
    sheet = Sheet(["value", "count"], [["\x1b[2J", 2], ["日本", 1], [None, 1], [["x" * 99], 1], ["", 1]], 1, {}, "")
    for blocks in (True, False):
        lines = list(table_lines(sheet, 72, blocks))
        assert "\x1b" not in "".join(lines)
        assert lines[1].startswith("\\x1b[2J ")
        assert lines[2].index("1") == lines[1].index(" 2 ") + 1 - 2  # two signs take four columns
        assert lines[3].startswith("null ")
        assert "…" in lines[4]
        assert all(len(line) <= 72 for line in lines)
        assert ("█" in lines[1]) == blocks


def test_values_in_a_pipe_are_whole(run: Run, tmp_path: Path) -> None:
    """Whatever the width of a terminal is said to be: what reads them wants all of them."""
    texts = [f"Failed password for root from 10.0.0.{number} " + "x" * 300 + f"{number} port" for number in range(3)]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps({"text": text, "list": [text]}) + "\n" for text in texts))
    for command in (("values", "text"), ("values", "list"), ("values", "text", "--by", "list")):
        shown = run(command[0], "a.ndjson", *command[1:], "--indexes", "none").stdout
        assert all(text in shown for text in texts)
        assert "…" not in shown


def test_cells_that_differ_look_different() -> None:
    """They are cut at the end, in the middle, or, where both would hide what tells them apart, not at all."""
    start, tail = "Failed password for user root from a host that is called", " to port 22 of some machine in the house"
    ends = [f"{number}: {start}{tail}" for number in range(5)]
    middles = [f"{start}{tail} {number}" for number in range(5)]
    wholes = [f"{start}{number}{tail}" for number in range(5)]
    for texts in (
        ends,
        middles,
        wholes,
        [*ends, *middles, *wholes],
        ["日本" * 40 + str(number) for number in range(5)],
    ):
        rows = [[text, count] for count, text in enumerate(texts)]
        lines = list(table_lines(Sheet(["value", "count"], rows, 1, {}, ""), 60))[1:]
        assert len({line[: line.rindex("  ")].rstrip(" █▏▎▍▌▋▊▉") for line in lines}) == len(texts)
        is_whole = [text in line for text, line in zip(texts, lines, strict=True)]
        assert is_whole == [text in wholes for text in texts]
        assert all(whole or width_of(line) <= 60 for line, whole in zip(lines, is_whole, strict=True))
    long = [[f"{'x' * 50} {number}", f"{'y' * 50} {number}", 1] for number in range(3)]
    for width in (30, 60, 130):
        lines = list(table_lines(Sheet(["a", "b", "count"], long, 2, {}, ""), width))
        assert all(len(line) <= max(width, 40) for line in lines)
        assert len(set(lines)) == 4


def test_a_fixture_in_bars(run: Run, tmp_path: Path) -> None:
    """Twenty rows of a table, all of another format."""
    with JITDB(jitdb.Log(FIXTURE, read_only=True), "memory") as db:
        distinct = db.value_counts("value.author").distinct
    assert distinct > 20
    shown = run("values", str(FIXTURE), "value.author", "--indexes", "none").stdout.splitlines()
    assert len(shown) == 22
    assert (
        len(run("values", str(FIXTURE), "value.author", "--indexes", "none", "--format", "csv").stdout.splitlines())
        == distinct + 1
    )


def test_an_expression_before_a_folder(run: Run, events: Path, tmp_path: Path) -> None:
    done = run("count", 'level == "info"', ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the log comes first, the expression behind it\n  jitdb count . 'level == \"info\"'" in done.stderr


def test_text_that_spells_a_number_beside_numbers(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"s": 200}\n{"s": "200"}\n{"s": "x"}\n')
    lines = run("values", "a.ndjson", "s").stdout.splitlines()[1:4]
    assert [line.split()[0] for line in lines] == ["200", '"200"', "x"]
    (tmp_path / "b.ndjson").write_text('{"s": "200"}\n')
    assert run("values", "b.ndjson", "s").stdout.splitlines()[1].startswith("200 ")


def test_a_share_goes_without_a_field(run: Run, events: Path) -> None:
    for words in (["status"], ["status", 'level == "error"']):
        done = run("stats", "events.log", *words, "--share", "status > 400")
        assert done.returncode == 2
        assert "--share is of records, and goes without a field" in done.stderr
        assert "jitdb stats events.log --share 'status > 400' [EXPR]" in done.stderr


def test_times_without_a_zone_and_the_clock_of_a_place(run: Run, tmp_path: Path) -> None:
    """They are those of the clock that wrote them: another one moves them to other days."""
    for name, zone, is_told in (("a.log", "", True), ("b.log", "Z", False)):
        (tmp_path / name).write_text("".join(f"2026-11-2{day}T00:30:00{zone} ERROR x\n" for day in (7, 8)))
        for command in (["timeline", name], ["stats", name, "text", "--distinct"]):
            done = run(*command, "--every", "1d", "--tz", "America/New_York", "--format", "csv")
            assert "2026-11-26" in done.stdout
            told = (
                "times of `time` without a zone are read as UTC: without --tz, steps are those of the clock that wrote"
            )
            assert (told in done.stderr) == is_told, done.stderr
            assert told not in run(*command, "--every", "1d").stderr
