"""Notes on lines of text: their fields, their levels, and lines that are of another format."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.cli import main

Run = Callable[..., Any]


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


def test_no_stack_trace_is_spoken_of_where_there_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "abc-json.log"
    lines = [{"log": "served\n", "stream": "stdout", "time": f"2026-11-20T12:00:{n:02}Z"} for n in range(40)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["count", str(path), 'stream == "stderr"']) == 0
    assert capsys.readouterr() == ("0\n", "")


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


@pytest.mark.parametrize("question", ['level >= "error"', 'level == "error"'])
def test_a_level_that_only_late_records_of_text_have(tmp_path: Path, run: Run, question: str) -> None:
    line = "Nov 20 13:00:00 web app[7]: "
    (tmp_path / "syslog").write_text(f"{line}up\n" * 300 + f"{line}error: no\n" * 3)
    found = run("count", "syslog", question)
    assert found.stdout == "3\n"
    finds = "absent(level) and not absent(CONTENT)"
    which = "no level is found in `CONTENT`, what a program says, of 200 of 200 records looked at"
    assert f"{which}: `{finds}` finds these" in found.stderr
    assert run("count", "syslog", finds).stdout == "300\n"


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


@pytest.mark.parametrize(("files", "asked"), [(2, 2), (20, 20), (20, 3)])
def test_lines_of_another_format_in_a_folder_are_told(tmp_path: Path, run: Run, files: int, asked: int) -> None:
    for number in range(files):
        path = tmp_path / "logs" / f"{'ab'[number < asked]}{number}.log"
        path.parent.mkdir(exist_ok=True)
        others = ["2026-11-28T11:00:00Z GET /x 500 10\n"] * 2 * (number == 0)
        path.write_text("".join([ACCESS.format(500)] * 3 + others))
        os.utime(path, (1e9, 1e9))
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("logs/b*"))
    for _ in range(2):
        found = run("count", *(["logs"] if asked == files else names), "status >= 500")
        assert found.stdout == f"{3 * asked}\n"
        assert found.stderr.count("lines looked at are of another format than") == 1
        assert "finds these" in found.stderr
    others = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("logs/*") if path.name != "b0.log")
    assert "another format" not in run("count", *others, "status >= 500").stderr


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


SPRING = "2026-11-20T10:00:00Z ERROR [main] a.B : no route\njava.lang.X: x\nCaused by: Timeout\n"
COLOURED = "\x1b[2m2026-11-20T10:00:00Z\x1b[0m \x1b[31mERROR\x1b[0m handled \x1b[3mms\x1b[0m\x1b[2m=\x1b[0m5\n"


def test_text_below_the_first_line_is_in_the_trace(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.log").write_text(SPRING * 3)
    pattern = ("--log-format", r"(?P<time>\S+) (?P<level>[A-Z]+) \[(?P<thread>.*?)\] (?P<logger>\S+) : (?P<text>.*)")
    found = run("count", "a.log", 'text contains "Timeout"', *pattern)
    assert found.stdout == "0\n"
    (meant,) = re.findall(r"not in `text`; did you mean `(.*)`\?", found.stderr)
    assert run("count", "a.log", meant, *pattern).stdout == "3\n"


@pytest.mark.parametrize("question", ['text contains "ms=5"', '* contains "ms=5"', 'text like "%ms=5%"'])
def test_colours_between_the_letters_are_told(tmp_path: Path, run: Run, question: str) -> None:
    (tmp_path / "a.log").write_text(COLOURED * 3)
    found = run("count", "a.log", question)
    assert found.stdout == "0\n"
    (command,) = re.findall(r"records looked at: (sed .*) takes them away", found.stderr)
    subprocess.run(command.replace("FILE", "a.log").replace("NEW", "b.log"), shell=True, check=True, cwd=tmp_path)
    found = run("count", "b.log", question)
    assert (found.stdout, "colours" in found.stderr) == ("3\n", False)


def test_arrays_beside_text_are_told(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.ndjson").write_text('{"tags":["a","b"]}\n{"tags":"a"}\n' * 3)
    found = run("count", "a.ndjson", 'tags contains "a"')
    assert found.stdout == "3\n"
    assert '`tags` holds arrays in some records: `tags[] contains "a"` asks their elements' in found.stderr
    found = run("count", "a.ndjson", '"a" in tags')
    assert (found.stdout, found.stderr) == ("6\n", "")


def test_texts_that_are_no_lengths_of_time_are_told(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.ndjson").write_text('{"dur":"1.5s"}\n{"dur":"1 lap"}\n' * 3)
    found = run("count", "a.ndjson", "dur > 1s")
    assert found.stdout == "3\n"
    assert "values of `dur` such as '1 lap' are no lengths of time" in found.stderr


def test_text_before_json_and_other_case_are_told(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.log").write_text('web-b app {"level":"error","msg":"OOM"}\n' * 3)
    found = run("count", "a.log", '* contains "web-b"')
    assert found.stdout == "0\n"
    assert "text before the JSON of a line is no part of the record: `jitdb query --text` shows it" in found.stderr
    assert run("query", "a.log", "--text", "--limit", "1").stdout.count("web-b") == 1
    found = run("count", "a.log", '* contains "oom"')
    assert found.stdout == "0\n"
    (meant,) = re.findall("`(.*)` looks for it in any case", found.stderr)
    assert run("count", "a.log", meant).stdout == "3\n"


def test_lines_between_accesses_are_read_as_text_as_the_warning_says(tmp_path: Path, run: Run) -> None:
    trace = "[2026-11-28 11:30:00 +0000] [7] [ERROR] Error\nTraceback (most recent call last):\nValueError: no\n"
    (tmp_path / "a.log").write_text((ACCESS.format(200) * 9 + trace) * 3)
    found = run("count", "a.log", '* contains "ValueError"')
    assert found.stdout == "0\n"
    (given,) = re.findall("says which and why, and --log-format (.*) reads all lines as text", found.stderr)
    assert run("count", "a.log", '* contains "ValueError"', "--log-format", given).stdout == "3\n"


@pytest.mark.parametrize("name", ["log", "message"])
def test_records_of_containers_without_a_level_are_told(tmp_path: Path, run: Run, name: str) -> None:
    texts = ["2026-11-20 10:00:00 ERROR a", "second line of a message"] * 5
    docker = ({"log": f"{text}\n", "stream": "stderr", "time": "2026-11-20T10:00:00Z"} for text in texts)
    lines = map(json.dumps, docker) if name == "log" else (f"2026-11-20T10:00:00Z stderr F {text}" for text in texts)
    (tmp_path / "a.log").write_text("".join(f"{line}\n" for line in lines))
    found = run("count", "a.log", 'level == "ERROR"')
    assert found.stdout == "5\n"
    assert "no level is found in the text of 5 of 10 records looked at: `absent(level)` finds these" in found.stderr
