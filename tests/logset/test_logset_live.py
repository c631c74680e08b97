"""A live question to a set of logs gives each record once, of new files too, and goes on from a cursor."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitdb
from jitdb import Log
from jitdb.errors import LogWarning, QueryError
from jitdb.log.io import osfile
from jitdb.operators import field


def append(path: Path, *numbers: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with Log(path) as log:
        log.append_many([{"n": number} for number in numbers])


def numbers(feed: Any) -> list[int]:
    return [record["n"] for portion in iter(feed.read, None) for record in portion.data]


def test_what_comes_to_any_log(tmp_path: Path) -> None:
    append(tmp_path / "a.log", 0, 1)
    append(tmp_path / "b.log", 2)
    with jitdb.open_many(tmp_path) as logs, jitdb.open_many(tmp_path) as others:
        new = logs.feed(logs.query().live().question)
        old = others.feed(others.query().live(old=True).question)
        assert numbers(new) == []
        assert sorted(numbers(old)) == [0, 1, 2]
        append(tmp_path / "a.log", 3)
        append(tmp_path / "c.log", 4, 5)
        assert sorted(numbers(new)) == sorted(numbers(old)) == [3, 4, 5]
        assert numbers(new) == numbers(old) == []


def test_it_goes_on_behind_a_cursor(tmp_path: Path) -> None:
    for name in "abc":
        append(tmp_path / f"{name}.log", *range(10))
    found: list[int] = []
    with jitdb.open_many(tmp_path) as logs:
        feed = logs.feed(logs.query().batch(4).live(old=True).question)
        portion = feed.read()
        assert portion is not None
        found += [record["n"] for record in portion.data[:3]]
        cursor = portion.cursor(3)
    append(tmp_path / "d.log", 77)
    with jitdb.open_many(tmp_path) as logs:
        feed = logs.feed(logs.query().live(after=cursor).question)
        found += numbers(feed)
        end = feed.cursor
    assert sorted(found) == sorted([*range(10)] * 3 + [77])
    append(tmp_path / "b.log", 88)
    with jitdb.open_many(tmp_path) as logs:
        assert numbers(logs.feed(logs.query().live(after=end).question)) == [88]
        with pytest.raises(QueryError, match="no cursor of several logs"):
            logs.feed(logs.query().live(after="x").question)


def test_only_what_matches(tmp_path: Path) -> None:
    for date in ("21", "22"):
        append(tmp_path / f"date={date}" / "a.log", 1, 2)
    with jitdb.open_many(tmp_path) as logs:
        query = logs.query((field("date") == 22) & (field("n") == 2))
        feed = logs.feed(query.live(old=True).question)
        assert numbers(feed) == [2]
        append(tmp_path / "date=21" / "a.log", 2)
        append(tmp_path / "date=22" / "b.log", 2, 3)
        assert numbers(feed) == [2]


def test_a_file_that_is_rotated_comes_once(tmp_path: Path) -> None:
    path = tmp_path / "app.ndjson"

    def write(*numbers: int) -> None:
        with open(path, "a") as file:
            file.writelines(f'{{"n": {number}}}\n' for number in numbers)

    write(0, 1)
    append(tmp_path / "other.log", 100)
    with jitdb.open_many(tmp_path) as logs:
        feed = logs.feed(logs.query().live(old=True).question)
        assert sorted(numbers(feed)) == [0, 1, 100]
        for turn in range(1, 4):
            write(10 * turn)
            path.rename(tmp_path / f"app.ndjson.{turn}")
            write(10 * turn + 1, 10 * turn + 2)
            found = numbers(feed)
            assert sorted(found) == [10 * turn, 10 * turn + 1, 10 * turn + 2]
        assert numbers(feed) == []


def lines(path: Path, *numbers: int) -> None:
    with open(path, "a") as file:
        file.writelines(f'{{"n": {number}}}\n' for number in numbers)


def rotate(path: Path) -> None:
    """As logrotate does: each older file's number grows by one, and an empty file has the name."""
    last = 0
    while path.with_name(f"{path.name}.{last + 1}").exists():
        last += 1
    for number in range(last, 0, -1):
        path.with_name(f"{path.name}.{number}").rename(path.with_name(f"{path.name}.{number + 1}"))
    path.rename(path.with_name(f"{path.name}.1"))
    path.touch()


@pytest.mark.parametrize("where", ["", "*", "*.ndjson", "*.ndjson.*"])
def test_files_whose_numbers_grow_come_once(tmp_path: Path, where: str) -> None:
    path = tmp_path / "app.ndjson"
    lines(path, 0)
    with jitdb.open_many(str(tmp_path / where)) as logs:
        feed = logs.feed(logs.query().live(old=True).question)
        assert numbers(feed) == ([] if where.endswith(".*") else [0])
        if where.endswith(".*"):  # what is rotated is new to who looks at such names alone
            rotate(path)
            assert numbers(feed) == [0]
        for turn in range(1, 7):
            lines(path, 10 * turn)
            rotate(path)
            lines(path, 10 * turn + 1)
            wanted = [10 * turn] if turn == 1 else [10 * turn - 9, 10 * turn]
            assert numbers(feed) == (wanted if where.endswith(".*") else [10 * turn, 10 * turn + 1])
        assert numbers(feed) == []


@settings(max_examples=60)
@given(
    steps=st.lists(st.sampled_from(["write", "rotate", "read", "go on"]), min_size=4, max_size=24),
    where=st.sampled_from(["", "*", "*.ndjson*"]),
)
def test_lines_come_once_however_often_files_are_rotated_between(steps: list[str], where: str) -> None:
    written, found = 0, []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        path = Path(folder, "app.ndjson")
        path.touch()
        logs = held.enter_context(jitdb.open_many(str(Path(folder, where))))
        feed = logs.feed(logs.query().live(old=True).question)
        for step in steps:
            if step == "write":
                lines(path, written, written + 1)
                written += 2
            elif step == "rotate":
                rotate(path)
            else:
                found += numbers(feed)
                if step == "go on":
                    cursor = feed.cursor
                    feed.close()
                    logs.close()
                    logs = held.enter_context(jitdb.open_many(str(Path(folder, where))))
                    feed = logs.feed(logs.query().live(after=cursor).question)
        found += numbers(feed)
        feed.close()
    assert sorted(found) == [*range(written)]


def test_who_writes_on_to_a_rotated_file_is_heard_once(tmp_path: Path) -> None:
    path = tmp_path / "app.ndjson"
    lines(path, 0)
    with jitdb.open_many(tmp_path) as logs, open(path, "a", buffering=1) as writer:
        feed = logs.feed(logs.query().live(old=True).question)
        assert numbers(feed) == [0]
        path.rename(tmp_path / "app.ndjson.1")
        for number in (1, 2):  # while no file has the name
            writer.write(f'{{"n": {number}}}\n')
            assert numbers(feed) == [number]
        path.touch()
        writer.write('{"n": 3}\n')
        assert numbers(feed) == [3]
        lines(path, 4)
        writer.write('{"n": 5}\n')
        assert sorted(numbers(feed)) == [4, 5]
        writer.write('{"n": 6}\n')
        assert numbers(feed) == [6]
        assert numbers(feed) == []


@pytest.mark.parametrize("where", ["*", "*.ndjson"])
@pytest.mark.parametrize("is_first", [False, True])
def test_logs_that_were_closed_are_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, is_first: bool
) -> None:
    """With more logs than stay open: they grow, and are rotated, also to names that are none of the set's."""
    from jitdb.logset import open_logs

    monkeypatch.setattr(open_logs, "most_open", lambda: 4)
    names = [f"{number}.ndjson" for number in range(7)]
    for number, name in enumerate(names):
        lines(tmp_path / name, number)
    with jitdb.open_many(str(tmp_path / where)) as logs:
        feed = logs.feed(logs.query().live(old=is_first).question)
        if is_first:
            assert sorted(numbers(feed)) == [*range(7)]
        assert numbers(feed) == []
        for turn in range(1, 4):
            for number, name in enumerate(names):
                lines(tmp_path / name, 100 * turn + number)
                if number % 2:
                    (tmp_path / name).rename(tmp_path / f"{name}.{turn}")
                    lines(tmp_path / name, 100 * turn + 50 + number)
            wanted = [100 * turn + number for number in range(7)] + [100 * turn + 50 + number for number in (1, 3, 5)]
            assert sorted(numbers(feed)) == sorted(wanted)
            assert numbers(feed) == []


@pytest.mark.parametrize("how", ["renamed", "copied"])
def test_a_cursor_is_of_a_file_whatever_its_name(tmp_path: Path, how: str) -> None:
    """Rotated between two runs: what came to the old one is given, and the new one from its beginning."""
    path, old = tmp_path / "app.ndjson", tmp_path / "app.ndjson.1"
    lines(path, *range(5))
    with jitdb.open_many(tmp_path) as logs:
        feed = logs.feed(logs.query().live(old=True).question)
        assert numbers(feed) == [*range(5)]
        cursor = feed.cursor
    lines(path, 5, 6)
    if how == "renamed":
        path.rename(old)
    else:
        shutil.copyfile(path, old)
        path.write_text("")
    lines(path, 7)
    with jitdb.open_many(tmp_path) as logs:
        assert sorted(numbers(logs.feed(logs.query().live(after=cursor).question))) == [5, 6, 7]


def test_what_came_to_a_file_that_is_not_found_is_told(tmp_path: Path) -> None:
    path = tmp_path / "app.ndjson"
    lines(path, 1)
    with jitdb.open_many(str(tmp_path / "*.ndjson")) as logs:
        cursor = logs.feed(logs.query().live().question).cursor
    (tmp_path / "elsewhere").mkdir()
    path.rename(tmp_path / "elsewhere" / "app.ndjson")
    lines(path, 7)
    with jitdb.open_many(str(tmp_path / "*.ndjson")) as logs:
        with pytest.warns(LogWarning, match="another file has its name"):
            feed = logs.feed(logs.query().live(after=cursor).question)
        assert numbers(feed) == [7]


def test_a_file_that_is_copied_and_truncated_comes_once(tmp_path: Path) -> None:
    path = tmp_path / "app.ndjson"
    with jitdb.open_many(tmp_path) as logs:
        lines(path, 0)
        feed = logs.feed(logs.query().live(old=True).question)
        assert numbers(feed) == [0]
        for turn in range(1, 4):
            lines(path, 10 * turn)
            if turn % 2:
                assert numbers(feed) == [10 * turn]
            shutil.copyfile(path, tmp_path / f"app.ndjson.{turn}")
            path.write_text("")
            found = numbers(feed)
            lines(path, 10 * turn + 1)
            found += numbers(feed)
            assert sorted(found) == ([] if turn % 2 else [10 * turn]) + [10 * turn + 1]
        assert numbers(feed) == []


def test_a_cursor_is_told_from_what_is_none(tmp_path: Path) -> None:
    append(tmp_path / "a.log", 1)
    with jitdb.open_many(tmp_path) as logs:
        for text in ("x", "logs:7", "logs:[7]", "logs:{", 'logs:{"a.log":7}', 'logs:{"a.log":"x"}'):
            with pytest.raises(QueryError, match="cursor"):
                logs.feed(logs.query().live(after=text).question)


def test_records_that_were_read_too_early_come_once_they_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.log"
    append(path, 0)
    early: list[list[int]] = []
    with jitdb.open_many(tmp_path) as logs, Log(path) as writer:
        feed = logs.feed(logs.query().live(old=True).question)
        assert numbers(feed) == [0]
        for name in ("fsync", "fdatasync"):
            sync = getattr(osfile.fs, name)

            def look_before(fd: int, sync: Callable[[int], None] = sync) -> None:
                early.append(numbers(feed))
                sync(fd)

            monkeypatch.setattr(osfile.fs, name, look_before)
        monkeypatch.setattr(osfile.fs, "sync_both", lambda here, beside: (here(), beside()))  # one thread asks the feed
        writer.append({"n": 1})
        writer.flush()
        monkeypatch.undo()
        assert early
        assert [number for found in (*early, numbers(feed)) for number in found] == [1]


def test_a_loop_waits_for_more_and_ends_when_it_is_closed(tmp_path: Path) -> None:
    append(tmp_path / "a.log", 0)
    found: list[int] = []
    came = threading.Semaphore(0)
    with jitdb.open_many(tmp_path) as logs:
        live = iter(logs.query().live(old=True))

        def read() -> None:
            for record in live:
                found.append(record["n"])
                came.release()

        reader = threading.Thread(target=read)
        reader.start()
        assert came.acquire(timeout=30)
        append(tmp_path / "new.log", 1)
        assert came.acquire(timeout=30)
        append(tmp_path / "a.log", 2)
        assert came.acquire(timeout=30)
        live.close()
        reader.join(30)
        assert not reader.is_alive()
    assert found == [0, 1, 2]
