"""`jitdb demo`: see it work, with real timings and the Python that one would write."""

from __future__ import annotations

import gzip
import os
import shlex
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import nullcontext
from importlib.resources import files
from textwrap import indent
from typing import Any, Final

import jitdb
from jitdb.cli.compiling import compilation_watched
from jitdb.cli.error_text import Failure
from jitdb.cli.output.table import make_table
from jitdb.cli.parsing import Parser, add_general
from jitdb.cli.program import program
from jitdb.common.words import duration
from jitdb.engine.database import JITDB
from jitdb.operators import count, descending, equal, from_db, paginate, query, to_result, where

NAME: Final = "ssb.log"
_AUTHOR: Final = "@G67QQFBERjRTyeiUVLobqED58vz62t1U2CmWV5OiQV4=.ed25519"  # who wrote most of it

PARSER = Parser(
    "demo",
    "[options]",
    "Ask four questions of a log that comes with jitdb: 5,000 records in the shape of Secure Scuttlebutt's, written "
    "by the JavaScript module async-append-only-log. All times shown are measured while you look.",
    [
        ("demo", "in a temporary folder, which is removed again"),
        ("demo --keep playground", f"keep the log as playground/{NAME}, to ask it your own questions"),
    ],
)
PARSER.add_argument("--keep", metavar="DIR", help=f"put the log into this folder, as {NAME}, and leave it there")
add_general(PARSER)


def run(options: Namespace) -> int:
    """Unpack, ask, and say what to do next."""
    if options.keep is None:
        with tempfile.TemporaryDirectory(prefix="jitdb-demo-") as folder:
            _show(os.path.join(folder, NAME), options)
        return 0
    path = os.path.join(options.keep, NAME)
    if os.path.exists(path):
        raise Failure(f"{path}: there is a file already", f"choose another folder, or ask that log: jitdb info {path}")
    os.makedirs(options.keep, exist_ok=True)
    _show(path, options)
    return 0


def unpack(path: str) -> None:
    """Write the log that comes with jitdb to `path`."""
    packed = files("jitdb") / "data" / "ssb-5k.bipf.gz"
    with open(path, "xb") as file:
        file.write(gzip.decompress(packed.read_bytes()))


def _show(path: str, options: Namespace) -> None:
    unpack(path)
    with jitdb.open(path, progress=False) as db:
        _Tour(db, options).go()


class _Tour:
    """The questions, one after the other."""

    def __init__(self, db: JITDB, options: Namespace) -> None:
        from jitdb.cli.output.terminal import console

        self._db = db
        self._options = options
        self._console = console()
        self._animated = self._console.is_terminal and not (options.quiet or options.no_progress)

    def go(self) -> None:
        size = os.path.getsize(self._db.log.path)
        self._say(f"A log of 5,000 records, {size / 1e6:.1f} MB: {self._db.log.path}")
        self._say("JavaScript's async-append-only-log wrote it. There are no indexes yet.")
        self._code(
            "import jitdb\n"
            "from jitdb.operators import query, from_db, where, equal\n"
            "from jitdb.operators import count, descending, paginate, to_result\n"
            f'db = jitdb.open("{NAME}")'
        )
        self._first_question()
        self._same_field()
        self._newest()
        self._both()
        self._next()

    def _first_question(self) -> None:
        self._step("1. The first question: how many posts are there? jitdb reads the log once and indexes that field.")
        self._code(
            'posts = equal("value.content.type", "post")\n'
            "query(from_db(db), where(posts), count(), to_result())"
        )  # fmt: skip
        posts = equal("value.content.type", "post")
        self._scan(lambda: query(from_db(self._db), where(posts), count(), to_result()))
        with tempfile.TemporaryDirectory(prefix="jitdb-demo-") as folder:
            fresh = JITDB(self._db.log, folder, progress=False)
            begin = time.perf_counter()
            query(from_db(fresh), where(posts), count(), to_result())
            seconds = time.perf_counter() - begin
        speed = self._db.log.durable_end / 1e6 / seconds
        self._say(
            f"The first scan of a process loads the scanner. Once more from nothing, now that it is there: "
            f"{duration(1e3 * seconds)}, {speed:,.0f} MB/s, indexes written."
        )

    def _same_field(self) -> None:
        self._step("2. Another value of that field. Its index holds all its values, so nothing is read.")
        self._code(
            'votes = equal("value.content.type", "vote")\n'
            "query(from_db(db), where(votes), count(), to_result())"
        )  # fmt: skip
        votes = equal("value.content.type", "vote")
        self._timed(lambda: query(from_db(self._db), where(votes), count(), to_result()))

    def _newest(self) -> None:
        self._step("3. The five newest posts, as a page: found in the indexes, read and decoded.")
        self._code("query(from_db(db), where(posts), descending(), paginate(5), to_result())")
        posts = equal("value.content.type", "post")
        begin = time.perf_counter()
        page = query(from_db(self._db), where(posts), descending(), paginate(5), to_result())
        seconds = time.perf_counter() - begin
        paths = {name: tuple(name.split(".")) for name in ("timestamp", "value.author", "value.content.text")}
        self._console.print(make_table(page.data, paths, self._console.width))
        self._result(f"{len(page.data)} of {page.total:,}", seconds)

    def _both(self) -> None:
        self._step("4. Posts of one author. That is a new field: the log is read once more for it, and never again.")
        self._code(
            f'author = "{_AUTHOR}"\n'
            'hers = equal("value.author", author) & posts\n'
            "query(from_db(db), where(hers), count(), to_result())"
        )
        hers = equal("value.author", _AUTHOR) & equal("value.content.type", "post")
        self._scan(lambda: query(from_db(self._db), where(hers), count(), to_result()))
        self._say("And asked again:")
        self._timed(lambda: query(from_db(self._db), where(hers), count(), to_result()))

    def _next(self) -> None:
        kept = self._options.keep is not None
        jitdb_ = program()
        self._step("What next?")
        if kept:
            log = shlex.quote(os.path.join(self._options.keep, NAME))
            self._lines(
                f"{jitdb_} info {log}",
                f"{jitdb_} query {log} 'value.content.type == \"post\"' --descending",
                f"{jitdb_} bench {log}",
                f"{jitdb_} help expressions",
            )
            return
        self._lines(
            f"{jitdb_} demo --keep playground    (keeps this log and its indexes)", f"{jitdb_} help expressions"
        )
        self._say("With records of your own, one JSON value a line in events.ndjson:")
        self._lines(f"{jitdb_} import events.ndjson events.log", f"{jitdb_} query events.log")

    def _lines(self, *lines: str) -> None:
        for line in lines:
            self._say(f"    {line}")

    def _timed(self, ask: Callable[[], int]) -> None:
        begin = time.perf_counter()
        answer = ask()
        self._result(f"{answer:,}", time.perf_counter() - begin)

    def _scan(self, ask: Callable[[], int]) -> None:
        """As _timed, for a question that scans: someone who looks sees when the compiler runs, and it is told after."""
        status: Any = self._console.status("reading the log …") if self._animated else None

        def tell() -> None:
            text = "compiling the scanner for this machine, once; it takes some seconds …"
            if status is not None:
                status.update(text)
            elif not self._options.quiet:
                self._say(f"({text})", "dim")

        begin = time.perf_counter()
        with compilation_watched(tell) as compilation, status or nullcontext():
            answer = ask()
            seconds = time.perf_counter() - begin
        self._result(f"{answer:,}", seconds)
        if compilation.happened:
            self._say(
                f"{duration(1e3 * compilation.seconds)} of it went into compiling parts of the scanner, which is done "
                f"once for an installation."
            )

    def _result(self, answer: str, seconds: float) -> None:
        from rich.text import Text

        self._console.print(Text.assemble("  ", (answer, "bold green"), f"   in {duration(1e3 * seconds)}"))

    def _step(self, text: str) -> None:
        self._console.print()
        self._say(text, "bold cyan")

    def _say(self, text: str, style: str = "") -> None:
        from rich.text import Text

        self._console.print(Text(text, style=style), soft_wrap=not self._console.is_terminal)

    def _code(self, code: str) -> None:
        if not self._console.is_terminal:
            print(indent(code, "    "))
            return
        from rich.padding import Padding
        from rich.syntax import Syntax

        shown = Syntax(code, "python", theme="ansi_dark", background_color="default", word_wrap=True)
        self._console.print(Padding(shown, (0, 0, 0, 4)))
