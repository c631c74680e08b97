"""Logs that were read, and whose names other files have: who finds one again goes on where it was left.

A file that was renamed is known by its identity, or by device and inode if its text is the same as well, as inodes are
given to others at once; one that was compressed by its text alone (members/read_text.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.engine.cursor import Cursor
from jitdb.logset.members.read_text import ReadText, is_packed
from jitdb.logset.places import LogPlace

if TYPE_CHECKING:
    from jitdb.log.source import LogSource

_MOST: Final = 64


class Left(NamedTuple):
    """path:  the name that it had
    place: behind what was read
    file:  device and inode; empty where they are not known
    text:  what was read; None where that is not known, or where the file was edited since
    """

    path: str
    place: Cursor
    file: tuple[int, ...]
    text: ReadText | None

    def begins(self, log: LogSource) -> bool | None:
        """Whether its text is what this log begins with; None where nobody knows that yet."""
        return self.text is not None and self.text.begins(log)

    def place_in(self, log: LogSource) -> Cursor:
        """The same place in this log, which it is, or whose beginning it is."""
        offset = min(self.place.offset, log.durable_end)
        return self.place._replace(identity=log.identity, generation=log.generation, offset=offset)


class LeftLogs:
    """The latest of them."""

    def __init__(self) -> None:
        self._logs: list[Left] = []

    def note(self, left: Left) -> None:
        self._logs = [*self._logs[1 - _MOST :], left]

    def drop(self, left: Left) -> None:
        self._logs = [each for each in self._logs if each is not left]

    def find(self, identity: bytes) -> Left | None:
        return next((each for each in reversed(self._logs) if each.place.identity == identity), None)

    def of(self, log: LogSource, file: tuple[int, ...]) -> Left | None:
        """The one that this log is, in the file of this device and inode, or that it is the compressed copy of."""
        found = self.find(log.identity)
        if found is not None:
            return found
        is_any = is_packed(str(log.path))
        alike = [each for each in self._logs if (is_any or each.file == file) and each.begins(log)]
        return max(alike, key=lambda each: each.place.offset, default=None)

    def may_be(self, log: LogSource) -> bool:
        """Whether one of them may be it, though too little is in this log to tell."""
        return any(each.text is not None and each.text.may_begin(log) for each in self._logs)

    def places(self) -> dict[str, LogPlace]:
        """By the names that they had."""
        return {each.path: LogPlace(str(each.place), each.text) for each in self._logs}
