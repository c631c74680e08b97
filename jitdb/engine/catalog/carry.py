"""Taking indexes over into a log that was compacted since: what remap.py needs to know of the log, and its checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jitdb.errors import IndexForeign
from jitdb.indexes.kinds.offsets import load_offsets
from jitdb.indexes.kinds.remap import Renumbering, remap, remap_offsets
from jitdb.indexes.segment import SPAN, Run, Segment
from jitdb.indexes.spec import OFFSETS
from jitdb.log.blocks.block_format import header_reader, header_size

if TYPE_CHECKING:
    from jitdb.engine.catalog.copies import LastRecords
    from jitdb.indexes.files.index import Index
    from jitdb.log.sidecar.removals import Removals
    from jitdb.log.source import LogSource


def carried(log: LogSource, last: LastRecords, offsets: Index, old: Index) -> list[Segment] | None:
    """The segments of `old`, an index of an earlier generation, in the log as it is now.

    `offsets` is the index of offsets of the present generation; what it does not cover is left out. None where the
    index must be built: the compactions are not known any more, or do not speak of what was indexed. Raises
    IndexDamaged; IndexForeign for that of another copy of the log.
    """
    # The log may be compacted once more just now: that is of the generation behind the one that these are taken into.
    removals = [each for each in log.removals(old.log.generation) or () if each.generation <= offsets.log.generation]
    if not removals or not _speaks_of(removals[0], old, log.block_size):
        return None
    renumbering = Renumbering(removals)
    if old.spec == OFFSETS:
        made = remap_offsets(old.segments, renumbering, removals[0], log.block_size)
        if not made or made[-1].end_offset > log.durable_end:
            return None
        if _end_of(log, int(load_offsets(made[-1])[-1])) != made[-1].end_offset:
            return None
        _check(log, last, old, made, renumbering)
        return made
    _check(log, last, old, offsets.segments, renumbering)
    end = min(renumbering.new(old.end_seq), offsets.end_seq)
    return remap(old.segments, renumbering, _runs(log, offsets.segments, end), old.spec)


def _speaks_of(removals: Removals, old: Index, block_size: int) -> bool:
    """Whether the index counted the records as the compaction did."""
    filled = np.flatnonzero(removals.ends)
    end = int(filled[-1]) * block_size + int(removals.ends[filled[-1]]) if len(filled) else 0
    return old.end_seq <= removals.records and (old.end_seq == removals.records) == (old.end_offset == end)


def _check(log: LogSource, last: LastRecords, old: Index, offsets: Sequence[Segment], renumbering: Renumbering) -> None:
    """As LastRecords.check, of an index of an earlier generation; `offsets` are the segments of the present one's."""
    known = offsets[-1].end_seq if offsets else 0
    for segment in reversed(old.segments):
        seq = int(renumbering.of_range(segment.end_seq - 1, segment.end_seq)[0])
        if segment.last_crc and 0 <= seq < known:
            if not last.fits(segment.last_crc, _end_before(log, offsets, seq + 1)):
                raise IndexForeign("it is of another copy of the log", path=old.name)
            return


def _end_of(log: LogSource, offset: int) -> int:
    begin = offset - offset % log.block_size
    block = np.empty(log.block_size, np.uint8)
    log.read_blocks(begin, begin + log.block_size, block)
    (length,) = header_reader(log.block_size)(block, offset - begin)
    return offset + header_size(log.block_size) + int(length)


def _runs(log: LogSource, segments: list[Segment], end_seq: int) -> list[Run]:
    """A run a span, up to this record."""
    runs: list[Run] = []
    first_offset = 0
    for first in range(0, end_seq, SPAN):
        stop = min(first + SPAN, end_seq)
        end_offset = _end_before(log, segments, stop)
        runs.append((first, stop - first, first_offset, end_offset))
        first_offset = end_offset
    return runs


def _end_before(log: LogSource, segments: Sequence[Segment], stop: int) -> int:
    """Where the record before this one ends."""
    (segment,) = (segment for segment in segments if segment.first_seq < stop <= segment.end_seq)
    if stop == segment.end_seq:
        return segment.end_offset
    offset, following = load_offsets(segment)[stop - 1 - segment.first_seq :][:2].tolist()
    return following if following // log.block_size == offset // log.block_size else _end_of(log, offset)
