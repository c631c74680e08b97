"""Formats of lines, as the command line meets them: which is said, and what is said of files that are of none."""

from __future__ import annotations

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
