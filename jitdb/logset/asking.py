"""Which part of a question each log of a set is asked, and the asking: log by log, or files counted together.

Small files of a folder are counted together, by bundles (log/lines/bundles/), where what differs from log to log does
not matter: their paths leave the same question of each, and, where it is about the time, the same fields are the time
of each. To see records, each log is asked.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from jitdb.common.forking import fork_safe
from jitdb.common.paths import LOG_PATH
from jitdb.engine.progress import Bar
from jitdb.engine.roles import first_of, found_time
from jitdb.log.lines.bundles.bundle import LEAST, Bundle, find_bundles, remove
from jitdb.log.lines.bundles.bundled_lines import BundledLines, Unbundled
from jitdb.logset.member import Member, OpenLogs, Where, find_members
from jitdb.logset.passing import UNREADABLE, PassedOver
from jitdb.operators.nodes.operation import NOTHING, Operation
from jitdb.operators.summaries.summary import DECLARED_TIME

if TYPE_CHECKING:
    from jitdb.engine.answering.summarizing import LogView
    from jitdb.engine.database import JITDB
    from jitdb.log.source import LogSource
    from jitdb.operators.question import Question

T = TypeVar("T")

_SMALL: Final = 2 << 20  # bytes of a log: below, most of its scan is Python, which threads do not speed up
_MOST: Final = 1 << 16  # remembered questions to single logs, some hundred bytes each; beyond, all are forgotten
_COUNTS: Final = 1 << 16  # counts, some hundred bytes each; beyond, all are forgotten
_TRIED: Final = 8  # logs that are scanned in this thread before it decides about threads


class Part(NamedTuple):
    """What one log is asked."""

    member: Member
    operation: Operation


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
        self.using = self.open.using
        self._threads, self._progress = threads or min(os.cpu_count() or 1, 8), progress
        self.members = find_members(where)
        self.scanning = (0, 0)  # how many logs are done, and of how many, while they are brought up to date
        self.tells_at_once = True  # of files that are passed over; else who asks does, once the answer stands
        self._known: set[Any] = set()  # identities of the operations that logs were asked since the last refresh()

    def refresh(self) -> bool:
        """See which files there are now, and what was written to them; True if there was anything."""
        self.passed.forget(self.open, self.members)
        return self.see(find_members(self.where))

    def see(self, members: list[Member]) -> bool:
        """See that these are the logs now, and what was written to them; True if there was anything."""
        before, self.members = self.members, members
        self.forget_asked()
        changed = [db.refresh() for _, db in self.open.members() if os.path.exists(db.log.path)]
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

    def together(self, question: Question) -> list[Part]:
        """The parts for counting, with logs that are counted as one."""
        parts = self.parts(question.operation)
        if self._bundles is None or is_of_each(question):
            return parts
        return self._bundles.joined(parts, is_timed(question))

    def of_together(self, question: Question, ask: Callable[[list[Part]], T]) -> T:
        """What `ask` gives for these parts; files that changed while they were counted together are asked one by one
        in the next try.
        """
        while True:
            try:
                return ask(self.together(question))
            except Unbundled as void:
                if self._bundles is not None and void.bundle is not None:
                    self._bundles.give_up(void.bundle)
                self._look_at_bundles()

    def _look_at_bundles(self) -> bool:
        """Find out which files are counted together now. True if some no longer are."""
        void = self._bundles.look_again() if self._bundles is not None else []
        for bundle in void:
            self.open.drop(Member(bundle.path))
        return bool(void)

    def of_each(self, parts: list[Part], work: Callable[[JITDB, Part], T], asked_for: Any = None) -> list[T]:
        """What the work gives for each log, in their order; logs that may need a scan go side by side.

        asked_for: what the work needs beside what the operations need
        """

        def one(part: Part) -> T:
            try:
                with self.using(part.member) as db:
                    found = work(db, part)
            except UNREADABLE as error:
                if not self.passed.take(part.member, error):
                    raise
                self.open.drop(part.member)
                return one(part)
            if isinstance(part.member, Together) and part.member.look() is None:
                raise Unbundled("files of it were changed", path=part.member.path)
            return found

        asked = {(part.member, part.operation.identity, asked_for) for part in parts}
        if len(parts) < 2 or asked <= self._known:
            done = [one(part) for part in parts]
            self._tell()
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
        self._tell()
        return done

    def _tell(self) -> None:
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

    def readable(self, members: Iterable[Member]) -> Iterator[JITDB]:
        """These logs, but for those that are passed over, one open after the other."""
        for member in members:
            with self.using(member) as db:
                if member not in self.passed.errors:
                    yield db


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


# --- files that are counted together ---------------------------------------------------------------------------------

_CHOICES: Final = 256  # choices of files, by questions about their paths, whose bundles are remembered


class Together(Member):
    """Logs of a set that are counted as one: the files of a bundle, or some of them."""

    bundle: Bundle
    members: tuple[Member, ...]

    def __new__(cls, bundle: Bundle, members: Iterable[Member]) -> Together:
        self = super().__new__(cls, bundle.path)
        self.bundle, self.members = bundle, tuple(members)
        return self

    @property
    def is_whole(self) -> bool:
        """Whether all files of the bundle are asked."""
        return len(self.members) == len(self.bundle.files)

    def within(self, view: LogView) -> LogView:
        """The part of the bundle's records that is counted."""
        if self.is_whole:
            return view
        return view.within(BundledLines(self.bundle).parts({os.path.basename(member.path) for member in self.members}))

    def beginnings(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """The path of each log, and its first records."""
        paths = {os.path.basename(member.path): member.path for member in self.members}
        for file, log in zip(self.bundle.files, BundledLines(self.bundle).each(), strict=True):
            if file.name in paths:
                yield paths[file.name], first_of(log)

    @property
    def key(self) -> Hashable:
        return self.path, self.members

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields that all records of all these logs share."""
        return MappingProxyType({name: value for name, value in self.members[0].fields.items() if name != LOG_PATH})

    @property
    def size(self) -> int:
        return self.bundle.size

    @property
    def logs(self) -> int:
        return len(self.members)

    def look(self) -> object:
        return self.bundle.look()


class Bundles:
    """Finds bundles, and makes them. Safe for threads.

    store_of: where the bundles of a folder's files are; None: in memory
    has_own:  whether the file has indexes of its own
    time:     whether the fields of the declared time are given; else the records of each file show them
    """

    def __init__(self, store_of: Callable[[str], Path | None], has_own: Callable[[str], bool], time: bool) -> None:
        self._store_of, self._has_own, self._is_time_known = store_of, has_own, time
        self._lock = fork_safe(threading.Lock())
        self._found: dict[tuple[str, ...], list[Bundle]] = {}  # by folder, and the names that were asked for
        self._differ: dict[bytes, bool] = {}  # what _differ_in_time() found
        self._alone: dict[str, set[str]] = defaultdict(set)  # names of files, by folder, that are asked one by one

    def joined(self, parts: Sequence[Part], is_timed: bool) -> list[Part]:
        """The same parts, with logs that are counted together as one part.

        is_timed: the question is about the time, so only logs whose time is in the same fields are joined
        """
        folders: dict[str, dict[str, Part]] = defaultdict(dict)
        for part in parts:
            folder, name = os.path.split(part.member.path)
            folders[folder][name] = part
        return [part for folder, named in folders.items() for part in self._joined(folder, named, is_timed)]

    def _joined(self, folder: str, named: dict[str, Part], is_timed: bool) -> Iterator[Part]:
        left = dict(named)
        for bundle in self._bundles(os.path.realpath(folder), tuple(named)) if len(named) >= LEAST else ():
            if is_timed and self._differ_in_time(bundle):
                continue
            asked: dict[Hashable, list[Part]] = defaultdict(list)
            for file in bundle.files:
                if file.name in left:
                    part = left.pop(file.name)
                    asked[part.operation.identity].append(part)
            for parts in asked.values():
                yield Part(Together(bundle, (part.member for part in parts)), parts[0].operation)
        yield from left.values()

    def _bundles(self, folder: str, names: tuple[str, ...]) -> list[Bundle]:
        key = (folder, *names)
        with self._lock:
            if key not in self._found:
                if len(self._found) >= _CHOICES:
                    self._found.clear()
                own = partial(_is_true_of, self._has_own, folder)
                self._found[key] = find_bundles(folder, self._store_of(folder), names, own, self._alone[folder])
            return self._found[key]

    def _differ_in_time(self, bundle: Bundle) -> bool:
        """Whether the declared time of some of its files is in other fields, as their first records show."""
        if self._is_time_known:
            return False
        if bundle.identity not in self._differ:
            found = {found_time(log) for log in BundledLines(bundle).each()}
            self._differ[bundle.identity] = len(found) > 1 or None in found
        return self._differ[bundle.identity]

    def give_up(self, bundle: Bundle) -> None:
        """Ask its files one by one from now on."""
        with self._lock:
            self._alone[bundle.folder].update(file.name for file in bundle.files)
        remove(bundle)

    def look_again(self) -> list[Bundle]:
        """Look for other files; gives the bundles that are void now."""
        with self._lock:
            bundles = {bundle.identity: bundle for found in self._found.values() for bundle in found}.values()
            self._found.clear()
            void = [bundle for bundle in bundles if not bundle.is_current()]
            for bundle in void:
                self._alone[bundle.folder].update(bundle.changed())
                self._differ.pop(bundle.identity, None)
            return void


def is_of_each(question: Question) -> bool:
    """Whether it counts by the path, or names places in logs, which differ from log to log."""
    if any(leaf.names_places for leaf in question.operation.leaves()):
        return True
    return question.summary is not None and any(path[0] == LOG_PATH for path in question.summary.paths)


def is_timed(question: Question) -> bool:
    """Whether it is about the declared time."""
    is_counted = question.summary is not None and DECLARED_TIME in question.summary.columns
    return is_counted or question.operation.compares(DECLARED_TIME)


def _is_true_of(test: Callable[[str], bool], folder: str, name: str) -> bool:
    return test(os.path.join(folder, name))
