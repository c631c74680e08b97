"""Records from all over a log, from which its fields and their types are guessed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from jitdb.errors import DecodeError
from jitdb.log.blocks.block_format import DEFAULT_BLOCK_SIZE

if TYPE_CHECKING:
    from jitdb.log.blocks.framing import Framing
    from jitdb.log.source import LogSource

_PLACES: Final = 20  # blocks that are read, evenly over the log, the first and the last among them
_LOOKED_THROUGH: Final = 1000  # records among which the first ones are, where some cannot be decoded
_ENOUGH: Final = 64 << 20  # bytes after which no more blocks are read, so that nobody waits long


def sample(log: LogSource, count: int) -> Iterator[Any]:
    """At most `count` live records, decoded; the same ones as long as the log does not change.

    They are the first ones of some blocks; of large records there are fewer. Records that cannot be decoded are left
    out.
    """
    yield from _decoded(log, sample_raw(log, count))


def sample_raw(log: LogSource, count: int, framing: Framing | None = None) -> Iterator[bytes]:
    """As sample(), but as bytes. `framing`: another one than the log's, such as that of lines as they stand."""
    blocks = -(-log.durable_end // log.block_size)
    most = max(min(_PLACES, count), 2)
    places = sorted({round(number * (blocks - 1) / (most - 1)) for number in range(most)}) if blocks else []
    given = 0
    for number, block in enumerate(places):
        share = -(-count // (len(places) - number))
        for record in _first_records(log, block, share, framing or log.framing):
            count -= 1
            given += len(record)
            yield record
        if given > _ENOUGH:
            return


def first(log: LogSource, count: int) -> Iterator[Any]:
    """The first live records of the log's first block, decoded, at most `count`; those that cannot be are left out."""
    found = list(_decoded(log, _first_records(log, 0, count, log.framing)))
    if len(found) < count:
        records = _records(log, 0, log.block_size, log.framing)
        found = list(islice(_decoded(log, islice(records, _LOOKED_THROUGH)), count))
    yield from found


def _decoded(log: LogSource, records: Iterable[bytes]) -> Iterator[Any]:
    for record in records:
        with suppress(DecodeError):
            yield log.codec.decode(record)


def _first_records(log: LogSource, block: int, count: int, framing: Framing) -> list[bytes]:
    """The first live records of a block. A large block is read only as far as they reach, as a rule."""
    size = min(log.block_size, DEFAULT_BLOCK_SIZE)
    while True:
        records = list(islice(_records(log, block, size, framing), count))
        if len(records) == count or size == log.block_size:
            return records
        size = min(log.block_size, 8 * size)


def _records(log: LogSource, block: int, size: int, framing: Framing) -> Iterator[bytes]:
    """The live records in the first `size` bytes of a block."""
    hidden = set(log.deleting())  # their bytes are not zero yet
    for offset, record in framing.records(log, block, size):
        if offset not in hidden:
            yield record
