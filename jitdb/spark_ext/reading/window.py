"""A part of a log as a log of its own: the engine answers a question of it, with indexes in memory.

Offsets count from the window's first byte, seqs from its first record. Nothing of it changes, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.errors import LogCorrupt
from jitdb.indexes.kinds.roaring import members_of
from jitdb.log.blocks.crc_arithmetic import UNKNOWN
from jitdb.log.codecs import Codec
from jitdb.log.source import LogSource
from jitdb.operators.nodes.operations import Offsets, Operation, Seqs
from jitdb.operators.text.json import from_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.spark_ext.range_source import SharedFile
    from jitdb.spark_ext.reading.parts import Part

_NAMELESS: Final = bytes(16)


class Window(LogSource):
    """The blocks that the runs of a part lie in, which follow on one another."""

    def __init__(self, part: Part, source: SharedFile) -> None:
        start, stop = part.runs[0].start, part.runs[-1].stop
        self._part = part
        self._source = source
        self.base = start - start % part.shape.block_size
        self._codec = part.shape.codec
        self._end = stop - self.base

    @property
    def path(self) -> Path:
        """That of the log."""
        return Path(self._part.shape.path)

    @property
    def codec(self) -> Codec:
        """That of the log."""
        return self._codec

    @property
    def block_size(self) -> int:
        """That of the log, in bytes."""
        return self._part.shape.block_size

    @property
    def durable_end(self) -> int:
        """How many bytes it has."""
        return self._end

    @property
    def identity(self) -> bytes:
        """None of its own: its indexes stay in memory."""
        return _NAMELESS

    @property
    def generation(self) -> int:
        """It never has another."""
        return 1

    @property
    def identity_is_stored(self) -> bool:
        """It is the window of one task."""
        return False

    def read_blocks(self, start: int, stop: int, buffer: Any) -> int:
        """See LogSource."""
        stop = min(stop, self.durable_end)
        if stop <= start:
            return 0
        return self._source.read_blocks(start + self.base, stop + self.base, buffer)

    def checksums(self, first: int, count: int) -> NDArray[np.int64]:
        """See LogSource."""
        out = np.full(count, UNKNOWN, np.int64)
        if self._part.sums is not None:
            known = self._part.sums[first : first + count]
            out[: len(known)] = known
        return out

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        """See LogSource. The fault is that of the whole log, not of the window: it is not to be set aside here."""
        data, fault = self._part.second_look(self._source, block + self.base // self.block_size)
        if fault is None or not self._part.skip_corrupt:
            return data, fault
        here = LogCorrupt(
            str(fault), offset=block * self.block_size, block=block, expected=fault.expected, got=fault.got
        )
        return data, here

    def deletions(self, after: int = 0) -> tuple[int, NDArray[np.int64]]:
        """See LogSource."""
        mine = self._part.deleted
        mine = mine[(mine >= self.base) & (mine < self.base + self.durable_end)] - self.base
        return len(mine), mine[after:]


def matching_offsets(part: Part, source: SharedFile) -> NDArray[np.int64]:
    """The log's offsets of the live records of the part's run that its question is true of, in order.

    Records of the run's first block that stand before it may be among them. Raises QueryError, LogCorrupt, OSError.
    """
    from jitdb.engine.manager import IndexManager

    assert part.where is not None
    window = Window(part, source)
    question = _local(from_json(part.where), window, part)
    manager = IndexManager(window, None, part.core, 1, False)

    def look(end_seq: int) -> NDArray[np.int64]:
        found = members_of(manager.evaluator.matches(question, end_seq))
        return manager.records.offsets_of(found)

    return manager.ask(question, False, None, look) + window.base


def asks_seqs(operation: Operation) -> bool:
    """Whether the question names records by their seqs."""
    return any(isinstance(leaf, Seqs) for leaf in operation.leaves())


def _local(operation: Operation, window: Window, part: Part) -> Operation:
    """The question with the window's seqs and offsets in the place of the log's."""

    def local(leaf: Operation) -> Operation:
        if isinstance(leaf, Offsets):
            return Offsets(_moved(leaf.packed, window.base))
        if isinstance(leaf, Seqs):
            return Seqs(_moved(leaf.packed, part.runs[0].first_seq - _before(window, part)))
        return leaf

    return operation.replaced(local)


def _moved(packed: bytes, by: int) -> bytes:
    """Those of these positions that are not before the window, counted from its beginning."""
    numbers = np.frombuffer(packed, "<u8")
    if by < 0:  # the window begins before the run, in the log's first block
        return (numbers + np.uint64(-by)).astype("<u8").tobytes()
    return (numbers[numbers >= by] - np.uint64(by)).astype("<u8").tobytes()


def _before(window: Window, part: Part) -> int:
    """How many records of the window stand before its run."""
    from jitdb.log.blocks.packing import walk_block

    block = bytearray(window.block_size)
    data = bytes(block[: window.read_blocks(0, len(block), block)])
    starts: Iterator[int] = iter(walk_block(data, len(data), window.block_size).positions)
    return sum(window.base + start < part.runs[0].start for start in starts)
