"""The answer to a live question about files that others write and rotate: each line once, whatever becomes of its file.

texts.py finds out where each text is now. Here they are read in turn. What lies in a file is given in its order; what
comes to a name after the file that had it before comes after all of that.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.forking import fork_safe
from jitdb.engine.cursor import ONE, LogPlace, cursor_of, is_cursor_of_files, parse_cursor
from jitdb.engine.following.followed import Askable, Files, Followed, Lost, Moved
from jitdb.engine.following.texts import Texts
from jitdb.errors import LogError, QueryCancelled
from jitdb.log.lines.files.stamp import Stamp, are_settled, stamp_at
from jitdb.log.lines.windows import LineOpener
from jitdb.operators.question import Question
from jitdb.operators.tasks.live_seqs import sources_of

if TYPE_CHECKING:
    from jitdb.engine.cursor import Cursor

LOOK: Final = 0.25  # seconds between two looks while there is much to read
_SOONEST: Final = 0.01  # seconds between two looks at the files, after news
_LATEST: Final = 0.25  # the same after a while without any
_GROWTH: Final = 1.3  # from one pause to the next
_LOOKING: Final = 20  # times what a look takes of the processor: the least pause between two
_IN_TURN: Final = 16  # portions of one log, before others are looked at
_MOST: Final = 64  # files that had one name, and are open


class FollowedPortion(NamedTuple):
    """Some records of one log; see operators.question.Portion."""

    data: list[Any]
    followed: Followed
    places: list[int] | list[Cursor]
    entries: list[str]  # of the cursor: those of all other logs
    head: str

    def cursor(self, count: int) -> str:
        return cursor_of(self.head, [*self.entries, self.followed.entry(self.places[count - 1])])


class Follower:
    """See operators.question.Feed. Files are open until it is closed, as far as that many can be."""

    def __init__(self, question: Question, files: Files) -> None:
        self._files, self._texts = files, Texts(question, files)
        self._closed = threading.Event()
        self._reading = fork_safe(threading.Lock())  # its files are not closed while one reads
        self._turn: list[Followed] = []  # whose turn it is to be read; the next one last
        self._in_turn = 0
        self._failure: Exception | None = None  # of the thread that watches the files

    @property
    def cursor(self) -> str:
        """The place behind all that was read."""
        return cursor_of(self._files.head, self._texts.entries())

    def read(self) -> FollowedPortion | None:
        """The next records, of one log, without waiting for any; None when there are none now."""
        try:
            with self._reading:
                return self._read()
        finally:
            if self._closed.is_set():
                self._let_go()

    def _read(self) -> FollowedPortion | None:
        if self._failure is not None:
            raise self._failure
        if time.monotonic() - self._texts.looked > LOOK:  # of a name, who looks seldom misses files
            self._texts.look()
        for is_again in (False, True):
            if not self._turn or is_again:
                self._turn = sorted(self._texts.logs.values(), key=self._rank, reverse=True)
            while self._turn:
                if self._closed.is_set():
                    raise QueryCancelled("the live question was closed")
                portion = self._portion(self._turn[-1]) if self._in_turn < _IN_TURN else None
                if portion is not None:
                    self._in_turn += 1
                    return portion
                self._turn.pop()
                self._in_turn = 0
            self._texts.look()
        return None

    def _rank(self, followed: Followed) -> int:
        """How many logs are to be read before it."""
        before = followed.after
        return 0 if before is None or not self._texts.is_there(before) else 1 + self._rank(before)

    def _portion(self, followed: Followed) -> FollowedPortion | None:
        if not self._texts.is_there(followed):
            return None
        before = followed.after
        if before is not None and self._texts.is_there(before) and not before.is_idle:
            return None
        followed.after, was_open = None, followed.is_open
        try:
            found = followed.read()
        except Moved:
            return None  # the next look comes now
        except Lost:
            self._texts.lose(followed)
            return None
        if not was_open:
            self._texts.make_room()
        if found is None:
            return None
        followed.is_idle, followed.used = False, time.monotonic()
        data = [self._files.finish(record, followed.path) for record in found[0]]
        return FollowedPortion(data, followed, found[1], self._texts.entries(followed), self._files.head)

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back, from a thread, whenever read() may have something; the function given back ends it."""
        ended = threading.Event()

        def look() -> None:
            pause, seen, is_settled = _SOONEST, list[Stamp | None](), False
            while not ended.wait(pause) and not self._closed.is_set():
                begin, at = time.thread_time(), time.time_ns()  # of the first: not what other processes take
                try:
                    now = self._state()
                except Exception as error:  # or nobody would look any more, and who waits would wait for ever
                    self._failure = error
                    callback()
                    return
                is_news, seen = now != seen, now
                if is_news or not is_settled or self._texts.waits:
                    callback()
                # What is written within a tick of the clock after a look leaves the same stamp: look once more then.
                is_settled = are_settled(now, at)
                pause = _SOONEST if is_news else min(pause * _GROWTH, _LATEST)
                pause = max(pause, _LOOKING * (time.thread_time() - begin))

        threading.Thread(target=look, name="jitdb logs", daemon=True).start()
        return ended.set

    def _state(self) -> list[Stamp | None]:
        files = [stamp_at(Path(path)) for path in self._files.paths()]
        return [*files, *(stamp for followed in list(self._texts.logs.values()) for stamp in followed.look())]

    def close(self) -> None:
        """Read no more, from any thread. A read that is under way stops soon, and then lets go of the files."""
        self._closed.set()
        if not self._let_go():
            for followed in list(self._texts.logs.values()):
                followed.interrupt()

    def _let_go(self) -> bool:
        """Close all files, unless a read is under way, which will do it."""
        if not self._reading.acquire(blocking=False):
            return False
        try:
            self._texts.close()
        finally:
            self._reading.release()
        return True


def is_of_places(question: Question) -> bool:
    """Whether it names places in one file, so that it says nothing of the files that have the name later."""
    leaves = question.operation.leaves()
    return bool(sources_of(question.operation)) or any(leaf.names_places for leaf in leaves)


def follow_name(db: Askable, question: Question) -> Follower:
    """See JITDB.feed. Raises QueryError for a cursor of another log."""
    path = str(db.log.path)
    live = question.live
    if live is not None and live.after is not None and not is_cursor_of_files(live.after):
        place = parse_cursor(live.after)
        place.rank(db.log, int)
        live = live._replace(after=cursor_of(ONE, [LogPlace(path, place).entry()]))
    lines = LineOpener(db.log.codec, db.log.framing.form, is_said=True)  # type: ignore[attr-defined]  # of lines

    def paths() -> list[str]:
        with suppress(LogError, OSError):  # counts beside a live question show what that gave
            db.refresh()
        return [path] if os.path.exists(path) else []

    files = Files(
        paths, frozenset([path]), lines, db.over,
        lambda _: nullcontext(db), lambda _: question.operation, lambda record, _: record, _MOST, ONE,
    )  # fmt: skip
    return Follower(question.changed(live=live), files)
