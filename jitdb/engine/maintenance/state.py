"""The indexes of a log in memory, and all that is remembered of what they said: one lock guards it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final

from jitdb.engine.answering.answer import Answer
from jitdb.engine.answering.evaluate import Evaluator
from jitdb.engine.answering.order import Order
from jitdb.engine.catalog.catalog import Catalog
from jitdb.engine.damage import DamageReport
from jitdb.engine.plan import CoreFields, Plan
from jitdb.engine.records import Records
from jitdb.errors import LogClosed
from jitdb.indexes.files.file import LogName
from jitdb.indexes.spec import IndexSpec
from jitdb.operators.nodes.operations import Operation

if TYPE_CHECKING:
    from jitdb.indexes.files.index import Index
    from jitdb.log.source import LogSource

_ANSWERS: Final = 64  # whole answers that are remembered, for paging on
_PLANS: Final = 4096
_A_MOMENT: Final = 0.001  # seconds between looks at a log that is changing


class AnswerCache:
    """Plans and whole answers, as long as the records keep their seqs."""

    def __init__(self, catalog: Catalog, records: Records, core: CoreFields) -> None:
        self.evaluator = Evaluator(catalog, records, core)
        self._catalog = catalog
        self._records = records
        self._timestamp = core.column("timestamp")
        self._answers: OrderedDict[Any, Answer] = OrderedDict()
        self._plans: dict[Any, Plan] = {}
        self._order: Order | None = None

    def plan(self, key: Any, make: Callable[[], Plan]) -> Plan:
        """The plan under this key."""
        plan = self._plans.get(key)
        if plan is None:
            plan = make()
            if len(self._plans) > _PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def answer(self, operation: Operation, end_seq: int) -> Answer:
        """The whole answer, to be paged through."""
        key = (operation.identity, end_seq, self._records.deletions)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = Answer(self.evaluator.matches(operation, end_seq), self.declared())
            if len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)
        else:
            self._answers.move_to_end(key)
        return answer

    def declared(self) -> Order:
        """The order by time."""
        if self._order is None:
            self._order = Order(self._catalog.get(self._timestamp))
        return self._order

    def let_go(self, specs: set[IndexSpec]) -> None:
        """Drop the plans that name these indexes."""
        kept = {key: plan for key, plan in self._plans.items() if specs.isdisjoint(need.spec for need in plan.needs)}
        self._plans = kept

    def forget(self) -> None:
        """Drop all of it: an index says something else than it did."""
        self.evaluator.forget()
        self._answers.clear()
        self._plans.clear()
        self._order = None


class IndexState:
    """The indexes, the records that they speak of, and the answers.

    `lock` is to be held by whoever uses what is replaced with the log: `catalog`, `records`, `answers`, `suspects`.
    """

    def __init__(self, log: LogSource, folder: FilePath | None, core: CoreFields) -> None:
        self.lock = threading.RLock()
        self.log = log
        self.folder = folder
        self.core = core
        self.token: bytes | None = None  # of the log, whose content these indexes are of; None: nobody looked yet
        self.open()

    def open(self, content: bytes = b"", before: Catalog | None = None, *, quiet: bool = False) -> None:
        """Open the indexes of the log as it is now; its content has this name."""
        self.name = self.name_now()._replace(content=content)
        self.misfit_at = -1  # where the log ended when its indexes turned out to be another copy's
        self._open_catalog(before, quiet)

    def _open_catalog(self, before: Catalog | None = None, quiet: bool = False) -> None:
        # Without a stored identity, index files could not be told from those of another log.
        self.catalog = Catalog(
            self.folder, self.name, stored=self.log.identity_is_stored, source=self.log, before=before, quiet=quiet
        )
        self.suspects: set[str] = set()  # names of indexes that seemed damaged, and were not when looked at again
        self.damage = DamageReport(self.log)
        self.renumber()

    def begin_anew(self) -> None:
        """In a forked child: what other threads were at in the parent was left half done here."""
        self.lock = threading.RLock()
        with suppress(LogClosed):  # of which nothing will be asked
            self._open_catalog()

    def renumber(self) -> None:
        """Forget all that speaks of records by their seqs."""
        self.records = Records(self.log, self.catalog)
        self.answers = AnswerCache(self.catalog, self.records, self.core)

    def let_go(self, indexes: Sequence[Index]) -> None:
        """As if nobody had asked for these, of which nothing was built."""
        self.catalog.let_go(indexes)
        self.answers.let_go({index.spec for index in indexes})

    @contextmanager
    def leaving_nothing(self) -> Iterator[None]:
        """Look, and keep no index in memory that is asked for now, and of which there is nothing yet."""
        known = {index.spec for index in self.catalog.opened()}
        try:
            yield
        finally:
            self.let_go([new for new in self.catalog.opened() if new.spec not in known and not new.segments])

    def deleted_spec(self) -> IndexSpec:
        """The index of the records that were deleted in the log as it is."""
        return self.records.note_changes()

    # --- is it the same log? ---------------------------------------------------------------------------------------

    def changed(self, records: Records) -> bool:
        """Whether seqs and offsets that were taken from these records mean nothing any more."""
        return records is not self.records or self.is_another()

    def name_now(self) -> LogName:
        """The log's name, once refresh() in another thread is done with changing it."""
        while True:
            name = LogName(self.log.identity, self.log.generation)
            if name.identity and name.identity == self.log.identity:
                return name
            time.sleep(_A_MOMENT)

    def is_another(self) -> bool:
        """Whether the log is another one, or was compacted, since these indexes were opened."""
        return self.log.identity != self.name.identity or self.log.generation != self.name.generation

    def is_unknown(self) -> bool:
        """Whether it is another log, or nobody looked yet whether it holds other bytes."""
        return self.log.foreign_change_token() != self.token or self.is_another()
