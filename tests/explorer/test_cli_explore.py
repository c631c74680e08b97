"""`jitdb explore` as a process: it prints its address, opens a browser, answers, and ends at once when told to."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from served import write_lines

ROOT = Path(__file__).parents[2]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "a.ndjson", [{"time": 1700000000 + number, "level": "info"} for number in range(9)])


@contextmanager
def exploring(*words: Any, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address that it prints."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    process = subprocess.Popen(
        [sys.executable, "-m", "jitdb", "explore", *map(str, words)], text=True, cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**kept, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.terminate()  # which leaves nothing behind
        process.communicate(timeout=20)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_it_serves_until_it_is_told_to_end(log: Path, number: signal.Signals, code: int) -> None:
    with exploring(log, 'level == "info"') as (process, address):
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+/)#token=[\w-]{43}&where=(.*)", address)
        assert found is not None, address
        assert unquote(found[2]) == 'level == "info"'
        with urllib.request.urlopen(found[1]) as page:
            assert b"<title>jitdb</title>" in page.read()
        begun = time.monotonic()
        process.send_signal(number)
        assert process.wait(20) == code, process.stderr.read()  # type: ignore[union-attr]
        assert time.monotonic() - begun < 5  # of a loaded machine: there is nothing to wait for
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_it_opens_the_browser_of_the_desktop(log: Path, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    with exploring(log, BROWSER=str(browser)) as (_, address):
        late = time.monotonic() + 20
        while not opened.exists() and time.monotonic() < late:
            time.sleep(0.01)
        assert opened.read_text() == address
    opened.unlink()
    with exploring(log, "--no-browser", BROWSER=str(browser)) as (_, address):
        urllib.request.urlopen(address.partition("#")[0]).close()
        assert not opened.exists()


def test_a_port_that_is_taken_is_named(log: Path) -> None:
    with exploring(log) as (_, address):
        port = re.search(r":(\d+)/", address)[1]  # type: ignore[index]
        with exploring(log, "--port", port) as (process, line):
            assert line == ""
            assert process.wait(20) == 1
            assert process.stderr is not None
            told = process.stderr.read().splitlines()
    assert told[0].startswith(f"jitdb: --port {port}: Address already in use")
    assert told[1].strip() == "leave it out, for any port that is free"


def test_wrong_questions_and_logs_are_named_before_anything_is_served(log: Path) -> None:
    for words, said in (((log, "level = 5"), "`==`"), ((log.with_name("b"),), "no such file")):
        with exploring(*words) as (process, line):
            assert line == ""
            assert process.wait(20) == 2 or process.returncode == 1
            assert process.stderr is not None
            assert said in process.stderr.read()
