"""Files of folders and patterns that are no logs, or cannot be read: each is passed over, and all are named at once.

Nobody named them. So they have no records, and stand in a set as a log of none, until the next look at the files. Only
where nothing at all can be read, that is an error.
"""

from __future__ import annotations

import errno
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from jitdb.common.forking import fork_safe
from jitdb.common.words import counted
from jitdb.engine.database import JITDB
from jitdb.errors import (
    CodecError,
    CompactionUnfinished,
    JitdbError,
    LogCorrupt,
    LogError,
    LogWarning,
    MissingLibrary,
    NotALog,
)
from jitdb.log.io.osfile import reason
from jitdb.log.lines.bundles.bundle import Bundle, Kind
from jitdb.log.lines.bundles.bundled_lines import BundledLines
from jitdb.logset.member import Member, Where

if TYPE_CHECKING:
    from jitdb.logset.open_logs import OpenLogs

_OF_FILES: Final = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENOTDIR, errno.ENXIO)
_SHOWN: Final = 8  # files that are named
UNREADABLE: Final = (JitdbError, OSError)


def is_of_file(error: BaseException, path: str) -> bool:
    """Whether the error is about the file alone: it is no log, is damaged, or may not be read.

    One that is gone since it was found is none of these: it may have another name by now, and records.
    """
    if not os.path.exists(path):
        return os.path.islink(path)
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, OSError):
        return cause.errno in _OF_FILES
    kinds = NotALog, LogCorrupt, CompactionUnfinished, CodecError, MissingLibrary
    return isinstance(error, kinds) or type(error) is LogError


class PassedOver:
    """Which files of a set are passed over, and why. Safe for threads.

    where: the files, patterns and folders that were named
    """

    def __init__(self, where: Sequence[Where]) -> None:
        self._named = {os.fspath(place) for place in where}
        self._lock = fork_safe(threading.Lock())
        self.errors: dict[Member, JitdbError | OSError] = {}
        self._told: set[Member] = set()

    def opening(self, open_log: Callable[[Member], JITDB]) -> Callable[[Member], JITDB]:
        """The same function, which opens a log of none for what is passed over."""

        def opened(member: Member) -> JITDB:
            if member in self.errors:
                return _nothing_at(member)
            try:
                return open_log(member)
            except UNREADABLE as error:
                if not self.take(member, error):
                    raise
                return _nothing_at(member)

        return opened

    def take(self, member: Member, error: JitdbError | OSError) -> bool:
        """Whether a log in which this went wrong is passed over."""
        if self.is_named(member) or not is_of_file(error, member.path):
            return False
        with self._lock:
            self.errors[member] = error
        return True

    def tell(self, members: Sequence[Member]) -> None:
        """Warn once of what is passed over, and raise the first error where nothing else is among the members."""
        if not self.errors:
            return
        if members and all(member in self.errors for member in members):
            raise self.errors[members[0]]
        with self._lock:
            fresh = sorted(self.errors.keys() - self._told)
            self._told |= self.errors.keys()
        if fresh:
            text = told_of({member.path: self.errors[member] for member in fresh})
            warnings.warn(LogWarning(text), stacklevel=5)

    def take_turn(self, path: str) -> bool:
        """Whether the caller is the first to warn of the file at this path; nobody else does then."""
        with self._lock:
            is_first = Member(path) not in self._told
            self._told.add(Member(path))
        return is_first

    def is_named(self, member: Member) -> bool:
        return type(member) is not Member or member.path in self._named

    def forget(self, logs: OpenLogs, members: Iterable[Member]) -> None:
        """Look at these again when they are asked next."""
        with self._lock:
            gone = [member for member in members if self.errors.pop(member, None) is not None]
        for member in gone:
            logs.drop(member)


def told_of(errors: dict[str, JitdbError | OSError]) -> str:
    """What is passed over, with the reason of what might be a log."""
    names = [path if _is_no_log(error) else f"{path} ({_why(error)})" for path, error in list(errors.items())[:_SHOWN]]
    more = len(errors) - len(names)
    names += [f"and {more:,} more"] * (more > 0)
    is_one = len(errors) == 1
    what = "is no log, or cannot be read, and is" if is_one else "are no logs, or cannot be read, and are"
    return f"{counted(len(errors), 'file', 'files')} {what} passed over: {', '.join(names)}"


def _is_no_log(error: JitdbError | OSError) -> bool:
    """Whether nothing is to be said of it: it holds no lines, and is not compressed."""
    return isinstance(error, NotALog) and not error.__cause__ and "compressed" not in error.reason


def _why(error: JitdbError | OSError) -> str:
    return reason(error) if isinstance(error, OSError) else error.reason


def _nothing_at(member: Member) -> JITDB:
    nothing = Bundle(os.path.dirname(member.path), None, os.urandom(16), Kind((0, 0, 0)))
    db = JITDB(BundledLines(nothing), "memory", progress=False)
    db.warns_of_questions = False
    return db
