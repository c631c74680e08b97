"""The blobs of index files that were used last, in memory: one for all files of a process."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock
from typing import Final, TypeAlias

from jitdb.common.forking import fork_safe

KEPT_BYTES: Final = 256 << 20  # of all index files, in memory: the columns of some thirty spans

ReadAt: TypeAlias = Callable[[int, int], bytes]


class BlobCache:
    """The blobs that were used last, of all files of this process, up to KEPT_BYTES of them. Safe for threads.

    Those of a file go when its reader goes: a rewritten index is another file.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._blobs: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._readers: dict[int, weakref.ref[ReadAt]] = {}
        self._gone: deque[int] = deque()  # ids of readers that are no more; filled by the garbage collector
        self._lock = fork_safe(Lock())

    def get(self, reader: ReadAt, position: int) -> bytes | None:
        with self._lock:
            self._drop_gone()
            key = (id(reader), position)
            if key in self._blobs:
                self._blobs.move_to_end(key)
            return self._blobs.get(key)

    def put(self, reader: ReadAt, position: int, blob: bytes) -> None:
        with self._lock:
            self._drop_gone()
            number = id(reader)
            if number not in self._readers:
                self._readers[number] = weakref.ref(reader, lambda _: self._gone.append(number))
            if (number, position) not in self._blobs:
                self.bytes += len(blob)
            self._blobs[number, position] = blob
            while self.bytes > KEPT_BYTES and len(self._blobs) > 1:
                self.bytes -= len(self._blobs.popitem(last=False)[1])

    def clear(self) -> None:
        with self._lock:
            self._blobs.clear()
            self.bytes = 0

    def _drop_gone(self) -> None:
        while self._gone:
            number = self._gone.popleft()
            del self._readers[number]
            for key in [key for key in self._blobs if key[0] == number]:
                self.bytes -= len(self._blobs.pop(key))


blob_cache: Final = BlobCache()
