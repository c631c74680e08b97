"""What every part of a database stands on: a log, the manager of its indexes, and questions made ready for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from jitdb.common import js_aliases
from jitdb.common.paths import Path
from jitdb.engine.checks import operations_of
from jitdb.engine.declared_time import CoreFields
from jitdb.engine.hinting.evidence import QuestionWarnings
from jitdb.engine.manager import IndexManager
from jitdb.indexes.spec import Requirement
from jitdb.log.source import LogSource
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.question import Question, Settings
from jitdb.operators.tasks.deferred import resolved

if TYPE_CHECKING:
    from jitdb.engine.hinting.evidence import LogEvidence
    from jitdb.engine.reading.page import Page
    from jitdb.engine.sets import SavedSets
    from jitdb.operators.summaries.fields import FieldNames

Asked: TypeAlias = Operation | Question | None
Cancel: TypeAlias = threading.Event | None
Progress: TypeAlias = Callable[[int, int], object]


class Base:
    """An open log with indexes: JITDB makes both, and says of what."""

    warns_of_questions = True

    log: LogSource
    folder: FilePath | None
    _manager: IndexManager
    _core: CoreFields
    _warnings: QuestionWarnings
    _names: FieldNames | None
    _progress: bool | None
    _threads: int

    if not TYPE_CHECKING:  # a checker knows which names there are

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                js_aliases.no_such_name("a JITDB", name, js_aliases.DATABASE, dir(type(self))), name=name
            )

    def __repr__(self) -> str:
        return f"<JITDB {self.log.path} ({self.log.codec.name})>"

    def _page(self, asked: Question, cancel: Cancel) -> Page:
        from jitdb.engine.reading.paging import one_page

        page = one_page(self._manager, asked, cancel)
        self._tell(asked, not page.total)
        return page

    def _tell(self, asked: Question, is_empty: bool, paths: Sequence[Path] = ()) -> None:
        """It was answered: warn of what no record has. `paths`: none of its records has one of these fields."""
        if is_empty:
            self._manager.tell_left_out()
        if self.warns_of_questions:
            self._warnings.tell(asked.operation, is_empty, paths)

    def evidence(self) -> LogEvidence:
        """What the indexes that are there say of fields and values: what hints are taken from."""
        from jitdb.engine.hinting.evidence import LogEvidence

        return LogEvidence(self._manager)

    def _asked(self, question: Asked, settings: Settings, limit: int | None = None) -> Question:
        """What this database is asked: the question as it is, else one of an operation and settings."""
        raise NotImplementedError

    @property
    def sets(self) -> SavedSets:
        """Sets of records that are kept under names."""
        raise NotImplementedError

    def _operation(self, operation: Operation | None, cancel: Cancel = None) -> Operation:
        return resolved(self._asked(operation, {}), cancel).operation

    def _needs_of(self, operations: Sequence[Operation | None], cancel: Cancel = None) -> list[Requirement]:
        asked = [self._operation(operation, cancel) for operation in operations_of(operations)]
        return self._manager.look(lambda: [need for each in asked for need in self._manager.leaf_needs(each)])

    def close(self) -> None:
        """Close the log and the index files."""
        try:
            self._manager.close()
        finally:
            self.log.close()
