"""Locks that a forked child finds open.

A child has the one thread that forked. What another held there would never be released: its locks begin anew in the
child. Who guards with one what may be left half changed begins anew there as well.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_owners: weakref.WeakSet[BeginsAnew] = weakref.WeakSet()


class BeginsAnew(Protocol):
    """What other threads may have left half changed."""

    def begin_anew(self) -> None:
        """In a forked child, where all locks are open: make it whole. Reads no file."""


def fork_safe(lock: T) -> T:
    """The lock, a threading.Lock, RLock or Event, which nobody holds in a child."""
    _locks.add(lock)
    return lock


def begins_anew(owner: BeginsAnew) -> None:
    """Let it begin anew in a child."""
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
        raise failures[0]  # the others began anew; Python shows this one


os.register_at_fork(after_in_child=_begin_anew)
