"""What each command answers in a notebook: the value that the method of its name gives in Python."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.commands import module_of
from jitdb.cli.expressions import field_and_expression, one_expression
from jitdb.cli.failures import UsageError
from jitdb.cli.output.sheet import TABLE_ROWS

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase

_LIMITED: Final = frozenset({"query", "values", "stats"})  # a timeline's limit is one of its series


def _count(db: AnyDatabase, options: Namespace) -> int:
    from jitdb.cli.commands.asking.count import note_count

    operation = one_expression(options)
    found = db.count(operation, as_of=options.as_of)
    note_count(db, operation, options, found)
    return found


def _query(db: AnyDatabase, options: Namespace) -> Any:
    from jitdb.cli.commands.asking.query import check_sort
    from jitdb.cli.output.fields import note_unseen, settings_of
    from jitdb.cli.output.notes import note_answer, note_order
    from jitdb.cli.output.passages import wants_context

    if options.output:
        return _written(options)
    operation = one_expression(options)
    if wants_context(options) or options.text:
        raise UsageError("what stands around records, and --text, are for a shell", "in Python: db.query(…).context(…)")
    if options.format != "auto":
        raise UsageError("query: --format is of a file: say -o FILE, or keep the records: rows << …")
    check_sort(options)
    settings = settings_of(options)
    if options.offsets:
        settings["as_offsets"] = True
    if options.fields:
        settings["select"] = options.fields
    note_order(db, operation, options)
    limit = options.limit or max(db.count(operation, as_of=options.as_of), 1)
    page = db.paginate(operation, limit=limit, **settings)
    note_unseen(db, page.data, dict(page.select or ()), options)
    note_answer(db, operation, options, is_empty=not page.total)
    return page


def _written(options: Namespace) -> None:
    from jitdb.cli.commands.asking.query import run

    run(options)
    print(f"written: {options.output}")


def _of_a_field(db: AnyDatabase, options: Namespace) -> Any:
    """Values, stats, histogram: what their commands answer."""
    from jitdb.cli.commands.counting.counted_question import Question

    path, operation = field_and_expression(options)
    return module_of(options.command).answer(Question(db, operation, options, _shows_itself), path)


def _timeline(db: AnyDatabase, options: Namespace) -> Any:
    from jitdb.cli.commands.counting import timeline
    from jitdb.cli.commands.counting.counted_question import Question

    return timeline.answer(Question(db, one_expression(options), options, _shows_itself))


def _shows_itself(answer: object) -> None:
    """The cell shows it."""


def _fields(db: AnyDatabase, options: Namespace) -> Any:
    return db.fields(None if options.all else options.sample)


def _explain(db: AnyDatabase, options: Namespace) -> Any:
    from jitdb.cli.commands.indexing.explain import question_of

    return db.explain(question_of(db, one_expression(options), options))


ANSWERS: Final[dict[str, Callable[[Any, Namespace], Any]]] = {
    "query": _query,
    "count": _count,
    "values": _of_a_field,
    "timeline": _timeline,
    "stats": _of_a_field,
    "histogram": _of_a_field,
    "fields": _fields,
    "explain": _explain,
}
OF_A_FIELD: Final = frozenset({"values", "stats", "histogram"})  # whose first operand it is


def answer(db: AnyDatabase, options: Namespace, is_kept: bool) -> Any:
    """What the command of these options gives; all of it where it is kept, unless --limit says otherwise.

    Raises UsageError, Failure, JitdbError.
    """
    if options.command != "query" and getattr(options, "format", "table") != "table":
        raise UsageError(
            f"{options.command}: --format is for a shell; here the answer is a value", "keep it: name << …"
        )
    if options.command in _LIMITED and not is_kept:
        options.limit = options.limit or TABLE_ROWS
    return ANSWERS[options.command](db, options)
