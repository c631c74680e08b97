"""From an answer to its records: one page, or one after the other of an answer that stays as it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitdb.answer import Answer
from jitdb.checks import EVERYTHING
from jitdb.errors import IndexDamaged, LogCorrupt, LogError
from jitdb.indexes.roaring import bitmap_of
from jitdb.operators.operations import Operation
from jitdb.page import Page
from jitdb.records import Records
from jitdb.upkeep import Upkeep

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question and how its answer shall come. All checked already."""

    operation: Operation
    descending: bool
    as_offsets: bool
    arrival: bool
    cancel: threading.Event | None


def one_page(upkeep: Upkeep, wanted: Wanted, start: int, limit: int | None) -> Page:
    """At most `limit` answers (all, if None) after the first `start`."""
    begin = time.perf_counter()

    def look(end: int) -> tuple[Records, int, NDArray[np.uint32], NDArray[np.int64]]:
        answer = upkeep.answer(wanted.operation, end)
        seqs = answer.page(start, limit, wanted.descending, wanted.arrival)
        return upkeep.records, answer.total, seqs, upkeep.records.offsets_of(seqs)

    while True:
        records, total, seqs, offsets = upkeep.ask(wanted.operation, not wanted.arrival, wanted.cancel, look)
        data = offsets.tolist() if wanted.as_offsets else _decoded(upkeep, records, seqs, offsets)
        if data is not None:
            return Page(data, total, start + len(data), 1e3 * (time.perf_counter() - begin))


def all_pages(upkeep: Upkeep, wanted: Wanted, start: int, limit: int) -> Iterator[Page]:
    """Pages of the answer as it stands when the first one is asked for; records deleted since are left out.

    Raises LogError where the log turns out to be another one meanwhile.
    """

    def look(end: int) -> tuple[Records, Answer]:
        return upkeep.records, upkeep.answer(wanted.operation, end)

    begin = time.perf_counter()
    records, answer = upkeep.ask(wanted.operation, not wanted.arrival, wanted.cancel, look)
    total, passed, begun = answer.total, 0, False  # `passed`: answers that came before those of `answer`
    while start < answer.total:
        try:
            with upkeep.state:
                if upkeep.changed(records):
                    raise LogError(
                        "the log was truncated, replaced or damaged while its records were read page by page: "
                        "ask again",
                        path=records.log.path,
                    )
                records.note_deletions()
                seqs = answer.page(start, limit, wanted.descending, wanted.arrival)
                live = records.live_among(seqs)
                offsets = records.offsets_of(live)
        except IndexDamaged as damage:
            upkeep.mend(damage, wanted.cancel)
            if not begun:
                records, answer = upkeep.ask(wanted.operation, not wanted.arrival, wanted.cancel, look)
                total = answer.total
                continue
            # What orders the answer, or tells where its records lie, is built again, and deleted records stand
            # elsewhere in it then: go on with an answer of those that are still to come.
            rest = answer.rest(start, wanted.descending, wanted.arrival)
            upkeep.ask(EVERYTHING, not wanted.arrival, wanted.cancel, lambda end: None)
            with upkeep.state:
                answer = Answer(rest - records.deleted, upkeep.declared())
            passed, start = passed + start, 0
            continue
        begun = True
        data = offsets.tolist() if wanted.as_offsets else _decoded(upkeep, records, live, offsets)
        if data is None:
            continue  # some were deleted just now: look again
        start += len(seqs)
        if data:
            yield Page(data, total, passed + start, 1e3 * (time.perf_counter() - begin))
        begin = time.perf_counter()


def _decoded(
    upkeep: Upkeep, records: Records, seqs: NDArray[np.uint32], offsets: NDArray[np.int64]
) -> list[Any] | None:
    """The records; None when the question must be asked again: some are deleted, damaged, or the log is another."""
    try:
        found = records.read(offsets)
    except LogCorrupt as fault:
        if not upkeep.changed(records):
            upkeep.set_aside(fault)
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
