"""The records at seqs of an answer, which the log may have overtaken: pages and feeds both go this way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from jitdb.engine.manager import IndexManager
from jitdb.engine.records import Records
from jitdb.errors import IndexDamaged, LogCorrupt, LogError, LogSuperseded
from jitdb.indexes.kinds.roaring import bitmap_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Located(NamedTuple):
    """Records of an answer, and where those of them lie that are still there."""

    seqs: NDArray[np.uint32]
    live: NDArray[np.uint32]
    offsets: NDArray[np.int64]


def located(
    manager: IndexManager, records: Records, choose: Callable[[], NDArray[np.uint32]], cancel: threading.Event | None
) -> Located | None:
    """The records that `choose()` names, with the lock held; None when the question must be asked again.

    Then these seqs mean nothing any more: the log is another one, or was compacted; or an index was damaged.
    """
    try:
        with manager.lock:
            if manager.changed(records):
                return None
            records.note_deletions()
            seqs = choose()
            live = records.live_among(seqs)
            offsets = records.offsets_of(live)
        return None if manager.changed(records) else Located(seqs, live, offsets)  # offsets are answers, too
    except LogSuperseded:
        records.log.refresh()
    except IndexDamaged as damage:
        manager.drop_damaged(damage, cancel)
    return None


def decoded(
    manager: IndexManager, records: Records, seqs: NDArray[np.uint32], offsets: NDArray[np.int64]
) -> list[Any] | None:
    """The records; None when the question must be asked again: some are deleted, damaged, or the log is another."""
    try:
        found = records.read(offsets)
    except LogCorrupt as fault:
        if not manager.changed(records):
            manager.set_aside(fault)
        return None
    except IndexDamaged as damage:
        manager.drop_damaged(damage, None, records)
        return None
    except (LogError, OSError):
        if manager.changed(records):
            return None  # it was read while it changed
        raise
    if manager.changed(records):
        return None
    gone = [number for number, record in enumerate(found) if record is None]
    if gone:
        with manager.lock:
            records.add_deleted(bitmap_of(seqs[gone]))
        return None
    return [records.decode(record, offset) for record, offset in zip(found, offsets.tolist(), strict=True)]  # type: ignore[arg-type]
