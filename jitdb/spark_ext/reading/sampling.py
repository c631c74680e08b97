"""Some records of a log, from all over it: what a schema is inferred from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from jitdb.errors import DecodeError
from jitdb.log.blocks import is_zero, walk_block
from jitdb.log.layout import header_size

if TYPE_CHECKING:
    from jitdb.log import Log

_PLACES: Final = 20  # blocks that are looked at, evenly over the log: the first and the last among them


def sample(log: Log, count: int) -> Iterator[Any]:
    """At most `count` live records, decoded; the same ones as long as the log is the same."""
    blocks = -(-log.durable_end // log.block_size)
    places = sorted({round(number * (blocks - 1) / (_PLACES - 1)) for number in range(_PLACES)}) if blocks else []
    for number, block in enumerate(places):
        share = -(-count // (len(places) - number))
        for record in _records(log, block)[:share]:
            count -= 1
            try:
                yield log.codec.decode(record)
            except DecodeError:
                continue


def _records(log: Log, block: int) -> list[bytes]:
    """The live records of a block."""
    import numpy as np

    buffer = np.empty(log.block_size, np.uint8)
    start = block * log.block_size
    got = log.read_blocks(start, start + log.block_size, buffer.data)
    data = buffer[:got].tobytes()
    walk = walk_block(data, got, log.block_size)
    header = header_size(log.block_size)
    records = [
        data[position + header : position + header + length]
        for position, length in zip(walk.positions, walk.lengths, strict=True)
    ]
    return [record for record in records if not is_zero(record)]
