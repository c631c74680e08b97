"""`jitdb explain`: which indexes a question is answered from, and what must be read for it."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from jitdb.cli.expressions import one_expression
from jitdb.cli.opening import asked
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.output.output import show_json, show_lines
from jitdb.cli.parser import Parser
from jitdb.operators.nodes.sorting import sort_keys
from jitdb.operators.question import Context

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation
    from jitdb.operators.question import Question

PARSER = Parser(
    "explain",
    "LOG [EXPR] [options]",
    "Tell how a question would be answered: which indexes it needs, which of these are fresh, and how much of the log "
    "one scan must read to bring the others up to date. Nothing is built.",
    [
        ("explain events.log 'level == \"error\" and status > 500'", "before a long first question"),
        ("explain events.log 'level == \"error\"' --json", "for programs"),
        ("explain logs 'level == \"error\"'", "of all files of a folder"),
    ],
)
PARSER.take("log", "expressions", "since", "until", "sort", "same", "json", *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Print the plan."""
    operation = one_expression(options)
    with asked(options) as db:
        told = db.explain(question_of(db, operation, options))
    if options.json:
        show_json(told.as_dict())
    else:
        show_lines(str(told))
    return 0


def question_of(db: AnyDatabase, operation: Operation | None, options: Namespace) -> Question:
    """Raises QueryError."""
    question = db.query(operation).question
    if options.sort:
        question = question.changed(sort_by=sort_keys("--sort", options.sort))
    return question.changed(context=Context.around(same=options.same)) if options.same else question
