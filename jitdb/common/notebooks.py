"""Whether this process is the kernel of a notebook, and what that needs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    # That ipykernel is loaded would say little: whoever starts kernels has loaded it too.
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def say_stopped(error: BaseException) -> None:
    """What ends a wait because somebody stopped the cell is shown as that one word: IPython asks an error so.

    IPython keeps the error, whose frames keep what was waited in: they let go of it, and it ends.
    """

    def rendered() -> list[str]:
        from traceback import clear_frames

        clear_frames(error.__traceback__)
        return ["stopped"]

    if in_notebook():
        error._render_traceback_ = rendered  # type: ignore[attr-defined]


def hear_stop_button(loop: AbstractEventLoop) -> None:
    """In a notebook, have its stop button end what waits in this loop at once.

    A kernel cancels an async cell in a handler of SIGINT, which a loop that waits for nothing but a thread, or for
    records to come, does not notice until something else happens (ipykernel 7 with Tornado 6.5). A loop that handles
    signals of its own is woken by each signal; SIGURG is one that nobody sends, and that is ignored otherwise.
    """
    if not in_notebook():
        return
    import signal
    import threading

    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGURG) is signal.SIG_DFL:
        loop.add_signal_handler(signal.SIGURG, int)
