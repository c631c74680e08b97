"""Counts that fresh indexes answer by what stands in them, without numpy, whose import takes longer than all else.

It is for a process that asks once: `jitdb count LOG 'field == value'`, or a range of levels, numbers or times
(glance_ranges.py), or some of these with and, or, not; `values` and `stats` of a field of all records; and what goes by
time (glance_by_time.py). The log is opened and the index files are
read by the code that the engine uses; here is only when what they say may be taken as it stands. Whatever is not plain
(a deletion, a damaged block, an index that is stale, damaged, missing or of other bytes, a field of many values) is
left to the engine, which repairs and warns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from pyroaring import BitMap

from jitdb.engine.answering.spellings import held_inside, spelled_otherwise
from jitdb.engine.catalog.copies import LastRecords
from jitdb.engine.face.glance_ranges import NotPlain, records_of, spec_of
from jitdb.engine.roles import first_of, has_other_names, is_time_name, is_usual
from jitdb.errors import IndexDamaged, LogError
from jitdb.indexes.files.file import LogName, head_of
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds.bitmaps import ABSENT_KEY, dictionary_of
from jitdb.indexes.kinds.columns import (
    SOME,
    are_few,
    counted_keys,
    counted_numbers,
    seen_by,
    some_lacking,
    tells_lacking,
)
from jitdb.indexes.kinds.content import is_void
from jitdb.indexes.kinds.kernels import seen
from jitdb.indexes.kinds.offsets import offset_of
from jitdb.indexes.kinds.roaring import bitmap_of_range
from jitdb.indexes.kinds.set import journal_in, records_in_sets
from jitdb.indexes.segment import BITMAPS, DICTIONARY, NO_JOURNAL, NUMBERS
from jitdb.indexes.spec import OFFSETS, IndexSpec, deleted_spec
from jitdb.log.io import osfile
from jitdb.log.reading.sampling import sample_raw
from jitdb.operators.nodes.operation import EVERYTHING

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.operation import Operation

T = TypeVar("T")

_SAMPLE: Final = 200  # records, as hints.py looks at
_MOST: Final = 1 << 24  # records whose codes are counted before numpy is imported


def count_at_a_glance(log: LogSource, folder: FilePath, operation: Operation | None) -> int | None:
    """How many records of the log match, by its indexes in the folder; None where that is for the engine to say."""
    with suppress(IndexDamaged, LogError, OSError, NotPlain):  # the engine meets it too, and knows what to do
        return len(matching(log, folder, operation).records)
    return None


def matching(log: LogSource, folder: FilePath, operation: Operation | None, also: Sequence[IndexSpec] = ()) -> Fresh:
    """The records that match, and these other indexes. Raises NotPlain, IndexDamaged, LogError."""
    leaves = [] if operation is None else [leaf for leaf in operation.leaves() if leaf != EVERYTHING]
    spec_by_leaf = {leaf: spec_of(log, leaf, lambda spec: (folder / spec.file_name()).exists()) for leaf in leaves}
    specs = dict.fromkeys(spec_by_leaf.values())
    found = fresh(log, folder, (*specs, *also))
    if found is None:
        raise NotPlain
    if operation is None:
        return found
    fields, others = found.fields[: len(specs)], found.fields[len(specs) :]
    by_spec = {index.spec: index for index in fields}
    if any(all(map(is_void, index.segments)) for index in fields):
        raise NotPlain  # the engine warns of a field that no record has
    named = [(leaf, by_spec[spec]) for leaf, spec in spec_by_leaf.items() if leaf.bitmap is not None]
    if any(index.kind != BITMAPS or _is_told_of(leaf, index.segments) for leaf, index in named):
        raise NotPlain  # and of a value that is there in another form, too
    by_leaf = {leaf: records_of(log, leaf, by_spec[spec]) for leaf, spec in spec_by_leaf.items()}
    if any(leaf.names_value and not by_leaf.get(leaf, True) for leaf in operation.denied_leaves()):
        raise NotPlain  # and of one that is denied, and that none has
    asked = {path: by_spec[spec] for leaf, spec in spec_by_leaf.items() for path in leaf.paths}
    if _may_be_told_of(log, operation, asked, found.places):
        raise NotPlain
    return Fresh(operation.records(by_leaf.__getitem__, lambda: found.records), others, found.places)


def _is_told_of(leaf: Operation, segments: Sequence[Segment]) -> bool:
    """Whether the value is there in another form, too."""
    return bool(spelled_otherwise(leaf, segments)) or next(held_inside(leaf, segments), None) is not None


def _may_be_told_of(log: LogSource, operation: Operation, asked: Mapping[Path, Index], places: Index) -> bool:
    """Whether a note may be due: on a number that is a time; on records with bytes that are no UTF-8; or on those that
    lack one of these fields, which lines of another format do, too.
    """
    if any(map(is_time_name, operation.all_paths())):
        return True
    if not repr(operation).isascii() and any(map(_is_odd, sample_raw(log, _SAMPLE))):
        return True
    return any(
        _may_be_called_otherwise(log, path, index, places) or _may_be_unlike(log, path, index)
        for path, index in asked.items()
    )


def _may_be_unlike(log: LogSource, path: Path, index: Index) -> bool:
    """Whether records lack the field that may be lines of another format than the file's."""
    row = getattr(log.framing, "row", None)
    if row is None:
        return False
    from jitdb.log.lines.unlike import has_own

    return has_own(row, path[0]) and bool(_lacking(index))


def _may_be_called_otherwise(log: LogSource, path: Path, index: Index, places: Index) -> bool:
    """Whether records that lack the field, as its index knows, may have it by another name, or are lines of text in
    which no level is found.
    """
    lacking = _lacking(index)
    if not lacking:
        return False
    from jitdb.engine.hinting.dialects import called_in, is_of_text

    raw = log.get_many_raw([offset_of(places.segments, seq) for seq in lacking])
    more = () if has_other_names(path) else sample_raw(log, _SAMPLE)
    records = [log.codec.decode(record) for record in chain(raw, more) if record is not None]
    return bool(called_in([path], [*first_of(log), *records])) or (is_usual(path) and any(map(is_of_text, records)))


def _lacking(index: Index) -> list[int]:
    """A few of the records without the field, and the last one; none of a column of times that is asked at a glance."""
    return some_lacking(index.segments, SOME) if tells_lacking(index.segments) else []


def _is_odd(record: bytes) -> bool:
    """Whether it may have bytes that are no UTF-8, or what these are read as."""
    text = record.decode(errors="replace").lower()
    return "\ufffd" in text or "\\ufffd" in text


def values_at_a_glance(log: LogSource, folder: FilePath, path: Path) -> dict[bytes, int] | None:
    """How many records have which value of the field, by its key, the absent one too; None as above."""
    spec = IndexSpec("auto", (path,))
    if spec.is_owned:  # a record may count more than once
        return None
    found = _counted(log, folder, spec, BITMAPS, _counted_sets, ABSENT_KEY)
    return found or _counted(log, folder, spec._replace(form="dictionary"), DICTIONARY, _counted_keys, ABSENT_KEY)


def numbers_at_a_glance(log: LogSource, folder: FilePath, path: Path) -> dict[int | float | None, int] | None:
    """How many records have which number in the field, by None those without; None as above, and where it holds text
    that spells a number, or what is none: of that a note is due.
    """
    return _counted(log, folder, IndexSpec("column", (path,)), NUMBERS, _counted_plain, None)


def _counted(
    log: LogSource,
    folder: FilePath,
    spec: IndexSpec,
    kind: int,
    counted: Callable[[Segment], Iterable[tuple[T, int]]],
    absent: T,
) -> dict[T, int] | None:
    """How many records have what, by an index in which each has one thing; `absent` of those that may lack the field.

    None where other records may have it by another name, too: of that a note is due.
    """
    with suppress(IndexDamaged, LogError, OSError, NotPlain):
        found = fresh(log, folder, (spec,))
        if found is None or found.fields[0].kind != kind or len(found.records) > _MOST:
            return None
        counts: dict[T, int] = {}
        for key, count in chain.from_iterable(map(counted, found.fields[0].segments)):
            counts[key] = counts.get(key, 0) + count
        index, (path,) = found.fields[0], spec.paths
        if counts.get(absent) and _may_be_called_otherwise(log, path, index, found.places):
            return None
        return counts if sum(counts.values()) == len(found.records) else None
    return None


def _counted_sets(segment: Segment) -> Iterable[tuple[bytes, int]]:
    dictionary = dictionary_of(segment)
    return zip(dictionary, map(int, dictionary.cardinalities), strict=True)


def _counted_keys(segment: Segment) -> Iterable[tuple[bytes, int]]:
    if not are_few(segment):
        raise NotPlain
    return counted_keys(segment)


def _counted_plain(segment: Segment) -> Iterable[tuple[int | float | None, int]]:
    if not are_few(segment) or seen_by(segment) & (seen.OTHERS | seen.TEXTS):
        raise NotPlain
    return counted_numbers(segment)


class Fresh(NamedTuple):
    """Records, the indexes that were wanted, and where the records lie."""

    records: BitMap
    fields: list[Index]
    places: Index


def fresh(log: LogSource, folder: FilePath, wanted: tuple[IndexSpec, ...]) -> Fresh | None:
    """These indexes, where they may be taken as they stand."""
    if log.deletion_position():
        return None
    deleted = deleted_spec(log.foreign_change_token())
    name = _name(log, folder / deleted.file_name())
    if name is None:
        return None
    indexes = [Index(spec, name, folder / spec.file_name()) for spec in (*wanted, OFFSETS, deleted)]
    for index in indexes:
        if log.shelf is not None and index.path is not None:
            log.shelf.fetch(index.path)
    last = LastRecords(log)
    for index in indexes:
        if not index.load():
            return None
        last.check(index)
    *fields, places, gone = indexes
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
    return Fresh(bitmap_of_range(0, places.end_seq) - none, fields, places)


def _name(log: LogSource, index: FilePath) -> LogName | None:
    """The log's name, as its index of deleted records has it, with what its content is called."""
    head = head_of(osfile.fs, index)
    if head is None:
        return None
    name = head.log
    return name if (name.identity, name.generation) == (log.identity, log.generation) else None
