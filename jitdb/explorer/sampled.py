"""Some records of a log: they tell which fields it has, and which of these people look at; and they are a log of their
own, for what the page shows until a scan is done.

That is asked by the same engine with the same questions, so each part of the page can be had of it, marked as such.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import cached_property
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.paths import ANY, Path
from jitdb.common.values import UNDEFINED, value_at, value_key
from jitdb.display.columns import choose_columns
from jitdb.engine.database import JITDB
from jitdb.engine.roles import Roles, is_time_name, roles_of
from jitdb.errors import EncodeError, RecordTooLarge
from jitdb.log.log import Log
from jitdb.operators.summaries.exploring.facet_fields import FacetFields, facet_fields
from jitdb.operators.summaries.fields import FieldNames

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase


_COLUMNS: Final = 3  # beside time and message
_WITHOUT_MESSAGE: Final = 7  # columns where records have none
_FACETS: Final = 60  # fields that have one
_MANY: Final = 100  # different values
_TOGETHER: Final = 8  # fields of many logs that are asked together


class Sampled:
    """At most `count` records from all over the log, or logs."""

    def __init__(self, db: AnyDatabase, count: int) -> None:
        self.records: list[Any] = db.sample(count)
        self._of, self._times = db, db.times
        self._folder = TemporaryDirectory(prefix="jitdb-sample-", ignore_cleanup_errors=True)
        self._opened: JITDB | None = None
        self._lock = threading.Lock()

    @cached_property
    def names(self) -> FieldNames:
        """The fields, and their values, for completion."""
        return FieldNames(lambda _: self.records, lambda: None)

    @cached_property
    def roles(self) -> Roles:
        """The fields that say when, how bad, and what."""
        return roles_of(self.records)

    @cached_property
    def columns(self) -> list[Path]:
        """The most telling fields, beside the time."""
        roles = self.roles
        known = [path for path in (roles.level, roles.message) if path is not None]
        left_out = {*known, roles.time, *self._times.paths}
        most = _WITHOUT_MESSAGE if roles.message is None else _COLUMNS + len(known)
        found = choose_columns(self.records, most + 1)
        others = [path for path in found if path not in left_out and not is_time_name(path)]
        return [*known, *others] if roles.message is None else [*known[:-1], *others[:1], known[-1]]

    @cached_property
    def facet_fields(self) -> FacetFields:
        """The fields that are worth counting, the level first."""
        found, level = facet_fields(self.records, self._of.is_time), self.roles.level
        order = found.order if level not in found.order else (level, *(path for path in found.order if path != level))
        return FacetFields(found.values, found.numbers, found.unique, order).without(order[_FACETS:])

    @cached_property
    def facet_batches(self) -> list[list[Path]]:
        """Those fields as they are asked together; the last of these lists has those with many values.

        Of many logs few together, those first that most records have.
        """
        fields = self.facet_fields
        seen: dict[Path, list[Any]] = {path: [] for path in fields.order}
        for record in self.records:
            for path, found in seen.items():
                value = value_at(record, path)
                found += value if ANY in path and isinstance(value, list) else [] if value is UNDEFINED else [value]
        many = [path for path in fields.values if len(set(map(value_key, seen[path]))) > _MANY]
        soon = [path for path in fields.order if path not in many]
        if isinstance(self._of, JITDB):
            return [soon, many]
        soon.sort(key=lambda path: -len(seen[path]))
        return [*(soon[at : at + _TOGETHER] for at in range(0, len(soon), _TOGETHER)), many]

    @property
    def db(self) -> JITDB:
        """They as a database."""
        with self._lock:
            self._opened = self._opened or self._open()
            return self._opened

    def _open(self) -> JITDB:
        log = Log(FilePath(self._folder.name) / "sample.log", codec="msgpack")
        for record in self.records:
            with suppress(EncodeError, RecordTooLarge):
                log.append(record)
        log.flush()
        named: list[Any] = [list(path) for path in self._times.paths]
        db = JITDB(log, "memory", timestamp=named, **self._times.settings, progress=False, threads=1)
        db.warns_of_questions = False
        return db

    def close(self) -> None:
        """Remove what is on disk of them."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
            self._folder.cleanup()
