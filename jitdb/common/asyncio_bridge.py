"""Waking a coroutine from any thread, and waiting for one in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from jitdb.common.notebooks import hear_stop_button

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from concurrent.futures import Executor

T = TypeVar("T")


def call_in_loop(loop: AbstractEventLoop, function: Callable[[], object]) -> None:
    """Have the loop call the function soon. A loop that has ended needs no waking, so nothing happens then."""
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        if not loop.is_closed():
            raise


async def in_thread(work: Callable[[], T], threads: Executor | None = None) -> T:
    """What `work()` gives in a thread, one of these, or of the loop's own. Cancelled, it ends at once; the work goes on
    until it notices by itself.
    """
    import asyncio
    from contextvars import copy_context

    loop = asyncio.get_running_loop()
    hear_stop_button(loop)
    return await loop.run_in_executor(threads, copy_context().run, work)


class LoopEvent:
    """An event for coroutines of the running loop that any thread may set. Setting it may take effect late:
    clear it *before* looking at what it stands for, and wait after."""

    __slots__ = ("_event", "loop")

    def __init__(self) -> None:
        import asyncio  # here, because importing it takes longer than a question that needs no loop

        self.loop = asyncio.get_running_loop()
        hear_stop_button(self.loop)
        self._event = asyncio.Event()

    def set(self) -> None:
        """Wake who waits, from any thread."""
        call_in_loop(self.loop, self._event.set)

    def clear(self) -> None:
        """Make the next wait() wait; in the loop's own thread."""
        self._event.clear()

    async def wait(self) -> None:
        """Return when it is set."""
        await self._event.wait()
