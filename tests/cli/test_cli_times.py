"""--since, --until, --time-unit, and the notes on times."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest

import jitdb
from jitdb.cli import main
from jitdb.errors import QueryError
from jitdb.operators import between, equal, field, format_expression, gt, lte, parse_expression
from jitdb.operators.nodes.instants import instant_at

Run = Callable[..., tuple[str, str]]

SAY_ZONE = "  if the clock that wrote them shows no UTC, say its zone: --log-tz Europe/Berlin, +02:00, local\n"
NOW = 1_700_000_000_000_000_000  # 2023-11-14T22:13:20Z


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("count", …)`: what a command that succeeds writes, and what it says besides."""

    def call(*arguments: str) -> tuple[str, str]:
        assert main(list(arguments)) == 0
        captured = capsys.readouterr()
        return captured.out, captured.err

    return call


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "log.ndjson"
    path.write_text("".join(json.dumps({"ts": f"2026-11-{day:02}T12:00:00", "n": day}) + "\n" for day in range(1, 31)))
    return str(path)


def test_between_two_times(run: Run, log: str) -> None:
    assert run("count", log, "--since", "2026-11-05T12:00", "--until", "2026-11-08")[0] == "3\n"
    assert run("count", log, 'ts >= "2026-11-05T12:00Z" and ts < "2026-11-08"')[0] == "3\n"
    assert run("count", log, "n > 6", "--since", "2026-11-05", "--until", "2026-11-08")[0] == "1\n"
    assert run("query", log, "--since", "2026-11-30", "--fields", "n")[0] == '{"n":30}\n'


@pytest.mark.parametrize(
    ("since", "until"), [("2026-11-08", "2026-11-05"), ("5d", "6d"), ("2026-11-08", "2026-11-08"), ("1h", "2026-11-05")]
)
@pytest.mark.parametrize("command", ["count", "query", "timeline", "export", "tail", "values"])
def test_since_after_until_is_an_error(
    log: str, capsys: pytest.CaptureFixture[str], command: str, since: str, until: str
) -> None:
    assert main([command, log, *(["n"] if command == "values" else []), "--since", since, "--until", until]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("jitdb: nothing is from --since 20")
    assert "\n  --since is the earlier time, as in --since 13:00 --until 14:00" in told.err


@pytest.mark.parametrize(("zone", "told"), [("IST", ", though IST stands behind them"), ("[7]", ""), ("CETERA", "")])
def test_the_name_of_a_zone_is_said(run: Run, tmp_path: Path, zone: str, told: str) -> None:
    path = tmp_path / "pg.log"
    path.write_text(f"2026-11-20 13:00:00.000 {zone} [100] app@shop ERROR:  m\n" * 2)
    found = run("count", str(path), "--since", "2026-11-20T12:30:00Z")
    assert found == ("2\n", f"jitdb: times of `time` without a zone are read as UTC{told}\n{SAY_ZONE}")
    assert run("count", str(path), "--since", "2026-11-20T07:30:01Z", "--log-tz", "+05:30") == ("0\n", ANY)
    assert run("count", str(path), "--since", "2026-11-20T07:30:00Z", "--log-tz", "+05:30") == ("2\n", "")
    assert run("count", str(path), 'level == "ERROR"') == ("2\n", "")


def test_a_log_of_another_clock(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times without a zone are UTC to a question, so the note says what reads them by the clock of this place."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        path, now = tmp_path / "ny.log", time.time()
        stamps = [time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now - 60 * ago)) for ago in (50, 40, 20, 10, 1)]
        path.write_text("".join(f"{stamp},000 ERROR [main] m\n" for stamp in stamps))
        out, err = run("count", str(path), "--since", "30m")
        assert out == "0\n"
        asked = re.search(r"\n  if the clock of this place \(E[SD]T\) wrote them, say (--log-tz local)\n", err)
        assert asked is not None
        assert run("count", str(path), "--since", "30m", *asked[1].split()) == ("3\n", "")
        assert "\ntime (America/New_York) (<, " in run("info", str(path))[0]
        assert f"\n{stamps[-1][11:]}.000 ERROR [main] m" in run("query", str(path), "--format", "pretty")[0]
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()
        assert "the clock of this place" not in run("count", str(path), "--since", "30m")[1]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("line", "pattern", "found"),
    [
        ("Nov 27 2026 14:00:00 fw01 : x", r"(?P<time>\w+ +\d+ \d+ [\d:]+) (?P<text>.*)", "Nov 27 2026 14:00:00"),
        ("[27/Nov/2026 14:00:00] x", r"\[(?P<time>[^\]]+)\] (?P<text>.*)", "27/Nov/2026 14:00:00"),
        ("11-27 14:00:00.123  1234 x", r"(?P<time>\S+ \S+) +(?P<text>.*)", "2026-11-27T14:00:00.123"),
        ("<Nov 27, 2026 2:00:00,123 PM UTC> x", "<(?P<time>[^>]*)> (?P<text>.*)", "Nov 27, 2026 2:00:00,123 PM UTC"),
        (
            "=INFO REPORT==== 27-Nov-2026::14:00:00 === x",
            r"=\w+ REPORT==== (?P<time>\S+) ===(?P<text>.*)",
            "27-Nov-2026::14:00:00",
        ),
        ("2026-11-27-15.00.00.5+060 I0E456 x", r"(?P<time>\S+) (?P<text>.*)", "2026-11-27-15.00.00.5+060"),
        ("<27.11.2026 14:00:00> x", "<(?P<time>[^>]*)> (?P<text>.*)", "2026-11-27T14:00:00"),
        ("20261127T140000,123 x", r"(?P<time>\S+) (?P<text>.*)", "20261127T140000,123"),
        ("261127 140000 148 INFO x", r"(?P<time>\d+ \d+) (?P<text>.*)", "2026-11-27T14:00:00"),
    ],
)
def test_times_that_a_pattern_names(run: Run, tmp_path: Path, line: str, pattern: str, found: str) -> None:
    path = tmp_path / "x.log"
    path.write_text(f"{line}\n")
    os.utime(path, (1_796_000_000, 1_796_000_000))  # 30 November 2026
    of_pattern = ("--log-format", pattern)
    bounds = ("--since", "2026-11-27T13:59:59Z", "--until", "2026-11-27T14:00:01Z")
    assert run("query", str(path), "--fields", "time", *bounds, *of_pattern)[0] == f'{{"time":"{found}"}}\n'


def test_no_advice_is_given_twice(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("Freitag x\nSamstag y\n")
    told = run("query", str(path), "--timestamp", "text")[1]
    assert "jitdb: no record has a time under `text`: this is the order of arrival\n" in told


def test_the_value_of_a_time_that_is_not_understood(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.log"
    path.write_text("Freitag x\n")
    assert main(["count", str(path), "--since", "2026-11-27", "--log-format", r"(?P<time>\S+) (?P<text>.*)"]) == 1
    err = capsys.readouterr().err
    assert "values of `time` such as 'Freitag' are no times, and no record has one" in err
    assert "--log-format" not in err


def test_times_with_am_and_pm_in_tables(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "us.csv"
    path.write_text("time,v\n11/27/2026 2:00:00 PM,1\n11/27/2026 3:00:00 PM,2\n")
    assert run("count", str(path), "--since", "2026-11-27T14:30:00Z")[0] == "1\n"


def test_dates_with_dots_in_fields(run: Run, tmp_path: Path) -> None:
    table, lines = tmp_path / "d.csv", tmp_path / "d.ndjson"
    table.write_text("time,v\n27.11.2026 14:00:20,1\n05.12.2026 15:00:00,2\n")
    lines.write_text('{"time":"27.11.2026 14:00:20.5","v":1}\n{"time":"05.12.2026","v":2}\n')
    for path in map(str, (table, lines)):
        assert run("count", path, "--since", "2026-11-27", "--until", "2026-11-28")[0] == "1\n"
        assert run("count", path, "--since", "1.12.2026 0:00", "--log-tz", "Europe/Berlin") == ("1\n", ANY)
        assert run("query", path, 'time == "27.11.2026"', "--fields", "v")[0] in ('{"v":1}\n', '{"v":"1"}\n')
        assert run("query", path, 'time > "27.11.2026"', "--fields", "v")[0] in ('{"v":2}\n', '{"v":"2"}\n')


UNTOLD = "nothing tells whether the day or the month comes first"


@pytest.mark.parametrize(
    ("dates", "told", "makes"),
    [
        (["05/11/2026 08:00:20", "28/11/2026 09:00:00"], "the day comes first", [["05.11.2026 08:00:20"] * 2]),
        (["11/05/2026", "11/28/2026"], "the month comes first", [["05.11.2026", "28.11.2026"]]),
        (["5/11/2026, 8:00", "5/11/2026, 9:00"], UNTOLD, [["5.11.2026, 8:00"] * 2, ["11.5.2026, 8:00"] * 2]),
        (["28/11/2026 08:00", "11/28/2026 09:00"], UNTOLD, [["28.11.2026 08:00"], ["28.11.2026 09:00"]]),
        (["05-11-2026 08:00:20", "28-11-2026 09:00:00"], "the day comes first", [["05.11.2026 08:00:20"] * 2]),
        (["11-05-2026 08:00:20", "11-28-2026"], "the month comes first", [["05.11.2026 08:00:20", "28.11.2026"]]),
        (["5-11-2026 8:00", "5-11-2026 9:00"], UNTOLD, [["5.11.2026 8:00"] * 2, ["11.5.2026 8:00"] * 2]),
    ],
)
def test_slashes_and_hyphens_become_dots(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], dates: list[str], told: str, makes: list[list[str]]
) -> None:
    """Of such dates a message says which number comes first; what it says to type makes times of them."""
    path, new = tmp_path / "d.csv", tmp_path / "new.csv"
    path.write_text("when,v\n" + "".join(f'"{date}",1\n' for date in dates))
    assert main(["count", str(path), "--timestamp", "when", "--since", "2026-01-01"]) == 1
    err = capsys.readouterr().err
    assert f"are no times, and no record has one: {told}\n" in err
    commands = re.findall("sed .*?NEW", err)
    assert len(commands) == len(makes)
    for command, times in zip(commands, makes, strict=True):
        typed = command.replace("FILE", str(path)).replace("NEW", str(new))
        subprocess.run(typed, shell=True, check=True)
        assert times[0] in new.read_text()
        found = run("count", str(new), "--timestamp", "when", "--since", "2026-01-01")[0]
        assert found == f"{len(times)}\n"


def test_hyphens_of_other_numbers_stay(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, new = tmp_path / "d.csv", tmp_path / "new.csv"
    path.write_text("when,id\n28-11-2026 08:00,1-28-11-2026-5 12-4-12345\n")
    assert main(["count", str(path), "--timestamp", "when", "--since", "2026-01-01"]) == 1
    command = re.findall("sed .*?NEW", capsys.readouterr().err)[0]
    subprocess.run(command.replace("FILE", str(path)).replace("NEW", str(new)), shell=True, check=True)
    assert new.read_text() == "when,id\n28.11.2026 08:00,1-28-11-2026-5 12-4-12345\n"


@pytest.mark.parametrize("form", ['{"time":%s}', '{"time":"%s"}'])
def test_numbers_whose_digits_are_a_date_are_times_without_a_zone(run: Run, tmp_path: Path, form: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(form % f"202611{day}070000" + "\n" for day in (20, 21)))
    log = str(path)
    assert run("count", log, "--since", "2026-11-21")[0] == "1\n"
    assert "times of `time` without a zone are read as UTC" in run("count", log, "--since", "2026-11-21")[1]
    assert run("timeline", log, "--every", "1d")[0].startswith("time        count\n2026-11-20      1")
    assert run("count", log, "--since", "20261121070000")[0] == "1\n"
    assert run("count", log, "--since", "20261121070001") == run("count", log, "--since", "2026-11-21T07:00:01")
    berlin = "--log-tz", "Europe/Berlin"
    assert run("count", log, *berlin, "--since", "2026-11-21T06:00:00Z")[0] == "1\n"
    assert run("count", log, *berlin, "--since", "20261121070000")[0] == "1\n"


def test_a_day_that_is_read_as_a_month_is_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "au.csv"
    path.write_text("time,v\n05/11/2026 10:00:00 AM,1\n28/11/2026 10:00:00 AM,2\n")
    out, err = run("count", str(path), "--since", "2026-05-11")
    assert out == "1\n"
    assert "such as '28/11/2026 10:00:00 AM' are no times, as with AM or PM the month is read as first:" in err


def test_the_choice_is_said(run: Run, log: str) -> None:
    ran = run("query", log, "--descending", "--limit", "1", "--fields", "n")
    assert ran == ('{"n":30}\n', "")
    zone = f"jitdb: times of `ts` without a zone are read as UTC\n{SAY_ZONE}"
    assert run("count", log, "--since", "2026-11-05")[1] == zone
    for command in (["count"], ["query"], ["timeline"]):  # of nothing, all that it may be because of
        said = run(*command, log, "--since", "2099-11-05")[1]
        newest = "jitdb: the newest record is of 2026-11-30T12:00:00Z, before --since (2099-11-05T00:00:00Z)\n"
        assert said.startswith(f"{newest}jitdb: the time is `ts`; --timestamp names another field\n{zone}")
    assert run("query", log, "--limit", "1", "--timestamp", "ts", "--arrival")[1] == ""


def test_many_logs_are_merged_by_times_of_all_kinds(run: Run, tmp_path: Path) -> None:
    Path(tmp_path, "a.ndjson").write_text('{"ts":"2023-11-14T22:13:20Z","n":1}\n{"ts":"2023-11-14T22:13:22Z","n":3}\n')
    Path(tmp_path, "b.ndjson").write_text('{"time":1700000001000,"n":2}\n{"time":1700000003000,"n":4}\n')
    lines = run("query", str(tmp_path), "--fields", "n")[0].split()
    assert lines == ['{"n":1}', '{"n":2}', '{"n":3}', '{"n":4}']


def test_folders_are_passed_over_by_their_dates(run: Run, tmp_path: Path) -> None:
    for day in (14, 15, 16):
        folder = tmp_path / f"date=2023-11-{day}"
        folder.mkdir()
        folder.joinpath("a.ndjson").write_text(f'{{"n":{day}}}\n')
    assert run("count", str(tmp_path), 'date >= "2023-11-15"')[0] == "2\n"
    assert not (tmp_path / "date=2023-11-14" / ".jitdb").exists()


@pytest.mark.parametrize(
    ("typed", "moment"),
    [
        ("2h", NOW - 7200 * 10**9),
        ("1h30m", NOW - 5400 * 10**9),
        ("90s ago", NOW - 90 * 10**9),
        ("7d", NOW - 7 * 86_400 * 10**9),
        ("now", NOW),
        ("today", 19_675 * 86_400 * 10**9),
        ("yesterday", 19_674 * 86_400 * 10**9),
        ("1700000000.5", NOW + 5 * 10**8),
        ("2023-11-14T23:13:20+01:00", NOW),
        ("14/Nov/2023:23:13:20 +0100", NOW),
        ("Nov 14 22:13:20", NOW),
        ("Nov  4 22:13", NOW - (10 * 86_400 + 20) * 10**9),
        ("Dec 14 22:13:20", NOW - 335 * 86_400 * 10**9),
        ("20231114", 19_675 * 86_400 * 10**9),
        ("-1h", NOW - 3600 * 10**9),
        ("-1h30m", NOW - 5400 * 10**9),
        ("14:00", (19_675 * 86_400 + 14 * 3600) * 10**9),
        ("9:05:07", (19_675 * 86_400 + 9 * 3600 + 307) * 10**9),
        ("yesterday 14:00", (19_674 * 86_400 + 14 * 3600) * 10**9),
    ],
)
def test_what_a_person_types(typed: str, moment: int) -> None:
    assert instant_at(typed, NOW).time == moment


@pytest.mark.parametrize(
    ("zone", "typed", "said"),
    [
        ("Europe/Berlin", "14:00", "2023-11-14T13:00:00Z"),
        ("Europe/Berlin", "today", "2023-11-13T23:00:00Z"),
        ("Europe/Berlin", "yesterday 01:30", "2023-11-13T00:30:00Z"),
        ("Asia/Tokyo", "00:30", "2023-11-14T15:30:00Z"),  # there it is the 15th
        ("America/New_York", "tomorrow", "2023-11-15T05:00:00Z"),
        ("Asia/Tokyo", "2023-11-14T12:00", "2023-11-14T12:00:00Z"),
    ],
)
def test_the_clock_of_this_place(monkeypatch: pytest.MonkeyPatch, zone: str, typed: str, said: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert instant_at(typed, NOW) == instant_at(said)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "typed", ["25:00", "14:60", "14", "today 9", "Nov 31 14:00", "Nox 1 14:00", "", "-", "--1h", "noon", "14:00:61"]
)
def test_what_nobody_means(typed: str) -> None:
    with pytest.raises(QueryError, match="is no time"):
        instant_at(typed, NOW)


def test_how_long_ago(run: Run, tmp_path: Path) -> None:
    now = time.time_ns()
    ages = [60, 1800, 5400, 86_400 * 3]
    path = tmp_path / "log.ndjson"
    path.write_text(
        "".join(json.dumps({"__REALTIME_TIMESTAMP": str(now // 1000 - age * 10**6)}) + "\n" for age in ages)
    )
    for since, count in (("-1h", 2), ("1h", 2), ("2h", 3), ("7d", 4)):
        assert run("count", str(path), "--since", since)[0] == f"{count}\n"
        assert run("count", str(path), "--until", since)[0] == f"{4 - count}\n"
    assert jitdb.open(path).query().since("-1h").count() == 2
    assert jitdb.open(path).query().since("2h").until("1h").count() == 1


DAYS = [
    "2026-11-19T23:59:59.999999999Z", "2026-11-20", "20/Nov/2026:00:30:00 +0000", "Fri, 20 Nov 2026 12:00:00 GMT",
    1_795_176_000, "1795176000", "1795176000000000", {"$date": "2026-11-20T23:59:59.999999999Z"}, "2026-11-21", "soon",
]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ('t == "2026-11-20"', range(1, 8)),
        ('t != "2026-11-20"', [0, 8, 9]),
        ('t > "2026-11-20"', [8]),
        ('t >= "2026-11-20"', range(1, 9)),
        ('t <= "2026-11-20"', range(8)),
        ('t < "2026-11-20"', [0]),
        ('t in ["2026-11-20", "soon"]', [*range(1, 8), 9]),
        ('"2026-11-19" < t <= "2026/11/20"', range(1, 8)),
        ('between(t, "2026-11-20", "2026-11-20")', range(1, 8)),
        ('index("timestamp") > "2026-11-20"', [8]),
        ('t == "2026-11-20T00:00:00Z"', []),
        ('equal(t, "2026-11-20")', [1]),
        ('t > "20/Nov/2026:12:00:00 +0000"', [7, 8]),
    ],
)
def test_a_date_alone_is_that_day(run: Run, tmp_path: Path, question: str, found: Iterable[int]) -> None:
    path = tmp_path / "log.ndjson"
    path.write_text("".join(json.dumps({"n": number, "t": day}) + "\n" for number, day in enumerate(DAYS)))
    lines = run("query", str(path), question, "--fields", "n", "--arrival", "--timestamp", "t")[0].split()
    assert [json.loads(line)["n"] for line in lines] == list(found)
    asked = parse_expression(question)
    assert parse_expression(format_expression(asked)) == asked


def test_a_date_alone_in_python() -> None:
    day = date(2026, 11, 20)
    assert (field("t") == day) == (field("t") == "2026-11-20") == between("t", day, day)
    assert (field("t") == np.datetime64("2026-11-20")) == (field("t") == day)
    assert (field("t") > day) == gt("2026-11-20T23:59:59.999999999Z", "t")
    assert (field("t") <= np.datetime64("2026-11-20T12:00")) == lte("2026-11-20T12:00:00Z", "t")
    assert (field("t[]") == "2026-11-20") == equal("t[]", "2026-11-20")
    assert (field("t") == "2026-02-30") == equal("t", "2026-02-30")


def test_what_is_no_time(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", log, "--since", "soon"]) == 2
    assert "--since: 'soon' is no time; write 2026-11-01" in capsys.readouterr().err


@pytest.mark.parametrize("of_many", [False, True])
def test_all_records_are_of_another_time(run, tmp_path: Path, of_many: bool) -> None:
    """A zero that is due to --since or --until says so, with the time of the newest or the oldest record."""
    folder = tmp_path / "logs"
    folder.mkdir()
    lines = [f'{{"ts": "2026-11-{day:02}T10:00:00Z", "n": {day}}}\n' for day in range(1, 21)] + ['{"n": 0}\n']
    (folder / "a.ndjson").write_text("".join(lines[::-1]))
    (folder / "b.ndjson").write_text('{"time": "2026-10-01T00:00:00.5Z", "n": 5}\n')
    asked = str(folder if of_many else folder / "a.ndjson")
    oldest = "2026-10-01T00:00:00.5Z" if of_many else "2026-11-01T10:00:00Z"
    late = "jitdb: the newest record is of 2026-11-20T10:00:00Z, before --since (2026-11-21T00:00:00Z)\n"
    early = f"jitdb: the oldest record is of {oldest}, not before --until (2026-09-01T00:00:00Z)\n"
    for command, *rest in (
        ["count"], ["count", "n > 2"], ["query"], ["query", "--sort", "n"], ["values", "n"],
        ["values", "n", "--by", "ts"], ["stats", "n"], ["histogram", "n"], ["timeline"], ["timeline", "--by", "n"],
    ):  # fmt: skip
        for bound, told in ((["--since", "2026-11-21"], late), (["--until", "2026-09-01"], early)):
            assert run(command, asked, *rest, *bound)[1].count(told) == 1, (command, rest)
        assert "newest" not in run(command, asked, *rest, "--since", "2026-11-20")[1]
        assert "oldest" not in run(command, asked, *rest, "--until", "2026-11-02")[1]
    assert "newest" not in run("count", asked, "n > 99", "--since", "2026-11-02")[1]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["count", "a.log"], "1\n"),
        (["query", "a.log", "--fields", "text"], '{"text":"INFO [main] two"}\n'),
        (["values", "a.log", "text"], "[main] two"),
        (["timeline", "a.log", "--every", "1h", "--format", "csv"], "2026-11-20T15:00:00"),
        (["export", "a.log", "--fields", "text"], "two"),
        (["patterns", "a.log"], "two"),
        (["facets", "a.log"], "two"),
        (["find", "a.log", "two"], "1"),
        (["explain", "a.log"], "time (Europe/Berlin)"),
        (["count", "a.log", "b.log"], "2\n"),
    ],
    ids=lambda value: "-".join(value[:1] + value[2:3]) if isinstance(value, list) else "",
)
def test_each_command_takes_the_zone_of_the_log(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(
            "2026-11-20 15:09:59,000 ERROR [main] one\n2026-11-20 16:10:00,000 INFO [main] two\n"
        )
    bounds = ["--since", "2026-11-20T15:10:00Z", "--until", "2026-11-20T15:30:00Z", "--log-tz", "Europe/Berlin"]
    out = run(*command, *bounds)[0]
    assert said in out
    assert "[main] one" not in out


def test_fresh_indexes_are_of_one_zone(run: Run, tmp_path: Path) -> None:
    """Also where they answer without the engine."""
    path = tmp_path / "a.ndjson"
    path.write_text("".join(f'{{"time": "2026-11-20T{hour:02}:30:00", "n": {hour}}}\n' for hour in range(24)))
    asked = ["timeline", str(path), "--every", "1d", "--format", "csv"]
    for zone, counts in ((), ["24"]), (("--log-tz", "Asia/Tokyo"), ["9", "15"]), (("--log-tz", "-10"), ["14", "10"]):
        for _ in range(2):
            assert [row.rsplit(",", 1)[1] for row in run(*asked, *zone)[0].split()[1:]] == counts
    assert [row.rsplit(",", 1)[1] for row in run(*asked)[0].split()[1:]] == ["24"]


def test_times_are_shown_by_the_zone_of_the_log(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("2026-07-20 15:10:00,123 ERROR [main] m\n2026-11-20 15:10:00,123 ERROR [main] m\n")
    shown = run("query", str(path), "--format", "pretty", "--utc", "--log-tz", "Europe/Berlin")[0]
    assert re.findall(r"^[\d:.-]{10,} \S+", shown, re.MULTILINE) == [
        "2026-07-20 UTC", "13:10:00.123 ERROR", "2026-11-20 UTC", "14:10:00.123 ERROR",
    ]  # fmt: skip
    assert "\n15:10:00.123 ERROR" in run("query", str(path), "--format", "pretty", "--utc")[0]


def test_times_in_expressions_are_of_utc_which_a_note_says(run: Run, tmp_path: Path) -> None:
    path, zone = tmp_path / "a.jsonl", ("--log-tz", "Europe/Berlin")
    path.write_text("".join(f'{{"time":"2026-11-28 {hour:02}:00:00"}}\n' for hour in range(10)))
    asked = "count", str(path)
    assert run(*asked, *zone, "--since", "2026-11-28T02:00") == ("8\n", "")
    found = run(*asked, *zone, 'time >= "2026-11-28T02:00"')
    told = (
        'jitdb: "2026-11-28T02:00" in the expression is of UTC, not of Europe/Berlin: write "{}", or --since, --until\n'
    )
    assert found == ("7\n", told.format("2026-11-28T02:00+01:00"))
    assert run(*asked, *zone, 'time >= "2026-11-28T02:00+01:00"') == ("8\n", "")
    day = run(*asked, *zone, "time >= '2026-11-28'")
    assert day == ("9\n", told.replace("T02:00", "").format("2026-11-28T00:00+01:00"))
    assert run(*asked, *zone, 'time == "2026-11-28 02:00:00"') == ("1\n", "")
    assert run(*asked, "--log-tz", "UTC", 'time >= "2026-11-28T02:00"') == ("8\n", "")
    assert run(*asked, *zone, "-q", 'time >= "2026-11-28T02:00"') == ("7\n", "")


@pytest.mark.parametrize(("zone", "ahead"), [(None, 0), ("Europe/Berlin", 1), ("Asia/Kolkata", 5.5)])
def test_bounds_are_of_the_zone_that_a_timeline_shows(run: Run, tmp_path: Path, zone: str | None, ahead: float) -> None:
    """Whose times have zones of their own."""
    times = [datetime(2026, 11, 20, tzinfo=UTC) + timedelta(minutes=30 * half + 10) for half in range(48)]
    (tmp_path / "a.json").write_text("".join(f'{{"time": "{time.isoformat()}", "n": 1}}\n' for time in times))
    asked = "--since", "2026-11-20T14:00", "--until", "2026-11-20T17:00", "--every", "1h", "--format", "json"
    shown = [time + timedelta(hours=ahead) for time in times]
    expected = sum(14 <= time.hour < 17 and time.day == 20 for time in shown)
    for command in (["timeline", str(tmp_path / "a.json")], ["stats", str(tmp_path / "a.json"), "n"]):
        found = json.loads(run(*command, *asked, *(["--tz", zone] if zone else []))[0])
        assert found["total"] == expected == 6
        assert [row["time"][11:13] for row in found["rows"]] == ["14", "15", "16"]
