"""Waiting for something that must come: it is there when the call returns, or the test fails."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

PAUSE = 0.002  # seconds between two looks


def until(holds: Callable[[], object], seconds: float = 60) -> None:
    """Raises AssertionError if it does not hold in time."""
    late = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < late, f"it did not come within {seconds} s"
        time.sleep(PAUSE)


def until_ended(name: str) -> None:
    """Wait for the threads to end whose names begin so."""
    until(lambda: not any(thread.name.startswith(name) for thread in threading.enumerate()))


async def until_async(holds: Callable[[], object], seconds: float = 60) -> None:
    """The same in an event loop, which goes on meanwhile."""
    late = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < late, f"it did not come within {seconds} s"
        await asyncio.sleep(PAUSE)
