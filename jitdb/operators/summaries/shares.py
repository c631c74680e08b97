"""Of how many records a condition is true: of all, or in each group. The share of failures over time, for one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.paths import Path
from jitdb.display.parts import Display
from jitdb.display.sheet import Sheet
from jitdb.errors import QueryError
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.summaries.groups import (
    By,
    Every,
    Grouping,
    GroupRows,
    GroupsAsked,
    Part,
    Settled,
    order_of,
    start_texts,
)
from jitdb.operators.summaries.summary import View, charted
from jitdb.operators.text.expression import format_expression
from jitdb.operators.text.taken import operation_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NAMES: Final = ("matching", "share", "count")


class GroupShare(NamedTuple):
    """Of how many records of a group the condition is true.

    value: of the field that it was asked by, or a tuple of several
    count: of its records
    start: of the step, where it was asked by time
    """

    value: Any
    count: int  # type: ignore[assignment]  # not what tuples call so
    matching: int
    start: datetime | None = None

    @property
    def share(self) -> float | None:
        """From 0 to 1; None of no records."""
        return self.matching / self.count if self.count else None


class Shares(GroupRows[GroupShare]):
    """Of which share of its records a condition is true, in each group: see GroupRows.

    matching: of how many of the `total` records it is
    """

    __slots__ = __match_args__ = (
        "rows",
        "total",
        "missing",
        "path",
        "by",
        "distinct",
        "every",
        "matching",
        "condition",
    )

    matching: int
    condition: Operation

    def sheet(self) -> Sheet:
        cells = [[row.matching, row.count, row.share] for row in self]
        sheet = self.grouped(("matching", "count", "share"), cells, None if len(self) == 1 else 2)
        about = {"condition": format_expression(self.condition), **sheet.about, "matching": self.matching}
        return sheet._replace(about=about)

    def _said(self) -> str:
        return f"{self.matching:,} of {super()._said()}"

    def _display(self) -> Display:
        """A chart of percentages, where it is by time alone."""
        if not self.every or self.by:
            return super()._display()
        percent = [round(100 * (row.share or 0), 2) for row in self]
        return charted(start_texts(self.starts), [("percent", percent)], self.sheet())


class ShareAsked(GroupsAsked[Shares]):
    """Of how many records a condition is true."""

    __slots__ = __match_args__ = ("condition", "by", "limit", "every", "tz", "order")
    name = "share"
    path = ()

    condition: Operation

    def __init__(
        self,
        condition: str | Operation,
        by: By = None,
        limit: int | None = None,
        every: Every = None,
        tz: str | None = None,
        order: str | None = None,
    ) -> None:
        fields, step, most, zone = self._grouped(by, every, limit, tz)
        operation = operation_of(condition, "share() takes an operation")
        if operation.unresolved:
            raise QueryError(
                "share() takes a condition that is known before it is asked: no deferred(), no live_seqs()"
            )
        self._keep(operation, fields, most, step, zone, order_of(order, _NAMES, fields))

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.by

    def part(self, view: View, grouping: Grouping) -> Part:
        counts = self._counted(view, grouping)
        matching = self._counted(view.held, grouping)
        return Part(grouping.steps, grouping.places, counts[2:], matching, len(view.matches), int(counts[0]))

    def _counted(self, view: View, grouping: Grouping) -> NDArray[np.int64]:
        """How many records are in each group; before these, how many are LACKING, or OTHERS."""
        import numpy as np

        counts = np.zeros(len(grouping) + 2, np.int64)
        for part in view.parts():
            own = np.bincount(grouping.of(part) + 2, minlength=len(grouping) + 2)
            own[: len(counts)] += counts
            counts = own
        return counts

    def summed(
        self, parts: Sequence[Part], to: Sequence[NDArray[np.int64]], groups: int
    ) -> Sequence[tuple[int, int]]:  # fmt: skip
        """How many records each has, and of how many of these the condition is true."""
        import numpy as np

        counts, matching = np.zeros((2, groups), np.int64)
        for part, numbers in zip(parts, to, strict=True):
            np.add.at(counts, numbers, part.counts)
            np.add.at(matching, numbers, part.measured[2:])
        return list(zip(counts.tolist(), matching.tolist(), strict=True))

    def weights(self, found: Any) -> Sequence[float | None]:
        rows = (GroupShare(None, *each) for each in found)
        return [getattr(row, self.weighed_by) for row in rows]

    def about(self, parts: Sequence[Part], settled: Settled) -> tuple[Any, ...]:
        matching = sum(int(part.measured.sum()) for part in parts)
        return (*super().about(parts, settled), matching, self.condition)

    def result(self, counts: Sequence[Part], settled: Settled) -> Shares:
        rows = tuple(
            GroupShare(value, count, matching, start)
            for value, (count, matching), start in self.rows_of(counts, settled)
        )
        return Shares(rows, *self.about(counts, settled))
