"""Which part of a question each log of a set is asked, and the asking: log by log, or small files together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeVar

from jitdb.engine.progress import Bar
from jitdb.log.lines.bundles.bundled_lines import Unbundled
from jitdb.log.objects.door import exists
from jitdb.logset.bundling import Apart, Bundles, Part, Together
from jitdb.logset.member import Member, ObjectMember, Where, find_members
from jitdb.logset.open_logs import OpenLogs
from jitdb.logset.passing import UNREADABLE, PassedOver
from jitdb.operators.nodes.operation import EVERYTHING, NOTHING, Operation

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.log.source import LogSource
    from jitdb.operators.question import Question

T = TypeVar("T")

_SMALL: Final = 2 << 20  # bytes of a log: below, most of its scan is Python, which threads do not speed up
_MOST: Final = 1 << 16  # remembered questions to single logs, some hundred bytes each; beyond, all are forgotten
_COUNTS: Final = 1 << 16  # counts, some hundred bytes each; beyond, all are forgotten
_TRIES: Final = 16  # to ask files together that are changed, or cannot be read, again and again
_TRIED: Final = 8  # logs that are scanned in this thread before it decides about threads


class Asking:
    """The logs of a set as they were found last, and the asking of them.

    where:   files, patterns and folders
    open:    those of them that are open; `using` opens one
    threads: that scan at the same time; 0 is one a core
    """

    def __init__(
        self,
        where: Sequence[Where],
        open_log: Callable[[Member], JITDB],
        bundles: Bundles | None,
        threads: int,
        progress: bool | None,
    ) -> None:
        self.passed = PassedOver(where)
        self.where, self.open, self._bundles = where, OpenLogs(self.passed.opening(open_log)), bundles
        self._threads, self._progress = threads or min(os.cpu_count() or 1, 8), progress
        self.members = find_members(where)
        self.scanning = (0, 0)  # how many logs are done, and of how many, while they are brought up to date
        self.tells_at_once = True  # of files that are passed over; else who asks does, once the answer stands
        self._known: set[Any] = set()  # identities of the operations that logs were asked since the last refresh()

    @contextmanager
    def using(self, member: Member) -> Iterator[JITDB]:
        """See OpenLogs.using."""
        with self.open.using(member) as db:
            if isinstance(member, Together):
                member.bring(db)
            yield db

    def refresh(self) -> bool:
        """See which files there are now, and what was written to them; True if there was anything."""
        self.passed.forget(self.open, self.members)
        return self.see(find_members(self.where))

    def see(self, members: list[Member]) -> bool:
        """See that these are the logs now, and what was written to them; True if there was anything."""
        before, self.members = self.members, members
        self.forget_asked()
        changed = [db.refresh() for _, db in self.open.members() if exists(db.log.path)]
        changed.append(self._look_at_bundles())
        return before != self.members or any(changed)

    def forget_asked(self) -> None:
        """What logs were asked before does not tell any more that they need no scan."""
        self._known.clear()

    def parts(self, operation: Operation) -> list[Part]:
        """What each log is asked; logs in which nothing can match are left out."""
        parts = [Part(member, operation.narrowed(member.fields)) for member in self.members]
        return [part for part in parts if part.operation != NOTHING]

    def each(self, paths: Iterable[str]) -> Iterator[tuple[str, JITDB]]:
        """The logs with these paths that are there, one open after the other."""
        wanted = set(paths)
        for member in self.members:
            if member.path in wanted:
                with self.using(member) as db:
                    yield member.path, db

    def together(self, question: Question, *, in_order: bool = False) -> list[Part]:
        """The parts, with logs that are asked as one. in_order: for records in the order that the question says."""
        found: list[Part] = []
        for found in self._together(question, in_order):  # noqa: B007
            pass
        return found

    def _together(self, question: Question, in_order: bool) -> Generator[list[Part]]:
        """The same; before it parts of them, each to be asked at once: see Bundles.together."""
        parts, apart = self.parts(question.operation), Apart.of_question(question, in_order=in_order)
        if self._bundles is None or apart is None:
            yield parts
        else:
            yield from self._bundles.together(parts, apart)

    def bundled(self) -> list[Part]:
        """All logs, those together that are in bundles by now."""
        parts = self.parts(EVERYTHING)
        if self._bundles is None:
            return parts
        there, unread = self._bundles.there(parts, Apart(frozenset(), False, False))
        return [*there, *unread]

    def as_they_are(self, question: Question) -> tuple[list[Part], list[Part]]:
        """The parts, as far as logs are in bundles by now; and those of objects that nobody read yet."""
        parts, apart = self.parts(question.operation), Apart.of_question(question, in_order=False)
        if self._bundles is None or apart is None:
            return parts, []
        there, unread = self._bundles.there(parts, apart)
        objects = [part for part in unread if isinstance(part.member, ObjectMember)]
        return [*there, *(part for part in unread if not isinstance(part.member, ObjectMember))], objects

    def of_together(self, question: Question, ask: Callable[[list[Part]], T], *, in_order: bool = False) -> T:
        """What `ask` gives for these parts; files that changed while they were asked together are asked otherwise in
        the next try.
        """
        for _ in range(_TRIES):
            try:
                with closing(self._together(question, in_order)) as rounds:
                    for parts in rounds:
                        found = ask(parts)
                return found
            except Unbundled as void:
                if self._bundles is not None and void.bundle is not None:
                    self._bundles.give_up(void.bundle, void.alone)
                    self.open.drop(Member(void.bundle.path))
                self._look_at_bundles()
        return ask(self.parts(question.operation))

    def _look_at_bundles(self) -> bool:
        """Find out which files are asked together now. True if some no longer are what they were."""
        return bool(self._bundles.look_again()) if self._bundles is not None else False

    def of_each(self, parts: list[Part], work: Callable[[JITDB, Part], T], asked_for: Any = None) -> list[T]:
        """What the work gives for each log, in their order; logs that may need a scan go side by side.

        asked_for: what the work needs beside what the operations need
        """

        def one(part: Part) -> T:
            try:
                with self.using(part.member) as db:
                    found = work(db, part)
                    if isinstance(part.member, Together):
                        part.member.check(db)
            except UNREADABLE as error:
                if not self.passed.take(part.member, error):
                    raise
                self.open.drop(part.member)
                return one(part)
            return found

        asked = {(part.member, part.operation.identity, asked_for) for part in parts}
        if len(parts) < 2 or asked <= self._known:
            done = [one(part) for part in parts]
            self.tell()
            return done
        scanned = list(accumulate(part.member.size for part in parts))
        logs = list(accumulate(part.member.logs for part in parts))
        done = []
        with Bar(f"{logs[-1]:,} logs", scanned[-1], self._progress) as bar:

            def note(found: T) -> None:
                done.append(found)
                bar(scanned[len(done) - 1])
                self.scanning = logs[len(done) - 1], logs[-1]

            if scanned[-1] < _SMALL * len(parts):
                _until_kept_waiting(map(one, parts), note)
            with ThreadPoolExecutor(self._threads) as pool:
                for found in pool.map(one, parts[len(done) :]):
                    note(found)
        self.scanning = (0, 0)
        if len(self._known) + len(asked) > _MOST:
            self._known.clear()
        self._known |= asked
        self.tell()
        return done

    def tell(self) -> None:
        """Warn of what is passed over. Raises its error where that is all there is."""
        if self.tells_at_once:
            self.passed.tell(self.members)

    @contextmanager
    def opened(self, path: str) -> Iterator[JITDB]:
        """The database of the log at this path. Raises what is wrong with it, also where it is passed over."""
        member = Member(path)
        self.passed.forget(self.open, [member])
        with self.using(member) as db:
            if member in self.passed.errors:
                raise self.passed.errors[member]
            yield db

    def of_readable(self, members: Iterable[Member], work: Callable[[JITDB], T]) -> Iterator[T]:
        """What the work gives for these logs, but for those that are passed over, one open after the other."""
        for member in members:
            try:
                with self.using(member) as db:
                    found = work(db)
            except UNREADABLE as error:
                if not self.passed.take(member, error):
                    raise
                self.open.drop(member)
            if member not in self.passed.errors:
                yield found


def _until_kept_waiting(results: Iterable[T], note: Callable[[T], object]) -> None:
    """Take results in this thread while at least half of the time is work of this process: threads help only where
    most of the time is spent waiting for files.
    """
    begin, worked = time.perf_counter(), time.process_time()
    for number, found in enumerate(results, 1):
        note(found)
        if number >= _TRIED and time.perf_counter() - begin > 2 * (time.process_time() - worked):
            return


class Counts:
    """How many records of single logs matched, valid while a `stat` shows the file unchanged. Thread-safe.

    A set may have more logs than it keeps open, and opening one takes a hundred times as long as the `stat`. So a
    repeated count opens only changed logs.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[object, int]] = {}

    def of(self, part: Part) -> int | None:
        """How many records of the log match; None: the log must be asked."""
        known = self._known.get(_key(part))
        return known[1] if known is not None and part.member.look() == known[0] else None

    def asked(self, part: Part, log: LogSource, count: Callable[[], int]) -> int:
        """What the open log answers; kept where a `stat` of its file would show a later change."""
        stamp = log.settled_stamp()
        found = count()
        if stamp is not None and stamp == log.settled_stamp():  # else it was refreshed meanwhile
            if len(self._known) >= _COUNTS:
                self._known.clear()
            self._known[_key(part)] = (stamp, found)
        return found

    def forget(self) -> None:
        """Ask again: a log may have been told to forget what functions said of its records (reindex)."""
        self._known.clear()


def _key(part: Part) -> Hashable:
    return part.member.key, part.operation.identity
