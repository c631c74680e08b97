"""`jitdb hyperdb`: write to a HyperDB, and look into it."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.failures import Failure, UsageError
from jitdb.cli.options import changed, option
from jitdb.cli.output.output import show, show_json
from jitdb.cli.parser import command

if TYPE_CHECKING:
    from jitdb.stores.hyperdb import HyperDB, Node

_KEYED: Final = ("put", "get", "delete")


@command(
    "put|get|delete|list|history|info FOLDER [KEY [VALUE]] [options]",
    "Write to a HyperDB and read it: a key/value store of several writers, each with a log of its own. `put` makes "
    "the database if there is none; without VALUE it reads standard input. `get` writes the value as it is; if "
    "writers disagree, all values, one a line. The other actions write a line for each key or entry, with escapes for "
    "what does not print. A feed is a log, too: `jitdb query FOLDER/feeds/KEY.log`.",
    [
        ("hyperdb put notes life/cat meow", "write a value under a key"),
        ("hyperdb get notes life/cat", "its value"),
        ("hyperdb list notes life", "the keys below a prefix"),
        ("hyperdb history notes --json", "who wrote what, and in which order"),
    ],
    option(
        "action ACTION",
        "put, get, delete, list, history or info",
        choices=("put", "get", "delete", "list", "history", "info"),
    ),
    option("folder FOLDER", "folder of the database"),
    option("key KEY", "a key, or for list a prefix; segments are separated by /", nargs="?"),
    option("value VALUE", "for put: the value, as text (default: standard input)", nargs="?"),
    changed("json", "write one JSON object for each node instead of text"),
    option("--version HEX", "read it as of this version, which `info` shows"),
)
def hyperdb(options: Namespace) -> int:
    """Do it; 1 if a key that was asked for has no value."""
    usage = f"usage: {hyperdb.parser.usage}"
    if options.action in _KEYED and options.key is None:
        raise UsageError(f"hyperdb: {options.action} needs a key", usage)
    if options.key is not None and options.action == "info":
        raise UsageError("hyperdb: info takes no key", usage)
    if options.value is not None and options.action != "put":
        raise UsageError(f"hyperdb: {options.action} takes no value", usage)
    writing = options.action in ("put", "delete")
    if writing and options.version:
        raise UsageError("hyperdb: what was cannot be written to", "leave --version out")
    try:
        from jitdb.stores.hyperdb import HyperDB
    except ImportError as error:
        raise Failure(str(error)) from error
    if options.action == "put":  # before the database is open for writing: input may take its time, or never end
        given = options.value
        options.value = sys.stdin.buffer.read() if given is None else given.encode("utf-8", "surrogateescape")
    with HyperDB(options.folder, create=options.action == "put", read_only=not writing) as db:
        return _ACTIONS[options.action](db, options)


def _put(db: HyperDB, options: Namespace) -> int:
    db.put(options.key, options.value)
    return 0


def _delete(db: HyperDB, options: Namespace) -> int:
    db.delete(options.key)
    return 0


def _get(db: HyperDB, options: Namespace) -> int:
    nodes = _state(db, options).get(options.key)
    _write(_lines(db, nodes) if options.json else ((node.value or b"") + b"\n" for node in nodes))
    return 0 if nodes else 1


def _list(db: HyperDB, options: Namespace) -> int:
    groups: Iterable[list[Node]] = _state(db, options).iterator(options.key or "")
    every = chain.from_iterable(groups)
    _write(_lines(db, every) if options.json else (_line(nodes[0].key) for nodes in groups))
    return 0


def _history(db: HyperDB, options: Namespace) -> int:
    state = _state(db, options)
    groups = [state.history()] if options.key is None else state.key_history(options.key)
    nodes = chain.from_iterable(groups)
    _write(_lines(db, nodes) if options.json else (_line(_said(db, node)) for node in nodes))
    return 0


def _info(db: HyperDB, options: Namespace) -> int:
    told = {
        "key": db.key.hex(),
        "local": db.local.key.hex(),
        "version": _state(db, options).version.hex(),
        "feeds": [
            {"key": feed.key.hex(), "entries": max(0, len(feed) - 1), "authorized": db.authorized(feed.key),
             "log": str(feed.path)}
            for feed in db.feeds
        ],
    }  # fmt: skip
    if options.json:
        show_json(told)
        return 0
    show(f"database {told['key']}")
    show(f"version  {told['version']}")
    for feed in told["feeds"]:
        who = "" if feed["authorized"] else ", not authorized"
        show(f"feed     {feed['key']}: {feed['entries']:,} entries{who}")
    return 0


_ACTIONS: Final[dict[str, Callable[[Any, Namespace], int]]] = {
    "put": _put, "get": _get, "delete": _delete, "list": _list, "history": _history, "info": _info,
}  # fmt: skip


def _state(db: HyperDB, options: Namespace) -> Any:
    return db.checkout(options.version) if options.version else db


def _said(db: HyperDB, node: Node) -> str:
    who = f"{db.feeds[node.feed].key.hex()[:8]} {node.seq}"
    if node.deleted:
        return f"{who} delete {node.key}"
    value = (node.value or b"").decode("utf-8", "backslashreplace")
    return f"{who} put {node.key} {value}"


def _lines(db: HyperDB, nodes: Iterable[Node]) -> Iterator[bytes]:
    from jitdb.common.json_text import line_of

    for node in nodes:
        clock = {db.feeds[feed].key.hex(): length for feed, length in enumerate(node.clock) if length}
        yield line_of(
            {"key": node.key, "value": node.value, "deleted": node.deleted, "feed": db.feeds[node.feed].key.hex(),
             "seq": node.seq, "clock": clock}
        )  # fmt: skip


def _line(text: str) -> bytes:
    """One line, with escapes for what does not print; --json writes it exactly."""
    from jitdb.display.cells import printable

    return printable(text).encode() + b"\n"


def _write(lines: Iterable[bytes]) -> None:
    from jitdb.cli.output.output import output

    with output(None, "") as out:
        out.write(lines)
