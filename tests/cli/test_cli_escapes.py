"""What records, fields and names of files hold: a terminal shows it, and nothing of it acts there; a pipe gets it."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from cli_helpers import ROOT, environment, make_log, piped, write
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cli_terminal import at_a_terminal
from thoroughness import combined

from jitdb.cli import main
from jitdb.cli.commands import COMMANDS
from jitdb.common.paths import format_path
from jitdb.engine import progress

# Escape sequences and what else moves or paints: C0, DEL, C1, what turns the direction, line ends, bytes of no UTF-8.
ACTING = "\x1b\r\b\a\x00\x7f\x84\x9b\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069"
OURS = re.compile("\x1b\\[[0-9;]*m")  # colors
ODD = "\x1b[31m\x9b2J\u202e\u2066\a\r\x7f"
HYPERDB = ("put", "get", "list", "history", "info", "delete")
SOURCES = ("lines", "prefixed", "bad", "table", "array", "log")
IMPORTS: list[list[str]] = [
    [], ["--skip-bad"], ["--codec", f"{ODD}\0"], ["--format", ODD], ["--format", "csv"], ["--format", "json"],
    ["--debug"],
]  # fmt: skip
LETTERS = "aZ0 =+[31m]\\\"'\n\t,é語\U0001f600"
texts = st.text(alphabet=st.sampled_from(ACTING + LETTERS), max_size=8)
names = st.text(alphabet=st.sampled_from((ACTING + LETTERS).replace("\x00", "") + "\udcff"), min_size=1, max_size=8)
records = st.lists(st.dictionaries(texts, st.one_of(texts, st.integers(0, 9), st.lists(texts, max_size=2)), max_size=3))


@contextmanager
def streams(stream: Any) -> Iterator[None]:
    before, sys.stdout, sys.stderr = (sys.stdout, sys.stderr), stream, stream
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def terminal() -> Iterator[tuple[int, list[str]]]:
    """Have both streams be a terminal: its descriptor, and, in the end, what was sent to it."""
    master, slave = os.openpty()
    sent: list[bytes] = []
    seen: list[str] = []

    def read() -> None:
        try:
            while data := os.read(master, 65536):
                sent.append(data)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    with open(slave, "w", encoding="utf-8", errors="strict") as stream, streams(stream):
        yield slave, seen
    reader.join()
    os.close(master)
    seen.append(b"".join(sent).decode("utf-8"))


def seen_at_a_terminal(*arguments: str) -> str:
    """What the command sends to a terminal on both streams, but for a bar, however long it takes."""
    with terminal() as (slave, seen), patch.object(progress, "PATIENCE", math.inf):
        tty.setraw(slave)  # newlines come as they were sent
        main(arguments)
    return seen[0]


def acting(seen: str) -> list[str]:
    return [char for char in OURS.sub("", seen) if char in ACTING or "\udc80" <= char <= "\udcff"]


@settings(deadline=None, max_examples=15)
@given(records=records.filter(bool), name=names)
def test_nothing_acts_on_a_terminal_and_a_pipe_gets_it_all(records: list[Any], name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{name}.ndjson")
        Path(path).write_text("".join(json.dumps(record) + "\n" for record in records))
        field = format_path((next((key for record in records for key in record), "none\x9b"),))
        asked = f"{field} == {json.dumps(name)}"
        for command in (
            *(["query", path, "--format", form] for form in ("table", "ndjson", "json", "csv", "tsv")),
            ["tail", path, "--old", "--limit", str(len(records))],
            ["query", path, "--fields", field, "-C", "1"],
            *(["values", path, field, "--format", form] for form in ("table", "json", "csv")),
            ["export", path], ["fields", path], ["timeline", path], ["stats", path, field], ["count", path, asked],
            ["count", path, name], ["count", path + "x"], [name], ["count", path, f"--{name}"],
            ["query", path, "--limit", name], ["query", path, "--since", name], ["query", path, "--format", name],
            ["values", path, "--timestamp", field, field + "x"], ["explain", path, asked], ["info", path, path],
            ["indexes", path], ["verify", path], ["import", path, path + ".log"], ["info", path + ".log"],
            ["import", path, path], ["delete", path + ".log", asked, "--dry-run"], ["delete", path, asked],
            ["count", path, name, "--debug"], ["pack", path, "-o", path + ".zst"],
        ):  # fmt: skip
            seen = seen_at_a_terminal(*command)
            assert not acting(seen), (command, seen)
        assert [json.loads(line) for line in piped("query", path, "--arrival", "-q").splitlines()] == records
        assert json.loads(piped("query", path, "--arrival", "-q", "--format", "json")) == records
        assert json.loads(seen_at_a_terminal("query", path, "--arrival", "-q", "--format", "json")) == records
        assert os.fsencode(path) + b": " in piped("info", path, path)


def _hostile(folder: Path) -> dict[str, str]:
    """Logs and sources full of what acts: their names, the folder's, fields, values, text before JSON, bad lines."""
    home = folder / f"d{ODD}"
    home.mkdir()
    rows = [{"time": 1700000000000 + number, f"k{ODD}\0": f"v{ODD}\0", "n": number} for number in range(3)]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    sources = {
        "lines": lines,
        "prefixed": "".join(f"at {ODD}\x9b {line}\n" for line in lines.splitlines()),
        "batches": json.dumps({f"k{ODD}\0": rows}) + "\n",
        "bad": f'{{"a":1}}\n{{"a":{ODD}\n{ODD}{{"x"\n',
        "table": f'a{ODD},b,a{ODD}\n{ODD},2,3\n"x{ODD}\n',
        "array": json.dumps(rows, ensure_ascii=False)[:-1] + ODD,
    }
    for name, text in sources.items():
        (home / f"{name}{ODD}.ndjson").write_text(text, newline="")
    make_log(home / f"log{ODD}.log", rows)
    make_log(home / f"damaged{ODD}.log", rows * 100, block_size=4096)
    with open(home / f"damaged{ODD}.log", "r+b") as file:
        file.write(b"\xff" * 8)
    return {each.name.removesuffix(each.suffix).removesuffix(ODD): str(each) for each in home.iterdir()}


def test_nothing_acts_on_a_terminal_whatever_the_command(tmp_path: Path, settings: Path) -> None:
    """Each command, with names, data and arguments that act; the damaged, the wrong and what is not there, too."""
    place, home = _hostile(tmp_path), str(tmp_path / f"d{ODD}")
    key = format_path((f"k{ODD}\0",))
    database, new = (
        os.path.join(home, f"hyperdb{ODD}"),
        (os.path.join(home, f"{number}{ODD}.log") for number in count()),
    )
    commands: list[list[str]] = [
        [f"{ODD}\0"], ["help", ODD], ["demo", "--keep", home], ["completion", ODD],
        ["prebuild", "--master", ODD, ODD, "a"], ["save", ODD, "n == 1"], ["save", "odd", f"a == {json.dumps(ODD)}"],
        ["save"], ["explore", ODD], ["mcp", ODD], ["find", place["lines"], ODD], ["find", home, ODD[-3:]],
        ["hyperdb", "put", database, ODD, f"v{ODD}"], *(["hyperdb", each, database, ODD] for each in HYPERDB),
        *(["hyperdb", each, database, "--json"] for each in HYPERDB), ["hyperdb", "list", database],
        ["tail", home, "--old", "--limit", "2"], ["tail", place["log"], "--after", ODD],
        ["query", place["prefixed"], "--allow-prefix", "--text"], ["query", place["batches"], "--each", f"{key}[]"],
        ["delete", place["log"], f"{key} is absent", "--dry-run"], ["delete", place["log"], "n == 1", "--yes"],
        ["query", place["log"], "-o", os.path.join(home, f"no{ODD}", "x")],
        *(["import", place[each], next(new), *more] for each in SOURCES for more in IMPORTS),
        *(["pack", place[each], "-o", next(new)] for each in SOURCES),
    ]  # fmt: skip
    asked = f"not {key} == {json.dumps(ODD)}"
    logs = [place["lines"], place["log"], place["damaged"], place["bad"], home, ODD, f"{home}/*{ODD}*"]
    of_a_log: list[list[str]] = [
        *([each] for each in ("info", "indexes", "verify", "repair", "compact", "count", "fields")),
        *([each, asked] for each in ("query", "export", "explain", "timeline")),
        ["facets", "--no-progress"], ["diff", asked, "--no-progress"], ["patterns", "--no-progress"],
        *([each, key] for each in ("values", "stats", "histogram", "prepare")),
        ["explain", f"{key} contains {json.dumps(ODD)}", "--json"], ["indexes", "--drop", ODD],
    ]  # fmt: skip
    commands += [[command[0], log, *command[1:]] for log, command in combined(3, logs, of_a_log)]
    wrong = (f"n == 1 {ODD}", "n == \0", f"n == '{ODD}", f"{key}x == 1", f"no{ODD}(1)", f"n matches '{ODD}['")
    for expression in wrong:
        commands += [["count", place["lines"], expression, *debug] for debug in ([], ["--debug"])]
    for option in ("--since", "--as-of", "--limit", "--codec", "--block-size", "--timestamp", "--each", "--format"):
        commands.append(["query", place["lines"], option, f"{ODD}\0"])
    assert set(COMMANDS) <= {command[0] for command in commands}
    for command in commands:
        seen = seen_at_a_terminal(*command)
        assert not acting(seen), (command, seen)
        assert ODD[:5] not in seen, (command, seen)  # a colour that is not ours


def test_nothing_acts_on_a_terminal_that_is_named_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.ndjson").write_text('{"a":"\x9b31m\u202e"}\n')
    for place, form in (("/dev/stdout", "ndjson"), ("/dev/tty", "csv")):
        code, seen = at_a_terminal(tmp_path, "query", "x.ndjson", "-q", "--format", form, "-o", place)
        assert code == 0
        assert "\\u009b31m\\u202e" in seen
        assert not acting(seen.replace("\r\n", "\n"))
    ends = subprocess.run(
        [sys.executable, "-m", "jitdb", "query", "x.ndjson", "-o", "/dev/stdout"],
        cwd=tmp_path, env=environment(), capture_output=True, check=True,
    )  # fmt: skip
    assert ends.stdout == (tmp_path / "x.ndjson").read_bytes()


@given(rows=st.lists(st.lists(texts, min_size=2, max_size=2), min_size=1))
@settings(deadline=None, max_examples=50)
@pytest.mark.parametrize(("form", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_a_cell_is_read_back_whatever_it_holds(form: str, delimiter: str, rows: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.ndjson")
        path.write_text("".join(json.dumps(dict(zip("ab", row, strict=True))) + "\n" for row in rows))
        text = piped("query", str(path), "--arrival", "-q", "--format", form, "--fields", "a,b").decode()
    assert list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)) == [["a", "b"], *rows]


def test_a_carriage_return_is_quoted(tmp_path: Path) -> None:
    name = str(tmp_path / write(tmp_path, b'{"a":"x\\ry"}\n'))
    assert piped("query", name, "-q", "--format", "csv") == b'a\n"x\ry"\n'
    assert piped("values", name, "a", "--format", "tsv") == b'a\tcount\tshare\n"x\ry"\t1\t1.0\n'


def test_a_newline_in_a_name_is_no_line_of_ours(tmp_path: Path) -> None:
    name = str(tmp_path / write(tmp_path, b'{"a":1}\n', "x\njitdb: all is well.ndjson"))
    for command in (["info", name], ["info", name, name], ["count", name, "b == 1"], ["count", f"{name}x"]):
        assert "\njitdb: all is well" not in seen_at_a_terminal(*command)
    assert "\n  a ==\n" in seen_at_a_terminal("count", name, "a ==")  # which is ours


def test_what_is_said_while_a_bar_is_there_stands_above_it() -> None:
    with terminal() as (_, sent):
        stream = sys.stderr
        with progress.Bar("x[red]\x1b[31m\u202e", 10, shown=True) as bar:
            bar._begin = 0.0
            bar(1)
            print("a word\x9b\x1b[31m", file=sys.stderr)
            print("a result")
        assert sys.stderr is stream
    (seen,) = sent
    assert "x[red]\\x1b[31m\\u202e" in OURS.sub("", seen)
    assert "a word\\u009b\\u001b[31m\r\n" in seen
    assert "a result\r\n" in seen


def test_a_terminal_without_unicode(tmp_path: Path) -> None:
    write(tmp_path, '{"a":"é\\u009b"}\n'.encode(), "é.ndjson")
    for arguments in (("query", "é.ndjson", "--format", "csv"), ("info", "é.ndjson"), ("values", "é.ndjson", "a")):
        code, seen = at_a_terminal(tmp_path, *arguments, PYTHONIOENCODING="ascii")
        assert (code, "\\xe9" in seen) == (0, True), seen


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii", "latin-1"])
def test_a_name_that_is_no_text_goes_out(tmp_path: Path, encoding: str) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"\xff.ndjson")
    with open(path, "wb") as file:
        file.write(b'{"a":1}\n')
    run = subprocess.run(
        [sys.executable, "-m", "jitdb", "info", path],
        capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert (path if encoding.startswith("utf-8") else b"\\udcff.ndjson") in run.stdout
