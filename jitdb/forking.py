"""Locks that a forked child finds open.

A child has the one thread that forked. What another held there would never be released: its locks begin anew in the
child. Who guards with one what may be left half changed has to begin anew there as well (the engine does).
"""

from __future__ import annotations

import os
import weakref
from typing import Any, TypeVar

T = TypeVar("T")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def fork_safe(lock: T) -> T:
    """The lock, a threading.Lock or RLock, which nobody holds in a child."""
    _locks.add(lock)
    return lock


def _open_all() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # as threading itself does with its own


os.register_at_fork(after_in_child=_open_all)
