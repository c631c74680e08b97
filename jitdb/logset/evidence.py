"""What the indexes of all logs of a set, and their paths, say of fields and values: see engine/hinting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from jitdb.logset.counted_bundles import Together
from jitdb.operators.nodes.operation import EVERYTHING

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.database import JITDB
    from jitdb.engine.hinting.hints import Lack
    from jitdb.logset.member import Member
    from jitdb.logset.merging import Part
    from jitdb.operators.nodes.operation import Operation


class SetEvidence:
    """Of several logs: what one of them has, is there.

    parts:   what is to be asked of which log, or of logs that are counted together
    using:   the database of one of these
    remarks: those about an operation, of the set
    sample:  at most so many of its records
    """

    def __init__(
        self,
        parts: Callable[[Operation], Sequence[Part]],
        using: Callable[[Member], AbstractContextManager[JITDB]],
        remarks: Callable[[Operation], list[str]],
        sample: Callable[[int], list[Any]],
    ) -> None:
        self._parts, self._using, self._remarks, self._sample = parts, using, remarks, sample

    def lack(self, path: Path) -> Lack:
        found: list[Lack] = []
        for part in self._parts(EVERYTHING):
            if path[0] in part.member.fields:
                return ""
            lacks = self._lacks(part.member, path)
            if not all(lacks):
                return ""
            found += lacks
        return max(found, key=lambda lack: lack != "the field", default=None)  # what is true of all of them

    def _lacks(self, member: Member, path: Path) -> list[Lack]:
        """Of the log, if it has any record; or of those that are counted together, whether or not they were now."""
        with self._using(member) as db:
            if not db.log.durable_end:
                return []
            found = db.evidence().lack(path)
        if found is None and isinstance(member, Together):
            return [lack for each in member.members for lack in self._lacks(each, path)]
        return [found]

    def has(self, leaf: Operation) -> bool:
        return any(self._has(part.member, part.operation) for part in self._parts(leaf))

    def _has(self, member: Member, leaf: Operation) -> bool:
        if leaf == EVERYTHING:
            return True  # by its path
        with self._using(member) as db:
            found = db.evidence().has(leaf)
            is_known = found or any(db.evidence().lack(path) is not None for path in leaf.paths)
        if not is_known and isinstance(member, Together):
            return any(self._has(each, leaf) for each in member.members)
        return found

    def remarks(self, operation: Operation) -> list[str]:
        return self._remarks(operation)

    def sample(self, count: int) -> list[Any]:
        return self._sample(count)
