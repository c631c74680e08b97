"""Compressed files that grow, are replaced, cut off or edited while somebody asks them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from compressed_cases import frames_of_lines, lines, members, one_frame, one_member, small, unsized_frame

import jitdb
from jitdb.engine.database import JITDB
from jitdb.errors import JitdbWarning, LogWarning
from jitdb.log.lines import line_log
from jitdb.operators import field

Kind = Callable[[bytes], bytes]
GROWING = [one_member, members, one_frame, unsized_frame, frames_of_lines]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    monkeypatch.setattr(line_log, "BLOCK", 1 << 10)


def told(db: JITDB) -> list[int]:
    db.log.refresh()
    found = [record["n"] for record in db.all(sort_by="arrival")]
    assert db.count() == len(found)
    return found


@pytest.mark.parametrize("kind", GROWING, ids=lambda kind: kind.__name__)
def test_what_is_appended_is_seen(tmp_path: Path, kind: Kind) -> None:
    """By an open log, and by one that finds the indexes of before."""
    path = tmp_path / "a.ndjson"
    path.write_bytes(kind(lines(700)))
    with jitdb.open(path, progress=False) as db:
        assert told(db) == list(range(700))
        name = db.log.identity
        for first in (700, 1400, 1401):
            with path.open("ab") as out:
                out.write(kind(lines(1 if first == 1400 else 700, first)))
            expected = list(range(first + (1 if first == 1400 else 700)))
            assert told(db) == expected
            assert db.log.identity == name
            with jitdb.open(path, progress=False) as other:
                assert told(other) == expected
                assert other.log.identity == name


@pytest.mark.filterwarnings("error::jitdb.errors.LogWarning")
def test_a_member_that_is_being_written(tmp_path: Path) -> None:
    """Its lines are there once they can be decompressed; it is told once that it goes on."""
    path = tmp_path / "a.gz"
    path.write_bytes(one_member(lines(500)))
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    with path.open("ab", buffering=0) as out:
        out.write(packer.compress(lines(600, 500)) + packer.flush(zlib.Z_SYNC_FLUSH))
        with pytest.warns(LogWarning, match="end of the compressed file is missing"):
            db = jitdb.open(path, progress=False)
        with db:
            assert told(db) == list(range(1100))
            out.write(packer.compress(lines(600, 1100)) + packer.flush(zlib.Z_SYNC_FLUSH))
            assert told(db) == list(range(1700))
            out.write(packer.compress(lines(3, 1700)) + packer.flush())
            assert told(db) == list(range(1703))
            out.write(one_member(lines(2, 1703)))
            assert told(db) == list(range(1705))


@pytest.mark.parametrize("kind", [one_member, members, one_frame, frames_of_lines], ids=lambda kind: kind.__name__)
def test_a_file_without_its_end_is_told_by_each_process(tmp_path: Path, kind: Kind) -> None:
    """Also where it was written to a moment ago: that may be a copy which was cut off."""
    path = tmp_path / "a.ndjson"
    data = kind(lines(900)) + kind(lines(900, 900))
    path.write_bytes(data[: len(data) * 3 // 4])
    for is_fresh in (True, True, False, False, True):
        os.utime(path, None if is_fresh else (10**9, 10**9))
        is_told = pytest.warns(LogWarning, match="end of the compressed file is missing")
        with is_told as found, jitdb.open(path, progress=False) as db:
            assert told(db) == list(range(db.count()))
        assert len(found) == 1
        with is_told as found, jitdb.open_many(tmp_path, progress=False) as logs:
            assert logs.count() == logs.count()
        assert len(found) == 1
    path.write_bytes(kind(lines(900)))
    os.utime(path, (10**9, 10**9))
    for _ in range(2):
        with jitdb.open(path, progress=False) as db:
            assert db.count() == 900


@pytest.mark.parametrize("kind", [one_member, members, one_frame, frames_of_lines], ids=lambda kind: kind.__name__)
def test_a_file_cut_off_anywhere(tmp_path: Path, kind: Kind) -> None:
    """Has the lines that can be decompressed, or is none; with its rest it has all."""
    text = lines(60)
    data = kind(text)
    begin = b"\x28\xb5\x2f\xfd" if data.startswith(b"\x28") else b"\x1f\x8b\x08"
    ends = {at for at in range(len(data)) if data.startswith(begin, at)}
    path = tmp_path / "a.ndjson"
    for size in range(5, len(data), max(1, len(data) // 37)):
        path.write_bytes(data[:size])
        os.utime(path, ns=(10**18, 10**18))
        is_told = pytest.warns(JitdbWarning, match="end of the compressed file is missing")
        with nullcontext() if size in ends else is_told, jitdb.open(path, "memory", progress=False) as db:
            found = told(db)
            assert found == list(range(len(found)))
            path.write_bytes(data)
            assert told(db) == list(range(60))


@pytest.mark.parametrize("kind", [one_member, one_frame, frames_of_lines], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("renamed", [True, False])
def test_another_file_of_its_name(tmp_path: Path, kind: Kind, renamed: bool) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(kind(lines(900)))
    with jitdb.open(path, progress=False) as db:
        assert told(db) == list(range(900))
        name = db.log.identity
        if renamed:
            (tmp_path / "next").write_bytes(kind(lines(800, 100)))
            (tmp_path / "next").rename(path)
        else:
            path.write_bytes(kind(lines(800, 100)))
        assert told(db) == list(range(100, 900))
        assert db.log.identity != name
        with jitdb.open(path, progress=False) as other:
            assert told(other) == list(range(100, 900))
            assert other.count(field("n") < 100) == 0


def test_an_edit_in_place_is_noticed(tmp_path: Path) -> None:
    """Of frames: the same size, other text in the middle."""
    text = lines(900)
    other = text.replace(b'"n": 450', b'"n": 999')
    path = tmp_path / "a.ndjson"
    one, two = (b"".join(_raw_frame(line) for line in each.splitlines(keepends=True)) for each in (text, other))
    assert len(one) == len(two)
    path.write_bytes(one)
    os.utime(path, ns=(10**18, 10**18))
    with jitdb.open(path, progress=False) as db:
        assert db.count(field("n") == 450) == 1
        with path.open("r+b") as out:
            out.write(two)
        db.log.refresh()
        assert (db.count(field("n") == 450), db.count(field("n") == 999)) == (0, 1)


def _raw_frame(line: bytes) -> bytes:
    """A frame that holds its text as it is."""
    block = (len(line) << 3 | 1).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd\xa0" + len(line).to_bytes(4, "little") + block + line


def test_rotation_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(one_member(lines(20)))
    with jitdb.open(path, progress=False) as db:
        found: list[int] = []
        for record in db.query(field("n") >= 0).live(old=True):
            found.append(record["n"])
            if len(found) == 20:
                with path.open("ab") as out:
                    out.write(one_member(lines(10, 20)))
                path.rename(tmp_path / "a.1.gz")
                path.write_bytes(one_member(lines(10, 30)))
            if len(found) == 40:
                break
        assert found == list(range(40))


def test_an_empty_file_may_become_one(tmp_path: Path) -> None:
    for name, kind in (("a.ndjson.gz", one_member), ("b.ndjson.zst", one_frame)):
        path = tmp_path / name
        path.touch()
        with jitdb.open(path, progress=False) as db:
            assert told(db) == []
            path.write_bytes(kind(lines(3)))
            assert told(db) == [0, 1, 2]
