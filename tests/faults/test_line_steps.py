"""Somebody changes the file at every step of a scan and of an answer: each answer is that of one state of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stepping import Stepping
from thoroughness import tries

import jitdb
from jitdb.engine.building import scan
from jitdb.engine.database import JITDB
from jitdb.errors import JitdbError
from jitdb.log.io import osfile
from jitdb.log.lines import line_log
from jitdb.log.lines.files import file
from jitdb.operators import field, starts_with

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")]

COUNT = 60


class Meddling(Stepping):
    """Before the call with some number, of those that look at files, something happens to one of them."""

    STEPS = ("preadv", "pread", "fstat", "stat")

    def __init__(self) -> None:
        self.calls, self.at, self.change = 0, -1, lambda: None

    def step(self) -> None:
        self.calls += 1
        if self.calls - 1 == self.at:
            self.change()


@pytest.fixture
def meddling(monkeypatch: pytest.MonkeyPatch) -> Meddling:
    fs = Meddling()
    monkeypatch.setattr(osfile, "fs", fs)
    monkeypatch.setattr(line_log, "BLOCK", 128)
    monkeypatch.setattr(scan, "CHUNK_BYTES", 512)
    monkeypatch.setattr(file, "ENDS", 256)
    return fs


def lines(numbers: range, kind: str) -> bytes:
    return b"".join(
        json.dumps({"n": number, "kind": kind, "text": f"text {number % 5}", "timestamp": number}).encode() + b"\n"
        for number in numbers
    )


def rewrite(path: Path, data: bytes, at: int) -> None:
    with path.open("r+b") as out:
        out.seek(at)
        out.write(data)


def edit_middle(path: Path) -> None:
    """All lines of the middle, some of which cross blocks and chunks, become of another kind, at once."""
    data = path.read_bytes()
    begin, end = data.index(b'"n": 10'), data.index(b'"n": 50')
    rewrite(path, data[begin:end].replace(b'"old"', b'"new"'), begin)


def append(path: Path) -> None:
    with path.open("ab") as out:
        out.write(lines(range(500, 510), "new"))


def shrink(path: Path) -> None:
    os.truncate(path, path.read_bytes().index(b'{"n": 20'))


def begin_anew(path: Path) -> None:
    os.truncate(path, 0)
    append(path)


def rotate(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(lines(range(900, 940), "new"))
    path.rename(path.with_suffix(".1"))
    other.rename(path)


def replace(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes().replace(b'"old"', b'"new"'))
    other.rename(path)


def unlink(path: Path) -> None:
    path.unlink()


CHANGES: list[Callable[[Path], None]] = [edit_middle, append, shrink, begin_anew, rotate, replace, unlink]


def state(path: Path) -> tuple[Any, ...]:
    there = [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else None
    return () if there is None else answer_of(there)


def answer_of(there: list[Any]) -> tuple[Any, ...]:
    return (
        sum(record["kind"] == "old" for record in there),
        [record for record in there if record["n"] >= 12],
        sum(record["text"] == "text 3" for record in there),
    )


QUESTIONS: list[Callable[[JITDB], Any]] = [
    lambda db: db.count(field("kind") == "old"),
    lambda db: db.all(field("n") >= 12, sort_by="arrival"),
    lambda db: db.count(starts_with("text", "text 3")),
]


def steps(path: Path, fs: Meddling, change: Callable[[Path], None], at: int, *, opened: bool) -> Iterator[bool]:
    """Ask all questions while the change comes at step `at`; whether there was such a step."""
    path.write_bytes(lines(range(COUNT), "old"))
    os.utime(path, ns=(10**18, 10**18))
    db = jitdb.open(path, progress=False) if opened else None
    before = state(path)
    fs.calls, fs.at, fs.change = 0, at, lambda: change(path)
    found: list[Any] = []
    try:
        if db is None:
            db = jitdb.open(path, progress=False)
        found = [question(db) for question in QUESTIONS]
    except JitdbError:
        assert change in (unlink, rotate, replace), change  # there is no file of that name for a moment
    happened, fs.at = fs.calls > at, -1
    if not happened:
        change(path)
    after = state(path) or before
    for number, answer in enumerate(found):
        assert answer in (before[number], after[number]), (number, at)
    if db is not None:
        with db:
            db.log.refresh()
            assert tuple(question(db) for question in QUESTIONS) == after
    yield happened


@pytest.mark.parametrize("opened", [False, True], ids=["opening", "open"])
@pytest.mark.parametrize("change", CHANGES)
def test_at_every_step(tmp_path: Path, meddling: Meddling, change: Callable[[Path], None], opened: bool) -> None:
    at = happens = 0
    while True:
        folder = tmp_path / str(at)
        folder.mkdir()
        (happened,) = steps(folder / "a.ndjson", meddling, change, at, opened=opened)
        if not happened:
            break
        happens += 1
        at += tries(23, 1)
    assert happens > 3
