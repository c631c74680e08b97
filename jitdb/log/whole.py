"""Appending any number of records so that after a crash they are there all, or none: append_transaction past a block.

One DATA entry of the journal covers them all. So their bytes, packed into blocks, and their CRC must be known before
the first one is written: they go through a scratch file, and only then into the log. Recovery believes the entry if all
of its bytes are there (recovery.py); if not, it cuts them off.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jitdb.log import journal
from jitdb.log.blocks import place_many
from jitdb.log.chunk import Chunk
from jitdb.log.layout import round_up

if TYPE_CHECKING:
    from jitdb.log.commit import Committer
    from jitdb.log.log import Log
    from jitdb.log.writer import Writer

_PIECE: Final = 4 << 20  # bytes copied at a time


def append_whole(log: Log, batches: Iterable[list[bytes]], scratch: Path) -> None:
    """Append encoded records, all or none; they are durable then. Nobody else appends meanwhile.

    scratch: a file that is made, and takes as many bytes as the log will; whoever calls removes it

    Raises InvalidRecord, RecordTooLarge, before anything is written; LogReadOnly, LogClosed, LogWriteFailed.
    """
    writer = log._writing()
    writer.flush()
    with writer._files, writer._lock:
        packed = _Packed(writer, scratch)
        try:
            for batch in batches:
                packed.add(writer, batch)
            packed.finish()
            if packed.size:
                writer._on_files(lambda: packed.write(writer._committer), writer._sync)
                writer._begin(writer._committer)
        finally:
            os.close(packed.fd)
    log._extent.notify()


class _Packed:
    """The bytes to be written, and what the sidecar says of them."""

    def __init__(self, writer: Writer, scratch: Path) -> None:
        self._block_size = writer._block_size
        self._end = writer._end
        self._chunk = Chunk(writer._committer.tail.copy(), self._block_size)
        self._crc = 0
        self.size = 0
        self.fd = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        if writer._pending.breaks:  # the last block is damaged: they begin the next one
            self._chunk.seal()

    def add(self, writer: Writer, records: list[bytes]) -> None:
        """Pack these records behind the others."""
        valid, lengths = writer._valid(records)
        if not valid:
            return
        import numpy as np

        placed = place_many(np.asarray(lengths, np.int64), self._end, self._block_size)
        first = 0
        for stop in [*placed.breaks, len(valid)]:
            if stop > first:
                self._chunk.add(valid[first:stop])
            if stop < len(valid):
                self._chunk.seal()
            first = stop
        self._chunk.finish()  # the next batch may go on in this block
        self._end = placed.end
        self._drain()

    def finish(self) -> None:
        """All were added."""
        if self.size and self._chunk.tail.end == self._chunk.start:
            self.size = 0  # nothing but the end of a damaged block

    def _drain(self) -> None:
        data = b"".join(self._chunk.parts)
        self._chunk.parts.clear()
        self._crc = zlib.crc32(data, self._crc)
        view = memoryview(data)
        while view:
            view = view[os.write(self.fd, view) :]
        self.size += len(data)

    def write(self, committer: Committer) -> None:
        """Into the log: the journal's entry, the bytes, the checksums of sealed blocks. Durable after the next sync."""
        chunk, opened, fs = self._chunk, committer._opened, committer._fs
        with committer._step():
            committer._begin()
            entry = chunk.tail.entry(journal.DATA, opened.meta.generation, committer._change)
            committer._journal.append(entry._replace(start=chunk.start, data_crc=self._crc))
            committer._last = journal.DATA
            committer._journal.sync()
            whole = round_up(chunk.tail.end, self._block_size)
            if whole > committer._seen[1]:
                fs.truncate(opened.fd, whole)
            # What makes the entry hold, the records of the last block, comes last: all else is there then.
            last = max(0, chunk.tail.end - 1) // self._block_size * self._block_size
            self._copy(committer, 0, max(0, last - chunk.start))
            if chunk.sealed:
                first = chunk.start // self._block_size
                if first == committer.damaged_block and not committer.tail.block_crc:
                    first, chunk.sealed = first + 1, chunk.sealed[1:]  # nobody knows what it should be
                opened.checksums.put(first, chunk.sealed)
            self._copy(committer, max(0, last - chunk.start), self.size)
            committer._look()
            committer.tail = chunk.tail

    def _copy(self, committer: Committer, first: int, stop: int) -> None:
        for at in range(first, stop, _PIECE):
            data = os.pread(self.fd, min(_PIECE, stop - at), at)
            committer._fs.write(committer._opened.fd, data, self._chunk.start + at)
