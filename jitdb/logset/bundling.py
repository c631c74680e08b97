"""Small files of a folder that a set asks as one log: which these are, and which record is whose.

The files of a bundle (log/lines/bundles/) are asked together where what differs from log to log does not matter: their
paths leave the same question of each, and, where it is about the time, the same fields are the time of each. Where the
answer is records in an order, the files lie in the bundle in the order of their paths.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.forking import fork_safe
from jitdb.common.paths import LOG_PATH
from jitdb.engine.roles import first_of, found_time
from jitdb.log.lines.bundles.bundle import LEAST, Bundle, find_bundles, remove
from jitdb.log.lines.bundles.bundled_lines import BeginningLines, BundledLines
from jitdb.logset.member import Member
from jitdb.operators.nodes.operation import EVERYTHING, Operation, and_
from jitdb.operators.nodes.positions import Stretches
from jitdb.operators.summaries.summary import DECLARED_TIME

if TYPE_CHECKING:
    from jitdb.common.paths import Path as FieldPath
    from jitdb.operators.question import Question

_CHOICES: Final = 256  # choices of files, by questions about their paths, whose bundles are remembered


class Part(NamedTuple):
    """What one log is asked."""

    member: Member
    operation: Operation

    @property
    def asked(self) -> Operation:
        """What its database is asked."""
        return self.member.among(self.operation)


class Together(Member):
    """Logs of a set that are asked as one: the files of a bundle, or some of them."""

    bundle: Bundle
    members: tuple[Member, ...]  # by their paths
    _by_name: dict[str, Member]

    def __new__(cls, bundle: Bundle, members: Iterable[Member]) -> Together:
        self = super().__new__(cls, bundle.path)
        self.bundle, self.members = bundle, tuple(members)
        self._by_name = {os.path.basename(member.path): member for member in self.members}
        return self

    def among(self, operation: Operation) -> Operation:
        if len(self.members) == len(self.bundle.files):
            return operation
        these = Stretches(tuple(BundledLines(self.bundle).parts(self._by_name)))
        return these if operation == EVERYTHING else and_(these, operation)

    def places(self, offsets: Iterable[int]) -> Iterator[tuple[Member, int]]:
        begins = self.begins
        for offset in offsets:
            number = bisect_right(begins, offset) - 1
            yield self._by_name[self.bundle.files[number].name], offset - begins[number]

    @property
    def paths(self) -> list[str]:
        """Those of all files of the bundle, also of such that are not asked."""
        folder = os.path.dirname(self.members[0].path)
        return [os.path.join(folder, file.name) for file in self.bundle.files]

    @cached_property
    def _all_begins(self) -> list[int]:
        return list(accumulate((file.stamp.size for file in self.bundle.files[:-1]), initial=0))

    @property
    def begins(self) -> Sequence[int]:
        return self._all_begins

    def followed(self) -> Iterator[tuple[Member, tuple[Member, int] | None]]:
        """The logs, each with its path of now and how many bytes of it are asked; None: it is another one, or gone."""
        for file, name in self.bundle.grown():
            if (member := self._by_name.get(file.name)) is not None:
                now = None if name is None else Member(os.path.join(os.path.dirname(member.path), name))
                yield member, None if now is None else (now, file.stamp.size)

    def beginnings(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """The path of each log, and its first records."""
        for file, log in zip(self.bundle.files, BundledLines(self.bundle).each(), strict=True):
            if file.name in self._by_name:
                yield self._by_name[file.name].path, first_of(log)

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
        self._store_of, self._has_own, self._time_of = store_of, has_own, None if time else _time_of
        self._lock = fork_safe(threading.Lock())
        self._found: dict[tuple[str, ...], list[Bundle]] = {}  # by folder, and the names that were asked for
        self._alone: dict[str, set[str]] = defaultdict(set)  # names of files, by folder, that are asked one by one

    def joined(self, parts: Sequence[Part], is_timed: bool, *, in_order: bool = False) -> list[Part]:
        """The same parts, with logs that are asked together as one part.

        is_timed: the question is about the time, so only logs whose time is in the same fields are joined
        in_order: only those that lie in their bundle in the order of their paths
        """
        folders: dict[str, dict[str, Part]] = defaultdict(dict)
        for part in parts:
            folder, name = os.path.split(part.member.path)
            folders[folder][name] = part
        return [part for folder, named in folders.items() for part in self._joined(folder, named, is_timed, in_order)]

    def _joined(self, folder: str, named: dict[str, Part], is_timed: bool, in_order: bool) -> Iterator[Part]:
        left, real, names = dict(named), os.path.realpath(folder), tuple(named)
        bundles = self._bundles(real, names) if len(named) >= LEAST else []
        needs_time = is_timed and self._time_of is not None
        unfit = [
            bundle
            for bundle in bundles
            if (in_order and not bundle.is_sorted) or (needs_time and bundle.is_timed is None)
        ]
        if unfit:
            self._remove(unfit)
            bundles = self._bundles(real, names)
        for bundle in bundles:
            if needs_time and not bundle.is_timed:
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
                store, alone, time_of = self._store_of(folder), self._alone[folder], self._time_of
                self._found[key] = find_bundles(folder, store, names, own, alone, time_of)
            return self._found[key]

    def _remove(self, bundles: Iterable[Bundle]) -> None:
        """Make new ones of their files: these got other names, and lie in another order since; or nobody looked which
        of them have their time in the same fields.
        """
        with self._lock:
            for bundle in bundles:
                remove(bundle)
            self._found.clear()

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
            return void


def is_of_each(question: Question, *, in_order: bool = False) -> bool:
    """Whether it counts or sorts by the path, or names places in logs, which differ from log to log."""
    if any(leaf.names_places for leaf in question.operation.leaves()):
        return True
    condition = None if question.summary is None else question.summary.condition
    if condition is not None and any(path[0] == LOG_PATH for path in condition.all_paths()):
        return True
    if in_order and not isinstance(question.order, bool) and any(key.path[0] == LOG_PATH for key in question.order):
        return True
    return question.summary is not None and any(path[0] == LOG_PATH for path in question.summary.paths)


def is_timed(question: Question, *, in_order: bool = False) -> bool:
    """Whether it is about the declared time."""
    if in_order and question.order is True:
        return True
    is_counted = question.summary is not None and DECLARED_TIME in question.summary.columns
    return is_counted or question.operation.compares(DECLARED_TIME)


def _time_of(bundle: Bundle, head: bytes) -> tuple[FieldPath, ...] | None:
    return found_time(BeginningLines(bundle, head))


def _is_true_of(test: Callable[[str], bool], folder: str, name: str) -> bool:
    return test(os.path.join(folder, name))
