"""All lines of a file, in order: streamed, counted, or those that are no records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jitdb.log.codecs.fields.constants import LIVE
from jitdb.log.codecs.fields.located import RecordBatch
from jitdb.log.lines.line_walker import LineWalker
from jitdb.log.record import Record, Stats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.source import LogSource

_PIECE: Final = 4 << 20  # bytes read at a time
_LINES: Final = 1 << 16  # lines looked at a time


class Lines(NamedTuple):
    """Some lines. `live`: numbers of those that are records; `malformed`: of those that are neither that nor blank."""

    first_seq: int
    batch: RecordBatch
    live: NDArray[np.int64]
    malformed: NDArray[np.int64]


def lines_of(log: LogSource, stop: int) -> Iterator[Lines]:
    """The lines that begin before this byte. Raises LogSuperseded, LogError."""
    end = log.durable_end
    walker, locator = LineWalker(log, _PIECE, end), log.codec.locator([])
    seq = 0
    for begin in range(0, min(stop, end), _PIECE):
        count = walker.walk(walker.read(begin, 0), np.empty(0, np.int64)).records
        room = walker.room
        count = int(room.starts[:count].searchsorted(stop - begin))
        for low in range(0, count, _LINES):
            high = min(low + _LINES, count)
            starts, states = room.starts[low:high], room.states[low:high]
            batch = RecordBatch(walker.buffer, starts, room.lengths[low:high], states, starts + begin)
            malformed = locator.invalid(batch)
            live = np.setdiff1d(np.flatnonzero(states == LIVE), malformed, assume_unique=True)
            yield Lines(seq, batch, live, malformed)
            seq += high - low


def stream(log: LogSource, stop: int, raw: bool) -> Iterator[Record]:
    """See LineLog.stream."""
    decode = log.codec.decode
    for part in lines_of(log, stop):
        assert part.batch.offsets is not None
        offsets = part.batch.offsets[part.live].tolist()
        for number, offset in zip(part.live.tolist(), offsets, strict=True):
            line = part.batch.record(number)
            yield Record(offset, part.first_seq + number, line if raw else decode(line))


def measure(log: LogSource) -> Stats:
    """See LineLog.stats: lines that are no records count as deleted ones."""
    end, live, gone, gone_bytes = log.durable_end, 0, 0, 0
    for part in lines_of(log, end):
        live += len(part.live)
        gone += len(part.batch) - len(part.live)
        lengths = part.batch.lengths + 1
        gone_bytes += int(lengths.sum() - lengths[part.live].sum())
    return Stats(end, gone_bytes, live, gone)


def malformed(log: LogSource) -> Iterator[int]:
    """See LineLog.malformed."""
    for part in lines_of(log, log.durable_end):
        yield from (part.malformed + (part.first_seq + 1)).tolist()
