"""Which logs of a set are counted together: small files of a folder, by bundles (log/lines/bundles/).

Only counts are: who wants to see records asks each log. What differs from log to log must not matter then, so logs are
counted together where their paths leave the same question of each, and, where it is about the time, the same fields are
the time of each.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.forking import fork_safe
from jitdb.common.paths import LOG_PATH
from jitdb.engine.declared_time import found_time
from jitdb.log.lines.bundles.bundle import LEAST, Bundle, find_bundles, remove
from jitdb.log.lines.bundles.bundled_lines import BundledLines
from jitdb.logset.member import Member
from jitdb.logset.merging import Part
from jitdb.operators.question import Question
from jitdb.operators.summaries.summary import DECLARED_TIME

if TYPE_CHECKING:
    from jitdb.engine.answering.summarizing import LogView

_MOST: Final = 256  # choices of files, by questions about their paths, whose bundles are remembered


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
        """What is counted of a log that has all files of the bundle."""
        if self.is_whole:
            return view
        return view.within(BundledLines(self.bundle).parts({os.path.basename(member.path) for member in self.members}))

    @property
    def key(self) -> Hashable:
        return self.path, self.members

    @property
    def fields(self) -> Mapping[str, Any]:
        """What is the same in all records of all these logs."""
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
    """Finds them, and makes them. Safe for threads.

    store_of: where those of a folder's files are; None: in memory
    has_own:  whether the file has indexes of its own
    time:     the fields that say when a record of any file was made are known
    """

    def __init__(self, store_of: Callable[[str], Path | None], has_own: Callable[[str], bool], time: bool) -> None:
        self._store_of, self._has_own, self._is_time_known = store_of, has_own, time
        self._lock = fork_safe(threading.Lock())
        self._found: dict[tuple[str, ...], list[Bundle]] = {}  # by folder, and the names that were asked for
        self._differ: dict[bytes, bool] = {}  # what _differ_in_time() found
        self._alone: dict[str, set[str]] = defaultdict(set)  # names of files, by folder, that are asked one by one

    def joined(self, parts: Sequence[Part], is_timed: bool) -> list[Part]:
        """The same question, with logs that are counted together as one part.

        is_timed: it is about the time, so of these logs the same fields must say it
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
                if len(self._found) >= _MOST:
                    self._found.clear()
                own = partial(_is_true_of, self._has_own, folder)
                self._found[key] = find_bundles(folder, self._store_of(folder), names, own, self._alone[folder])
            return self._found[key]

    def _differ_in_time(self, bundle: Bundle) -> bool:
        """Whether some of its files have other fields that say when a record was made. Their first records tell."""
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
        """There may be other files by now; which bundles are void that were found before."""
        with self._lock:
            bundles = {bundle.identity: bundle for found in self._found.values() for bundle in found}.values()
            self._found.clear()
            void = [bundle for bundle in bundles if not bundle.is_current()]
            for bundle in void:
                self._alone[bundle.folder].update(bundle.changed())
                self._differ.pop(bundle.identity, None)
            return void


def is_of_each(question: Question) -> bool:
    """Whether it counts by the path, which each log has for itself."""
    return question.summary is not None and any(path[0] == LOG_PATH for path in question.summary.paths)


def is_timed(question: Question) -> bool:
    """Whether it is about the declared time."""
    is_counted = question.summary is not None and question.summary.column == DECLARED_TIME
    return is_counted or question.operation.compares(DECLARED_TIME)


def _is_true_of(test: Callable[[str], bool], folder: str, name: str) -> bool:
    return test(os.path.join(folder, name))
