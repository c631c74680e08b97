"""A last line that is whole counts, newline or not; what is known stays true when its newline comes.

Files grow byte by byte, and are asked in between: by one who has them open, by others who open them anew, by a tail.
Whatever comes where the newline was expected, answers are those of a program that reads the file as it is.
"""

from __future__ import annotations

import gzip
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from compressed_cases import small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from line_cases import is_whole, records_in
from thoroughness import tries

import jitdb
from jitdb.engine.building import scan
from jitdb.engine.database import JITDB
from jitdb.errors import JitdbWarning, LogWarning
from jitdb.log.lines import line_log
from jitdb.log.lines.files import file
from jitdb.operators import field

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of some hundred bytes is a large one."""
    small(monkeypatch)
    monkeypatch.setattr(line_log, "BLOCK", 64)
    monkeypatch.setattr(scan, "CHUNK_BYTES", 256)
    monkeypatch.setattr(file, "ENDS", 50)
    monkeypatch.setattr(file, "_LOOK", 32)


def asked(db: JITDB) -> list[Any]:
    found = db.all(sort_by="arrival")
    assert db.count() == len(found) == len(db.all(sort_by="arrival", as_offsets=True))
    for value in (0, 1):
        assert db.count(field("n") == value) == sum(isinstance(each, dict) and each.get("n") == value for each in found)
    offsets = [*db.all(sort_by="arrival", as_offsets=True)]
    assert [json.loads(raw or b"") for raw in db.log.get_many_raw(offsets)] == found
    assert not offsets or max(offsets) <= db.log.since < db.log.durable_end
    return list(found)


LINE = st.one_of(
    st.sampled_from([b'{"n": 1}', b'{"n": 0}', b'{"n": 1, "text": "' + b"x" * 90 + b'"}', b'[{"n": 1}]', b'{"a": {}}']),
    st.sampled_from([b"", b"  ", b"no JSON", b'{"n": 1} {"n": 1}', b'{"n": 1} x', b'"text"', b"12", b"}", b"\r"]),
)
END = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b" \n", b"\n\n"])
TEXT = st.lists(st.tuples(LINE, END), min_size=1, max_size=9).map(lambda lines: b"".join(map(b"".join, lines)))


@settings(max_examples=tries(12, 300), deadline=None, suppress_health_check=list(HealthCheck))
@given(TEXT, st.sampled_from(sorted(PACKERS)), st.lists(st.integers(1, 12), min_size=8, max_size=40), st.booleans())
@pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")
def test_a_file_that_grows_piece_by_piece(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, packer: str, steps: list[int], is_wide: bool
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.ndjson"
    text = b'{"n": 0}\r\n' * is_wide + text
    path.write_bytes(PACKERS[packer](b""))
    done = 0
    with jitdb.open(path, codec="json", progress=False) as db:
        for step in [*steps, 1, 1, len(text)]:
            with path.open("ab") as out:
                out.write(PACKERS[packer](text[done : done + step]))
            done = min(done + step, len(text))
            wanted = records_in(text[:done])
            db.log.refresh()
            assert asked(db) == wanted
            with jitdb.open(path, codec="json", progress=False) as other:
                assert asked(other) == wanted
                assert other.verify().ok
            if done == len(text):
                break
    with jitdb.open(path, "memory", codec="json", progress=False) as db:
        assert asked(db) == records_in(text[:done])


@pytest.mark.parametrize("packer", sorted(PACKERS))
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_nothing_is_scanned_again_when_the_newline_comes(tmp_path: Path, packer: str, end: bytes) -> None:
    path = tmp_path / "a.ndjson"
    text = b"".join(b'{"n": %d}' % number + end for number in range(50))
    path.write_bytes(PACKERS[packer](text[: -len(end)]))
    os.utime(path, (1e9, 1e9))
    with jitdb.open(path, progress=False) as db:
        assert asked(db) == records_in(text)
        before = db.log.identity, db.log.durable_end, db.log.since
        for byte in [end[at : at + 1] for at in range(len(end))]:
            with path.open("ab") as out:
                out.write(PACKERS[packer](byte))
            db.log.refresh()
            assert db.count(field("n") == 7) == 1
            assert (db.log.identity, db.log.durable_end, db.log.since) == before
        assert db.verify().ok
        with jitdb.open(path, progress=False) as other:
            assert other.explain(field("n") == 7).scan_bytes == 0
            assert asked(other) == records_in(text)
            assert other.log.identity == before[0]


@pytest.mark.parametrize("packer", sorted(PACKERS))
@pytest.mark.parametrize("after", [b' , "m": 2}\n', b"x", b" \n", b"\r\n", b'{"n": 1}\n', b'\n{"n": 1}'])
def test_what_comes_in_the_place_of_the_newline(tmp_path: Path, packer: str, after: bytes) -> None:
    """Seen by an open log, by another process, and by one that asks after an edit of the same size."""
    path = tmp_path / "a.ndjson"
    text = b'{"n": 0}\n{"n": 1}'
    path.write_bytes(PACKERS[packer](text))
    os.utime(path, (1e9, 1e9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JitdbWarning)
        with jitdb.open(path, progress=False) as db:
            assert asked(db) == [{"n": 0}, {"n": 1}]
            with path.open("ab") as out:
                out.write(PACKERS[packer](after))
            with jitdb.open(path, progress=False) as other:
                assert asked(other) == records_in(text + after)
            db.log.refresh()
            assert asked(db) == records_in(text + after)


def test_a_newline_that_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b'{"n": 0}\n{"n": 1}\n')
    with jitdb.open(path, progress=False) as db:
        assert asked(db) == [{"n": 0}, {"n": 1}]
        os.truncate(path, path.stat().st_size - 1)
        db.log.refresh()
        assert asked(db) == [{"n": 0}, {"n": 1}]
        os.truncate(path, path.stat().st_size - 1)
        db.log.refresh()
        assert asked(db) == [{"n": 0}]


FORMS: list[tuple[bytes, dict[str, Any], int]] = [
    (b'{"items": [{"n": 1}, {"n": 2}]}', {"each": "items[]"}, 2),
    (b'[{"n": 1}, {"n": 2}]', {"each": "[]"}, 2),
    (b'2026-11-01 INFO {"n": 1}', {"allow_prefix": True}, 1),
    (b'2026 {"items": [{"n": 1}]}', {"allow_prefix": True, "each": "items[]"}, 1),
    (b'{"items": [' + b'{"n": 1}, ' * 20000 + b'{"n": 2}]}', {"each": "items[]"}, 20001),  # longer than one look
    (b"\xef\xbb\xbf" + b'{"n": 1}', {}, 1),
]


@pytest.mark.parametrize("packer", sorted(PACKERS))
@pytest.mark.parametrize(("line", "form", "count"), FORMS)
@pytest.mark.filterwarnings("error::jitdb.errors.JitdbWarning")
def test_of_each_form(tmp_path: Path, line: bytes, form: dict[str, Any], count: int, packer: str) -> None:
    path = tmp_path / "events.ndjson"
    for data in (line, line + b"\n", line):
        path.write_bytes(PACKERS[packer](data))
        for _ in range(2):
            with jitdb.open(path, progress=False, **form) as db:
                assert db.count() == count
                assert path.read_bytes() == PACKERS[packer](data)


@pytest.mark.parametrize("packer", sorted(PACKERS))
def test_a_line_that_is_cut_off_is_told_once(tmp_path: Path, packer: str) -> None:
    path = tmp_path / "events.ndjson"
    path.write_bytes(PACKERS[packer](b'{"n": 1}\n{"n": 2'))
    os.utime(path, (1e9, 1e9))
    said = r"the last line is cut off: 7 bytes at offset 9 are no whole record"
    with pytest.warns(LogWarning, match=said):
        db = jitdb.open(path, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with db:
            assert db.count() == 1
            db.log.refresh()
            assert db.count() == 1
        os.utime(path)  # somebody writes it
        with jitdb.open(path, progress=False) as db:
            assert db.count() == 1


@pytest.mark.parametrize("rest", [b"", b" ", b"\r", b'{"n": 2}', b'{"n": 2} '])
@pytest.mark.filterwarnings("error::jitdb.errors.JitdbWarning")
def test_of_what_is_whole_or_nothing_no_word_is_said(tmp_path: Path, rest: bytes) -> None:
    path = tmp_path / "events.ndjson"
    path.write_bytes(b'{"n": 1}\n' + rest)
    os.utime(path, (1e9, 1e9))
    with jitdb.open(path, progress=False) as db:
        assert db.count() == 1 + is_whole(rest)


def test_text_behind_records_is_not_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b'INFO {"n": 1}\nbye')
    os.utime(path, (1e9, 1e9))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with jitdb.open(path, allow_prefix=True, progress=False) as db:
            assert db.count() == 1


# --- tails ------------------------------------------------------------------------------------------------------------


def drained(feed: Any) -> list[Any]:
    return [record for portion in iter(feed.read, None) for record in portion.data]


@settings(max_examples=tries(12, 300), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([b"\n", b"\n", b"\r\n", b" \n"])), min_size=1, max_size=8),
    st.lists(st.integers(1, 9), min_size=8, max_size=60),
    st.integers(0, 7),
)
@pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")
def test_a_tail_gives_each_record_once_and_at_once(
    tmp_path_factory: pytest.TempPathFactory, ends: list[tuple[int, bytes]], steps: list[int], again: int
) -> None:
    """Whatever ends its line; also one that goes on from a cursor."""
    path = tmp_path_factory.mktemp("lines") / "a.log"
    text = b'{"n": -1}\n' + b"".join(
        b'{"n": %d, "x": "%s"}' % (number, b"x" * (size * 20)) + end for number, (size, end) in enumerate(ends)
    )
    done, found, cursor = 10, [], None
    path.write_bytes(text[:done])
    for number, step in enumerate([*steps, 1, len(text)]):
        if number % (again + 1) == 0:
            logs = jitdb.open_many(str(path.parent), "memory", progress=False)
            feed = logs.feed(logs.query().live(old=cursor is None, after=cursor).question)
        found += drained(feed)
        with path.open("ab") as out:
            out.write(text[done : done + step])
        done = min(done + step, len(text))
        found += drained(feed)
        assert found == records_in(text[:done])
        if (number + 1) % (again + 1) == 0 or done == len(text):
            cursor = feed.cursor
            feed.close()
            logs.close()
        if done == len(text):
            break


@pytest.mark.parametrize(
    "text", [b"a=1 b=2\na=2 b=3", b"a=1 b=2", b"2026-11-20T10:00:00Z no route\n2026-11-20T10:00:01Z up"]
)
@pytest.mark.parametrize("packer", sorted(PACKERS))
@pytest.mark.filterwarnings("error::jitdb.errors.JitdbWarning")
def test_text_counts_where_nothing_more_is_expected(
    tmp_path: Path, text: bytes, packer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of text does not show: of a large file that is being written, a line counts once its newline is there."""
    path = tmp_path / "app.log"
    path.write_bytes(PACKERS[packer](text))
    with jitdb.open(path, progress=False) as db:
        assert db.count() == text.count(b"\n") + 1
    monkeypatch.setattr(file, "_SMALL", 0)
    path.write_bytes(PACKERS[packer](text))
    with jitdb.open(path, "memory", progress=False) as db:
        assert db.count() == text.count(b"\n") + (packer != "plain")
    os.utime(path, (1e9, 1e9))
    with jitdb.open(path, "memory", progress=False) as db:
        assert db.count() == text.count(b"\n") + 1
