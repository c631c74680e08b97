"""How many bytes of logs may be read to build indexes: a bound for who pays for them, or waits for them."""

from __future__ import annotations

import os
import threading
from typing import Any

from jitdb.common.arguments import whole_number
from jitdb.common.forking import fork_safe
from jitdb.common.words import size_in_words
from jitdb.errors import InvalidArgument, Remedy, ScanTooLarge
from jitdb.log.source import LogSource


class Budget:
    """What is left of it, for all logs of a set together. Safe for threads."""

    def __init__(self, most: int) -> None:
        self.most = self._left = most
        self._lock = fork_safe(threading.Lock())

    @classmethod
    def of(cls, most: Any) -> Budget | None:
        """None: no bound. Raises InvalidArgument."""
        if most is None or isinstance(most, cls):
            return most
        return cls(whole_number("max_bytes is a number of bytes", most, 0, InvalidArgument))

    def check(self, size: int, path: str) -> None:
        """Before so many bytes are read of what lies there. Raises ScanTooLarge."""
        with self._lock:
            left = self._left
        if size > left:
            raise self._refused(size, left, path)

    def take(self, log: LogSource, start: int, stop: int) -> None:
        """For a scan of these bytes of a log. Raises ScanTooLarge, and then takes nothing."""
        size = log.transfer(start, stop).bytes
        with self._lock:
            if size <= self._left:
                self._left -= size
                return
            left = self._left
        raise self._refused(size, left, log.path)

    def _refused(self, size: int, left: int, path: str | os.PathLike[str]) -> ScanTooLarge:
        read = f", of which {size_in_words(self.most - left)} are read" if left < self.most else ""
        return ScanTooLarge(
            f"the question must read {size_in_words(size)} of it, and max_bytes={self.most:,} allows "
            f"{size_in_words(self.most)}{read}",
            path=path,
            remedy=Remedy("ask fewer logs, or allow more by max_bytes", "ask fewer logs, or allow more: --max-bytes"),
        )
