"""`jitdb bench`: how fast your own log answers."""

from __future__ import annotations

import statistics
import time
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.compiling import compilation_watched
from jitdb.cli.error_text import Failure, say
from jitdb.cli.opening import database
from jitdb.cli.parsing import Parser, add_common, add_expression, number, one_expression
from jitdb.common.words import counted, duration, size_in_words

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.operators import Operation

_PAGE: Final = 10  # records of a page
_SAMPLE: Final = 200  # records looked at for a question
_WARM: Final = 200  # repetitions of what takes microseconds

PARSER = Parser(
    "bench",
    "LOG [EXPR] [options]",
    "Time a question on your own log. Every run begins without indexes, in memory, and leaves no files behind; the "
    "log itself comes from the page cache after the first run, as it does for a program that asks more than once.",
    [
        ("bench events.log 'level == \"error\"'", "your own question"),
        ("bench events.log", "a question about a field that is found by looking"),
        ("bench events.log 'status >= 500' --runs 20 --threads 1", "more runs, on one thread"),
    ],
)
PARSER.add_argument("log", metavar="LOG", help="file of the log")
add_expression(PARSER)
PARSER.add_argument("--runs", metavar="N", type=number(1), default=5, help="runs; their median is shown (default: 5)")
PARSER.add_argument("--json", action="store_true", help="one JSON object instead of a table")
add_common(PARSER)


def run(options: Namespace) -> int:
    """Run it, and print the table."""
    operation = one_expression(options)
    options.indexes = "none"
    with database(options) as db:
        total = db.log.durable_end
        if not total:
            raise Failure(f"{options.log}: the log is empty, there is nothing to time")
        asked = _some_question(db) if operation is None else operation
        runs, compiled = _runs(db, asked, options)
        records, matches = db.count(), db.count(asked)
    found = {
        "log": options.log,
        "question": _text(asked),
        "bytes": total,
        "records": records,
        "matches": matches,
        "runs": options.runs,
        "compile_seconds": round(compiled, 3),
        "milliseconds": {name: [1e3 * seconds for seconds in times] for name, times in runs.items()},
    }
    if options.json:
        import json

        print(json.dumps(found, indent=2))
    else:
        _show(found, chosen=operation is None)
    return 0


def _runs(db: JITDB, operation: Operation, options: Namespace) -> tuple[dict[str, list[float]], float]:
    """Seconds of each step, run by run, and the seconds that compiling took before."""
    from jitdb.engine.database import JITDB

    def fresh() -> JITDB:
        settings: dict[str, Any] = {"threads": options.threads, "progress": False}
        if options.timestamp:
            settings["timestamp"] = options.timestamp
        if options.sequence:
            settings["sequence"] = options.sequence
        return JITDB(db.log, None, **settings)

    def tell() -> None:
        if not options.quiet:
            say("jitdb: compiling the scanner for this machine, once; it is not counted")

    with compilation_watched(tell) as compilation:
        fresh().paginate(operation, limit=_PAGE, descending=True)
    times: dict[str, list[float]] = {}
    for _ in range(options.runs):
        for name, repeats, step in _steps(fresh(), operation):
            begin = time.perf_counter()
            for _ in range(repeats):
                step()
            times.setdefault(name, []).append((time.perf_counter() - begin) / repeats)
    return times, compilation.seconds


def _steps(db: JITDB, operation: Operation) -> list[tuple[str, int, Callable[[], object]]]:
    """Name, repetitions and what is timed."""

    def count() -> object:
        return db.count(operation)

    def newest() -> object:
        return db.paginate(operation, limit=_PAGE, descending=True)

    return [
        ("first count (scan)", 1, count),
        ("count again", _WARM, count),
        (f"the {_PAGE} newest", 1, newest),
        (f"the {_PAGE} newest again", _WARM, newest),
    ]


def _some_question(db: JITDB) -> Operation:
    """`field == value`: a short text of some of the newest records, in a field with a telling name if possible."""
    from collections import Counter

    from jitdb.cli.output.columns import TELLING, leaves
    from jitdb.operators import equal, everything

    newest = db.paginate(limit=_SAMPLE, descending=True, sort_by="arrival").data
    seen = Counter(
        (path, value)
        for record in newest
        for path, value in leaves(record)
        if path != ("",) and isinstance(value, str) and 0 < len(value) <= 24
    )
    # Neither what all records hold nor what hardly any does.
    some = {pair: count for pair, count in seen.items() if len(newest) / 50 <= count < len(newest)}
    if not some:
        return everything()
    path, value = max(some, key=lambda pair: (TELLING.get(pair[0][-1], 0), some[pair], pair))
    return equal(path, value)


def _text(operation: Operation) -> str:
    from jitdb.operators import format_expression

    return format_expression(operation)


def _show(found: dict[str, Any], chosen: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from jitdb.cli.output.terminal import console

    screen = console()
    screen.print(
        Text(f"{found['log']}: {size_in_words(found['bytes'])}, {counted(found['records'], 'record', 'records')}")
    )
    note = " (a question of our choice)" if chosen else ""
    screen.print(Text(f"{found['question']}: {counted(found['matches'], 'record matches', 'records match')}{note}"))
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("step")
    for name in ("median", "fastest", "slowest", ""):
        table.add_column(name, justify="right", no_wrap=True)
    for number_, (name, times) in enumerate(found["milliseconds"].items()):
        median = statistics.median(times)
        speed = f"{found['bytes'] / 1e3 / median:,.0f} MB/s" if number_ == 0 else ""
        table.add_row(name, duration(median), duration(min(times)), duration(max(times)), speed)
    screen.print(table)
    compiled = f"; compiling took {found['compile_seconds']:.1f} s before" if found["compile_seconds"] else ""
    screen.print(Text(f"{counted(found['runs'], 'run', 'runs')}, indexes in memory{compiled}"))
