"""A database of a few decoded records, answered by looking at each: the meaning of operations, written plainly."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jitdb.common.values import UNDEFINED, kind_of, value_key
from jitdb.errors import QueryCancelled
from jitdb.operators.nodes.combine import and_, or_
from jitdb.operators.nodes.live_seqs import LiveSeqs, SeqSource, sources_of
from jitdb.operators.nodes.operations import (
    Absent,
    And,
    Compare,
    Equal,
    Everything,
    Includes,
    Not,
    Offsets,
    Operation,
    Or,
    Predicate,
    Seqs,
    StartsWith,
)
from jitdb.operators.nodes.positions import seqs

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

    def find(self, operation: Operation, as_of: int | str | None = None) -> list[int]:
        end = len(self.records) if as_of is None else place_of(as_of) if isinstance(as_of, str) else as_of // 10 + 1
        return [seq for seq, record in enumerate(self.records[:end]) if matches(operation, record, seq)]

    def count(self, operation, *, start_from=0, as_of=None, cancel=None):
        self.calls.append(("count", {"start_from": start_from}))
        return max(0, len(self.find(operation, as_of)) - start_from)

    def all(
        self,
        operation,
        *,
        start_from=0,
        descending=False,
        as_offsets=False,
        sort_by="declared",
        as_of=None,
        cancel=None,
    ):
        self.calls.append(("all", {"sort_by": sort_by}))
        found = self.find(operation, as_of)
        if sort_by == "declared":
            found.sort(key=lambda seq: (self.records[seq].get("timestamp", 0), seq))
        if descending:
            found.reverse()
        return [seq * 10 if as_offsets else self.records[seq] for seq in found[start_from:]]

    def paginate(self, operation, *, start_from=0, limit, cancel=None, **how):
        self.calls.append(("paginate", {"limit": limit}))
        data = self.all(operation, start_from=start_from, **how)[:limit]
        return ToyPage(data, len(self.find(operation, how.get("as_of"))), start_from + len(data))

    def pages(self, operation, *, limit, start_from=0, cancel: threading.Event, **how):
        self.calls.append(("pages", {"limit": limit}))
        data = self.all(operation, **how)
        for first in range(start_from, len(data), limit):
            yield ToyPage(data[first : first + limit], len(data), first + limit)

    def feed(self, operation, *, limit, old=False, after=None, as_offsets=False):
        place = place_of(after) if after else 0 if old else len(self.records)
        return ToyFeed(self, operation, limit, place, as_offsets)

    def explain(self, operation):
        return f"I look at each record: {operation!r}"


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

    def __init__(self, db: ToyDatabase, operation: Operation, limit: int, place: int, as_offsets: bool) -> None:
        self.db, self.operation, self.limit, self.as_offsets = db, operation, limit, as_offsets
        self.begin = self.place = place
        self.given: set[int] = set()
        self.closed = False
        self.named: dict[SeqSource, set[int]] = {source: set() for source in sources_of(operation)}
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
        question, end = with_seqs(self.operation, self.named), len(self.db.records)
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


def with_seqs(operation: Operation, named: dict[SeqSource, set[int]]) -> Operation:
    match operation:
        case LiveSeqs(source):
            return seqs(named[source])
        case And(args):
            return and_(*(with_seqs(arg, named) for arg in args))
        case Or(args):
            return or_(*(with_seqs(arg, named) for arg in args))
    return operation


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
        case Equal(path, value):
            return same(look(record, path), value)
        case Includes(path, value, pluck):
            held = look(record, path)
            held = held if isinstance(held, list) else [held]
            return any(same(look(item, pluck or ()), value) for item in held)
        case Absent(path):
            return look(record, path) is UNDEFINED
        case Predicate(path, fn):
            held = look(record, path)
            return held is not UNDEFINED and bool(fn(held))
        case StartsWith(path, prefix):
            held = look(record, path)
            return type(held) is type(prefix) and held.startswith(prefix)
        case Compare(op, index, value):
            held = look(record, DERIVED[index] if isinstance(index, str) else index)
            if kind_of(held) != NUMBER_KIND:
                return False
            return {"gt": held > value, "gte": held >= value, "lt": held < value, "lte": held <= value}[op]
    raise AssertionError(operation)


def look(record: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        record = record.get(key, UNDEFINED) if isinstance(record, dict) else UNDEFINED
    return record


def same(held: Any, value: Any) -> bool:
    return held is not UNDEFINED and value_key(held) == value_key(value)


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
