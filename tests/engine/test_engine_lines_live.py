"""Live questions to a file of lines go on through rotation: no line is lost, none comes twice."""

from __future__ import annotations

import gc
import json
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from thoroughness import tries
from waiting import until

import jitdb
from jitdb.engine.following import follower
from jitdb.log.io import osfile
from jitdb.operators import field

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")

_SOON = 20.0  # seconds


class Writer:
    """Whoever writes the file, with numbers that count up."""

    def __init__(self, path: Path) -> None:
        self.path, self.count, self.files = path, 0, 0
        self.file = path.open("ab", buffering=0)

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            self.file.write(json.dumps({"n": self.count, "kind": "ab"[self.count % 2]}).encode() + b"\n")
            self.count += 1

    def rename(self) -> None:
        """As logrotate does; the writer goes on with the old file until it is told."""
        self.files += 1
        self.path.rename(self.path.with_suffix(f".{self.files}"))

    def reopen(self) -> None:
        self.file.close()
        self.file = self.path.open("ab", buffering=0)

    def copytruncate(self) -> None:
        self.files += 1
        self.path.with_suffix(f".{self.files}").write_bytes(self.path.read_bytes())
        os.truncate(self.path, 0)


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "a.ndjson")


def drained(feed: Any) -> list[int]:
    found: list[int] = []
    while (portion := feed.read()) is not None:
        found += [record["n"] for record in portion.data]
    return found


def some(feed: Any) -> list[int]:
    portion = feed.read()
    return [] if portion is None else [record["n"] for record in portion.data]


def test_a_step_at_a_time(writer: Writer) -> None:
    writer.write(3)
    with jitdb.open(writer.path, progress=False) as db:
        feed = db.feed(old=True)
        seen = drained(feed)
        writer.write(2)
        writer.rename()
        writer.write(2)
        db.log.refresh()
        seen += drained(feed)
        (writer.path).touch()
        writer.write(1)
        db.log.refresh()
        seen += drained(feed)
        assert seen == list(range(8))
        writer.write(1)  # to the old file still
        db.log.refresh()
        seen += drained(feed)
        assert seen == list(range(9))
        writer.write(1)
        writer.reopen()
        writer.write(2)
        db.log.refresh()
        seen += drained(feed)
        writer.write(2)
        db.log.refresh()
        seen += drained(feed)
        assert seen == list(range(14))
        assert db.count() == 4


def test_offsets_are_those_of_the_file_that_the_record_is_in(writer: Writer) -> None:
    writer.write(3)
    with jitdb.open(writer.path, progress=False) as db:
        feed = db.feed(field("kind") == "a", old=True, as_offsets=True, limit=1)
        first = feed.read()
        assert first.data == [0]
        writer.rename()
        writer.reopen()
        writer.write(2)
        db.log.refresh()
        found = []
        while (portion := feed.read()) is not None:
            found += portion.data
        old = writer.path.with_suffix(".1").read_bytes()
        new = writer.path.read_bytes()
        assert found == [old.index(b'{"n": 2'), new.index(b'{"n": 4')]


def test_truncated_files_begin_anew(writer: Writer) -> None:
    writer.write(5)
    with jitdb.open(writer.path, progress=False) as db:
        feed = db.feed()
        writer.write(3)
        db.log.refresh()
        assert drained(feed) == [5, 6, 7]
        writer.copytruncate()
        writer.write(1)
        db.log.refresh()
        assert drained(feed) == [8]
        writer.copytruncate()
        db.log.refresh()
        assert drained(feed) == []
        writer.write(200)  # more than there were
        db.log.refresh()
        assert drained(feed) == list(range(9, 209))


def test_an_edited_file_begins_anew(writer: Writer) -> None:
    writer.write(5)
    with jitdb.open(writer.path, progress=False) as db:
        feed = db.feed()
        data = writer.path.read_bytes()
        os.utime(writer.path, ns=(0, 0))
        with writer.path.open("r+b") as file:
            file.seek(len(data) - 3)
            file.write(b"c")
        assert drained(feed) == [0, 1, 2, 3]  # the last one is no record any more
        assert drained(feed) == []


@pytest.mark.parametrize("seed", range(tries(4, 200)))
def test_any_order_of_steps(writer: Writer, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "LOOK", -1.0)
    rng = random.Random(seed)
    writer.write(rng.randrange(4))
    with jitdb.open(writer.path, "memory", progress=False) as db:
        feed, seen, renamed = db.feed(old=True, limit=rng.randrange(1, 5)), [], False
        for _ in range(40):
            step = rng.randrange(7)
            if step < 3:
                writer.write(rng.randrange(3))
            elif step == 3 and not renamed and writer.path.exists():
                writer.rename()
                renamed = True
                if rng.random() < 0.5:
                    writer.path.touch()
            elif step == 4 and renamed:
                writer.reopen()
                renamed = False
                seen += some(feed)  # files that come and go between two looks are never seen
            elif rng.random() < 0.7:
                seen += some(feed)
        writer.reopen()
        writer.write(1)
        seen += drained(feed)
        assert seen == list(range(writer.count))


def test_while_it_is_written_and_rotated(writer: Writer) -> None:
    """In another thread, at its own speed: each file stays until it was looked at, as files of the world do."""
    seen: list[int] = []
    late = time.monotonic() + 4 * _SOON

    def await_reader() -> None:
        until(lambda: len(seen) >= writer.count)

    def write() -> None:
        for _turn in range(tries(4, 40)):
            for _ in range(20):
                writer.write(3)
                time.sleep(0.001)
            await_reader()
            writer.write(2)
            writer.rename()
            writer.write(5)
            time.sleep(0.01)
            writer.reopen()
            writer.write(1)
            await_reader()

    with jitdb.open(writer.path, progress=False) as db:
        feed, news = db.feed(old=True), threading.Event()
        unwatch = feed.watch(news.set)
        thread = threading.Thread(target=write)
        thread.start()
        while (thread.is_alive() or len(seen) < writer.count) and time.monotonic() < late:
            news.clear()
            seen += drained(feed)
            news.wait(0.2)
        unwatch()
        thread.join()
    assert seen == list(range(writer.count))


def test_a_count_between_is_of_one_state(writer: Writer) -> None:
    """While lines come and files go, a count is never of a mixture: each file has its numbers in one run."""
    ended = threading.Event()

    def write() -> None:
        late = time.monotonic() + tries(1, 20)
        while time.monotonic() < late:
            writer.write(30)
            writer.rename()
            writer.reopen()
        ended.set()

    thread = threading.Thread(target=write)
    with jitdb.open(writer.path, "memory", progress=False) as db:
        thread.start()
        while not ended.is_set():
            db.log.refresh()
            found = [record["n"] for record in db.all(sort_by="arrival")]
            assert found == list(range(found[0], found[0] + len(found))) if found else True
            assert len(found) <= 30
    thread.join()


@pytest.mark.parametrize("at", range(1, 8))
def test_it_is_closed_while_it_reads(writer: Writer, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that is under way goes on with its open files, and then closes them."""
    writer.write(3)
    gc.collect()  # files of tests before would be closed meanwhile
    read, calls, opened = osfile.fs.read, 0, set(os.listdir("/proc/self/fd"))
    with jitdb.open(writer.path, progress=False) as db, iter(db.query(field("n") >= 0).live(old=True)) as live:

        def closing(fd: int, size: int, offset: int) -> bytes:
            nonlocal calls
            calls += 1
            if calls == at:
                live.close()
            return read(fd, size, offset)

        monkeypatch.setattr(osfile.fs, "read", closing)
        assert len(list(live)) in (0, 1, 2, 3)
        assert calls >= at
    assert len(os.listdir("/proc/self/fd")) == len(opened)
