"""A line of more bytes than can be indexed is a bad line: those around it are found, and little of it is held."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.engine.reading import paging
from jitdb.errors import MalformedWarning
from jitdb.log.lines import form, framing, line_walkers, streaming
from jitdb.operators import field

LIMIT = 5 << 20  # more than a chunk and what is read with it
AROUND = [{"n": number, "level": "error" if number % 2 else "info"} for number in range(40)]


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (form, framing, line_walkers, streaming):
        monkeypatch.setattr(module, "LONGEST", LIMIT)


def lines(records: list[Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def long_line(size: int) -> bytes:
    """Of so many bytes, and JSON."""
    return b'{"level": "error", "text": "' + b"x" * (size - 30) + b'"}'


def write(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
@pytest.mark.parametrize("options", [{}, {"allow_prefix": True}, {"each": "[]"}])
@pytest.mark.parametrize("size", [LIMIT + 1, LIMIT + 2_000_000, 4 * LIMIT])
def test_the_lines_around_it_are_found(tmp_path: Path, name: str, options: dict[str, Any], size: int) -> None:
    def wrapped(record: Any) -> bytes:
        return lines([[record, record]] if "each" in options else [record])

    path, times = tmp_path / name, 2 if "each" in options else 1
    before, after = b"".join(map(wrapped, AROUND[:20])), b"".join(map(wrapped, AROUND[20:]))
    at = len(before)
    line = long_line(size)
    write(path, before + (b"[" + line[:-1] + b"]" if "each" in options else line) + b"\n" + after)
    with jitdb.open(path, **options) as db:
        with pytest.warns(MalformedWarning):
            assert db.count(field("level") == "error") == 20 * times
        assert db.count() == 40 * times
        assert [record["n"] for record in db.all(sort_by="arrival")][::times] == list(range(40))
        assert db.log.counted().malformed == [21]
        assert f"more than {LIMIT:,} bytes" in db.log.counted().reason
        assert db.log.unreadable([at]) == [0]
        assert db.log.get_many_raw([at]) == [None]
        assert db.log.stats().records == 40 * times
    with jitdb.open(path, **options) as db:  # by the indexes that are there
        assert db.count(field("n") >= 20) == 20 * times
    with jitdb.open(path, **options) as db:
        report = db.verify()
    assert report.ok
    assert (report.log.records, len(report.log.notes)) == (40 * times, 1)
    assert f"1 line that cannot be read: 21 (the first: it has more than {LIMIT:,} bytes)" in report.log.notes[0]


@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT])
def test_a_line_of_the_most_bytes_is_a_record(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(AROUND[:20]) + long_line(size) + b"\n" + lines(AROUND[20:]))
    with jitdb.open(path) as db:
        assert db.count(field("level") == "error") == 21
        assert len(db.all(field("text").starts_with("xxx"))[0]["text"]) == size - 30


@pytest.mark.filterwarnings("ignore::jitdb.errors.MalformedWarning")
@pytest.mark.parametrize("where", ["first", "last", "alone", "twice"])
def test_wherever_it_is(tmp_path: Path, where: str) -> None:
    path, line = tmp_path / "a.jsonl", long_line(2 * LIMIT) + b"\n"
    data = {
        "first": b"\xef\xbb\xbf" + line + lines(AROUND),
        "last": lines(AROUND) + line,
        "alone": lines(AROUND[:1]) + line,
        "twice": lines(AROUND[:5]) + line + line + lines(AROUND[5:]) + line,
    }[where]
    path.write_bytes(data)
    expected = 1 if where == "alone" else 40
    for _ in range(2):
        with jitdb.open(path) as db:
            assert db.count(field("n") >= 0) == expected
            assert db.count() == expected
            assert len(db.log.counted().malformed) == data.count(line)
    with open(path, "ab") as file:  # and the index goes on behind it
        file.write(lines([{"n": 99}]))
    with jitdb.open(path) as db:
        assert db.count(field("n") == 99) == 1
        assert db.count() == expected + 1


@pytest.mark.parametrize("descending", [False, True])
def test_few_long_records_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, descending: bool) -> None:
    """Whatever a page may have; each record comes once, in order."""
    monkeypatch.setattr(paging, "_MOST_BYTES", 10_000)
    records = [{"n": n, "text": "x" * (4000 if n % 4 else 25_000 if n % 8 else 10)} for n in range(40)]
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(records))
    with jitdb.open(path) as db:
        asked = db.query().sort_by_arrival()
        pages = [page.data for page in (asked.descending() if descending else asked).pages(1000)]
        assert [record for page in pages for record in page] == records[:: -1 if descending else 1]
        assert max(map(len, pages)) == 3
        assert [record["n"] for record in islice(db.query().live(old=True), 40)] == list(range(40))
        assert len(db.query().page(40).data) == 40
        assert len(next(iter(db.query().as_offsets().pages(1000))).data) == 40


MEMORY = """
import re, sys
from jitdb.log.lines import form
assert form.LONGEST == 1 << 30
from jitdb.cli import main
main(sys.argv[1:])
sys.stderr.write("\\n" + re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["count"], ["verify"], ["fields"], ["query", "n == 39"], ["tail", "--old", "-n", "4020"]]
)
def test_memory_does_not_follow_it(tmp_path: Path, command: list[str]) -> None:
    """A line of 1.2 GiB of zeros, which take no room on the disk, behind what tells that these are lines."""
    path = tmp_path / "a.jsonl"
    with open(path, "wb") as file:
        file.write(200 * lines(AROUND[:20]) + b'{"text": "')
        file.seek(1200 << 20, os.SEEK_CUR)
        file.write(b'"}\n' + lines(AROUND[20:]))
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, command[0], path.name, *command[1:]],
        cwd=tmp_path, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    *_, said = done.stderr.rpartition("\n")
    assert int(said) < 200_000, done.stderr  # KiB
    assert done.stdout
