"""Which fields records have: told of a sample of decoded records, in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from jitdb.common.paths import ANY, Path, format_path
from jitdb.common.values import ABSENT, ARRAY, KIND_NAMES, MAP, kind_of, value_key
from jitdb.common.words import counted
from jitdb.display.cells import cell
from jitdb.display.sheet import Sheet
from jitdb.operators.summaries.result import Result

_DEPTH: Final = 8  # keys in a path
_MOST: Final = 10_000  # fields: records with ids for keys have no end of them
_ELEMENTS: Final = 100  # of an array, that are looked at
_EXAMPLES: Final = 3
_EXAMPLE: Final = 30  # characters of one
_NAMES: Final = {2: "boolean", 3: "boolean"}  # false and true are one to people


class FieldSeen(NamedTuple):
    """A field of some of the records.

    kinds:    how many values of which kind there are, the most frequent first: of elements (`tags[]`) many a record
    examples: some of the values, but maps
    """

    path: Path
    count: int  # type: ignore[assignment]  # records that have it
    kinds: Mapping[str, int]
    examples: tuple[Any, ...]


class Fields(Result):
    """The fields of `total` records that were looked at, to be gone through.

    >>> [(field.path, field.count) for field in fields_of([{"a": 1}, {"a": "x", "b": {"c": None}}])]
    [(('a',), 2), (('b',), 1), (('b', 'c'), 1)]
    """

    __slots__ = __match_args__ = ("rows", "total")

    rows: tuple[FieldSeen, ...]
    total: int

    def __iter__(self) -> Iterator[FieldSeen]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> FieldSeen:
        return self.rows[number]

    def sheet(self) -> Sheet:
        rows = [
            [format_path(field.path), ", ".join(field.kinds), field.count / self.total, _examples_text(field.examples)]
            for field in self
        ]
        footer = f"{counted(self.total, 'record', 'records')} looked at"
        return Sheet(["field", "kinds", "share", "examples"], rows, None, {"total": self.total}, footer)


def _examples_text(examples: Sequence[Any]) -> str:
    """Some values in one line."""
    shown = map(cell, examples)
    return ", ".join(text if len(text) <= _EXAMPLE else text[: _EXAMPLE - 1] + "…" for text in shown)


class _Seen:
    def __init__(self) -> None:
        self.records = 0
        self.latest = -1  # record that has it
        self.kinds: dict[str, int] = {}
        self.examples: dict[bytes, Any] = {}

    def take(self, record: int, value: Any, kind: int) -> None:
        self.records += record != self.latest
        self.latest = record
        name = _NAMES.get(kind, KIND_NAMES[kind])
        self.kinds[name] = self.kinds.get(name, 0) + 1
        if kind != MAP and len(self.examples) < _EXAMPLES:
            self.examples.setdefault(value_key(value), value)


def fields_of(records: Iterable[Any]) -> Fields:
    """Those of these records."""
    seen: dict[Path, _Seen] = {}
    total = 0
    for record in records:
        for path, value, kind in _walk(record, ()):
            if path in seen or len(seen) < _MOST:
                seen.setdefault(path, _Seen()).take(total, value, kind)
        total += 1
    rows = []
    for path, found in seen.items():
        kinds = dict(sorted(found.kinds.items(), key=lambda pair: -pair[1]))
        rows.append(FieldSeen(path, found.records, kinds, tuple(found.examples.values())))
    return Fields(tuple(rows), total)


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, Any, int]]:
    kind = kind_of(value)
    if path and kind != ABSENT:
        yield path, value, kind
    if kind == MAP and len(path) < _DEPTH:
        for key, item in value.items():
            if isinstance(key, str):
                yield from _walk(item, (*path, key))
    elif kind == ARRAY and path and len(path) < _DEPTH:
        for item in value[:_ELEMENTS]:
            yield from _walk(item, (*path, ANY))
