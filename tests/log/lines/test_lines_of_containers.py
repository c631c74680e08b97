"""Lines that several programs, or streams, of containers write between each other: which are one record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import jitdb


def of_cri(lines: list[tuple[str, str]]) -> str:
    stamped = (f"2026-11-29T16:09:26.{number:09}Z {stream} F {text}\n" for number, (stream, text) in enumerate(lines))
    return "".join(stamped)


def of_docker(lines: list[tuple[str, str]]) -> str:
    each = ({"log": f"{text}\n", "stream": stream, "time": "2026-11-29T16:09:26.1Z"} for stream, text in lines)
    return "".join(json.dumps(line) + "\n" for line in each)


@pytest.mark.parametrize("wrapped", [of_cri, of_docker])
def test_a_trace_goes_on_with_no_line_of_the_other_stream(tmp_path: Path, wrapped: Callable[..., str]) -> None:
    lines = [
        ("stderr", "2026-11-29 16:09:26 ERROR request failed"), ("stderr", "Traceback (most recent call last):"),
        ("stdout", "127.0.0.1 GET /x 200"), ("stderr", '  File "/app/p.py", line 31, in <module>'),
        ("stderr", "ValueError: card declined"), ("stdout", '{"n": 1}'),
        ("stderr", "Traceback (most recent call last):"), ("stderr", "  File x"), ("stderr", "ValueError: no"),
    ]  # fmt: skip
    (tmp_path / "a.log").write_text(wrapped(lines))
    with jitdb.open(tmp_path / "a.log", indexes="memory") as db:
        found = list(db.query().sort_by_arrival().all())
    assert [record["stream"] for record in found] == ["stderr", "stdout", "stderr", "stdout"]
    assert "File" not in json.dumps(found[1])
    assert found[3]["trace"].endswith("ValueError: no")  # a trace begins behind a record of the other stream, too


@pytest.mark.parametrize("prefix", ["[pod/web-7/app] ", "web-1  | ", ""])
def test_the_last_bracket_of_an_object_is_a_part_of_its_record(tmp_path: Path, prefix: str) -> None:
    lines = ["2026-11-29 16:09:26 ERROR charge failed {", "    at charge (/app.js:12:51)", "  code: 5", "}"]
    text = "".join(f"{prefix}{line}\n" for line in [*lines, "2026-11-29 16:09:27 INFO up"])
    (tmp_path / "a.log").write_text(text * 3)
    with jitdb.open(tmp_path / "a.log", indexes="memory") as db:
        assert db.count() == 6
        assert [record["text"][-1] for record in db.query("level == 'ERROR'").all()] == ["}"] * 3


@pytest.mark.parametrize("colour", ["", "\x1b[32m"])
@pytest.mark.parametrize("wrapped", [of_cri, of_docker])
def test_the_console_of_structlog(tmp_path: Path, wrapped: Callable[..., str], colour: str) -> None:
    off = colour and "\x1b[0m"
    head = f"{colour}2026-11-29 15:57:11{off} [{colour}error    {off}] {colour}payment failed".ljust(90)
    said = f"{head}{off} {colour}ms{off}="
    lines = [("stdout", f"{said}{number} {colour}user{off}='u 1'") for number in range(5)]
    trace = "Traceback (most recent call last):", "  File x", "ValueError: no"
    lines += [*(("stderr", line) for line in trace), ("stdout", "[error] up")]
    (tmp_path / "a.log").write_text(wrapped(lines))
    with jitdb.open(tmp_path / "a.log", indexes="memory") as db:
        assert db.count("level == 'error' and event == 'payment failed' and user == 'u 1'") == 5
        assert db.count("ms > 2") == 2
        assert db.times.paths == (("time",),)
        last = db.query("ms == 4").first()
        assert "ValueError: no" in last.get("message", last.get("log"))
        assert db.count("event is absent") == 1


def test_the_console_of_structlog_behind_names_has_its_time(tmp_path: Path) -> None:
    line = "web-1  | 2026-11-29 15:57:11 [error    ] payment failed                 ms=5\n"
    (tmp_path / "a.log").write_text(line * 3)
    with jitdb.open(tmp_path / "a.log", indexes="memory") as db:
        assert db.query("level == 'error'").since("2026-11-29T15:57:11").count() == 3
