"""`jitdb indexes`: the index files beside a log, and how to be rid of some."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jitdb.cli.expressions import is_expression, read_expression
from jitdb.cli.failures import Failure, UsageError
from jitdb.cli.opening import database, each_bundle, each_log, is_many
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.output.output import show, show_json
from jitdb.cli.parser import Parser
from jitdb.common.words import counted, size_in_words

if TYPE_CHECKING:
    from pathlib import Path

    from jitdb.engine.database import JITDB
    from jitdb.engine.showing.listing import IndexInfo
    from jitdb.log.lines.bundles.bundle import Bundle

PARSER = Parser(
    "indexes",
    "LOG [options]",
    "List the index files beside a log: what each is about and answers, how much it knows and takes, and whether it is "
    "fresh, stale, damaged, or void, being that of another log. With --drop or --drop-all remove them, to give "
    "their room back; whoever uses them goes on, and questions build anew what they need.",
    [
        ("indexes events.log", "what there is"),
        ("indexes events.log --json | python -m json.tool", "for programs"),
        ("indexes events.log --drop 'status > 0' 'level == \"error\"'", "those of questions that nobody asks any more"),
        ("indexes events.log --drop-all", "all, those too that are damaged or of another log"),
    ],
)
PARSER.take("log", "more_logs")
dropped = PARSER.add_mutually_exclusive_group()
dropped.add_argument(
    "--drop", metavar="WHICH", nargs="+", action="extend", default=[],
    help="remove these: an index or a file, by the name that the list gives it; those of a field; or those that a "
    "question, between quotes, is answered from",
)  # fmt: skip
dropped.add_argument("--drop-all", action="store_true",
    help="remove all index files, whatever their state, and those of files of a folder that are there no more",
)  # fmt: skip
PARSER.take("json", *READING, *GENERAL)


def run(options: Namespace) -> int:
    """List them, or drop some and say which; of many logs one after the other."""
    if options.indexes == "none":
        raise UsageError("indexes: --indexes none means that there are no files", "name the folder that they are in")
    left = _leftovers(options)
    if left and not options.json and not options.drop and not _has_logs(options):
        _tell_leftovers(left, options)
        return 0
    if not is_many(options):
        found = _done(options)
        if options.json:
            show_json(found.as_dict())
        else:
            _show(found, options)
        return 0
    every = [*each_log(options), *each_bundle(options)]
    all_found = _drop_by_name(options, every) if options.drop else {each.log: _done(each) for each in every}
    if options.json:
        show_json({path: found.as_dict() for path, found in all_found.items()})
    else:
        _show_all(all_found, options, [each.bundle for each in every if "bundle" in each])
    _tell_leftovers(left, options)
    return 0


def _leftovers(options: Namespace) -> list[Path]:
    """What was left beside the logs of files that are there no more."""
    from jitdb.log.lines.keeping.leftover import leftovers

    places = [] if options.indexes else [options.log, *options.more_logs]
    return list(dict.fromkeys(found for place in places for found in leftovers(place)))


def _has_logs(options: Namespace) -> bool:
    from jitdb.logset.members.finding import find_members

    return os.path.isfile(options.log) or (is_many(options) and bool(find_members([options.log, *options.more_logs])))


def _tell_leftovers(left: list[Path], options: Namespace) -> None:
    """Of files that are there no more: say how many have left indexes; with --drop-all remove these."""
    if not left:
        return
    from jitdb.log.io import osfile
    from jitdb.log.lines.keeping.leftover import size_of

    size = size_in_words(sum(map(size_of, left)))
    if options.drop_all:
        for sidecar in left:
            osfile.fs.remove(sidecar)
    if options.json or options.quiet or options.drop:
        return
    files = counted(len(left), "file that is", "files that are")
    done = "given back" if options.drop_all else "which --drop-all gives back"
    show(f"indexes of {files} there no more: {size}, {done}")


class _Done(NamedTuple):
    """The folder, the indexes in it now, and those that were dropped: as jitdb.engine.showing.listing tells of them."""

    folder: str
    indexes: Sequence[IndexInfo]
    dropped: Sequence[IndexInfo]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = {name: [row.as_dict() for row in getattr(self, name)] for name in ("indexes", "dropped")}
        return {"folder": self.folder, **rows}


def _done(options: Namespace) -> _Done:
    from jitdb.log.lines.bundles.finding import remove

    with database(options) as db:
        rows = db.indexes().rows
        names = _drop(db, options, rows) if options.drop or options.drop_all else ()
        left = db.indexes().rows if names else rows
    if options.drop_all and "bundle" in options:
        remove(options.bundle)
    return _Done(str(db.folder), left, [row for row in rows if row.file in names])


def _show(found: _Done, options: Namespace) -> None:
    from jitdb.cli.output.index_list import show_indexes

    if not options.drop and not options.drop_all:
        show_indexes(found.indexes, with_files=True)
    elif not options.quiet:
        for row in found.dropped:
            show(f"dropped {row['file']}")
        _show_dropped(found.dropped)


def _show_all(all_found: dict[str, _Done], options: Namespace, bundles: list[Bundle]) -> None:
    """What was dropped in all; or the list, an index a line, with what all logs have of it, and all bundles."""
    if options.drop or options.drop_all:
        if not options.quiet:
            _show_dropped([row for found in all_found.values() for row in found.dropped])
        return
    together = {str(bundle.place): bundle for bundle in bundles}
    for is_bundle, words in ((False, ("log", "logs")), (True, ("bundle of small files", "bundles of small files"))):
        by_name: dict[str, list[IndexInfo]] = {}
        for path, found in all_found.items():
            for row in found.indexes if (path in together) == is_bundle else ():
                by_name.setdefault(row.name, []).append(row)
        for name, rows in sorted(by_name.items()):
            states = Counter(row.state for row in rows)
            told = ", ".join(f"{number:,} {state}" for state, number in sorted(states.items()))
            size = size_in_words(sum(row.bytes for row in rows))
            show(f"{name}: of {counted(len(rows), *words)}, {size}, {told}")
    bundled = {path for bundle in bundles for path in bundle.paths()}
    without = {path for path, found in all_found.items() if not found.indexes and path not in together}
    none = sum(os.path.realpath(path) not in bundled for path in without)
    if none:
        show(f"{counted(none, 'log has', 'logs have')} no indexes yet: the first question makes them")


def _show_dropped(rows: Sequence[IndexInfo]) -> None:
    size = size_in_words(sum(row.bytes for row in rows))
    show(f"{counted(len(rows), 'index', 'indexes')}, {size} given back" if rows else "there was nothing to drop")


def _drop_by_name(options: Namespace, every: list[Namespace]) -> dict[str, _Done]:
    """Remove what is meant in each log that has it. Raises Failure, and removes nothing, for what none has."""
    from jitdb.common.spelling import nearest

    names: dict[str, set[str]] = {}
    for each in every:
        with database(each) as db:
            names[each.log] = {text for row in db.indexes() for text in (row.name, row.file, *row.name.split(", "))}
    known = set().union(*names.values())
    for text in options.drop:
        if text not in known and not is_expression(text):
            near = nearest(text, known)
            meant = f"; did you mean {near!r}?" if near else ""
            raise Failure(f"no log has an index of {text!r}{meant}", f"jitdb indexes {shlex.quote(options.log)}")
    found = {}
    for each in every:
        each.drop = [text for text in options.drop if text in names[each.log] or is_expression(text)]
        found[each.log] = _done(each)
    return found


def _drop(db: JITDB, options: Namespace, rows: Sequence[IndexInfo]) -> tuple[str, ...]:
    """Remove what is meant, and give the names of the files. Raises Failure, and removes nothing, for a wrong name."""
    from jitdb.errors import QueryError
    from jitdb.indexes.files.folder import known_indexes
    from jitdb.log.io import osfile

    which: list[Any] = list(known_indexes(osfile.fs, db.folder)) if options.drop_all else []
    for text in options.drop:
        files = [row.file for row in rows if text == row.name]
        which += files or [read_expression(text) if is_expression(text) else text]
    try:
        return db.drop_index(*which) if which else ()
    except QueryError as error:
        raise Failure(error.reason, f"jitdb indexes {shlex.quote(options.log)}") from error
