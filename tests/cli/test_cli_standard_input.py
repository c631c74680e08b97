"""Standard input in place of a log; and exit codes as grep has them."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import environment, said

from jitdb.cli.failures import Failure
from jitdb.cli.input import standard_input

RECORDS = [{"n": number, "level": "error" if number % 3 == 0 else "info"} for number in range(1000)]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()


def asked(folder: Path, data: bytes, *arguments: str, **variables: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "jitdb", *arguments], cwd=folder, input=data, capture_output=True, timeout=120,
        env={**environment(), "TMPDIR": str(folder / "temporary"), **variables},
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "temporary").mkdir()
    return tmp_path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_each_kind_of_question(folder: Path, packed: bool, whole: bool) -> None:
    data = LINES if whole else LINES[:-1]
    data = gzip.compress(data) if packed else data
    assert asked(folder, data, "count", "-", 'level == "error"') == (0, "334\n", "")
    assert asked(folder, data, "values", "-", "level", "--format", "csv")[1].splitlines()[1].startswith("info,666")
    _, out, _ = asked(folder, data, "query", "-", "n > 997")
    assert [json.loads(line) for line in out.splitlines()] == RECORDS[998:]
    assert asked(folder, data, "stats", "-", "n", "--format", "ndjson")[0] == 0
    assert os.listdir(folder / "temporary") == []
    assert os.listdir(folder) == ["temporary"]


def test_other_formats_and_nothing_at_all(folder: Path) -> None:
    line = b'::1 - - [20/Nov/2026:14:03:11 +0100] "GET /a HTTP/1.1" 503 5 "-" "x"\n'
    assert asked(folder, line * 7, "count", "-", "status >= 500")[:2] == (0, "7\n")
    assert asked(folder, b"level=error a=1\n" * 3, "count", "-", 'level == "error"')[:2] == (0, "3\n")
    assert asked(folder, b"", "count", "-") == (0, "0\n", "jitdb: standard input is empty\n")
    code, _, err = asked(folder, b"\x89PNG\r\n\x1a\n" + bytes(100), "count", "-")
    assert (code, "a PNG image" in err) == (1, True)


def test_messages_call_it_by_its_name(folder: Path) -> None:
    code, out, err = asked(folder, LINES + b"\xff{\n", "count", "-", 'level == "error"')
    assert (code, out.strip()) == (0, "334")
    assert "warning: standard input: " in err
    assert "jitdb info" not in err  # there is no file to ask
    assert "temporary" not in err


def test_it_stands_alone_and_only_where_one_asks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.ndjson").write_bytes(LINES)
    code, _, err = asked(folder, LINES, "count", "-", "a.ndjson", "n > 1")
    assert (code, "stands alone" in err) == (2, True)
    code, _, err = asked(folder, LINES, "info", "-")
    assert (code, "takes no standard input" in err) == (1, True)
    code, _, err = asked(folder, LINES, "tail", "-", "--cursor", "place")
    assert (code, "no places" in err) == (2, True)


def test_more_than_there_is_room_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    monkeypatch.setattr(standard_input.shutil, "disk_usage", lambda _: _Free(1 << 14))
    monkeypatch.setattr(sys, "stdin", os.fdopen(read))
    os.write(write, LINES[: 1 << 14])
    os.close(write)
    options = Namespace(log="-", more_logs=[], quiet=True)
    is_refused = pytest.raises(Failure, match="standard input has more than")
    with is_refused as failed, standard_input.stdin_as_file(options):
        pass
    assert "TMPDIR" in failed.value.__notes__[0]


class _Free:
    def __init__(self, free: int) -> None:
        self.free = free


def test_tail_shows_what_comes_and_ends(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "jitdb", "tail", "-", "n != 2"], cwd=folder, env=environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    for number in (1, 2, 3):
        process.stdin.write(b'{"n":%d}\n' % number)
        process.stdin.flush()
        if number != 2:
            assert json.loads(process.stdout.readline()) == {"n": number}
    process.stdin.write(b'{"n":4}')  # without a newline
    process.stdin.close()
    begun = time.monotonic()
    assert json.loads(process.stdout.read()) == {"n": 4}
    assert process.wait(timeout=60) == 0
    assert time.monotonic() - begun < 30


def test_exit_codes_are_as_in_grep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path: Any = tmp_path / "a.ndjson"
    path.write_bytes(LINES)
    for command, form in (("count", ()), ("query", ("--format", "csv"))):
        for _ in range(2):
            assert said(capsys, command, path, "n == 7", *form, "-q")[0] == 0
            assert said(capsys, command, path, "n == 7777", *form, "-q")[0] == 1
            assert said(capsys, command, path, "n == 7777", *form)[0] == 0
        assert said(capsys, command, tmp_path / "none.ndjson", "n == 7", "-q")[0] == 2
        assert said(capsys, command, tmp_path / "none.ndjson", "n == 7")[0] == 1
