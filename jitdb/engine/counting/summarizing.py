"""A summary is asked: which indexes it needs is told, they are brought up to date, and it is counted under the lock.

Of a field whose values are counted, the bitmaps serve that questions left behind, else its dictionary. Which one that
is may change until all are up to date: then it is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from jitdb.engine.counting.coded import bitmaps_spec, dictionary_spec, has_bitmaps
from jitdb.engine.counting.counters import Counter, View, counter_of
from jitdb.engine.plan import Requirement

if TYPE_CHECKING:
    import threading

    from jitdb.common.paths import Path
    from jitdb.engine.manager import IndexManager
    from jitdb.engine.plan import Needs
    from jitdb.operators.question import Question

T = TypeVar("T")


def summarized(manager: IndexManager, question: Question, cancel: threading.Event | None) -> Any:
    """The answer of one log, as of one moment. Raises QueryError, QueryCancelled, LogError."""
    assert question.summary is not None
    counter = counter_of(question.summary)

    def work(view: View) -> Any:
        settled = counter.settled([counter.survey(view)]) if counter.surveys else counter
        return settled.result([settled.count(view)])

    return viewed(manager, question, counter, work, {}, True, cancel)


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

    def look(end: int) -> tuple[T] | None:
        catalog = manager.catalog
        if column != counter.column(core) or any(spec != serving(path).spec for path, spec in chosen.items()):
            return None
        until = manager.records.horizon(question.as_of, end)
        matches = manager.evaluator.matches(question.operation, until)
        return (work(View(catalog, core, manager.coded, matches, known, is_whole)),)

    def serving(path: Path) -> Requirement:
        return Requirement((bitmaps_spec if has_bitmaps(manager.catalog, path) else dictionary_spec)(path))

    paths = [path for path in counter.values_of() if path[0] not in known]
    while True:
        needs = manager.look(lambda: {path: serving(path) for path in paths})
        chosen = {path: need.spec for path, need in needs.items()}
        column = counter.column(core)
        also: Needs = tuple(needs.values())
        if column is not None and column.paths[0][0] not in known:
            also = (*also, Requirement(column))
        found = manager.ask(question.operation, False, cancel, look, also)
        if found is not None:
            return found[0]
