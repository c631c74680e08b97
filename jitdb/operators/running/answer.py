"""A query is handed to its database in one of three ways: count, a page, or all."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from jitdb.operators.database import Page
from jitdb.operators.query import Query
from jitdb.operators.running.resolve import settled

#: Records that the iterators read at a time where neither paginate nor batch says: enough to make the cost
#: of a page small beside decoding it, few enough that the first record comes at once.
DEFAULT_BATCH: Final = 100


def log(message: str, *values: object) -> None:
    """Say something for debug() to the logger `jitdb`."""
    import logging  # here: most questions never need it

    logging.getLogger("jitdb").debug(message, *values)


def answer(query: Query, cancel: threading.Event | None = None) -> Any:
    """An int after count(), a Page after paginate(n), else a list."""
    if query.debugging:
        return _answer_loudly(query, cancel)
    return _answer(query, cancel)


def answer_pages(query: Query, cancel: threading.Event) -> Iterator[Page]:
    """The pages of the answer to a settled query, read one at a time."""
    if query.debugging:
        log("asking page by page: %r", query)
    return query.database.pages(
        query.operation,
        limit=query.limit or query.batch or DEFAULT_BATCH,
        start_from=query.start_from,
        descending=query.descending,
        as_offsets=query.as_offsets,
        sort_by=query.sort_by,
        cancel=cancel,
        **_as_of(query),
    )


def _answer(query: Query, cancel: threading.Event | None) -> Any:
    query = settled(query, cancel)
    database = query.database
    if query.counting:
        return database.count(query.operation, start_from=query.start_from, cancel=cancel, **_as_of(query))
    if query.limit is not None:
        return database.paginate(
            query.operation,
            start_from=query.start_from,
            limit=query.limit,
            descending=query.descending,
            as_offsets=query.as_offsets,
            sort_by=query.sort_by,
            cancel=cancel,
            **_as_of(query),
        )
    return database.all(
        query.operation,
        start_from=query.start_from,
        descending=query.descending,
        as_offsets=query.as_offsets,
        sort_by=query.sort_by,
        cancel=cancel,
        **_as_of(query),
    )


def _as_of(query: Query) -> dict[str, Any]:
    return {} if query.as_of is None else {"as_of": query.as_of}


def _answer_loudly(query: Query, cancel: threading.Event | None) -> Any:
    log("asking: %r", query)
    started = time.perf_counter()
    try:
        result = _answer(query, cancel)
    except BaseException as error:
        log("failed after %.3f ms: %r", (time.perf_counter() - started) * 1000, error)
        raise
    log("answered in %.3f ms: %s", (time.perf_counter() - started) * 1000, _size(query, result))
    return result


def _size(query: Query, result: Any) -> str:
    if query.counting:
        return f"a count of {result}"
    if query.limit is not None:
        return f"{len(result.data)} of {result.total} records"
    return f"{len(result)} records"
