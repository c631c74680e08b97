"""A summary is asked: which indexes it needs is told, they are brought up to date, and it is counted under the lock.

Of a field whose values are counted, the bitmaps serve that questions left behind, else its dictionary. Which one that
is may change until all are up to date: then it is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from jitdb.engine.counting.counters import Counter, View, counter_of, is_known
from jitdb.engine.serving import serving_spec
from jitdb.indexes.spec import Requirement

if TYPE_CHECKING:
    import threading

    from jitdb.engine.manager import IndexManager
    from jitdb.engine.plan import Needs
    from jitdb.indexes.spec import IndexSpec
    from jitdb.operators.question import Question

T = TypeVar("T")


def summarized(manager: IndexManager, question: Question, cancel: threading.Event | None) -> Any:
    """The answer of one log, as of one moment. Raises QueryError, QueryCancelled, LogError."""
    assert question.summary is not None
    counter = counter_of(question.summary)

    def work(view: View) -> tuple[Counter[Any, Any], Any]:
        settled = counter.settled([counter.survey(view)]) if counter.surveys else counter
        return settled, settled.count(view)

    settled, counts = viewed(manager, question, counter, work, {}, True, cancel)
    return settled.result([counts])  # without the lock, for there may be a row for each of many values


def viewed(
    manager: IndexManager,
    question: Question,
    counter: Counter[Any, Any],
    work: Callable[[View], T],
    known: Mapping[str, Any],
    is_whole: bool,
    cancel: threading.Event | None,
) -> T:
    """What the work makes of the records that match, with all that the counter needs up to date."""
    core = manager.core
    paths = [path for path in counter.values_of() if path[0] not in known]

    def serving() -> list[IndexSpec]:
        return [serving_spec(manager.catalog, path) for path in paths]

    def look(end: int) -> tuple[T] | None:
        if column != counter.column(core) or chosen != serving():
            return None
        until = manager.records.horizon(question.as_of, end)
        matches = manager.evaluator.matches(question.operation, until)
        return (work(View(manager.catalog, core, manager.coded, matches, known, is_whole, manager.records.rank)),)

    while True:
        chosen, column = manager.look(serving), counter.column(core)
        also: Needs = tuple(map(Requirement, chosen))
        if column is not None and not is_known(column, known):
            also = (*also, Requirement(column))
        found = manager.ask(question.operation, False, cancel, look, also)
        if found is not None:
            return found[0]
