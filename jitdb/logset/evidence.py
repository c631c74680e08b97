"""What the indexes of all logs of a set, and their paths, say of fields and values: see engine/hinting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitdb.logset.narrowing import NOTHING, narrowed

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.hinting.evidence import Lack
    from jitdb.logset.logset import LogSet
    from jitdb.logset.open_logs import OpenLogs
    from jitdb.operators.nodes.operations import Operation


class SetEvidence:
    """Of several logs: what one of them has, is there."""

    def __init__(self, logs: LogSet, opened: OpenLogs) -> None:
        self._set, self._opened = logs, opened

    def lack(self, path: Path) -> Lack:
        found: set[Lack] = set()
        for member in self._set.members:
            if path[0] in member.fields:
                return ""
            with self._opened.using(member) as db:
                if db.log.durable_end:
                    found.add(db.evidence().lack(path))
            if "" in found:
                return ""
        return max(found, key=lambda lack: lack != "the field", default="")  # what is true of all of them

    def has(self, leaf: Operation) -> bool:
        for member in self._set.members:
            own = narrowed(leaf, member.fields)
            if own == NOTHING:
                continue
            if own is not leaf:
                return True
            with self._opened.using(member) as db:
                if db.evidence().has(leaf):
                    return True
        return False

    def remarks(self, operation: Operation) -> list[str]:
        return self._set.remarks(operation)

    def sample(self, count: int) -> list[Any]:
        return self._set.sample(count)
