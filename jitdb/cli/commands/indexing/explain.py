"""`jitdb explain`: which indexes a question is answered from, and what must be read for it."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jitdb.cli.expressions import one_expression
from jitdb.cli.opening import asked
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.parser import Parser
from jitdb.common.words import counted, size_in_words
from jitdb.display.cells import printable
from jitdb.operators.nodes.sort_key import sort_keys

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.logset import LogSet
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
        told = db.explain(_question(db, operation, options))
    if options.json:
        print(json.dumps(told, indent=2))
    else:
        print("\n".join(map(printable, _lines(told))))
    return 0


def _question(db: JITDB | LogSet, operation: Operation | None, options: Namespace) -> Question:
    """Raises QueryError."""
    from jitdb.operators.parts import context

    question = db.query(operation).question
    if options.sort:
        question = question.changed(sort_by=sort_keys("--sort", options.sort))
    return question.changed(around=context(same=options.same).value) if options.same else question


def _lines(told: dict[str, Any]) -> Iterator[str]:
    logs = told.get("logs")
    yield from _of_one(told["indexes"]) if logs is None else _of_many(logs)
    scan, whole = told["scan_bytes"], told["log_bytes"]
    what, of_which = ("one scan", "the log") if logs is None else ("scans", "these logs")
    if scan:
        part = f"all of {of_which}" if scan == whole else f"of {size_in_words(whole)}"
        yield f"{what} of {size_in_words(scan)}, {part}, to build what is missing"
    else:
        yield "nothing is to be scanned"
    if told["candidates"]:
        candidates = counted(told["candidates"], "candidate is", "candidates are")
        yield f"{candidates} looked at, in at most {size_in_words(told['confirm_bytes'])} of the log"
    if told.get("skipped"):
        yield f"{counted(told['skipped'], 'other log is', 'other logs are')} not opened: nothing there can match"


def _of_one(indexes: list[dict[str, Any]]) -> Iterator[str]:
    for index in _by_question(indexes):
        state = index["state"]
        if state == "stale":
            state = f"{size_in_words(index['stale_bytes'])} behind the log"
        size = f"{counted(index['records'], 'record', 'records')}, {size_in_words(index['bytes'])}"
        yield f"{_about(index)}: " + ("not there yet" if state == "missing" else f"{size}, {state}")


def _of_many(logs: dict[str, dict[str, Any]]) -> Iterator[str]:
    """An index a line, with how many logs have it in which state."""
    states: dict[str, Counter[str]] = {}
    for told in logs.values():
        for index in _by_question(told["indexes"]):
            states.setdefault(_about(index), Counter())[index["state"]] += 1
    for about, counts in states.items():
        told_of = ", ".join(f"{number:,} {state}" for state, number in sorted(counts.items()))
        yield f"{about}: of {counted(counts.total(), 'log', 'logs')}, {told_of}"


def _by_question(indexes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the question first, then those that every answer needs."""
    return sorted(indexes, key=lambda index: index["form"] in ("offsets", "deleted"))


def _about(index: dict[str, Any]) -> str:
    from jitdb.cli.output.index_list import FORMS, USES

    return f"{index['name']} ({USES[FORMS[index['form']]]})"
