"""What single logs were counted to hold: good for as long as a look at the file tells that it is what it was.

A set may have more logs than it keeps open (open_logs.py), and to open one again takes a hundred times as long as the
look, which is one `stat`. So a count that is asked again opens only the logs that were changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jitdb.log.source import LogSource
    from jitdb.logset.answering.merging import Part

_MOST: Final = 1 << 16  # counts, some hundred bytes each; beyond, all are forgotten


class Counts:
    """The counts of single logs. Safe for threads."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[object, int]] = {}

    def of(self, part: Part) -> int | None:
        """How many records of the log match; None where it must be asked."""
        known = self._known.get(_key(part))
        return known[1] if known is not None and part.member.look() == known[0] else None

    def asked(self, part: Part, log: LogSource, count: Callable[[], int]) -> int:
        """What the open log answers. It is kept where a look at its file would tell that it was changed since."""
        stamp = log.settled_stamp()
        found = count()
        if stamp is not None and stamp == log.settled_stamp():  # else it was refreshed meanwhile
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[_key(part)] = (stamp, found)
        return found

    def forget(self) -> None:
        """Ask again: somebody may have let a log forget what functions said of its records."""
        self._known.clear()


def _key(part: Part) -> Hashable:
    return part.member.key, part.operation.identity
