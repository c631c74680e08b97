"""What each command answers in a notebook: the value that the method of its name gives in Python."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.cursor_files import check_as_of
from jitdb.cli.expressions import field_and_expression, one_expression
from jitdb.cli.failures import UsageError
from jitdb.engine.database import JITDB
from jitdb.operators.summaries.asked import SERIES

if TYPE_CHECKING:
    from jitdb.logset import LogSet
    from jitdb.operators import Operation, Query

_ROWS: Final = 20  # that are shown, unless --limit says otherwise


class Wanted:
    """An answer that is to be shown, or kept: `is_kept` asks for all of it where no limit was said."""

    def __init__(self, db: JITDB | LogSet, options: Namespace, is_kept: bool) -> None:
        self.db, self.options = db, options
        self.rows: int | None = options.limit if "limit" in options else None
        self.rows = self.rows or (None if is_kept else _ROWS)

    def query(self, operation: Operation | None) -> Query:
        """The records that are asked about. Raises Failure for a place that the log does not have."""
        query = self.db.query(operation)
        if self.options.as_of is None:
            return query
        if not isinstance(self.db, JITDB):
            raise UsageError("--as-of is about one log, and these are several", "name one log, or leave it out")
        check_as_of(self.db.log, self.options.as_of)
        return query.as_of(self.options.as_of)


def _count(asked: Wanted) -> int:
    from jitdb.cli.output.notes import note_missing, note_times

    operation = one_expression(asked.options)
    found = asked.query(operation).count()
    note_missing(asked.db, operation, asked.options, is_empty=not found)
    note_times(asked.db, operation, asked.options, ordered=False)
    return found


def _query(asked: Wanted) -> Any:
    from jitdb.cli.commands.asking.query import check_sort, settings_of
    from jitdb.cli.output.notes import note_missing, note_order, note_sorted, note_times, note_unknown_columns
    from jitdb.cli.output.passages import wants_context

    options, db = asked.options, asked.db
    if options.output:
        return _written(options)
    operation = one_expression(options)
    if wants_context(options) or options.text:
        raise UsageError("what stands around records, and --text, are for a shell", "in Python: db.query(…).context(…)")
    if options.format != "auto":
        raise UsageError("query: --format is of a file: say -o FILE, or keep the records: rows << …")
    check_sort(options)
    asked.query(None)  # is there such a place?
    settings = settings_of(options)
    if options.offsets:
        settings["as_offsets"] = True
    if options.fields:
        settings["select"] = options.fields
    if not options.sort:
        note_order(db, operation, options)
    limit = asked.rows or max(db.count(operation, as_of=options.as_of), 1)
    page = db.paginate(operation, limit=limit, **settings)
    note_missing(db, operation, options, is_empty=not page.total)
    if options.sort and page.total:
        note_sorted(db, operation, options)
    if page.data:
        unseen = [path for name, path in page.select or () if not any(name in row for row in page)]
        note_unknown_columns(db, unseen, options)
    note_times(db, operation, options, ordered=not options.arrival and not options.sort)
    return page


def _written(options: Namespace) -> None:
    """Write the records into a file, as the shell does."""
    from jitdb.cli.commands.asking.query import run

    run(options)
    print(f"written: {options.output}")


def _values(asked: Wanted) -> Any:
    from jitdb.cli.commands.counting.asked import note_nothing
    from jitdb.operators.nodes.field_ref import as_path

    field, operation = field_and_expression(asked.options)
    paths = [as_path("values", path) for path in (field, *asked.options.by)]
    query = asked.query(operation)
    several = len(paths) > 1
    counts = query.group_count(*paths, limit=asked.rows) if several else query.value_counts(paths[0], limit=asked.rows)
    empty = paths if counts.missing == counts.total else []
    note_nothing(asked.db, operation, asked.options, counts.total, empty)
    return counts


def _timeline(asked: Wanted) -> Any:
    from jitdb.cli.commands.counting.asked import note_nothing
    from jitdb.cli.output.notes import note_times

    options = asked.options
    operation = one_expression(options)
    line = asked.query(operation).timeline(
        every=options.every, by=options.by, limit=options.limit or SERIES, tz=options.tz
    )
    note_nothing(asked.db, operation, options, line.total, ())
    note_times(asked.db, operation, options, ordered=True)
    return line


def _stats(asked: Wanted) -> Any:
    from jitdb.cli.commands.counting.asked import note_no_numbers, note_nothing
    from jitdb.operators.nodes.field_ref import as_path

    field, operation = field_and_expression(asked.options)
    path, by, quantiles = as_path("stats", field), asked.options.by, asked.options.quantiles
    query = asked.query(operation)
    if by is not None:
        return query.stats_by(path, by, limit=asked.rows, quantiles=quantiles)
    stats = query.stats(path, quantiles=quantiles)
    note_nothing(asked.db, operation, asked.options, stats.total, ())
    if stats.total and not stats.count:
        note_no_numbers(asked.db, path, asked.options)
    return stats


def _histogram(asked: Wanted) -> Any:
    from jitdb.cli.commands.counting.asked import note_no_numbers, note_nothing
    from jitdb.operators.nodes.field_ref import as_path

    field, operation = field_and_expression(asked.options)
    path = as_path("histogram", field)
    found = asked.query(operation).histogram(path, bins=asked.options.bins)
    note_nothing(asked.db, operation, asked.options, found.total, ())
    if found.total and not found.rows:
        note_no_numbers(asked.db, path, asked.options)
    return found


def _fields(asked: Wanted) -> Any:
    return asked.db.fields(None if asked.options.all else asked.options.sample)


def _explain(asked: Wanted) -> Any:
    from jitdb.cli.commands.indexing.explain import question_of

    return asked.db.explain(question_of(asked.db, one_expression(asked.options), asked.options))


ANSWERS: Final[dict[str, Callable[[Wanted], Any]]] = {
    "query": _query,
    "count": _count,
    "values": _values,
    "timeline": _timeline,
    "stats": _stats,
    "histogram": _histogram,
    "fields": _fields,
    "explain": _explain,
}


OF_A_FIELD: Final = frozenset({"values", "stats", "histogram"})  # whose first operand it is


def answer(db: JITDB | LogSet, options: Namespace, is_kept: bool) -> Any:
    """What the command of these options gives. Raises UsageError, Failure, JitdbError."""
    if options.command != "query" and getattr(options, "format", "table") != "table":
        raise UsageError(
            f"{options.command}: --format is for a shell; here the answer is a value", "keep it: name << …"
        )
    return ANSWERS[options.command](Wanted(db, options, is_kept))
