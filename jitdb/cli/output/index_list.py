"""The index files in a folder, as far as one wants to know without asking a question."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.words import counted, size_in_words
from jitdb.display.cells import printable
from jitdb.engine.catalog.copies import LastRecords
from jitdb.errors import IndexDamaged, IndexForeign
from jitdb.indexes.files.file import Head
from jitdb.indexes.files.folder import headless, index_files, is_index
from jitdb.indexes.files.index import Index
from jitdb.indexes.segment import BITMAPS, DICTIONARY, NUMBERS, OFFSETS, PREFIX_MAP, PREFIXES, SET
from jitdb.log.io import osfile

if TYPE_CHECKING:
    from jitdb.log import LogSource

_FORMS: Final = {
    BITMAPS: "bitmaps", PREFIXES: "prefixes", PREFIX_MAP: "prefix map",
    NUMBERS: "numbers", OFFSETS: "offsets", SET: "set", DICTIONARY: "dictionary",
}  # fmt: skip

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
    "time": "times", "dictionary": "dictionary", "offsets": "offsets", "predicate": "set", "deleted": "set",
}  # fmt: skip


def describe_indexes(folder: str | os.PathLike[str], log: LogSource) -> list[dict[str, Any]]:
    """One row an index file: name, form, records, bytes, state (fresh, stale, void or damaged) and why, by name."""
    last = LastRecords(log)
    rows = [_row(path, head, log, last) for path, head in index_files(osfile.fs, Path(folder))]
    return sorted(rows, key=lambda row: (row["name"], row["file"]))


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
            "form": "times" if head.spec.form == "time" else _FORMS.get(index.kind, head.spec.form),
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


def show_indexes(rows: list[dict[str, Any]], with_files: bool) -> None:
    """Print what `describe_indexes` gave."""
    for row in rows:
        use = f" ({USES[row['form']]})" if row["form"] in USES else ""
        state = row["state"] + (f": {row['reason']}" if row["reason"] else "")
        told = f"{counted(row['records'], 'record', 'records')}, {size_in_words(row['bytes'])}, {state}"
        file = f"\n  {printable(row['file'])}" if with_files else ""
        print(f"{printable(row['name'])}{use}{file}: {printable(told)}")
    if not rows:
        print("no indexes yet: the first question makes them")
