"""What the logs of a set say of fields and values, where a question finds nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from jitdb.engine.roles import first_of, has_time
from jitdb.logset.bundling import Together
from jitdb.logset.member import Member, fields_of
from jitdb.operators.nodes.operation import EVERYTHING, Operation
from jitdb.operators.question import Question

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.declared_time import Times
    from jitdb.engine.face.asker import Asker
    from jitdb.engine.hinting.dialects import Elsewhere
    from jitdb.engine.hinting.hints import Lack
    from jitdb.logset.asking import Asking
    from jitdb.logset.bundling import Part

SAMPLED: Final = 10  # logs that are asked what they have
_OPENED: Final = 64  # logs of a bundle that are opened for what it does not tell
_COMPARED: Final = 256  # logs whose first records are looked at for other names of a field


class SetEvidence:
    """What the indexes of all logs, and their paths, say of fields and values; what one log has is there."""

    def __init__(self, logs: Asker, asking: Asking) -> None:
        self._logs, self._asking = logs, asking
        self.remarks, self.sample = logs.remarks, logs.sample

    def _parts(self, operation: Operation) -> list[Part]:
        return self._asking.together(Question(db=self._logs, operation=operation))

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

    def spellings(self, leaf: Operation) -> list[Operation]:
        found: dict[Operation, None] = {}
        for part in self._parts(leaf):
            if part.operation == leaf:  # not by its path
                with self._asking.using(part.member) as db:
                    found |= dict.fromkeys(db.evidence().spellings(leaf))
        return list(found)

    def elsewhere(self, operation: Operation, paths: Sequence[Path]) -> Elsewhere:
        from jitdb.engine.hinting.dialects import ends_so, in_place_of, may_differ

        found: Elsewhere = {}
        usual = may_differ(paths)
        looked_at = [path for path in paths if path in usual or isinstance(path[-1], str)]
        for log, records, _ in islice(self._beginnings(operation), _COMPARED) if looked_at else ():
            for path in looked_at:
                is_of_path = path[0] in fields_of(log)
                other = None if is_of_path else in_place_of(path, records) if path in usual else ends_so(path, records)
                if other is not None:
                    found.setdefault(path, {}).setdefault(other, []).append(log)
        return found

    def untimed(self, operation: Operation) -> list[str]:
        """The logs that are asked and whose first records have no declared time."""
        looked_at = islice(self._beginnings(operation), _COMPARED)
        return [log for log, records, times in looked_at if records and not has_time(records, times.paths)]

    def unleveled(self, operation: Operation) -> list[str]:
        from jitdb.engine.hinting.dialects import has_level_word
        from jitdb.engine.roles import roles_of

        looked_at = islice(self._beginnings(operation), _COMPARED)
        return [log for log, found, _ in looked_at if roles_of(found).level is None and has_level_word(found)]

    @property
    def convert(self) -> str:
        return "iconv -f LATIN1 -t UTF-8 FILE > FILE.utf8"

    def _beginnings(self, operation: Operation) -> Iterator[tuple[str, list[dict[str, Any]], Times]]:
        """The paths of the logs that are asked, their first records, and where these have their time."""
        for part in self._parts(operation):
            with self._asking.using(part.member) as db:
                times, records = db.times, [] if isinstance(part.member, Together) else first_of(db.log)
            if isinstance(part.member, Together):
                yield from ((log, found, times) for log, found in part.member.beginnings())
            else:
                yield part.member.path, records, times

    def has(self, leaf: Operation) -> bool:
        return any(self._has(part.member, part.operation) for part in self._parts(leaf))

    def _has(self, member: Member, leaf: Operation) -> bool:
        if leaf == EVERYTHING:
            return True  # by its path
        with self._asking.using(member) as db:
            found = db.evidence().has(leaf)
            is_known = found or any(db.evidence().lack(path) is not None for path in leaf.paths)
        if not is_known and isinstance(member, Together):
            return member.logs > _OPENED or any(self._has(each, leaf) for each in member.members)
        return found
