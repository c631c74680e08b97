"""The overview of a log: how many records, from when to when, with which fields, and which indexes it has.

It comes from index files and a sample of records: a person waits, so nothing is scanned, whatever the size of the log.
What only a scan could find is estimated, and labelled as an estimate.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.immutable import Immutable, Told
from jitdb.common.paths import format_path
from jitdb.common.times import AUTO, NUMBER, as_text, time_of
from jitdb.common.values import value_at
from jitdb.common.words import counted, size_in_words
from jitdb.display.parts import Display, Facts, Note, Part
from jitdb.display.sheet import Sheet, Spark, State, number_text
from jitdb.display.shown import Shown
from jitdb.engine.catalog.copies import LastRecords
from jitdb.errors import DecodeError, IndexDamaged, IndexForeign, JitdbError
from jitdb.indexes.files.file import Head
from jitdb.indexes.files.folder import CODES_SUFFIX, headless, index_files, is_index
from jitdb.indexes.files.index import Index
from jitdb.indexes.files.segment_reader import is_apart
from jitdb.indexes.kinds.columns import number_range
from jitdb.indexes.kinds.numbers import load_extremes
from jitdb.indexes.segment import LAYOUTS, ZONE
from jitdb.indexes.spec import OFFSETS
from jitdb.log.io import osfile
from jitdb.log.objects.door import size_at
from jitdb.log.reading.sampling import sample_raw
from jitdb.log.source import MaintainedSource
from jitdb.operators.summaries.fields import Fields, fields_of

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.manager import IndexManager
    from jitdb.log.source import LogSource

_SAMPLE: Final = 100  # records
_DECODED: Final = 4 << 20  # bytes of them, that are decoded
_READ: Final = 16 << 20  # and that are read
_FIELDS: Final = 20  # that are shown
_BINS: Final = 40  # of the small chart of times
_ZONES: Final = 8  # of a column: with fewer the chart would be made up
_DIGITS: Final = 2  # that an estimate has


class Known(NamedTuple):
    """What indexes say of the records up to byte `reached` of the log."""

    records: int
    deleted: int
    reached: int
    low: float  # of the declared time; inf, -inf where no index knows one
    high: float
    times: Spark | None
    is_time: bool  # and no number


def overview(manager: IndexManager) -> Display:
    """The overview. Never raises: what is wrong with the log is a note."""
    log = manager.log
    try:
        return _overview(manager, log)
    except (JitdbError, OSError) as error:
        return Display(log.path.name, "a log", [Facts([("path", str(log.path))]), Note(f"it cannot be read: {error}")])


def _overview(manager: IndexManager, log: LogSource) -> Display:
    known = known_of(manager)
    records, size = _sampled(log)
    fields = fields_of(records)
    indexes = indexes_of(manager)
    facts: list[tuple[str, Any]] = [("records", _records(known, log.durable_end, size))]
    if known is not None and known.deleted:
        lines = counted(known.deleted, "line that is no record", "lines that are no records")
        ours = isinstance(log, MaintainedSource)
        facts.append(("deleted", f"{known.deleted:,}") if ours else ("left out", lines))
    facts.append(("size", _size(log)))
    span = _span(known, log.durable_end, manager, records)
    if span:
        facts.append(("time", span))
    if known is not None and known.times is not None and any(known.times.counts):
        facts.append(("", known.times))
    parts: list[Part] = [Facts(facts)]
    if fields.rows:
        parts.append(field_sheet(fields))
    parts.append(index_sheet(indexes)._replace(footer=_said_of(indexes)))
    writer = "" if isinstance(log, MaintainedSource) else ", which somebody else writes"
    return Display(log.path.name, f"a log of {log.codec.name} records{writer}, in {log.path.parent}", parts)


def _size(log: LogSource) -> str:
    held = size_at(log.path)
    packed = getattr(log, "compression", "")
    if packed:
        return f"{size_in_words(held)} of {packed}, {size_in_words(log.durable_end)} of records"
    return size_in_words(held)


def field_sheet(fields: Fields) -> Sheet:
    """A row each, the first ones of many."""
    whole = fields.sheet()
    left = len(whole.rows) - _FIELDS
    more = f"; {left:,} more fields are not shown" if left > 0 else ""
    return whole._replace(
        rows=whole.rows[:_FIELDS], footer=f"of a sample of {counted(fields.total, 'record', 'records')}{more}"
    )


def indexes_of(manager: IndexManager) -> Indexes:
    """Those in its folder, or in memory."""
    if manager.folder is None:
        return indexes_in_memory(manager.opened(), manager.log.durable_end)
    return describe_indexes(manager.folder, manager.log)


def _said_of(indexes: Indexes) -> str:
    if not len(indexes):
        return "no indexes yet: the first question makes them"
    where = f"in {indexes.folder}" if indexes.folder else "in memory"
    return f"{counted(len(indexes), 'index', 'indexes')} of {size_in_words(indexes.bytes)}, {where}"


def _sampled(log: LogSource) -> tuple[list[Any], float]:
    """Some records, and how many bytes one takes about; of large records fewer."""
    found: list[Any] = []
    lengths: list[int] = []
    read = 0
    for raw in sample_raw(log, _SAMPLE):
        lengths.append(len(raw))
        if read < _DECODED:
            with suppress(DecodeError):
                found.append(log.codec.decode(raw))
        read += len(raw)
        if read > _READ:
            break
    return found, sum(lengths) / len(lengths) if lengths else math.nan


def _records(known: Known | None, end: int, size: float) -> str:
    if known is not None and known.reached >= end:
        return f"{known.records:,}"
    if known is not None and known.reached:
        estimate = known.records * end / known.reached
        return f"about {rounded(estimate)}; {known.records:,} in the part that is indexed"
    if not end:
        return "none"
    return f"about {rounded(end / (size + 2))}, by the size of some" if size == size else "unknown"


def rounded(number: float) -> str:
    """As many digits as an estimate has.

    >>> rounded(13_807_816.2), rounded(7.2)
    ('14,000,000', '7')
    """
    return f"{round(number, -max(0, len(str(int(number))) - _DIGITS)):,.0f}"


def _span(known: Known | None, end: int, manager: IndexManager, records: Sequence[Any]) -> str:
    """From when to when, and which field says so."""
    core = manager.core
    fields = " or ".join(format_path(path) for path in core.timestamp)
    if known is not None and known.low <= known.high:
        low, high, source = known.low, known.high, "" if known.reached >= end else ", as far as it is indexed"
    else:
        found = time_range(records, core.timestamp, core.unit)
        if found is None:
            return ""
        (low, high), source = found, ", in a sample"
    return f"{span_of(low, high, core.unit)}, by {fields}{source}"


def time_range(records: Iterable[Any], paths: Sequence[Path], unit: str) -> tuple[float, float] | None:
    """The first and the last time that these fields of the records say."""
    times = [
        time
        for record in records
        for path in paths
        if unit != NUMBER and (time := time_of(value_at(record, path), unit)) is not None
    ]
    return (min(times), max(times)) if times else None


def span_of(low: float, high: float, unit: str = AUTO) -> str:
    """From one time to another one, or from number to number."""
    text = number_text if unit == NUMBER else _moment
    return f"{text(low)} to {text(high)}"


def _moment(time: float) -> str:
    """A time to the second."""
    return as_text(time if math.isinf(time) else round(time / 10**9) * 10**9).replace("T", " ")


def known_of(manager: IndexManager) -> Known | None:
    """What the indexes say as they are; None if the log must be read first."""
    if not is_soon_known(manager):
        return None
    try:
        return manager.look(lambda: _known(manager))
    except (JitdbError, OSError):
        return None


def is_soon_known(manager: IndexManager) -> bool:
    """Whether the indexes are known to fit the log without reading it: no other program changed the file since."""
    if not manager.is_unknown():
        return True
    if manager.build_lock.status.state != "idle":
        return False
    from jitdb.engine.catalog.log_content import names_content

    return names_content(manager.log, manager.folder if manager.log.identity_is_stored else None)


def _known(manager: IndexManager) -> Known:
    catalog, records = manager.catalog, manager.records
    places, deleted = catalog.get(OFFSETS), catalog.get(manager.deleted_spec)
    records.note_deletions()
    seqs = min(places.end_seq, deleted.end_seq)
    gone = int(records.deleted.range_cardinality(0, seqs))
    column = catalog.get(manager.core.column("timestamp"))
    ranges = [number_range(segment) for segment in column.segments]
    low, high = (
        min((each[0] for each in ranges), default=math.inf),
        max((each[1] for each in ranges), default=-math.inf),
    )
    many = places.end_seq >= _ZONES * ZONE and math.isfinite(high - low) and high > low
    times = _bins(column.segments, low, high) if many else None
    return Known(seqs - gone, gone, min(places.reached, deleted.reached), low, high, times, manager.core.unit != NUMBER)


def _bins(segments: Sequence[Any], low: float, high: float) -> Spark:
    """About how many records fall into each bin of time, from zones only: a zone's records count as evenly spread."""
    import numpy as np

    edges = np.linspace(low, high, _BINS + 1)
    total = np.zeros(_BINS + 1)
    for segment in segments:
        least, most = load_extremes(segment)
        weights = np.full(len(most), ZONE)
        weights[-1] = segment.end_seq - segment.first_seq - ZONE * (len(most) - 1)
        # Where a record has no time, nothing is said of the earliest: zones mostly begin where the one before ends.
        before = np.minimum(np.append(low, most[:-1]), most)
        least = np.where(np.isfinite(least), least, before)
        there = np.isfinite(least) & np.isfinite(most)
        least, most, weights = least[there], most[there], weights[there]
        wide = np.maximum(most - least, (high - low) / _BINS / 100)
        for at, edge in enumerate(edges):  # how much of the zones lies before it
            total[at] += (np.clip((edge - least) / wide, 0, 1) * weights).sum()
    return Spark(np.diff(total).tolist())


# --- the indexes -----------------------------------------------------------------------------------------------------

# What each form of index answers.
USES: Final = {
    "bitmaps": "==, in, absent",
    "prefixes": "starts_with, equal with the option prefix",
    "prefix map": "equal with the options prefix and use_map",
    "numbers": "<, <=, >, >=",
    "times": "<, <=, >, >= as a time, and the order",
    "dictionary": "counting by value, text, sorting",
    "offsets": "where each record lies",
    "set": "a set of records",
    "grams": "which parts of the log may hold a text",
}

# The form, as above, of an index that a question needs; its values decide what it becomes.
FORMS: Final = {
    "auto": "bitmaps", "bitmap": "bitmaps", "prefix": "prefixes", "prefix_map": "prefix map", "column": "numbers",
    "time": "times", "dictionary": "dictionary", "offsets": "offsets", "predicate": "set", "text": "set",
    "grams": "grams", "deleted": "set",
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
    rows = [IndexInfo(*_row(path, head, log, last).values()) for path, head in index_files(osfile.fs, FilePath(folder))]
    return Indexes(tuple(sorted(rows, key=lambda row: (row.name, row.file))), str(folder))


def indexes_in_memory(opened: Iterable[Index], end: int) -> Indexes:
    """The indexes that a database keeps in memory, of a log that ends at byte `end`."""
    rows = []
    for index in opened:
        if index.segments:
            behind = max(0, end - index.reached)
            state = ("stale", size_in_words(behind)) if behind else ("fresh", "")
            spec = index.spec
            rows.append(IndexInfo(spec.title, spec.file_name(), form_of(index), index.end_seq, index.size, *state))
    return Indexes(tuple(sorted(rows, key=lambda row: row.name)), "")


def form_of(index: Index) -> str:
    """Its key in USES."""
    if index.spec.form == "time":
        return "times"
    return LAYOUTS[index.kind].name if index.kind else index.spec.form


def _row(path: FilePath, head: Head | None, log: LogSource, last: LastRecords) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": path.name, "file": path.name, "form": "?", "records": 0,
        "bytes": _file_size(path) + _file_size(path.with_suffix(CODES_SUFFIX)), "state": "damaged", "reason": "",
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
            "bytes": row["bytes"] + sum(each.body_size for each in index.segments if is_apart(each)),
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


def _file_size(path: FilePath) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0  # it was dropped just now


def _stale(reason: str) -> dict[str, str]:
    return {"state": "stale", "reason": reason}
