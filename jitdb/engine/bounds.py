"""How many indexes questions may have built: for services that take questions from strangers."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from jitdb.errors import TooManyIndexes


class Bounds(NamedTuple):
    """None: any. What every answer needs (places, deletions, time, sequence) does not count."""

    indexes: int | None = None
    bytes: int | None = None  # of all together; who is below it may build one more, however large that gets

    def check(self, log: Path, new: int, there: int, size: int) -> None:
        """Raise TooManyIndexes if `new` indexes beside the `there` ones of `size` bytes are too many."""
        if self.indexes is not None and there + new > self.indexes:
            bound = f"max_indexes={self.indexes:,} are allowed, and there are {there:,}"
        elif self.bytes is not None and size >= self.bytes:
            bound = f"max_index_bytes={self.bytes:,} are taken: {size:,}"
        else:
            return
        raise TooManyIndexes(
            f"the question needs {new:,} {'index' if new == 1 else 'indexes'} more, and {bound}",
            path=log,
            remedy="ask for what is indexed, build it with prepare(), or drop others with drop_index()",
        )


UNBOUND: Final = Bounds()
