"""How much memory the databases of this process may take: one bound, of which each use has a share.

It is of the process, for its databases share what they keep: who opens one with a bound sets it for all. It does not
count what Python and libraries take (some 50 MB), answers that the caller holds, and a bit a record for each set that
a question is made of.

    half        blobs of indexes, kept for the next question                     indexes/segment.py
    a quarter   sets of records that leaves of questions match, remembered       engine/answering/evaluate.py
    a quarter   what is being worked on: `work()` is what one piece of work may hold, such as the chunks of a scan,
                a batch of candidates, a summary or a sort before it spills
"""

from __future__ import annotations

import threading
from typing import Any, Final

from jitdb.common.arguments import whole_number
from jitdb.common.forking import fork_safe
from jitdb.errors import InvalidArgument

DEFAULT: Final = 512 << 20  # bytes
LEAST: Final = 16 << 20

_bound = DEFAULT


def limit(size: Any) -> None:
    """Set the bound; None leaves it as it is. Raises InvalidArgument."""
    global _bound
    if size is not None:
        _bound = whole_number("memory is a number of bytes", size, LEAST, InvalidArgument)


def bound() -> int:
    return _bound


def for_blobs() -> int:
    """Bytes of index files that the process keeps."""
    return _bound // 2


def for_sets() -> int:
    """Bytes of sets that all databases of the process remember."""
    return _bound // 4


def work(most: int | None = None) -> int:
    """Bytes that one piece of work may hold; no more than `most`, where more are of no use."""
    return _bound // 4 if most is None else min(_bound // 4, most)


def give_back() -> None:
    """Give the system the pages that are free, which the C library keeps: after work that took and freed many arrays.

    Without glibc it does nothing: no other C library is asked so.
    """
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Held:
    """The bytes that one of several holders has of what they may hold together; its part is free once it is gone."""

    total = 0
    _lock = fork_safe(threading.RLock())

    def __init__(self) -> None:
        self.bytes = 0

    def add(self, size: int) -> None:
        with Held._lock:
            self.bytes += size
            Held.total += size

    def clear(self) -> None:
        self.add(-self.bytes)

    def __del__(self) -> None:
        self.clear()
