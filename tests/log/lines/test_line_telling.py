"""What is JSON Lines, what is a log of jitdb's, and what is said of a file that is neither."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import threading
import traceback
import warnings
from pathlib import Path

import pytest

import jitdb
from jitdb import Log
from jitdb.errors import NotALog
from jitdb.log.lines.detection import HEAD, is_lines, looks_like_lines

EVENT = b'{"level": "error", "n": 1}\n'


def test_of_a_file_that_is_being_written_nothing_is_said(tmp_path: Path) -> None:
    """A writer that flushes before each newline, and in the middle of lines: most of what is found has none yet."""
    path, ended = tmp_path / "events.ndjson", threading.Event()
    path.write_bytes(EVENT)

    def write() -> None:
        with path.open("ab", buffering=0) as file:
            while not ended.is_set():
                file.write(EVENT[:9])
                ended.wait(0.01)
                file.write(EVENT[9:].rstrip())
                ended.wait(0.01)
                file.write(b"\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(10):
                with jitdb.open(path, "memory", progress=False) as db:
                    assert db.count() > 0
    finally:
        ended.set()
        writer.join()


@pytest.mark.parametrize("rest", [b"", b"  ", b"{", EVENT[:-3], b"12", b"nothing }"])
def test_a_last_line_that_is_not_there_yet(tmp_path: Path, rest: bytes) -> None:
    path = tmp_path / "events.ndjson"
    path.write_bytes(EVENT + rest)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with jitdb.open(path, "memory", progress=False) as db:
            assert db.count() == 1


@pytest.mark.parametrize(
    "data",
    [
        EVENT,
        b"\n\n" + EVENT,
        b"\xef\xbb\xbf" + EVENT,
        b"# a comment\n" + EVENT,
        EVENT.rstrip(),
        b'{"text": "' + b"x" * 2 * HEAD + b'"}\n',
        b'{"text": "' + "\u20ac".encode() * HEAD + b'"}\n',
        b"{}\n",
        b' {"a": 1}\r\n',
        b'{"a": [1, 2], "b": {"c": null}}\n[1]\n3\n',
    ],
)
def test_json_lines(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any.name"
    path.write_bytes(data)
    assert is_lines(path)
    with jitdb.open(path, "memory", progress=False) as db:
        assert db.log.codec.name == "json"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (bz2.compress(EVENT), "bunzip2"),
        (lzma.compress(EVENT), "unxz"),
        (gzip.compress(EVENT, mtime=0)[:-9] + bytes(9), "the gzip member behind byte 0 is damaged"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 40, "the zstd frame at byte 0"),
        (EVENT.decode().encode("utf-16"), "iconv -f UTF-16"),
        (EVENT.decode().encode("utf-16-le"), "iconv -f UTF-16LE"),
        ("2026-11-20 up\n".encode("utf-16-le"), "iconv -f UTF-16LE"),
        ("2026-11-20 up\n".encode("utf-16-be"), "iconv -f UTF-16BE"),
        (b'{"name": "Ren\xe9"}\n', "LATIN1"),
        (b"[1, 2]\n", r"each='\[\]'"),
        (b'{\n  "a": 1\n}\n', r"jq -c \."),
        (b'{\n    "message" => "up",\n  "@timestamp" => 2026-11-28T10:00:00.000Z\n}\n', "codec => json_lines"),
    ],
)
def test_what_else_is_said_to_be_what_it_is(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(data)
    with pytest.raises(NotALog, match=said):
        jitdb.open(path, progress=False)
    assert [each.name for each in tmp_path.iterdir()] == ["a.ndjson"]


@pytest.mark.parametrize("codec", ["msgpack", "bipf", "json", "raw"])
@pytest.mark.parametrize("block_size", [64, 4096, 65536, 1 << 20])
def test_a_log_of_ours_is_none(tmp_path: Path, codec: str, block_size: int) -> None:
    """Whatever is in its records, and without the folder beside it: it has a zero byte soon."""
    path = tmp_path / "a.ndjson"
    texts = [EVENT.strip(), b"\n" + EVENT, b"{" * 30]
    with Log(path, codec=codec, block_size=block_size) as log:
        for number in range(400):
            log.append(texts[number % 3] if codec == "raw" else {"level": "error", "n": number})
    assert not is_lines(path)
    assert not looks_like_lines(path.read_bytes()[:HEAD])


def test_the_length_of_a_record_may_look_like_an_object(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with Log(path, codec="raw", block_size=65536) as log:
        log.append(b'a": 1}\n'.ljust(int.from_bytes(b'{"', "little"), b"x"))
    assert path.read_bytes().startswith(b'{"a": 1}\n')
    assert not is_lines(path)


def test_an_empty_file_is_what_its_name_says(tmp_path: Path) -> None:
    for name, expected in (("a.ndjson", True), ("a.jsonl", True), ("a.log", False)):
        (tmp_path / name).touch()
        assert is_lines(tmp_path / name) is expected
    with jitdb.open(tmp_path / "a.ndjson", progress=False) as db:
        assert db.count() == 0
        (tmp_path / "a.ndjson").write_bytes(EVENT)
        db.log.refresh()
        assert db.count() == 1


def test_who_says_that_it_is_json_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(b"1\n[2]\n" + json.dumps("three").encode() + b"\n")
    with jitdb.open(path, codec="json", progress=False) as db:
        assert db.all(sort_by="arrival") == [1, [2], "three"]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotALog, match="folder"):
        jitdb.open(tmp_path, progress=False)


def test_a_folder_is_never_called_a_thing_to_remove(tmp_path: Path) -> None:
    with pytest.raises(NotALog, match=r"it is a folder, not a log; jitdb\.open_many\(\) takes") as told:
        jitdb.open(tmp_path)
    assert "NotAFile" not in "".join(traceback.format_exception(told.value))
