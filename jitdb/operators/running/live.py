"""What of a live question was read and not handed out yet, and the place behind what was handed out."""

from __future__ import annotations

from collections.abc import Callable
from operator import length_hint

from jitdb.common.forking import begins_anew
from jitdb.operators.nodes.operations import DEFERRED
from jitdb.operators.question import EVERYTHING, Feed, Live, Portion, Question
from jitdb.operators.running.answer import log
from jitdb.operators.running.reader import Reader
from jitdb.operators.tasks.deferred import resolved


class LiveReader(Reader):
    """The feed of a live question: a Reader that does not end by itself, and has a cursor.

    The question begins where the log ends when this is made. Nothing is read then, and nothing that takes long is done:
    also naming that place is left to the first read().
    """

    __slots__ = ("_begin", "_feed", "_forked", "_place", "_portion", "_unwatch", "_wake")

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self._portion: Portion | None = None
        self._place: str | None = None  # the place before the portion; None is where it began
        self._wake: Callable[[], object] = _nobody
        self._unwatch: Callable[[], object] = _nobody
        # Tasks may take their time: until they have answered, a feed of everything keeps the place.
        self._begin = self._open(question.changed(operation=EVERYTHING) if self.unresolved else question)
        self._feed = None if self.unresolved else self._begin
        self._forked = False
        begins_anew(self)

    def begin_anew(self) -> None:
        """In a forked child: who looks for news in the parent is not here."""
        self._forked = True

    @property
    def cursor(self) -> str:
        """The place behind the last record that was taken: `live(after=cursor)` goes on there."""
        with self._lock:
            place = self._cursor()
        if place is None:
            with self._reading:
                place = self._named()
        return place

    @property
    def unresolved(self) -> bool:
        """Whether there are tasks to be asked before the database."""
        return bool(self.question.operation.unresolved & DEFERRED)

    def watch(self, callback: Callable[[], object]) -> None:
        """Call back, from any thread, when read() may have something, or it was closed; one callback at a time."""
        with self._lock:
            unwatch, self._wake, self._unwatch = self._unwatch, callback, _nobody
            if self._feed is not None and not self.ended:
                self._unwatch = self._feed.watch(callback)
        unwatch()

    def close(self) -> None:
        """Read no more. Never waits; a read that is under way stops soon."""
        self._end()
        with self._lock:
            unwatch, self._unwatch = self._unwatch, _nobody
            feed, wake = self._feed, self._wake
        unwatch()
        self._begin.close()
        if feed is not None:
            feed.close()
        wake()

    def _next(self) -> bool:
        if self._forked:
            self._forked = False
            self.watch(self._wake)
        self._named()
        feed = self._resolved_feed()
        portion = feed.read()
        if portion is None:
            place = feed.cursor
            with self._lock:
                if not self.ended:  # all that was looked at is done with, also what did not match behind the last
                    self._place, self._portion = place, None
            return False
        if self.question.debugging:
            log("%d records came", len(portion.data))
        with self._lock:
            if not self.ended:
                self._place, self._portion = self._cursor(), portion
                self._units = 0
        self._keep(portion.data)
        return True

    def _cursor(self) -> str | None:
        taken = self._units - length_hint(self.rest)
        if self._portion is None or not taken:
            return self._place
        return self._portion.cursor(taken if self.question.limit is None else len(self._portion.data))

    def _named(self) -> str:
        """The place, for the first time: where it began. To be called by who reads."""
        if self._place is None:
            self._place = self._begin.cursor
        return self._place

    def _open(self, question: Question) -> Feed:
        return question.database.feed(question, cancel=self._cancel)

    def _resolved_feed(self) -> Feed:
        """The feed; where tasks had to be asked, it begins at the place that was kept."""
        if self._feed is not None:
            return self._feed
        self.question = resolved(self.question, self._cancel)
        feed = self._open(self.question.changed(live=Live(after=self._named())))
        with self._lock:
            self._feed = feed
            if self.ended:
                feed.close()
            elif self._wake is not _nobody:
                self._unwatch = feed.watch(self._wake)
        self._begin.close()
        return feed


def _nobody() -> None:
    pass
