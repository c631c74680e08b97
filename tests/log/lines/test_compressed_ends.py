"""Where the lines of a compressed file end: no answer rests on what the file says of its size before it was read.

Each way of asking is tried first on a file that nobody has asked before, and held against Python's own gzip.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zstandard
from compressed_cases import lines, one_frame, one_member
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from line_cases import lines_in

import jitdb
from jitdb import JITDB
from jitdb.errors import LogCorrupt
from jitdb.log.lines.files.gzip_file import GzipRun
from jitdb.operators import field

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")

_PAD = "x" * 300  # so that a member says a size that the file may have


def padded(count: int, first: int = 0) -> bytes:
    return b"".join(json.dumps({"n": n, "pad": _PAD}).encode() + b"\n" for n in range(first, first + count))


def whole_lines(text: bytes) -> list[bytes]:
    return [line + b"\n" for line in lines_in(text)]


def numbers(found: Any) -> list[int]:
    return [record["n"] for record in found]


# Each asks a log in one way, and says what of it a file with these whole lines must give.
ASKED: dict[str, tuple[Callable[[JITDB], object], Callable[[list[bytes]], object]]] = {
    "count": (lambda db: db.count(), len),
    "count of some": (
        lambda db: db.count(field("n") >= 3),
        lambda them: sum(json.loads(line)["n"] >= 3 for line in them),
    ),
    "records": (lambda db: numbers(db.all(sort_by="arrival")), lambda them: numbers(map(json.loads, them))),
    "newest": (
        lambda db: numbers(db.query(field("n") >= 0).sort_by("arrival").descending().page(2).data),
        lambda them: numbers(map(json.loads, them))[:-3:-1],
    ),
    "end": (lambda db: db.log.durable_end, lambda them: len(b"".join(them))),
    "since": (lambda db: db.log.since, lambda them: len(b"".join(them[:-1])) if them else -1),
    "stream": (
        lambda db: numbers(record.value for record in db.log.stream()),
        lambda them: numbers(map(json.loads, them)),
    ),
    "stats": (lambda db: db.log.stats().records, len),
    "counted": (lambda db: db.log.counted().malformed, lambda them: []),
    "last line": (
        lambda db: db.log.get_many_raw([db.log.since])[0] if db.log.since >= 0 else None,
        lambda them: them[-1][:-1] if them else None,
    ),
    "sample": (lambda db: len(list(db.sample(10_000))), len),
}  # fmt: skip


def ask(path: Path, way: str) -> object:
    """One way of asking a file that nobody has asked before."""
    with jitdb.open(path, "memory", progress=False) as db:
        return ASKED[way][0](db)


def expected(text: bytes, way: str) -> object:
    return ASKED[way][1](whole_lines(text))


@pytest.mark.parametrize("way", ASKED)
@pytest.mark.parametrize("compressed", [one_member, one_frame], ids=lambda kind: kind.__name__)
def test_several_members(tmp_path: Path, compressed: Callable[[bytes], bytes], way: str) -> None:
    """As `gzip -c >>` makes them. The last one says how long its own text is."""
    path = tmp_path / "a.ndjson.gz"
    path.write_bytes(b"".join(compressed(padded(10, first)) for first in range(0, 40, 10)))
    assert ask(path, way) == expected(padded(40), way)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.integers(0, 400), max_size=8), st.sampled_from([b"", bytes(3), bytes(700)]), st.booleans(),
    st.sampled_from(sorted(ASKED)), st.sampled_from(["gzip", "zstd", "unsized"]),
)  # fmt: skip
def test_random_members(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], padding: bytes, is_ended: bool, way: str, kind: str
) -> None:
    """Lines cut into members anywhere, some of them empty, maybe with zeros behind each, or no newline at the end."""
    path = tmp_path_factory.mktemp("ends") / "a.any"
    text = padded(12) if is_ended else padded(12)[:-1]
    places = [0, *sorted(cut * len(text) // 400 for cut in cuts), len(text)]
    parts = [text[begin:stop] for begin, stop in pairwise(places)]
    if kind == "gzip":
        path.write_bytes(b"".join(one_member(part) + padding for part in parts))
        with gzip.open(path) as file:
            text = file.read()
    else:
        packer = zstandard.ZstdCompressor(write_content_size=kind == "zstd")
        path.write_bytes(b"".join(packer.compress(part) for part in parts))
    assert ask(path, way) == expected(text, way)


@pytest.mark.parametrize("way", sorted(ASKED.keys() - {"sample"}))
def test_a_last_member_that_is_cut_off(tmp_path: Path, way: str) -> None:
    """Where its last four bytes say a size that the file might well have."""
    path, data = tmp_path / "a.ndjson.gz", one_member(lines(4000))
    likely = (
        size for size in range(1000, len(data)) if size < int.from_bytes(data[size - 4 : size], "little") < 9 * size
    )
    path.write_bytes(data[: next(likely)])
    assert ask(path, way) == expected(zlib.decompressobj(31).decompress(path.read_bytes()), way)


@pytest.mark.parametrize("way", ["count", "since", "stats", "stream", "sample"])
def test_something_else_behind_it(tmp_path: Path, way: str) -> None:
    path = tmp_path / "a.ndjson.gz"
    path.write_bytes(one_member(padded(10)) + b"garbage" + (2000).to_bytes(4, "little"))
    with pytest.raises(LogCorrupt):
        ask(path, way)


@pytest.mark.parametrize("way", ["count", "since", "stats", "stream", "sample", "last line"])
@pytest.mark.parametrize("ratio", [3, 20, 60, 500])
def test_one_long_line(tmp_path: Path, way: str, ratio: int) -> None:
    """Whose text is so many times as long as it is compressed, about; without and with another line behind it."""
    path = tmp_path / "a.ndjson.gz"
    for behind in (b"", b'{"n": 1', b'{"n": 1}\n'):
        text = json.dumps({"n": 0, "pad": "y" * (30 * ratio)}).encode() + b"\n" + behind
        path.write_bytes(one_member(text))
        assert ask(path, way) == expected(text, way)


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "in memory"])
def test_only_what_comes_is_new(tmp_path: Path, is_kept: bool) -> None:
    """To a live question, and to a cursor that somebody else goes on with."""
    path = tmp_path / "a.ndjson.gz"
    path.write_bytes(b"".join(one_member(padded(10, first)) for first in range(0, 40, 10)))
    with jitdb.open(path, None if is_kept else "memory", progress=False) as db:
        feed = db.feed()
        assert feed.read() is None
        cursor, name = feed.cursor, db.log.identity
        for first in (40, 41, 90):
            with path.open("ab") as out:
                out.write(one_member(padded(1 if first == 40 else 49, first)))
            db.log.refresh()
            portion = feed.read()
            assert portion is not None
            assert numbers(portion.data)[0] == first
        assert db.log.identity == name
    if is_kept:
        with jitdb.open(path, progress=False) as db:
            assert db.log.identity == name
            assert numbers(db.feed(after=cursor).read().data) == list(range(40, 139))


def test_a_member_that_grows_while_it_is_asked(tmp_path: Path) -> None:
    """One log that is open, and one opened anew, see the lines that can be decompressed by then, and lose none."""
    path = tmp_path / "a.ndjson.gz"
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    path.write_bytes(packer.compress(padded(10)) + packer.flush(zlib.Z_SYNC_FLUSH))
    with jitdb.open(path, progress=False) as db:
        for first in range(10, 60, 10):
            for way in ("since", "count", "end"):
                assert ASKED[way][0](db) == expected(padded(first), way)
                assert ask(path, way) == expected(padded(first), way)
            with path.open("ab") as out:
                out.write(packer.compress(padded(10, first)) + packer.flush(zlib.Z_SYNC_FLUSH))
            db.log.refresh()


def test_logs_as_one(tmp_path: Path) -> None:
    for name in "abc":
        data = b"".join(one_member(padded(10, first)) for first in range(0, 40, 10))
        (tmp_path / f"{name}.ndjson.gz").write_bytes(data)
    with jitdb.open_many(str(tmp_path / "*.gz"), progress=False) as many:
        assert many.count() == 120
        assert many.count(field("n") == 39) == 3
        assert len(list(many.all())) == 120


def test_what_was_found_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first count decompresses a file of one member once, and a later process nothing but its beginning."""
    done = []
    read = GzipRun.read

    def counting(self: GzipRun, most: int) -> bytes:
        text = read(self, most)
        done.append(len(text))
        return text

    monkeypatch.setattr(GzipRun, "read", counting)
    path, text = tmp_path / "a.ndjson.gz", lines(160_000)
    path.write_bytes(gzip.compress(text, 1))
    for most in (len(text), 0):
        done.clear()
        with jitdb.open(path, progress=False) as db:
            assert db.count(field("n") >= 30_000) == 130_000
            assert db.log.since == len(text) - len(text.splitlines()[-1]) - 1
        assert sum(done) <= most + 200_000  # what a look at its head takes
