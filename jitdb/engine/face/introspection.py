"""What there is to know of a log, of its indexes and of a question, beside the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitdb.common.arguments import whole_number
from jitdb.common.paths import Path
from jitdb.display.shown import Shown
from jitdb.engine.declared_time import Times
from jitdb.engine.face.base import Asked, Base
from jitdb.engine.progress import Status
from jitdb.engine.remarks import remarks_of
from jitdb.operators.question import Question
from jitdb.operators.tasks.deferred import resolved

if TYPE_CHECKING:
    from jitdb.display.parts import Display
    from jitdb.engine.showing.explanation import Explanation
    from jitdb.engine.showing.listing import Indexes
    from jitdb.engine.showing.overview import Known
    from jitdb.operators.summaries.fields import FieldNames


class Introspection(Base, Shown):
    """Nothing of this scans the log."""

    def _display(self) -> Display:
        from jitdb.engine.showing.overview import overview

        return overview(self._manager)

    def sample(self, count: int) -> list[Any]:
        """At most so many live records from all over the log; the same ones as long as it is the same.

        Records that cannot be decoded are left out. Raises LogError.
        """
        from jitdb.log.reading.sampling import sample

        return list(sample(self.log, whole_number("a sample is a number of records", count)))

    @property
    def fields(self) -> FieldNames:
        """The fields that records have: `db.fields()` tells of them, by a sample; `db.fields.user.name` is one of them,
        to ask with.
        """
        from jitdb.operators.summaries.fields import FieldNames, all_records

        if self._names is None:
            self._names = FieldNames(
                self.sample, lambda: (self.log.identity, self.log.durable_end), lambda: all_records(self)
            )
        return self._names

    @property
    def times(self) -> Times:
        """The same, and the unit of those of them that are numbers."""
        return Times(self._core.timestamp, self._core.unit)

    @property
    def declared_time(self) -> tuple[Path, ...]:
        """The fields that say when a record was made: those that were named, or were found."""
        return self._core.timestamp

    def remarks(self, question: Asked = None, *, is_full: bool = True) -> list[str]:
        """What is worth knowing of the answer: which values of the fields compared are no numbers or times, and how
        the others were taken; of a question that is to be ordered, of the declared time too. Builds no index.

        is_full: False: only what may make the answer another one than is expected
        """
        asked = resolved(self._asked(question, {}))
        ordered, manager = asked.order is True, self._manager
        return manager.look(lambda: remarks_of(manager.catalog, self._core, asked.operation, ordered, is_full))

    def hints(self, question: Asked = None, *, is_empty: bool = True) -> list[str]:
        """What the question asks for that no record has: fields, and where the answer is nothing values that the log
        spells otherwise, each with what would find something. From indexes that are there, and the names of fields in
        some records. Who asks in Python is warned of it (QuestionWarning), once.
        """
        from jitdb.engine.hinting.hints import hints_about

        return hints_about(self.evidence(), resolved(self._asked(question, {})).operation, is_empty)

    def explain(self, question: Asked = None) -> Explanation:
        """How the question would be answered: its indexes, what of the log they cover, and what must be read of it."""
        from jitdb.engine.showing.explanation import explained

        asked = resolved(self._asked(question, {}))
        return self._manager.look(lambda: explained(self._manager, asked))

    def explained_soon(self, question: Question) -> Explanation | None:
        """As explain(), with what the order of the answers takes; None where only a scan could tell."""
        from jitdb.engine.showing.explanation import explained_soon

        return explained_soon(self._manager, question)

    def indexes(self) -> Indexes:
        """The indexes that questions have left: what each is about, its size, and whether it is fresh."""
        from jitdb.engine.showing.listing import describe_indexes, indexes_in_memory

        if self.folder is None:
            return indexes_in_memory(self._manager.opened(), self.log.durable_end)
        return describe_indexes(self.folder, self.log)

    def known(self) -> Known | None:
        """What the indexes say of all records as they are, without a scan: how many, up to which byte of the log, of
        which time. None where somebody has to read the log first.
        """
        from jitdb.engine.showing.overview import known_of

        return known_of(self._manager)

    @property
    def status(self) -> Status:
        """What the engine does now."""
        return self._manager.build_lock.status
