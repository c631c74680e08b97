"""A spool for async programs: the same methods, to be awaited, each in a thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from jitdb.stores.spool.store import Spool

_Said = ParamSpec("_Said")
_Given = TypeVar("_Given")


def _awaited(
    method: Callable[Concatenate[Spool, _Said], _Given],
) -> Callable[Concatenate[AsyncSpool, _Said], Coroutine[Any, Any, _Given]]:
    async def call(self: AsyncSpool, /, *said: _Said.args, **named: _Said.kwargs) -> _Given:
        return await asyncio.to_thread(method, self.spool, *said, **named)

    update_wrapper(call, method)
    return call


class AsyncSpool:
    """See Spool, which says what each method takes and gives."""

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        """Options are those of Spool."""
        self.spool = Spool(folder, **options)

    store = _awaited(Spool.store)
    store_shard = _awaited(Spool.store_shard)
    messages_after = _awaited(Spool.messages_after)
    delete_before = _awaited(Spool.delete_before)
    state_vector = _awaited(Spool.state_vector)
    subscribe = _awaited(Spool.subscribe)
    groups = _awaited(Spool.groups)
    flush = _awaited(Spool.flush)
    refresh = _awaited(Spool.refresh)
    compact = _awaited(Spool.compact)
    close = _awaited(Spool.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
