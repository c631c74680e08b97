"""A stream that waits for more at its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jitdb.errors import InvalidOffset, LogError
from jitdb.log.moved import new_seq
from jitdb.log.scan import bounds

if TYPE_CHECKING:
    from jitdb.log.log import Log
    from jitdb.log.record import Record


def live_stream(
    log: Log, gt: int | None, gte: int | None, lt: int | None, lte: int | None, limit: int | None, raw: bool
) -> Iterator[Record]:
    """See Log.stream. Raises InvalidOffset for an upper bound: there is no end."""
    if lt is not None or lte is not None:
        raise InvalidOffset("a live stream has no end: leave lt and lte out, or live", path=log.path)
    start = bounds(log.durable_end, gt, gte, None, None).start
    return _records(log, _Place(log, min(start, log.durable_end)), limit, raw)


def _records(log: Log, place: _Place, limit: int | None, raw: bool) -> Iterator[Record]:
    news = threading.Event()
    unwatch = log.watch(news.set)
    try:
        while limit is None or limit > 0:
            news.clear()
            for record in place.stream(limit, raw):
                place.pass_(record)
                limit = None if limit is None else limit - 1
                yield record
            if limit is None or limit > 0:
                news.wait()
    finally:
        unwatch()


class _Place:
    """How far a stream came, by offset and by seq: after a compaction the seq tells where that is now."""

    def __init__(self, log: Log, offset: int) -> None:
        self._log = log
        self._offset = offset
        self._generation, self._identity = log.generation, log.identity
        self._seq = log._scanner().rank(offset)

    def pass_(self, record: Record) -> None:
        """The record was handed out."""
        self._offset, self._seq = record.offset + 1, record.seq + 1

    def stream(self, limit: int | None, raw: bool) -> Iterator[Record]:
        """What is there from this place on."""
        log = self._log
        while True:
            generation, identity = log.generation, log.identity
            if identity and (generation, identity) != (self._generation, self._identity):
                self._follow(generation, identity)
            found = log.stream(gte=self._offset, limit=limit, raw=raw)
            if identity and (log.generation, log.identity) == (generation, identity):
                return found  # else it may be of two logs

    def _follow(self, generation: int, identity: bytes) -> None:
        moved = self._log.moved(self._generation) if identity == self._identity else None
        if moved is None:
            raise LogError("another log has taken its place while its records were streamed", path=self._log.path)
        seq = new_seq(moved, self._seq)
        self._offset, self._seq, self._generation = self._log._scanner().offset_at(seq), seq, generation
