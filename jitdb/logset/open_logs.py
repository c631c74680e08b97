"""Which logs of a set are open: those in use, and of the others those that were used last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final

from jitdb.common.forking import fork_safe
from jitdb.errors import LogClosed

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.logset.member import Member

_LEAST: Final = 8
_MOST: Final = 2048
_FILES: Final = 2  # that a log has open, at most; a file of lines is one
_OTHERS: Final = 48  # of indexes (indexes/files/file.py), and of whatever else the process does


class _Entry:
    def __init__(self) -> None:
        self.lock = fork_safe(threading.Lock())  # held while the log is opened
        self.db: JITDB | None = None
        self.is_of_nothing = False  # its file was empty when opened; by now it may be of another kind
        self.users = 0


class OpenLogs:
    """Opens members when they are used. Safe for threads. `most`: how many stay open while nobody uses them."""

    def __init__(self, open_log: Callable[[Member], JITDB]) -> None:
        self._open_log = open_log
        self.most = most_open()
        self._lock = fork_safe(threading.Lock())
        self._entries: OrderedDict[Member, _Entry] = OrderedDict()
        self._closed = False

    @contextmanager
    def using(self, member: Member) -> Iterator[JITDB]:
        """The database of the member, open as long as this lasts. Raises LogError."""
        entry = self._taken(member)
        try:
            with entry.lock:
                db = self._opened(member, entry)
            yield db
        finally:
            with self._lock:
                entry.users -= 1
            self._close_idle()

    def _opened(self, member: Member, entry: _Entry) -> JITDB:
        size = member.size if entry.db is None or entry.is_of_nothing else None
        if entry.db is not None and entry.is_of_nothing and size and entry.users == 1:
            entry.db.close()
            entry.db = None
        if entry.db is None:
            entry.is_of_nothing = not size
            entry.db = self._open_log(member)
        return entry.db

    def _taken(self, member: Member) -> _Entry:
        with self._lock:
            if self._closed:
                raise LogClosed("the set of logs was closed", path=member.path)
            entry = self._entries.setdefault(member, _Entry())
            self._entries.move_to_end(member)
            entry.users += 1
            return entry

    def _close_idle(self) -> None:
        if len(self._entries) <= self.most:
            return
        with self._lock:
            idle = (member for member, entry in self._entries.items() if not entry.users)
            surplus = list(islice(idle, max(0, len(self._entries) - self.most)))  # the first: not all are gone through
            gone = [self._entries.pop(member) for member in surplus]
        _close(gone)

    def drop(self, member: Member) -> None:
        """Close it, unless it is in use; it is not asked again."""
        with self._lock:
            entry = self._entries.get(member)
            gone = [] if entry is None or entry.users else [self._entries.pop(member)]
        _close(gone)

    def members(self) -> list[tuple[Member, JITDB]]:
        """Those that are open, and their databases. Empty files that have grown are opened anew when used."""
        with self._lock:
            entries = [(member, entry) for member, entry in self._entries.items() if entry.db is not None]
        for member, entry in entries:
            if entry.is_of_nothing and member.size:
                self.drop(member)
        return [(member, entry.db) for member, entry in entries if entry.db is not None and not entry.is_of_nothing]

    def close(self) -> None:
        with self._lock:
            self._closed = True
            entries = list(self._entries.values())
            self._entries.clear()
        _close(entries)


def _close(entries: list[_Entry]) -> None:
    for entry in entries:
        if entry.db is not None:
            entry.db.close()


def most_open() -> int:
    """How many logs are kept open: half of the files that the process may still open."""
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except (ImportError, OSError):
        return _LEAST
    return max(_LEAST, min((soft - _OTHERS) // (2 * _FILES) if soft > 0 else _MOST, _MOST))
