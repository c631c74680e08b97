"""The file that keeps a place in a log: what it may hold, and what is said of what it may not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import make_log

import jitdb
from jitdb.cli import main
from jitdb.cli.places import read_place, written


def records(numbers: range) -> list[dict[str, Any]]:
    return [{"n": number, "kind": "even" if number % 2 == 0 else "odd"} for number in numbers]


@pytest.fixture
def hundred(tmp_path: Path) -> Path:
    return make_log(tmp_path / "x.log", records(range(100)))


# --- mistakes --------------------------------------------------------------------------------------------------------


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], hundred: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(hundred.parent)

    def call(code: int, *arguments: str) -> str:
        assert main(["tail", *arguments]) == code
        said = capsys.readouterr()
        assert (said.out, said.err[:7]) == ("", "jitdb: ")
        return said.err

    return call


def test_mistakes_in_the_command_line(refused) -> None:
    cursor = "000102030405060708090a0b0c0d0e0f.1.5.320"
    assert "leave --fields out" in refused(2, "x.log", "--offsets", "--fields", "n")
    assert "--after and --old both say where to begin" in refused(2, "x.log", "--after", cursor, "--old")
    assert "--after and --cursor both say" in refused(2, "x.log", "--after", cursor, "--cursor", "place")
    assert "a cursor is expected, such as" in refused(2, "x.log", "--after", "320")
    assert "a cursor is expected" in refused(2, "x.log", "--after", written(cursor).replace("5", "6", 1))
    assert "did you mean x.log?" in refused(1, "y.log")
    assert not os.path.exists("y.log.jitdb")


def test_a_file_that_holds_no_place_is_left_alone(process, run, hundred: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("do not lose this")
    os.link(hundred, tmp_path / "linked.log")
    before = hundred.read_bytes()
    for name, words in [
        ("notes.txt", "notes.txt: this holds no place in a log"),
        ("x.log", "this is a log itself"),
        ("linked.log", "this is a log itself"),
        (".", "this is no file"),
        ("nope/place", "there is no folder nope"),
    ]:
        done = run("tail", "x.log", "--old", "--cursor", name)
        assert (done.returncode, done.stdout) == (1, "")
        assert words in done.stderr
    assert (tmp_path / "notes.txt").read_text() == "do not lose this"
    assert hundred.read_bytes() == before
    for length in (250, 300):  # with the shorter one, only the file that is to take its place has too long a name
        done = process("tail", "x.log", "--old", "--cursor", "n" * length)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"jitdb: {'n' * length}: File name too long" in done.stderr


def test_places_that_are_none(run, hundred: Path) -> None:
    with jitdb.open(hundred, read_only=True) as db:
        identity, end = db.log.identity.hex(), db.log.durable_end
    for place, words in [
        (f"{'0' * 32}.1.5.320", "it is of another log"),
        (f"{identity}.1.5000.{end + 1}", f"it is behind the end of the log, which has {end:,} bytes"),
        (f"{identity}.7.50.320", "the log was compacted since, and it is not known any more which records went"),
    ]:
        done = run("tail", "x.log", "--after", place)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"jitdb: --after: this is no place in x.log: {words}" in done.stderr


def test_every_flipped_bit_of_a_kept_place_is_noticed() -> None:
    cursor = "000102030405060708090a0b0c0d0e0f.12.5123.320456"
    line = written(cursor).encode()
    assert read_place(line.decode()) == cursor
    for place in range(8 * len(line)):
        flipped = bytearray(line)
        flipped[place // 8] ^= 1 << place % 8
        assert read_place(flipped.decode(errors="replace")) in (None, cursor)
        if place // 8 < len(cursor):
            assert read_place(flipped.decode(errors="replace")) is None
