"""Locks that are open in a forked child.

A child has only the thread that forked. A lock that another thread held would never be released, so all locks are reset
in the child; and so is what they guard, because another thread may have changed half of it.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_owners: weakref.WeakSet[BeginsAnew] = weakref.WeakSet()


class BeginsAnew(Protocol):
    """An owner of state that other threads may have left half changed."""

    def begin_anew(self) -> None:
        """In a forked child, where all locks are open: reset the state. Reads no file."""


def fork_safe(lock: T) -> T:
    """Register a threading.Lock, RLock or Event, to be open in a child; return it."""
    _locks.add(lock)
    return lock


def begins_anew(owner: BeginsAnew) -> None:
    """Register an owner of state, to be reset in a child."""
    _owners.add(owner)


def _begin_anew() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # as threading itself does with its own
    failures = []
    for owner in list(_owners):
        try:
            owner.begin_anew()
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]  # Python shows one; the others were reset


os.register_at_fork(after_in_child=_begin_anew)
