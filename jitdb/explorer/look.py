"""What a page shows of a question: how many records, when, which, and what is in them; part after part, at one state.

Where indexes are missing, the same parts of a sample come first, marked as such, and are replaced when the one scan
that all parts need is done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from jitdb.common.paths import Path, format_path, parse_path
from jitdb.common.values import UNDEFINED, value_at
from jitdb.errors import QueryCancelled
from jitdb.explorer.facets import facets, needed, of_all_values
from jitdb.explorer.session import Asked, Session, number, optional_text, texts
from jitdb.explorer.steps import MOST_STEPS, Extent, asked_extent, drawn, extent_of, extent_of_records
from jitdb.explorer.view import View
from jitdb.explorer.wire import level_name, milliseconds, wired
from jitdb.operators.nodes.compare import declared_time
from jitdb.operators.nodes.operation import Operation, Or, combine
from jitdb.operators.summaries.arithmetic.calendar import Step

Part = dict[str, Any]
Known = TypeVar("Known")

PARTS: Final = ("count", "timeline", "records", "facets")
_SERIES: Final = 5  # values that the timeline tells apart
_MOST: Final = 500  # records of a page
_QUICK: Final = 24 << 20  # bytes that are scanned before anybody would have read a sample


def look(session: Session, body: dict[str, Any], cancel: threading.Event) -> Iterator[Part]:
    """The parts that were asked for, in the order of PARTS. Raises Refused, QueryError, LogError."""
    begun = time.perf_counter()
    asked = Asked.of(body)
    wanted = texts(body, "parts") or list(PARTS)
    operation = session.operation(asked)  # what cannot be asked is said before anything else
    if asked.as_of is None:
        asked = asked._replace(as_of=session.now())
    opening, times = session.opening, (asked.since, asked.until)
    yield {
        "part": "question", "parts": wanted, "as_of": "" if asked.as_of is None else str(asked.as_of),
        "title": opening.title(), "command": opening.command(asked.where, *times),
        "python": opening.python(asked.where, *times), "about": session.about(),
    }  # fmt: skip
    view = View(session, session.db, asked, body, cancel)
    missing, size = session.stale(needs_of(view, operation))
    if missing:
        sample = session.sampled if size > _QUICK else None
        if sample is not None and sample.records:
            yield from _parts(view._replace(db=sample.db, sampled=len(sample.records)), wanted)
        yield {"part": "scanning"}
        session.prepare(missing, cancel)
    yield from _parts(view, wanted)
    yield {"part": "done", "parts": wanted, "ms": _since(begun)}


def needs_of(view: View, operation: Operation) -> list[Operation]:
    """Operations that are answered from the indexes that the look will take."""
    by, sampled = by_field(view), view.session.sampled
    soon = needed(sampled.facet_fields.without(sampled.facet_batches[-1]))
    own = [operation, *([of_all_values(by)] if by is not None else [])]
    return [*own, combine(Or, (declared_time > float("-inf"), *soon))]


def _parts(view: View, wanted: list[str]) -> Iterator[Part]:
    makers = {"count": _count, "timeline": _timeline, "records": _records, "facets": facets}
    for name in PARTS:
        for part in makers[name](view) if name in wanted else ():
            if view.cancel.is_set():
                raise QueryCancelled("another question was asked")
            yield {**part, "sampled": view.sampled}


def _since(begun: float) -> float:
    return round(1e3 * (time.perf_counter() - begun), 2)


def of_all(view: View, name: str, find: Callable[[], Known]) -> Known:
    """What does not depend on the question, found once for each state of the log."""
    return find() if view.sampled else view.session.known(view.asked.as_of, name, find)


def _count(view: View) -> Iterator[Part]:
    begun = time.perf_counter()
    count = view.query().count()
    took = _since(begun)
    everything = of_all(view, "count", lambda: view.query(timed=False, where="").count())
    notes = [] if view.sampled else view.session.notes(view.asked, is_empty=not count)
    yield {"part": "count", "count": count, "total": everything, "ms": took, "notes": notes}


# --- when ------------------------------------------------------------------------------------------------------------


def by_field(view: View) -> Path | None:
    """The field whose values the timeline tells apart: the one that was chosen, or the level; none for "-"."""
    chosen = optional_text(view.body, "by")
    if chosen == "-":
        return None
    return view.session.sampled.roles.level if chosen is None else parse_path(chosen)


def extent(view: View) -> Extent | None:
    """From when to when all records are."""
    rough = extent_of(view.query(timed=False, where="").timeline())
    return rough and extent_of_records(view.query(timed=False, where=""), rough)


def step_of(view: View, whole: Extent) -> Step:
    """The step of time that fits the page."""
    shown = asked_extent(view.asked.since, view.asked.until, whole)
    return shown.step(max(1, number(view.body, "bars", 100, MOST_STEPS)))


def _timeline(view: View) -> Iterator[Part]:
    whole = of_all(view, "extent", lambda: extent(view))
    if whole is None:
        yield {"part": "timeline", "starts": [], "names": [], "counts": [], "others": [], "untimed": 0}
        return
    shown = asked_extent(view.asked.since, view.asked.until, whole)
    by, tz = by_field(view), optional_text(view.body, "zone")
    line = view.query().timeline(every=step_of(view, whole).text, by=by, limit=_SERIES, tz=tz)
    names = [[*wired(value)[:2], level_name(value, by)] for value in line.values] if by is not None else []
    field = "" if by is None else format_path(by)
    yield {"part": "timeline", **drawn(line, shown, names), "by": field, "log": [whole.low / 1e6, whole.high / 1e6]}


# --- which -----------------------------------------------------------------------------------------------------------


def _records(view: View) -> Iterator[Part]:
    """The newest first; columns that are plain fields are found in the records without decoding these."""
    body, skip = view.body, number(view.body, "skip", 0, 1 << 40)
    most = number(body, "limit", 50, _MOST)
    columns = view.session.columns(texts(body, "columns"))
    query = view.query().descending().start_from(skip)
    page = query.page(max(1, most))
    places = [0] * len(page.data) if view.sampled else query.as_offsets().page(max(1, most)).data
    rows = [
        row_of(view.session, record, None if view.sampled else view.session.place(place), columns)
        for record, place in zip(page.data, places, strict=False)
    ]
    yield {"part": "records", "columns": [name for name, _ in columns], "rows": rows, "skip": skip, "total": page.total}


def row_of(
    session: Session, record: Any, place: Any, columns: list[tuple[str, Path]], is_match: bool | None = None
) -> Part:
    """A record as the list has it."""
    paths, unit = session.db.times
    usual, own = session.sampled.roles, session.roles_in(record)
    meant = {usual.level: own.level, usual.message: own.message}
    cells = []
    for _, path in columns:
        value = record if path == ("",) else value_at(record, path)
        if value is UNDEFINED and (other := meant.get(path)) is not None:
            value = value_at(record, other)
        cells.append(wired(value))
    level = "" if own.level is None else level_name(value_at(record, own.level), own.level)
    times = paths if own.time is None or session.log is not None else (own.time,)
    row = {"place": place, "time": milliseconds(record, times, unit), "level": level, "cells": cells}
    return row if is_match is None else {**row, "match": is_match}
