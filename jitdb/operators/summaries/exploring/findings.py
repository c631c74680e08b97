"""What some records have more often than others: a value, or an interval of numbers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from jitdb.common.paths import Path, format_path
from jitdb.common.values import UNDEFINED
from jitdb.display.sheet import as_told, number_text
from jitdb.operators.nodes.field import Field
from jitdb.operators.nodes.operation import Operation, and_


def plain_number(number: float) -> int | float:
    """The same, whole numbers as such."""
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


class Interval(NamedTuple):
    """Numbers of at least `low` and below `high`."""

    low: float
    high: float

    def __str__(self) -> str:
        low, high = number_text(self.low), number_text(self.high)
        return f"< {high}" if self.low == -math.inf else f"≥ {low}" if self.high == math.inf else f"{low} to {high}"


class Finding(NamedTuple):
    """What is more frequent among the records that match than among the others.

    value:    of the field; an Interval of numbers; UNDEFINED: that there is no such field
    here:     how many of the records that match have it, and `there` of the others
    share:    of the records that match; `other_share` of the others
    same_as:  findings that say the same: nearly all records have both, or none
    """

    path: Path
    value: Any
    here: int
    there: int
    share: float
    other_share: float
    same_as: tuple[Finding, ...] = ()

    @property
    def count(self) -> int:  # type: ignore[override]
        return self.here

    @property
    def operation(self) -> Operation:
        """The records that have it, to be asked for."""
        field = Field(self.path)
        if self.value is UNDEFINED:
            return ~field.present()
        if not isinstance(self.value, Interval):
            is_value: Operation = field == self.value
            return is_value
        low = None if self.value.low == -math.inf else field >= plain_number(self.value.low)
        high = None if self.value.high == math.inf else field < plain_number(self.value.high)
        return and_(low, high) if low is not None or high is not None else field.present()

    def __str__(self) -> str:
        return f"{format_path(self.path)} {self.what}"

    @property
    def what(self) -> str:
        """What it says of the field."""
        if self.value is UNDEFINED:
            return "is missing"
        return str(self.value) if isinstance(self.value, Interval) else f"= {as_told(self.value)}"


class Together(NamedTuple):
    """Findings that are true of the same records: how many of these have all of them, and of the others."""

    findings: tuple[Finding, ...]
    here: int
    there: int
    share: float
    other_share: float

    @property
    def operation(self) -> Operation:
        """The records that have all of them."""
        return and_(*(finding.operation for finding in self.findings))
