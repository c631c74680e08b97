"""Notes on how times were read, on records without one, and on an order by none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import make_log
from test_cli_notes import RECORDS, said_by

from jitdb.cli import main

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


@pytest.mark.parametrize("timed", ["a", "b", ""])
def test_one_log_of_a_folder_has_the_time(
    timed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    for name in ("a", "b"):
        time = {"time": "2026-11-20T10:00:00Z"} if name == timed else {"other": 1}
        (tmp_path / f"{name}.ndjson").write_text("".join(json.dumps({"n": n, **time}) + "\n" for n in range(3)))
    monkeypatch.chdir(tmp_path)
    assert main(["query", ".", "n >= 1"]) == 0
    out, told = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert ("has a time under" in told) == (not timed)


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


@pytest.mark.parametrize("command", [["count"], ["query"], ["values", "level"], ["timeline"]])
def test_a_day_beside_its_time_of_day_is_told(said, command: list[str]) -> None:
    told = "`date` holds days alone: records are at midnight, as the time of day in `time` is no part of it\n"
    days = [{"date": "2026-11-20", "time": time, "level": "info"} for time in ("10:30:00", "15:30:00")]
    assert told in said(days, *command, "--until", "2026-11-20T12:00")


@pytest.mark.parametrize("command", [["count"], ["query"], ["values", "level"], ["timeline"]])
def test_days_with_a_time_or_without_one_are_not_commented(said, command: list[str]) -> None:
    others = [{"date": "2026-11-20", "time": "tomorrow"}, {"date": "2026-11-20T10:30:00Z", "time": "10:30:00"}]
    assert "midnight" not in said(others, *command, "--until", "2026-11-20T12:00")


@pytest.mark.parametrize(
    ("time", "step", "told"),
    [
        ('"2026-11-20"', "10m", "`time` holds days alone: records are at midnight\n"), ('"2026-11-20"', "1d", ""),
        ('"2026-11-20T00:00:00Z"', "10m", ""),
        ("134397072000000000", "1h", "numbers of `time` are read as nanoseconds, by their size\n"),
        ("1795155001123", "1h", ""),
    ],
)  # fmt: skip
def test_a_timeline_that_cannot_be_meant_is_told_each_time(tmp_path: Path, run: Run, time, step, told) -> None:
    (tmp_path / "a.json").write_text(f'{{"time": {time}}}\n' * 9)
    for _ in range(3):
        code, out, err = said_by(run, "timeline", tmp_path / "a.json", "--every", step)
        assert (code, "9" in out, err) == (0, True, told and f"jitdb: {told}")


def test_a_time_of_day_alone_is_told_how_it_is_asked(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.json").write_text('{"time": "2026-11-20T06:10:01Z"}\n')
    code, _, err = said_by(run, "count", tmp_path / "a.json", 'time >= "06:00"')
    assert code == 2
    assert "--since 06:00" in err


def test_how_times_are_held_is_told_of_the_logs_that_are_asked(tmp_path: Path, run: Run) -> None:
    for name, time in (("a", "1795155001123"), ("b", '"2026-11-20T06:10:01Z"')):
        (tmp_path / f"{name}.json").write_text(f'{{"ts": {time}}}\n' * 3)
    _, out, err = said_by(run, "count", ".", 'ts > 1795155001000 and _path contains "a.json"')
    assert out == "3\n"
    assert "holds times such as" not in err
    _, out, err = said_by(run, "count", ".", 'ts > 1795155001000 and _path contains "b.json"')
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


def test_the_time_is_found_behind_lines_that_are_no_json(tmp_path: Path, run: Run) -> None:
    lines = ["127.0.0.1 GET /\n"] * 40 + ['{"level":30,"time":1795923647451}\n'] * 40
    (tmp_path / "a.log").write_text("".join(lines))
    assert run("count", "a.log", "--since", "2026-11-01").stdout == "40\n"


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


@pytest.mark.parametrize("command", [["timeline"], ["query"], ["stats", "--share", 'level == "x"', "--every", "1d"]])
def test_a_day_that_may_be_a_month_is_told_by_what_goes_by_time(tmp_path: Path, run: Run, command: list[str]) -> None:
    (tmp_path / "a.log").write_text("11/12/2026 10:00:00 ERROR no\n" * 4)
    for _ in range(2):
        _, _, err = said_by(run, command[0], tmp_path / "a.log", *command[1:])
        assert "times of `time` are read with the day first, as the first lines do not tell" in err


@pytest.mark.parametrize(
    ("line", "inside"), [("[1795975375.392092] 64 bytes: time=0.036 ms", True), ('{"time": 1795975375}', False)]
)
def test_numbers_of_the_time_itself_are_told(tmp_path: Path, run: Run, line: str, inside: bool) -> None:
    (tmp_path / "a.log").write_text(f"{line}\n" * 4)
    _, out, err = said_by(run, "stats", tmp_path / "a.log", "time")
    assert "1,795,975,375" in out
    assert "`time` is the time of each record, which `jitdb timeline` counts by" in err
    assert ("numbers in the text have names by --log-format" in err) == inside
