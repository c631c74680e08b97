"""The indexes that there are, as far as one wants to know without asking a question."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.immutable import Immutable, Told
from jitdb.common.words import counted, size_in_words
from jitdb.display.sheet import Sheet, State
from jitdb.display.shown import Shown
from jitdb.engine.catalog.copies import LastRecords
from jitdb.errors import IndexDamaged, IndexForeign
from jitdb.indexes.files.file import Head
from jitdb.indexes.files.folder import headless, index_files, is_index
from jitdb.indexes.files.index import Index
from jitdb.indexes.segment import LAYOUTS
from jitdb.log.io import osfile

if TYPE_CHECKING:
    from jitdb.display.parts import Display
    from jitdb.log import LogSource

# What the forms are for, by the name that `describe_indexes` gives them.
USES: Final = {
    "bitmaps": "==, in, absent",
    "prefixes": "starts_with, equal with the option prefix",
    "prefix map": "equal with the options prefix and use_map",
    "numbers": "<, <=, >, >=",
    "times": "<, <=, >, >= as a time, and the order",
    "dictionary": "counting by value, text, sorting",
    "offsets": "where each record lies",
    "set": "a set of records",
}

# Which of these an index is that a question needs: what it turns out to be is said by its values.
FORMS: Final = {
    "auto": "bitmaps", "bitmap": "bitmaps", "prefix": "prefixes", "prefix_map": "prefix map", "column": "numbers",
    "time": "times", "dictionary": "dictionary", "offsets": "offsets", "predicate": "set", "text": "set",
    "deleted": "set",
}  # fmt: skip


_MOODS: Final = {"fresh": "good", "stale": "fair", "damaged": "bad"}


class IndexInfo(Told, Shown):
    """An index file, as far as one can know without asking a question.

    name:    what it is about
    file:    its name in the folder
    form:    a key of USES
    records: that it covers
    state:   "fresh"; "stale": the next question brings it up to date; "void": it belongs to another log; "damaged"
    reason:  why it is not fresh
    """

    __slots__ = __match_args__ = ("name", "file", "form", "records", "bytes", "state", "reason")

    name: str
    file: str
    form: str
    records: int
    bytes: int
    state: str
    reason: str

    @property
    def use(self) -> str:
        """What it answers."""
        return USES.get(self.form, "")

    def _display(self) -> Display:
        from jitdb.display.parts import Display, Facts

        pairs = [
            ("for", self.use), ("records", f"{self.records:,}"), ("size", size_in_words(self.bytes)),
            ("state", state_cell(self.state, self.reason)), ("file", self.file),
        ]  # fmt: skip
        return Display(self.name, f"an index ({self.form})", [Facts(pairs)])


class Indexes(Immutable, Shown):
    """The indexes that questions have left, to be gone through."""

    __slots__ = __match_args__ = ("rows", "folder")

    rows: tuple[IndexInfo, ...]
    folder: str  # "": they are in memory

    def __iter__(self) -> Iterator[IndexInfo]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> IndexInfo:
        return self.rows[number]

    @property
    def bytes(self) -> int:
        """Of all of them."""
        return sum(row.bytes for row in self.rows)

    def __repr__(self) -> str:
        return str(self)

    def _display(self) -> Display:
        from jitdb.display.parts import Display

        where = f", in {self.folder or 'memory'}" if self.rows else ""
        about = f"{counted(len(self.rows), 'index', 'indexes')} of {size_in_words(self.bytes)}{where}"
        return Display("", about if self.rows else "no indexes yet: the first question makes them", [index_sheet(self)])


def index_sheet(indexes: Indexes) -> Sheet:
    """A row each."""
    rows = [
        [row.name, row.use, row.records, size_in_words(row.bytes), state_cell(row.state, row.reason)] for row in indexes
    ]
    return Sheet(["index", "for", "records", "size", "state"], rows, None, {}, "")


def state_cell(state: str, reason: str = "") -> State:
    """The state with why, and whether it is good."""
    return State(f"{state}: {reason}" if reason else state, _MOODS.get(state, ""))


def describe_indexes(folder: str | os.PathLike[str], log: LogSource) -> Indexes:
    """The index files in a folder, by name."""
    last = LastRecords(log)
    rows = [IndexInfo(*_row(path, head, log, last).values()) for path, head in index_files(osfile.fs, Path(folder))]
    return Indexes(tuple(sorted(rows, key=lambda row: (row.name, row.file))), str(folder))


def indexes_in_memory(opened: Iterable[Index], end: int) -> Indexes:
    """Those that a database keeps there, of a log that ends at this byte."""
    rows = []
    for index in opened:
        if index.segments:
            behind = max(0, end - index.reached)
            state = ("stale", size_in_words(behind)) if behind else ("fresh", "")
            spec = index.spec
            rows.append(IndexInfo(spec.title, spec.file_name(), form_of(index), index.end_seq, index.size, *state))
    return Indexes(tuple(sorted(rows, key=lambda row: row.name)), "")


def form_of(index: Index) -> str:
    """The key of USES that says what it is for."""
    if index.spec.form == "time":
        return "times"
    return LAYOUTS[index.kind].name if index.kind else index.spec.form


def _row(path: Path, head: Head | None, log: LogSource, last: LastRecords) -> dict[str, Any]:
    row = {
        "name": path.name, "file": path.name, "form": "?", "records": 0,
        "bytes": _size(path), "state": "damaged", "reason": "",
    }  # fmt: skip
    if head is None:
        kept = "" if is_index(osfile.fs, path, None) else ", nor is the name: it is never removed"
        return row | {"reason": f"{headless(osfile.fs, path)}{kept}"}
    row |= {"name": head.spec.title, "form": head.spec.form}
    if head.log.identity != log.identity or head.log.generation > log.generation:
        return row | {"state": "void", "reason": "it belongs to another log, or to this one before it was replaced"}
    index = Index(head.spec, head.log, path)
    try:
        index.load()
        row |= {
            "form": form_of(index),
            "records": index.end_seq,
        }
        if index.damage is not None:
            raise index.damage
        if head.log.generation == log.generation:
            last.check(index)
    except IndexForeign as error:
        return row | {"state": "void", "reason": error.reason}
    except IndexDamaged as error:
        return row | {"reason": error.reason}
    except OSError as error:
        return row | {"reason": osfile.reason(error)}
    if head.log.generation < log.generation:
        return row | _stale("the log was compacted since: the next question takes it over")
    behind = max(0, log.durable_end - index.end_offset)
    return row | (_stale(size_in_words(behind)) if behind else {"state": "fresh", "reason": ""})


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0  # it was dropped just now


def _stale(reason: str) -> dict[str, str]:
    return {"state": "stale", "reason": reason}
