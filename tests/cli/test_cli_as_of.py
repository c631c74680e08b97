"""--as-of: count, query and export of an earlier state of the log."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import environment, make_log

import jitdb
from jitdb.cli import main
from jitdb.cli.places import written
from jitdb.log import Log

COUNT = 3000
EVEN = 'kind == "even"'


def is_even(number: int) -> bool:
    return number % 2 == 0


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records 0 to 2999, their times in another order."""
    monkeypatch.chdir(tmp_path)
    return make_log(
        tmp_path / "x.log",
        [
            {"n": number, "kind": "even" if is_even(number) else "odd", "timestamp": number * 7919 % 3001}
            for number in range(COUNT)
        ],
    )


def numbers(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[int]:
    assert main([arguments[0], "x.log", *arguments[1:], "--no-progress"]) == 0
    return [json.loads(line)["n"] for line in capsys.readouterr().out.splitlines()]


def check(capsys: pytest.CaptureFixture[str], place: str, there: list[int]) -> None:
    """That these records are what all three commands find."""
    for question, wanted in (([], there), ([EVEN], list(filter(is_even, there)))):
        assert main(["count", "x.log", *question, "--as-of", place, "-q"]) == int(not wanted)  # as in grep
        assert capsys.readouterr().out == f"{len(wanted)}\n"
        assert numbers(capsys, "export", *question, "--as-of", place) == wanted
        assert numbers(capsys, "query", *question, "--as-of", place, "--arrival") == wanted
        by_time = sorted(wanted, key=lambda number: number * 7919 % 3001)
        assert numbers(capsys, "query", *question, "--as-of", place) == by_time
        newest = numbers(capsys, "query", *question, "--as-of", place, "--descending", "-n", "5", "--skip", "2")
        assert newest == by_time[::-1][2:7]


def test_every_kind_of_place(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random.seed(3)
    with jitdb.open(log) as db:
        offsets = [record.offset for record in db.log.stream()]
        places: dict[str, int] = {"-1": 0, str(db.log.durable_end - 1): COUNT, "0": 1}
        for count in random.sample(range(1, COUNT), 4):
            places[str(offsets[count - 1])] = count
            places[f"{offsets[count - 1] + 3:,}"] = count  # within the record
            portion = db.feed(limit=count, old=True).read()
            assert portion is not None
            places[portion.cursor(count)] = places[written(portion.cursor(count))] = count
        gone = set(random.sample(range(COUNT), 300))
        for number in gone:
            db.log.delete(offsets[number])
    for place, count in places.items():
        check(capsys, place, [number for number in range(count) if number not in gone])
    assert main(["compact", "x.log", "-q"]) == 0
    with Log(log) as again:
        again.append({"n": COUNT, "kind": "even", "timestamp": 0})
    for place, count in places.items():
        if "." in place:
            check(capsys, place, [number for number in range(count) if number not in gone])


def test_the_table_counts_what_was_there(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Log(log, read_only=True) as opened:
        (record,) = islice(opened.stream(), 41, 42)
    assert main(["query", "x.log", EVEN, "--as-of", str(record.offset), "--format", "table", "--limit", "4"]) == 0
    assert capsys.readouterr().out.endswith("records 1 to 4 of 21; more with --skip 4\n")


@pytest.mark.parametrize("command", ["count", "query", "export"])
def test_places_that_are_none(log: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    def refused(code: int, place: str) -> str:
        assert main([command, "x.log", "--as-of", place]) == code
        said = capsys.readouterr()
        assert said.out == ""
        return said.err

    with jitdb.open(log, read_only=True) as db:
        identity, end = db.log.identity.hex(), db.log.durable_end
    for text in ("yesterday", "1.5", "-", f"{identity}.1.5", f"{identity}.1.5.320 crc32:00000000"):
        assert "an offset, such as `jitdb query --offsets` prints, or a cursor is expected" in refused(2, text)
    for text in (str(end), "-2", "1" * 30):
        told = f"--as-of {int(text)}: this is no place in x.log, which has {end} bytes\n"
        assert refused(1, text).startswith(f"jitdb: {told}")
    assert "no place in x.log: it is of another log" in refused(1, f"{'0' * 32}.1.5.320")
    assert f"it is behind the end of the log, which has {end:,} bytes" in refused(1, f"{identity}.1.5.{end + 1}")
    assert "the log was compacted since, and it is not known" in refused(1, f"{identity}.2.5.320")


def test_a_bad_place_replaces_no_file(log: Path) -> None:
    (log.parent / "out.ndjson").write_text("kept")
    for command in (["query"], ["export"], ["export", EVEN]):
        line: list[Any] = [sys.executable, "-m", "jitdb", command[0], "x.log", *command[1:]]
        done = subprocess.run(
            [*line, "--as-of", "99999999", "--output", "out.ndjson"],
            cwd=log.parent, env=environment(), capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 1
        assert (log.parent / "out.ndjson").read_text() == "kept"
