"""What the indexes of a log say of fields and values that an answer did not have. Nothing is scanned for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from jitdb.engine.remarks import remarks_of
from jitdb.indexes.kinds.content import is_void
from jitdb.indexes.segment import NUMBERS, SET

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.manager import IndexManager
    from jitdb.operators.nodes.operation import Operation

#: What no record has of a field, which is all of it, or nothing that a column holds (it says nothing of null);
#: "" where some record has it, None where no index knows.
Lack: TypeAlias = Literal["", "the field", "a number or a time in"] | None


class Evidence(Protocol):
    """Of a log, or of several."""

    def lack(self, path: Path) -> Lack:
        """What all records lack of a field."""

    def has(self, leaf: Operation) -> bool:
        """Whether the leaf is known to be true of some live record."""

    def remarks(self, operation: Operation) -> list[str]:
        """How the values that it compares were taken."""

    def sample(self, count: int) -> list[Any]:
        """So many live records at most; none where there are none."""


class LogEvidence:
    """Of one log."""

    def __init__(self, manager: IndexManager) -> None:
        self._manager = manager

    def lack(self, path: Path) -> Lack:
        manager = self._manager

        def look() -> Lack:
            found = [index for index in manager.catalog.opened() if index.spec.paths == (path,) and index.segments]
            about = [index for index in found if index.kind != SET]  # of what a function says of it, nothing follows
            if not about:
                return None
            if not all(is_void(segment) for index in about for segment in index.segments):
                return ""
            return "a number or a time in" if all(index.kind == NUMBERS for index in about) else "the field"

        return manager.look(look)

    def has(self, leaf: Operation) -> bool:
        manager = self._manager
        if manager.look(lambda: manager.plan(leaf, False).stale(manager.log.durable_end)):
            return False  # to know it takes a scan
        return manager.ask(leaf, False, None, lambda end: manager.evaluator.has_match(leaf, end))

    def remarks(self, operation: Operation) -> list[str]:
        manager = self._manager
        return manager.look(lambda: remarks_of(manager.catalog, manager.core, operation, False))

    def sample(self, count: int) -> list[Any]:
        from jitdb.log.reading.sampling import sample

        return list(sample(self._manager.log, count))
