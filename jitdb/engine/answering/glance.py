"""Counts that fresh indexes answer by what stands in them, without numpy, whose import takes longer than all else.

It is for a process that asks once: `jitdb count LOG 'field == value'`. The log is opened and the index files are read
by the code that the engine uses; here is only when what they say may be taken as it stands. Whatever is not plain (a
deletion, a damaged block, an index that is stale, damaged, missing or of other bytes, a field of many values) is not
decided here: the engine is asked then, which finds out, mends and tells.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NamedTuple

from jitdb.engine.catalog.copies import LastRecords
from jitdb.engine.plan import field_spec
from jitdb.errors import IndexDamaged, LogError
from jitdb.indexes.files.file import LogName
from jitdb.indexes.files.folder import index_files
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds.bitmaps import dictionary_of, records_with
from jitdb.indexes.kinds.set import journal_in, records_in_sets
from jitdb.indexes.segment import BITMAPS, NO_JOURNAL
from jitdb.indexes.spec import OFFSETS, IndexSpec, deleted_spec
from jitdb.log.io import osfile
from jitdb.operators.nodes.operations import Equal

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.operations import Operation


def count_at_a_glance(log: LogSource, folder: FilePath, operation: Operation | None) -> int | None:
    """How many records of the log match, by its indexes in the folder; None where that is for the engine to say."""
    if not (operation is None or isinstance(operation, Equal)):
        return None
    try:
        return _count(log, folder, operation)
    except (IndexDamaged, LogError, OSError):
        return None  # the engine meets it too, and knows what to do


def values_at_a_glance(log: LogSource, folder: FilePath, path: Path) -> dict[bytes, int] | None:
    """How many records have which value of the field, by its key, the absent one too; None as above."""
    spec = IndexSpec("auto", (path,))
    if spec.is_owned:  # a record may count more than once
        return None
    try:
        found = _fresh(log, folder, (spec,))
        if found is None or found.fields[0].kind != BITMAPS:
            return None
        counts: dict[bytes, int] = {}
        for segment in found.fields[0].segments:
            dictionary = dictionary_of(segment)
            for number, count in enumerate(map(int, dictionary.cardinalities)):
                key = dictionary[number]
                counts[key] = counts.get(key, 0) + count
        return counts if sum(counts.values()) == found.records else None
    except (IndexDamaged, LogError, OSError):
        return None


def _count(log: LogSource, folder: FilePath, leaf: Equal | None) -> int | None:
    found = _fresh(log, folder, () if leaf is None else (field_spec(leaf),))
    if found is None:
        return None
    if leaf is None:
        return found.records
    (field,) = found.fields
    return len(records_with(field.segments, leaf.key)) if field.kind == BITMAPS else None


class _Fresh(NamedTuple):
    records: int  # that there are
    fields: list[Index]


def _fresh(log: LogSource, folder: FilePath, wanted: tuple[IndexSpec, ...]) -> _Fresh | None:
    """These indexes, where they may be taken as they stand."""
    if log.deletion_position():
        return None
    deleted = deleted_spec(log.foreign_change_token())
    name = _name(log, folder)
    if name is None:
        return None
    indexes = [Index(spec, name, folder / spec.file_name()) for spec in (OFFSETS, deleted, *wanted)]
    last = LastRecords(log)
    for index in indexes:
        if not index.load():
            return None
        last.check(index)
    places, gone, *fields = indexes
    end = (log.durable_end, places.end_seq)
    if any((index.end_offset, index.end_seq) != end for index in indexes):
        return None
    # Nothing is deleted, neither in the journal nor in what was scanned (but for lines that never were records, which
    # no index has), and no block is listed as damaged.
    known = {journal_in(segment.meta) for segment in gone.segments}
    none = len(records_in_sets(gone.segments))
    if known != {NO_JOURNAL} or (none and log.framing.keeps_malformed):
        return None
    if any(segment.meta for segment in places.segments):
        return None
    return _Fresh(places.end_seq - none, fields)


def _name(log: LogSource, folder: FilePath) -> LogName | None:
    """The log's name, with what its content is called: the one index of deleted records that there is tells."""
    heads = [head for _, head in index_files(osfile.fs, folder, containing=".deleted-")]
    if len(heads) != 1 or heads[0] is None:
        return None
    name = heads[0].log
    return name if (name.identity, name.generation) == (log.identity, log.generation) else None
