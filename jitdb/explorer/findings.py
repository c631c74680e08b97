"""What is different about some records: those of a stretch of time, of the question, or of it against another one; and
what their messages look like.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

from jitdb.common.paths import format_path, parse_path
from jitdb.explorer.guard import Refused
from jitdb.explorer.look import extent, of_all, step_of
from jitdb.explorer.refining import condition_text, together
from jitdb.explorer.session import Asked, Session, number, optional_text
from jitdb.explorer.steps import nanoseconds
from jitdb.explorer.view import View
from jitdb.operators.completing import quoted
from jitdb.operators.nodes.operation import EVERYTHING, Operation
from jitdb.operators.summaries.exploring.findings import Finding
from jitdb.operators.text.expression import parse_expression

Part = dict[str, Any]

_MOST_PATTERNS: Final = 1000


def why(session: Session, body: dict[str, Any], cancel: threading.Event) -> Iterator[Part]:
    """What the records have more often than others.

    from, to: the records of this time, against the others of the question
    against:  those of the question, against those of which this is true; without it all others of the same time

    Raises Refused, QueryError, LogError.
    """
    begun = time.perf_counter()
    asked = Asked.of(body)
    if asked.as_of is None:
        asked = asked._replace(as_of=session.now())
    view = View(session, session.db, asked, body, cancel)
    low, high, other = (optional_text(body, name) for name in ("from", "to", "against"))
    query, fields = view.query(), session.sampled.facet_fields
    if low is not None and high is not None:
        against: Operation | None = query.question.operation
        query = query.since(low).until(high)
    elif other is not None:
        against = within(view, parse_expression(other))
    elif not asked.where:
        raise Refused(HTTPStatus.BAD_REQUEST, "of all records nothing is different: ask a question, or choose a time")
    else:
        against = None if asked.since is None and asked.until is None else within(view, EVERYTHING)
    found = query.difference(against=against, fields=fields)  # type: ignore[arg-type]  # FacetFields say all of it
    yield {
        "part": "why", "here": found.matching, "there": found.others, "compared": found.compared,
        "ms": round(1e3 * (time.perf_counter() - begun), 1), "left": list(map(format_path, found.asked)),
        "findings": list(map(finding_of, found)),
        "groups": [
            {
                "here": group.here, "share": group.share, "other": group.other_share,
                "said": list(map(str, group.findings)), "where": joined(group.findings),
            }
            for group in found.together
        ],
    }  # fmt: skip


def patterns(session: Session, body: dict[str, Any], cancel: threading.Event) -> Iterator[Part]:
    """The patterns of a field's texts, the most frequent first, and when they come: in the steps of the timeline.

    Raises Refused, QueryError, LogError.
    """
    asked = Asked.of(body)
    if asked.as_of is None:
        asked = asked._replace(as_of=session.now())
    view = View(session, session.db, asked, body, cancel)
    field, limit = optional_text(body, "field"), number(body, "limit", 100, _MOST_PATTERNS)
    whole = of_all(view, "extent", lambda: extent(view))
    every = None if whole is None else step_of(view, whole).text
    path = None if field is None else parse_path(field)
    found = view.query().patterns(field=path, limit=max(1, limit), every=every)
    name = format_path(found.path)
    rows = [
        {"text": row.pattern, "count": row.count, "counts": row.counts, "where": f"{name} fits {quoted(row.pattern)}"}
        for row in found
    ]
    starts = [nanoseconds(start) / 1e6 for start in found.starts]
    about = {"field": name, "total": found.total, "missing": found.missing, "distinct": found.distinct}
    yield {"part": "patterns", **about, "starts": starts, "rows": rows}


def within(view: View, operation: Operation) -> Operation:
    """Those records that are of the time of the question."""
    query = view.session.db.query(operation)
    asked = view.asked
    query = query if asked.since is None else query.since(asked.since)
    return (query if asked.until is None else query.until(asked.until)).question.operation


def finding_of(row: Finding) -> Part:
    """A finding as the page has it."""
    return {
        "field": format_path(row.path), "what": row.what, "here": row.here, "share": row.share,
        "other": row.other_share, "same": list(map(str, row.same_as)), "where": condition_text(row.operation),
    }  # fmt: skip


def joined(findings: tuple[Finding, ...]) -> str:
    """The question for the records that have all of them."""
    text = ""
    for finding in findings:
        text = together(text, condition_text(finding.operation))
    return text
