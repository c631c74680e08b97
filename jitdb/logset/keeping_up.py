"""A set of logs that is looked at before each question: what came since the last one, in as few looks as can tell.

A file comes, goes or gets another name only with a change of its folder, and grows only with a change of its own stamp.
So where nothing changed, a look is a call of stat for each folder, and one for each log that is open. Files that are
counted together are looked at by the count itself.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from jitdb.common.forking import fork_safe
from jitdb.log.lines.files.stamp import Stamp, stamp_at
from jitdb.log.objects.urls import is_url
from jitdb.logset.asking import Asking
from jitdb.logset.bundling import Together
from jitdb.logset.member import Member, find_by_real_path
from jitdb.logset.passing import UNREADABLE

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB

T = TypeVar("T")

_TRIES: Final = 16  # at an answer of logs that are renamed again and again meanwhile


class Following:
    """Keeps a set up to date. Safe for threads."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._lock = fork_safe(threading.Lock())
        self._folders: dict[str, Stamp | None] = {}  # as they were when the logs were looked for
        self._is_sure = False  # whether a change of them since then shows
        self._real: dict[Member, str] = {}  # where the path of each log leads
        self._files: dict[str, tuple[int, int]] = {}  # which file that is
        self._passed: dict[Member, object] = {}  # how files looked that are passed over, when they were last tried

    def look(self) -> None:
        """See which logs there are, and what was written to them. Raises LogError."""
        with self._lock:
            if not self._is_sure or self._is_other_folder():
                self._find()
                return
            asking = self._asking
            if asking.passed.errors:
                self._try_again()
            changed = [_refreshed(member, db) for member, db in asking.open.members()]
            if any(changed):
                asking.forget_asked()

    def held(self, ask: Callable[[], T]) -> T:
        """What `ask` gives, asked while all logs kept their names: of one that is rotated meanwhile, records might be
        missing.
        """
        for _ in range(_TRIES):
            try:
                found = ask()
            except UNREADABLE:
                if self._are_named_so():
                    raise
            else:
                if self._are_named_so():
                    break
            self.look()
        else:
            found = ask()
        self._asking.passed.tell(self._asking.members)
        return found

    def _are_named_so(self) -> bool:
        with self._lock:
            is_known = self._is_sure or self._found()[1:] == (self._real, self._files)
            return is_known and not self._is_other_folder()

    def _is_other_folder(self) -> bool:
        return any(_stamp(path) != stamp for path, stamp in self._folders.items())

    def _found(self) -> tuple[set[str], dict[Member, str], dict[str, tuple[int, int]]]:
        """The folders that were looked into, the logs, and their files."""
        folders = set[str]()
        found = find_by_real_path(self._asking.where, is_following=True, folders=folders)
        files = {path: (stamp.device, stamp.inode) for path in found if (stamp := stamp_at(path)) is not None}
        return folders, {member: path for path, member in found.items()}, files

    def _find(self) -> None:
        begin, before, files = time.time_ns(), self._real, self._files
        folders, self._real, self._files = self._found()
        self._folders = {path: _stamp(path) for path in folders}
        # A change in the tick in which the files were looked for might not show: then they are looked for again.
        is_settled = all(stamp is not None and stamp.is_settled(begin) for stamp in self._folders.values())
        self._is_sure = is_settled and not any(map(is_url, self._asking.where))  # of stores only a listing tells
        self._asking.passed.forget(self._asking.open, self._asking.members)
        for member, path in self._real.items():
            if member in before and (before[member], files.get(path)) != (path, self._files.get(path)):
                self._asking.open.drop(member)  # another file has its name, or a link leads there
        self._asking.see(sorted(self._real))

    def _try_again(self) -> None:
        """Files that are no logs may have become some."""
        passed = self._asking.passed
        looks = {member: member.look() for member in passed.errors}
        passed.forget(self._asking.open, [member for member, look in looks.items() if look != self._passed.get(member)])
        self._passed = looks


def _stamp(path: str) -> Stamp | None:
    try:
        return Stamp.of(os.stat(path))
    except OSError:
        return None


def _refreshed(member: Member, db: JITDB) -> bool:
    """Whether there was anything in the log. One that is as it was is not touched."""
    if isinstance(member, Together) or (look := member.look()) is None or look == db.log.settled_stamp():
        return False
    return db.refresh()
