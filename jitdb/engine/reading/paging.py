"""From an answer to its records: one page, or one after the other of an answer that stays as it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pyroaring import BitMap

from jitdb.engine.answering.answer import Answer
from jitdb.engine.checks import EVERYTHING
from jitdb.engine.manager import Upkeep
from jitdb.engine.reading.page import Page
from jitdb.engine.records import Records, gather
from jitdb.errors import IndexDamaged, LogCorrupt, LogError, LogSuperseded
from jitdb.indexes.kinds.offsets import load_offsets
from jitdb.indexes.kinds.remap import Renumbering
from jitdb.indexes.kinds.roaring import bitmap_of, members_of
from jitdb.operators.database import AsOf
from jitdb.operators.nodes.operations import Operation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.segment import Segment


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question and how its answer shall come. All checked already."""

    operation: Operation
    descending: bool
    as_offsets: bool
    arrival: bool
    as_of: AsOf
    cancel: threading.Event | None


def one_page(upkeep: Upkeep, wanted: Wanted, start: int, limit: int | None) -> Page:
    """At most `limit` answers (all, if None) after the first `start`."""
    begin = time.perf_counter()

    def look(end: int) -> tuple[Records, int, NDArray[np.uint32], NDArray[np.int64]]:
        answer = upkeep.answer(wanted.operation, upkeep.records.horizon(wanted.as_of, end))
        seqs = answer.page(start, limit, wanted.descending, wanted.arrival)
        return upkeep.records, answer.total, seqs, upkeep.records.offsets_of(seqs)

    while True:
        records, total, seqs, offsets = upkeep.ask(wanted.operation, not wanted.arrival, wanted.cancel, look)
        data = offsets.tolist() if wanted.as_offsets else decoded(upkeep, records, seqs, offsets)
        if data is not None:
            return Page(data, total, start + len(data), 1e3 * (time.perf_counter() - begin))


def all_pages(upkeep: Upkeep, wanted: Wanted, start: int, limit: int) -> Iterator[Page]:
    """Pages of the answer as it stands when the first one is asked for; records deleted since are left out.

    Raises LogError where the log turns out to be another one meanwhile; one that was compacted is still the same.
    """
    begin = time.perf_counter()
    reading = _Reading(upkeep, wanted, start)
    while reading.is_unfinished:
        data = reading.next(limit)
        if data:
            yield Page(data, reading.total, reading.passed, 1e3 * (time.perf_counter() - begin))
            begin = time.perf_counter()


class _Held(NamedTuple):
    """An answer, and the records that its seqs speak of."""

    records: Records
    answer: Answer
    identity: bytes
    generation: int
    places: list[Segment]  # where those records lie


class _Reading:
    """An answer that is read on and on, while the log may change under it."""

    def __init__(self, upkeep: Upkeep, wanted: Wanted, start: int) -> None:
        self._upkeep = upkeep
        self._wanted = wanted
        self._start = start  # in the answer in hand
        self._before = 0  # answers before it
        self._held = self._ask()
        self.total = self._held.answer.total

    @property
    def is_unfinished(self) -> bool:
        return self._start < self._held.answer.total

    @property
    def passed(self) -> int:
        """Answers that were read or skipped."""
        return self._before + self._start

    def next(self, limit: int) -> list[Any] | None:
        """The next records; None when it must be called again."""
        upkeep, wanted, records = self._upkeep, self._wanted, self._held.records
        if upkeep.changed(records):
            self._go_on()
            return None
        try:
            with upkeep.state:
                if upkeep.changed(records):
                    return None
                records.note_deletions()
                seqs = self._held.answer.page(self._start, limit, wanted.descending, wanted.arrival)
                live = records.live_among(seqs)
                offsets = records.offsets_of(live)
        except LogSuperseded:
            records.log.refresh()
            return None
        except IndexDamaged as damage:
            upkeep.mend(damage, wanted.cancel)
            self._go_on()
            return None
        data = offsets.tolist() if wanted.as_offsets else decoded(upkeep, records, live, offsets)
        if data is not None:  # else some were deleted just now: look again
            self._start += len(seqs)
        return data

    def _ask(self) -> _Held:
        upkeep, wanted = self._upkeep, self._wanted

        def look(end: int) -> _Held:
            answer = upkeep.answer(wanted.operation, upkeep.records.horizon(wanted.as_of, end))
            answer.page(0, self._start, wanted.descending, wanted.arrival)  # from now on it is known which are skipped
            return self._hold(answer)

        return upkeep.ask(wanted.operation, not wanted.arrival, wanted.cancel, look)

    def _hold(self, answer: Answer) -> _Held:
        log = self._upkeep.records.log
        return _Held(self._upkeep.records, answer, log.identity, log.generation, self._upkeep.records.offset_segments())

    def _go_on(self) -> None:
        """Go on with an answer of what is still to come.

        What orders it, or tells where its records lie, was built again, or the records have other seqs. Raises LogError
        where it is not known which.
        """
        upkeep, wanted, held = self._upkeep, self._wanted, self._held
        rest = held.answer.rest(self._start, wanted.descending, wanted.arrival)

        def look(end: int) -> _Held:
            return self._hold(Answer(self._moved(rest), upkeep.declared()))

        self._held = upkeep.ask(EVERYTHING, not wanted.arrival, wanted.cancel, look)
        self._before += self._start
        self._start = 0

    def _moved(self, seqs: BitMap) -> BitMap:
        """Those of these records of the answer in hand that are still there, by the seqs that they have now."""
        held, log = self._held, self._held.records.log
        if self._upkeep.records is held.records:
            return seqs
        if log.identity == held.identity and log.generation == held.generation:
            with suppress(IndexDamaged, OSError):  # what told where they lie may have been dropped
                offsets = gather(held.places, load_offsets, members_of(seqs), np.int64)
                return self._upkeep.records.seqs_at(offsets)
        removals = log.removals(held.generation)  # by compactions of that log
        if not removals:
            raise LogError(
                "the log was truncated, replaced or damaged while its records were read page by page",
                remedy="ask again",
                path=log.path,
            )
        return Renumbering(removals).of_set(seqs)


def decoded(upkeep: Upkeep, records: Records, seqs: NDArray[np.uint32], offsets: NDArray[np.int64]) -> list[Any] | None:
    """The records; None when the question must be asked again: some are deleted, damaged, or the log is another."""
    try:
        found = records.read(offsets)
    except LogCorrupt as fault:
        if not upkeep.changed(records):
            upkeep.set_aside(fault)
        return None
    except IndexDamaged as damage:
        upkeep.mend(damage, None, records)
        return None
    except (LogError, OSError):
        if upkeep.changed(records):
            return None  # it was read while it changed
        raise
    if upkeep.changed(records):
        return None
    gone = [number for number, record in enumerate(found) if record is None]
    if gone:
        with upkeep.state:
            records.add_deleted(bitmap_of(seqs[gone]))
        return None
    return [records.decode(record, offset) for record, offset in zip(found, offsets.tolist(), strict=True)]  # type: ignore[arg-type]
