"""Copying the live records of a log into a new file. What then puts it in the old one's place is swap.py.

The writer goes on meanwhile: whole blocks are copied while it appends, round after round, until little is left; that,
and what was deleted behind the copy's back, is done while it waits.
"""

from __future__ import annotations

import os
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from jitdb.errors import LogCorrupt, Remedy
from jitdb.log.blocks.layout import header_size, round_up
from jitdb.log.blocks.packing import place_array, walk_block
from jitdb.log.blocks.scanner import Piece, scan
from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor
from jitdb.log.opening import swap
from jitdb.log.opening.open_log import open_again
from jitdb.log.opening.opened import Opened
from jitdb.log.opening.options import OpenOptions
from jitdb.log.repair.check_log import codec_of, invalid_records
from jitdb.log.sidecar import checksums, deletions, removals
from jitdb.log.sidecar.checksums import UNPROVEN
from jitdb.log.sidecar.deletions import Deletion

Ints = npt.NDArray[np.int64]


class Copy:
    """A copy in the making, in the sidecar's file next-log.

    `exclusively` is Writer.exclusively: it is entered to look again at what seems damaged.
    """

    def __init__(self, opened: Opened, exclusively: Callable[[], AbstractContextManager[Opened]]) -> None:
        self._opened = opened
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
        self._late: list[Deletion] = []  # of the new log, which has them as records of zeros
        self.taken = False  # whether it takes the log's place now
        self._file = Descriptor(self._fs, opened.sidecar / filenames.NEXT_LOG, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self._fs.share(self._fd, self._fs.fstat(opened.fd), is_log=True)

    @property
    def _fd(self) -> int:
        return self._file.number

    # --- copying ---------------------------------------------------------------------------------------------------

    def copy(self, stop: int, progress: Callable[[int], object]) -> None:
        """Copy the whole blocks before `stop`. Raises LogCorrupt for a damaged one: nothing of it may get lost."""
        self._copy(stop - stop % self._size, progress)

    def finish(self, end: int, tail_crc: int | None, progress: Callable[[int], object]) -> None:
        """Copy all up to the log's end, and delete what was deleted meanwhile. Nobody may write to the log.

        `tail_crc` is Writer.tail_proof. Raises LogCorrupt as copy() does.
        """
        self._tail_crc = tail_crc
        self._copy(end, progress)
        self._erase_late()

    def _copy(self, stop: int, progress: Callable[[int], object]) -> None:
        for piece in scan(self._opened.read_into, self.copied, stop, self._size):
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
        """Which records are removed, and where the old blocks end."""
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
        self._fs.write(self._fd, memoryview(piece)[len(self._open) :], self._end)
        sealed = (end // self._size - base // self._size) * self._size
        for at in range(0, sealed, self._size):
            self._crcs.append(zlib.crc32(piece[at : at + self._size]))
        self._open = bytes(piece[sealed:])
        self._end = end

    @property
    def _records(self) -> int:
        """That were copied, with those of the piece in hand."""
        return self.seq - len(self.removed)

    # --- what is damaged -------------------------------------------------------------------------------------------

    def _verify(self, piece: Piece) -> list[bool]:
        """Every sealed block has its checksum; gives of each whether that proves it. Raises LogCorrupt."""
        proven = []
        for number in range(piece.blocks):
            block, part = piece.first_block + number, piece.block(number).tobytes()
            agrees = self._agrees(block, part)
            proven.append(agrees is True)
            if agrees is False:
                with self._exclusively():  # a record in it may have been on its way to being deleted
                    again = self._opened.read(len(part), block * self._size)
                    if self._agrees(block, again) is False:
                        raise self._broken(block * self._size)
                    proven[-1] = self._agrees(block, again) is True
                # The zeros come from a deletion that is told of later too: the block as it was read is as good.
        return proven

    def _check(self, piece: Piece) -> None:
        """Of a block that nothing proves, the chain and the records are looked at. Raises LogCorrupt."""
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

    def _agrees(self, block: int, data: bytes) -> bool | None:
        """Whether the block is what was written; None where nothing tells."""
        found = self._opened.recovery
        if found.damaged and block == (found.tail.end - 1) // self._size:  # it has no checksum, but the journal knows
            return zlib.crc32(data[: found.tail.end - block * self._size]) == found.tail.block_crc
        if len(data) < self._size:  # nor has the last one, which is partly filled; its writer knows
            return None if self._tail_crc is None else zlib.crc32(data) == self._tail_crc
        entry = self._opened.checksums.get(block)
        if entry is None:
            return None
        if zlib.crc32(data) == entry.crc:
            return entry.is_proof or None
        return None if entry.is_old and checksums.is_changed(data, entry) else False

    def _broken(self, offset: int) -> LogCorrupt:
        block = offset // self._size
        return LogCorrupt(
            f"block {block} is damaged at offset {offset:,}, and a compaction would lose what may be saved of it",
            remedy=Remedy.repair(self._opened.path),
            path=self._opened.path,
            offset=offset,
            block=block,
        )

    # --- the end ---------------------------------------------------------------------------------------------------

    def _erase_late(self) -> None:
        """Delete in the copy what was deleted from the log since it was copied."""
        reader = self._opened.deletions
        reader.poll()
        for offset in reader.between(self._journal, reader.position).tolist():
            place = self._find(offset)
            if place is not None:
                self._late.append(place)
        self._zero(self._late)

    def _zero(self, late: Iterable[Deletion]) -> None:
        blocks = set()
        for each in late:
            self._fs.write(self._fd, bytes(each.length), each.offset + self._header)
            blocks.add(each.offset // self._size)
        for block in blocks:
            if block < len(self._crcs):
                self._crcs[block] = zlib.crc32(self._fs.read(self._fd, self._size, block * self._size))

    def _find(self, offset: int) -> Deletion | None:
        """Where the record of this old offset is now; None if it was not copied."""
        block = offset // self._size
        old = self._opened.read(self._size, block * self._size)
        seq = self._firsts[block] + walk_block(old, len(old), self._size).positions.index(offset % self._size)
        if seq in self.removed:
            return None
        number = seq - (int(self.removed.rank(seq - 1)) if seq else 0)
        block = bisect_right(self._new_firsts, number) - 1
        new = self._fs.read(self._fd, self._size, block * self._size)
        walk = walk_block(new, len(new), self._size)
        at = number - self._new_firsts[block]
        return Deletion(block * self._size + walk.positions[at], walk.lengths[at])

    def prepare(self, change: bytes) -> swap.PendingSwap:
        """Make the copy durable, and write what goes with it into the sidecar: all but the swap itself."""
        fs, old, end = self._fs, self._opened.meta, self._end
        fs.truncate(self._fd, round_up(end, self._size))
        fs.fsync(self._fd)
        meta = old._replace(generation=old.generation + 1)
        deleted = b"".join([*map(deletions.encode_entry, self._late), *([deletions.MARK] if self._late else [])])
        pending = swap.describe(fs, self._fd, meta, end, change, deleted)
        if pending is None:
            raise self._broken(end)
        sums = [
            checksums.encode_entry(block, crc, meta.generation, UNPROVEN if block in self._doubtful else 0)
            for block, crc in enumerate(self._crcs)
        ]
        if len(self._crcs) in self._doubtful:  # the last block: see Checksums.doubt
            sums.append(checksums.encode_entry(len(self._crcs), 0, meta.generation, UNPROVEN))
        gone = removals.Removals(meta.generation, meta.identity, self.seq, self.removed, self._ends.tobytes())
        swap.prepare(fs, self._opened.sidecar, pending, b"".join(sums), deleted=deleted, removals=removals.encode(gone))
        return pending

    def take_place(self, pending: swap.PendingSwap, options: OpenOptions) -> Opened:
        """Put the copy in the log's place; gives the log as it is now. The old one stays open."""
        self.taken = True
        swap.swap(self._fs, self._opened.path, self._opened.sidecar, pending)
        self._file.close()
        return open_again(self._opened, options)

    def discard(self) -> None:
        """Give the copy up."""
        self._file.close()
        swap.discard(self._fs, self._opened.sidecar)
