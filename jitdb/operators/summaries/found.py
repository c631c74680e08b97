"""Where a text stands: in which fields of how many records, and in which logs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any, Final, NamedTuple

from jitdb.common.anywhere import holds_in, texts_in
from jitdb.common.paths import Path, format_path
from jitdb.common.words import counted
from jitdb.display.cells import cell
from jitdb.display.sheet import Sheet
from jitdb.operators.summaries.summary import Listed

LOOKED_AT: Final = 10_000  # records, whose fields are gone through one by one
_AROUND: Final = 20  # characters of an example on each side of the text
_NAMED: Final = 3  # logs in a table


class FoundIn(NamedTuple):
    """A field that holds the text.

    logs:    those in which it does, where many were asked, by their paths
    example: of a value, what stands around the text
    """

    path: Path
    count: int  # type: ignore[assignment]  # records
    logs: tuple[str, ...]
    example: str


class Found(Listed[FoundIn]):
    """The fields that hold a text, those of the most records first. `total`: the records that hold it.

    looked_at: of how many of these the fields were looked at
    """

    __slots__ = __match_args__ = ("rows", "total", "text", "looked_at")

    text: str
    looked_at: int

    def sheet(self) -> Sheet:
        paths = {path for row in self for path in row.logs}
        begin, has_logs = os.path.commonpath([os.path.dirname(path) for path in paths] or [""]), bool(paths)
        names = ["field", "records", *(["logs"] if has_logs else []), "example"]
        rows = [
            [format_path(row.path), row.count, *([_some(row.logs, begin)] if has_logs else []), row.example]
            for row in self
        ]
        records = counted(self.total, "record holds", "records hold")
        part = "" if self.looked_at >= self.total else f"; the fields are those of {self.looked_at:,} of them"
        about = {"total": self.total, "looked_at": self.looked_at, "text": self.text}
        return Sheet(names, rows, None, about, f"{records} {cell(self.text)}{part}")

    def plain_sheet(self) -> Sheet:
        """With the paths of all logs."""
        rows = [[format_path(row.path), row.count, list(row.logs), row.example] for row in self]
        return self.sheet()._replace(names=["field", "records", "logs", "example"], rows=rows)


def _some(logs: tuple[str, ...], begin: str) -> str:
    """Some of their paths, from the folder on that all are in."""
    more = len(logs) - _NAMED
    shown = ", ".join(os.path.relpath(path, begin or None) for path in logs[:_NAMED])
    return f"{shown} and {more:,} more" if more > 0 else shown


class OfLog(NamedTuple):
    """A record of a log: the log's path, "" where only one is asked; which fields that gives its records."""

    path: str
    record: Any
    given: Collection[str]


def found_in(text: str, ignore_case: bool, records: Iterable[OfLog], total: int) -> Found:
    """The fields that hold the text in the first of these records."""
    counts: Counter[Path] = Counter()
    logs: dict[Path, dict[str, None]] = {}
    examples: dict[Path, str] = {}
    seen = 0
    for log, record, given in islice(records, LOOKED_AT):
        seen += 1
        held = {path: value for path, value in texts_in(record) if holds_in(value, text, ignore_case)}
        for path in held.keys() - {(name,) for name in given}:
            counts[path] += 1
            logs.setdefault(path, {})[log] = None
            examples.setdefault(path, _around(held[path], text, ignore_case))
    ranked = sorted(counts, key=lambda path: (-counts[path], format_path(path)))
    rows = [FoundIn(path, counts[path], tuple(filter(None, logs[path])), examples[path]) for path in ranked]
    return Found(tuple(rows), total, text, seen)


def _around(held: str | bytes, text: str, ignore_case: bool) -> str:
    """What stands around the text, in one line.

    >>> _around("one two three four five six seven eight nine ten", "seven", False)
    '…three four five six seven eight nine ten'
    """
    whole = held.decode("utf-8", "replace") if isinstance(held, bytes) else held
    at = whole.lower().find(text.lower()) if ignore_case else whole.find(text)
    begin, end = max(at - _AROUND, 0), max(at, 0) + len(text) + _AROUND
    return f"{'…' if begin else ''}{cell(whole[begin:end])}{'…' if end < len(whole) else ''}"
