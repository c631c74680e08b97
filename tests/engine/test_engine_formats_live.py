"""Live questions to files of formats: each record comes once, and whole, whatever becomes of its lines and file."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from log.lines import format_oracle as oracle

import jitdb
from jitdb.engine.following import followed

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")

TRACE = ["Traceback (most recent call last):", '  File "a.py", line 1', "    go()", "ValueError: no"]


def lines(name: str, n: int, trace: bool = False) -> list[bytes]:
    texts = [f"level=info n={n}" if name == "logfmt" else f'{{"level": "info", "n": {n}}}', *TRACE * trace]
    head = "" if name == "logfmt" else f"2026-11-20T00:00:{n % 60:02}.553591789Z stderr F "
    return [f"{head}{text}\n".encode() for text in texts]


def whole(name: str, data: bytes) -> list[Any]:
    return [record for record in getattr(oracle, name)(data) if record is not None]


def write(path: Path, *data: bytes) -> None:
    with path.open("ab") as file:
        file.write(b"".join(data))


def drained(feed: Any, seconds: float = 0.0) -> list[Any]:
    """What comes now, and for so long."""
    found: list[Any] = []
    late = time.monotonic() + seconds
    while (portion := feed.read()) is not None or time.monotonic() < late:
        found += [] if portion is None else portion.data
        time.sleep(0.002 if portion is None else 0)
    return found


def old(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    os.utime(path, (1.79e9, 1.79e9))


@pytest.mark.parametrize("name", ["cri", "logfmt"])
def test_a_record_comes_when_all_its_lines_are_there(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.log"
    old(path, b"".join(lines(name, 0, True)))
    with jitdb.open(path, format=name, progress=False) as db:
        feed = db.feed(old=True)
        seen = drained(feed)
        for n in range(1, 5):
            for line in lines(name, n, n % 2 == 1):
                write(path, line[:20])
                seen += drained(feed)
                write(path, line[20:])
                seen += drained(feed, 0.03)
        seen += drained(feed, 0.4)
        assert seen == whole(name, path.read_bytes())
        feed.close()


@pytest.mark.parametrize("name", ["cri", "logfmt"])
def test_a_quiet_file_gives_its_last_record_soon(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.log"
    old(path, b"".join(lines(name, 0)))
    with jitdb.open(path, format=name, progress=False) as db:
        feed, news = db.feed(), threading.Event()
        assert feed.read() is None
        end = feed.watch(news.set)
        write(path, *lines(name, 1, True))
        found = None
        while found is None and news.wait(5):
            news.clear()
            found = feed.read()
        end()
        assert found is not None  # and not only when more comes
        assert found.data == whole(name, b"".join(lines(name, 1, True)))


@pytest.mark.parametrize("name", ["cri", "logfmt"])
@pytest.mark.parametrize("how", ["rename", "copytruncate"])
def test_rotation_within_a_record(tmp_path: Path, name: str, how: str) -> None:
    path, moved = tmp_path / "a.log", tmp_path / "a.log.1"
    old(path, b"".join(lines(name, 0, True)))
    with jitdb.open(path, format=name, progress=False) as db:
        feed = db.feed(old=True)
        seen = drained(feed)
        record = lines(name, 1, True)
        write(path, *lines(name, 2), *record[:3])
        seen += drained(feed)
        if how == "rename":
            path.rename(moved)
            write(path, *lines(name, 3))
            seen += drained(feed, 0.05)
            write(moved, *record[3:])  # its writer still has the old file
        else:
            write(path, *record[3:])
            moved.write_bytes(path.read_bytes())
            os.truncate(path, 0)
            write(path, *lines(name, 3))
        write(path, *lines(name, 4, True))
        seen += drained(feed, 1.0)
        expected = whole(name, moved.read_bytes()) + whole(name, path.read_bytes())
        assert sorted(seen, key=str) == sorted(expected, key=str)
        if how == "rename":
            assert seen == expected
        feed.close()


@pytest.mark.parametrize("name", ["cri", "logfmt"])
@pytest.mark.parametrize("window", [1, 50, 300, 1000])
def test_no_window_cuts_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, window: int) -> None:
    monkeypatch.setattr(followed, "WINDOW", window)
    path = tmp_path / "a.log"
    old(path, b"".join(line for n in range(12) for line in lines(name, n, n % 3 > 0)))
    expected = whole(name, path.read_bytes())
    with jitdb.open(path, format=name, progress=False) as db:
        assert drained(db.feed(old=True)) == expected
        feed = db.feed(old=True)
        some = feed.read()
        assert some is not None
        again = drained(db.feed(after=some.cursor(1)))  # at the first record, within the text
        assert again == expected[1:]


@pytest.mark.parametrize("name", ["cri", "logfmt"])
def test_lines_that_come_late_are_no_record(tmp_path: Path, name: str) -> None:
    """The record before them was given without: it comes not twice, and what follows comes once."""
    path = tmp_path / "a.log"
    old(path, b"".join(lines(name, 0)))
    with jitdb.open(path, format=name, progress=False) as db:
        feeds = [db.feed(old=True), db.feed()]
        seen = [drained(feed) for feed in feeds]
        for n in range(1, 4):
            for part in (lines(name, n, True)[:2], lines(name, n, True)[2:]):
                write(path, *part)
                seen = [each + drained(feed, 0.3) for each, feed in zip(seen, feeds, strict=True)]
        write(path, *lines(name, 9, True))
        seen = [each + drained(feed, 0.3) for each, feed in zip(seen, feeds, strict=True)]
        assert [[record["n"] for record in each] for each in seen] == [[0, 1, 2, 3, 9], [1, 2, 3, 9]]
        assert all(each[-1]["trace"] == "\n".join(TRACE) for each in seen)


@pytest.mark.parametrize("name", ["cri", "logfmt"])
def test_who_begins_within_a_record_gets_the_next_ones(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.log"
    old(path, b"".join(lines(name, 0, True)[:2]))
    with jitdb.open(path, format=name, progress=False) as db:
        feed = db.feed()
        assert drained(feed) == []
        write(path, *lines(name, 0, True)[2:], *lines(name, 1, True))
        assert drained(feed, 0.4) == whole(name, b"".join(lines(name, 1, True)))


def test_a_folder_of_formats(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.log" for name in ("cri", "logfmt")}
    for name, path in paths.items():
        old(path, b"".join(lines(name, 0, True)))
    with jitdb.open_many(tmp_path, progress=False) as logs:
        feed = logs.feed(old=True)
        seen = drained(feed)
        for n in range(1, 4):
            for name, path in paths.items():
                for line in lines(name, n, n % 2 == 1):
                    write(path, line)
                    seen += drained(feed)
        seen += drained(feed, 0.5)
        expected = [record for name, path in paths.items() for record in whole(name, path.read_bytes())]
        assert sorted(seen, key=str) == sorted(expected, key=str)
        feed.close()
