"""The answer to a live question to a set of logs: what comes to any of them, and to those that are new.

Each log has a feed of its own, and its records come in its order; among logs they come as they are seen. A log that was
not there when the question began is given from its beginning, unless its file was followed under another name: then
who had that reads on in it, as long as it has no other (see engine/reading/feed.py); from there on the new name counts.
Of more logs than can be open, those to which nothing came for longest are closed, until their files change.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from jitdb.engine.cursor import Cursor, parse_cursor
from jitdb.errors import LogError, LogWarning, NotALog, QueryCancelled, QueryError, Remedy
from jitdb.logset.members.finding import Member, Where, find_members
from jitdb.logset.members.open_logs import OpenLogs
from jitdb.logset.members.packed_copies import Read, is_packed, original_of
from jitdb.logset.narrowing import NOTHING, narrowed
from jitdb.logset.places import parse_set_cursor, set_cursor
from jitdb.operators.nodes.operations import Operation
from jitdb.operators.question import Live, Portion, Question

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.engine.reading.feed import Feed
    from jitdb.log.source import LogSource

LOOK: Final = 0.25  # seconds between two looks at the files
_CHAIN: Final = 32  # logs that took each other's place
_PATIENCE: Final = 10.0  # seconds that a compressed copy waits until its original is read
_IN_TURN: Final = 16  # portions of one log, before others are looked at


class SetPortion:
    """Some records of one log; see operators.question.Portion."""

    def __init__(self, data: list[Any], path: str, portion: Portion, others: dict[str, str]) -> None:
        self.data = data
        self._path, self._portion, self._others = path, portion, others

    def cursor(self, count: int) -> str:
        return set_cursor({**self._others, self._path: self._portion.cursor(count)})


class _Followed:
    """One log: its feed while it is open, the place behind what was read while it is not.

    seen: how its file looked when nothing more was in it
    file: device and inode of the file that is read
    is_renamed: whether that has another name by now, so that nothing is seen of it under this one
    """

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.place: str | None = None
        self.seen: tuple[int, ...] | None = None
        self.file: tuple[int, ...] = ()
        self.is_renamed = False
        self._open: tuple[JITDB, Feed] | None = None
        self._held = ExitStack()

    @property
    def is_open(self) -> bool:
        return self._open is not None

    @property
    def opened(self) -> tuple[JITDB, Feed]:
        assert self._open is not None
        return self._open

    def begin(self, held: ExitStack, db: JITDB, feed: Feed) -> None:
        self._held, self._open = held, (db, feed)

    def cursor(self) -> str:
        """Behind all that was read."""
        if self.place is None:
            self.place = self.opened[1].cursor
        return self.place

    def close(self) -> None:
        """Let the log be closed; the place is kept, if it was asked for."""
        if self._open is not None:
            self._open[1].close()
        self._open = None
        self._held.close()


class SetFeed:
    """See operators.question.Feed. Logs are open until it is closed, as far as that many can be."""

    def __init__(
        self, where: list[Where], logs: OpenLogs, question: Question, finish: Callable[[Any, Member], Any]
    ) -> None:
        self._where, self._logs, self._question, self._finish = where, logs, question, finish
        self._live = question.live or Live()
        self._closed = threading.Event()
        self._followed: dict[Member, _Followed] = {}
        self._turn: list[Member] = []  # whose turn it is to be read; the next one last
        self._in_turn = 0
        self._packed_since: dict[bytes, float] = {}  # when a compressed copy was seen first, by its identity
        self._left: dict[object, Cursor] = {}  # where a log was left, by its identity, and by device and inode
        self._unknown = {} if self._live.after is None else parse_set_cursor(self._live.after)  # places to go on from
        self._begin()

    # --- which logs ------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """With the logs that are there. A place counts for the log that it is of, whatever that is called by now."""
        members = find_members(self._where)
        for member in members:
            if member.path in self._unknown:
                self._go_on_behind(member, self._unknown[member.path])
        while not all(self._is_begun(member) for member in members):
            members = find_members(self._where)
        for path, place in self._unknown.items():
            cursor = parse_cursor(place)
            if cursor.identity in self._left:
                del self._left[cursor.identity]
                _warn_lost(path)

    def _go_on_behind(self, member: Member, place: str) -> None:
        """From this place, if it is one of the log that has the name now."""
        cursor = parse_cursor(place)
        file = _look_of(member)[:2]
        with self._logs.using(member) as db:
            is_lost = cursor.identity != db.log.identity and cursor.offset > 0
        if is_lost or not self._add(member, file, False, place):
            self._left[cursor.identity] = cursor
        else:
            del self._unknown[member.path]

    def _is_begun(self, member: Member) -> bool:
        """Begin with the log, unless there is nothing in it, or it is read already; False where it was renamed."""
        file = _look_of(member)[:2]
        if member in self._followed or _is_empty(member) or any(file == each.file for each in self._followed.values()):
            return True
        try:
            return self._add(member, file, self._live.after is None and not self._live.old)
        except NotALog:
            if file and _look_of(member)[:2] == file:
                raise
            return False

    def _follow(self) -> None:
        """Begin with the logs that are new."""
        for member in find_members(self._where):
            if member not in self._followed and not _is_empty(member):
                file = _look_of(member)[:2]
                try:
                    if not self._is_read(member, file):
                        self._add(member, file, False)
                except NotALog:  # gone since, or too little of what is compressed is there to say what it is
                    if file and _look_of(member)[:2] == file and not is_packed(member.path):
                        raise

    def _is_read(self, member: Member, file: tuple[int, ...]) -> bool:
        """Whether this file is read under its name of before; or another one that it is a copy of."""
        if any(file == each.file for each in self._followed.values()):
            return True
        left = {each.opened[1].identity for each in self._followed.values() if each.is_renamed and each.is_open}
        if not left and not is_packed(member.path):
            return False
        with self._logs.using(member) as db:
            db.refresh()
            return db.log.identity in left or (is_packed(member.path) and self._is_being_packed(db.log))

    def _is_being_packed(self, log: LogSource) -> bool:
        """Whether it is the copy of a log that is not read to its end, and goes on being read. Of one that is read it
        is noted up to where.
        """
        if not log.durable_end:
            return True  # it holds no line yet
        found = original_of(log, self._read_so_far())
        if found is None:
            return False
        end = max(found.log.durable_end, log.durable_end)
        began = self._packed_since.setdefault(log.identity, time.monotonic())
        if found.place.offset < end and time.monotonic() < began + _PATIENCE:
            return True
        offset = min(found.place.offset, log.durable_end)
        self._left[log.identity] = found.place._replace(identity=log.identity, generation=log.generation, offset=offset)
        return False

    def _read_so_far(self) -> Iterator[Read]:
        """The logs that are open, and those that they took the place of, read or still to be."""
        for each in self._followed.values():
            if each.is_open:
                db, feed = each.opened
                for place in self._left.values():
                    yield from islice(_from_place(db.log, place), 1)
                yield from _from_place(db.log, feed.place)

    def _add(self, member: Member, file: tuple[int, ...], begin_now: bool, place: str | None = None) -> bool:
        """Follow the log; False where the name is not that of this file (device and inode) any more."""
        each = _Followed(narrowed(self._question.operation, member.fields))
        if each.operation != NOTHING:
            each.place = place
            if not self._open(member, each, file, begin_now):
                return False
        self._followed[member] = each
        return True

    def _open(self, member: Member, each: _Followed, file: tuple[int, ...], begin_now: bool = False) -> bool:
        """Its feed: from where its file was left under another name, or from its place on; else from now on, or all.

        False as of _add().
        """
        self._make_room()
        with ExitStack() as held:
            db = held.enter_context(self._logs.using(member))
            db.refresh()
            if _look_of(member)[:2] != file:
                return False
            log = db.log
            left = self._left_in(log, file)
            if left is not None:
                each.place = str(left)
            elif each.place is not None and parse_cursor(each.place).identity != log.identity:
                self._lose(member, each)
            each.file = file
            live = Live(not begin_now) if each.place is None else Live(after=each.place)
            feed = db.feed(self._question.changed(db=db, operation=each.operation, live=live))
            feed.be_one_of_many(partial(self._place_in, member, each, log))
            each.begin(held.pop_all(), db, feed)
        return True

    def _left_in(self, log: LogSource, file: tuple[int, ...]) -> Cursor | None:
        """Where the log, of this device and inode, was left by who read it under another name."""
        left = self._taken_up(log.identity, file)
        if left is not None and left.offset > log.durable_end:
            return None  # a file that was removed since gave its inode to this one
        return None if left is None else left._replace(identity=log.identity, generation=log.generation)

    def _taken_up(self, identity: bytes, file: tuple[int, ...]) -> Cursor | None:
        """Where the log of this identity, in the file of this device and inode, was left: who asks goes on there."""
        by_identity, by_file = self._left.pop(identity, None), self._left.pop(file, None)
        return by_identity or by_file

    def _place_in(self, member: Member, each: _Followed, log: LogSource, identity: bytes) -> Cursor | None:
        """Where to begin in the log of this identity, which took the place of another one under this name.

        It may have other names, too, under which it was read. None while it still is: then the one before is read on,
        also under its new name.
        """
        if identity != log.identity:  # it has another name by now, or none
            behind = log.left_behind(identity, 0)
            file = () if behind is None else behind.file
            left = self._taken_up(identity, file)
            if left is not None or not self._is_read_elsewhere(each, file, identity):
                begin = left or Cursor(identity, log.generation, 0, 0)
                return begin._replace(identity=identity, generation=log.generation)
        file = _look_of(member)[:2]
        if self._is_read_elsewhere(each, file, log.identity):
            return None
        return self._left_in(log, file) or Cursor(log.identity, log.generation, 0, 0)

    def _is_read_elsewhere(self, each: _Followed, file: tuple[int, ...], identity: bytes = b"") -> bool:
        """Whether the file of this device and inode, or the log of this identity, is read by another one."""
        others = [other for other in self._followed.values() if other is not each and other.is_open]
        return any((file and other.file == file) or other.opened[1].identity == identity for other in others)

    def _lose(self, member: Member, each: _Followed) -> None:
        """Another file has the name of one that was closed: that one is read on under its new name, if it has one."""
        assert each.place is not None
        cursor, each.place, gone = parse_cursor(each.place), None, each.file
        if not cursor.offset:
            return  # nothing was in it
        name = _name_of(os.path.dirname(member.path), gone)
        if name is None:
            _warn_lost(member.path)
            return
        self._left[gone] = cursor
        renamed = Member(name)
        if renamed not in self._followed:
            self._followed[renamed] = other = _Followed(each.operation)
            other.file = gone

    def _make_room(self) -> None:
        """Close the logs to which nothing came for longest, where too many are open."""
        opened = [each for each in self._followed.values() if each.is_open and not each.is_renamed]
        for each in opened[: max(0, len(opened) + 1 - self._logs.most // 2)]:
            each.cursor()
            each.close()

    # --- reading ---------------------------------------------------------------------------------------------------

    @property
    def cursor(self) -> str:
        """The place behind all that was read."""
        return set_cursor(self._places())

    def _places(self) -> dict[str, str]:
        followed = self._followed.items()
        return {member.path: each.cursor() for member, each in followed if each.is_open or each.place is not None}

    def read(self) -> Portion | None:
        """The next records, of one log, without waiting for any; None when there are none now."""
        for is_again in (False, True):
            if not self._turn or is_again:
                self._turn = list(self._followed)[::-1]
            while self._turn:
                if self._closed.is_set():
                    raise QueryCancelled("the live question was closed")
                portion = self._portion(self._turn[-1]) if self._in_turn < _IN_TURN else None
                if portion is not None:
                    self._in_turn += 1
                    return portion
                self._turn.pop()
                self._in_turn = 0
            self._follow()
        return None

    def _portion(self, member: Member) -> Portion | None:
        each = self._followed[member]
        if each.operation == NOTHING:
            return None
        now = _look_of(member)
        if not each.is_open and (
            now == each.seen or self._is_read_elsewhere(each, now[:2]) or not self._open(member, each, now[:2])
        ):
            return None
        db, feed = each.opened
        if now != each.seen or each.is_renamed:
            db.refresh()
            if _look_of(member)[:2] != now[:2]:
                return None  # nobody knows which of them was seen
        try:
            found = feed.read()
        except QueryError:
            if feed.place.identity == db.log.identity:
                raise
            # More logs took each other's place than were looked at: the others have names of their own by now.
            self._note_left(feed)
            each.place, each.seen = str(feed.place._replace(seq=0)), None
            each.close()
            return None
        each.place = None
        each.is_renamed = not now or feed.identity != db.log.identity
        self._note_left(feed)
        each.file = feed.file_behind or (now[:2] if feed.identity == db.log.identity else ()) or each.file
        if found is None:
            each.seen = now
            return None
        self._followed[member] = self._followed.pop(member)  # the last one to be closed
        data = [self._finish(record, member) for record in found.data]
        return SetPortion(data, member.path, found, self._places())

    def _note_left(self, feed: Feed) -> None:
        """The logs of before were read to here; more may come to them under their new names."""
        for place, file in feed.left:
            self._left[place.identity] = place
            if file:
                self._left[file] = place
        feed.left.clear()

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back, from a thread, whenever read() may have something; the function given back ends it."""
        ended = threading.Event()
        seen = self._state()

        def look() -> None:
            nonlocal seen
            while not ended.wait(LOOK) and not self._closed.is_set():
                now = self._state()
                if now != seen or any(each.is_renamed for each in list(self._followed.values())):
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
            each.close()


def _from_place(log: LogSource, place: Cursor) -> Iterator[Read]:
    """The log that the place is in, if this one knows it, and those that came after, up to this one."""
    for _ in range(_CHAIN):
        if place.identity == log.identity:
            yield Read(log, place)
            return
        left = log.left_behind(place.identity, 0)
        if left is None:
            return
        if left.rest is not None:
            yield Read(left.rest, place)
        place = Cursor(left.following, place.generation, 0, 0)


def _is_empty(member: Member) -> bool:
    """Whether nothing is in the file yet, so that nobody knows of which kind it will be."""
    return _look_of(member)[2:3] == (0,)


def _look_of(member: Member) -> tuple[int, ...]:
    """What differs once somebody wrote to the file, or put another one in its place; empty where there is none."""
    try:
        found = os.stat(member.path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _name_of(folder: str, file: tuple[int, ...]) -> str | None:
    """The path of the file of this device and inode in the folder; None where it is not there."""
    try:
        with os.scandir(folder or ".") as entries:
            for entry in entries:
                if entry.inode() == file[1] and _look_of(Member(entry.path))[:2] == file:
                    return os.path.join(folder, entry.name)
    except OSError:
        pass
    return None


def _warn_lost(path: str) -> None:
    warnings.warn(
        LogWarning(
            "another file has its name since it was read last, and that of before is not found: what came to it "
            "after that is left out",
            path=path,
            remedy=Remedy("name the files that were rotated, too", "name the files that were rotated, too"),
        ),
        stacklevel=4,
    )
