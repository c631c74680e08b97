"""The program as a user runs it, and what it is run on."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from jitdb.cli import main
from jitdb.log import Log

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "tests" / "data" / "ssb-5k.bipf"

EVENTS: list[dict[str, Any]] = [
    {"time": 1700000000000, "level": "info", "status": 200, "user": {"name": "ada"}, "message": "login"},
    {"time": 1700000001000, "level": "error", "status": 502, "user": {"name": "grace"}, "message": "upstream is gone"},
    {"time": 1700000002000, "level": "info", "status": 200, "user": {"name": "grace"}, "message": "hi", "tags": ["a"]},
    {"time": 1700000003000, "level": "error", "status": 500, "user": {"name": "ada"}, "message": "disk is full"},
    {"time": 1700000004000, "level": "info", "status": 404, "message": "not here"},
]  # fmt: skip


def environment() -> dict[str, str]:
    """Of a child process: the checkout on its path, a width that does not change."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", "PYTHONWARNINGS": "default"}


def make_log(path: Path, records: Iterable[Any] = (), **options: Any) -> Path:
    """A log of these records."""
    with Log(path, **options) as log:
        log.append_many(records)
    return path


def records_of(path: Path) -> list[Any]:
    """What a log holds."""
    with Log(path, read_only=True) as log:
        return [record.value for record in log.stream()]


def write(folder: Path, data: bytes, name: str = "in.ndjson") -> str:
    (folder / name).write_bytes(data)
    return name


def said(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    """The exit code of a command, and what it writes to standard output and to the error output."""
    code = main([str(argument) for argument in arguments])
    found = capsys.readouterr()
    return code, found.out, found.err


def piped(*arguments: str) -> bytes:
    """What a command writes to standard output, a pipe; without a process, which takes longer than what it does."""
    reading, writing = os.pipe()
    sent: list[bytes] = []

    def read() -> None:
        with open(reading, "rb") as pipe:
            sent.append(pipe.read())

    reader = threading.Thread(target=read)
    reader.start()
    with open(writing, "w", encoding="utf-8", errors="surrogateescape") as stream, redirect_stdout(stream):
        main(arguments)
    reader.join()
    return sent[0]
