"""`jitdb demo`: find out why a web service is slow, by commands that can be typed again."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from argparse import Namespace
from contextlib import chdir
from typing import Final

from jitdb.cli.commands.demo_log import demo_lines
from jitdb.cli.failures import Failure
from jitdb.cli.options import option
from jitdb.cli.output.output import flush, show_painted
from jitdb.cli.parser import command
from jitdb.common.words import duration
from jitdb.display.terminal import visible

NAME: Final = "shop.ndjson"
_HEAD: Final = "1;36"  # colors
_TIME: Final = "2"
_CODE: Final = "33"

# What is asked: the words before, and the command without the log, which stands behind its name.
_STEPS: Final = (
    (
        "1. How many errors are there? The first question about a field reads the file once, and keeps an index.",
        ("count", 'level == "error"'),
    ),
    ("2. Which services have them?", ("values", "service", 'level == "error"')),
    (
        "3. web waits for checkout. Since when does checkout have errors?",
        ("timeline", 'service == "checkout" and level == "error"', "--every", "2h"),
    ),
    (
        "4. What is different about these errors? All fields are compared:",
        ("diff", 'service == "checkout" and level == "error"', "--against", 'service == "checkout"'),
    ),
    (
        "5. What does the new release say? One of its errors, as people read it:",
        ("query", 'version == "2.15.0" and status == 504', "-n", "1", "--format", "pretty", "--traces", "--utc"),
    ),
    ("6. Who else saw that request? A text is found in whatever field it stands.", ("find", "{id}")),
    ("7. All of that request:", ("query", 'request_id == "{id}"', "--format", "pretty", "--utc")),
)
_FOUND: Final = """\
Found: since 14:12, orders in eu-west time out. checkout 2.15.0 has used up its 8 connections to the database."""


@command(
    "[options]",
    "Find out why the log of a web service has errors: some 20,000 records of a day, which are made for this. Each "
    "command is shown, and how long it took as it ran here.",
    [
        ("demo", "in a temporary folder, which is removed again"),
        ("demo --keep playground", f"keep the log as playground/{NAME}, for your own questions"),
    ],
    option("--keep DIR", f"put the log into this folder, as {NAME}, and leave it there"),
)
def demo(options: Namespace) -> int:
    """Write the log, ask, and say what to do next."""
    typed = program()
    if options.keep is None:
        with tempfile.TemporaryDirectory(prefix="jitdb-demo-") as folder, chdir(folder):
            return _show(NAME, typed) or _say_next(
                typed,
                f"{typed} demo --keep playground    (keeps this log, so that you can type these commands)",
                f"{typed} values app.log level    (a log of your own: a file, a folder, or - for standard input)",
            )
    path = os.path.join(options.keep, NAME)
    if os.path.exists(path):
        raise Failure(
            f"{path}: there is a file already",
            f"choose another folder, or ask that log: jitdb count {shlex.quote(path)}",
        )
    os.makedirs(options.keep, exist_ok=True)
    kept = shlex.quote(path)
    return _show(path, typed) or _say_next(
        typed, f"{typed} fields {kept}", f"{typed} query {kept} 'ms > 1000' --sort -ms --limit 5"
    )


def _show(path: str, typed: str) -> int:
    """Ask all; the exit code of a command that failed, or 0."""
    from jitdb.cli import main

    lines = list(demo_lines())
    with open(path, "x", encoding="utf-8") as file:
        file.writelines(lines)
    request = json.loads(next(line for line in lines if '"trace"' in line))["request_id"]
    _say(f"{path}: a day of a web shop, {len(lines):,} records in {os.path.getsize(path) / 1e6:.1f} MB of JSON Lines.")
    for said, (name, *rest) in _STEPS:
        words = [name, path, *(word.format(id=request) for word in rest)]
        _say(f"\n{said}", _HEAD)
        _say(f"$ {typed} {shlex.join(words)}", _CODE)
        flush()
        begin = time.perf_counter()
        code = main(words)
        if code:
            return code
        _say(f"({duration(1e3 * (time.perf_counter() - begin))})", _TIME)
    _say(f"\n{_FOUND}", _HEAD)
    return 0


def _say_next(typed: str, *commands: str) -> int:
    _say("\nWhat next?", _HEAD)
    for line in (*commands, f"{typed} help expressions"):
        _say(f"    {line}")
    return 0


def program() -> str:
    """What to type to run this program again, from this folder."""
    if shutil.which("jitdb"):
        return "jitdb"
    started = sys.argv[0] if sys.argv else ""
    if os.path.basename(started) == "jitdb" and os.access(started, os.X_OK):
        here = os.path.relpath(started)
        return shlex.quote(started if here.startswith("..") else here if os.sep in here else os.path.join(".", here))
    return f"{shlex.quote(sys.executable)} -m jitdb"


def _say(text: str, style: str = "") -> None:
    for line in text.split("\n"):
        show_painted(visible(line), style)
