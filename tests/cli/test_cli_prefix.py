"""The commands over lines with text before their JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import said

TIME = "2026-11-21T10:00:0{}.123456789Z stdout F "
TRACE = "Traceback (most recent call last):\n  boom {main}"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "api.log"
    lines = [TIME.format(n) + json.dumps({"level": ("error", "info")[n % 2], "n": n, "timestamp": n}) for n in range(6)]
    path.write_text("\n".join([*lines[:3], TRACE, "", *lines[3:]]) + "\n")
    return path


def test_commands(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # the second is answered at a glance
        code, out, err = said(capsys, "count", path, 'level == "error"', "--allow-prefix")
        assert (code, out, err.count("\n")) == (0, "3\n", 1)
        assert "2 lines without JSON are left out of all answers, and not searched: line 4, 5" in err
    assert said(capsys, "count", path)[:2] == (0, "6\n")  # they are lines of CRI
    _, out, _ = said(capsys, "export", path, "--allow-prefix")
    assert [json.loads(line)["n"] for line in out.splitlines()] == list(range(6))
    assert said(capsys, "verify", path, "--allow-prefix")[0] == 0
    _, out, _ = said(capsys, "indexes", path, "--allow-prefix")
    assert "level" in out


def test_text_is_shown_beside_records(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = [{"n": 0, "_prefix": TIME.format(0)}, {"n": 2, "_prefix": TIME.format(2), "_text": TRACE}]
    arguments = ("query", 'n < 3 and level == "error"', "--allow-prefix", "--text")
    for log in (path, path.parent):
        code, out, err = said(capsys, *arguments[:1], log, *arguments[1:])
        found = [json.loads(line) for line in out.splitlines()]
        assert [{name: record[name] for name in want} for want, record in zip(expected, found, strict=True)] == expected
        assert "_text" not in found[0]
        assert (code, err.count("warning")) == (0, 0)  # it shows the lines that a count leaves out
    assert "2 lines without JSON are left out" in said(capsys, "query", path, "--allow-prefix")[2]
    code, out, _ = said(capsys, "query", path, "n == 2", "--allow-prefix", "--text", "--fields", "n,_text")
    assert json.loads(out) == {"n": 2, "_text": TRACE}
    assert said(capsys, "query", path, "--allow-prefix", "--text", "--offsets")[0] == 2


def test_info(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with path.open("a") as file:
        file.write(TIME.format(7).replace(" F ", " P ") + '{"level": "er\n' + TIME.format(8) + 'ror"}\n')
    code, out, _ = said(capsys, "info", path, "--allow-prefix")
    assert code == 0
    assert "6, a line each, and 1 blank line" in out
    assert "3 lines without JSON" in out
    assert "1 line says that it is a part" in out
    assert "1 line that cannot be read: 10" in out
    found = json.loads(said(capsys, "info", path, "--allow-prefix", "--json")[1])
    assert (found["text_lines"], found["partial_lines"], found["malformed"], found["blank_lines"]) == (3, 1, [10], 1)
    (path.parent / "mixed.log").write_text('{"n": 1}\n' + path.read_text())
    assert "--allow-prefix reads" in said(capsys, "info", path.parent / "mixed.log")[1]


def test_import(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "import", path, "a.log")
    assert code == 1
    assert "--allow-prefix" in err
    code, out, err = said(capsys, "import", "--allow-prefix", path, "a.log")
    assert (code, err) == (0, f"jitdb: {path}: 2 lines without JSON skipped\n")
    assert "6 records were imported" in out
    assert said(capsys, "count", "a.log", "n >= 0") == (0, "6\n", "")
    assert said(capsys, "count", "a.log", "--allow-prefix") == (0, "6\n", "")  # a log of ours has no lines


def test_many(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path.parent / "b.log").write_bytes(path.read_bytes())
    code, out, err = said(capsys, "count", path.parent, "n < 2", "--allow-prefix")
    assert (code, out) == (0, "4\n")
    assert err.endswith(f"jitdb: warning: 2 lines of 1 more file left out, too: {path.parent / 'b.log'}\n")


def test_tail(path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "jitdb", "tail", path, "--allow-prefix", "--old", "--fields", "n", "--limit", "8"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    found = [process.stdout.readline() for _ in range(6)]
    path.rename(path.with_suffix(".1"))
    with path.with_suffix(".1").open("a") as file:
        file.write('more text\nx {"n": 6}\n')
    path.write_text('first\ny {"n": 7}\n')
    found += process.communicate(timeout=60)[0].splitlines()
    assert [json.loads(line)["n"] for line in found] == list(range(8))


@pytest.mark.parametrize("command", [("count",), ("find", "deadlock"), ("query", "* contains 'deadlock'")])
def test_each_process_tells_of_text_beside_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    path = tmp_path / "compose.log"
    path.write_text('web-1: {"level":"info"}\n\nweb-1: {"level":"info"}\ndb-1: deadlock\ndb-1: no\n')
    expected = "2 lines without JSON are left out of all answers, and not searched: line 4, 5; jitdb query --text"
    for _ in range(2):
        code, _, err = said(capsys, command[0], path, *command[1:])
        assert (code, err.count(expected), err.count("left out")) == (0, 1, 1)
    path.write_text('web-1: {"level":"info"}\n\nweb-1: {"level":"info"}\n')
    assert "left out" not in said(capsys, command[0], path, *command[1:])[2]
