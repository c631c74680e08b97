"""A database of a few decoded records, answered by looking at each: the meaning of operations, written plainly."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from jitdb.operators.operations import (
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
from jitdb.values import UNDEFINED, kind_of, value_key

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

    def __repr__(self) -> str:
        return "ToyDatabase()"

    def find(self, operation: Operation) -> list[int]:
        return [seq for seq, record in enumerate(self.records) if matches(operation, record, seq)]

    def count(self, operation, *, start_from=0, cancel=None):
        self.calls.append(("count", {"start_from": start_from}))
        return max(0, len(self.find(operation)) - start_from)

    def all(self, operation, *, start_from=0, descending=False, as_offsets=False, sort_by="declared", cancel=None):
        self.calls.append(("all", {"sort_by": sort_by}))
        found = self.find(operation)
        if sort_by == "declared":
            found.sort(key=lambda seq: (self.records[seq].get("timestamp", 0), seq))
        if descending:
            found.reverse()
        return [seq * 10 if as_offsets else self.records[seq] for seq in found[start_from:]]

    def paginate(self, operation, *, start_from=0, limit, cancel=None, **how):
        self.calls.append(("paginate", {"limit": limit}))
        data = self.all(operation, start_from=start_from, **how)[:limit]
        return ToyPage(data, len(self.find(operation)), start_from + len(data))

    def pages(self, operation, *, limit, start_from=0, cancel: threading.Event, **how):
        self.calls.append(("pages", {"limit": limit}))
        data = self.all(operation, **how)
        for first in range(start_from, len(data), limit):
            yield ToyPage(data[first : first + limit], len(data), first + limit)

    def explain(self, operation):
        return f"I look at each record: {operation!r}"


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
