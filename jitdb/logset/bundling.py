"""Files of a set that are asked as one log: which these are, and which record is whose.

The files of a bundle (log/lines/bundles/) are asked together where what differs from log to log does not matter: their
paths leave the same question of each, and, where it is about the time, the same fields are the time of each. Where the
answer is records in an order, those go together that lie in the bundle in the order of their paths.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.forking import fork_safe
from jitdb.common.paths import LOG_PATH
from jitdb.engine.roles import first_of, found_time
from jitdb.log.lines.bundles.bundle import Bundle
from jitdb.log.lines.bundles.bundled_lines import BeginningLines, BundledLines, Unbundled
from jitdb.log.lines.bundles.gathering import LEAST, Gathering, Where, remade
from jitdb.log.objects.urls import is_url
from jitdb.logset.member import Member, fields_of
from jitdb.operators.nodes.operation import EVERYTHING, Operation, and_
from jitdb.operators.nodes.positions import Stretches
from jitdb.operators.summaries.summary import DECLARED_TIME

if TYPE_CHECKING:
    from jitdb.common.paths import Path as FieldPath
    from jitdb.engine.database import JITDB
    from jitdb.log.lines.files.stamp import Stamp
    from jitdb.operators.question import Question

_CHOICES: Final = 256  # choices of files, by questions about their paths, whose bundles are remembered
_RUNS: Final = 16  # parts of a bundle that each have their files in the order of paths; of more another bundle is made


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
    _by_number: dict[int, Member]  # of the files

    def __new__(cls, bundle: Bundle, members: Mapping[int, Member]) -> Together:
        self = super().__new__(cls, bundle.path)
        self.bundle, self._by_number = bundle, dict(sorted(members.items()))
        return self

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(self._by_number.values())

    @property
    def is_whole(self) -> bool:
        """Whether these are all logs of the bundle, of which its columns tell."""
        return len(self._by_number) == len(self.bundle.files)

    def among(self, operation: Operation) -> Operation:
        if self.is_whole:
            return operation
        these = Stretches(tuple(self._stretches()))
        return these if operation == EVERYTHING else and_(these, operation)

    def _stretches(self) -> Iterator[tuple[int, int]]:
        """From which byte on, up to which, the text is that of these logs."""
        begins, first, last = self.begins, -1, -1
        for number in self._by_number:
            if number != last:
                if last > first:
                    yield begins[first], begins[last]
                first = number
            last = number + 1
        yield begins[first], begins[last]

    def places(self, offsets: Iterable[int]) -> Iterator[tuple[Member, int]]:
        begins = self.begins
        for offset in offsets:
            number = bisect_right(begins, offset) - 1
            yield self._by_number[number], offset - begins[number]

    @property
    def paths(self) -> list[str]:
        """Those of all files of the bundle; empty of those that are not asked."""
        paths = {number: member.path for number, member in self._by_number.items()}
        return [paths.get(number, "") for number in range(len(self.bundle.files))]

    @cached_property
    def begins(self) -> Sequence[int]:
        """Where each of the files begins, and where the last one ends."""
        return self.bundle.begins()

    def followed(self) -> Iterator[tuple[Member, tuple[Member, int] | None]]:
        """The logs, each with its path of now and how many bytes of it are asked; None: it is another one, or gone."""
        for number, (file, name) in enumerate(self.bundle.grown()):
            if (member := self._by_number.get(number)) is not None:
                now = None if name is None else Member(_with_end(member.path, file.name, name))
                yield member, None if now is None else (now, file.size)

    def beginnings(self) -> Iterator[tuple[str, Callable[[], list[dict[str, Any]]]]]:
        """The path of each log, and what reads its first records. Of objects in a store none: each would take a
        request.
        """
        if is_url(self.bundle.folder):
            return
        for number, member in self._by_number.items():
            yield member.path, partial(self._first_of, number)

    def _first_of(self, number: int) -> list[dict[str, Any]]:
        return first_of(BundledLines(self.bundle._replace(files=(self.bundle.files[number],))))

    @property
    def key(self) -> Hashable:
        return self.path, self.members

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields that all records of all these logs share."""
        every = iter(self._by_number.values())
        shared = dict(next(every).fields)
        for member in every:
            own = member.fields
            shared = {name: value for name, value in shared.items() if name in own and own[name] == value}
        return MappingProxyType(shared)

    @property
    def size(self) -> int:
        return sum(self.bundle.files[number].size for number in self._by_number)

    @property
    def logs(self) -> int:
        return len(self._by_number)

    def look(self) -> object:
        """The bundle's identity, as long as these files are what they were."""
        files, folder = self.bundle.files, self.bundle.folder
        return self.bundle.identity if all(files[number].is_in(folder) for number in self._by_number) else None

    def bring(self, db: JITDB) -> None:
        """See that the log has all files of the bundle."""
        log = db.log
        assert isinstance(log, BundledLines)
        if log.bundle is not self.bundle:
            log.take(self.bundle)
            db.refresh()

    def check(self, db: JITDB) -> None:
        """Raise Unbundled where what was asked were not these files as they are."""
        assert isinstance(db.log, BundledLines)
        if db.log.bundle is not self.bundle or self.look() is None:
            raise Unbundled("files of it were changed", path=self.path)


def _with_end(path: str, name: str, now: str) -> str:
    """The path with this end in the place of that one."""
    return os.path.join(path.removesuffix(name), now) if path.endswith(name) else path


class Bundles:
    """Finds bundles, and makes them. Safe for threads.

    where:    see gathering.py
    is_plain: only lines that are records as they stand are asked together
    is_timed: the fields of the declared time are given; else the records of each file show them
    """

    def __init__(self, where: Where, *, is_plain: bool = False, is_timed: bool = False) -> None:
        self._where, self._is_plain, self._is_timed = where, is_plain, is_timed
        self._lock = fork_safe(threading.RLock())
        self._found: dict[tuple[str, ...], tuple[dict[str, str], list[Bundle]]] = {}  # by the paths of files
        self._alone: set[Stamp] = set()  # of files that are asked one by one
        self._memory: dict[bytes, Bundle] = {}

    def together(self, parts: Sequence[Part], apart: Apart) -> Iterator[list[Part]]:
        """The same parts, with logs that are asked together as one part. Before that some of them, as often as files
        came to bundles: to be asked at once, while their texts are in memory.
        """
        if len(parts) < LEAST:
            yield list(parts)
            return
        with self._lock:
            key = tuple(part.member.path for part in parts)
            if key not in self._found:
                if len(self._found) >= _CHOICES:
                    self._found.clear()
                real = _real_paths(key)
                gathering = Gathering(list(real.values()), self._where, self._alone, self._memory)
                rounds = gathering.rounds()
                while (grown := _next(rounds)) is not None:
                    for bundle, numbers in grown:
                        yield [
                            part
                            for part in self._joined(parts, real, [(bundle, numbers)], apart)
                            if isinstance(part.member, Together)
                        ]
                self._found[key] = real, gathering.bundles
            real, bundles = self._found[key]
            joined = list(self._joined(parts, real, [(bundle, range(len(bundle.files))) for bundle in bundles], apart))
        yield joined

    def there(self, parts: Sequence[Part], apart: Apart) -> tuple[list[Part], list[Part]]:
        """The parts as far as they are in bundles already, and those of logs that would be read to make others."""
        with self._lock:
            real = _real_paths(part.member.path for part in parts)
            gathering = Gathering(list(real.values()), self._where, self._alone, self._memory)
            unread = set(gathering.unread())
            bundles = [(bundle, range(len(bundle.files))) for bundle in gathering.bundles]
            joined = list(self._joined(parts, real, bundles, apart))
        is_new = [not isinstance(part.member, Together) and real[part.member.path] in unread for part in joined]
        return (
            [part for part, new in zip(joined, is_new, strict=True) if not new],
            [part for part, new in zip(joined, is_new, strict=True) if new],
        )

    def _joined(
        self, parts: Sequence[Part], real: Mapping[str, str], bundles: list[tuple[Bundle, range]], apart: Apart
    ) -> Iterator[Part]:
        left = {real[part.member.path]: part for part in parts}
        for bundle, numbers in bundles:
            kind = bundle.kind
            is_other = kind.form is None or (self._is_plain and not kind.form.is_plain)
            if is_other or (apart.is_timed and not self._is_timed and kind.time is None):
                continue
            asked: dict[Hashable, dict[int, Part]] = defaultdict(dict)
            for number in numbers:
                file = bundle.files[number]
                if file.name and (part := left.pop(bundle.path_of(file), None)) is not None:
                    asked[part.operation.identity, apart.of(part.member)][number] = part
            for named in asked.values():
                for run in _runs(named) if apart.in_order else [named]:
                    operation = next(iter(run.values())).operation
                    yield Part(Together(bundle, {number: part.member for number, part in run.items()}), operation)
        yield from left.values()

    def give_up(self, bundle: Bundle, alone: Iterable[str]) -> None:
        """Make another bundle of its files, without these, which are asked one by one from now on."""
        paths = set(alone)
        stamps = {file.stamp for file in bundle.files if bundle.path_of(file) in paths}
        with self._lock:
            self._alone |= stamps
            self._memory.pop(bundle.identity, None)
            self._found.clear()
            made = remade(bundle, stamps)
            if made is not None and made.place is None:
                self._memory[made.identity] = made

    def look_again(self) -> list[Bundle]:
        """Look for other files; gives the bundles of which files are not what they were."""
        with self._lock:
            bundles = {bundle.identity: bundle for _, found in self._found.values() for bundle in found}.values()
            self._found.clear()
            return [bundle for bundle in bundles if _is_changed(bundle)]


class Apart(NamedTuple):
    """What must be the same of logs that are asked together.

    names:    of fields that logs' paths give
    is_timed: the question is about the time, so theirs is in the same fields
    in_order: they lie in their bundle in the order of their paths
    """

    names: frozenset[str]
    is_timed: bool
    in_order: bool

    @classmethod
    def of_question(cls, question: Question, *, in_order: bool) -> Apart | None:
        """None where it is about single logs: it counts or sorts by the path, or names places in logs."""
        if any(leaf.names_places for leaf in question.operation.leaves()):
            return None
        summary = question.summary
        paths = list(() if summary is None else summary.paths)
        if summary is not None and summary.condition is not None:
            paths += summary.condition.all_paths()
        if in_order and not isinstance(question.order, bool):
            paths += [key.path for key in question.order]
        if any(path[0] == LOG_PATH for path in paths):
            return None
        paths += [path for _, path in question.select or ()]
        is_counted = summary is not None and DECLARED_TIME in summary.columns
        is_timed = is_counted or question.operation.compares(DECLARED_TIME) or (in_order and question.order is True)
        return cls(frozenset(str(path[0]) for path in paths) - {LOG_PATH}, is_timed, in_order)

    def of(self, member: Member) -> Hashable:
        """What members must have in common."""
        if not self.names:
            return ()
        fields = fields_of(member.path)
        return tuple((name, fields[name]) for name in sorted(self.names) if name in fields)


def _runs(named: Mapping[int, Part]) -> Iterator[dict[int, Part]]:
    """Cut where the next path does not follow the one before."""
    run: dict[int, Part] = {}
    before = ""
    for number, part in sorted(named.items()):
        if part.member.path < before:
            yield run
            run = {}
        run[number], before = part, part.member.path
    if run:
        yield run


def _is_changed(bundle: Bundle) -> bool:
    """Whether a file is not what it was when the bundle was found."""
    return any(file.name and not file.is_in(bundle.folder) for file in bundle.files)


def _real_paths(paths: Iterable[str]) -> dict[str, str]:
    """Where they lead, but for a link in the place of the file: what that leads to is in no bundle."""
    real: dict[str, str] = {}
    found: dict[str, str] = {}
    for path in paths:
        folder, name = os.path.split(path)
        if folder not in real:
            real[folder] = folder if is_url(folder) else os.path.realpath(folder)
        found[path] = os.path.join(real[folder], name)
    return found


def _next(rounds: Iterator[Any]) -> Any:
    """The next round; None where there is none, or bundles cannot be written."""
    try:
        return next(rounds, None)
    except OSError:
        return None


def time_of(bundle: Bundle, text: bytes) -> tuple[FieldPath, ...] | None:
    """The fields of the time of a bundle of one file, whose text begins so."""
    return found_time(BeginningLines(bundle, text))
