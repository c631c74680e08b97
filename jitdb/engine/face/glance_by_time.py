"""What fresh indexes answer without numpy (glance.py) by the times of records: a timeline, and the first records.

A log mostly grows in the order of its time. So most zones of the column of times lie in one step of a timeline, and few
can hold the newest records, by the extremes of each; only of the others are times looked at. Where these are many, the
engine is faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from heapq import nlargest
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from jitdb.common.times import AUTO
from jitdb.engine.face.glance import matching
from jitdb.engine.face.glance_ranges import MOST, NEVER, NotPlain, Zone, zones_of
from jitdb.engine.roles import found_time
from jitdb.errors import IndexDamaged, LogError
from jitdb.indexes.kinds.columns import SOME, number_range
from jitdb.indexes.kinds.offsets import offset_of
from jitdb.indexes.kinds.roaring import bitmap_of_range
from jitdb.indexes.spec import IndexSpec

if TYPE_CHECKING:
    from typing import Any

    from jitdb.indexes.files.index import Index
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.operation import Operation
    from jitdb.operators.summaries.arithmetic.calendar import Step
    from jitdb.operators.summaries.timelines import Timeline, TimelineAsked


def _spec(log: LogSource) -> IndexSpec:
    paths = found_time(log) if log.framing.is_plain else None  # others are read by kernels, over numpy
    if paths is None:
        raise NotPlain
    return IndexSpec("time", paths, name=AUTO)


def _timed_zones(log: LogSource, index: Index, places: Index) -> Sequence[Zone]:
    """The zones of the column. Raises NotPlain where records without a time have one in another field, or where times
    are in doubt, which a note tells; IndexDamaged.
    """
    if log.time_doubt:
        raise NotPlain
    zones = zones_of(index)
    untimed = next((zone for zone in zones if zone.low == NEVER), None)
    if untimed is not None:
        from jitdb.engine.hinting.dialects import in_place_of

        first = untimed.segment.first_seq + untimed.begin
        seqs = [first + place for place, time in enumerate(untimed.times()) if time is None][:SOME]
        raw = log.get_many_raw([offset_of(places.segments, seq) for seq in seqs])
        if in_place_of(index.spec.paths[0], [log.codec.decode(each) for each in raw if each]) is not None:
            raise NotPlain
    return zones


# --- a timeline ------------------------------------------------------------------------------------------------------


def timeline_at_a_glance(log: LogSource, folder: FilePath, asked: TimelineAsked) -> Timeline | None:
    """The timeline of all records in UTC, by no other field; None where that is for the engine to say."""
    from jitdb.operators.summaries.arithmetic.calendar import MOST, Extent, Window
    from jitdb.operators.summaries.groups import ALL

    with suppress(IndexDamaged, LogError, OSError, NotPlain):
        found = matching(log, folder, None, (_spec(log),))
        (index,), total = found.fields, len(found.records)
        zones = _timed_zones(log, index, found.places)
        if total != index.end_seq:
            return None
        extents = [Extent(*number_range(segment)[:2]) for segment in index.segments]
        settled = asked.settled([(extent, ALL) for extent in extents], Window())
        assert settled.step is not None
        counts = _counted(zones, settled.step)
        if counts and max(counts) - min(counts) < MOST:
            each = {number: (count, ()) for number, count in counts.items()}
            return asked.line(settled, each, total, total - sum(counts.values()))
    return None


def _counted(zones: Sequence[Zone], step: Step) -> dict[int, int]:
    """How many records are in each step. Raises NotPlain, IndexDamaged."""
    counts: dict[int, int] = {}
    mixed = []
    for zone in zones:
        number = None if zone.low == NEVER else step.number(zone.low)
        if number is not None and zone.high < step.begin(number + 1):
            counts[number] = counts.get(number, 0) + zone.end - zone.begin
        else:
            mixed.append(zone)
    if len(mixed) > MOST:
        raise NotPlain
    for zone in mixed:
        for number, count in _runs(sorted(time for time in zone.times() if time is not None), step):
            counts[number] = counts.get(number, 0) + count
    return counts


def _runs(times: Sequence[int], step: Step) -> Iterator[tuple[int, int]]:
    """The steps of times in order, and how many of these are in each."""
    from bisect import bisect_left

    begin = 0
    while begin < len(times):
        number = step.number(times[begin])
        end = bisect_left(times, step.begin(number + 1), begin)
        yield number, end - begin
        begin = end


# --- the first records -----------------------------------------------------------------------------------------------


def first_at_a_glance(
    log: LogSource, folder: FilePath, operation: Operation | None, limit: int, descending: bool
) -> list[Any] | None:
    """The first records that match, in order of time; None where that is for the engine to say."""
    with suppress(IndexDamaged, LogError, OSError, NotPlain):
        found = matching(log, folder, operation, (_spec(log),))
        zones, sign = _timed_zones(log, found.fields[0], found.places), 1 if descending else -1
        ahead = sorted(((zone.high if descending else -zone.low, zone) for zone in zones), key=_bound, reverse=True)
        best: list[tuple[float, int]] = []
        looked_at = 0
        for bound, zone in ahead:
            if len(best) == limit and bound < best[-1][0]:
                break
            first = zone.segment.first_seq
            members = found.records & bitmap_of_range(first + zone.begin, first + zone.end)
            if not members:
                continue
            looked_at += 1
            if looked_at > MOST:
                return None
            times = zone.times()
            keys = ((_time(times[seq - first - zone.begin], sign), sign * seq) for seq in members)
            best = nlargest(limit, [*best, *keys])
        if not best or all(abs(time) == float("inf") for time, _ in best):
            return None  # that they have no time is told
        offsets = [offset_of(found.places.segments, sign * seq) for _, seq in best]
        records = log.get_many_raw(offsets)
        if None not in records:
            return [log.codec.decode(record) for record in records if record is not None]
    return None


def _bound(pair: tuple[float, Zone]) -> float:
    return pair[0]


def _time(time: int | None, sign: int) -> float:
    return sign * (NEVER if time is None else time)
