"""The answer to a live question: the records that match, as they come, in the order of the log.

A feed keeps one place in the log and asks the engine for what matches behind it. Nothing is queued, so a slow reader
costs no memory and delays nobody. Seqs that live_seqs() gives count from then on: a record before the place that they
make match is handed out too, once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pyroaring import BitMap

from jitdb.engine.cursor import UNKNOWN, Cursor, place_in
from jitdb.engine.manager import IndexManager
from jitdb.engine.reading.paging import Located, decoded, located, reading
from jitdb.engine.records import Records
from jitdb.errors import DecodeError, LogSuperseded, QueryCancelled, QueryError
from jitdb.indexes.kinds.remap import Renumbering
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_range, members_of
from jitdb.operators.nodes.operation import EVERYTHING, Operation
from jitdb.operators.nodes.positions import Seqs
from jitdb.operators.question import Live, Question
from jitdb.operators.tasks.live_seqs import SeqSource, sources_of, with_seqs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.source import LogSource

GATHERED = 1 << 16  # matches that are looked up at once and then handed out portion by portion


class Portion(NamedTuple):
    """Some of the records of a feed; see operators.question.Portion."""

    data: list[Any]
    places: list[Cursor]  # behind each of them

    def cursor(self, count: int) -> str:
        return str(self.places[count - 1])


class Look(NamedTuple):
    """What matched at one look, as long as the records keep their seqs."""

    records: Records
    first: int  # seq of the place: a match before it is late
    seqs: NDArray[np.uint32]  # ascending
    behind: Cursor  # the place behind all of them


class Feed:
    """See operators.question.Feed."""

    def __init__(self, manager: IndexManager, log: LogSource, question: Question) -> None:
        self._manager = manager
        self._log = log
        self._operation = question.operation
        self._limit = question.portion
        self._as_offsets = question.as_offsets
        self._question = question
        self._cancel = threading.Event()
        self._count: Callable[[int], int] | None = None  # the records before the place, in the log that it is of
        self._is_bound = not log.framing.is_blocked  # else a place at the beginning is one of any log: see _rebased
        live = question.live or Live()
        self._place = self._begin(live.old) if live.after is None else place_in(live.after, log)
        self._sources = {source: SourceSeqs() for source in sources_of(question.operation)}
        self._asked = self._with(lambda given: BitMap())  # the indexes that are needed do not depend on the seqs
        self._found: Look | None = None
        for source in self._sources:
            source.start()

    def _begin(self, old: bool) -> Cursor:
        log = self._log
        while True:
            identity, generation, end = log.identity, log.generation, log.durable_end
            self._count = None if old else log.counter()
            if identity and (identity, generation) == (log.identity, log.generation):
                return Cursor(identity, generation, 0, 0) if old else Cursor(identity, generation, UNKNOWN, end)

    @property
    def identity(self) -> bytes:
        """Of the log that is read."""
        return self._place.identity

    @property
    def place(self) -> Cursor:
        """Behind what was read; its seq may be UNKNOWN."""
        return self._place

    @property
    def cursor(self) -> str:
        if self._place.seq == UNKNOWN:
            try:
                self._manager.ask(EVERYTHING, False, self._cancel, lambda end: self._rebased(self._manager.records))
            except QueryError:
                if self._place.identity == self._log.identity:
                    raise
                return str(self._place._replace(seq=0))  # another log took its place: there the offset counts
        return str(self._place)

    def read(self) -> Portion | None:
        """The next records, without waiting for any; None when there are none now.

        Raises QueryCancelled, LogError; DecodeError for a record that cannot be decoded: the next call passes over it.
        """
        while True:
            if self._cancel.is_set():
                raise QueryCancelled("the live question was closed")
            if self._found is None:
                self._check_bound()
                if self._nothing_new():
                    return None
                if (self._place.generation, self._place.offset) > (self._log.generation, self._log.durable_end):
                    self._log.refresh()  # the cursor is of a process that saw more of the log
                self._found = self._manager.ask(self._asked, False, self._cancel, self._look)
                if not len(self._found.seqs):
                    self._end_look(self._found)
                    return None
            portion = self._portion(self._found)
            if portion is not None:
                return portion

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back, from any thread, whenever read() may have something; the function given back ends it."""
        ends = [self._log.watch(callback), *(source.watch(callback) for source in self._sources)]

        def unwatch() -> None:
            for end in ends:
                end()

        return unwatch

    def close(self) -> None:
        self._cancel.set()
        for source in self._sources:
            source.close()

    def _check_bound(self) -> None:
        if self._is_bound and self._place.identity != self._log.identity:
            raise QueryError("another log has taken the place of the one that was read", path=self._log.path)

    # --- looking ---------------------------------------------------------------------------------------------------

    def _nothing_new(self) -> bool:
        """Whether it is clear without a look that there is nothing new."""
        for source, given in self._sources.items():
            given.take(source)
        if any(given.fresh for given in self._sources.values()):
            return False
        place, log = self._place, self._log
        return (place.identity, place.generation) == (log.identity, log.generation) and place.offset == log.durable_end

    def _look(self, end: int) -> Look:
        """With the lock held: what matches of the records below `end` and was not handed out."""
        manager = self._manager
        records = manager.records
        first = min(self._rebased(records), end)
        window = bitmap_of_range(first, end)
        matches = self._matches(lambda given: given.all, window, end)
        stop = end
        if len(matches) > GATHERED:
            matches = matches[:GATHERED]
            stop = matches[-1] + 1
        for given in self._sources.values():
            given.looked = given.fresh.copy()
        behind = self._place._replace(seq=stop, offset=records.place_of(stop))
        return Look(records, first, members_of(self._late(first, end) | matches), behind)

    def _matches(self, chosen: Callable[[SourceSeqs], BitMap], window: BitMap, end: int) -> BitMap:
        """Which of the records in the window match, where the sources of live_seqs() have given these seqs."""
        asked = self._with(lambda given: chosen(given) & window)
        return self._manager.evaluator.matches(asked, end) & window

    def _rebased(self, records: Records) -> int:
        """The place as a number of records; from now on it is one of the log as it is now."""
        log, place = self._log, self._place
        if place.seq == UNKNOWN and place.generation != log.generation and self._count is not None:
            place = place._replace(seq=self._count(place.offset))  # in the file from before the compaction
        self._check_bound()
        rank = place.rank(log, records.rank)
        if place.identity != log.identity:  # it stands at the very beginning, and means any log's
            place = place._replace(identity=log.identity, generation=log.generation)
        renumbering = None
        if place.generation != log.generation:
            renumbering = Renumbering(log.removals(place.generation) or [])
            place = place._replace(generation=log.generation, offset=records.place_of(rank))
        if self._manager.changed(records):  # by a thread that refreshes: then this place is of neither log
            raise LogSuperseded("it was compacted or replaced while a place was looked for", path=log.path)
        if renumbering is not None:
            for given in self._sources.values():
                given.move(renumbering)
        self._place, self._count = place._replace(seq=rank), None
        return rank

    def _late(self, first: int, end: int) -> BitMap:
        """Records before the place that are matches now, because of the seqs that came since the last look."""
        came = BitMap.union(BitMap(), *(given.fresh for given in self._sources.values())) & bitmap_of_range(0, first)
        if not came:
            return came
        now = self._matches(lambda given: given.all, came, end)
        return now - self._matches(lambda given: given.all - given.fresh, came, end)

    def _with(self, chosen: Callable[[SourceSeqs], BitMap]) -> Operation:
        """The question with such seqs in the places of live_seqs()."""
        if not self._sources:
            return self._operation
        return with_seqs(self._operation, lambda source: _seqs(chosen(self._sources[source])))

    # --- handing out -----------------------------------------------------------------------------------------------

    def _portion(self, found: Look) -> Portion | None:
        """The next live records of what was found; None when it must be looked again, or they are all gone."""
        read = reading(self._manager, found.records, lambda: self._rows(found), self._cancel)
        if read is None:
            self._found = None
            return None
        at, data, error = read
        if error is not None:
            if not data:  # skipped, and reported once
                self._pass(found, at.seqs[: int(at.seqs.searchsorted(at.live[0])) + 1], at.live[:1], at.offsets[:1])
                raise error
            at = Located(at.seqs[: int(at.seqs.searchsorted(at.live[len(data)]))], at.live, at.offsets)
        places = self._pass(found, at.seqs, at.live[: len(data)], at.offsets[: len(data)])
        return Portion(data, places) if data else None

    def _rows(self, found: Look) -> tuple[Located, list[Any], DecodeError | None]:
        """Some of the matches, decoded up to the first that cannot be, and why that is so."""
        are_read = not self._as_offsets
        at = located(self._manager, found.records, lambda: found.seqs[: self._limit], are_read=are_read)
        if self._as_offsets:
            return at, at.offsets.tolist(), None
        try:
            return at, decoded(found.records, at.live, at.offsets, self._question), None
        except DecodeError as error:
            bad = at.offsets.tolist().index(error.offset)
            return at, decoded(found.records, at.live[:bad], at.offsets[:bad], self._question), error

    def _pass(
        self, found: Look, seqs: NDArray[np.uint32], live: NDArray[np.uint32], offsets: NDArray[np.int64]
    ) -> list[Cursor]:
        """Drop these matches as handed out; gives the places behind the `live` ones."""
        places = []
        for seq, offset in zip(live.tolist(), offsets.tolist(), strict=True):
            if seq >= found.first:
                self._place = self._place._replace(seq=seq + 1, offset=offset + 1)
            places.append(self._place)
        self._found = found = found._replace(seqs=found.seqs[len(seqs) :])
        if self._sources:
            handed = bitmap_of(seqs)
            for given in self._sources.values():
                given.fresh -= handed
        if not len(found.seqs):
            self._end_look(found)
        return places

    def _end_look(self, found: Look) -> None:
        """Note that all it found was handed out."""
        self._place, self._found = found.behind, None
        for given in self._sources.values():
            given.fresh -= given.looked


class SourceSeqs:
    """The seqs that one source of live_seqs() gave: all of them, and those that came since the last look."""

    def __init__(self) -> None:
        self.all = BitMap()
        self.fresh = BitMap()  # those that were not looked at, or not all handed out
        self.looked = BitMap()  # of them, those that the look under way knows of

    def take(self, source: SeqSource) -> None:
        """Take in what came. Raises what the source raised."""
        came = np.array(source.take(), np.uint64)
        if len(came):
            new = bitmap_of(np.unique(came[came < 1 << 32]).astype(np.uint32)) - self.all
            self.all |= new
            self.fresh |= new

    def move(self, renumbering: Renumbering) -> None:
        """The records have other seqs now."""
        self.all, self.fresh = renumbering.of_set(self.all), renumbering.of_set(self.fresh)


def _seqs(chosen: BitMap) -> Seqs:
    return Seqs(members_of(chosen).astype("<u8").tobytes())
