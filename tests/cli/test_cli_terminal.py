"""What a person at a terminal sees: tables, bars, notes; and Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_helpers import environment, make_log
from waiting import until


def at_a_terminal(
    folder: Path, *arguments: str, when: tuple[bytes, Callable[[int], None]] | None = None, **variables: str
) -> tuple[int, str]:
    """Run with a pseudo-terminal as all three standard streams; exit code and what appears.

    `when`: once the bytes have appeared, call the function with the terminal's descriptor.
    """
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "jitdb", *arguments], cwd=folder, env={**environment(), **variables},
        stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        preexec_fn=lambda: os.set_inheritable(slave, True) or _take_terminal(slave),
    )  # fmt: skip
    os.close(slave)
    seen = b""
    patience = time.monotonic() + 120
    try:
        while time.monotonic() < patience:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    data = os.read(master, 65536)
                except OSError:  # the other end is closed
                    break
                if not data:
                    break
                seen += data
                if when is not None and when[0] in seen:
                    when[1](master)
                    when = None
        return process.wait(timeout=30), seen.decode(errors="replace")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(master)


def _take_terminal(slave: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)  # so that a typed Ctrl-C reaches the process as it does from a keyboard


def test_a_table_with_a_footer(events: Path) -> None:
    table = ("--format", "table")
    code, seen = at_a_terminal(events.parent, "query", "events.log", "--limit", "2", "-q", "--indexes", "none", *table)
    assert code == 0
    assert "───" in seen
    assert "upstream is gone" in seen
    _, seen = at_a_terminal(events.parent, "query", "events.log", "--limit", "2")
    assert "records 1 to 2 of 5; more with --skip 2" in seen


def test_twenty_rows_unless_told_otherwise(tmp_path: Path) -> None:
    make_log(tmp_path / "x.log", [{"n": number} for number in range(50)])
    _, seen = at_a_terminal(tmp_path, "query", "x.log")
    assert "records 1 to 20 of 50; more with --skip 20" in seen
    _, seen = at_a_terminal(tmp_path, "query", "x.log", "--format", "ndjson")
    assert seen.count('{"n":') == 50


def test_import_shows_a_bar_and_takes_ctrl_c(tmp_path: Path) -> None:
    with open(tmp_path / "in.ndjson", "w") as file:
        for number in range(800_000):
            file.write(f'{{"n":{number},"text":"some text to make it longer"}}\n')
    code, seen = at_a_terminal(
        tmp_path,
        "import",
        "in.ndjson",
        "out.log",
        "--codec",
        "msgpack",  # one after the other: lines as they are would be done before the bar comes
        when=(b"importing in.ndjson", lambda master: os.write(master, b"\x03")),
    )
    assert code == 130
    assert " MB" in seen
    assert "interrupted" in seen
    assert "to go on from there: jitdb import --append --from-line" in seen


def test_no_bar_when_none_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "in.ndjson").write_text('{"n":1,"text":"some text to make it longer"}\n' * 150_000)
    code, seen = at_a_terminal(tmp_path, "import", "in.ndjson", "out.log", "--no-progress")
    assert code == 0
    assert "\x1b" not in seen
    assert "150,000 records were imported" in seen


def test_standard_input_at_a_terminal_is_explained(tmp_path: Path) -> None:
    code, seen = at_a_terminal(
        tmp_path, "import", "-", "out.log", when=(b"Ctrl-D ends it", lambda master: os.write(master, b'{"a":1}\n\x04'))
    )
    assert code == 0
    assert "1 record was imported" in seen


def test_the_demo_in_color(tmp_path: Path) -> None:
    code, seen = at_a_terminal(tmp_path, "demo")
    assert code == 0
    assert "\x1b[" in seen
    assert "Found: " in seen
    assert seen.count("PoolTimeout: ") == 2


def test_native_kernels_are_not_compiled(events: Path, tmp_path: Path) -> None:
    cache = {"JITDB_KERNELS": "native", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert at_a_terminal(tmp_path, "count", "events.log", 'level == "error"', **cache)[1].strip() == "2"
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("command", ["count", "export"])
def test_ctrl_c_of_a_question(tmp_path: Path, command: str) -> None:
    """Interrupted while it compiles (count) or writes (export): a word, 130, and no traceback."""
    make_log(tmp_path / "x.log", [{"n": number, "text": "x" * 200} for number in range(20_000)])
    process = subprocess.Popen(
        [sys.executable, "-m", "jitdb", command, "x.log", *(["n == 3"] if command == "count" else [])],
        cwd=tmp_path, env={**environment(), "JITDB_KERNELS": "numba", "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    if command == "export":
        assert process.stdout is not None
        process.stdout.readline()
    else:
        until((tmp_path / "cache").exists)  # it has begun
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    # Interrupted within an exec() of text, as numba does some, `python -m` ends with the signal, not with the code.
    assert process.returncode in (130, -signal.SIGINT), said
    assert "jitdb: interrupted\n" in said  # behind what Python warns of, where numba had a file open
    assert "Traceback" not in said
