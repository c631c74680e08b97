"""The records of some runs of a log, some MiB at a time: read, verified, walked, and numbered."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jitdb.engine.damage import leads_out
from jitdb.errors import DamageWarning, LogCorrupt
from jitdb.log.blocks.crc import Counts, Room, walk_verified
from jitdb.log.blocks.crc_arithmetic import UNKNOWN
from jitdb.log.blocks.layout import header_size
from jitdb.log.codecs.fields.constants import DELETED
from jitdb.spark_ext.errors import CopyDiffers
from jitdb.spark_ext.reading.parts import Part, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.spark_ext.range_source import SharedFile

PIECE: Final = 4 << 20  # bytes read at a time: whole blocks, which stay in the last cache


class Piece(NamedTuple):
    """Records of one piece, n of them, live and deleted.

    offsets, seqs:   int64, where each begins in the log, and its ordinal (that in its run where the first is unknown)
    starts, lengths: int64, its bytes in `buffer`, which the next piece overwrites
    states:          uint8, LIVE or DELETED
    """

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    seqs: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    states: NDArray[np.uint8]


class _Span(NamedTuple):
    """Blocks of a run that are read at once."""

    run: Run
    block: int
    blocks: int
    first: int  # number of its first block among all of the part


class Reader:
    """Reads the runs of one part."""

    def __init__(self, part: Part, source: SharedFile) -> None:
        self._part = part
        self._source = source
        self._size = part.shape.block_size
        self._header = header_size(self._size)
        blocks = min(max(PIECE // self._size, 1), sum(map(self._blocks, part.runs)))
        room = blocks * self._size // (self._header + 1) + 1
        self._most = blocks
        self._buffer = np.empty(blocks * self._size, np.uint8)
        self._room = Room(
            np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8),
            np.empty(blocks, np.int64), np.empty(blocks, np.int64),
        )  # fmt: skip
        self._next_seq = 0
        self._told: set[int] = set()  # damaged blocks that are left out

    def pieces(self) -> Iterator[Piece]:
        """All records that begin in the runs. Raises LogCorrupt, CopyDiffers, OSError."""
        spans: list[_Span] = []
        held = 0
        for span in self._spans():
            spans.append(span)
            held += span.blocks
            if held == self._most:
                yield self._piece(spans)
                spans, held = [], 0
        if spans:
            yield self._piece(spans)

    def _blocks(self, run: Run) -> int:
        return -(-run.stop // self._size) - run.start // self._size

    def _spans(self) -> Iterator[_Span]:
        """The runs, cut so that they fill one piece after the other."""
        first, free = 0, self._most
        for run in self._part.runs:
            block, left = run.start // self._size, self._blocks(run)
            while left:
                count = min(left, free)
                yield _Span(run, block, count, first)
                block, left, first, free = block + count, left - count, first + count, free - count
                free = free or self._most

    def _piece(self, spans: Sequence[_Span]) -> Piece:
        size = self._read(spans)
        counts = self._walk(spans, size)
        room, records = self._room, counts.records
        starts, lengths, states = room.starts[:records], room.lengths[:records], room.states[:records]
        offsets = np.empty(counts.records, np.int64)
        seqs = np.empty(counts.records, np.int64)
        kept = np.ones(counts.records, np.bool_)
        at = 0
        for span in spans:
            low, high = starts.searchsorted([at * self._size, (at + span.blocks) * self._size]).tolist()
            offsets[low:high] = starts[low:high] + ((span.block - at) * self._size - self._header)
            self._number(span, offsets[low:high], seqs[low:high], kept[low:high])
            self._check_count(span, kept[low:high])
            at += span.blocks
        if kept.all():
            return Piece(self._buffer, offsets, seqs, starts, lengths, states)
        return Piece(self._buffer, offsets[kept], seqs[kept], starts[kept], lengths[kept], states[kept])

    def _number(
        self, span: _Span, offsets: NDArray[np.int64], seqs: NDArray[np.int64], kept: NDArray[np.bool_]
    ) -> None:
        """Give the records of a span their seqs; those before or behind the run are not kept."""
        run = span.run
        first, stop = offsets.searchsorted([run.start, run.stop]).tolist()
        if span.block == run.start // self._size:
            self._next_seq = max(run.first_seq, 0)
        seqs[:] = np.arange(-first, len(seqs) - first) + self._next_seq
        kept[:first] = False
        kept[stop:] = False
        self._next_seq += stop - first

    def _check_count(self, span: _Span, kept: NDArray[np.bool_]) -> None:
        """Where a run ends, it held as many records as the driver says: else a length in it is not what it was."""
        run, size = span.run, self._size
        first, last = run.start // size, (run.stop - 1) // size
        if min(run.first_seq, run.stop_seq) < 0 or self._next_seq == run.stop_seq or span.block + span.blocks <= last:
            return
        if first != last or first not in self._told:  # of a block that is left out there is nothing to say
            where = f"block {first} is" if first == last else f"of blocks {first} to {last} one is"
            self._complain(
                LogCorrupt(
                    f"{where} damaged, or was repaired: expected {run.stop_seq - run.first_seq:,} "
                    f"records, which were indexed, got {self._next_seq - run.first_seq:,}",
                    path=self._part.shape.path,
                    offset=run.start,
                    block=first,
                    expected=run.stop_seq - run.first_seq,
                    got=self._next_seq - run.first_seq,
                    remedy="see verify(), or read with indexes=none",
                )
            )
            kept[:] = False

    def _read(self, spans: Sequence[_Span]) -> int:
        at = size = 0
        for span in spans:
            start = span.block * self._size
            stop = min(start + span.blocks * self._size, self._part.fingerprint.end)
            got = self._source.read_blocks(start, stop, self._buffer[at : at + stop - start])
            if got < stop - start:
                raise CopyDiffers(
                    f"it ends at byte {start + got:,} here, where {stop:,} bytes were read before: it "
                    "was truncated, or this is an old copy",
                    path=self._part.shape.path,
                )
            size = at + got
            at += span.blocks * self._size
        return size

    # --- damage ------------------------------------------------------------------------------------------------------

    def _walk(self, spans: Sequence[_Span], size: int) -> Counts:
        sums = self._sums(spans)
        counts = walk_verified(self._buffer, size, self._size, self._header, sums, self._room)
        if counts.wrong:
            wrong = self._room.wrong[: counts.wrong].tolist()
            lost = [number for number in wrong if not self._mended(spans, number, sums)]
            counts = walk_verified(self._buffer, size, self._size, self._header, sums, self._room)
            for number in lost:
                low, high = self._room.starts[: counts.records].searchsorted(
                    [number * self._size, (number + 1) * self._size]
                )
                self._room.states[low:high] = DELETED
        if counts.faults:
            position = int(self._room.faults[0])
            block = self._block(spans, position // self._size)
            offset = block * self._size + position % self._size
            self._complain(leads_out(self._part.shape.path, offset, block))
        return counts

    def _sums(self, spans: Sequence[_Span]) -> NDArray[np.int64]:
        known = self._part.sums
        if known is None:
            return np.full(sum(span.blocks for span in spans), UNKNOWN, np.int64)
        return np.concatenate([known[span.first : span.first + span.blocks] for span in spans])

    def _mended(self, spans: Sequence[_Span], number: int, sums: NDArray[np.int64]) -> bool:
        """Look again at a block that does not have its checksum. False where it is to be left out."""
        data, fault = self._part.second_look(self._source, self._block(spans, number))
        sums[number] = UNKNOWN
        if fault is not None:
            self._complain(fault)
            return False
        begin = number * self._size
        self._buffer[begin : begin + len(data)] = np.frombuffer(data, np.uint8)
        return True

    def _block(self, spans: Sequence[_Span], number: int) -> int:
        """Which block of the log is this one of the piece."""
        for span in spans:
            if number < span.blocks:
                return span.block + number
            number -= span.blocks
        raise IndexError(number)

    def _complain(self, fault: LogCorrupt) -> None:
        if not self._part.skip_corrupt:
            raise fault
        if fault.block is not None:
            self._told.add(fault.block)
        text = f"{fault.reason}. Its records are left out"
        warnings.warn(DamageWarning(text, [fault], path=fault.path, remedy=fault.remedy), stacklevel=2)
