"""The indexes of a log in memory, what is remembered of their answers, and which indexes questions need."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from jitdb.common.forking import begins_anew
from jitdb.engine.answering.coded_column import CodedColumns
from jitdb.engine.answering.evaluate import Evaluator
from jitdb.engine.answering.order import Answer, Column, Order, column_of, sorting_spec
from jitdb.engine.building.build_lock import BuildLock
from jitdb.engine.catalog.catalog import Catalog
from jitdb.engine.declared_time import CoreFields
from jitdb.engine.plan import LARGE, UNBOUND, Bounds, Needs, Plan, Serving, requirements
from jitdb.engine.records import DamageReport, Records
from jitdb.errors import LogClosed, TooManyIndexes
from jitdb.indexes.files.file import LogName
from jitdb.indexes.spec import GRAMS, OFFSETS, IndexSpec, Requirement
from jitdb.operators.nodes.operation import Operation

if TYPE_CHECKING:
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.selection import SortKeys
    from jitdb.operators.question import Context

T = TypeVar("T")

_ANSWERS: Final = 64  # whole answers that are remembered, for paging on
_PLANS: Final = 4096
_A_MOMENT: Final = 0.001  # seconds between looks at a log whose name is changing


class _Planned(NamedTuple):
    plan: Plan
    chosen: tuple[Requirement | None, ...]  # see _chosen


class IndexState:
    """The indexes, the records that they speak of, and the answers.

    `lock` guards it for the microseconds that an evaluation takes. Hold it to use what is replaced with the log
    (`catalog`, `records`, `evaluator`, `suspects`), and to plan or answer from that.
    """

    def __init__(
        self,
        log: LogSource,
        place: Callable[[], FilePath | None],
        core: CoreFields,
        threads: int,
        show_progress: bool | None,
        bounds: Bounds = UNBOUND,
    ) -> None:
        self.log, self._place, self.core = log, place, core
        self._threads, self._show_progress, self._bounds = threads, show_progress, bounds
        self._new_locks()
        self.name = LogName(b"", 0)
        self.token: bytes | None = None  # the log's when its content was looked at; None: that was never done
        self.open()
        begins_anew(self)

    def _new_locks(self) -> None:
        self.lock = threading.RLock()
        self.build_lock = BuildLock(self._place)

    @property
    def folder(self) -> FilePath | None:
        """Where the index files of the log as it is now are; None: in memory."""
        return self._place()

    def open(self, content: bytes = b"", before: Catalog | None = None, *, quiet: bool = False) -> None:
        """Open the indexes of the log as it is now; `content` names its bytes (log_content.py)."""
        name = self._name_now()._replace(content=content)
        if (name.identity, content) != (self.name.identity, self.name.content):
            self.core.forget()
        self.name = name
        self.misfit_at = -1  # where the log ended when its indexes turned out to be those of another copy
        self._open_catalog(before, quiet)

    def _open_catalog(self, before: Catalog | None = None, quiet: bool = False) -> None:
        # Without a stored identity, index files could not be told from those of another log.
        self.catalog = Catalog(
            self.folder, self.name, stored=self.log.identity_is_stored, source=self.log, before=before, quiet=quiet
        )
        self.suspects: set[str] = set()  # names of indexes that seemed damaged, and were sound at a second look
        self.damage = DamageReport(self.log)
        self.renumber()

    def begin_anew(self) -> None:
        """In a forked child: other threads of the parent left their work half done here."""
        self._new_locks()
        with suppress(LogClosed):  # nothing will be asked of it
            self._open_catalog()

    def renumber(self) -> None:
        """Forget all that speaks of records by their seqs."""
        self.records = Records(self.log, self.catalog)
        self.serving = Serving(self.catalog, self.log)
        self.evaluator = Evaluator(self.catalog, self.records, self.core, self.serving)
        self.coded = CodedColumns()
        self._answers: OrderedDict[Any, Answer] = OrderedDict()
        self._plans: dict[Any, _Planned] = {}
        self._columns: dict[IndexSpec, Column] = {}  # to sort by
        self._changes = 0  # how often the fields of the time had changed when this was remembered

    def forget(self) -> None:
        """Drop all that is remembered: an index does not say any more what it did."""
        self.evaluator.forget()
        self._answers.clear()
        self._plans.clear()
        self._columns.clear()

    # --- answers ---------------------------------------------------------------------------------------------------

    def answer(self, operation: Operation, end_seq: int, order: bool | SortKeys) -> Answer:
        """The whole answer, to be paged through, in the question's order (Question.order)."""
        key = (operation.identity, end_seq, self.records.deletions, order)
        answer = self._answers.get(key)
        if answer is None:
            matches = self.evaluator.matches(operation, end_seq)
            answer = self._answers[key] = Answer(matches, self.order(order))
            if len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)
        else:
            self._answers.move_to_end(key)
        return answer

    def order(self, by: bool | SortKeys) -> Order | None:
        """What sorts by that; None: the order is that of the log."""
        if by is False:
            return None
        indexes = [self.catalog.get(need.spec) for need in self.order_needs(by)]
        for index in indexes:
            if index.spec not in self._columns:  # which all orders share that it is a part of
                self._columns[index.spec] = column_of(index, self.coded)
        columns = [self._columns[index.spec] for index in indexes]
        if isinstance(by, bool):
            return Order([(columns[0], False)], is_declared=True)
        return Order([(column, key.descending) for column, key in zip(columns, by, strict=True)])

    def order_needs(self, by: bool | SortKeys) -> Needs:
        """An index for each field that is sorted by."""
        if isinstance(by, bool):
            return (Requirement(self.core.column("timestamp")),) if by else ()
        return tuple(Requirement(sorting_spec(key.path, self.core, self.catalog, self.log)) for key in by)

    # --- plans -----------------------------------------------------------------------------------------------------

    @property
    def deleted_spec(self) -> IndexSpec:
        """The index of the deleted records, of the log as it was last looked at.

        Not as the log is now: a change between two steps of a question would give each step another index.
        """
        assert self.token is not None
        return self.records.note_changes(self.token)

    def core_needs(self, ordered: bool) -> Needs:
        """What every answer needs (where records lie, which are deleted); `ordered`: one in the declared order."""
        every = (Requirement(OFFSETS), Requirement(self.deleted_spec))
        return (*every, Requirement(self.core.column("timestamp"))) if ordered else every

    def needs_of(self, operation: Operation, order: bool | SortKeys, also: Needs = ()) -> Needs:
        """The indexes of a question, with its own functions, and of its order (Question.order)."""
        return self.core_needs(False) + self.order_needs(order) + self.leaf_needs(operation) + also

    def leaf_needs(self, operation: Operation) -> Needs:
        """The indexes that its leaves are answered from, as things are now."""
        needs = [self.serving.needed(leaf, self.core) for leaf in operation.leaves()]
        found = tuple(need for need in needs if need is not None)
        return (*found, Requirement(GRAMS)) if any(map(self._is_filtered, found)) else found

    def _is_filtered(self, need: Requirement) -> bool:
        """Whether an index of records that hold a text is to be built with the grams of the log: from the first text on
        that is looked for anywhere, or the second one in a field.
        """
        if need.spec.form != "text" or self.log.durable_end < LARGE:
            return False
        if self.catalog.reached(need.spec) == self.log.durable_end:
            return False
        return not need.spec.paths or self.catalog.reached(GRAMS) > 0 or self.catalog.has_other(need.spec)

    def context_needs(self, context: Context | None) -> Needs:
        """The indexes that find what stands around answers; of a field that is to be the same, the first."""
        if context is None:
            return ()
        same = () if context.same is None else (Requirement(IndexSpec("dictionary", (context.same,))),)
        return same if context.among is None else same + requirements(context.among, self.core)

    def plan(self, operation: Operation, order: bool | SortKeys, also: Needs = ()) -> Plan:
        """The same as a plan, which is remembered; functions count by their names alone."""
        if self._changes != self.core.changes():  # the field of the time was found in records that came since
            self._changes = self.core.changes()
            self.forget()
        if not isinstance(order, bool):  # their indexes may change until they are built, so they are part of the key
            order, also = False, also + self.order_needs(order)
        specs = tuple(need.spec for need in also) if also else ()
        key = (operation.identity, order, specs, self.deleted_spec)
        known = self._plans.get(key)
        if known is None or (known.chosen and self._chosen(operation) != known.chosen):
            if len(self._plans) > _PLANS:
                self._plans.clear()
            needs = self.needs_of(operation, order, also)
            known = self._plans[key] = _Planned(self._planned(needs), self._chosen(operation))
        return known.plan

    def _chosen(self, operation: Operation) -> tuple[Requirement | None, ...]:
        """The index that is chosen for each leaf that several indexes would answer."""
        return tuple(self.serving.needed(leaf, self.core) for leaf in operation.leaves() if leaf.own_spec is not None)

    def stale_plan(self, needs: Sequence[Requirement], bounds: Bounds) -> Plan:
        """Those of these indexes that must be built. Raises TooManyIndexes."""
        plan = self._planned(needs).only_stale(self.log.durable_end)
        if bounds != UNBOUND:
            self._check(plan, bounds)
        return plan

    def horizon(self, plan: Plan) -> int | None:
        """How many records all indexes know, and this process sees; None when they do not speak of the same records.

        Mostly all end at the same record. Other questions may have brought some further since this one was asked, or
        another process, which sees more of the log. All must count the records that they have in common alike. They do
        not where a damaged block hid records when one was built, and not when another was.
        """
        ends, visible = plan.ends(), self.log.durable_end
        if len(ends) == 1:
            ((end, end_seq),) = ends
            if end <= visible:
                return end_seq
        records, known = self.records, self.catalog.get(OFFSETS).reached
        if any(index.reached <= known and records.rank(index.reached) != index.end_seq for index in plan.indexes):
            return None
        return min(records.rank(visible), *(seq for _, seq in ends))

    def _planned(self, needs: Sequence[Requirement]) -> Plan:
        once = {need.spec: need for need in needs}
        return Plan(tuple(once.values()), tuple(self.catalog.get(spec) for spec in once))

    def _check(self, plan: Plan, bounds: Bounds) -> None:
        """Raise TooManyIndexes if the new ones among these may not be built. Then nothing is kept of them: strangers
        may ask for any number.
        """
        core = {need.spec for need in self.core_needs(True)}
        new = [index.spec for index in plan.indexes if not index.segments and index.spec not in core]
        if new:
            there = [index for index in self.catalog.everything() if index.segments and index.spec not in core]
            try:
                bounds.check(self.log.path, len(new), len(there), sum(index.size for index in there))
            except TooManyIndexes:
                gone = {index.spec for index in self.catalog.opened() if not index.segments} - core
                self.catalog.let_go(gone.union(new))
                self._plans.clear()  # some hold these; planning anew is cheaper than looking for them
                raise

    @contextmanager
    def leaving_nothing(self) -> Iterator[None]:
        """At the end, drop the indexes that were asked for within, and are still empty."""
        known = len(self.catalog.opened())
        try:
            yield
        finally:
            if self.catalog.drop_empty(known):
                self._plans.clear()

    # --- is it the same log? ---------------------------------------------------------------------------------------

    def changed(self, records: Records) -> bool:
        """Whether seqs and offsets of these records mean nothing any more."""
        return records is not self.records or self.is_unknown()

    def _name_now(self) -> LogName:
        """The log's name, once refresh() in another thread has changed it completely."""
        while True:
            name = LogName(self.log.identity, self.log.generation)
            if name.identity and name.identity == self.log.identity:
                return name
            time.sleep(_A_MOMENT)

    def is_another(self) -> bool:
        """Whether the log is another one, or was compacted, since these indexes were opened."""
        return self.log.identity != self.name.identity or self.log.generation != self.name.generation

    def is_unknown(self) -> bool:
        """Whether it is another log, or may hold other bytes: nobody has looked yet."""
        return self.log.foreign_change_token() != self.token or self.is_another()
