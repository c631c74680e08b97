"""The commands about indexes: prepare, indexes, explain."""

from __future__ import annotations

import os
import shlex
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jitdb.cli.expressions import expressions_of, is_expression, read_expression, read_question
from jitdb.cli.failures import Failure, UsageError
from jitdb.cli.opening import asked, database, each_bundle, each_log, is_many
from jitdb.cli.options import READING, changed, option
from jitdb.cli.output.output import show, show_json, show_lines
from jitdb.cli.output.tables import show_indexes
from jitdb.cli.parser import Show, command
from jitdb.common.words import counted, duration, size_in_words

if TYPE_CHECKING:
    from pathlib import Path

    from jitdb.engine.database import JITDB
    from jitdb.engine.showing.overview import IndexInfo
    from jitdb.log.lines.bundles.bundle import Bundle
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation


@command(
    "LOG EXPR... [options]",
    "Build the indexes of these questions, reading the log once for all of them. Questions do so by themselves; this "
    "makes the first one fast, too.",
    [
        ("prepare events.log 'level == \"error\"' 'user.name == \"ada\"' 'status > 0'", "three fields, one scan"),
        ("prepare logs 'level == \"error\"'", "all files of a folder"),
        ("prepare events.log 'level is absent' --threads 1", "in the background, using one core"),
    ],
    "log",
    changed("expressions", "a question, in quotes; the value in it does not matter", nargs="+"),
    *READING,
)
def prepare(options: Namespace) -> int:
    operations = expressions_of(options)
    begin = time.perf_counter()
    with asked(options) as db:
        pending = max(db.explain(operation)["scan_bytes"] for operation in operations)
        db.prepare(*operations)
        seconds = time.perf_counter() - begin
        rows = [row for operation in operations for row in _rows(db, operation)]
    if not options.quiet:
        if pending:
            show(f"scanned {size_in_words(pending)} in {duration(1e3 * seconds)}")
        else:
            show("nothing to do: the indexes were up to date")
        kept = " (in memory only: they end with this command)" if options.indexes == "none" else ""
        sizes = dict(rows)
        show(f"{counted(len(sizes), 'index', 'indexes')}, {size_in_words(sum(sizes.values()))}{kept}")
    return 0


def _rows(db: AnyDatabase, operation: Operation) -> Iterator[tuple[tuple[str, str], int]]:
    """The indexes of a question, by log and name, and their bytes."""
    told = db.explain(operation)
    for path, one in told["logs"].items() if "logs" in told else [("", told)]:
        for row in one["indexes"]:
            yield (path, row["index"]), row["bytes"]


@command(
    "LOG [EXPR] [options]",
    "Show how a question would be answered: the indexes that it needs, which of them are up to date, and how much of "
    "the log must be scanned for the others. Builds nothing.",
    [
        ("explain events.log 'level == \"error\" and status > 500'", "before a long first question"),
        ("explain events.log 'level == \"error\"' --json", "for programs"),
        ("explain logs 'level == \"error\"'", "all files of a folder"),
    ],
    *("log", "expressions", "since", "until", "sort", "same", "json", *READING),
)
def explain(options: Namespace) -> int:
    read_question(options)
    with asked(options) as db:
        told = explanation(db, options, lambda _: None)
    if options.json:
        show_json(told.as_dict())
    else:
        show_lines(str(told))
    return 0


@explain.answers
def explanation(db: AnyDatabase, options: Namespace, show: Show) -> Any:
    from jitdb.operators.nodes.selection import sort_keys
    from jitdb.operators.question import Context

    question = db.query(options.operation).question
    if options.sort:
        question = question.changed(sort_by=sort_keys("--sort", options.sort))
    if options.same:
        question = question.changed(context=Context.around(same=options.same))
    return db.explain(question)


@command(
    "LOG [options]",
    "List the index files beside a log: the fields of each, what it answers, its size, and whether it is fresh, "
    "stale, damaged, or void (of another log). --drop and --drop-all delete them to free their space. Programs that "
    "use them go on, and questions rebuild what they need.",
    [
        ("indexes events.log", "list them"),
        ("indexes events.log --json | python -m json.tool", "for programs"),
        ("indexes events.log --drop 'status > 0' 'level == \"error\"'", "drop the indexes of these questions"),
        ("indexes events.log --drop-all", "drop all, also damaged and void ones"),
    ],
    *("log", "more_logs"),
    option(
        "--drop WHICH",
        "drop these: an index or file by its name in the list, the indexes of a field, or those of a question",
        nargs="+",
        action="extend",
        default=[],
    ),
    option("--drop-all", "drop all, also those of files of a folder that are gone"),
    *("json", *READING),
)
def indexes(options: Namespace) -> int:
    """List them, or drop some and say which; of many logs one after the other."""
    if options.drop and options.drop_all:
        raise UsageError("indexes: --drop-all drops what --drop names, too", "leave one of them out")
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
    """The index folders of files that are gone."""
    from jitdb.log.lines.keeping.rotation import leftovers

    places = [] if options.indexes else [options.log, *options.more_logs]
    return list(dict.fromkeys(found for place in places for found in leftovers(place)))


def _has_logs(options: Namespace) -> bool:
    from jitdb.logset.member import find_members

    return os.path.isfile(options.log) or (is_many(options) and bool(find_members([options.log, *options.more_logs])))


def _tell_leftovers(left: list[Path], options: Namespace) -> None:
    """Say how many files that are gone have left indexes; with --drop-all remove these."""
    if not left:
        return
    from jitdb.log.io import osfile
    from jitdb.log.lines.keeping.rotation import size_of

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
    """The folder, the indexes in it now, and those that were dropped."""

    folder: str
    indexes: Sequence[IndexInfo]
    dropped: Sequence[IndexInfo]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = {name: [row.as_dict() for row in getattr(self, name)] for name in ("indexes", "dropped")}
        return {"folder": self.folder, **rows}


def _done(options: Namespace) -> _Done:
    from jitdb.log.lines.bundles.bundle import remove

    with database(options) as db:
        rows = db.indexes().rows
        names = _drop(db, options, rows) if options.drop or options.drop_all else ()
        left = db.indexes().rows if names else rows
    if options.drop_all and "bundle" in options:
        remove(options.bundle)
    return _Done(str(db.folder), left, [row for row in rows if row.file in names])


def _show(found: _Done, options: Namespace) -> None:
    if not options.drop and not options.drop_all:
        show_indexes(found.indexes, with_files=True)
    elif not options.quiet:
        for row in found.dropped:
            show(f"dropped {row['file']}")
        _show_dropped(found.dropped)


def _show_all(all_found: dict[str, _Done], options: Namespace, bundles: list[Bundle]) -> None:
    """What was dropped in all; or a line for each index, with the sums of all logs, then of all bundles."""
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
    """Drop the named indexes in each log that has them. Raises Failure, and drops nothing, for an unknown name."""
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
    """Drop the named indexes and return their files. Raises Failure, and drops nothing, for a wrong name."""
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
