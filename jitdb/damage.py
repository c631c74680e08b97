"""Telling people what damage in the log costs them, once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jitdb.errors import LogCorrupt, LogWarning

if TYPE_CHECKING:
    from jitdb.log.source import LogSource


class DamageReport:
    """What was told of one log."""

    def __init__(self, log: LogSource) -> None:
        self._log = log
        self._told: set[int] = set()  # offsets

    def broken_at(self, offsets: Sequence[int]) -> None:
        """From these offsets on to the ends of their blocks nothing can be found."""
        fresh = sorted(set(offsets) - self._told)
        self._told.update(fresh)
        if fresh:
            warnings.warn(
                f"{self._log.path}: block {fresh[0] // self._log.block_size} is damaged at offset {fresh[0]:,}"
                f"{_more(fresh)}: the records behind it in this block are left out of all answers",
                LogWarning,
                stacklevel=7,
            )


def left_out(faults: Sequence[LogCorrupt], records: int) -> None:
    """These blocks are not what was written."""
    warnings.warn(
        f"{faults[0]}{_more(faults)}. {records:,} records are left out of all answers.", LogWarning, stacklevel=5
    )


def _more(found: Sequence[object]) -> str:
    return f" (and {len(found) - 1:,} more blocks)" if len(found) > 1 else ""
