"""Asyncio and threads: wake a coroutine from any thread, wait for one in a thread; what a notebook needs for that."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from concurrent.futures import Executor

T = TypeVar("T")


def call_in_loop(loop: AbstractEventLoop, function: Callable[[], object]) -> None:
    """Have the loop call the function soon; nothing happens if the loop is closed."""
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        if not loop.is_closed():
            raise


async def in_thread(work: Callable[[], T], threads: Executor | None = None) -> T:
    """Run `work()` in one of these threads (default: the loop's own) and return its result. A cancelled call returns at
    once, while the work goes on until it notices by itself.
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
        import asyncio  # late: the import takes longer than a question that needs no loop

        self.loop = asyncio.get_running_loop()
        hear_stop_button(self.loop)
        self._event = asyncio.Event()

    def set(self) -> None:
        """Wake the waiting coroutines; callable from any thread."""
        call_in_loop(self.loop, self._event.set)

    def clear(self) -> None:
        """Make the next wait() wait. Call it in the loop's thread."""
        self._event.clear()

    async def wait(self) -> None:
        """Return when the event is set."""
        await self._event.wait()


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook. (A loaded ipykernel proves nothing: programs that start kernels
    load it, too.)
    """
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def say_stopped(error: BaseException) -> None:
    """Have IPython show this error, by which the user stopped a cell, as the word "stopped".

    IPython keeps the error, and with it the frames that waited. They are cleared, so that what they hold is freed.
    """

    def rendered() -> list[str]:
        from traceback import clear_frames

        clear_frames(error.__traceback__)
        return ["stopped"]

    if in_notebook():
        error._render_traceback_ = rendered  # type: ignore[attr-defined]


def hear_stop_button(loop: AbstractEventLoop) -> None:
    """In a notebook, let the stop button end at once what waits in this loop.

    A kernel cancels an async cell in a handler of SIGINT. A loop that waits only for a thread or for new records does
    not notice until something else happens (ipykernel 7 with Tornado 6.5). A loop with a signal handler of its own is
    woken by each signal; we take SIGURG, which nobody sends and which is ignored by default.
    """
    if not in_notebook():
        return
    import signal
    import threading

    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGURG) is signal.SIG_DFL:
        loop.add_signal_handler(signal.SIGURG, int)
