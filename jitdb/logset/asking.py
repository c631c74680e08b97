"""What of a question is asked of which log of a set, and the asking: of each, or of files that are counted together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeVar

from jitdb.engine.progress import Bar
from jitdb.log.lines.bundles.bundled_lines import Unbundled
from jitdb.logset.counted_bundles import Bundles, Together, is_of_each, is_timed
from jitdb.logset.member import Member, Where, find_members
from jitdb.logset.merging import Part
from jitdb.logset.open_logs import OpenLogs
from jitdb.operators.nodes.operation import NOTHING

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.operation import Operation
    from jitdb.operators.question import Question

T = TypeVar("T")

_SMALL: Final = 2 << 20  # bytes of a log that takes Python longer than kernels, which alone go side by side
_MOST: Final = 1 << 16  # questions to single logs that are remembered, some hundred bytes each; beyond, none is
_COUNTS: Final = 1 << 16  # counts, some hundred bytes each; beyond, all are forgotten
_TRIED: Final = 8  # such logs, before it is judged whether they are waited for


class Asking:
    """The logs of a set as they were found last, and the asking of them.

    where:   files, patterns and folders
    logs:    those of them that are open
    threads: that scan at the same time; 0 is one a core
    """

    def __init__(
        self, where: Sequence[Where], logs: OpenLogs, bundles: Bundles | None, threads: int, progress: bool | None
    ) -> None:
        self._where, self._logs, self._bundles = where, logs, bundles
        self._threads, self._progress = threads or min(os.cpu_count() or 1, 8), progress
        self.members = find_members(where)
        self.scanning = (0, 0)  # how many logs are done, and of how many, while they are brought up to date
        self._known: set[Any] = set()  # identities of the operations that logs were asked since the last refresh()

    def refresh(self) -> bool:
        """See which files there are now, and what was written to them; True if there was anything."""
        before, self.members = self.members, find_members(self._where)
        self._known.clear()
        changed = [db.refresh() for db in self._logs.opened() if os.path.exists(db.log.path)]
        changed.append(self._look_at_bundles())
        return before != self.members or any(changed)

    def parts(self, operation: Operation) -> list[Part]:
        """What is to be asked of which log."""
        parts = [Part(member, operation.narrowed(member.fields)) for member in self.members]
        return [part for part in parts if part.operation != NOTHING]

    def together(self, question: Question) -> list[Part]:
        """The same for who counts: with logs that are counted as one."""
        parts = self.parts(question.operation)
        if self._bundles is None or is_of_each(question):
            return parts
        return self._bundles.joined(parts, is_timed(question))

    def of_together(self, question: Question, ask: Callable[[list[Part]], T]) -> T:
        """What `ask` gives of these parts; of others, where files were changed that were to be counted together.

        Each that was is asked on its own then, so there is an end of it.
        """
        while True:
            try:
                return ask(self.together(question))
            except Unbundled as void:
                if self._bundles is not None and void.bundle is not None:
                    self._bundles.give_up(void.bundle)
                self._look_at_bundles()

    def _look_at_bundles(self) -> bool:
        """See which files are counted together by now; whether any were that are not any more."""
        void = self._bundles.look_again() if self._bundles is not None else []
        for bundle in void:
            self._logs.drop(Member(bundle.path))
        return bool(void)

    def of_each(self, parts: list[Part], work: Callable[[JITDB, Part], T], asked_for: Any = None) -> list[T]:
        """What the work gives for each log, in their order. Those that may have to be scanned are, side by side.

        asked_for: what the work needs beside what the operations do
        """

        def one(part: Part) -> T:
            with self._logs.using(part.member) as db:
                found = work(db, part)
            if isinstance(part.member, Together) and part.member.look() is None:
                raise Unbundled("files of it were changed", path=part.member.path)
            return found

        asked = {(part.member, part.operation.identity, asked_for) for part in parts}
        if len(parts) < 2 or asked <= self._known:
            return [one(part) for part in parts]
        scanned = list(accumulate(part.member.size for part in parts))
        logs = list(accumulate(part.member.logs for part in parts))
        done: list[T] = []
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
        return done


def _until_kept_waiting(results: Iterable[T], note: Callable[[T], object]) -> None:
    """Take results in this thread for as long as half of the time is work of this process: threads would cost more
    than they give, but where files are waited for.
    """
    begin, worked = time.perf_counter(), time.process_time()
    for number, found in enumerate(results, 1):
        note(found)
        if number >= _TRIED and time.perf_counter() - begin > 2 * (time.process_time() - worked):
            return


class Counts:
    """How many records of single logs matched, for as long as a `stat` shows that the file is unchanged. Thread-safe.

    A set may have more logs than it keeps open, and opening one takes a hundred times as long as the `stat`. So a count
    that is asked again opens only changed logs.
    """

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
            if len(self._known) >= _COUNTS:
                self._known.clear()
            self._known[_key(part)] = (stamp, found)
        return found

    def forget(self) -> None:
        """Ask again: somebody may have let a log forget what functions said of its records."""
        self._known.clear()


def _key(part: Part) -> Hashable:
    return part.member.key, part.operation.identity
