"""A stream that waits for more at its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Self, TypeAlias

from jitdb.common.forking import begins_anew, fork_safe
from jitdb.errors import LogError
from jitdb.log.reading.block_reader import BlockReader, OffsetRange
from jitdb.log.reading.stream import stream
from jitdb.log.record import Record
from jitdb.log.sidecar.removals import new_seq

Newest: TypeAlias = Callable[[], BlockReader]  # a log's reader, of another file where one took the log's place
Watch: TypeAlias = Callable[[Callable[[], object]], Callable[[], None]]  # LogSource.watch


class LiveStream(Iterator[Record]):
    """What Log.stream(live=True) gives. Waits for more instead of ending, until it is closed.

    Closing it from any thread ends it at once, also while it waits; so does leaving its `with`. Ctrl-C comes out of
    waiting at once, and it may be read on. Several threads may read from one; each record goes to one of them. An error
    comes out once and ends it: LogClosed, once the log was closed.
    """

    def __init__(self, newest: Newest, watch: Watch, start: int, limit: int | None, raw: bool) -> None:
        self._place = _Place(newest, start)
        self._left = limit
        self._raw = raw
        self._records: Iterator[Record] = iter(())
        self._closed = False
        self._turn = fork_safe(threading.Lock())  # one thread waits for records, the others wait for it
        self._news = fork_safe(threading.Event())
        self._news.set()  # nobody looked yet
        self._forked = False
        self._watch = watch
        self._unwatch = watch(self._news.set)  # not a method of this object, which whoever watches would keep alive
        begins_anew(self)

    def begin_anew(self) -> None:
        """In a forked child: another thread may have been reading, and the one that looks for news is not here."""
        self._forked = True
        self._records = iter(())
        self._news.set()

    def __next__(self) -> Record:
        with self._turn:
            try:
                return self._next()
            except Exception:
                self.close()
                raise
            except BaseException:
                self._records = iter(())  # it may have ended where it was interrupted: what is there is read again
                self._news.set()
                raise

    def _next(self) -> Record:
        while not self._closed and self._left != 0:
            for record in self._records:
                self._place.pass_(record)
                self._left = None if self._left is None else self._left - 1
                return record
            if self._forked:
                self._go_on_in_child()
            self._news.wait()
            self._news.clear()
            self._records = self._place.stream(self._left, self._raw)
        raise StopIteration

    def _go_on_in_child(self) -> None:
        """Look for news here too. Raises LogClosed where the log was open for writing: it is the parent's."""
        self._unwatch()
        self._unwatch, self._forked = self._watch(self._news.set), False

    def close(self) -> None:
        """End it, from any thread; who waits for a record is released."""
        self._closed = True
        self._unwatch()
        self._news.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_unwatch"):  # not where __init__ raised
            self.close()


class _Place:
    """How far a stream came, by offset and by seq: after a compaction the seq tells where that is now."""

    def __init__(self, newest: Newest, offset: int) -> None:
        self._newest = newest
        reader = newest()  # by which all is asked, for another file may take the log's place meanwhile
        self._offset = min(offset, reader.extent.durable_end)
        self._seq = reader.rank(self._offset)
        self._meta = reader.opened.meta

    def pass_(self, record: Record) -> None:
        """The record was handed out."""
        self._offset, self._seq = record.offset + 1, record.seq + 1

    def stream(self, limit: int | None, raw: bool) -> Iterator[Record]:
        """What is there from this place on."""
        reader = self._newest()
        if reader.opened.meta != self._meta:
            self._follow(reader)
        within = OffsetRange(self._offset, reader.extent.durable_end)
        return stream(reader, within, limit, None if raw else reader.opened.codec, self._newest)

    def _follow(self, reader: BlockReader) -> None:
        before, now = self._meta, reader.opened.meta
        removals = reader.opened.removals(before.generation) if now.identity == before.identity else None
        if not self._seq:
            removals = []  # the very beginning is that of any log: so a reader came before its writer had begun
        if removals is None:
            raise LogError("another log has taken its place while its records were streamed", path=reader.opened.path)
        seq = new_seq(removals, self._seq)
        self._offset, self._seq, self._meta = reader.offset_at(seq), seq, now
