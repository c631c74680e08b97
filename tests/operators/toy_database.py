"""A database of a few decoded records, answered by looking at each: the meaning of operations, written plainly."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from oracle import Oracle, text_matches

from jitdb.common.times import time_of
from jitdb.common.values import UNDEFINED, kind_of, value_at, value_key, values_at
from jitdb.errors import QueryCancelled
from jitdb.operators.nodes.anywhere import Anywhere
from jitdb.operators.nodes.compare import Between, Compare
from jitdb.operators.nodes.equal import Absent, Equal, Includes, IsIn
from jitdb.operators.nodes.fits import Fits
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.levels import CompareLevel
from jitdb.operators.nodes.operation import And, Everything, Not, Operation, Or
from jitdb.operators.nodes.positions import Offsets, Seqs, seqs
from jitdb.operators.nodes.predicate import Predicate
from jitdb.operators.nodes.selection import selected
from jitdb.operators.nodes.text_match import TextMatch
from jitdb.operators.question import Question
from jitdb.operators.summaries.value_counts import ValueCount, ValueCounts
from jitdb.operators.tasks.deferred import resolved
from jitdb.operators.tasks.live_seqs import SeqSource, sources_of, with_seqs

NUMBER_KIND = kind_of(1)
DERIVED = {"timestamp": ("timestamp",), "sequence": ("value", "sequence")}


@dataclass
class ToyPage:
    data: list[Any]
    total: int
    next_seq: int
    duration: float = 0.0


class ToyDatabase:
    """Record n begins at offset 10 * n. Order is the records' own, or by the field `timestamp`."""

    def __init__(self, records: list[Any]) -> None:
        self.records = records
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.watchers: dict[object, Callable[[], object]] = {}

    def __repr__(self) -> str:
        return "ToyDatabase()"

    def append(self, *records: Any) -> None:
        self.records += records
        for watcher in list(self.watchers.values()):
            watcher()

    def find(self, question: Question | Operation, cancel: threading.Event | None = None) -> list[int]:
        """All seqs of the answer, in the order that was asked for."""
        question = resolved(Question(operation=question) if isinstance(question, Operation) else question, cancel)
        end, as_of = len(self.records), question.as_of
        if as_of is not None:
            end = place_of(as_of) if isinstance(as_of, str) else as_of // 10 + 1
        found = [seq for seq, record in enumerate(self.records[:end]) if matches(question.operation, record, seq)]
        if not isinstance(question.sort_by, str):
            oracle = Oracle(self.records[:end], range(end), set())
            wanted = set(found)
            ordered = oracle.sorted_by(Everything(), question.sort_by, descending=question.descending)
            return [seq for seq in ordered if seq in wanted]
        if question.sort_by == "declared":
            found.sort(key=lambda seq: (self.records[seq].get("timestamp", 0), seq))
        if question.descending:
            found.reverse()
        return found

    def count(self, question, *, cancel=None):
        self.calls.append(("count", question))
        return max(0, len(self.find(question, cancel)) - question.start_from)

    def paginate(self, question, *, cancel=None):
        self.calls.append(("paginate", question))
        found, start = self.find(question, cancel), question.start_from
        chosen = found[start:][: question.limit]
        data = [seq * 10 if question.as_offsets else self.records[seq] for seq in chosen]
        if question.select is not None:
            data = [selected(record, question.select) for record in data]
        return ToyPage(data, len(found), start + len(data))

    def summarize(self, question, *, cancel=None):
        self.calls.append(("summarize", question))
        found = [value_at(self.records[seq], question.summary.path) for seq in self.find(question, cancel)]
        rows = [ValueCount(value, count) for value, count in Counter(found).most_common() if value is not UNDEFINED]
        return ValueCounts(tuple(rows), len(found), found.count(UNDEFINED), question.summary.path, len(rows))

    def arrow(self, question, *, schema=None, times=True, places=(), cancel=None):
        import pyarrow

        self.calls.append(("arrow", question))
        return ToyArrow(pyarrow.Table.from_pylist(self.paginate(question).data, schema))

    def pages(self, question, *, cancel=None):
        self.calls.append(("pages", question))
        return ToyPages(self.some_pages(resolved(question, cancel), cancel))

    def some_pages(self, question, cancel):
        page = self.paginate(question.changed(limit=question.portion))
        while page.data:
            yield page
            page = self.paginate(question.changed(limit=question.portion, start_from=page.next_seq))

    def feed(self, question, *, cancel=None):
        self.calls.append(("feed", question))
        return ToyFeed(self, resolved(question, cancel))

    def explain(self, question):
        return f"I look at each record: {resolved(question).operation!r}"


class ToyArrow:
    """A table, and what is made of it."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def table(self) -> Any:
        return self.rows

    def reader(self) -> Any:
        return self.rows.to_reader()

    def schema(self) -> Any:
        return self.rows.schema


class ToyPages:
    """Pages of a generator, which cannot be closed while it runs: then it is closed behind itself."""

    def __init__(self, pages: Generator[ToyPage]) -> None:
        self.pages = pages
        self.closed = False

    def read(self) -> ToyPage | None:
        try:
            return next(self.pages, None)
        finally:
            if self.closed:
                self.pages.close()

    def close(self) -> None:
        self.closed = True
        with contextlib.suppress(ValueError):
            self.pages.close()


def place_of(cursor: str) -> int:
    """How many records lie before a cursor."""
    return int(cursor.removeprefix("behind "))


@dataclass
class ToyPortion:
    data: list[Any]
    places: list[int]

    def cursor(self, count: int) -> str:
        return f"behind {max(self.places[:count])}"


class ToyFeed:
    """Looks at all records from its beginning on whenever it is read, and gives those that it has not given yet."""

    def __init__(self, db: ToyDatabase, question: Question) -> None:
        self.db, self.operation = db, question.operation
        self.limit, self.as_offsets = question.portion, question.as_offsets
        old, after = question.live
        self.begin = self.place = place_of(after) if after else 0 if old else len(db.records)
        self.given: set[int] = set()
        self.closed = False
        self.named: dict[SeqSource, set[int]] = {source: set() for source in sources_of(question.operation)}
        for source in self.named:
            source.start()

    @property
    def cursor(self) -> str:
        return f"behind {self.place}"

    def read(self) -> ToyPortion | None:
        if self.closed:
            raise QueryCancelled("closed")
        for source, named in self.named.items():
            named.update(source.take())
        question, end = with_seqs(self.operation, lambda source: seqs(self.named[source])), len(self.db.records)
        found = [seq for seq in range(self.begin, end) if matches(question, self.db.records[seq], seq)]
        found = [seq for seq in found if seq not in self.given]
        if not found:
            self.place = end
            return None
        found = found[: self.limit]
        self.given.update(found)
        places = [max(self.place, seq + 1) for seq in found]
        self.place = max(places)
        return ToyPortion([seq * 10 if self.as_offsets else self.db.records[seq] for seq in found], places)

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        key = object()
        self.db.watchers[key] = callback
        ends = [source.watch(callback) for source in self.named]

        def unsubscribe() -> None:
            del self.db.watchers[key]
            for end in ends:
                end()

        return unsubscribe

    def close(self) -> None:
        self.closed = True
        for source in self.named:
            source.close()


def matches(operation: Operation, record: Any, seq: int) -> bool:
    match operation:
        case Everything():
            return True
        case And(args):
            return all(matches(arg, record, seq) for arg in args)
        case Or(args):
            return any(matches(arg, record, seq) for arg in args)
        case Not(arg):
            return not matches(arg, record, seq)
        case Seqs():
            return seq in set(operation)
        case Offsets():
            return seq * 10 in set(operation)
        case Equal(field, value):
            return any(same(held, value) for held in values_at(record, field.path))
        case Includes(field, value, pluck):
            return any(
                same(found, value)
                for held in values_at(record, field.path)
                for found in (values_at(held, (None, *(pluck or ()))) if isinstance(held, list) else [held])
            )
        case IsIn(path, values):
            return any(same(held, value) for held in values_at(record, path) for value in values)
        case Absent(field):
            return not list(values_at(record, field.path))
        case Predicate(field, fn):
            return any(fn(held) for held in values_at(record, field.path))
        case TextMatch(_, path):
            return any(text_matches(operation, held) for held in values_at(record, path))
        case Fits():
            return any(map(operation.holds, values_at(record, *operation.paths)))
        case Anywhere():
            return operation.holds(record)
        case CompareLevel(index):
            return any(map(operation.holds, values_at(record, index)))
        case Compare(index, op, value):
            return any(above(op, held, value) for held in values_at(record, DERIVED.get(index, index)))
        case Between(index, low, high):
            (held,) = [*values_at(record, DERIVED.get(index, index)), None][:1]
            return above("gte", held, low) and above("lte", held, high)
    raise AssertionError(operation)


def above(op: str, held: Any, value: Any) -> bool:
    if isinstance(value, Instant):
        held, value = time_of(held), value.time
    if kind_of(held) != NUMBER_KIND:
        return False
    return {"gt": held > value, "gte": held >= value, "lt": held < value, "lte": held <= value}[op]


def same(held: Any, value: Any) -> bool:
    return value_key(held) == value_key(value)


def small_database() -> ToyDatabase:
    """Three posts, a vote and a record of another shape."""

    def message(sequence: int, **content: Any) -> dict[str, Any]:
        return {"timestamp": sequence, "value": {"sequence": sequence, "author": "@a", "content": content}}

    return ToyDatabase(
        [
            message(1, type="post", text="one", mentions=["@b", "@c"]),
            message(2, type="vote", vote={"value": 1}),
            message(3, type="post", text="TWO", root=None),
            message(4, type="post", text="three", root="%r", mentions=[{"link": "@b"}]),
            {"timestamp": 5, "note": True, "size": 1},
        ]
    )
