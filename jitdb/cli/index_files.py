"""The index files in a folder, as far as one wants to know without asking a question."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.words import size_in_words
from jitdb.errors import IndexDamaged
from jitdb.indexes.index import MAGIC, Index, LogName
from jitdb.indexes.segment import BITMAPS, NUMBERS, OFFSETS, PREFIX_MAP, PREFIXES, SET
from jitdb.indexes.spec import IndexSpec

if TYPE_CHECKING:
    from jitdb.log import Log

_FORMS: Final = {
    BITMAPS: "bitmaps", PREFIXES: "prefixes", PREFIX_MAP: "prefix map",
    NUMBERS: "numbers", OFFSETS: "offsets", SET: "set",
}  # fmt: skip

#: What the forms are for, by the name that `describe_indexes` gives them.
USES: Final = {
    "bitmaps": "==, in, absent",
    "prefixes": "starts_with, equal with the option prefix",
    "prefix map": "equal with the options prefix and use_map",
    "numbers": "<, <=, >, >= and the order",
}


def describe_indexes(folder: str | os.PathLike[str], log: Log) -> list[dict[str, Any]]:
    """One row an index file: name, form, records, bytes, state (fresh, stale, void or damaged) and why, by name."""
    try:
        files = sorted(Path(folder).glob("*.index"))
    except OSError:
        files = []
    return sorted((_row(file, log) for file in files), key=lambda row: (row["name"], row["file"]))


def _row(file: Path, log: Log) -> dict[str, Any]:
    row = {
        "name": file.name, "file": file.name, "form": "?", "records": 0,
        "bytes": file.stat().st_size, "state": "damaged", "reason": "",
    }  # fmt: skip
    try:
        head = read_head(file)
        spec = spec_of(head["index"])
        row |= {"name": title(spec), "form": spec.form}
        generation = head["generation"]
        if head["log"] != log.identity.hex() or generation > log.generation:
            return row | {"state": "void", "reason": "it belongs to another log, or to this one before it was replaced"}
        index = Index(spec, LogName(log.identity, generation), file)
        index.load()
        if generation < log.generation:
            reason = "the log was compacted since: the next question takes it over"
            return row | {"form": _FORMS.get(index.kind, spec.form), "records": index.end_seq} | _stale(reason)
    except (IndexDamaged, OSError, ValueError, KeyError, TypeError) as error:
        return row | {"reason": str(error)}
    behind = max(0, log.durable_end - index.end_offset)
    return row | {
        "form": _FORMS.get(index.kind, spec.form),
        "records": index.end_seq,
        **(_stale(size_in_words(behind)) if behind else {"state": "fresh", "reason": ""}),
    }


def _stale(reason: str) -> dict[str, str]:
    return {"state": "stale", "reason": reason}


def read_head(file: Path) -> dict[str, Any]:
    """The head of an index file (see jitdb/indexes/index.py). Raises ValueError when it is none."""
    with file.open("rb") as stream:
        start = stream.read(len(MAGIC) + 4)
        if start[: len(MAGIC)] != MAGIC or len(start) < len(MAGIC) + 4:
            raise ValueError("the head is not that of an index file")
        length = int.from_bytes(start[len(MAGIC) :], "little")
        head = json.loads(stream.read(min(length, 1 << 20)))
    if not isinstance(head, dict):
        raise ValueError("the head is not that of an index file")
    return head


def spec_of(descriptor: dict[str, Any]) -> IndexSpec:
    """The spec whose `descriptor()` this is."""
    given = dict(descriptor)
    given["paths"] = tuple(tuple(path) for path in given.get("paths", ()))
    given["pluck"] = tuple(given.get("pluck", ()))
    return IndexSpec(**{"form": "auto", **given})


def title(spec: IndexSpec) -> str:
    """What the index is about, for people."""
    name = ", ".join(".".join(path) for path in spec.paths) or spec.index_type or spec.form
    if spec.elements:
        name += "[]" + "".join(f".{key}" for key in spec.pluck)
    if spec.form == "predicate":
        name += f" ({spec.name})"
    return name
