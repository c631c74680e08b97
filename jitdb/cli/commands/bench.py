"""`jitdb bench`: how fast your own log answers."""

from __future__ import annotations

import statistics
import time
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.error_text import Failure
from jitdb.cli.expressions import one_expression
from jitdb.cli.opening import engine, log_only
from jitdb.cli.options import GENERAL, READING, number
from jitdb.cli.parser import Parser
from jitdb.common.words import counted, duration, size_in_words

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.operators import Operation

_PAGE: Final = 10  # records of a page
_AGAIN: Final = 200  # repetitions of what takes microseconds

PARSER = Parser(
    "bench",
    "LOG [EXPR] [options]",
    "Time a question on your own log. Every run begins without indexes, in memory, and leaves no files behind; the "
    "log itself comes from the page cache after the first run, as it does for a program that asks more than once.",
    [
        ("bench events.log 'level == \"error\"'", "your own question"),
        ("bench events.log 'status >= 500' --runs 20 --threads 1", "more runs, on one thread"),
    ],
)
PARSER.take("log", "expressions")
PARSER.add_argument("--runs", metavar="N", type=number(1), default=5, help="runs; their median is shown (default: 5)")
PARSER.take("json", *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Run it, and print the times."""
    from jitdb.operators import everything, format_expression

    asked = one_expression(options)
    operation = everything() if asked is None else asked
    options.indexes, options.no_progress = "none", True
    times: dict[str, list[float]] = {}
    with log_only(options) as log:
        if not log.durable_end:
            raise Failure(f"{options.log}: the log is empty, there is nothing to time")
        for _ in range(1 + options.runs):
            db = engine(options, log)
            for name, repeats, step in _steps(db, operation):
                times.setdefault(name, []).append(_milliseconds(step, repeats))
            records, matches = db.count(), db.count(operation)
    found = {
        "log": options.log,
        "question": format_expression(operation),
        "bytes": log.durable_end,
        "records": records,
        "matches": matches,
        "runs": options.runs,
        "milliseconds": {name: each[1:] for name, each in times.items()},  # the first loads what a scan needs
    }
    if options.json:
        import json

        print(json.dumps(found, indent=2))
    else:
        _show(found)
    return 0


def _steps(db: JITDB, operation: Operation) -> list[tuple[str, int, Callable[[], object]]]:
    """Name, repetitions and what is timed."""

    def count() -> object:
        return db.count(operation)

    def newest() -> object:
        return db.paginate(operation, limit=_PAGE, descending=True)

    return [
        ("first count (scan)", 1, count),
        ("count again", _AGAIN, count),
        (f"the {_PAGE} newest", 1, newest),
        (f"the {_PAGE} newest again", _AGAIN, newest),
    ]


def _milliseconds(step: Callable[[], object], repeats: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeats):
        step()
    return 1e3 * (time.perf_counter() - begin) / repeats


def _show(found: dict[str, Any]) -> None:
    print(f"{found['log']}: {size_in_words(found['bytes'])}, {counted(found['records'], 'record', 'records')}")
    print(f"{found['question']}: {counted(found['matches'], 'record matches', 'records match')}\n")
    print(f"{'step':20} {'median':>9} {'fastest':>9} {'slowest':>9}")
    for name, times in found["milliseconds"].items():
        median = statistics.median(times)
        speed = f"  {found['bytes'] / 1e3 / median:,.0f} MB/s" if name.startswith("first") else ""
        print(f"{name:20} {duration(median):>9} {duration(min(times)):>9} {duration(max(times)):>9}{speed}")
    print(f"\n{counted(found['runs'], 'run', 'runs')}, indexes in memory")
