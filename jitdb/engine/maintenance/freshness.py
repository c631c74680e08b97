"""Is everything that a question needs up to date, and what is to be scanned if not? With the lock held, throughout."""

from __future__ import annotations

from collections.abc import Sequence

from jitdb.engine.bounds import UNBOUND, Bounds
from jitdb.engine.maintenance.state import IndexState
from jitdb.engine.plan import Plan, Requirement, requirements
from jitdb.errors import TooManyIndexes
from jitdb.indexes.spec import OFFSETS
from jitdb.operators.nodes.operations import Operation


def core_needs(state: IndexState) -> tuple[Requirement, ...]:
    """What every answer needs (where records lie, which are deleted), and what any page may."""
    return (
        Requirement(OFFSETS),
        Requirement(state.deleted_spec()),
        Requirement(state.core.column("timestamp")),
        Requirement(state.core.column("sequence")),
    )


def needs_of(state: IndexState, operation: Operation, ordered: bool) -> tuple[Requirement, ...]:
    """The indexes of a question, with its own functions; `ordered`: those of the declared order too."""
    return core_needs(state)[: 3 if ordered else 2] + requirements(operation, state.core)


def plan_of(state: IndexState, operation: Operation, ordered: bool) -> Plan:
    """The same as a plan, which is remembered: of its functions, only what names them counts."""
    key = (operation.identity, ordered, state.deleted_spec())
    return state.answers.plan(key, lambda: _made(state, needs_of(state, operation, ordered)))


def stale_plan(state: IndexState, needs: Sequence[Requirement], bounds: Bounds) -> Plan:
    """Those of these indexes that are to be built, if any, and those that any page needs: we scan anyway.

    Raises TooManyIndexes.
    """
    end = state.log.durable_end
    plan = _made(state, needs)
    if not plan.stale(end):
        return Plan((), ())
    if bounds != UNBOUND:
        _check(state, plan.only_stale(end), bounds)
    return _made(state, (*needs, *core_needs(state))).only_stale(end)


def horizon(state: IndexState, plan: Plan) -> int | None:
    """How many records all indexes know, and this process sees; None when they do not speak of the same records.

    Mostly all end at the same record. Some were brought further by other questions since this one was asked, or by
    another process, which sees more of the log. They must count what they have in common alike: that they do not
    where a damaged block hides records of one that it did not hide of another.
    """
    ends, visible = plan.ends(), state.log.durable_end
    seqs = {seq for _, seq in ends}
    if len(ends) == 1 and max(ends)[0] <= visible:
        return seqs.pop()
    records, known = state.records, state.catalog.get(OFFSETS).reached
    if any(index.reached <= known and records.rank(index.reached) != index.end_seq for index in plan.indexes):
        return None
    return min(records.rank(visible), *seqs)


def _made(state: IndexState, needs: Sequence[Requirement]) -> Plan:
    once = {need.spec: need for need in needs}
    return Plan(tuple(once.values()), tuple(state.catalog.get(spec) for spec in once))


def _check(state: IndexState, plan: Plan, bounds: Bounds) -> None:
    """Whether the new ones among these indexes may be built. If not, nothing is kept of them: strangers may ask for any
    number.
    """
    core = {need.spec for need in core_needs(state)}
    new = [index for index in plan.indexes if not index.segments and index.spec not in core]
    if new:
        there = [index for index in state.catalog.everything() if index.segments and index.spec not in core]
        try:
            bounds.check(state.log.path, len(new), len(there), sum(index.size for index in there))
        except TooManyIndexes:
            state.let_go(new)
            raise
