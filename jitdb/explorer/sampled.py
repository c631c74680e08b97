"""Some records of a log as a log of its own, for what the page shows until a scan is done.

It is asked by the same engine with the same questions, so each part of the page can be had of it, marked as such.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import cached_property
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, cast

from jitdb.common.paths import ANY, Path
from jitdb.common.times import Unit
from jitdb.common.values import MAP, kind_of, value_at, value_key
from jitdb.engine.database import JITDB
from jitdb.errors import EncodeError, RecordTooLarge
from jitdb.log.log import Log
from jitdb.operators.summaries.fields import Fields, fields_of

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase

_FEW: Final = 24  # different numbers, up to which they are values as text is
_LONG: Final = 80  # characters of a text that is no value to choose by


class Sampled:
    """At most `count` records from all over the log, or logs."""

    def __init__(self, db: AnyDatabase, count: int) -> None:
        self.records: list[Any] = db.sample(count)
        self._times = db.times
        self._folder = TemporaryDirectory(prefix="jitdb-sample-")
        self._opened: JITDB | None = None

    @cached_property
    def fields(self) -> Fields:
        """Their fields."""
        return fields_of(self.records)

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


def facet_paths(records: list[Any], fields: Fields, level: Path | None, times: tuple[Path, ...]) -> dict[Path, str]:
    """The fields whose values are worth counting, the level first, each with what it holds: "values", or "numbers";
    "unique" where nearly every record has a value of its own, by which nobody chooses.
    """
    found: dict[Path, str] = {}
    for field in fields:
        kinds = field.kinds
        if "map" in kinds or "array" in kinds or field.path in times or ANY in field.path[:-1]:
            continue
        values = [value for record in records for value in _values_at(record, field.path)]
        counts = Counter(map(value_key, values))
        numbers = sum(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        long = sum(isinstance(value, str) and len(value) > _LONG for value in values)
        if numbers > len(values) / 2 and len(counts) > _FEW:
            found[field.path] = "numbers"
        elif (len(values) > 20 and len(counts) > len(values) / 2) or long > len(values) / 2:
            found[field.path] = "unique"
        else:
            found[field.path] = "values"
    first = [level] if level in found else []
    return {path: found[path] for path in [*first, *found]}


def _values_at(record: Any, path: Path) -> list[Any]:
    value = value_at(record, path)
    several = value if ANY in path and isinstance(value, list) else [value]
    return [each for each in several if kind_of(each) != MAP and isinstance(each, (str, int, float, bool))]
