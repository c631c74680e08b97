"""`jitdb explore`: look at a log in a browser."""

from __future__ import annotations

import os
import signal
from argparse import Namespace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from jitdb.cli.expressions import read_question
from jitdb.cli.failures import Failure, note
from jitdb.cli.opening import asked, is_many
from jitdb.cli.options import READING, number, option
from jitdb.cli.output.output import flush, show
from jitdb.cli.parser import command
from jitdb.cli.signals import Ending

if TYPE_CHECKING:
    from jitdb.explorer.server import Server
    from jitdb.explorer.session import Session

_POLL: Final = 0.1  # seconds between looks at whether to end
_SETTINGS: Final = (
    "codec", "block_size", "allow_prefix", "each", "timestamp", "time_unit", "log_tz", "sequence", "indexes",
)  # fmt: skip


@command(
    "LOG [EXPR] [options]",
    "Look at a log in a browser: how many records, when, what is in them, what is different. The page is served on "
    "this machine alone, to those who have its address. It changes nothing. Ctrl-C ends it.",
    [
        ("explore events.log", "opens the page in your browser"),
        ("explore events.log 'level == \"error\"' --no-browser", "prints the address of these records"),
    ],
    *("log", "expressions"),
    option("--port N", "the port on 127.0.0.1 (default: any that is free)", type=number(0), default=0),
    option("--no-browser", "open no browser; the address is printed in any case"),
    *READING,
)
def explore(options: Namespace) -> int:
    """Serve the page until a signal comes."""
    given = list(options.expressions)
    read_question(options)
    from jitdb.explorer.opening import opening_of
    from jitdb.explorer.session import Session

    places = [options.log, *options.more_logs]
    text = given[len(places) - 1 :]
    settings = {name: getattr(options, name) for name in _SETTINGS} | {"format": options.log_format}
    if settings["indexes"] == "none":
        settings["indexes"] = "memory"
    opening = opening_of(places, settings, is_many(options))
    with Ending() as ending:
        try:
            with asked(options) as db, _listening(Session(db, opening), options.port) as server:
                address = server.address + (f"&where={quote(text[0], safe='')}" if text else "")
                show(address)
                flush()
                if not options.no_browser and _open(address):
                    note(options, "the page is open in your browser; Ctrl-C ends it")
                server.serve_forever(poll_interval=_POLL)
        except KeyboardInterrupt:
            return ending.code if ending.signal == signal.SIGTERM else 0
    return 0


def _listening(session: Session, port: int) -> Server:
    from jitdb.explorer.server import Server

    try:
        return Server(session, port)
    except (OSError, OverflowError) as error:
        told = getattr(error, "strerror", None) or "there is no such port"
        raise Failure(f"--port {port}: {told}", "leave it out, for any port that is free") from error


def _open(address: str) -> bool:
    """Open it in the browser of the desktop, where there is one; a browser in the terminal would not show it."""
    if not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        return False
    import webbrowser

    try:
        return webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False
