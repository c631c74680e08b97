"""The answer to a live question to a set of logs: what comes to any of them, and to those that are new.

Each log has a feed of its own, and its records come in its order; among logs they come as they are seen. A log that was
not there when the question began is given from its beginning, unless it was read under another name, or is the copy of
one that was: then it is gone on with where that was left. A log whose name another one took is read to its end, and is
then one that was left (left_logs.py). Of more logs than can be open, those to which nothing came for longest are
closed, until their files change.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from jitdb.engine.cursor import parse_cursor
from jitdb.errors import LogError, LogWarning, NotALog, QueryCancelled, QueryError, Remedy
from jitdb.logset.answering.left_logs import Left, LeftLogs
from jitdb.logset.members.finding import Member, Where, find_members
from jitdb.logset.members.open_logs import OpenLogs
from jitdb.logset.members.read_text import ReadText, is_packed
from jitdb.logset.narrowing import NOTHING, narrowed
from jitdb.logset.places import LogPlace, parse_set_cursor, set_cursor
from jitdb.operators.nodes.operations import Operation
from jitdb.operators.question import Live, Portion, Question

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.engine.reading.feed import Feed
    from jitdb.log.source import LogSource

LOOK: Final = 0.25  # seconds between two looks at the files
_PATIENCE: Final = 10.0  # seconds that a compressed file has until enough is in it to tell whether it is a copy
_IN_TURN: Final = 16  # portions of one log, before others are looked at


class SetPortion:
    """Some records of one log; see operators.question.Portion."""

    def __init__(self, data: list[Any], path: str, portion: Portion, places: dict[str, LogPlace]) -> None:
        self.data = data
        self._path, self._portion, self._places = path, portion, places

    def cursor(self, count: int) -> str:
        place = self._places[self._path]._replace(cursor=self._portion.cursor(count))
        return set_cursor({**self._places, self._path: place})


class _Followed:
    """One log: its feed while it is open, the place behind what was read while it is not.

    file: device and inode of its file
    seen: how that looked when nothing more was in it
    is_renamed: whether it has another name by now, so that nothing is seen of it under this one
    kept: the text that was read of it, as far as it could be read when nothing more was in it
    """

    def __init__(self, operation: Operation, file: tuple[int, ...], place: str | None = None) -> None:
        self.operation, self.file, self.place = operation, file, place
        self.seen: tuple[int, ...] | None = None
        self.is_renamed = False
        self.kept: ReadText | None = None
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

    def log_place(self) -> LogPlace:
        """The same, with the text that was read."""
        return LogPlace(self.cursor(), self.kept)

    def keep_text(self) -> None:
        """Know what was read by its text, whatever becomes of the file."""
        stop = 0 if self._open is None else self._open[1].place.offset
        log = self._log() if self.kept is None or self.kept.stop != stop else None
        if log is not None:
            self.kept = ReadText.of(log, stop) or self.kept

    def text(self) -> ReadText | None:
        """All of it that is there; None where it is closed, or gone."""
        log = self._log()
        return None if log is None else ReadText.of(log, log.durable_end)

    def _log(self) -> LogSource | None:
        if self._open is None:
            return None
        db, feed = self._open
        db.refresh()  # then it can be read though another file has its name
        if db.log.identity == feed.identity:
            return db.log
        behind = db.log.left_behind(feed.identity, 0)
        return None if behind is None else behind.rest

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
        self._left = LeftLogs()
        self._waiting: dict[tuple[int, ...], float] = {}  # since when compressed files are, by device and inode
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
            left = self._left.find(parse_cursor(place.cursor).identity)
            if left is not None:
                self._left.drop(left)
                _warn_lost(path)

    def _go_on_behind(self, member: Member, place: LogPlace) -> None:
        """From this place, if it is one of the log that has the name now."""
        cursor = parse_cursor(place.cursor)
        with self._logs.using(member) as db:
            is_lost = cursor.identity != db.log.identity and cursor.offset > 0
        if is_lost or not self._add(member, _look_of(member)[:2], place=place.cursor):
            self._left.note(Left(member.path, cursor, (), place.text))
        else:
            del self._unknown[member.path]

    def _is_begun(self, member: Member) -> bool:
        """Begin with the log, unless nothing is in it, or it is read already, or waits; False where it was renamed."""
        file = _look_of(member)[:2]
        if member in self._followed or _is_empty(member) or self._is_followed(file):
            return True
        begin_now = self._live.after is None and not self._live.old
        try:
            return self._add(member, file, begin_now=begin_now) or _look_of(member)[:2] == file
        except NotALog:
            if file and _look_of(member)[:2] == file:
                raise
            return False

    def _follow(self) -> None:
        """Begin with the logs that are new."""
        for member in sorted(find_members(self._where), key=lambda member: is_packed(member.path)):
            if member in self._followed or _is_empty(member):
                continue
            file = _look_of(member)[:2]
            try:
                if not self._is_followed(file):
                    self._add(member, file)
            except NotALog:  # gone since, or too little of what is compressed is there to say what it is
                if file and _look_of(member)[:2] == file and not is_packed(member.path):
                    raise

    def _is_followed(self, file: tuple[int, ...]) -> bool:
        """Whether the file is read, under the name that it has, or under one that it had."""
        return any(file == each.file for each in self._followed.values())

    def _add(self, member: Member, file: tuple[int, ...], *, begin_now: bool = False, place: str | None = None) -> bool:
        """Follow the log; False where that cannot be yet, or is done under another name, see _open()."""
        each = _Followed(narrowed(self._question.operation, member.fields), file, place)
        if each.operation == NOTHING or self._open(member, each, begin_now):
            self._followed[member] = each
            return True
        return False

    def _open(self, member: Member, each: _Followed, begin_now: bool = False) -> bool:
        """Its feed: from its place on, if it has one, or from where it was left; else from now on, or all.

        False where it is read under another name, is the copy of one that is, or where another file has its name now.
        """
        self._make_room()
        with ExitStack() as held:
            db = held.enter_context(self._logs.using(member))
            db.refresh()
            log, identity = db.log, db.log.identity
            place, left = None if each.place is None else parse_cursor(each.place), None
            if place is None or (place.identity != identity and place.offset):  # new, or edited
                if self._is_read(each, identity) or self._is_being_packed(member, each.file, log):
                    return False
                left = self._left.of(log, each.file)
                place = None if left is None else left.place_in(log)
            live = Live(not begin_now) if place is None else Live(after=str(place))
            feed = db.feed(self._question.changed(db=db, operation=each.operation, live=live))
            feed.end_with_log()
            if _look_of(member)[:2] != each.file or {feed.identity, log.identity} != {identity}:
                feed.close()
                return False
            each.begin(held.pop_all(), db, feed)
        if left is not None:
            self._left.drop(left)
        return True

    def _is_read(self, each: _Followed, identity: bytes) -> bool:
        """Whether the log of this identity is, by another one."""
        return any(
            other is not each and other.is_open and other.opened[1].identity == identity
            for other in self._followed.values()
        )

    def _is_being_packed(self, member: Member, file: tuple[int, ...], log: LogSource) -> bool:
        """Whether it may become, or is, the compressed copy of a log that goes on being read.

        Of one whose file is gone, that ends: it is one that was left.
        """
        if not is_packed(member.path):
            return False
        is_unsure = not log.durable_end
        for name, each in list(self._followed.items()):
            text = each.text() if each.file != file else None
            is_copy = text is not None and text.begins(log)
            if is_copy and self._has_name(name, each):
                return True
            if is_copy:
                self._leave(name, each)
            is_unsure = is_unsure or is_copy is None
        is_unsure = is_unsure or self._left.may_be(log)
        if is_unsure and time.monotonic() < self._waiting.setdefault(file, time.monotonic()) + _PATIENCE:
            return True
        self._waiting.pop(file, None)
        return False

    def _has_name(self, member: Member, each: _Followed) -> bool:
        """Whether its file is there, under whatever name."""
        return _look_of(member)[:2] == each.file or _name_of(os.path.dirname(member.path), each.file) is not None

    def _leave(self, member: Member, each: _Followed) -> None:
        """Follow it no more: who finds its file, or a copy, under another name goes on from here."""
        each.keep_text()
        self._left.note(Left(member.path, parse_cursor(each.cursor()), each.file, each.kept))
        each.close()
        del self._followed[member]

    def _lose(self, member: Member, each: _Followed) -> None:
        """Another file has the name of one that was closed: that one is read on under its new name, if it has one."""
        place = parse_cursor(each.cursor())
        name = _name_of(os.path.dirname(member.path), each.file)
        self._leave(member, each)
        if name is not None and Member(name) not in self._followed:
            self._add(Member(name), each.file)  # it need not be one of the set
        elif name is None and place.offset:
            _warn_lost(member.path)

    def _make_room(self) -> None:
        """Close the logs to which nothing came for longest, where too many are open."""
        opened = [each for each in self._followed.values() if each.is_open and not each.is_renamed]
        for each in opened[: max(0, len(opened) + 1 - self._logs.most // 2)]:
            each.cursor()
            each.keep_text()
            each.close()

    # --- reading ---------------------------------------------------------------------------------------------------

    @property
    def cursor(self) -> str:
        """The place behind all that was read."""
        return set_cursor(self._places())

    def _places(self) -> dict[str, LogPlace]:
        followed = self._followed.items()
        return {
            **self._left.places(),
            **{member.path: each.log_place() for member, each in followed if each.is_open or each.place is not None},
        }

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
        each = self._followed.get(member)
        if each is None or each.operation == NOTHING:
            return None
        now = _look_of(member)
        if not each.is_open:
            if now == each.seen:
                return None
            if now[:2] != each.file:
                self._lose(member, each)
                return None
            if not self._open(member, each):
                return None
        db, feed = each.opened
        if now != each.seen or each.is_renamed:
            db.refresh()
        try:
            found = feed.read()
        except QueryError:
            if feed.place.identity == db.log.identity:
                raise
            # More logs took each other's place than were looked at, or it was edited, and is begun anew.
            each.kept = each.kept if _look_of(member)[:2] != each.file else None
            self._leave(member, each)
            return None
        each.place = None
        each.is_renamed = now[:2] != each.file or feed.identity != db.log.identity
        if feed.is_over:
            self._leave(member, each)
            return None
        if found is None:
            each.keep_text()
            each.seen = now
            return None
        self._followed[member] = self._followed.pop(member)  # the last one to be closed
        data = [self._finish(record, member) for record in found.data]
        return SetPortion(data, member.path, found, self._places())

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back, from a thread, whenever read() may have something; the function given back ends it."""
        ended = threading.Event()
        seen = self._state()

        def look() -> None:
            nonlocal seen
            while not ended.wait(LOOK) and not self._closed.is_set():
                now = self._state()
                if now != seen or self._waiting or any(each.is_renamed for each in list(self._followed.values())):
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
