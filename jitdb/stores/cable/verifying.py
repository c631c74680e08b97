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

THREADS: Final = min(8, os.cpu_count() or 1)
_LEAST: Final = 16  # posts that a thread is worth


def verdicts(posts: Sequence[bytes], threads: ThreadPoolExecutor) -> list[Verdict]:
    """What each post says, or why it is not taken."""
    parts = min(THREADS, len(posts) // _LEAST)
    if parts < 2:
        return _verdicts(posts)
    size = -(-len(posts) // parts)
    found = threads.map(_verdicts, [posts[begin : begin + size] for begin in range(0, len(posts), size)])
    return list(chain.from_iterable(found))


def _verdicts(posts: Sequence[bytes]) -> list[Verdict]:
    return [_verdict(post) for post in posts]


def _verdict(post: bytes) -> Verdict:
    try:
        return verify_post(post)
    except CableError as error:
        return error
