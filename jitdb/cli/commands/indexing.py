"""The commands about indexes: prepare, indexes, explain."""

from __future__ import annotations

import os
import re
import shlex
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.cli.expressions import expressions_of, is_expression, read_expression, read_question
from jitdb.cli.failures import Failure, UsageError
from jitdb.cli.opening import asked, check_readable, database, each_bundle, each_log, is_many
from jitdb.cli.options import READING, changed, option
from jitdb.cli.output.output import show, show_json, show_lines
from jitdb.cli.output.tables import show_indexes
from jitdb.cli.parser import Show, command
from jitdb.common.words import counted, duration, size_in_words
from jitdb.log.objects.urls import is_url

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.engine.showing.overview import IndexInfo
    from jitdb.log.lines.bundles.bundle import Bundle
    from jitdb.log.lines.kept import Kept
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
    *("log", "expressions", "one_of", "since", "until", "sort", "same", "json", *READING),
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
    "List the index files of a log: the fields of each, what it answers, its size, and whether it is fresh, stale, "
    "damaged, or void (of another log); of several files, a folder, or objects of a store (s3://bucket), what is kept "
    "of each. --drop deletes some to free their space; --forget deletes all that is kept. Programs that use them go "
    "on, and questions rebuild what they need.",
    [
        ("indexes events.log", "list them"),
        ("indexes logs", "what is kept of the files of a folder, also of those that are gone"),
        ("indexes events.log --drop 'status > 0' 'level == \"error\"'", "drop the indexes of these questions"),
        ("indexes logs --forget", "leave nothing of these files beside them"),
    ],
    *("log", "more_logs"),
    option(
        "--drop WHICH",
        "drop these: an index or file by its name in the list, the indexes of a field, or those of a question",
        nargs="+",
        action="extend",
        default=[],
    ),
    option(
        "--forget",
        "delete all indexes, also damaged ones and those of files that are gone; of files that others write all that "
        "is kept of them, sets under names, too",
    ),
    *("json", *READING),
)
def indexes(options: Namespace) -> int:
    """List them, or drop some and say which; of many logs one after the other."""
    if options.drop and options.forget:
        raise UsageError("indexes: --forget deletes what --drop names, too", "leave one of them out")
    if options.indexes == "none":
        raise UsageError("indexes: --indexes none means that there are no files", "name the folder that they are in")
    from jitdb.log.lines.kept import forget, kept

    places = [] if options.indexes else [options.log, *options.more_logs]
    of_files = forget(places) if options.forget else kept(places)
    is_elsewhere = is_url(options.log) and not options.drop
    if is_elsewhere and not of_files and not options.forget:
        show(f"nothing is kept of {options.log}")
    if is_elsewhere or (of_files and not _has_logs(options)):
        _show_kept(of_files, {}, options)
        return 0
    paths = {each.path for each in of_files}
    if not is_many(options):
        check_readable(options)
        found = _done(options, paths)
        if options.json:
            show_json(found.as_dict())
        else:
            _show(found, options)
            _show_kept(of_files, {options.log: found}, options)
        return 0
    every = [*each_log(options), *each_bundle(options)]
    all_found = _drop_by_name(options, every) if options.drop else {each.log: _done(each, paths) for each in every}
    if options.json:
        show_json({path: found.as_dict() for path, found in all_found.items()})
    else:
        _show_all(all_found, options, [each.bundle for each in every if "bundle" in each])
        _show_kept(of_files, all_found, options)
    return 0


def _has_logs(options: Namespace) -> bool:
    from jitdb.logset.member import find_members

    return os.path.isfile(options.log) or (is_many(options) and bool(find_members([options.log, *options.more_logs])))


def _show_kept(of_files: list[Kept], all_found: dict[str, _Done], options: Namespace) -> None:
    """Say what is kept of files that others write, or that it is forgotten."""
    if options.json or options.drop or (options.quiet and options.forget):
        return
    is_nothing = options.forget and not of_files and not any(found.dropped for found in all_found.values())
    if is_nothing:
        show("there was nothing to forget")
    if not of_files:
        return
    size = size_in_words(sum(each.bytes for each in of_files))
    if options.forget:
        sets = sum(each.sets for each in of_files)
        also = f", {counted(sets, 'set', 'sets')} under names with it" if sets else ""
        show(f"forgot what was kept of {_counted_files(of_files)}{also}: {size} given back")
        return
    for each in sorted(of_files, key=lambda each: -each.bytes)[:_LISTED]:
        show(f"{_what_it_is(each)}: {size_in_words(each.bytes)}, in {os.path.relpath(each.folder)}")
    if len(of_files) > 1:
        show(f"what is kept of {_counted_files(of_files)} takes {size}")


_LISTED: Final = 20
_VERSION: Final = re.compile("-v[0-9a-f]{8}$")  # of a format, in the names of folders


def _counted_files(of_files: list[Kept]) -> str:
    gone = sum(each.is_gone for each in of_files if not each.files)
    count = len({each.path for each in of_files if not each.files} | {
        os.path.join(each.path, name) for each in of_files for name in each.files
    })  # fmt: skip
    return counted(count, "file", "files") + (f", {gone:,} of them gone" if gone else "")


def _what_it_is(each: Kept) -> str:
    if each.files:
        what = f"{len(each.files)} small files of {os.path.relpath(each.path)}"
        return f"{what}, some changed since" if each.is_gone else what
    form = f" ({_VERSION.sub('', each.form)})" if each.form else ""
    path = each.path if is_url(each.path) else os.path.relpath(each.path)
    return f"{path}{form}" + (", a file that is gone" if each.is_gone else "")


class _Done(NamedTuple):
    """The folder, the indexes in it now, and those that were dropped."""

    folder: str
    indexes: Sequence[IndexInfo]
    dropped: Sequence[IndexInfo]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = {name: [row.as_dict() for row in getattr(self, name)] for name in ("indexes", "dropped")}
        return {"folder": self.folder, **rows}


def _done(options: Namespace, of_files: Collection[str]) -> _Done:
    """List the indexes of one log, and drop what the options say.

    of_files: the files that others write of which something is kept in the usual place. Of no other file that others
              write there is anything, and to open it would keep something.
    """
    from jitdb.log.any_log import is_of_others
    from jitdb.log.io.filenames import log_path

    is_elsewhere, is_kept = options.indexes or "bundle" in options, str(log_path(options.log)) in of_files
    if not is_elsewhere and (options.forget or not is_kept) and is_of_others(options.log):
        return _Done("", (), ())
    from jitdb.log.lines.keeping.leaving import erase
    from jitdb.log.source import MaintainedSource

    with database(options) as db:
        rows = db.indexes().rows
        names = _drop(db, options, rows) if options.drop or options.forget else ()
        left = db.indexes().rows if names else rows
        if options.forget and not isinstance(db.log, MaintainedSource):
            erase(db.log.sidecar)  # in a folder of the user's choice
    return _Done(str(db.folder), left, [row for row in rows if row.file in names])


def _show(found: _Done, options: Namespace) -> None:
    if not options.drop and not options.forget:
        show_indexes(found.indexes, with_files=True)
    elif not options.quiet and (found.dropped or options.drop):
        for row in found.dropped:
            show(f"dropped {row['file']}")
        _show_dropped(found.dropped)


def _show_all(all_found: dict[str, _Done], options: Namespace, bundles: list[Bundle]) -> None:
    """What was dropped in all; or a line for each index, with the sums of all logs, then of all bundles."""
    if options.drop or options.forget:
        dropped = [row for found in all_found.values() for row in found.dropped]
        if not options.quiet and (dropped or options.drop):
            _show_dropped(dropped)
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
        found[each.log] = _done(each, {os.path.realpath(each.log)})
    return found


def _drop(db: JITDB, options: Namespace, rows: Sequence[IndexInfo]) -> tuple[str, ...]:
    """Drop the named indexes and return their files. Raises Failure, and drops nothing, for a wrong name."""
    from jitdb.errors import QueryError
    from jitdb.indexes.files.folder import known_indexes
    from jitdb.log.io import osfile

    which: list[Any] = list(known_indexes(osfile.fs, db.folder)) if options.forget else []
    for text in options.drop:
        files = [row.file for row in rows if text == row.name]
        which += files or [read_expression(text) if is_expression(text) else text]
    try:
        return db.drop_index(*which) if which else ()
    except QueryError as error:
        raise Failure(error.reason, f"jitdb indexes {shlex.quote(options.log)}") from error
