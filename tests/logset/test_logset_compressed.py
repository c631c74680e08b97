"""Sets of logs, some of which are compressed, also while logrotate compresses one of them."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import jitdb
from jitdb.logset import logset
from jitdb.operators import field


def lines(first: int, count: int = 10) -> bytes:
    return b"".join(
        json.dumps({"n": number, "timestamp": number}).encode() + b"\n" for number in range(first, first + count)
    )


def test_mixed_kinds_are_one(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_bytes(lines(30))
    (tmp_path / "app.log.1").write_bytes(lines(20))
    (tmp_path / "app.log.2.gz").write_bytes(gzip.compress(lines(10)))
    (tmp_path / "app.log.3.zst").write_bytes(zstandard.compress(lines(0)))
    for place in (tmp_path, f"{tmp_path}/app.log*"):
        with jitdb.open_many(place, progress=False) as logs:
            assert logs.count(field("n") >= 5) == 35
            page = logs.query(field("n") >= 5).descending().page(100)
            assert [record["n"] for record in page.data] == list(range(39, 4, -1))
            name = str(tmp_path / "app.log.2.gz")
            assert logs.count(field("_path") == name) == 10


def test_an_empty_log_that_was_compressed_is_one_of_no_lines(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_bytes(lines(0))
    (tmp_path / "app.log.1.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "app.log.2.zst").write_bytes(zstandard.compress(b""))
    with jitdb.open_many(tmp_path, progress=False) as logs:
        assert logs.count() == len(list(logs.query())) == 10
    with jitdb.open(tmp_path / "app.log.1.gz") as db:
        assert db.count() == 0


def numbers(feed: Any) -> list[int]:
    return [record["n"] for portion in iter(feed.read, None) for record in portion.data]


@pytest.mark.filterwarnings("ignore:.*end of the compressed file is missing")
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize("is_seen", [True, False])
@pytest.mark.parametrize("rest", [0, 5])
def test_who_follows_reads_on_in_what_was_compressed(
    tmp_path: Path, pack: Callable[[bytes], bytes], is_seen: bool, rest: int
) -> None:
    """`rest`: lines that came before it was compressed, and were not read yet."""
    old, packed = tmp_path / "app.log", tmp_path / f"app.log.1.{'gz' if pack is gzip.compress else 'zst'}"
    old.write_bytes(lines(10))
    with jitdb.open_many(tmp_path, progress=False) as logs:
        feed = logs.feed(logs.query(field("n") >= 0).live(old=True).question)
        assert numbers(feed) == list(range(10, 20))
        if is_seen:
            old = old.rename(tmp_path / "app.log.1")
            (tmp_path / "app.log").write_bytes(lines(30))
            assert numbers(feed) == list(range(30, 40))
        with old.open("ab") as out:
            out.write(lines(20, rest))
        text = old.read_bytes()
        half = pack(text)[: -len(pack(text)) // 2]
        packed.write_bytes(half)
        old.unlink()
        (tmp_path / "app.log").touch()
        found = numbers(feed)
        packed.write_bytes(pack(text))
        assert sorted(found + numbers(feed)) == list(range(20, 20 + rest))
        with (tmp_path / "app.log").open("ab") as out:
            out.write(lines(40))
        assert numbers(feed) == list(range(40, 50))


@pytest.mark.filterwarnings("ignore:.*end of the compressed file is missing")
@pytest.mark.parametrize("looks", [(), (0,), (1,), (0, 1, 2)])
def test_several_are_compressed_between_two_looks(tmp_path: Path, looks: tuple[int, ...]) -> None:
    app = tmp_path / "app.log"
    app.touch()  # of which nobody knows yet that it will be JSON
    with jitdb.open_many(tmp_path, progress=False) as logs:
        feed = logs.feed(logs.query().live(old=True).question)
        found = numbers(feed)
        for turn in range(3):
            with app.open("ab") as out:
                out.write(lines(10 * turn, 7))
            found += numbers(feed) if turn in looks else []
            with app.open("ab") as out:
                out.write(lines(10 * turn + 7, 3))
            old = app.rename(tmp_path / f"app.log.{turn}")
            (tmp_path / f"app.log.{turn}.gz").write_bytes(gzip.compress(old.read_bytes()))
            old.unlink()
            app.touch()
        app.write_bytes(lines(30))
        for _ in range(10):
            found += numbers(feed)
    assert sorted(found) == list(range(40))


def test_lines_that_come_just_before_it_is_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind what was read: they are given by the file that is still open, or by its copy, and not by both."""
    app, find = tmp_path / "app.log", logset.find_members
    app.write_bytes(lines(10))

    def compressed_now(where: Any, **named: Any) -> Any:
        if app.exists():
            app.write_bytes(lines(10, 20))
            (tmp_path / "app.log.1.gz").write_bytes(gzip.compress(app.read_bytes()))
            app.unlink()
        return find(where, **named)

    with jitdb.open_many(tmp_path, progress=False) as logs:
        feed = logs.feed(logs.query().live(old=True).question)
        monkeypatch.setattr(logset, "find_members", compressed_now)
        found = [number for _ in range(5) for number in numbers(feed)]
    assert found == list(range(10, 30))


@pytest.mark.parametrize("is_old", [True, False])
def test_it_begins_while_one_is_compressed(tmp_path: Path, is_old: bool) -> None:
    app, packed = tmp_path / "app.log.1", tmp_path / "app.log.1.gz"
    app.write_bytes(lines(10))
    packed.write_bytes(gzip.compress(lines(10)))
    (tmp_path / "app.log.2.gz").write_bytes(gzip.compress(b""))
    with jitdb.open_many(tmp_path, progress=False) as logs:
        feed = logs.feed(logs.query().live(old=is_old).question)
        assert numbers(feed) == (list(range(10, 20)) if is_old else [])
        app.unlink()
        (tmp_path / "app.log").write_bytes(lines(20))
        assert numbers(feed) == list(range(20, 30))


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_cursor_is_of_a_text_that_was_compressed_since(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    app, packed = tmp_path / "app.log", tmp_path / f"app.log.1.{'gz' if pack is gzip.compress else 'zst'}"
    app.write_bytes(lines(10))
    with jitdb.open_many(tmp_path, progress=False) as logs:
        feed = logs.feed(logs.query().live(old=True).question)
        assert numbers(feed) == list(range(10, 20))
        cursor = feed.cursor
    packed.write_bytes(pack(app.read_bytes() + lines(20, 5)))
    app.unlink()
    app.write_bytes(lines(30))
    (tmp_path / "other.log.gz").write_bytes(gzip.compress(lines(50, 3)))
    with jitdb.open_many(tmp_path, progress=False) as logs:
        found = numbers(logs.feed(logs.query().live(after=cursor).question))
    assert sorted(found) == [*range(20, 25), *range(30, 40), *range(50, 53)]


def test_another_compressed_file_is_new(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_bytes(lines(10))
    with jitdb.open_many(tmp_path, progress=False) as logs:
        feed = logs.feed(logs.query(field("n") >= 0).live(old=True).question)
        assert numbers(feed) == list(range(10, 20))
        (tmp_path / "app.log.1.gz").write_bytes(gzip.compress(lines(10, 9) + lines(50)))
        assert numbers(feed) == [*range(10, 19), *range(50, 60)]


@pytest.mark.parametrize("named", ["app.log.1", "app.log"])
def test_logrotate_compresses_one(tmp_path: Path, named: str) -> None:
    """Whoever counts sees each line once; who follows, too."""
    old, packed = tmp_path / named, tmp_path / "app.log.2.gz"
    (tmp_path / "zapp.log").write_bytes(lines(0))
    old.write_bytes(lines(10))
    with jitdb.open_many(tmp_path, progress=False) as logs:
        assert logs.count() == 20
        found: list[int] = []
        for record in logs.query(field("n") >= 0).live(old=True):
            found.append(record["n"])
            if len(found) == 20:
                packed.write_bytes(gzip.compress(old.read_bytes()))
                old.unlink()
                with (tmp_path / "zapp.log").open("ab") as out:
                    out.write(lines(20))
            if 29 in found:
                break
        assert sorted(found) == list(range(30))
    with jitdb.open_many(tmp_path, progress=False) as logs:
        assert logs.count() == 30


def rotation(path: Path) -> Iterator[None]:
    """What logrotate does, again and again, step by step: numbers grow, and what becomes the second is compressed."""
    while True:
        numbered = {int(other.name.split(".")[2]): other for other in path.parent.glob("app.log.*") if other.is_file()}
        for number in sorted(numbered, reverse=True):
            old = numbered[number]
            old.rename(path.with_name(old.name.replace(f".{number}", f".{number + 1}")))
            yield
        path.rename(path.with_name("app.log.1"))
        yield
        path.touch()
        yield
        second = path.with_name("app.log.2")
        if second.exists():
            packed, text = path.with_name("app.log.2.gz"), gzip.compress(second.read_bytes())
            for end in (len(text) // 2, len(text)):
                packed.write_bytes(text[:end])
                yield
            second.unlink()
            yield


@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
@settings(max_examples=100)
@given(
    steps=st.lists(st.one_of(st.sampled_from(["write", "read"]), st.integers(1, 9)), min_size=4, max_size=20),
    where=st.sampled_from(["", "*", "app.log*"]),
)
def test_lines_come_once_at_whichever_step_of_a_rotation_it_is_looked(steps: list[str | int], where: str) -> None:
    """Steps: of the rotation, so many."""
    written, found = 0, []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        path, rotated = Path(folder, "app.log"), rotation(Path(folder, "app.log"))
        path.touch()
        logs = held.enter_context(jitdb.open_many(str(Path(folder, where)), progress=False))
        feed = logs.feed(logs.query().live(old=True).question)
        for step in steps:
            if step == "read":
                found += numbers(feed)
            elif step == "write" and path.exists():
                with path.open("ab") as out:
                    out.write(lines(written, 2))
                written += 2
            elif isinstance(step, int):
                for _ in range(step):
                    next(rotated)
        for _ in range(3):
            found += numbers(feed)
        feed.close()
    assert sorted(found) == [*range(written)]
