"""What the logs of a set say of fields and values, where a question finds nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from jitdb.common.values import value_key
from jitdb.engine.roles import first_of, has_time
from jitdb.log.lines.bundles.bundled_lines import Unbundled
from jitdb.logset.bundling import Together
from jitdb.logset.member import Member, fields_of
from jitdb.operators.nodes.operation import EVERYTHING, Operation
from jitdb.operators.question import Question

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.declared_time import Times
    from jitdb.engine.face.asker import Asker
    from jitdb.engine.hinting.dialects import Elsewhere
    from jitdb.engine.hinting.knowledge import Lack, Unlike
    from jitdb.logset.asking import Asking
    from jitdb.logset.bundling import Part

SAMPLED: Final = 10  # logs that are asked what they have
_OPENED: Final = 64  # logs of a bundle that are opened for what it does not tell
_COMPARED: Final = 256  # kinds of logs, and logs of a kind, whose first records are looked at
Told = TypeVar("Told")
Look: TypeAlias = "Callable[[], tuple[list[Any], Times]]"  # what reads the first records of a log


class SetEvidence:
    """What the indexes of all logs, and their paths, say of fields and values; what one log has is there."""

    def __init__(self, logs: Asker, asking: Asking) -> None:
        self._logs, self._asking = logs, asking
        self.sample = logs.sample
        self._asked: dict[Hashable, list[Part]] = {}
        self._firsts: dict[str, tuple[list[Any], Times]] = {}  # by the path of a log

    def _parts(self, operation: Operation) -> list[Part]:
        found = self._asked.get(operation.identity)
        if found is None:
            found = self._asking.together(Question(db=self._logs, operation=operation))
            self._asked[operation.identity] = found
        return found

    def remarks(self, operation: Operation) -> list[str]:
        if self._asking.members:
            return self._logs.remarks(operation)
        places = " or ".join(map(str, self._asking.where))
        return [f"no file is in {places}" if places else "no log was named"]

    def is_any(self, operation: Operation) -> bool:
        """Whether a record matches: logs are asked one after the other until one has some."""
        with suppress(Unbundled):  # a file changed just now
            return any(
                self._asking.of_each([part], lambda db, part: db.count(part.asked))[0]
                for part in self._asking.together(Question(db=self._logs, operation=operation))
            )
        return self._logs.count(operation) > 0

    def unordered(self) -> str | None:
        told: list[str | None] = []
        for part in self._parts(EVERYTHING)[:SAMPLED]:
            with self._asking.using(part.member) as db:
                told += [db.evidence().unordered()] * bool(db.log.durable_end)
        return "" if "" in told else next(filter(None, told), None)

    def lack(self, path: Path) -> Lack:
        found: list[Lack] = []
        for part in self._parts(EVERYTHING):
            if path[0] in part.member.fields:
                return ""
            lacks = self._lacks(part.member, path)
            if not all(lacks):
                return ""
            found += lacks
        return max(found, key=lambda lack: lack != "the field", default=None)  # what all of them lack

    def _lacks(self, member: Member, path: Path) -> list[Lack]:
        """What the log lacks, if it has any record; for a few logs that are asked together, what each lacks if their
        bundle does not know.
        """
        with self._asking.using(member) as db:
            if not db.log.durable_end:
                return []
            found = db.evidence().lack(path)
        if found is None and isinstance(member, Together) and member.logs <= _OPENED:
            return [lack for each in member.members for lack in self._lacks(each, path)]
        return [found]

    def seen_in(self, path: Path) -> int:
        bits = 0
        for part in self._parts(EVERYTHING)[:SAMPLED]:
            with self._asking.using(part.member) as db:
                bits |= db.evidence().seen_in(path)
        return bits

    def spellings(self, leaf: Operation, among: Callable[[Operation], Operation] | None = None) -> list[Operation]:
        found: dict[Operation, None] = {}
        for part in self._parts(leaf):
            if part.operation == leaf:  # not by its path
                within = part.member.among if isinstance(part.member, Together) else None  # not in other logs
                with self._asking.using(part.member) as db:
                    found |= dict.fromkeys(db.evidence().spellings(leaf, within))
        return list(found)

    def values(self, path: Path) -> list[Any]:
        found: dict[Hashable, Any] = {}
        for part in self._parts(EVERYTHING)[:SAMPLED]:
            with self._asking.using(part.member) as db:
                found |= {value_key(value): value for value in db.evidence().values(path)}
        return list(found.values())

    def elsewhere(self, operation: Operation, paths: Sequence[Path]) -> Elsewhere:
        from jitdb.engine.hinting.dialects import ends_so, in_place_of, may_differ
        from jitdb.operators.summaries.fields import fields_in

        usual = may_differ(paths)

        def other(path: Path, log: str, records: list[Any], _: Times) -> Path | None:
            if path[0] in fields_of(log):
                return None
            return in_place_of(path, records) or (None if path in usual else ends_so(path, fields_in(records)))

        found: Elsewhere = {}
        for path in paths:
            if path in usual or isinstance(path[-1], str):
                for log, name in self._told(operation, partial(other, path)):
                    found.setdefault(path, {}).setdefault(name, []).append(log)
        return found

    def untimed(self, operation: Operation) -> list[str]:
        """The logs that are asked and whose first records have no declared time."""

        def is_one(_: str, records: list[Any], times: Times) -> bool | None:
            return (records and not has_time(records, times.paths)) or None

        return [log for log, _ in self._told(operation, is_one)]

    def unleveled(self, operation: Operation) -> list[str]:
        from jitdb.engine.hinting.levels import has_level_word
        from jitdb.engine.roles import roles_of

        def is_one(_: str, records: list[Any], __: Times) -> bool | None:
            return (roles_of(records).level is None and has_level_word(records)) or None

        return [log for log, _ in self._told(operation, is_one)]

    def numbered(self, operation: Operation, path: Path) -> list[str]:
        from jitdb.engine.hinting.levels import are_of_syslog

        def is_one(_: str, records: list[Any], __: Times) -> bool | None:
            return are_of_syslog(path, records) or None

        return [log for log, _ in self._told(operation, is_one)]

    def unlike(self, operation: Operation, path: Path) -> Iterator[Unlike]:
        for part in self._parts(operation)[:SAMPLED]:
            together = part.member if isinstance(part.member, Together) and not part.member.is_whole else None
            for member in (part.member,) if together is None else together.members[:SAMPLED]:
                with self._asking.using(member) as db:
                    yield from db.evidence().unlike(operation, path)

    def asked(self, operation: Operation, count: int) -> list[Any]:
        logs = [look()[0] for _, look in islice(self._beginnings(operation), count)]
        return [record for records in logs for record in records[: max(1, count // len(logs))]]

    @property
    def convert(self) -> str:
        return "iconv -f LATIN1 -t UTF-8 FILE > FILE.utf8"

    def _told(
        self, operation: Operation, says: Callable[[str, list[Any], Times], Told | None]
    ) -> Iterator[tuple[str, Told]]:
        """The logs that are asked of whose first records this says anything, and what it says.

        Logs whose paths differ in digits alone are most often of one kind: of many, the others are looked at only if it
        says anything of some of them. So a question over many files reads few of them for its notes.
        """
        for logs in islice(self._kinds(operation), _COMPARED):
            if any(says(log, *look()) is not None for log, look in (*_some_of(logs), logs[-1])):
                for log, look in logs[:_COMPARED]:
                    if (told := says(log, *look())) is not None:
                        yield log, told

    def _kinds(self, operation: Operation) -> Iterable[list[tuple[str, Look]]]:
        kinds: dict[str, list[tuple[str, Look]]] = {}
        for log, look in self._beginnings(operation):
            kinds.setdefault(re.sub(r"\d+", "0", log), []).append((log, look))
        return kinds.values()

    def messages(self) -> list[Path]:
        """Where logs have their messages, by some of each kind; the field of most logs first."""
        from jitdb.engine.roles import roles_of

        found: Counter[Path] = Counter()
        for logs in islice(self._kinds(EVERYTHING), _COMPARED):
            some = _some_of(logs)
            for _, look in some:
                found[roles_of(look()[0]).message or ()] += len(logs) // len(some)
        return [path for path, _ in found.most_common() if path]

    def _beginnings(self, operation: Operation) -> Iterator[tuple[str, Look]]:
        """The paths of the logs that are asked, and what reads their first records and tells where these have their
        time.
        """
        for part in self._parts(operation):
            if isinstance(part.member, Together):
                for log, first in part.member.beginnings():
                    yield log, partial(self._first_of, log, part.member, first)
            else:
                yield part.member.path, partial(self._first_of, part.member.path, part.member)

    def _first_of(
        self, log: str, member: Member, first: Callable[[], list[dict[str, Any]]] | None = None
    ) -> tuple[list[dict[str, Any]], Times]:
        found = self._firsts.get(log)
        if found is None:
            with self._asking.using(member) as db:
                found = self._firsts[log] = first_of(db.log) if first is None else first(), db.times
        return found

    def has(self, leaf: Operation) -> bool:
        return any(self._has(part.member, part.operation) for part in self._parts(leaf))

    def _has(self, member: Member, leaf: Operation) -> bool:
        if leaf == EVERYTHING:
            return True  # by its path
        with self._asking.using(member) as db:
            found = db.evidence().has(member.among(leaf) if isinstance(member, Together) else leaf)
            is_known = found or any(db.evidence().lack(path) is not None for path in leaf.paths)
        if not is_known and isinstance(member, Together):
            return member.logs > _OPENED or any(self._has(each, leaf) for each in member.members)
        return found


def _some_of(logs: list[Told]) -> list[Told]:
    """At most SAMPLED of them, from all over."""
    return logs[:: -(-len(logs) // SAMPLED)]
