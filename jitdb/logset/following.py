"""The answer to a live question to a set of logs: what comes to any of them, and to those that are new.

Each log has a feed of its own, and its records come in its order; among logs they come as they are seen. A log that was
not there when the question began is given from its beginning, unless it is a file that was followed under another name.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.words import shown
from jitdb.errors import LogError, QueryCancelled, QueryError
from jitdb.logset.members import Member, Where, find_members
from jitdb.logset.narrowing import NOTHING, narrowed
from jitdb.logset.open_logs import OpenLogs
from jitdb.operators.question import Live, Portion, Question

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.engine.reading.feed import Feed

LOOK: Final = 0.25  # seconds between two looks at the files
_HEAD: Final = "logs:"  # of a cursor; behind it an object of JSON, from paths to the logs' own cursors


class SetPortion:
    """Some records of one log; see operators.question.Portion."""

    def __init__(self, data: list[Any], portion: Portion, cursor: Callable[[str], str]) -> None:
        self.data = data
        self._portion, self._cursor = portion, cursor

    def cursor(self, count: int) -> str:
        return self._cursor(self._portion.cursor(count))


class _Followed:
    """One log: its feed, where one is needed, and how its file looked when it was read last."""

    def __init__(self, db: JITDB, feed: Feed | None) -> None:
        self.db, self.feed = db, feed
        self.seen: tuple[int, ...] | None = None


class SetFeed:
    """See operators.question.Feed. The logs are open until it is closed."""

    def __init__(
        self, where: list[Where], logs: OpenLogs, question: Question, finish: Callable[[Any, Member], Any]
    ) -> None:
        self._where, self._logs, self._question, self._finish = where, logs, question, finish
        self._live = question.live or Live()
        self._places = {} if self._live.after is None else parse_set_cursor(self._live.after)
        self._held = ExitStack()
        self._closed = threading.Event()
        self._followed: dict[Member, _Followed] = {}
        self._files: set[tuple[int, ...]] = set()  # device and inode of all that were followed
        self._follow(is_first=True)

    def _follow(self, *, is_first: bool = False) -> None:
        """Begin with the logs that are there and not followed yet."""
        for member in find_members(self._where):
            if member in self._followed:
                continue
            operation = narrowed(self._question.operation, member.fields)
            after = self._places.get(member.path)
            is_new = not is_first and _look_of(member)[:2] not in self._files
            old = is_new or (is_first and (self._live.old or (self._live.after is not None and after is None)))
            db = self._held.enter_context(self._logs.using(member))
            live = Live(after=after) if after is not None else Live(old)
            feed = (
                None if operation == NOTHING else db.feed(self._question.changed(db=db, operation=operation, live=live))
            )
            self._followed[member] = _Followed(db, feed)

    @property
    def cursor(self) -> str:
        """The place behind all that was read."""
        places = {member.path: each.feed.cursor for member, each in self._followed.items() if each.feed}
        return _HEAD + json.dumps({**self._places, **places}, separators=(",", ":"), sort_keys=True)

    def read(self) -> Portion | None:
        """The next records, of one log, without waiting for any; None when there are none now."""
        self._files.update(_look_of(member)[:2] for member in self._followed)
        for is_again in (False, True):
            for member, each in list(self._followed.items()):
                if self._closed.is_set():
                    raise QueryCancelled("the live question was closed")
                portion = self._portion(member, each)
                if portion is not None:
                    return portion
            if not is_again:
                self._follow()
        return None

    def _portion(self, member: Member, each: _Followed) -> Portion | None:
        if each.feed is None:
            return None
        now = _look_of(member)
        if now != each.seen:
            each.db.refresh()
        found = each.feed.read()
        if found is None:
            each.seen = now
            return None
        others = self.cursor if len(self._followed) > 1 else _HEAD + "{}"
        data = [self._finish(record, member) for record in found.data]

        def cursor(place: str) -> str:
            return _with_place(others, member.path, place)

        return SetPortion(data, found, cursor)

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back, from a thread, whenever read() may have something; the function given back ends it."""
        ended = threading.Event()
        seen = self._state()

        def look() -> None:
            nonlocal seen
            while not ended.wait(LOOK) and not self._closed.is_set():
                now = self._state()
                if now != seen:
                    seen = now
                    callback()

        threading.Thread(target=look, name="jitdb logs", daemon=True).start()
        return ended.set

    def _state(self) -> dict[Member, tuple[int, ...]]:
        try:
            members: Iterable[Member] = find_members(self._where)
        except LogError:  # one that was named is gone: read() says so
            members = list(self._followed)
        return {member: _look_of(member) for member in members}

    def close(self) -> None:
        """Read no more."""
        self._closed.set()
        for each in self._followed.values():
            if each.feed is not None:
                each.feed.close()
        self._held.close()


def parse_set_cursor(text: str) -> dict[str, str]:
    """The places in logs, by their paths. Raises QueryError.

    >>> parse_set_cursor('logs:{"a.log":"00.1.5.320"}')
    {'a.log': '00.1.5.320'}
    """
    try:
        found = json.loads(text[len(_HEAD) :]) if isinstance(text, str) and text.startswith(_HEAD) else None
    except ValueError:
        found = None
    if isinstance(found, dict) and all(isinstance(place, str) for place in found.values()):
        return found
    raise QueryError(
        f"this is no cursor of several logs: {shown(text)}",
        remedy="it is what `.cursor` of a live query to a set of logs gives, kept as it is",
    )


def _with_place(cursor: str, path: str, place: str) -> str:
    return _HEAD + json.dumps({**parse_set_cursor(cursor), path: place}, separators=(",", ":"), sort_keys=True)


def _look_of(member: Member) -> tuple[int, ...]:
    """What differs once somebody wrote to the file, or put another one in its place; empty where there is none."""
    try:
        found = os.stat(member.path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
