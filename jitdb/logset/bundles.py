"""Which logs of a set are counted together: small files of a folder, by bundles (log/lines/bundles/).

Only counts are: who wants to see records asks each log. What differs from log to log must not matter then, so logs are
counted together where their paths leave the same question of each, and where none needs to be looked at for the field
that is its time.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jitdb.common.forking import fork_safe
from jitdb.log.lines.bundles.bundle import Bundle
from jitdb.log.lines.bundles.finding import LEAST, find_bundles, remove
from jitdb.logset.members import PATH, Member
from jitdb.logset.merging import Part
from jitdb.operators.nodes.operations import Compare, Operation
from jitdb.operators.summaries.asked import Summary, TimelineAsked


class Together(Member):
    """Logs of a set that are counted as one: the files of a bundle."""

    bundle: Bundle
    members: tuple[Member, ...]

    def __new__(cls, bundle: Bundle, members: Iterable[Member]) -> Together:
        self = super().__new__(cls, os.path.join(bundle.folder, bundle.identity.hex()))
        self.bundle, self.members = bundle, tuple(members)
        return self

    @property
    def fields(self) -> Mapping[str, Any]:
        """What is the same in all records of all these logs."""
        return MappingProxyType({name: value for name, value in self.members[0].fields.items() if name != PATH})

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
    """

    def __init__(self, store_of: Callable[[str], Path | None], has_own: Callable[[str], bool]) -> None:
        self._store_of, self._has_own = store_of, has_own
        self._lock = fork_safe(threading.Lock())
        self._found: dict[tuple[str, ...], list[Bundle]] = {}  # by folder, and the names that were asked for
        self._alone: dict[str, set[str]] = defaultdict(set)  # names of files, by folder, that are asked one by one

    def joined(self, parts: Sequence[Part]) -> list[Part]:
        """The same question, with logs that are counted together as one part."""
        folders: dict[str, dict[str, Part]] = defaultdict(dict)
        for part in parts:
            folder, name = os.path.split(part.member.path)
            folders[folder][name] = part
        return [part for folder, named in folders.items() for part in self._joined(folder, named)]

    def _joined(self, folder: str, named: dict[str, Part]) -> Iterator[Part]:
        left = dict(named)
        for bundle in self._bundles(os.path.realpath(folder), tuple(named)) if len(named) >= LEAST else ():
            parts = [named[file.name] for file in bundle.files if file.name in named]
            is_one = len({part.operation.identity for part in parts}) == 1
            if is_one and len(parts) == len(bundle.files):
                for file in bundle.files:
                    del left[file.name]
                yield Part(Together(bundle, (part.member for part in parts)), parts[0].operation)
        yield from left.values()

    def _bundles(self, folder: str, names: tuple[str, ...]) -> list[Bundle]:
        key = (folder, *names)
        with self._lock:
            if key not in self._found:
                own = partial(_is_true_of, self._has_own, folder)
                self._found[key] = find_bundles(folder, self._store_of(folder), names, own, self._alone[folder])
            return self._found[key]

    def give_up(self, bundle: Bundle) -> None:
        """Ask its files one by one from now on."""
        with self._lock:
            self._alone[bundle.folder].update(file.name for file in bundle.files)
            self._found.clear()
        remove(bundle)

    def look_again(self) -> bool:
        """There may be other files by now; whether any is void that was found before."""
        with self._lock:
            bundles = {bundle.identity: bundle for found in self._found.values() for bundle in found}.values()
            self._found.clear()
            void = [bundle for bundle in bundles if not bundle.is_current()]
            for bundle in void:
                self._alone[bundle.folder].update(bundle.changed())
            return bool(void)


def is_of_each(operation: Operation, summary: Summary | None = None) -> bool:
    """Whether it is asked of each log on its own, once paths were narrowed: what differs from log to log matters."""
    if isinstance(summary, TimelineAsked) or any(map(_is_timed, operation.leaves())):
        return True  # each log has its own field that is the time
    return summary is not None and any(path[0] == PATH for path in summary.paths)


def _is_timed(leaf: Operation) -> bool:
    return isinstance(leaf, Compare) and leaf.index == "timestamp"


def _is_true_of(test: Callable[[str], bool], folder: str, name: str) -> bool:
    return test(os.path.join(folder, name))
