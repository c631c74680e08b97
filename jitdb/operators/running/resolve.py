"""A query is settled when no task has to make a part of it any more (deferred.py): then its database can be asked."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from jitdb.common.asyncio_bridge import call_in_loop
from jitdb.operators.nodes.deferred import resolve, resolve_async
from jitdb.operators.nodes.live_seqs import given_so_far
from jitdb.operators.nodes.operations import Operation
from jitdb.operators.query import Query

if TYPE_CHECKING:
    import asyncio


def ready(query: Query) -> None:
    """Complain of a query that has no database to be asked."""
    _ = query.database


def settled(query: Query, cancel: threading.Event | None) -> Query:
    """The query with what its tasks give in their places; waits for them. One that is not live takes live_seqs() as
    they stand.
    """
    if not query.operation.unsettled:
        return query
    return _with(query, resolve(query.operation, query.database, cancel, query.shape))


async def settled_async(query: Query) -> Query:
    """The same in the running event loop."""
    if not query.operation.unsettled:
        return query
    return _with(query, await resolve_async(query.operation, query.database, query.shape))


class Settling:
    """Settles the query of an async iterator, which may be closed meanwhile."""

    __slots__ = ("_closed", "_task")

    def __init__(self) -> None:
        self._task: asyncio.Task[Query] | None = None
        self._closed = False

    async def settle(self, query: Query) -> Query | None:
        """The settled query; None when it was closed before. The tasks are aborted then, or when this is cancelled."""
        import asyncio

        if self._closed:
            return None
        task = self._task = asyncio.ensure_future(settled_async(query))
        try:
            await asyncio.wait([task])
        finally:
            if task.cancel():
                await asyncio.wait([task])
        return None if task.cancelled() else task.result()

    def close(self) -> None:
        """Abort, from any thread."""
        self._closed = True
        task = self._task
        if task is not None:
            call_in_loop(task.get_loop(), task.cancel)


def _with(query: Query, operation: Operation) -> Query:
    return query.changed(operation=operation if query.live is not None else given_so_far(operation))
