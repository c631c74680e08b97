"""What the commands that count have in common: the query of their options, and what is said of none."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jitdb.cli.failures import say
from jitdb.cli.output.notes import note_missing, note_unknown_columns
from jitdb.common.paths import format_path

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.database import JITDB
    from jitdb.logset import LogSet
    from jitdb.operators import Operation, Query


def asked_query(db: JITDB | LogSet, operation: Operation | None, options: Namespace) -> Query:
    """The records that are asked about. Raises Failure for a place that the log does not have."""
    query = db.query(operation)
    if options.as_of is None:
        return query
    from jitdb.cli.cursor_files import check_as_of
    from jitdb.engine.database import JITDB

    assert isinstance(db, JITDB)  # of several logs there is no such place
    check_as_of(db.log, options.as_of)
    return query.as_of(options.as_of)


def note_no_numbers(db: JITDB | LogSet, path: Path, options: Namespace) -> None:
    """No record has a number there: say what they have instead, or that they have no such field."""
    name = format_path(path)
    kinds = next((field.kinds for field in db.fields() if field.path == path), None)
    if kinds is None:
        note_unknown_columns(db, [path], options)
    elif not options.quiet:
        other = "timeline" if path in db.declared_time else "values"
        say(f"jitdb: `{name}` holds no numbers but {' and '.join(kinds)}: `jitdb {other}` counts them")


def note_others(db: JITDB | LogSet, path: Path, options: Namespace) -> None:
    """Some records have numbers there: say whether others have something else."""
    from jitdb.operators import gt

    if not options.quiet and db.remarks(db.query(gt(0, path)).sort_by_arrival().question):
        name = format_path(path)
        say(f"jitdb: some values of `{name}` are no numbers, and left out here: `jitdb values` counts them, too")


def note_nothing(
    db: JITDB | LogSet, operation: Operation | None, options: Namespace, total: int, empty: Iterable[Path]
) -> None:
    """Say which fields of the question no record has, and why there is nothing: none matched, or had such a field."""
    note_missing(db, operation, options, is_empty=not total)
    if total:
        note_unknown_columns(db, empty, options)
