"""An answer that follows the log, in one display of a cell."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from jitdb.common.asyncio_bridge import in_thread, say_stopped
from jitdb.common.words import counted, shown
from jitdb.errors import QueryError
from jitdb.operators import chain
from jitdb.operators.queries import Query

_MOST: Final = 86_400.0  # seconds between two looks


async def watch(query: Query, *more: Query, every: float = 1.0, seconds: float | None = None) -> Any:
    """Show the number of records, and update it whenever it changes, until the cell is stopped.

    more:    parts of a query that show something else: `timeline(every="1h")`, `value_counts("service")`, or
             `descending(), paginate(5)`, the newest records
    every:   seconds between two looks; one that finds nothing new costs microseconds
    seconds: how long; None: until it is stopped, or its task cancelled, which also stops a scan

    Returns what was shown last. As a task (`asyncio.create_task(watch(…))`) it lets other cells run meanwhile.
    Raises QueryError, LogError.

        from jitdb.notebook import watch
        from jitdb.operators import timeline

        await watch(db.query(field("level") == "error"), timeline(every="1h"))
    """
    from IPython.display import display

    asked = _asked(query, more)
    pause = _length("every", every)
    end = None if seconds is None else time.monotonic() + _length("seconds", seconds)
    refresh: Callable[[], object] = getattr(asked.question.database, "refresh", bool)
    handle: Any = None  # of the display; outside IPython there is none, and each answer is printed
    answer: Any = None
    try:
        while True:
            before = answer
            await in_thread(refresh)
            answer = await asked
            if handle is not None and not _same(answer, before):
                handle.update(_shown(answer))
            elif handle is None and (before is None or not _same(answer, before)):
                handle = display(_shown(answer), display_id=True)
            left = pause if end is None else min(pause, end - time.monotonic())
            if left <= 0:
                return answer
            await asyncio.sleep(left)
    except asyncio.CancelledError as stopped:
        say_stopped(stopped)
        raise


def _asked(query: Query, more: tuple[Query, ...]) -> Query:
    """The query with these parts; it counts, if nothing says what to show."""
    if not isinstance(query, Query):
        raise QueryError(f"watch() takes a query, as db.query() gives it, not {shown(query)}")
    asked: Query = chain.query(query, *more)
    return asked if asked.question.is_one or asked.question.limit else chain.query(asked, chain.count())


def _length(name: str, seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= _MOST:
        raise QueryError(f"{name} is a number of seconds up to {_MOST:,.0f}, not {shown(seconds)}")
    return float(seconds)


def _same(answer: Any, before: Any) -> bool:
    """Whether they look the same, apart from the time that a page took."""
    return bool(getattr(answer, "data", answer) == getattr(before, "data", before)) and _total(answer) == _total(before)


def _total(answer: Any) -> Any:
    return getattr(answer, "total", None)


class _Number:
    """A count as it is shown."""

    def __init__(self, count: int) -> None:
        self._text = counted(count, "record", "records")

    def __repr__(self) -> str:
        return self._text


def _shown(answer: Any) -> Any:
    return _Number(answer) if isinstance(answer, int) else answer
