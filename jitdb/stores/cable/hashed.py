"""A log whose records are found by a hash that each has: the posts, and what is known of hashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb import JITDB, Log
from jitdb.errors import RecordDeleted
from jitdb.log.codecs import Codec

if TYPE_CHECKING:
    from jitdb.engine.answering.finder import Finder

BLOCK_SIZE: Final = 1 << 20  # of a new log: a post must fit a block

_RECENT: Final = 1 << 16  # records that a dictionary knows before the index takes them over


class Found(NamedTuple):
    """A record, and where it lies."""

    offset: int
    raw: bytes


class HashedLog:
    """Records, each with a field `hash`; of one hash there may be several.

    log, index: where they lie, and what answers questions about them

    What was appended is found at once, and durable after flush(), or about a quarter of a second later. Of what was
    there before, the index of hashes is asked; of what came since, a dictionary. Not safe for threads.
    """

    def __init__(self, path: Path, codec: Codec | str, *, read_only: bool = False) -> None:
        size = None if path.exists() else BLOCK_SIZE
        self.log = Log(path, codec=codec, block_size=size, read_only=read_only)
        self.index = JITDB(self.log, progress=False)
        self._finder: Finder | None = None
        self._recent: dict[bytes, list[int]] = {}  # the offsets of records behind those that the finder knows
        self._count = 0  # of these
        self._is_durable = True

    def candidates(self, key: bytes) -> Iterator[Found]:
        """The records that may have this hash, the newest first; all that do are there."""
        if self._finder is None or self._count > _RECENT:
            self.flush()
            self._finder, self._recent, self._count = self.index.finder("hash"), {}, 0
        yield from self.at(reversed(self._recent.get(key, ())))
        yield from self.at(self._finder.offsets[seq].item() for seq in self._finder.candidates(key))

    def at(self, offsets: Iterator[int] | Sequence[int]) -> Iterator[Found]:
        """The records there, but for those that were deleted meanwhile."""
        for offset in offsets:
            with suppress(RecordDeleted):
                yield Found(offset, self.log.get_raw(offset))

    def append(self, key: bytes, value: Any) -> None:
        """Append a record with this hash. Raises RecordTooLarge, LogWriteFailed."""
        self._recent.setdefault(key, []).append(self.log.append(value))
        self._count += 1
        self._is_durable = False

    def delete(self, offsets: list[int]) -> None:
        """Delete records, all at once; they are out of all answers."""
        self.log.delete_many(offsets)
        self._is_durable = False

    def ask(self, operation: Any, **settings: Any) -> Iterator[Found]:
        """The records that match, in the order of the log unless said otherwise."""
        self.flush()
        offsets = self.index.all(operation, as_offsets=True, **{"sort_by": "arrival", **settings})
        return self.at(offsets)

    def first(self, operation: Any, limit: int) -> list[Found]:
        """At most so many of the newest by what they declare as their time."""
        self.flush()
        page = self.index.paginate(operation, limit=limit, descending=True, as_offsets=True)
        return list(self.at(page.data))

    def flush(self) -> None:
        """Return when all that was done is on the disk: answers speak of that."""
        if not self._is_durable:
            self.log.flush()
            self._is_durable = True

    def compact(self) -> None:
        """Give back the room of deleted records."""
        self.flush()
        self.index.compact()
        self._finder, self._recent, self._count = None, {}, 0

    def close(self) -> None:
        self.index.close()
