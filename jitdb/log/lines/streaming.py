"""Many lines of a file at once: all in their order, streamed or counted, or some by their offsets, in one buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from jitdb.errors import DecodeError
from jitdb.log.blocks.framing import Blocks
from jitdb.log.codecs.fields.constants import LIVE, SLACK
from jitdb.log.codecs.fields.located import RecordBatch, Scratch
from jitdb.log.lines.form import LONGEST, MARK, object_in, parts_in
from jitdb.log.lines.line_kernels import walk_lines
from jitdb.log.lines.line_walkers import LineWalker
from jitdb.log.reading.many import CLOSE, clusters
from jitdb.log.source import Record, Stats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.base import Codec
    from jitdb.log.lines.framing import LineFraming

    Ints = NDArray[np.int64]

_PIECE: Final = 4 << 20  # bytes read at a time
_LINES: Final = 1 << 16  # lines looked at a time
_NEAR: Final = 1 << 15  # bytes between two lines that are read at once
_AHEAD: Final = 1 << 14  # bytes read for the last one of a cluster, at first
_NEWLINE: Final = ord("\n")
_TRIED: Final = 1000  # malformed lines that are looked at for JSON behind text


class LineSource(Blocks, Protocol):
    """What is read here of a log of lines."""

    @property
    def codec(self) -> Codec: ...

    @property
    def framing(self) -> LineFraming: ...


class Lines(NamedTuple):
    """Some lines.

    live:      numbers of those that are records
    malformed: of those that are none, but should be
    data:      all their bytes, but for the last one
    begin:     where these begin in the log
    ends_line: whether the last one is a newline
    """

    first_seq: int
    batch: RecordBatch
    live: NDArray[np.int64]
    malformed: NDArray[np.int64]
    data: NDArray[np.uint8]
    begin: int
    ends_line: bool

    def count_text(self) -> int:
        """How many are neither records nor malformed nor blank."""
        return int(((self.batch.states != LIVE) & (self.batch.lengths > 0)).sum())


class Counted(NamedTuple):
    """What the lines of a file are.

    stats:       how many are records; the others count as deleted ones
    malformed:   numbers of those that should be some, from 1 on
    text:        how many hold text alone, where that may stand beside JSON
    parts:       how many say that they are parts of longer ones; they are text, or malformed
    reason:      why the first of them is none
    is_prefixed: some of the first malformed ones would be records if text might stand before JSON
    """

    stats: Stats
    malformed: list[int]
    text: int
    parts: int
    reason: str
    is_prefixed: bool


def lines_of(log: LineSource, stop: int) -> Iterator[Lines]:
    """The lines whose records begin before this byte. Raises LogSuperseded, LogError."""
    end = log.durable_end
    walker, locator = log.framing.walker(log, _PIECE, end), log.codec.locator([])
    assert isinstance(walker, LineWalker)
    seq = 0
    for begin in range(0, min(stop, end), _PIECE):
        for walked in walker.walks(begin, 0):
            room, first = walker.room, walker.first
            count = int(room.starts[: walked.records].searchsorted(stop - begin))
            for low in range(0, count, _LINES):
                high = min(low + _LINES, count)
                batch = walker.batch(low, high, begin)
                malformed = locator.invalid(batch)
                live = np.setdiff1d(np.flatnonzero(batch.states == LIVE), malformed, assume_unique=True)
                last = min(int(walker.ends(high - 1, high)[0]) - 1, walker.end)
                ends_line = last == walker.end or bool(walker.buffer[last] == _NEWLINE)
                yield Lines(seq, batch, live, malformed, walker.buffer[first:last], begin + first, ends_line)
                seq, first = seq + high - low, last + 1


def stream(log: LineSource, stop: int, raw: bool) -> Iterator[Record]:
    """See LineLog.stream."""
    decode = log.codec.decode
    for part in lines_of(log, stop):
        assert part.batch.offsets is not None
        offsets = part.batch.offsets[part.live].tolist()
        for number, offset in zip(part.live.tolist(), offsets, strict=True):
            line = part.batch.record(number)
            yield Record(offset, part.first_seq + number, line if raw else decode(line))


def counted(log: LineSource) -> Counted:
    """See LineLog.counted."""
    numbers, text, parts, reason, is_prefixed, lines = list[int](), 0, 0, "", False, 0
    end, live, gone, gone_bytes = log.durable_end, 0, 0, 0
    for part in lines_of(log, end):
        live += len(part.live)
        gone += len(part.batch) - len(part.live)
        lengths = part.batch.lengths + 1
        gone_bytes += int(lengths.sum() - lengths[part.live].sum())
        fresh = part.malformed[: max(0, _TRIED - len(numbers))].tolist()
        if fresh and not numbers:
            reason = _reason(log, part.batch.record(fresh[0]))
        if log.framing.form.has_batches:
            assert part.batch.offsets is not None
            newlines = np.flatnonzero(part.data == _NEWLINE)
            places = part.batch.offsets[part.malformed] - part.begin
            numbers += (lines + 1 + newlines.searchsorted(places)).tolist()
            lines += len(newlines) + int(part.ends_line)
        else:
            numbers += (part.malformed + (part.first_seq + 1)).tolist()
        if log.framing.form.allow_prefix:
            text += part.count_text()
            parts += parts_in(part.data.tobytes())
        else:
            is_prefixed = is_prefixed or any(_is_prefixed(log, part.batch.record(number)) for number in fresh)
    return Counted(Stats(end, gone_bytes, live, gone), numbers, text, parts, reason, is_prefixed)


def _reason(log: LineSource, line: bytes) -> str:
    """Why the codec cannot read it."""
    row = log.framing.row
    if row is not None and not line:
        return f"it is no line of {row.title}, and no JSON object"
    if not line:
        return "it is cut off, or no JSON" if log.framing.form.is_document else f"it has more than {LONGEST:,} bytes"
    try:
        log.codec.decode(line)
    except DecodeError as error:
        return error.reason
    return ""


def _is_prefixed(log: LineSource, line: bytes) -> bool:
    """Whether it is a record behind text."""
    begin = object_in(line)
    return begin > 0 and log.codec.is_valid(line[begin:])


def lines_at(
    read_into: Callable[[memoryview, int], int], end: int, offsets: Ints, framing: LineFraming, scratch: Scratch
) -> RecordBatch | None:
    """The plain lines at these ascending offsets, of a file of which `end` bytes are lines; blank ones count as
    deleted. None where they lie too far apart, or one is very long: then they are read one by one.

    Raises LookupError of an offset at which none begins; EOFError where the file has become shorter.
    """
    if not 0 <= offsets[0] <= offsets[-1] < end:
        raise LookupError(int(offsets[0] if offsets[0] < 0 else offsets[-1]))
    runs = clusters(offsets, _NEAR)
    if len(runs) * CLOSE > len(offsets):
        return None
    # From the newline before the first one, or the byte order mark.
    begins = [max(int(offsets[start]) - len(MARK), 0) for start, _ in runs]
    stops = [min(int(offsets[stop - 1]) + _AHEAD, end) for _, stop in runs]
    buffer = scratch.room(sum(stops) - sum(begins) + SLACK)
    buffer[-SLACK:] = 0
    starts, lengths = np.empty(len(offsets), np.int64), np.empty(len(offsets), np.int64)
    states = np.empty(len(offsets), np.uint8)
    base = 0
    for (first, last), begin, stop in zip(runs, begins, stops, strict=True):
        size = stop - begin
        if read_into(buffer.data[base : base + size], begin) < size:
            raise EOFError
        at = offsets[first:last] - (begin - base)
        if not _is_begun(buffer[base : int(at[0])], int(offsets[first]), framing):
            raise LookupError(int(offsets[first]))
        room = int(at[-1] - at[0]) + 1  # a line has a byte at least
        found = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8)
        count = walk_lines(buffer, int(at[0]), int(at[-1]), base + size, *found)
        if not count or found[0][count - 1] < at[-1]:
            return None  # the last one goes on
        places = found[0][:count].searchsorted(at)
        wrong = found[0][places] != at
        if wrong.any():
            raise LookupError(int(offsets[first:last][wrong][0]))
        starts[first:last], lengths[first:last], states[first:last] = at, found[1][places], found[2][places]
        base += size
    return RecordBatch(buffer, starts, lengths, states, offsets)


def _is_begun(before: NDArray[np.uint8], offset: int, framing: LineFraming) -> bool:
    """Whether a line begins at this offset, before which these bytes stand."""
    if offset == len(before) and offset == framing.first_line(before.tobytes()):
        return True
    return len(before) > 0 and int(before[-1]) == _NEWLINE
