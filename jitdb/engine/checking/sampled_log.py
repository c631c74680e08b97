"""Some blocks of a log, as a log of their own: what a check of a part of it scans."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from jitdb.log.blocks.checksum import UNKNOWN
from jitdb.log.source import ScanSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.errors import LogCorrupt
    from jitdb.log.codecs import Codec


class SampledLog(ScanSource):
    """The blocks with these numbers (ascending), one behind the other."""

    def __init__(self, log: ScanSource, blocks: list[int]) -> None:
        self._log = log
        self._blocks = np.array(blocks, np.int64)
        self._block_size = size = log.block_size
        end = log.durable_end
        last = (end - 1) // size
        whole = len(blocks) * size
        # The log's last block, if it is among them, is the last one here too, and ends where the log does.
        self._end = whole - (last + 1) * size + end if blocks and blocks[-1] == last else whole

    @property
    def path(self) -> Path:
        return self._log.path

    @property
    def codec(self) -> Codec:
        return self._log.codec

    @property
    def block_size(self) -> int:
        return self._block_size

    @property
    def durable_end(self) -> int:
        return self._end

    def read_blocks(self, start: int, stop: int, buffer: memoryview | NDArray[np.uint8]) -> int:
        view = (buffer if isinstance(buffer, memoryview) else buffer.data).cast("B")
        done, stop = 0, min(stop, self._end)
        for block in self._blocks[start // self.block_size : -(-stop // self.block_size)].tolist():
            begin = block * self.block_size
            room = view[done : min(done + self._block_size, stop - start)]
            done += self._log.read_blocks(begin, begin + len(room), room)
        return done

    def checksums(self, first: int, count: int) -> NDArray[np.int64]:
        chosen = self._blocks[first : first + count].tolist()
        behind = np.full(count - len(chosen), UNKNOWN, np.int64)
        return np.concatenate([*(self._log.checksums(block, 1) for block in chosen), behind])

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        """As ScanSource.second_look; the fault names the block in the log itself."""
        return self._log.second_look(int(self._blocks[block]))

    def real_offsets(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._blocks[offsets // self.block_size] * self.block_size + offsets % self.block_size

    def begins(self) -> NDArray[np.int64]:
        return self._blocks * self.block_size


def choose_blocks(sample: float | int, blocks: int, records: int, rng: Random) -> list[int]:
    """Numbers of blocks, by chance: a part of all (a float up to 1), or as many as hold about so many records.

    >>> choose_blocks(1.0, 3, 100, Random(1)), len(choose_blocks(10, 1000, 5000, Random(1)))
    ([0, 1, 2], 2)
    """
    share = sample if isinstance(sample, float) else sample / max(records, 1)
    return sorted(rng.sample(range(blocks), min(blocks, max(1, int(np.ceil(share * blocks))))))
