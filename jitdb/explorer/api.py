"""The questions that the page can ask, by their names in its address: each answers with parts, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from itertools import islice
from typing import Any, Final

from jitdb.common.json_text import line_of
from jitdb.common.paths import Path, parse_path
from jitdb.errors import JitdbError, LogError
from jitdb.explorer import refining
from jitdb.explorer.facets import numbers, values
from jitdb.explorer.findings import patterns, why
from jitdb.explorer.guard import Refused
from jitdb.explorer.look import look, row_of
from jitdb.explorer.session import Asked, Session, number, optional_text, texts
from jitdb.explorer.view import Cancelled, View
from jitdb.explorer.wire import leaves, milliseconds
from jitdb.operators.completing import offered

Part = dict[str, Any]
Answer = Callable[[Session, dict[str, Any], threading.Event], Iterator[Part]]

_MOST_VALUES: Final = 1000  # of a field that is opened
_MOST_AROUND: Final = 200  # records around one
_MOST_EXPORTED: Final = 100_000
_COPIED: Final = 1_000_000  # characters of a record that are sent to be copied
_AT_ONCE: Final = 500  # records of an export that are sent together
_WAITED: Final = 0.2  # seconds between looks at whether a page still follows
_WITHIN: Final = 0.5  # seconds: records that come within them are told of together


def told(error: JitdbError) -> Part:
    """An error as the page shows it."""
    found = {"part": "error", "kind": type(error).__name__, "reason": error.reason, "path": error.path or ""}
    remedy = error.remedy.shell or error.remedy.python if error.remedy is not None else ""
    return {**found, "remedy": remedy, "notes": list(getattr(error, "__notes__", ()))}


def facet(session: Session, body: dict[str, Any], cancel: threading.Event) -> Iterator[Part]:
    """More values of one field."""
    view = View(session, session.db, Asked.of(body), body, cancel)
    path = _path(body, "field")
    if path in session.sampled.facet_fields.numbers and not body.get("values"):
        yield numbers(view, path)
    else:
        yield values(view, path, max(1, number(body, "limit", 100, _MOST_VALUES)))


def record(session: Session, body: dict[str, Any], cancel: threading.Event) -> Iterator[Part]:
    """All of one record: its fields, its line of JSON, and where it lies."""
    place = body.get("place")
    with session.at(place) as (db, is_it):
        page = db.paginate(is_it, limit=1, cancel=cancel)
    if not page.data:
        raise LogError("this record is not there any more", remedy="it was deleted, or its file was rotated away")
    found = page.data[0]
    paths, unit = session.db.times
    line = line_of(found).decode("utf-8", "replace").rstrip("\n")
    yield {
        "part": "record", "place": place, "fields": [[path, *value] for path, value in leaves(found)],
        "time": milliseconds(found, paths, unit), "json": line if len(line) <= _COPIED else "",
        "file": session.file_of(place), "offset": session.checked_place(place)[1],
    }  # fmt: skip


def context(session: Session, body: dict[str, Any], cancel: threading.Event) -> Iterator[Part]:
    """The records before and after one, those of the same value in a field if one is named."""
    before, after = (number(body, name, 0, _MOST_AROUND) for name in ("before", "after"))
    same = optional_text(body, "same")
    columns = session.columns(texts(body, "columns"))
    place = body.get("place")
    file = session.checked_place(place)[0]
    with session.at(place) as (db, is_it):
        for passage in islice(db.context(is_it, before, after, same=same, limit=1, cancel=cancel), 1):
            rows = [row_of(session, seen.record, seen.place, columns, seen.is_match) for seen in reversed(passage)]
            for row in rows if session.log is None else ():
                row["place"] = [file, row["place"]]
            yield {"part": "passage", "columns": [name for name, _ in columns], "rows": rows}


def complete(session: Session, body: dict[str, Any], cancel: threading.Event) -> Iterator[Part]:
    """How the text before the cursor may go on; and what is wrong with the whole of it."""
    text = optional_text(body, "text") or ""
    at = number(body, "at", len(text), len(text))
    offer = offered(text[:at], session.sampled.names)
    yield {"part": "offer", "from": at - len(offer.begun), "texts": offer.texts[:50]}


def refine(session: Session, body: dict[str, Any], cancel: threading.Event) -> Iterator[Part]:
    """The question with a condition more, or less."""
    where, more, how = optional_text(body, "where") or "", optional_text(body, "more"), optional_text(body, "how")
    if more is not None:
        yield {"part": "refined", "where": refining.together(where, more)}
        return
    if how not in refining.HOWS:
        raise Refused(HTTPStatus.BAD_REQUEST, f"how is one of {', '.join(refining.HOWS)}")
    literal = optional_text(body, "value")
    value = None if literal is None else refining.value_of(literal)
    yield {"part": "refined", "where": refining.refined(where, _path(body, "field"), value, how)}  # type: ignore[arg-type]


def tail(session: Session, body: dict[str, Any], cancel: threading.Event) -> Iterator[Part]:
    """That records came that match, as long as the page listens: how many, and up to where."""
    asked = Asked.of(body)
    feed = session.db.feed(session.query(asked._replace(as_of=None)).live().as_offsets().batch(10_000).question)
    wake = threading.Event()
    unwatch = feed.watch(wake.set)
    try:
        yield {"part": "following"}
        while not cancel.is_set():
            wake.clear()
            count = sum(len(portion.data) for portion in iter(feed.read, None))
            if count:
                yield {"part": "news", "count": count}
                cancel.wait(_WITHIN)
            while not wake.wait(_WAITED) and not cancel.is_set():
                pass
    finally:
        unwatch()
        feed.close()


def export(session: Session, body: dict[str, Any], cancel: threading.Event) -> Iterator[Part]:
    """The records as lines of JSON, the newest first, and how many of them there are in all."""
    asked = Asked.of(body)
    query = session.query(asked).descending()
    pages = Cancelled(session.db, cancel).pages(query.question.changed(limit=_AT_ONCE, batch=None))
    sent = 0
    for page in iter(pages.read, None):
        data = page.data[: _MOST_EXPORTED - sent]
        sent += len(data)
        lines = b"".join(map(line_of, data)).decode("utf-8", "replace")
        yield {"part": "lines", "lines": lines, "sent": sent, "total": page.total}
        if sent >= _MOST_EXPORTED:
            break
    pages.close()
    yield {"part": "done", "sent": sent}


def _path(body: dict[str, Any], name: str) -> Path:
    text = optional_text(body, name)
    if text is None:
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name} is a field")
    return parse_path(text)


QUESTIONS: Final[dict[str, Answer]] = {
    "look": look, "facet": facet, "record": record, "context": context, "complete": complete, "refine": refine,
    "tail": tail, "export": export, "why": why, "patterns": patterns,
}  # fmt: skip
