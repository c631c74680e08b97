"""The records within ranges of levels, numbers and times, by fresh indexes and without numpy (glance.py).

Of a field with few values, or numbers, the code of each record is looked at. A log mostly grows in the order of its
time: of most zones of the column of times all records are within a range, or none, and few are looked at one by one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyroaring import BitMap

from jitdb.common.paths import before_cast
from jitdb.common.times import AUTO, zone_behind
from jitdb.common.values import value_at, value_of_key
from jitdb.engine.roles import first_of, found_time, is_usual
from jitdb.indexes.kinds.bitmaps import ABSENT_KEY, distinct_keys, records_with
from jitdb.indexes.kinds.columns import (
    ALL_WHOLE,
    HAS_RESTS,
    are_few,
    number_range,
    records_where,
    seen_by,
    whole_numbers,
    zone_extremes,
)
from jitdb.indexes.kinds.kernels import seen
from jitdb.indexes.kinds.roaring import bitmap_of_range, union_of
from jitdb.indexes.segment import BITMAPS, DICTIONARY, NUMBERS, ZONE
from jitdb.indexes.spec import IndexSpec, values_spec
from jitdb.operators.nodes.levels import CompareLevel, rank_of_name

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.declared_time import CoreFields
    from jitdb.indexes.files.index import Index
    from jitdb.indexes.kinds.numbers import Comparison
    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.operation import Operation

_UNITS: Final = seen.SECONDS | seen.MILLISECONDS | seen.MICROSECONDS | seen.NANOSECONDS
_FAR: Final = 9.2e18  # nanoseconds: beyond, times are doubles
_REST: Final = 1 << 10  # nanoseconds, at most, from a double to the time that it stands for
MOST: Final = 128  # zones whose records are looked at in less time than the engine takes to load
NEVER: Final = float("-inf")
_MANY: Final = 1 << 22  # records whose codes are looked at in less time than the engine takes to load
_RELATIONS: Final = {"gt": "gt", "gte": "ge", "lt": "lt", "lte": "le"}  # those of Python's operator


class NotPlain(Exception):
    """It is for the engine to say."""


class Zone(NamedTuple):
    """Some records of a column of times.

    low, high: bounds of their times; -inf where a record has none, and where none has one
    """

    segment: Segment
    begin: int  # where they stand in the segment
    end: int
    low: float
    high: float

    @property
    def seqs(self) -> tuple[int, int]:
        """The first of its records, and the one behind the last."""
        return self.segment.first_seq + self.begin, self.segment.first_seq + self.end

    def times(self) -> list[int | None]:
        """Raises IndexDamaged."""
        return whole_numbers(self.segment, self.begin, self.end)


def zones_of(index: Index) -> list[Zone]:
    """Those of a column of times that is as it mostly is. Raises NotPlain, IndexDamaged."""
    ranges = [number_range(segment) for segment in index.segments]
    flags = reduce(or_, (flags for _, _, flags in ranges), 0)
    if index.kind != NUMBERS or flags & seen.OTHERS or (flags & _UNITS).bit_count() > 1:
        raise NotPlain  # the last two are told
    if not all(flags & ALL_WHOLE and -_FAR < low <= high < _FAR for low, high, flags in ranges):
        raise NotPlain
    rest = _REST if flags & HAS_RESTS else 0
    return [
        Zone(segment, at * ZONE, min(segment.count, (at + 1) * ZONE), low - rest, high + rest)
        for segment in index.segments
        for at, (low, high) in enumerate(zone_extremes(segment))
    ]


def spec_of(log: LogSource, leaf: Operation, is_there: Callable[[IndexSpec], bool]) -> IndexSpec:
    """The index that answers a leaf: of a level by how bad it is, the one that is there. Raises NotPlain."""
    if leaf.bitmap is not None:
        return leaf.bitmap[0]
    if isinstance(leaf, CompareLevel):
        auto = IndexSpec("auto", (leaf.index,))
        return auto if is_there(auto) else values_spec(leaf.index)
    if leaf.compared is None or any(before_cast(path) != path or is_usual(path) for path in leaf.paths):
        raise NotPlain
    need = leaf.need(_core(log))
    assert need is not None
    return need.spec


def _core(log: LogSource) -> CoreFields:
    from jitdb.engine.declared_time import CoreFields

    def found() -> tuple[Path, ...] | None:
        if not log.framing.is_plain:  # other records are read by kernels, over numpy
            raise NotPlain
        return found_time(log)

    return CoreFields(None, (), AUTO, found)


def records_of(log: LogSource, leaf: Operation, index: Index) -> BitMap:
    """The records that a leaf is true of. Raises IndexDamaged; NotPlain where a note may be due."""
    if leaf.bitmap is not None:
        return records_with(index.segments, leaf.bitmap[1])
    return leaf.answer(_Asked(log, index))  # type: ignore[arg-type] # as much of it as these leaves ask


class _Asked:
    """An index that is asked for records within ranges: Answering of operators, as far as such leaves need it."""

    def __init__(self, log: LogSource, index: Index) -> None:
        self._log, self._index = log, index

    @property
    def core(self) -> CoreFields:
        return _core(self._log)

    def with_text(self, leaf: CompareLevel) -> BitMap:
        """Where all levels are names that are known: of others a note is due."""
        index = self._index

        def holds(value: Any) -> bool:
            if not isinstance(value, str) or rank_of_name(value) is None:
                raise NotPlain
            return leaf.holds(value)

        if index.kind == BITMAPS:
            keys = distinct_keys(index.segments) - {ABSENT_KEY}
            return union_of(records_with(index.segments, key) for key in keys if holds(value_of_key(key)))
        return self._by_codes(DICTIONARY, holds)

    def in_column(self, *bounds: tuple[Comparison, int | float]) -> BitMap:
        relations = [(getattr(operator, _RELATIONS[op]), bound, op[0] == "g") for op, bound in bounds]

        def holds(number: Any) -> bool:
            return all(relation(number, bound) for relation, bound, _ in relations)

        if self._index.spec.form == "column":
            if any(seen_by(segment) & (seen.OTHERS | seen.TEXTS) for segment in self._index.segments):
                raise NotPlain
            return self._by_codes(NUMBERS, holds)
        found, mixed = BitMap(), list[Zone]()
        for zone in zones_of(self._times()):
            ends = [(zone.low, zone.high) if grows else (zone.high, zone.low) for *_, grows in relations]
            if all(relation(worst, bound) for (relation, bound, _), (worst, _) in zip(relations, ends, strict=True)):
                found |= bitmap_of_range(*zone.seqs)
            elif all(relation(best, bound) for (relation, bound, _), (_, best) in zip(relations, ends, strict=True)):
                mixed.append(zone)
        if len(mixed) > MOST:
            raise NotPlain
        for zone in mixed:
            first, _ = zone.seqs
            found |= BitMap([first + at for at, time in enumerate(zone.times()) if time is not None and holds(time)])
        return found

    def _by_codes(self, kind: int, holds: Callable[[Any], bool]) -> BitMap:
        if self._index.kind != kind or not all(map(are_few, self._index.segments)):
            raise NotPlain
        if sum(segment.count for segment in self._index.segments) > _MANY:
            raise NotPlain
        return union_of(records_where(segment, holds) for segment in self._index.segments)

    def _times(self) -> Index:
        """The column of times, where all records have one and all say their zone: else a note is due."""
        log, index = self._log, self._index
        if log.time_doubt or any(low == NEVER for each in index.segments for low, _ in zone_extremes(each)):
            raise NotPlain
        if any(seen_by(segment) & seen.ZONELESS for segment in index.segments):
            raise NotPlain
        values = (value_at(record, path) for record in first_of(log) for path in index.spec.paths)
        if any(isinstance(value, str) and zone_behind(value) for value in values):
            raise NotPlain
        return index
