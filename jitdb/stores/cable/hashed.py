"""A log whose records are found by hashes: the posts, and what is known of hashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common.paths import TIMESTAMPS
from jitdb.engine.database import JITDB
from jitdb.errors import QueryError, RecordDeleted
from jitdb.log.codecs import Codec
from jitdb.log.io import osfile
from jitdb.log.log import Log

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.answering.finder import Finder

BLOCK_SIZE: Final = 1 << 20  # of a new log: a post must fit a block

_RECENT: Final = 1 << 16  # hashes that a dictionary knows before the index takes them over
_AT_ONCE: Final = 1 << 12  # records that are read together


class Found(NamedTuple):
    """A record, and where it lies."""

    offset: int
    raw: bytes


class HashedLog:
    """Records that are found by a field `hash`, or by another one that holds hashes; of one hash there may be several.

    lists:      the fields that hold any number of hashes
    log, index: where they lie, and what answers questions about them

    What was appended is found at once, and durable after flush(), or about a quarter of a second later. Of what was
    there before, the index of hashes is asked; of what came since, a dictionary. Not safe for threads.
    """

    def __init__(self, path: Path, codec: Codec | str, *, lists: Sequence[str] = ()) -> None:
        self.log = Log(path, codec=codec, block_size=None if osfile.fs.exists(path) else BLOCK_SIZE)
        self.index = JITDB(self.log, timestamp=TIMESTAMPS, time_unit="number", progress=False)
        self.index.warns_of_questions = False  # that there is none of something is an answer of the store's
        self._lists = lists
        self._known: dict[str, _Known] = {}  # by field
        self._is_durable = True

    # --- by a hash ---------------------------------------------------------------------------------------------------

    def candidates(self, key: bytes, field: str = "hash") -> Iterator[Found]:
        """The records that may have this hash, the newest first; all that do are there."""
        if field not in self._known or self._known[field].count > _RECENT:
            self.finder(field)
        for offset in self._known[field].offsets(key):
            with suppress(RecordDeleted):
                yield Found(offset, self.log.get_raw(offset))

    def finder(self, field: str) -> Finder:
        """All hashes of a field, as they are now."""
        found = self.current.finder(field, elements=field in self._lists)
        self._known[field] = _Known(found)
        return found

    def append(self, value: Any, **hashes: Sequence[bytes]) -> None:
        """Append a record, which is found by these hashes of its fields. Raises RecordTooLarge, LogWriteFailed."""
        offset = self.log.append(value)
        self._is_durable = False
        for field, known in self._known.items():
            known.add(hashes.get(field, ()), offset)

    def delete(self, offsets: list[int]) -> None:
        """Delete records, all at once; they are out of all answers."""
        self.log.delete_many(offsets)
        self._is_durable = False

    # --- by a question -----------------------------------------------------------------------------------------------

    @property
    def current(self) -> JITDB:
        """What answers questions about all that was appended and deleted."""
        self.flush()
        return self.index

    def ask(self, operation: Any = None) -> Iterator[Found]:
        """The records that match, in the order of the log."""
        return self.at(self.current.all(operation, as_offsets=True, sort_by="arrival"))

    def newest(self, operation: Any, at_once: int = _AT_ONCE) -> Iterator[Found]:
        """The records that match, the newest by their timestamps first; so many are read at once."""
        pages = self.current.pages(operation, limit=max(1, min(at_once, _AT_ONCE)), descending=True, as_offsets=True)
        return chain.from_iterable(self.at(page.data) for page in pages)

    def since(self, operation: Any, cursor: str | None) -> list[Found]:
        """The records that match and lie behind a cursor; all that match where that is of no use any more."""
        feed = self.current.feed(operation, old=cursor is None, after=cursor, as_offsets=True)
        found: list[Found] = []
        try:
            while (portion := feed.read()) is not None:
                found += self.at(portion.data)
        except QueryError:
            return self.since(operation, None)
        return found

    def cursor(self) -> str:
        """The place behind all records that there are now; there must be some."""
        return self.current.feed().cursor

    def at(self, offsets: Sequence[int] | NDArray[np.int64]) -> Iterator[Found]:
        """The records there, but for those that were deleted meanwhile."""
        for begin in range(0, len(offsets), _AT_ONCE):
            part = np.array(offsets[begin : begin + _AT_ONCE], np.int64)
            for offset, raw in zip(part.tolist(), self.log.get_many_raw(part), strict=True):
                if raw is not None:
                    yield Found(offset, raw)

    # --- the disk ----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Return when all that was done is on the disk: answers speak of that."""
        if not self._is_durable:
            self.log.flush()
            self._is_durable = True

    def compact(self) -> None:
        """Give back the room of deleted records."""
        self.current.compact()
        self._known.clear()

    def close(self) -> None:
        self.index.close()


class _Known:
    """Where the hashes of a field are: those that its index knows, and those that came since."""

    def __init__(self, finder: Finder) -> None:
        self.finder = finder
        self.count = 0  # of those that came since
        self._recent: dict[bytes, list[int]] = {}

    def add(self, hashes: Sequence[bytes], offset: int) -> None:
        for key in hashes:
            self._recent.setdefault(key, []).append(offset)
        self.count += len(hashes)

    def offsets(self, key: bytes) -> Iterator[int]:
        """Of the records that may hold it, the newest first."""
        yield from reversed(self._recent.get(key, ()))
        for seq in self.finder.candidates(key):
            yield self.finder.offsets[seq].item()
