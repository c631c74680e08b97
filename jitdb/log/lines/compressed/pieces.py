"""Pieces of text that were decompressed last, of all files of the process together: what comes next lies near them."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Final

from jitdb.common.forking import begins_anew, fork_safe

_OF_THREAD: Final = 4 << 20  # bytes that a thread of a scan reads at a time; threads are about so far apart
_LEAST: Final = 16 << 20
_MOST: Final = 48 << 20

Key = tuple[int, int]  # a number that a text has of its own, and the piece's in it


class Pieces:
    """Safe for threads. `most`: bytes that are kept, but for one piece more."""

    def __init__(self, most: int) -> None:
        self.most, self._size = most, 0
        self._lock = fork_safe(threading.Lock())
        self._held: OrderedDict[Key, bytes] = OrderedDict()
        self._texts = 0
        begins_anew(self)

    def begin_anew(self) -> None:
        """See forking.BeginsAnew."""
        self._held, self._size = OrderedDict(), 0

    def new_text(self) -> int:
        """A number for the keys of a text."""
        with self._lock:
            self._texts += 1
            return self._texts

    def get(self, key: Key) -> bytes | None:
        with self._lock:
            data = self._held.get(key)
            if data is not None:
                self._held.move_to_end(key)
            return data

    def put(self, key: Key, data: bytes) -> None:
        with self._lock:
            self._size += len(data) - len(self._held.pop(key, b""))
            self._held[key] = data
            while self._size > self.most and len(self._held) > 1:
                self._size -= len(self._held.popitem(last=False)[1])

    def drop(self, text: int) -> None:
        """Forget all pieces of a text."""
        with self._lock:
            for key in [key for key in self._held if key[0] == text]:
                self._size -= len(self._held.pop(key))


PIECES: Final = Pieces(max(_LEAST, min(2 * _OF_THREAD + _OF_THREAD * (os.cpu_count() or 1), _MOST)))
