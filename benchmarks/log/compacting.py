"""Compaction: copying the log, and taking its indexes over instead of building them again."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import jitdb
from jitdb import Log
from jitdb.operators import field

from ..data import FOLDER, big_log
from ..measure import Figure, seconds
from ..questions import POST
from .writing import remove

_LOG = FOLDER / "compacted.bipf"
_EACH = 10  # one record of so many is deleted
_FIELDS = ("value.content.type", "value.author", "value.content.vote.link", "value.content.root", "key")


def run() -> list[Figure]:
    remove(_LOG)
    shutil.copyfile(big_log(), _LOG)
    questions = [POST, *(field(name) == "x" for name in _FIELDS), field("value.sequence") > 5]
    try:
        with jitdb.open(_LOG) as db:
            log = db.log
            assert isinstance(log, Log)
            db.prepare(*questions)
            offsets = db.all(sort_by="arrival", as_offsets=True)
            deleting = seconds(lambda: _delete(log, offsets[::_EACH]))
            db.count(POST)
            size = log.durable_end
            copied = log.compact()
            taken = seconds(lambda: db._manager.remap())
            db.prepare(*questions)
        with jitdb.open(_LOG, "memory", read_only=True) as fresh:
            built = seconds(lambda: fresh.prepare(*questions))
        plain = seconds(_copier())
    finally:
        remove(_LOG)
    count = len(offsets) // _EACH
    return [
        Figure(f"deleting {count:,} records, flushed", count / deleting, "/s", better="more"),
        Figure(
            f"compaction, a record in {_EACH} deleted, fsync included", size / copied.seconds / 1e6, "MB/s",
            "copying the file, fsync", size / plain / 1e6, better="more",
        ),
        Figure(
            f"taking {len(_FIELDS) + 4} indexes over after it", 1e3 * taken, "ms", "building them again", 1e3 * built
        ),
    ]  # fmt: skip


def _delete(log: Log, offsets: list[int]) -> None:
    for offset in offsets:
        log.delete(offset)
    log.flush()


def _copier() -> Callable[[], None]:
    import os

    target = FOLDER / "copied.tmp"

    def copy() -> None:
        with open(big_log(), "rb") as source, open(target, "wb") as file:
            shutil.copyfileobj(source, file, 4 << 20)
            file.flush()
            os.fsync(file.fileno())
        target.unlink()

    return copy
