"""`jitdb query -C`: the records around what matches, as a table and as JSON lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import make_log
from test_cli_terminal import at_a_terminal

ERROR = 'level == "error"'
RECORDS = [
    {"time": f"2026-11-01T00:00:{number:02d}Z", "host": "abc"[number % 3], "level": "info", "n": number}
    for number in range(20)
]
for wrong in (5, 7, 15):
    RECORDS[wrong]["level"] = "error"


@pytest.fixture
def log(folder: Path) -> Path:
    return make_log(folder / "a.log", RECORDS)


def shown(done: Any) -> list[list[tuple[int, bool]]]:
    assert done.returncode == 0, done.stderr
    passages: dict[int, list[tuple[int, bool]]] = {}
    for line in map(json.loads, done.stdout.splitlines()):
        passages.setdefault(line["_passage"], []).append((line["n"], line["_match"]))
    assert list(passages) == list(range(1, len(passages) + 1))
    return list(passages.values())


def numbers(done: Any) -> list[list[int]]:
    return [[number for number, _ in passage] for passage in shown(done)]


@pytest.mark.parametrize(
    ("options", "passages"),
    [
        (["-C", "1"], [[4, 5, 6, 7, 8], [14, 15, 16]]),
        (["-B", "2", "--arrival"], [[3, 4, 5, 6, 7], [13, 14, 15]]),
        (["--after", "1"], [[5, 6, 7, 8], [15, 16]]),
        (["-C", "2", "-A", "0"], [[3, 4, 5, 6, 7], [13, 14, 15]]),
        (["-C", "0"], [[5], [7], [15]]),
        (["-C", "1", "--same", "host"], [[2, 5, 8], [4, 7, 10], [12, 15, 18]]),
        (["-C", "1", "--limit", "1", "--skip", "1"], [[6, 7, 8]]),
        (["-B", "1", "--descending", "--limit", "2"], [[15, 14], [7, 6]]),
        (["-C", "1", "--until", "2026-11-01T00:00:10Z", "--limit", "1"], [[4, 5, 6]]),
    ],
)
def test_what_is_shown(run, log: Path, options: list[str], passages: list[list[int]]) -> None:
    found = shown(run("query", "a.log", ERROR, *options))
    assert [[number for number, _ in passage] for passage in found] == passages
    for passage in found:
        if "--limit" not in options:
            assert all(is_match == (number in (5, 7, 15)) for number, is_match in passage)


def test_around_an_offset(run, log: Path) -> None:
    offsets = run("query", "a.log", ERROR, "--offsets").stdout.split()
    assert numbers(run("query", "a.log", "--around", offsets[2])) == [list(range(10, 20))]
    assert numbers(run("query", "a.log", "--around", offsets[0], "-B", "1")) == [[4, 5]]
    assert numbers(run("query", "a.log", "--around", offsets[0], "-C", "1", "--same", "host")) == [[2, 5, 8]]
    assert shown(run("query", "a.log", 'host == "a"', "--around", offsets[0], "-C", "2")) == [
        [(0, False), (3, False), (5, True), (6, False), (9, False)]
    ]
    done = run("query", "a.log", "--around", "3")
    assert done.returncode == 1
    assert done.stderr.startswith("jitdb: a.log: no record begins at offset 3\n")


def test_columns_of_json_lines(run, log: Path) -> None:
    line = run("query", "a.log", "n == 5", "-C", "0", "--fields", "host,level").stdout
    assert json.loads(line) == {"host": "c", "level": "error", "_match": True, "_passage": 1}


def test_records_that_are_no_maps(run, folder: Path) -> None:
    make_log(folder / "b.log", [1, "two", [3]])
    done = run("query", "b.log", "--arrival", "--limit", "1", "-A", "1", "--skip", "1")
    assert [json.loads(line)["_value"] for line in done.stdout.splitlines()] == ["two", [3]]


def test_several_logs(run, log: Path, folder: Path) -> None:
    make_log(folder / "b.log", [{**each, "n": 100 + each["n"]} for each in RECORDS])
    assert numbers(run("query", "*.log", ERROR, "-B", "1", "--limit", "3")) == [[4, 5, 6, 7], [104, 105]]
    assert run("query", "*.log", "--around", "5").returncode == 2


def test_text_beside_lines(run, folder: Path) -> None:
    (folder / "api.log").write_text('api | {"n":1}\napi | {"n":2}\nTraceback\napi | {"n":3}\n')
    done = run("query", "api.log", "n == 3", "--allow-prefix", "--text", "--arrival", "-B", "1")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"n": 2, "_prefix": "api | ", "_text": "Traceback", "_match": False, "_passage": 1},
        {"n": 3, "_prefix": "api | ", "_match": True, "_passage": 1},
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--same", "host"], "--same is about what stands around a record"),
        (["-C", "1", "--offsets"], "--offsets prints offsets only"),
        (["-C", "-1"], "a whole number of 0 or more"),
    ],
)
def test_what_does_not_go_together(run, log: Path, options: list[str], said: str) -> None:
    done = run("query", "a.log", ERROR, *options)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize("width", [80, 200])
def test_a_table_marks_what_matches(log: Path, width: int) -> None:
    code, seen = at_a_terminal(log.parent, "query", "a.log", ERROR, "-C", "1", COLUMNS=str(width), NO_COLOR="1")
    assert code == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", seen).splitlines()
    rows = [line.split() for line in lines]
    marked = [row for row in rows if row[:1] == [">"]]
    assert [row[-1] for row in marked] == ["5", "7", "15"]
    assert rows.count(["--"]) == 1
    assert rows.index(["--"]) == 7
    assert max(map(len, lines)) <= width


def test_a_field_that_nobody_has_is_told(run, log: Path) -> None:
    done = run("query", "a.log", ERROR, "-C", "1", "--same", "hots", "--format", "table")
    assert "none of these records has the field `hots`; did you mean `host`?" in done.stderr


@pytest.mark.parametrize(("asked", "short"), [("n == 3", True), ("n == 2", False), ("n == 4", True)])
def test_passages_that_end_with_a_file_are_told(run: Any, folder: Path, asked: str, short: bool) -> None:
    """Of several logs: the records of the next one are no part of a passage."""
    (folder / "in").mkdir()
    for name, begin in (("app.log.1", 0), ("app.log", 4)):
        lines = (json.dumps({"time": f"2026-11-20T10:00:0{n}Z", "n": n}) + "\n" for n in range(begin, begin + 4))
        (folder / "in" / name).write_text("".join(lines))
    done = run("query", "in/app.log*", asked, "-C", "1")
    told = "jitdb: 1 passage begins or ends with a file: the records around a match are those of its own file\n"
    assert done.stderr == (told if short else "")
    assert run("query", "in/app.log", "n == 7", "-C", "1").stderr == ""  # of one log nothing is missing
