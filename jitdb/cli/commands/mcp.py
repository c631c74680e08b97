"""`jitdb mcp`: answer the questions of an assistant."""

from __future__ import annotations

import signal
from argparse import Namespace

from jitdb import __version__
from jitdb.cli.failures import Failure
from jitdb.cli.opening import asked
from jitdb.cli.options import READING
from jitdb.cli.parser import command
from jitdb.common.words import counted
from jitdb.errors import library


@command(
    "LOG [LOG ...] [options]",
    "Let an assistant ask: serve questions about these logs over the Model Context Protocol, on standard input and "
    "output, until that ends. The program of the assistant starts it. It reads logs, and changes nothing but indexes.",
    [
        ("mcp events.log", "the command that the assistant's program is told"),
        ("mcp logs/ access.log.gz --timestamp ts", "of many logs"),
    ],
    *("log", "more_logs", *READING),
)
def mcp(options: Namespace) -> int:
    library("mcp")
    if options.log == "-":
        raise Failure("-: standard input is where the questions come from", "name files, folders or patterns")
    from jitdb.assistant.server import serve

    if getattr(options, "is_alone", False):
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread waits for standard input, whatever the loop does
    with asked(options) as db:
        serve(db, _in_words([options.log, *options.more_logs]), __version__)
    return 0


def _in_words(places: list[str]) -> str:
    more = len(places) - 1
    return f"the log {places[0]}" if not more else f"the logs {places[0]} and {counted(more, 'more', 'more')}"
