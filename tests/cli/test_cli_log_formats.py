"""Formats of lines, as the command line meets them: which is said, and what is said of files that are of none."""

from __future__ import annotations

import gzip
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Literal

import pytest
from cli_helpers import said


@pytest.mark.parametrize("form", ["klog", "logfmt", "cri", "combined", "docker", "journald", "(?P<level>[A-Z]+):"])
def test_a_format_that_fits_no_line_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    path = tmp_path / "a.log"
    path.write_text("one two three\nfour five six\n")
    code, out, err = said(capsys, "count", path, "--log-format", form)
    assert (code, out) == (1, "")
    assert "none of its first 2 lines is" in err
    assert "but text of no format that is known\n  pass --log-format plain" in err
    assert said(capsys, "count", path)[:2] == (0, "2\n")


def test_a_pattern_may_be_meant_for_few_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, pattern = tmp_path / "auth.log", r"(?P<text>Failed .* from (?P<ip>\S+))"
    opened = "Nov 25 01:00:00 web sshd[1]: session opened\n"
    path.write_text(opened * 5000 + "Failed password from 10.0.0.1\n" + opened + "Failed password from 10.0.0.2\n")
    code, out, _ = said(capsys, "values", path, "ip", "--log-format", pattern, "--format", "csv")
    assert (code, [line.split(",")[0] for line in out.splitlines()]) == (0, ["ip", "10.0.0.1", "10.0.0.2"])


def test_a_format_that_fits_no_line_passes_a_file_of_a_folder_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.log").write_text("one two three\nfour five six\n")
    (tmp_path / "b.log").write_text("I1125 01:00:00.123456 1 a.go:1] x\n")
    code, out, err = said(capsys, "count", tmp_path, "--log-format", "klog")
    assert (code, out) == (0, "1\n")
    assert "1 file is no log, or cannot be read, and is passed over" in err


@pytest.mark.parametrize(
    ("head", "what"),
    [(b"\x89PNG\r\n\x1a\n", "a PNG image"), (b"LPKSHHRH", "a journal file of systemd")],
)
def test_files_of_other_programs_are_called_by_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], head: bytes, what: str
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(head + bytes(100))
    code, _, err = said(capsys, "count", path)
    assert (code, f"it is {what}, not a log" in err) == (1, True)


OTLP = (
    '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1795132812652026880","severityText":"ERROR","body":'
    '{"stringValue":"no"},"attributes":[{"key":"http.status_code","value":{"intValue":"503"}}]},{"severityText":"INFO",'
    '"attributes":[]}],"scope":{"name":"s"}}],"resource":{"attributes":[{"key":"service.name","value":'
    '{"stringValue":"web"}}]}}]}\n'
)


def test_otlp_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "logs" / "a.jsonl"
    path.parent.mkdir()
    path.write_text(OTLP * 3)
    (path.parent / "b.jsonl").write_text(OTLP)
    question = 'attributes["http.status_code"] >= 500 and resource.attributes["service.name"] == "web"'
    for logs, count in ((path, 3), (path.parent, 4)):
        for _ in range(2):
            assert said(capsys, "count", logs, question) == (0, f"{count}\n", "")
    path.write_text(OTLP * 5)
    assert said(capsys, "count", path.parent, question)[:2] == (0, "6\n")
    _, out, _ = said(capsys, "export", path, 'severityText == "ERROR"')
    assert set(out.splitlines()) == {
        '{"resource":{"attributes":{"service.name":"web"}},"scope":{"name":"s"},"timeUnixNano":"1795132812652026880",'
        '"severityText":"ERROR","body":"no","attributes":{"http.status_code":503}}'
    }
    code, _, err = said(capsys, "count", path, "--log-format", "cloudwatch")
    assert (code, "no line has logEvents[], as lines of CloudWatch, as JSON have it" in err) == (1, True)


def test_logs_without_a_time_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.log").write_text('{"time":"2026-11-20T14:30:00Z","level":"error","msg":"a"}\n')
    (tmp_path / "catalina.out").write_text(
        "".join(f"20-Nov-2026 14:{minute}:00.000 SEVERE [main] x boom\n" for minute in (31, 32))
    )
    since = ["--since", "2026-11-20T14:31:30Z"]
    assert said(capsys, "count", tmp_path, 'level >= "error"')[:2] == (0, "3\n")
    code, out, err = said(capsys, "count", tmp_path, *since)
    assert (code, out) == (0, "1\n")
    assert "no time is found" not in err
    (tmp_path / "x.log").write_text("up\ndown\n")
    note = f"no time is found in the first records of {tmp_path}/x.log: what is asked by time leaves them out"
    for command in (["count"], ["values", "level"], ["timeline"], ["export"], ["query"]):
        code, _, err = said(capsys, command[0], tmp_path, *command[1:], *since)
        assert (code, err.count(note)) == (0, 1), (command, err)
    assert "no time is found" not in said(capsys, "count", tmp_path, 'level == "error"')[2]


@pytest.mark.parametrize("mode", ["w:", "w:gz"])
def test_tar_archives_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: Literal["w:", "w:gz"]
) -> None:
    log, path = tmp_path / "a.log", tmp_path / "logs.tar"
    log.write_text('{"a": 1}\n')
    with tarfile.open(path, mode) as archive:
        archive.add(log, "a.log")
    code, _, err = said(capsys, "count", path)
    assert code == 1
    assert f"it is a tar archive, not a log\n  unpack it first: tar -xf {path}" in err


def test_commas_behind_objects_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.log"
    path.write_text('{"level":"error"},\n{"level":"info"},\n')
    code, _, err = said(capsys, "count", path)
    assert code == 1
    assert "its lines are JSON objects with a comma behind each" in err
    command = err.partition("take the commas away: ")[2].strip()
    path.write_bytes(subprocess.run(command, shell=True, capture_output=True, check=True).stdout)
    assert said(capsys, "count", path, 'level == "error"')[:2] == (0, "1\n")


def test_files_without_a_level_that_is_known_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.json").write_text('{"time": "2026-11-27T00:00:00Z", "level": "error"}\n' * 3)
    (tmp_path / "odd.log").write_text("main 2026-11-27 ERROR Server.java:1 - no\n" * 3)
    (tmp_path / "rows.json").write_text('{"host": "a", "ms": 5}\n' * 3)
    code, out, err = said(capsys, "count", tmp_path, 'level >= "error"')
    assert (code, out) == (0, "3\n")
    assert err.count("no level is found in the first records of") == 1
    assert "odd.log" in err
    assert "rows.json" not in err
    assert '`* contains "ERROR"` asks all' in err


@pytest.mark.parametrize("other", ['{"http": {"status": 503}}', '{"res": {"statusCode": 503}}'])
def test_a_field_that_other_logs_call_otherwise_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: str
) -> None:
    (tmp_path / "a.json").write_text('{"status": 500}\n{"status": 200}\n')
    (tmp_path / "b.json").write_text(f"{other}\n")
    code, out, err = said(capsys, "count", tmp_path, "status >= 500")
    assert (code, out) == (0, "1\n")
    question = err.split(": `")[-1].split("`")[0]
    assert said(capsys, "count", tmp_path, question)[1] == "2\n"


def test_a_class_of_a_status_is_a_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text('{"http": {"status": 503}}\n{"http": {"status": 200}}\n')
    _, out, err = said(capsys, "count", tmp_path / "a.json", 'http.status == "5xx"')
    assert out == "0\n"
    assert "did you mean `http.status >= 500 and http.status < 600`?" in err


def test_text_that_is_no_utf8_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.log"
    path.write_bytes("2026-11-27 00:00:00 ERROR Müller\n".encode("latin-1") * 10)
    _, out, err = said(capsys, "count", path, 'text contains "Müller"')
    assert out == "0\n"
    assert "no UTF-8" in err
    assert f"iconv -f LATIN1 -t UTF-8 {path} > " in err


def test_the_level_of_windows_is_asked_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.json").write_text('{"time": "2026-11-27T00:00:00Z", "level": "error"}\n')
    (tmp_path / "win.json").write_text(
        '{"TimeCreated": "2026-11-27T00:00:00Z", "Level": 2, "LevelDisplayName": "Error"}\n'
        '{"TimeCreated": "2026-11-27T00:00:00Z", "Level": 4, "LevelDisplayName": "Information"}\n'
    )
    _, out, err = said(capsys, "count", tmp_path, 'level >= "error"')
    assert out == "1\n"
    assert '`level >= "error" or LevelDisplayName >= "error"` asks those, too' in err
    assert said(capsys, "count", tmp_path, 'level >= "error" or LevelDisplayName >= "error"')[1] == "2\n"


def test_times_with_the_name_of_a_zone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it means one thing, times are read by it; else they count as UTC, and a note says so."""
    path = tmp_path / "pg.json"
    line = '{"timestamp": "2026-11-27 00:00:00.237 %s", "error_severity": "ERROR", "message": "x"}\n'
    path.write_text(2 * (line % "IST"))
    code, out, err = said(capsys, "count", path, "--since", "2026-11-26")
    assert (code, out) == (0, "2\n")
    assert "are read as UTC, though IST stands behind them" in err
    assert "are read as UTC, though IST stands behind them" in said(capsys, "query", path)[2]  # their order, too
    code, _, err = said(capsys, "count", path, "--since", "2026-11-26 10:00:00 IST")
    assert code != 0
    assert "IST is a zone that means other things in other places" in err
    path.write_text(2 * (line % "CET"))
    assert said(capsys, "count", path, "--since", "2026-11-26T23:00:00Z", "--until", "2026-11-27 00:00:01 CET") == (
        0, "2\n", "",
    )  # fmt: skip
    path.write_text(2 * (line % "CST"))
    told = "jitdb: CST behind times of `timestamp` is read as -06:00, not as in China (+08:00)\n"
    assert said(capsys, "count", path, "--since", "2026-11-27T06:00:00Z") == (0, "2\n", told)
    path.write_text('{"timestamp": "yesterday", "message": "x"}\n' * 2)
    assert said(capsys, "count", path, "--since", "2026-11-26")[0] == 1


def test_lines_of_text_with_the_name_of_a_zone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It belongs to the time; a word that is no zone, or longer than one, to the text."""
    (tmp_path / "app.log").write_text("2026-11-27T14:30:00.000Z ERROR 1 --- x\n")
    (tmp_path / "pg.log").write_text(
        "2026-11-27 15:10:00.000 CET [1] a@b ERROR: deadlock detected\n2026-11-27 15:10:01.000 CET [1] a@b LOG: x\n"
    )
    _, out, err = said(capsys, "query", tmp_path, "--fields", "time,text")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"time": "2026-11-27 15:10:00.000 CET", "text": "[1] a@b ERROR: deadlock detected"},
        {"time": "2026-11-27 15:10:01.000 CET", "text": "[1] a@b LOG: x"},
        {"time": "2026-11-27T14:30:00.000Z", "text": "ERROR 1 --- x"},
    ]
    assert err == ""
    path = tmp_path / "odd.log"
    heads = {
        "[2026-11-27 15:10:00 EST] INFO x": ("2026-11-27 15:10:00 EST", "INFO x"),
        "2026/11/27 15:10:00 NZDT: INFO x": ("2026/11/27 15:10:00 NZDT", "INFO x"),
        "Fri Nov 27 15:10:00 CET 2026 x": ("Fri Nov 27 15:10:00 CET 2026", "x"),
        "2026-11-27 15:10:00 ESTIMATE x": ("2026-11-27 15:10:00", "ESTIMATE x"),
        "2026-11-27 15:10:00 EST_1 x": ("2026-11-27 15:10:00", "EST_1 x"),
        "2026-11-27 15:10:00 INFO x": ("2026-11-27 15:10:00", "INFO x"),
        "2026-11-27 15:10:00 CET": ("2026-11-27 15:10:00 CET", ""),
        "INFO 2026-11-27 15:10:00 CET x": ("2026-11-27 15:10:00 CET", "x"),
        "Fri Nov 27 15:10:00 2026 -0500 INFO x": ("Fri Nov 27 15:10:00 2026 -0500", "INFO x"),
        "[Fri Nov 27 15:10:00 2026 +05:30] x": ("Fri Nov 27 15:10:00 2026 +05:30", "x"),
        "Fri Nov 27 15:10:00 2026 -0517 x": ("Fri Nov 27 15:10:00 2026", "-0517 x"),
        "Fri Nov 27 15:10:00 2026 -0500.5 x": ("Fri Nov 27 15:10:00 2026", "-0500.5 x"),
        "Fri Nov 27 15:10:00 2026 -05:00:30 x": ("Fri Nov 27 15:10:00 2026", "-05:00:30 x"),
        "2026/11/27 15:10:00 -0500 x": ("2026/11/27 15:10:00 -0500", "x"),
        "27-Nov-2026 15:10:00.5 +0100: x": ("27-Nov-2026 15:10:00.5 +0100", "x"),
        "27.11.2026 15:10:00 +0100 x": ("2026-11-27T15:10:00 +0100", "x"),
        "26/11/27 15:10:00 +0100 x": ("2026-11-27T15:10:00 +0100", "x"),
        "11/27/2026 03:10:00 PM -0500 x": ("11/27/2026 03:10:00 PM -0500", "x"),
        "2026-11-27T15:10:00Z -0500 x": ("2026-11-27T15:10:00Z", "-0500 x"),
    }
    for line, (time, text) in heads.items():
        path.write_text(f"{line}\n" * 9)
        _, out, _ = said(capsys, "query", path, "--limit", "1", "--fields", "time,text")
        assert json.loads(out) == {"time": time, "text": text}


def test_records_that_fit_a_pattern_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.log"
    path.write_text("2026-11-27T00:00:00Z from 10.0.0.1\n2026-11-27T00:00:01Z other\n" * 3)
    _, out, err = said(capsys, "count", path, "--log-format", r"(?P<time>\S+) from (?P<addr>\S+)")
    assert out == "6\n"
    assert "3 records are as the pattern says" in err
    assert "`addr is not null`" in err


def test_an_integer_that_is_too_large_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": {"id": 12345678901234567890123}}\n{"id": 1}\n')
    _, out, err = said(capsys, "count", path, "id >= 1")
    assert out == "1\n"
    assert "has an integer of more than 64 bits in `a.id`" in err


def test_lines_that_are_no_utf8_name_what_makes_them_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = '{"a":"caf\u00e9"}\n{"a":"b"}\n'
    Path("a.ndjson").write_bytes(text.encode("latin-1"))
    told = said(capsys, "count", "a.ndjson")[2]
    assert "1 line cannot be read as JSON (has bytes that are no UTF-8), left out of all answers: line 1" in told
    subprocess.run(told[told.index("iconv") :], shell=True, check=True)
    assert Path("a.utf8.ndjson").read_text() == text


def test_an_array_that_is_cut_off_is_not_read_as_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text('[\n {"a": 1},\n {"a": 2},\n {"a"')
    _, out, err = said(capsys, "count", tmp_path / "a.json")
    assert out == "2\n"
    assert "1 line cannot be read as JSON, left out of all answers; jitdb info says which and why\n" in err


def test_null_and_blank_texts_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a":null}\n{"a":""}\n{"a":" "}\n{"a":"null"}\n')
    _, out, _ = said(capsys, "values", path, "a")
    assert {line.split("  ")[0] for line in out.splitlines()[1:5]} == {"null", '""', '" "', '"null"'}


def test_a_log_beside_its_compressed_copy_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = b'{"n": 1}\n' * 100
    (tmp_path / "a.log.1").write_bytes(text)
    (tmp_path / "a.log.1.gz").write_bytes(gzip.compress(text))
    code, out, err = said(capsys, "count", tmp_path)
    assert (code, out) == (0, "100\n")
    assert "a.log.1.gz has the text of" in err
    assert said(capsys, "count", tmp_path, "n == 1")[1] == "100\n"
    (tmp_path / "a.log.1.gz").write_bytes(gzip.compress(text) + gzip.compress(text))  # more than the copy
    assert said(capsys, "count", tmp_path)[1] == "300\n"
    (tmp_path / "a.log.1.gz").write_bytes(gzip.compress(text[:-2] + b" \n"))  # as long, and another text
    assert said(capsys, "count", tmp_path)[1] != "100\n"
    (tmp_path / "a.log.1.gz").write_bytes(gzip.compress(text))
    assert said(capsys, "count", tmp_path / "a.log.1", tmp_path / "a.log.1.gz")[1] == "200\n"  # both were named


def test_the_export_format_of_journald_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its lines are fields, so that each would count as a record."""
    path = tmp_path / "journal.log"
    path.write_text("__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795155001123456\nPRIORITY=3\nMESSAGE=no route\n\n" * 3)
    code, _, err = said(capsys, "count", path, 'PRIORITY >= "error"')
    assert code == 1
    assert "journald's export format" in err
    assert "journalctl -o json" in err


@pytest.mark.parametrize("given", [(), ("--log-format", r"(?P<time>\S+ \S+) (?P<level>[A-Z]+) (?P<text>.*)")])
def test_info_tells_how_many_lines_are_of_the_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: tuple[str, ...]
) -> None:
    path = tmp_path / "app.log"
    path.write_text("2026-11-20 06:10:01 ERROR boom\n  at x\n\n2026-11-20 06:10:02 INFO up\n")
    code, out, _ = said(capsys, "info", path, *given)
    assert code == 0
    assert "fits     2 of the first 3 lines (those of 64 KiB at most) are of this format" in out
    assert "UTF-8" not in out
    found = json.loads(said(capsys, "info", path, *given, "--json")[1])
    assert found["first_lines"] == {"lines": 3, "fitting": 2, "odd": 0}


def test_info_and_notes_count_what_is_no_utf8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "app.log"
    path.write_bytes("2026-11-20 06:10:01 ERROR Gerät\n2026-11-20 06:10:02 INFO up\n".encode("latin-1"))
    out = said(capsys, "info", path)[1]
    command = out.partition("if it is Latin-1: ")[2].partition("\n")[0]
    assert "bytes    1 line of them has bytes that are no UTF-8, which are U+FFFD in records" in out
    err = said(capsys, "count", path, 'text contains "Gerät"')[2]
    assert "are read as U+FFFD, in 1 of 2 records looked at, so" in err
    subprocess.run(command, shell=True, check=True)
    assert said(capsys, "count", tmp_path / "app.utf8.log", 'text contains "Gerät"')[:2] == (0, "1\n")
