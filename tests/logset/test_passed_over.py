"""A neighbour that is no log, or cannot be read, has no records: it is named, and the others are asked."""

from __future__ import annotations

import gzip
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.errors import LogWarning, NotALog
from jitdb.operators import field


def lines(*numbers: int) -> bytes:
    return b"".join(b'{"n": %d, "time": %d}\n' % (number, 1_700_000_000 + number) for number in numbers)


def damaged(data: bytes) -> bytes:
    packed = bytearray(gzip.compress(data, mtime=0))
    packed[-6] ^= 255
    return bytes(packed)


ODD: dict[str, Callable[[Path], object]] = {
    "README.md": lambda path: path.write_text("# What is here\n\nLogs.\n"),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 9),
    "array.json": lambda path: path.write_text("[1, 2]\n"),
    "dangling.log": lambda path: path.symlink_to("nowhere"),
    "damaged.gz": lambda path: path.write_bytes(damaged(lines(*range(1000, 1400)))),
    "noise.gz": lambda path: path.write_bytes(gzip.compress(b"x")[:10] + b"noise" * 9),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(["a.log", "m.log", "z.log"]):
        (tmp_path / name).write_bytes(lines(*range(10 * number, 10 * number + 10)))
    return tmp_path


@pytest.mark.parametrize("odd", [[name] for name in ODD] + [list(ODD)])
@pytest.mark.parametrize("place", ["", "*"])
def test_the_others_are_asked(folder: Path, odd: list[str], place: str) -> None:
    for name in odd:
        ODD[name](folder / name)
    expected = [json.loads(line) for path in sorted(folder.glob("?.log")) for line in path.read_text().splitlines()]
    asked: list[Callable[[Any], Any]] = [
        lambda logs: logs.count(),
        lambda logs: logs.count(field("n") > 14),
        lambda logs: logs.all(field("n") > 14),
        lambda logs: logs.value_counts("n").as_dict() == {record["n"]: 1 for record in expected},
        lambda logs: len(logs.query(field("n") > 14).to_arrow("n")),
    ]
    wanted = [30, 15, expected[15:], True, 15]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for ask, answer in zip(asked, wanted, strict=True):
            with jitdb.open_many(folder / place, "memory", progress=False) as logs:
                for _ in range(2):
                    assert ask(logs) == answer
                logs.refresh()
                assert ask(logs) == answer
    said = [str(each.message) for each in told if "passed over" in str(each.message)]
    assert len(said) <= len(asked)
    named = [name for name in odd if not (place and name == "dangling.log")]  # a pattern does not match it
    assert all(name in said[0] for name in named)
    assert bool(said) == bool(named)


def test_what_was_named_is_an_error(folder: Path) -> None:
    ODD["binary"](folder / "binary")
    with (
        jitdb.open_many([folder / "a.log", folder / "binary"], "memory", progress=False) as logs,
        pytest.raises(NotALog),
    ):
        logs.count()


def test_text_that_was_named_has_a_record_a_line(folder: Path) -> None:
    ODD["README.md"](folder / "README.md")
    with jitdb.open_many([folder / "a.log", folder / "README.md"], "memory", progress=False) as logs:
        assert logs.count(field("text") == "Logs.") == 1


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    """Also where they lead to a folder above them, or two of them to the same one."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "below").mkdir(parents=True)
    (outside / "deep").mkdir(parents=True)
    (inside / "a.log").write_bytes(lines(1))
    (inside / "below" / "b.log").write_bytes(lines(2))
    (outside / "c.log").write_bytes(lines(3))
    (outside / "deep" / "d.log").write_bytes(lines(4))
    links = {"one": outside, "two": outside, "up": tmp_path, "below/again": inside, "sub": inside / "below"}
    for link, to in links.items():
        (inside / link).symlink_to(to)
    (outside / "back").symlink_to(inside)
    with jitdb.open_many(inside, "memory", progress=False) as logs:
        assert sorted(record["n"] for record in logs.all()) == [1, 2, 3, 4]


TEXT = b"worker 1, 20 Nov: DB saved\n[   3.0] usb 1-1: new\n\n# Time: x\n"


@pytest.mark.parametrize(
    "name",
    ["redis.log", "redis.log.1", "app.log-20261120", "app.log.2026-11-20", "catalina.out", "access_log", "dmesg",
     "syslog.2", "messages-20261120", "localhost_access_log.2026-11-20.txt", "2026-11-20-13-00-00-ABC0",
     "Service.LOG", "kern.log.3.gz"],
)  # fmt: skip
@pytest.mark.parametrize("place", ["", "*"])
def test_text_whose_name_is_that_of_a_log_is_one(folder: Path, name: str, place: str) -> None:
    (folder / name).write_bytes(gzip.compress(TEXT) if name.endswith(".gz") else TEXT)
    with jitdb.open_many(folder / place, "memory", progress=False) as logs:
        assert logs.count(field("text").contains("DB saved")) == 1
        assert logs.count() == 33


@pytest.mark.parametrize("name", ["README.md", "notes.txt", "app.conf", "changelog", "blog.html", "x.login"])
def test_other_text_is_passed_over(folder: Path, name: str) -> None:
    (folder / name).write_bytes(TEXT)
    with (
        jitdb.open_many(folder, "memory", progress=False) as logs,
        pytest.warns(LogWarning, match=f"1 file is no log.*{name}"),
    ):
        assert logs.count() == 30
    with jitdb.open_many(folder, "memory", progress=False, format="plain") as logs:
        assert logs.count(field("text").contains("DB saved")) == 1


def test_what_is_no_text_is_passed_over_whatever_its_name(folder: Path) -> None:
    (folder / "odd.log").write_bytes(TEXT + b"\1\2\3")
    (folder / "utf16.log").write_bytes(TEXT.decode().encode("utf-16"))
    with (
        jitdb.open_many(folder, "memory", progress=False) as logs,
        pytest.warns(LogWarning, match="2 files are no logs"),
    ):
        assert logs.count() == 30


def test_where_nothing_can_be_read_it_is_an_error(tmp_path: Path) -> None:
    for name in ("README.md", "array.json"):
        ODD[name](tmp_path / name)
    with jitdb.open_many(tmp_path, "memory", progress=False) as logs, pytest.raises(NotALog):
        logs.count()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all files")
def test_a_file_that_may_not_be_read(folder: Path) -> None:
    (folder / "m.log").chmod(0)
    with jitdb.open_many(folder, "memory", progress=False) as logs, pytest.warns(LogWarning, match=r"log \(.*denied"):
        assert logs.count() == 20


def test_what_becomes_a_log_is_asked_after_the_next_look(folder: Path) -> None:
    (folder / "new.log").write_text("what?\0\n")
    with jitdb.open_many(folder, "memory", progress=False) as logs:
        with pytest.warns(LogWarning, match="1 file is no log"):
            assert logs.count() == 30
        (folder / "new.log").write_bytes(lines(50))
        logs.refresh()
        assert logs.count() == 31


def test_a_sample_passes_over_what_only_a_look_at_records_shows(folder: Path) -> None:
    """Rows of CSV that go on in the next line are found when they are read."""
    (folder / "q.csv").write_text('time,n\n2026-11-28T08:00:00Z,"1\n2"\n2026-11-28T08:00:01Z,3\n')
    asked: list[Callable[[Any], Any]] = [lambda logs: logs.fields(), lambda logs: logs.sample(10)]
    for ask in asked:
        with jitdb.open_many(folder, "memory", progress=False) as logs:
            with pytest.warns(LogWarning, match=r"passed over: .*q\.csv"):
                assert ask(logs)
            assert logs.count() == 30
            assert {each.path for each in logs.fields()} == {("n",), ("time",)}
    with jitdb.open_many(folder / "*.csv", "memory", progress=False) as logs, pytest.raises(NotALog):
        logs.fields()
