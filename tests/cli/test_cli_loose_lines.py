"""Notes on lines of text that begin no record: where they look like records, and not where they are parts of one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
HEAD = "2026-11-20 10:00:00 INFO "


@pytest.mark.parametrize(
    ("between", "loose"),
    [
        ("payment failed for order 5\n", 9), ("payment failed\nfor order 5\n", 18),
        ("    at a.b(C.java:1)\nmore\n", 0), ("Traceback (most recent call last):\n  x\nValueError: no\n", 0),
        ("java.lang.IllegalStateException: no\nat x\n", 0), ("\nmore\n", 0), ("}\n", 0), ("", 0),
        ("[stacktrace]\n#0 /a.php(1): b()\n#1 {main}\n", 0),
    ],
)  # fmt: skip
def test_lines_that_look_like_no_part_of_a_record_are_told(tmp_path: Path, run: Run, between: str, loose: int) -> None:
    text = f"{HEAD}up\n{between}" * 9 + f"{HEAD}end\n"
    (tmp_path / "a.log").write_text(text)
    found = run("count", "a.log")
    assert found.stdout == "10\n"
    assert ("begin no record" in found.stderr) == (loose > 0)
    if loose:
        lines = text.count("\n")
        assert f"{loose} of the first {lines} lines, such as '{between.splitlines()[0]}'" in found.stderr
        assert run("count", "a.log", "--log-format", "plain").stdout == f"{lines}\n"
        assert run("count", "a.log", "-q").stderr == ""


def test_the_last_lines_are_looked_at(tmp_path: Path, run: Run) -> None:
    lines = f"{HEAD}up\n" * 5000 + "worker lost connection\n" * 60
    (tmp_path / "a.log").write_text(lines)
    told = run("count", "a.log").stderr
    assert re.search(r"60 of the last \d,\d{3} lines, such as 'worker lost connection', begin no record", told)
    (tmp_path / "a.log").write_text(f"{lines}{HEAD}up\n" * 2)  # only those of a record's end are told
    assert "60 of the last" in run("count", "a.log").stderr
    (tmp_path / "a.log").write_text(f"{HEAD}up\n" * 5000 + f"{HEAD}failed\n    at a.b(C.java:1)\nmore\n" * 60)
    assert run("count", "a.log").stderr == ""


@pytest.mark.parametrize("command", [("count", "a.log"), ("values", "a.log", "level")])
def test_lines_that_look_like_no_part_of_a_record_are_told_each_time(tmp_path: Path, run: Run, command: Any) -> None:
    lines = "2026-11-20 10:00:00 INFO a\n" * 3 + "812:signal-handler (1795954982) stop\n2026-11-20 10:00:01 INFO b\n"
    (tmp_path / "a.log").write_text(lines)
    os.utime(tmp_path / "a.log", (1e9, 1e9))
    for _ in range(3):
        assert "1 of the first 5 lines, such as '812:signal-handler" in run(*command).stderr


@pytest.mark.parametrize(
    "trace", ["Error: no route\n    at f (a.js:1:2)", "** (RuntimeError) no\n    (app) a.ex:1: f/1"]
)
def test_the_heads_of_traces_are_parts_of_records(tmp_path: Path, run: Run, trace: str) -> None:
    lines = f"2026-11-20 10:00:00 INFO a\n2026-11-20 10:00:00 ERROR b\n{trace}\n"
    (tmp_path / "a.log").write_text(lines * 3)
    for question in ((), ('level >= "error"',)):
        assert run("count", "a.log", *question).stderr == ""


def test_blank_lines_before_the_first_record_are_nothing_odd(tmp_path: Path, run: Run) -> None:
    lines = "2026-11-20 10:00:00 INFO a\n" * 3
    (tmp_path / "blank.log").write_text(f"\n\n \n{lines}")
    (tmp_path / "banner.log").write_text(f"\nWelcome\n{lines}")
    for _ in range(2):
        found = run("count", "blank.log")
        assert (found.stdout, found.stderr) == ("3\n", "")
        assert "the lines before the first record cannot be read as text" in run("count", "banner.log").stderr
