"""Zero bytes, as a loss of power leaves them in a file, or a copy with truncation: lines of JSON that have them are
lost, lines of text are read behind them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import jitdb
from jitdb.errors import LogWarning, NotALog
from jitdb.log.codecs import CODECS
from jitdb.log.lines.detection import form_of
from jitdb.log.log import Log
from jitdb.operators import field

JSON = b'{"n": %d, "level": "error"}\n'


@pytest.mark.parametrize("zeros", [b"\0", b'{"n": "\0"}\n', b"\0" * 5000 + b'{"n": 7}\n', b"\0" * 40 + b"\n"])
@pytest.mark.parametrize("count", [1, 64, 200])
def test_the_other_lines_of_json_are_records(tmp_path: Path, zeros: bytes, count: int) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"".join(JSON % number for number in range(count)) + zeros + b"\n" + JSON % count)
    with jitdb.open(path) as db, pytest.warns(LogWarning, match="1 line cannot be read as JSON"):
        assert [record["n"] for record in db.query().sort_by_arrival().all()] == [*range(count + 1)]


def test_zeros_at_the_beginning(tmp_path: Path) -> None:
    """A copy with truncation leaves them, where the program does not append."""
    path = tmp_path / "a.log"
    path.write_bytes(b"\0" * 3000 + JSON % 1 + JSON % 2)
    with jitdb.open(path) as db, pytest.warns(LogWarning, match="1 line cannot be read as JSON"):
        assert db.count(field("n") > 0) == 1


LINES = pytest.mark.parametrize(
    "line",
    [b"level=error n=1", b"2026-11-20T14:03:11Z ERROR boom", b"Nov 20 14:03:11 h sshd[1]: [error] no",
     b"I1120 14:03:11.123456       1 a.go:138] x: Failed", b"a:1\tlevel:error",
     b'203.0.113.9 - - [20/Nov/2026:14:03:11 +0000] "GET / HTTP/1.1" 500 7',
     b"2026-11-20T14:03:11Z stderr F error: no"],
)  # fmt: skip


@LINES
@pytest.mark.parametrize("before", [0, 1, 70])
def test_text_behind_zeros_is_a_record(tmp_path: Path, line: bytes, before: int) -> None:
    (tmp_path / "a.log").write_bytes((line + b"\n") * before + b"\0" * 5000 + (line + b"\n") * 2)
    (tmp_path / "b.log").write_bytes((line + b"\n") * (before + 2))
    with jitdb.open(tmp_path / "a.log") as db, jitdb.open(tmp_path / "b.log") as plain:
        assert db.query().sort_by_arrival().all() == plain.query().sort_by_arrival().all()
        assert db.count("level >= 'error'") == plain.count("level >= 'error'")


@LINES
def test_the_other_lines_of_text_are_records(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "a.log"
    path.write_bytes((line + b"\n") * 5 + b"\0\0\0\n" + (line + b"\n") * 5)
    with jitdb.open(path) as db:
        assert db.count() == 10


def test_logs_of_jitdbs_are_none_of_lines(tmp_path: Path) -> None:
    """Whatever the length of their first record is, also where its bytes are those of letters."""
    for codec in CODECS:
        for size in (0x22 - 12, 0x7B - 12, 0x0A7B - 12, 0x227B - 12, 0x3032):
            path = tmp_path / f"{codec}-{size}.log"
            value = {"text": "x" * size} if codec != "raw" else b'"a": 1}\n' + b"x" * size
            with Log(path, codec=codec) as log:
                log.append_many([value] * 3)
            assert form_of(path.read_bytes()[: 1 << 16]) is None


@pytest.mark.parametrize(
    "head", [b'\0{"n": 1}\n', b"\0" * 99, b'{"n": 1\0}\n{"n": 2}\n', b"no format\n\0\n", b'{"n"\0']
)
def test_a_first_line_with_zeros_or_of_no_format_tells_nothing(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(head)
    with pytest.raises(NotALog):
        jitdb.open(path, read_only=True)


@pytest.mark.filterwarnings("ignore::jitdb.errors.MalformedWarning")
def test_files_with_zeros_in_a_folder(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number}.log").write_bytes(JSON % 1 + b"\0\n" + JSON % 2)
    with jitdb.open_many(tmp_path, progress=False) as logs:
        for _ in range(2):
            assert logs.count(field("n") > 0) == 24
