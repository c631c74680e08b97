"""Counts that fresh indexes answer by what stands in them, without numpy, whose import takes longer than all else.

It is for a process that asks once: `jitdb count LOG 'field == value'`, or some of these with and, or, not. The log is
opened and the index files are read by the code that the engine uses; here is only when what they say may be taken as
it stands. Whatever is not plain (a deletion, a damaged block, an index that is stale, damaged, missing or of other
bytes, a field of many values) is left to the engine, which repairs and warns.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NamedTuple

from pyroaring import BitMap

from jitdb.engine.answering.spellings import spelled_otherwise
from jitdb.engine.catalog.copies import LastRecords
from jitdb.errors import IndexDamaged, LogError
from jitdb.indexes.files.file import LogName
from jitdb.indexes.files.folder import index_files
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds.bitmaps import dictionary_of, records_with
from jitdb.indexes.kinds.content import is_void
from jitdb.indexes.kinds.roaring import bitmap_of_range
from jitdb.indexes.kinds.set import journal_in, records_in_sets
from jitdb.indexes.segment import BITMAPS, NO_JOURNAL
from jitdb.indexes.spec import OFFSETS, IndexSpec, deleted_spec
from jitdb.log.io import osfile
from jitdb.operators.nodes.operation import EVERYTHING

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.operation import Operation


def count_at_a_glance(log: LogSource, folder: FilePath, operation: Operation | None) -> int | None:
    """How many records of the log match, by its indexes in the folder; None where that is for the engine to say."""
    leaves = [] if operation is None else list(operation.leaves())
    wanted = {leaf: leaf.bitmap for leaf in leaves if leaf != EVERYTHING}
    bitmaps = {leaf: bitmap for leaf, bitmap in wanted.items() if bitmap is not None}
    if len(bitmaps) < len(wanted):
        return None
    try:
        found = _fresh(log, folder, tuple({spec for spec, _ in bitmaps.values()}))
        if found is None:
            return None
        if operation is None:
            return len(found.records)
        by_spec = {index.spec: index for index in found.fields}
        if any(index.kind != BITMAPS or all(map(is_void, index.segments)) for index in found.fields):
            return None  # the engine warns of a field that no record has
        if any(spelled_otherwise(leaf, by_spec[spec].segments) for leaf, (spec, _) in bitmaps.items()):
            return None  # and of a value that is there in another form, too
        by_leaf = {leaf: records_with(by_spec[spec].segments, key) for leaf, (spec, key) in bitmaps.items()}
        return len(operation.records(by_leaf.__getitem__, lambda: found.records))
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
            for key, count in zip(dictionary, map(int, dictionary.cardinalities), strict=True):
                counts[key] = counts.get(key, 0) + count
        return counts if sum(counts.values()) == len(found.records) else None
    except (IndexDamaged, LogError, OSError):
        return None


class _Fresh(NamedTuple):
    records: BitMap  # that there are
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
    for index in indexes:
        if log.shelf is not None and index.path is not None:
            log.shelf.fetch(index.path)
    last = LastRecords(log)
    for index in indexes:
        if not index.load():
            return None
        last.check(index)
    places, gone, *fields = indexes
    end = (log.durable_end, places.end_seq)
    if any((index.end_offset, index.end_seq) != end for index in indexes):
        return None
    # Nothing is deleted, neither in the journal nor in what was scanned, and no block is listed as damaged.
    known = {journal_in(segment.meta) for segment in gone.segments}
    none = records_in_sets(gone.segments)
    if known != {NO_JOURNAL} or (none and (log.framing.keeps_malformed or log.framing.tells_malformed)):
        return None  # the engine looks whether lines that count as deleted are blank, or warns of them
    if any(segment.meta for segment in places.segments):
        return None
    return _Fresh(bitmap_of_range(0, places.end_seq) - none, fields)


def _name(log: LogSource, folder: FilePath) -> LogName | None:
    """The log's name, as the one index of deleted records has it, with what its content is called."""
    heads = [head for _, head in index_files(osfile.fs, folder, containing=".deleted-")]
    if len(heads) != 1 or heads[0] is None:
        return None
    name = heads[0].log
    return name if (name.identity, name.generation) == (log.identity, log.generation) else None
