"""What every part of a JITDB stands on: a log, and the manager of its indexes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from jitdb.common import js_aliases
from jitdb.engine.checks import operations_of
from jitdb.engine.declared_time import CoreFields
from jitdb.engine.face.asker import Asker, Cancel
from jitdb.engine.manager import IndexManager
from jitdb.indexes.spec import Requirement
from jitdb.log.source import LogSource
from jitdb.operators.nodes.operation import Operation

if TYPE_CHECKING:
    from jitdb.engine.sets import SavedSets

Progress: TypeAlias = Callable[[int, int], object]


class Base(Asker):
    """JITDB makes these."""

    log: LogSource
    folder: FilePath | None
    _manager: IndexManager
    _core: CoreFields
    _progress: bool | None
    _threads: int

    if not TYPE_CHECKING:  # a checker knows which names there are

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                js_aliases.no_such_name("a JITDB", name, js_aliases.DATABASE, dir(type(self))), name=name
            )

    @property
    @abstractmethod
    def sets(self) -> SavedSets:
        """Sets of records that are kept under names: `db.sets["suspicious"] = db.query(...).set()`."""

    def _operation(self, operation: Operation | None, cancel: Cancel = None) -> Operation:
        return self._ready(operation, {}, None, cancel).operation

    def _needs_of(self, operations: Sequence[Operation | None], cancel: Cancel = None) -> list[Requirement]:
        asked = [self._operation(operation, cancel) for operation in operations_of(operations)]
        return self._manager.look(lambda: [need for each in asked for need in self._manager.leaf_needs(each)])
