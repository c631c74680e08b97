"""How a question would be answered: from which indexes, and how much of the log must be read. To find that out reads
nothing. A question that is not asked yet shows this and, where they cost next to nothing, its first answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jitdb.common.immutable import Told
from jitdb.common.words import counted, duration, size_in_words
from jitdb.display.parts import Code, Display, Folded, Note, Part, Records
from jitdb.display.sheet import Sheet
from jitdb.display.shown import Shown
from jitdb.engine.plan import serving_spec
from jitdb.engine.showing.overview import FORMS, USES, is_soon_known, state_cell
from jitdb.errors import JitdbError
from jitdb.indexes.spec import Requirement
from jitdb.log.objects.door import requests_for
from jitdb.log.source import Transfer

if TYPE_CHECKING:
    from jitdb.engine.manager import IndexManager
    from jitdb.engine.plan import Needs
    from jitdb.operators.question import Page, Question

_ROWS: Final = 10
_CONFIRMED: Final = 4 << 20  # bytes of candidates that are read for a look
_READ: Final = 16 << 20  # bytes of records that are read for a look, about; one record in any case
_REQUEST: Final = 0.0004 / 1000  # dollars a request, and a byte that leaves its region: S3's list prices of 2026
_SENT: Final = 0.09 / 1e9
_SORTED: Final = 1 << 20  # records: more of them are not sorted by fields for a look


class IndexNeeded(Told):
    """An index that a question is answered from.

    index:       the name of its file
    name:        what it is about
    form:        what is needed, as IndexSpec has it
    state:       "fresh", "stale", or "missing"
    records:     that it covers
    stale_bytes: of the log, that it does not know yet
    """

    __slots__ = __match_args__ = ("index", "name", "form", "state", "records", "bytes", "stale_bytes")

    index: str
    name: str
    form: str
    state: str
    records: int
    bytes: int
    stale_bytes: int

    @property
    def use(self) -> str:
        """What it answers."""
        return USES[FORMS[self.form]]

    def __str__(self) -> str:
        about = f"{self.name} ({self.use})"
        if self.state == "missing":
            return f"{about}: not there yet"
        state = f"{size_in_words(self.stale_bytes)} behind the log" if self.state == "stale" else self.state
        return f"{about}: {counted(self.records, 'record', 'records')}, {size_in_words(self.bytes)}, {state}"


class _Plan(Told, Shown):
    """The explanation of one log, or of several."""

    __slots__ = ()

    where: str
    log_bytes: int
    scan_bytes: int
    candidates: int
    confirm_bytes: int
    requests: int
    request_bytes: int

    @property
    def is_ready(self) -> bool:
        """Whether nothing of the log is to be scanned: all indexes are there, and fresh."""
        return not self.scan_bytes

    @property
    def records(self) -> int:
        """How many records its indexes cover."""
        raise NotImplementedError

    @property
    def pays_after(self) -> int | None:
        """After how many questions building what is missing has cost no more reading than asking without any index,
        which reads the whole log for each; 0 where nothing is missing, None where it never pays.
        """
        if not self.scan_bytes:
            return 0
        saved = self.log_bytes - self.confirm_bytes
        return -(-self.scan_bytes // saved) if saved > 0 else None

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n".join([*self._of_indexes(), *self.costs()])

    def _of_indexes(self) -> Iterator[str]:
        raise NotImplementedError

    def _sheet(self) -> Sheet:
        """A row for each index."""
        raise NotImplementedError

    def _display(self) -> Display:
        return Display("", "how it would be answered", [Code(self.where), self._sheet(), *map(Note, self.costs())])

    def costs(self) -> Iterator[str]:
        """What must be read of the log, in sentences."""
        scan, whole, is_one = self.scan_bytes, self.log_bytes, isinstance(self, Explanation)
        what, of_which = ("one scan", "the log") if is_one else ("scans", "these logs")
        if scan:
            part = f"all of {of_which}" if scan == whole else f"of {size_in_words(whole)}"
            yield f"{what} of {size_in_words(scan)}, {part}, to build what is missing{self._payment()}"
        else:
            yield "nothing is to be scanned"
        if self.requests:
            requests, price = counted(self.requests, "request", "requests"), self.requests * _REQUEST
            yield (
                f"that reads {size_in_words(self.request_bytes)} of the store in about {requests}: at Amazon's list "
                f"prices ${price:,.4f}, and ${price + self.request_bytes * _SENT:,.2f} from outside its region"
            )
        if self.candidates:
            candidates = counted(self.candidates, "candidate is", "candidates are")
            yield f"{candidates} looked at, in at most {size_in_words(self.confirm_bytes)} of the log"

    def _payment(self) -> str:
        after = self.pays_after
        if after is None:
            return ", which pays only for other questions: each reads its candidates"
        if after == 1:
            return "; it pays with the first question, which would read as much without"
        return f"; it pays after {after:,} questions"


class Explanation(_Plan):
    """How a question to one log would be answered; a mapping, too.

    where:         the operation
    indexes:       those that are needed; those too that sort by fields, and of a context that of the field which is the
                   same
    log_bytes:     the durable bytes of the log
    scan_bytes:    what must be scanned, because no index knows it yet
    candidates:    records that indexes of prefixes name, and that must be read to see if they match
    requests, request_bytes: what the scan reads of a store of objects, about; 0 of a file
    confirm_bytes: what reading them takes, at most. Candidates in what is not scanned yet may be anywhere there; of an
                   index that is not begun, and decides by the values what it is, nothing is known
    """

    __slots__ = __match_args__ = (
        "where", "log_bytes", "scan_bytes", "candidates", "confirm_bytes", "requests", "request_bytes", "indexes",
    )  # fmt: skip

    indexes: tuple[IndexNeeded, ...]

    @property
    def records(self) -> int:
        return min((index.records for index in self.indexes), default=0)

    def by_question(self) -> list[IndexNeeded]:
        """The indexes of the question first, then those that every answer needs."""
        return sorted(self.indexes, key=lambda index: index.form in ("offsets", "deleted"))

    def _of_indexes(self) -> Iterator[str]:
        return map(str, self.by_question())

    def _sheet(self) -> Sheet:
        rows = [
            [
                index.name, index.use, index.records or None, size_in_words(index.bytes) if index.bytes else "",
                state_cell(index.state, f"{size_in_words(index.stale_bytes)} behind" if index.state == "stale" else ""),
            ]
            for index in self.by_question()
        ]  # fmt: skip
        return Sheet(["index", "for", "records", "size", "state"], rows, None, {}, "")


class SetExplanation(_Plan):
    """How a question to a set of logs would be answered; a mapping, too.

    logs:    an Explanation of each that would be asked, by path
    skipped: logs that are not opened, because nothing there can match
    The rest are the sums of what these say.
    """

    __slots__ = __match_args__ = (
        "where", "log_bytes", "scan_bytes", "candidates", "confirm_bytes", "requests", "request_bytes", "logs",
        "skipped",
    )  # fmt: skip

    logs: Mapping[str, Explanation]
    skipped: int

    @classmethod
    def of(cls, where: str, logs: Mapping[str, Explanation], skipped: int) -> SetExplanation:
        """With the sums of these."""
        sums = (sum(each[name] for each in logs.values()) for name in cls.__match_args__[1:7])
        log, scan, candidates, confirm, requests, read = sums
        return cls(where, log, scan, candidates, confirm, requests, read, logs, skipped)

    @property
    def records(self) -> int:
        return sum(told.records for told in self.logs.values())

    __hash__ = None  # type: ignore[assignment]  # it holds a dict

    def _states(self) -> dict[str, Counter[str]]:
        """Of each index, how many logs have it in which state."""
        states: dict[str, Counter[str]] = {}
        for told in self.logs.values():
            for index in told.by_question():
                states.setdefault(f"{index.name} ({index.use})", Counter())[index.state] += 1
        return states

    def _of_indexes(self) -> Iterator[str]:
        for about, counts in self._states().items():
            yield f"{about}: of {counted(counts.total(), 'log', 'logs')}, {_told(counts)}"

    def costs(self) -> Iterator[str]:
        yield from super().costs()
        if self.skipped:
            yield f"{counted(self.skipped, 'other log is', 'other logs are')} not opened: nothing there can match"

    def _sheet(self) -> Sheet:
        rows: list[list[Any]] = [
            [about, counts.total(), state_cell(_told(counts)) if len(counts) > 1 else state_cell(next(iter(counts)))]
            for about, counts in self._states().items()
        ]
        return Sheet(["index", "logs", "state"], rows, None, {}, "")


Explain: TypeAlias = Callable[["Question"], Explanation | SetExplanation | None]


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{number:,} {state}" for state, number in sorted(counts.items()))


def explained(manager: IndexManager, question: Question, *, ordered: bool = False) -> Explanation:
    """Of a question that is resolved, under the lock. `ordered`: what the declared order takes is needed, too.

    Raises QueryError, IndexDamaged.
    """
    end, operation, order = manager.log.durable_end, question.operation, question.order
    if isinstance(order, bool):
        order = order and ordered
    plan = manager.plan(operation, order, manager.context_needs(question.context) + dedup_needs(manager, question))
    found = []
    for need, index in zip(*plan, strict=True):
        stale = max(0, end - index.reached)
        state = ("stale" if index.segments else "missing") if stale else "fresh"
        spec = need.spec
        found.append(IndexNeeded(spec.file_name(), spec.title, spec.form, state, index.end_seq, index.size, stale))
    unread = manager.evaluator.unread(operation)
    scan = max((index.stale_bytes for index in found), default=0)
    read = manager.log.transfer(end - scan, end) if scan else Transfer(0)
    return Explanation(
        repr(operation), end, scan, unread.candidates, unread.bytes, read.requests, read.bytes if read.requests else 0,
        tuple(found),
    )  # fmt: skip


def of_unread(question: Question, size: int) -> Explanation:
    """Of an object that nobody read yet, of so many bytes."""
    return Explanation(repr(question.operation), size, size, 0, 0, requests_for(size), size, ())


def dedup_needs(manager: IndexManager, question: Question) -> Needs:
    """The indexes of the values that dedup() compares."""
    paths = () if question.dedup is None else question.dedup.paths
    return tuple(Requirement(serving_spec(manager.catalog, path)) for path in paths)


def explained_soon(manager: IndexManager, question: Question) -> Explanation | None:
    """What the question's first page would cost, with its order; None: only a scan could tell.

    Raises LogError, QueryError.
    """
    if not is_soon_known(manager):
        return None
    return manager.look(lambda: explained(manager, question, ordered=True))


def first_look(question: Question, explain: Explain, ask: Callable[[Question], Page]) -> Display:
    """The question, how it would be answered, and its first answers where that reads next to nothing."""
    code = Code(repr(question))
    if question.operation.unresolved:
        return Display("Query", "not asked yet", [code, Note("what it waits for is known when it is asked")])
    plain = question.changed(limit=None, batch=None, counting=False, summary=None, live=None, context=None)
    try:
        told = explain(plain)
        if told is None:
            return Display("Query", "not asked yet", [code, Note("another program changed the file: to be looked at")])
        plan = told._sheet()
        waits = _waits_for(question, told)
        if waits:
            count = None if question.live else _count_of(plain.changed(sort_by="arrival"), explain, ask)
            about = "not asked yet" if count is None else f"{counted(count, 'answer', 'answers')}, not asked for yet"
            return Display("Query", about, [code, plan, *map(Note, told.costs()), Note(waits)])
        each = told.log_bytes // max(told.records, 1)  # bytes of a record, about
        page = ask(plain.changed(limit=min(max(_READ // max(each, 1), 1), _ROWS)))
    except (JitdbError, OSError) as error:
        return Display("Query", "not asked yet", [code, Note(f"it cannot be answered: {error}")])
    seen: list[Part] = [Records(page.data, dict(question.select or ()), bool(question.select))] if page.data else []
    said = "; ".join(told.costs()) if told.confirm_bytes else ""
    which = f", of which these are the first {len(page.data)}" if page.total > len(page.data) else ""
    about = f"{counted(page.total, 'answer', 'answers')} in {duration(page.duration)}{which}"
    return Display("Query", about, [code, *seen, Folded("how it is answered", plan._replace(footer=said))])


def _count_of(question: Question, explain: Explain, ask: Callable[[Question], Page]) -> int | None:
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
