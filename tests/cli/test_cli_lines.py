"""The commands over JSON Lines where they lie."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import said

LINES = [json.dumps({"level": ("info", "error")[n % 3 == 0], "n": n, "timestamp": n}) for n in range(30)]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "events.ndjson"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_count_and_query(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert said(capsys, "count", path, 'level == "error"') == (0, "10\n", "")
    assert said(capsys, "count", path) == (0, "30\n", "")
    code, out, _ = said(capsys, "query", path, "n < 2", "--format", "ndjson")
    assert (code, [json.loads(line) for line in out.splitlines()]) == (0, [json.loads(line) for line in LINES[:2]])
    code, out, _ = said(capsys, "export", path)
    assert (code, [json.loads(line) for line in out.splitlines()]) == (0, list(map(json.loads, LINES)))
    assert said(capsys, "verify", path)[0] == 0


def test_a_second_count_needs_no_numpy(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "count", path, 'level == "error"')
    code = "import sys; from jitdb.cli import main; main(sys.argv[1:]); assert 'numpy' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", code, "count", str(path), 'level == "error"'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("10\n", "")


def test_bad_lines_are_told(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("bad\n\n" + "\n".join(LINES) + "\nworse\n{")
    code, out, err = said(capsys, "count", path)
    assert (code, out) == (0, "30\n")
    assert "2 lines cannot be read as JSON, left out of all answers: line 1, 33" in err
    assert said(capsys, "count", path) == (0, "30\n", err)
    code, out, _ = said(capsys, "info", path)
    assert "30, a line each, and 1 blank line" in out
    assert "2 lines that cannot be read: 1, 33" in out
    assert "1 bytes that are no whole record" in out
    code, out, _ = said(capsys, "info", path, "--json")
    found = json.loads(out)
    assert (found["records"], found["malformed"], found["blank_lines"]) == (30, [1, 33], 1)


def test_each_process_tells_of_bad_lines(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the indexes are ready and the answer is not empty: it is not of all that the file holds."""
    path.write_text("bad\n" + "\n".join(LINES) + "\nworse\n")
    expected = (
        f"jitdb: warning: {path}: 2 lines cannot be read as JSON, left out of all answers: line 1, 32; jitdb info"
    )
    for command in (
        ["count"], ["count", 'level == "error"'], ["values", "level"], ["query", "--limit", "1"], ["stats", "n"],
        ["timeline"], ["query", "n < 2", "--format", "table"],
    ):  # fmt: skip
        for _ in range(2):
            code, _, err = said(capsys, command[0], path, *command[1:])
            assert (code, err.count(expected), err.count("left out")) == (0, 1, 1), command
        assert said(capsys, command[0], path, *command[1:], "-q")[2] == ""
    path.write_text("\n" + "\n\n".join(LINES) + "\n\n")
    for _ in range(2):
        assert said(capsys, "count", path) == (0, "30\n", "")  # blank lines are no bad ones


def test_bad_lines_of_many_files_are_told_together(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(4):
        (path.parent / f"other{number}.ndjson").write_text("bad\n" * number + path.read_text())
    for _ in range(3):
        code, out, err = said(capsys, "count", path.parent)
        assert (code, out) == (0, "150\n")
        first, rest = err.splitlines()
        assert "other1.ndjson: 1 line cannot be read as JSON, left out of all answers: line 1" in first
        assert "5 lines of 2 more files left out, too: " in rest


def test_many_bad_lines_are_told_by_each_process(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("bad\n".join(f"{line}\n" for line in LINES))
    for _ in range(3):
        code, out, err = said(capsys, "count", path)
        assert (code, out) == (0, f"{len(LINES)}\n")
        assert f"{len(LINES) - 1} lines cannot be read as JSON, left out of all answers: line 2, 4," in err


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        (
            "up\nno\n",
            "json",
            "none of its 2 lines can be read as JSON, so that no answer has records; say what they are: ",
        ),
        (
            "up\n\nno\n",
            "otlp",
            "none of its lines can be read as OpenTelemetry, as JSON, so that no answer has records",
        ),
        ("a,b,c\nx\ny\n", "csv", "none of its 2 lines can be read as CSV, so that no answer has records"),
        ('1.1.1.1 - - [20/Nov/2026:14:03:11 +0100] "GET /" 200 5\nx\n', "common", "1 line cannot be read as Apache"),
    ],
)
def test_each_process_tells_of_lines_of_a_format(
    path: Path, capsys: pytest.CaptureFixture[str], text: str, form: str, expected: str
) -> None:
    path.write_text(text)
    for _ in range(3):
        code, out, err = said(capsys, "count", path, "--log-format", form)
        assert (code, out, err.count(expected)) == (0, f"{text.count('GET')}\n", 1)


def test_a_header_is_no_line_that_cannot_be_read(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("#Software: x\n#Fields: date time\n2026-11-20 01:00:00\n#Date: x\n#Fields: date time\n")
    for _ in range(2):
        assert said(capsys, "count", path) == (0, "1\n", "")


@pytest.mark.parametrize("command", ["compact", "repair"])
def test_what_would_change_it_is_refused(path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    before = path.read_bytes()
    code, _, err = said(capsys, command, path)
    assert code == 1
    assert "only read" in err
    assert re.search(r"jitdb import \S*events.ndjson \S*events.log", err)
    assert path.read_bytes() == before


def test_without_indexes_nothing_is_left(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "count", path, 'level == "error"', "--indexes", "none") == (0, "10\n", "")
    assert os.listdir(path.parent) == ["events.ndjson"]
    assert said(capsys, "count", path, "--indexes", path.parent / "there")[:2] == (0, "30\n")
    assert sorted(os.listdir(path.parent)) == ["events.ndjson", "there"]


def test_tail_goes_on_through_rotation(path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "jitdb", "tail", path, "--old", "--fields", "n", "--limit", "33"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    found = [process.stdout.readline() for _ in range(30)]
    path.rename(path.with_suffix(".1"))
    with path.with_suffix(".1").open("a") as file:
        file.write('{"n": 30}\n')
    path.write_text('{"n": 31}\n{"n": 32}\n')
    found += process.communicate(timeout=60)[0].splitlines()
    assert [json.loads(line)["n"] for line in found] == list(range(33))


def test_a_number_of_bad_lines_is_rounded_where_more_are_not_looked_at(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = path.with_name("a.csv")
    table.write_text("a,b\n" + "1,x\n" * 3000 + "1,2,3\n" * 2500)
    assert "2,500 lines cannot be read as CSV" in said(capsys, "count", table, "a >= 1")[2]
    assert "more than 900 lines cannot be read as CSV" in said(capsys, "count", table, "a >= 1")[2]
