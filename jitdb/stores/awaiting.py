"""Stores for programs that await: the same methods, each called in a thread.

A call that is cancelled may still do what it was to do; the store is whole either way.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from jitdb.common.asyncio_bridge import in_thread

if TYPE_CHECKING:
    from concurrent.futures import Executor

Said = ParamSpec("Said")
Given = TypeVar("Given")


class AsyncStore:
    """What awaits the methods of a store; an `async with` ends by closing it."""

    _threads: Executor | None = None  # in which they are called; None: the event loop's own

    def _opened(self) -> Any:
        """The store. Raises the error of its kind where it was not opened."""
        raise NotImplementedError

    async def _call(self, method: Callable[..., Given], *said: Any, **named: Any) -> Given:
        """What a method of the store gives; raises what it raises."""
        return await in_thread(partial(method, self._opened(), *said, **named), self._threads)

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def awaited(
    method: Callable[Concatenate[Any, Said], Given],
) -> Callable[Concatenate[Any, Said], Coroutine[Any, Any, Given]]:
    """The method of an AsyncStore that is this method of the store."""

    async def call(self: AsyncStore, /, *said: Said.args, **named: Said.kwargs) -> Given:
        return await self._call(method, *said, **named)

    update_wrapper(call, method)
    return call
