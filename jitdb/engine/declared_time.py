"""The fields that stand for a record's time and place in every record of a log.

Where nobody named those of the time, they are found in the first records (roles.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from jitdb.common.paths import Path, single
from jitdb.common.times import AUTO, NUMBER, Nanoseconds, time_of_number, unit_and_zone
from jitdb.engine.roles import USUAL
from jitdb.errors import QueryError
from jitdb.indexes.spec import IndexSpec
from jitdb.operators.nodes.compare import Range
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.operation import And, Operation
from jitdb.operators.summaries.arithmetic.calendar import Window

_FIRST: Final = -62_135_596_800 * 10**9  # nanoseconds: the years 1 to 9999
_END: Final = 253_402_300_800 * 10**9


class Times(NamedTuple):
    """The fields that say when a record was made, and how their values are read (the unit: jitdb.common.times)."""

    paths: tuple[Path, ...]
    unit: str

    @property
    def settings(self) -> dict[str, Any]:
        """What a database is opened with to read values so, but for what it does unasked."""
        unit, zone = unit_and_zone(self.unit)
        return ({} if unit == AUTO else {"time_unit": unit}) | ({"log_tz": zone} if zone else {})

    def window(self, operation: Operation) -> Window:
        """The bounds of this time that all records of the operation keep: those of since() and until(), and of
        comparisons beside them.
        """
        core, firsts, lasts = CoreFields(self.paths, (), self.unit), list[Nanoseconds](), list[Nanoseconds]()
        parts = operation.children() if isinstance(operation, And) else (operation,)
        ranges = (part for part in parts if isinstance(part, Range))
        for index, (op, bound) in ((part.index, bound) for part in ranges for bound in part.bounds):
            spec, time = core.compared(index, bound)
            if spec == core.column("timestamp") and _FIRST <= time < _END:
                if op in ("gt", "gte"):
                    firsts.append(time + (op == "gt"))
                else:
                    lasts.append(time - (op == "lt"))
        return Window(max(firsts, default=None), min(lasts, default=None))


class CoreFields:
    """The fields of a database that stand for a record's time and place.

    timestamp: None: `find` finds them among the usual names, and gives None while there is no record
    unit:      how times are read (jitdb.common.times); NUMBER where the declared time is no time
    """

    def __init__(
        self,
        timestamp: tuple[Path, ...] | None,
        sequence: tuple[Path, ...],
        unit: str = AUTO,
        find: Callable[[], tuple[Path, ...] | None] | None = None,
    ) -> None:
        for path in (*sequence, *(timestamp or ())):
            single(path, "a declared time or sequence")
        self.sequence = sequence
        self.unit = unit
        self.named = timestamp
        self._given: tuple[Path, ...] | None = None  # when they were last asked for
        self._changes = 0
        self._find = find
        self._found: tuple[Path, ...] | None = None

    @property
    def timestamp(self) -> tuple[Path, ...]:
        """The fields that say when a record was made."""
        return self.named if self.named is not None else self._look()

    @property
    def times(self) -> Times:
        return Times(self.timestamp, self.unit)

    def _look(self) -> tuple[Path, ...]:
        if self._found is None and self._find is not None:
            self._found = self._find()
        given = self._found or USUAL
        self._changes += self._given not in (None, given)
        self._given = given
        return given

    def changes(self) -> int:
        """How often `timestamp` was found to be other fields than were given before."""
        if self._given is not None and self._found is None:
            self._look()
        return self._changes

    def forget(self) -> None:
        """It is another log now."""
        self._given, self._found = None, None

    def column(self, index: str | Path) -> IndexSpec:
        """The column of "timestamp", of "sequence", or of a field's numbers."""
        if index == "timestamp":
            if self.unit == NUMBER:
                return IndexSpec("column", self.timestamp)
            return IndexSpec("time", self.timestamp, name=self.unit)
        if index == "sequence":
            return IndexSpec("column", self.sequence)
        assert not isinstance(index, str)
        return IndexSpec("column", (index,))

    def compared(
        self, index: str | Path, bound: int | float | Instant, largest: bool = False
    ) -> tuple[IndexSpec, Nanoseconds]:
        """The column that answers a comparison, and the number to compare with: nanoseconds, where times are compared.

        A number is compared with the declared time as a time, and with a field as a number. Raises QueryError.
        """
        is_time = self.unit != NUMBER
        if isinstance(bound, Instant):
            if is_time and (index == "timestamp" or self.timestamp == (index,)):
                return self.column("timestamp"), bound.time
            if isinstance(index, str):
                raise QueryError(f"the declared time is a number here, and {bound!r} a time", remedy="compare numbers")
            return IndexSpec("time", (index,), name=self.unit if is_time else AUTO, largest=largest), bound.time
        if is_time and index == "timestamp":
            time = time_of_number(bound, self.unit)
            assert time is not None  # no question holds NaN
            return self.column("timestamp"), time
        return self.column(index)._replace(largest=largest), bound
