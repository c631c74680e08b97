"""Some records of a log as a log of its own, for what the page shows until a scan is done.

It is asked by the same engine with the same questions, so each part of the page can be had of it, marked as such.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from jitdb.common.times import Unit
from jitdb.engine.database import JITDB
from jitdb.errors import EncodeError, RecordTooLarge
from jitdb.log.log import Log
from jitdb.operators.summaries.exploring.facet_fields import FacetFields, facet_fields
from jitdb.operators.summaries.fields import Fields, fields_of

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase


class Sampled:
    """At most `count` records from all over the log, or logs."""

    def __init__(self, db: AnyDatabase, count: int) -> None:
        self.records: list[Any] = db.sample(count)
        self._of, self._times = db, db.times
        self._folder = TemporaryDirectory(prefix="jitdb-sample-")
        self._opened: JITDB | None = None

    @cached_property
    def fields(self) -> Fields:
        """Their fields."""
        return fields_of(self.records)

    @cached_property
    def facet_fields(self) -> FacetFields:
        """Those that are worth counting."""
        return facet_fields(self.records, self._of.is_time)

    @cached_property
    def db(self) -> JITDB:
        """They as a database."""
        log = Log(FilePath(self._folder.name) / "sample.log", codec="msgpack")
        for record in self.records:
            with suppress(EncodeError, RecordTooLarge):
                log.append(record)
        log.flush()
        paths, unit = self._times
        self._opened = JITDB(
            log, "memory", timestamp=list(map(list, paths)), time_unit=cast(Unit, unit), progress=False, threads=1
        )
        self._opened.warns_of_questions = False
        return self._opened

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
        self._folder.cleanup()
