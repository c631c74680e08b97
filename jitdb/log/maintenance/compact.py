"""Compaction: a copy of the live records takes the log's place.

Whole blocks are copied while the writer goes on, round after round, until little is left. Then appends and deletions
wait, the rest is copied, and the copy takes the log's place (exchange.py). A failure before that leaves the log as it
was. Offsets and seqs change, the identity stays, the generation grows, and `moved-GENERATION` says which records were
removed.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from pyroaring import BitMap64

from jitdb.errors import LogCorrupt, LogWriteFailed, Remedy
from jitdb.log.blocks.block_format import header_size, place_array, round_up, walk_block
from jitdb.log.blocks.checksum import Ints, crc32
from jitdb.log.blocks.scanner import Piece, scan
from jitdb.log.io.osfile import reason
from jitdb.log.maintenance.check_log import codec_of, invalid_records
from jitdb.log.maintenance.exchange import make_next_log, prepare, put_in_place
from jitdb.log.maintenance.report import Compaction
from jitdb.log.opening import swap
from jitdb.log.opening.opened import Opened
from jitdb.log.reading.record_reader import Verifier
from jitdb.log.sidecar import deletions, removals
from jitdb.log.sidecar.checksums import DOUBT, UNPROVEN, Entry
from jitdb.log.sidecar.deletions import Deletion

if TYPE_CHECKING:
    from jitdb.log.opening.opened import Opened
    from jitdb.log.source import Stats
    from jitdb.log.writing.writer import Writer


LITTLE: Final = 8 << 20  # bytes that are copied while the writer waits: some milliseconds
ROUNDS: Final = 8  # of copying while the writer goes on; if it writes faster than we copy, it waits after these

_CUT_SHORT: Final = "a compaction was cut short in its last moment: open the log again"

Progress = Callable[[int, int], object]  # bytes copied, of so many


def compact(writer: Writer, measure: Callable[[], Stats], progress: Progress) -> Compaction:
    """Compact the log of this writer, which `measure` reads. Raises LogCorrupt, LogWriteFailed, LogClosed."""
    writer.flush()
    stats = measure()
    begin = time.perf_counter()
    if not (stats.deleted_records or stats.damaged_records):
        return Compaction(0, stats.records, stats.total_bytes, stats.total_bytes, time.perf_counter() - begin)
    before = writer.durable_end
    copy: Copy | None = None

    def tell(done: int) -> None:
        progress(min(done, before), before)

    try:
        with writer.exclusively() as opened:
            copy = Copy(opened, writer.reader.verifier, writer.exclusively)
        for _ in range(ROUNDS):
            copy.copy(writer.durable_end - writer.durable_end % opened.meta.block_size, tell)
            if writer.durable_end - copy.copied <= LITTLE:
                break
        with writer.exclusively() as opened:
            copy.finish(writer.durable_end, writer.tail_proof, tell)
            writer.reopen(partial(copy.take_place, copy.prepare()), _CUT_SHORT)
    except BaseException as error:
        if copy is not None and not copy.taken:
            with suppress(OSError):  # the next writer removes what is left of it
                copy.discard()
        if isinstance(error, OSError):
            raise LogWriteFailed(
                f"compacting failed ({reason(error)}): the log is as it was, and can be written to", path=opened.path
            ) from error
        raise
    return Compaction(
        len(copy.removed), copy.seq - len(copy.removed), copy.copied, writer.durable_end, time.perf_counter() - begin
    )


class Copy:
    """The unfinished copy, in the file next-log. `exclusively` is the Writer's, for a second look at damage."""

    def __init__(
        self, opened: Opened, verifier: Verifier, exclusively: Callable[[], AbstractContextManager[Opened]]
    ) -> None:
        self._opened, self._verifier = opened, verifier
        self._fs = opened.fs
        self._exclusively = exclusively
        self._size = opened.meta.block_size
        self._header = header_size(self._size)
        self.copied = 0  # bytes of the old log: whole blocks
        self.seq = 0  # records before there
        self.removed = BitMap64()
        self._firsts = array("q")  # per old block: the seq of its first record
        self._ends = array("I")  # per old block: where its records end
        self._end = 0  # of the new log, just past its last record
        self._open = b""  # its last block, as far as it is filled
        self._tail_crc: int | None = None  # of the old log's last block up to its end, where it is known
        self._proven: list[bool] = []  # of the old blocks in hand
        self._doubtful: set[int] = set()  # new blocks with records that nothing proves
        self._new_firsts = array("q")  # per new block, likewise
        self._crcs = array("I")  # of the new blocks that are sealed
        self._journal = opened.deletions.position  # deletions before it are zeros in the file already
        self._late: list[Deletion] = []  # offsets in the new log, whose writer makes these records zeros
        self.taken = False  # from here on the old log may be gone
        self._file = make_next_log(opened)

    def finish(self, end: int, tail_crc: int | None, progress: Callable[[int], object]) -> None:
        """Copy the rest, and find what was deleted meanwhile, while nobody writes. `tail_crc` is Writer.tail_proof."""
        self._tail_crc = tail_crc
        self.copy(end, progress)
        reader = self._opened.deletions
        reader.poll()
        places = map(self._find, reader.between(self._journal, reader.position).tolist())
        self._late = [place for place in places if place is not None]

    def copy(self, stop: int, progress: Callable[[int], object]) -> None:
        """Copy the blocks before `stop`. Raises LogCorrupt for a damaged one: nothing of it may get lost."""
        for piece in scan(self._opened.read_into, self.copied, stop, self._size, sums=self._verifier.sums):
            walked = piece.walked
            self._proven = self._verify(piece)
            if len(walked.faults):
                raise self._broken(self.copied + int(walked.faults[0]))
            self._check(piece)
            self._note(piece)
            live = ~walked.deleted
            self._append(piece.data.data, walked.starts[live], walked.lengths[live])
            self.copied = piece.stop
            progress(self.copied)

    def _note(self, piece: Piece) -> None:
        self.removed.update(array("Q", (np.flatnonzero(piece.walked.deleted) + self.seq).tolist()))
        self._firsts.extend((piece.bounds[:-1] + self.seq).tolist())
        self._ends.extend(piece.ends.tolist())
        self.seq += len(piece.walked.starts)

    def _append(self, data: memoryview, starts: Ints, lengths: Ints) -> None:
        """Put these records behind those that were copied. Runs of records that stay together are copied as one."""
        if not len(starts):
            return
        offsets, breaks, end = place_array(lengths, self._end, self._size)
        first = self._records - len(starts)
        self._new_firsts.extend(first + number for number in ([0] if self._end == 0 else []) + breaks)
        doubtful = ~np.array(self._proven, np.bool_)[starts // self._size]
        self._doubtful.update(np.unique(offsets[doubtful] // self._size).tolist())
        base = self._end - len(self._open)
        piece = bytearray(end - base)
        piece[: len(self._open)] = self._open
        to, origin = offsets - base, starts - self._header
        sizes = lengths + self._header
        together = (np.diff(to) == sizes[:-1]) & (np.diff(origin) == sizes[:-1])
        begins = np.append(0, np.flatnonzero(~together) + 1)
        run_sizes = np.add.reduceat(sizes, begins)
        for target, source, size in zip(to[begins].tolist(), origin[begins].tolist(), run_sizes.tolist(), strict=True):
            piece[target : target + size] = data[source : source + size]
        self._fs.write(self._file.number, memoryview(piece)[len(self._open) :], self._end)
        sealed = (end // self._size - base // self._size) * self._size
        for at in range(0, sealed, self._size):
            self._crcs.append(crc32(piece[at : at + self._size]))
        self._open = bytes(piece[sealed:])
        self._end = end

    @property
    def _records(self) -> int:
        return self.seq - len(self.removed)

    def _verify(self, piece: Piece) -> list[bool]:
        """Whether each block is proven to be what was written. Raises LogCorrupt for a damaged one."""
        found, first = self._opened.recovery, piece.first_block
        unknown = found.damaged and not found.tail.block_crc  # damaged, and nobody knows what it should be
        if unknown and 0 <= (block := (found.tail.end - 1) // self._size) - first < piece.blocks:
            raise self._broken(block * self._size)
        for number in piece.wrong:
            with self._exclusively():  # a record in it may have been on its way to being deleted
                fault = self._verifier.second_look(first + number)[1]
            if fault is not None:
                raise self._broken((first + number) * self._size)
            # A deletion came between, and finish() finds it in the journal: the block as it was read will do.
        proven = [self._verifier.is_proof(first + number) for number in range(piece.blocks)]
        if len(piece.data) % self._size:  # the last one, which is partly filled, has no checksum; its writer knows
            begin = (piece.blocks - 1) * self._size
            proven[-1] = self._tail_crc == crc32(piece.data.data[begin:])
            if self._tail_crc is not None and not proven[-1]:
                raise self._broken(piece.begin + begin)
        return proven

    def _check(self, piece: Piece) -> None:
        """Check chain and records of blocks without proof. Raises LogCorrupt."""
        if all(self._proven):
            return
        walked = piece.walked
        refused = invalid_records(codec_of(self._opened), piece.data, walked, compiled=piece.compiled)
        for start in walked.starts[refused].tolist():
            if not self._proven[start // self._size]:
                raise self._broken(piece.begin + start - self._header)
        for number, proven in enumerate(self._proven):
            if not proven and piece.behind(number).any():
                raise self._broken(piece.begin + number * self._size + int(piece.ends[number]))

    def _broken(self, offset: int) -> LogCorrupt:
        block = offset // self._size
        return LogCorrupt(
            f"block {block} is damaged at offset {offset:,}, and a compaction would lose what may be saved of it",
            remedy=Remedy.repair(self._opened.path),
            path=self._opened.path,
            offset=offset,
            block=block,
        )

    def _find(self, offset: int) -> Deletion | None:
        """Where the record of this old offset is now; None if it was not copied."""
        block = offset // self._size
        old = self._opened.read(self._size, block * self._size)
        seq = self._firsts[block] + walk_block(old, len(old), self._size).positions.index(offset % self._size)
        if seq in self.removed:
            return None
        number = seq - (int(self.removed.rank(seq - 1)) if seq else 0)
        block = bisect_right(self._new_firsts, number) - 1
        new = self._fs.read(self._file.number, self._size, block * self._size)
        walk = walk_block(new, len(new), self._size)
        at = number - self._new_firsts[block]
        return Deletion(block * self._size + walk.positions[at], walk.lengths[at])

    def prepare(self) -> swap.PendingSwap:
        """Make the copy durable, and write what goes with it into the sidecar: all but the swap itself."""
        fs, old = self._fs, self._opened.meta
        fs.truncate(self._file.number, round_up(self._end, self._size))
        fs.fsync(self._file.number)
        new = old._replace(generation=old.generation + 1)
        sums: list[Entry | None] = [
            Entry(crc, UNPROVEN if block in self._doubtful else 0) for block, crc in enumerate(self._crcs)
        ]
        if len(self._crcs) in self._doubtful:  # the last block: see Checksums.is_doubted
            sums.append(DOUBT)
        gone = removals.encode(
            removals.Removals(new.generation, new.identity, self.seq, self.removed, self._ends.tobytes())
        )
        deleted = b"".join(map(deletions.encode_entry, self._late))
        return prepare(self._opened, self._file.number, new, self._end, sums, deleted=deleted, removals=gone)

    def take_place(self, pending: swap.PendingSwap, _: Opened) -> None:
        """Put the copy in the log's place. The old file stays open."""
        self.taken = True
        put_in_place(self._opened, pending)
        self._file.close()

    def discard(self) -> None:
        self._file.close()
        swap.discard(self._fs, self._opened.sidecar)
