"""Many posts verified at once: libsodium works on all processors, as it lets other threads go on meanwhile."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Final

from jitdb.stores.cable.errors import CableError
from jitdb.stores.cable.post import Post, verify_post

Verdict = Post | CableError

_LEAST: Final = 16  # posts that a thread is worth


class Verifier:
    """Verifies posts in threads, which are begun when they are first needed."""

    def __init__(self) -> None:
        self._count = min(8, os.cpu_count() or 1)
        self._threads: ThreadPoolExecutor | None = None

    def verdicts(self, posts: Sequence[bytes]) -> list[Verdict]:
        """What each post says, or why it is not taken."""
        parts = min(self._count, len(posts) // _LEAST)
        if parts < 2:
            return _verdicts(posts)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._count - 1, "verify")
        size = -(-len(posts) // parts)
        others = self._threads.map(_verdicts, [posts[begin : begin + size] for begin in range(size, len(posts), size)])
        return [*_verdicts(posts[:size]), *chain.from_iterable(others)]

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()


def _verdicts(posts: Sequence[bytes]) -> list[Verdict]:
    return [_verdict(post) for post in posts]


def _verdict(post: bytes) -> Verdict:
    try:
        return verify_post(post)
    except CableError as error:
        return error
