"""What there is to see of a question that is not asked yet: what it would cost and, where that is next to nothing, its
first answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.words import counted, duration, size_in_words
from jitdb.display.parts import Code, Display, Folded, Note, Part, Records
from jitdb.display.sheet import Sheet
from jitdb.engine.showing.overview import is_soon_known
from jitdb.errors import JitdbError
from jitdb.operators.tasks.deferred import Deferred
from jitdb.operators.tasks.live_seqs import LiveSeqs

if TYPE_CHECKING:
    from jitdb.engine.manager import IndexManager
    from jitdb.engine.showing.explanation import Explanation, SetExplanation
    from jitdb.operators.question import Page, Question

_ROWS: Final = 10
_CONFIRMED: Final = 4 << 20  # bytes of candidates that are read for a look
_READ: Final = 16 << 20  # bytes of records that are read for a look, about; one record in any case
_SORTED: Final = 1 << 20  # records, of more of which none are sorted by fields for a look


def explained_soon(manager: IndexManager, question: Question) -> Explanation | None:
    """What the question's first page would take, the order included; None where only a scan could tell.

    Raises LogError, QueryError.
    """
    from jitdb.engine.showing.explanation import explained

    if not is_soon_known(manager):
        return None
    return manager.look(lambda: explained(manager, question, ordered=True))


def first_look(
    question: Question,
    explain: Callable[[Question], Explanation | SetExplanation | None],
    ask: Callable[[Question], Page],
) -> Display:
    """The question, how it would be answered, and its first answers where that reads next to nothing."""
    code = Code(repr(question))
    if any(isinstance(leaf, (Deferred, LiveSeqs)) for leaf in question.operation.leaves()):
        return Display("Query", "not asked yet", [code, Note("what it waits for is known when it is asked")])
    plain = question.changed(limit=None, batch=None, counting=False, summary=None, live=None, context=None)
    try:
        told = explain(plain)
        if told is None:
            return Display("Query", "not asked yet", [code, Note("another program changed the file: to be looked at")])
        plan = _plan_of(told)
        costs: list[Part] = [Note(line) for line in told.costs()]
        waits = _waits_for(question, told)
        if waits:
            count = None if question.live else _count_of(plain.changed(sort_by="arrival"), explain, ask)
            about = "not asked yet" if count is None else f"{counted(count, 'answer', 'answers')}, not asked for yet"
            return Display("Query", about, [code, plan, *costs, Note(waits)])
        each = told.log_bytes // max(told.records, 1)  # bytes of a record, about
        page = ask(plain.changed(limit=min(max(_READ // max(each, 1), 1), _ROWS)))
    except (JitdbError, OSError) as error:
        return Display("Query", "not asked yet", [code, Note(f"it cannot be answered: {error}")])
    seen: list[Part] = [Records(page.data, dict(question.select or ()), bool(question.select))] if page.data else []
    said = _joined(costs) if told.confirm_bytes else ""
    which = f", of which these are the first {len(page.data)}" if page.total > len(page.data) else ""
    about = f"{counted(page.total, 'answer', 'answers')} in {duration(page.duration)}{which}"
    return Display("Query", about, [code, *seen, Folded("how it is answered", plan._replace(footer=said))])


def _count_of(
    question: Question,
    explain: Callable[[Question], Explanation | SetExplanation | None],
    ask: Callable[[Question], Page],
) -> int | None:
    """How many answers there are, where only their order is not indexed."""
    told = explain(question)
    if told is None or not told.is_ready or told.confirm_bytes > _CONFIRMED:
        return None
    return ask(question.changed(limit=1, as_offsets=True, select=None)).total


def _waits_for(question: Question, told: Explanation | SetExplanation) -> str:
    """Why no answers are shown; nothing where they are."""
    if question.live is not None:
        return "live: go through it with for, or async for"
    if not told.is_ready:
        return "its first answers are shown here once these indexes are there: page() builds them"
    if told.confirm_bytes > _CONFIRMED:
        return f"its answers are not shown, for up to {size_in_words(told.confirm_bytes)} would be read: page() does"
    if not isinstance(question.order, bool) and told.records > _SORTED:
        return "its answers are not shown, for they would be sorted first: page() does"
    return ""


def _plan_of(told: Explanation | SetExplanation) -> Sheet:
    (sheet,) = (part for part in told._display().parts if isinstance(part, Sheet))
    return sheet


def _joined(notes: list[Any]) -> str:
    return "; ".join(note.text for note in notes)
