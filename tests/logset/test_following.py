"""Files are followed by their texts: what rotation, copies, truncation and other processes do doubles no line."""

from __future__ import annotations

import gzip
import os
import shutil
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from stepping import Stepping

import jitdb
from jitdb.engine.following import followed, follower, texts
from jitdb.errors import LogWarning
from jitdb.log.io import osfile
from jitdb.log.lines.files.file import LineFile
from jitdb.log.lines.files.stamp import Stamp, stamp_at
from jitdb.log.lines.windows import LineOpener, LineWindow
from jitdb.logset import open_logs
from jitdb.operators import field


def write(path: Path, *numbers: int) -> None:
    with path.open("a") as file:
        file.writelines(f'{{"n": {number}}}\n' for number in numbers)


def drained(feed: Any) -> list[int]:
    return [record["n"] for portion in iter(feed.read, None) for record in portion.data]


pytestmark = pytest.mark.filterwarnings("error::jitdb.errors.JitdbWarning")


@contextmanager
def following(where: Path | str, after: str | None = None, indexes: str | None = None) -> Iterator[Any]:
    with jitdb.open_many(str(where), indexes, progress=False) as logs:
        feed = logs.feed(logs.query().live(old=after is None, after=after).question)
        yield feed
        feed.close()


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("is_seen", [False, True])
def test_lines_between_copy_and_truncation_come_once(tmp_path: Path, is_seen: bool, is_packed: bool) -> None:
    """They are read from the file, and are not in its copy, which has less than was read."""
    path, copy = tmp_path / "app.log", tmp_path / "app.log.1"
    write(path, *range(5))
    with following(tmp_path) as feed:
        assert drained(feed) == [*range(5)]
        shutil.copyfile(path, copy)
        found = drained(feed) if is_seen else []
        write(path, 5, 6)
        found += drained(feed)
        os.truncate(path, 0)
        write(path, 7)
        found += drained(feed)
        if is_packed:
            (tmp_path / "app.log.1.gz").write_bytes(gzip.compress(copy.read_bytes()))
            found += drained(feed)
            copy.unlink()
        write(path, 8)
        found += drained(feed)
        assert found == [5, 6, 7, 8]
        cursor = feed.cursor
    with following(tmp_path, cursor) as feed:
        assert drained(feed) == []


def test_a_copy_of_a_file_that_was_closed_is_no_new_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more files than stay open; the one that is opened to be compared was without news for longest."""
    monkeypatch.setattr(open_logs, "most_open", lambda: 4)
    path, others = tmp_path / "app.log", [tmp_path / f"{name}.log" for name in "bcdefgh"]
    for number, each in enumerate([path, *others]):
        write(each, number)
    with following(tmp_path) as feed:
        assert sorted(drained(feed)) == [*range(8)]
        for number, each in enumerate(others):
            write(each, 10 + number)
            drained(feed)
        copy = tmp_path / "app.log.1.gz"
        copy.write_bytes(gzip.compress(path.read_bytes()))
        os.utime(copy, (1, 1))  # so it is looked at once, and a warning would be of what was found
        assert drained(feed) == []
        write(path, 20)
        assert drained(feed) == [20]


def test_a_copy_that_goes_on_otherwise_is_a_log_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "app.log", 1)
    with following(tmp_path) as feed:
        assert drained(feed) == [1]
        write(tmp_path / "app-2.log", 1)  # two services that begin with the same line
        assert drained(feed) == []
        write(tmp_path / "app-2.log", 2)
        assert drained(feed) == [1, 2]
        write(tmp_path / "app.log", 3)
        write(tmp_path / "app-2.log", 4)
        assert sorted(drained(feed)) == [3, 4]


def test_equal_files_of_other_names_are_two(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        write(tmp_path / name, 1, 2)
    (tmp_path / "host").mkdir()
    write(tmp_path / "host" / "a.log", 1, 2)
    with following(tmp_path) as feed:
        assert sorted(drained(feed)) == [1, 1, 1, 2, 2, 2]


def test_a_removed_file_is_read_on_and_its_shorter_copy_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer, which was not told yet, writes on to a file without a name; compressed was what there was before."""
    monkeypatch.setattr(texts, "_REMOVED", 0.0)
    path = tmp_path / "app.log"
    write(path, *range(3))
    with following(tmp_path) as feed, path.open("a", buffering=1) as writer:
        assert drained(feed) == [0, 1, 2]
        old = path.rename(tmp_path / "app.log.1")
        (tmp_path / "app.log.1.gz").write_bytes(gzip.compress(old.read_bytes()))
        writer.write('{"n": 3}\n')
        cursor_before = feed.cursor
        assert drained(feed) == [3]
        old.unlink()
        writer.write('{"n": 4}\n')
        found = drained(feed)
        for _ in range(3):
            found += drained(feed)
        assert found == [4]
        cursor = feed.cursor
    with following(tmp_path, cursor) as feed:
        assert drained(feed) == []
    with following(tmp_path, cursor_before) as feed:
        assert drained(feed) == []


def test_who_ends_before_it_sees_a_shorter_copy_does_not_begin_anew(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    write(path, *range(3))
    with following(tmp_path) as feed:
        assert drained(feed) == [0, 1, 2]
        shutil.copyfile(path, tmp_path / "app.log.1")
        write(path, 3)
        portion = feed.read()
        assert [record["n"] for record in portion.data] == [3]
        cursor = portion.cursor(1)
    os.truncate(path, 0)
    write(path, 4)
    with following(tmp_path, cursor) as feed:
        assert drained(feed) == [4]


def test_a_copy_between_two_looks_of_less_than_was_read(tmp_path: Path) -> None:
    """Of a file that came at the last look, so that nothing was known of it then."""
    path = tmp_path / "app.log"
    write(path, 0)
    with following(tmp_path) as feed:
        assert drained(feed) == [0]
        os.truncate(path, 0)
        assert drained(feed) == []
        write(path, *range(1, 300))
        found = [record["n"] for record in feed.read().data]
        shutil.copyfile(path, tmp_path / "app.log.1")
        write(path, *range(300, 600))
        while found[-1] < 400:
            found += [record["n"] for record in feed.read().data]
        os.truncate(path, 0)
        write(path, 600)
        found += drained(feed)
        assert found[: found.index(600)] == [*range(1, found.index(600) + 1)]
        assert found[found.index(600) :] == [600]


def test_a_log_that_begins_as_the_one_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    write(path, 0, 1, 2)
    with following(tmp_path) as feed:
        assert drained(feed) == [0, 1, 2]
        os.truncate(path, 0)
        write(path, 0)
        assert drained(feed) == [0]
        path.unlink()
        write(path, 0, 3)
        assert drained(feed) == [0, 3]


@pytest.mark.parametrize("indexes", ["memory", "folder", None])
def test_a_cursor_needs_no_indexes(tmp_path: Path, indexes: str | None) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    chosen = str(tmp_path / "indexes") if indexes == "folder" else indexes
    write(logs / "app.log", 1, 2)
    with following(logs, None, chosen) as feed:
        assert drained(feed) == [1, 2]
        cursor = feed.cursor
    write(logs / "app.log", 3)
    with following(logs, cursor, chosen) as feed:
        assert drained(feed) == [3]
    with jitdb.open(logs / "app.log", "memory", progress=False) as db:
        one = db.feed(old=True)
        assert drained(one) == [1, 2, 3]
        place = one.cursor
    write(logs / "app.log", 4)
    with jitdb.open(logs / "app.log", "memory", progress=False) as db:
        assert drained(db.feed(after=place)) == [4]
        assert db.count(as_of=place) == 3


def test_what_others_keep_about_files_doubles_nothing(tmp_path: Path) -> None:
    """Others ask between, and write what they know of the new file where the follower's indexes lie."""
    path = tmp_path / "app.log"
    write(path, 0)
    with following(tmp_path) as folder, following(path) as pattern, jitdb.open(path, progress=False) as db:
        one = db.feed(old=True)
        found: list[list[int]] = [[], [], []]
        for turn in range(1, 6):
            for feed, seen in zip((folder, pattern, one), found, strict=True):
                seen += drained(feed)
            write(path, 10 * turn)
            path.rename(tmp_path / f"app.log.{turn}")
            write(path, 10 * turn + 1)
            for name in (path, tmp_path / f"app.log.{turn}"):
                with jitdb.open(name, progress=False) as other:
                    other.count(field("n") > 3)
        for feed, seen in zip((folder, pattern, one), found, strict=True):
            seen += drained(feed)
            assert sorted(seen) == [0, *sorted(10 * turn + each for turn in range(1, 6) for each in (0, 1))]


class Rotating(Stepping):
    """Rotates the file before the call of this number."""

    STEPS = ("find", "fstat", "read", "exists")

    def __init__(self, path: Path, at: int) -> None:
        self.path, self.at, self.calls = path, at, 0

    def step(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            old = self.path.rename(self.path.with_name("app.log.1"))
            write(self.path, 2)
            self.path.with_name("app.log.1.gz").write_bytes(gzip.compress(old.read_bytes()))
            old.unlink()


@pytest.mark.parametrize("where", ["", "*", "app.log"])
def test_files_that_go_at_any_moment_of_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    at, is_reached = 0, True
    while is_reached:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        path = folder / "app.log"
        write(path, 0)
        fs = Rotating(path, 0)
        with monkeypatch.context() as patched:
            patched.setattr(osfile, "fs", fs)  # files are read through what they were opened with
            with following(folder / where if where else folder) as feed:
                assert drained(feed) == [0]
                write(path, 1)
                fs.calls, fs.at = 0, at
                found = drained(feed)
                is_reached, fs.at = fs.calls >= at, 0
                found += drained(feed) + drained(feed)
        assert sorted(found) == ([1, 2] if is_reached else [1]), at
    assert at > 20


@pytest.mark.parametrize("when", [1, 5 * 10**9])
def test_a_file_that_is_no_log_is_passed_over_and_named(tmp_path: Path, when: int) -> None:
    """Also one that is of times to come, as a clock that was put back leaves them."""
    write(tmp_path / "app.log", 1)
    (tmp_path / "notes.txt").write_text("nothing for machines\n")
    os.utime(tmp_path / "notes.txt", (when, when))
    with jitdb.open_many(tmp_path, progress=False) as logs:
        with pytest.warns(LogWarning, match=r"notes\.txt: it is no log, and is passed over$"):
            feed = logs.feed(logs.query().live(old=True).question)
        assert drained(feed) == [1]
        write(tmp_path / "app.log", 2)
        assert drained(feed) == [2]


def test_text_whose_name_is_that_of_a_log_is_followed(tmp_path: Path) -> None:
    """Also where it is of no format that is known."""
    path = tmp_path / "redis.log"
    path.write_text("1:M started\n")
    with following(tmp_path) as feed:
        assert [record["text"] for portion in iter(feed.read, None) for record in portion.data] == ["1:M started"]
        with path.open("a") as file:
            file.write("1:M saved\n")
        (tmp_path / "redis.log.2").write_text("2:M other\n")
        found = [record["text"] for portion in iter(feed.read, None) for record in portion.data]
        assert sorted(found) == ["1:M saved", "2:M other"]


def test_a_place_within_the_first_records_tells_its_file(tmp_path: Path) -> None:
    """A cursor behind the first record of a file is not taken for a place in another one of equal names."""
    names = ("app.log.2", "app.log.1", "app.log")
    for number, name in enumerate(names):
        write(tmp_path / name, *range(10 * number, 10 * number + 5))
    found: list[int] = []
    cursor = None
    while len(found) < 15:
        with following(tmp_path, cursor) as feed:
            portion = feed.read()
            found.append(portion.data[0]["n"])
            cursor = portion.cursor(1)
    assert sorted(found) == sorted(10 * number + each for number in range(3) for each in range(5))


@pytest.mark.parametrize("is_named", [False, True])
def test_indexes_that_are_there_answer_for_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    """What came before is not scanned anew; what comes later is read from the file, wherever it is then."""
    monkeypatch.setattr(followed, "WINDOW", 4096)
    path = tmp_path / "app.log"
    write(path, *range(5000))
    with jitdb.open(path, progress=False) as db:
        assert db.count(field("n") >= 4000) == 1000
    begins: list[int] = []

    def window(opener: LineOpener, file: LineFile, place: str, offset: int, most: int) -> LineWindow:
        begins.append(offset)
        return real(opener, file, place, offset, most)

    real = LineOpener.window
    monkeypatch.setattr(LineOpener, "window", window)
    size = path.stat().st_size
    opened = jitdb.open(path, progress=False) if is_named else jitdb.open_many(str(tmp_path), progress=False)
    with opened as db, closing(db.feed(db.query(field("n") >= 4000).live(old=True).question)) as feed:
        assert drained(feed) == [*range(4000, 5000)]
        assert begins == [size]
        write(path, 5000, 5001)
        path.rename(tmp_path / "app.log.1")
        write(path, 5002)
        assert drained(feed) == [5000, 5001, 5002]


def test_a_copy_is_packed_while_its_original_is_truncated(tmp_path: Path) -> None:
    """Nothing but the copy's text tells that the packed one was read."""
    path, copy = tmp_path / "app.log", tmp_path / "app.log.1"
    write(path, *range(5))
    with following(tmp_path) as feed:
        assert drained(feed) == [*range(5)]
        shutil.copyfile(path, copy)
        assert drained(feed) == []
        write(path, 5, 6)
        assert drained(feed) == [5, 6]
        (tmp_path / "app.log.1.gz").write_bytes(gzip.compress(copy.read_bytes()))
        copy.unlink()
        os.truncate(path, 0)
        write(path, 7)
        assert drained(feed) == [7]
        cursor = feed.cursor
    with following(tmp_path, cursor) as feed:
        assert drained(feed) == []
        cursor = feed.cursor
    with following(tmp_path, cursor) as feed:
        assert drained(feed) == []


def test_a_file_becomes_shorter_than_what_was_read_while_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "app.log"
    write(path, *range(5))
    with following(tmp_path) as feed:
        assert drained(feed) == [*range(5)]
        cursor = feed.cursor
    write(path, 5)
    real = LineWindow.refresh

    def refresh(window: LineWindow) -> bool:
        found = real(window)
        os.truncate(path, 0)
        write(path, 6)
        monkeypatch.undo()
        return found

    with following(tmp_path, cursor) as feed:
        monkeypatch.setattr(LineWindow, "refresh", refresh)
        assert drained(feed) == [6]


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_copy_of_a_text_that_was_not_read_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_packed: bool
) -> None:
    path, copy = tmp_path / "app.log", tmp_path / "app.log.1"
    write(path, *range(3))
    shutil.copyfile(path, copy)
    with monkeypatch.context() as patched:
        patched.setattr(follower.Follower, "_portion", lambda *_: None)  # it looks at the files, and reads nothing yet
        with following(tmp_path) as feed:
            assert drained(feed) == []
            patched.undo()
            if is_packed:
                (tmp_path / "app.log.1.gz").write_bytes(gzip.compress(copy.read_bytes()))
                copy.unlink()
            os.truncate(path, 0)
            write(path, 7)
            assert sorted(drained(feed)) == [0, 1, 2, 7]


def test_a_copy_that_is_compressed_while_it_is_looked_for_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one followed name: the copy goes after the folder was listed, before the compressed one was seen whole."""
    path, copy, packed = tmp_path / "app.log", tmp_path / "app.log.1", tmp_path / "app.log.1.gz"
    write(path, 0, 1)
    listed = texts.beside

    def beside(*arguments: Any) -> list[str]:
        found = listed(*arguments)
        packed.write_bytes(gzip.compress(copy.read_bytes()))
        copy.unlink()
        monkeypatch.undo()
        return found

    with jitdb.open(path, progress=False) as db:
        feed = db.feed(db.query().live(old=True).question)
        assert drained(feed) == [0, 1]
        write(path, 2, 3)
        shutil.copyfile(path, copy)
        os.truncate(path, 0)
        write(path, 4)
        monkeypatch.setattr(texts, "beside", beside)
        found = drained(feed) + drained(feed)
        assert sorted(found) == [2, 3, 4]
        feed.close()


def test_a_log_that_begins_as_the_half_copy_of_the_one_before_it(tmp_path: Path) -> None:
    """Each begins with the same line, and that is all that the copy had when it was seen first."""
    path, copy = tmp_path / "app.log", tmp_path / "app.log-20261124"
    write(path, 0, 1, 2, 3)
    with following(tmp_path) as feed:
        assert drained(feed) == [0, 1, 2, 3]
        write(copy, 0)
        assert drained(feed) == []
        shutil.copyfile(path, copy)
        os.truncate(path, 0)
        write(path, 0, 4)
        assert drained(feed) == [0, 4]


def test_a_short_compressed_file_is_moved_to_another_folder(tmp_path: Path) -> None:
    """It is closed when it was read, and its inode tells it."""
    folders = [tmp_path / "new", tmp_path / "old"]
    for folder in folders:
        folder.mkdir()
    path = folders[0] / "app.log.1.gz"
    path.write_bytes(gzip.compress(b'{"n": 0}\n'))
    with following(tmp_path) as feed:
        assert drained(feed) == [0]
        path.rename(folders[1] / "app.log-20261124.gz")
        assert drained(feed) == []


def test_a_first_line_that_is_long_tells_its_file(tmp_path: Path) -> None:
    """A place that is within what was given before the first look back."""
    path, old = tmp_path / "app.log", tmp_path / "app.log.1"
    for each, number in ((old, 0), (path, 3)):
        each.write_text(f'{{"n": {number}, "text": "{"x" * 5000}"}}\n')
    with following(tmp_path) as feed:
        portion = feed.read()
        assert [record["n"] for record in portion.data] == [0]
        cursor = portion.cursor(1)
    write(path, 4)
    old.rename(tmp_path / "app.log.2")
    with following(tmp_path, cursor) as feed:
        assert sorted(drained(feed)) == [3, 4]


def test_files_that_begin_with_the_same_line_are_told_by_their_inodes(tmp_path: Path) -> None:
    """A place that is within what was given before the first look back holds no more than that line."""
    path, old = tmp_path / "app.log", tmp_path / "app.log-20261124"
    write(old, 0, 1, 2)
    with following(tmp_path) as feed:
        cursor = feed.read().cursor(2)
    write(path, 0, 3, 4)
    with following(tmp_path, cursor) as feed:
        assert sorted(drained(feed)) == [0, 2, 3, 4]


@pytest.mark.parametrize("name", ["app.log", "web.log"])
def test_a_new_log_has_the_inode_and_the_first_line_of_one_that_was_removed(tmp_path: Path, name: str) -> None:
    """And the place was within what was given before the first look back."""
    path = tmp_path / "app.log"
    write(path, 0, 1, 2)
    with following(tmp_path) as feed:
        cursor = feed.read().cursor(2)
    os.truncate(path, 0)
    write(path, 0, 50, 51, 52)
    path.rename(tmp_path / name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that the file that was removed is not found
        with following(tmp_path, cursor) as feed:
            assert drained(feed) == [0, 50, 51, 52]


def test_a_new_log_has_the_inode_of_a_copy_that_was_removed(tmp_path: Path) -> None:
    """Put over the copy's own file here, as no test chooses an inode."""
    path, copy = tmp_path / "app.log", tmp_path / "app.log.1"
    write(path, *range(4))
    with following(tmp_path) as feed:
        assert drained(feed) == [0, 1, 2, 3]
        shutil.copyfile(path, copy)
        assert drained(feed) == []
        other = copy.rename(tmp_path / "web.log")
        os.truncate(path, 0)
        other.write_text("".join(f'{{"n": {number}}}\n' for number in range(50, 60)))
        assert drained(feed) == [*range(50, 60)]


def test_a_look_that_fails_ends_the_question_with_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the thread that waits for news: without it, who waits would wait for ever."""

    def look(path: Path) -> Stamp | None:
        if threading.current_thread() is not threading.main_thread():
            raise ZeroDivisionError
        return stamp_at(path)

    write(tmp_path / "app.log", 0)
    with jitdb.open_many(str(tmp_path), progress=False) as logs, iter(logs.query().live(old=True)) as lines:
        assert next(lines)["n"] == 0
        monkeypatch.setattr(follower, "stamp_at", look)
        with pytest.raises(ZeroDivisionError):
            next(lines)
