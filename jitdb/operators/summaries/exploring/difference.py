"""What some records have more often than others: values, intervals of numbers, and which of these go together.

contrast.py has the statistics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.paths import Path, before_cast, format_path
from jitdb.common.values import UNDEFINED
from jitdb.common.words import counted
from jitdb.display.sheet import Sheet
from jitdb.errors import QueryError, Remedy
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.operation import EVERYTHING, Operation, or_
from jitdb.operators.summaries.exploring.facet_fields import (
    Database,
    FacetFields,
    OfFields,
    chosen_fields,
    named_fields,
)
from jitdb.operators.summaries.exploring.findings import Finding, Interval, Together, plain_number
from jitdb.operators.summaries.summary import Listed, View, limit_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.operators.question import Question
    from jitdb.operators.summaries.arithmetic.calendar import Window
    from jitdb.operators.summaries.exploring.contrast import Settled, Surveyed

FINDINGS: Final = 10  # that are told

_PLAIN: Final = (
    "field", "value", "low", "high", "here", "there", "share", "other_share", "is_missing", "expression", "same_as",
)  # fmt: skip


class Difference(Listed[Finding]):
    """What `matching` of `total` records have more often than the others, by how far the shares are apart.

    together: findings that go together, the most telling first
    compared: how many values and intervals were looked at
    left_out: fields that were not: those of the question, and those of which hardly two records have the same value
    """

    __slots__ = __match_args__ = ("rows", "total", "matching", "together", "compared", "asked", "unique")

    matching: int
    together: tuple[Together, ...]
    compared: int
    asked: tuple[Path, ...]
    unique: tuple[Path, ...]

    @property
    def others(self) -> int:
        """How many records these were compared with."""
        return self.total - self.matching

    @property
    def missing(self) -> int:
        """All records, where none matches; else 0."""
        return 0 if self.matching else self.total

    def sheet(self) -> Sheet:
        rows = [
            [format_path(row.path), row.what, row.here, _percent(row.share), row.there, _percent(row.other_share)]
            for row in self
        ]
        return Sheet(["field", "value", "here", "of these", "there", "of others"], rows, None, {}, self._footer())

    def plain_sheet(self) -> Sheet:
        rows = [list(_plain_finding(row).values()) for row in self]
        about = {
            "matching": self.matching, "others": self.others, "compared": self.compared,
            "together": [
                {
                    "findings": [str(finding) for finding in group.findings],
                    "expression": group.operation.written(), "here": group.here, "there": group.there,
                    "share": group.share, "other_share": group.other_share,
                }
                for group in self.together
            ],
            "asked": list(map(format_path, self.asked)), "unique": list(map(format_path, self.unique)),
        }  # fmt: skip
        return Sheet(_PLAIN, rows, None, about, self._footer())

    def told(self) -> list[str]:
        return [
            f"{_percent(group.share)} of these, and {_percent(group.other_share)} of the others, have all of: "
            + ", ".join(map(str, group.findings))
            for group in self.together
        ]

    def _footer(self) -> str:
        lines = [*self.told(), *([] if len(self) else [self._nothing()])]
        lines += [
            f"{', '.join(map(str, row.same_as))} {'says' if len(row.same_as) == 1 else 'say'} the same as {row}"
            for row in self if row.same_as
        ]  # fmt: skip
        what = counted(self.compared, "value or interval", "values and intervals")
        lines.append(f"{counted(self.matching, 'record', 'records')} against {self.others:,} others; {what} compared")
        if self.asked:
            lines.append(f"not compared, because the question uses them: {', '.join(map(format_path, self.asked))}")
        if self.unique and self.total:
            lines.append(f"nearly unique, not compared: {', '.join(map(format_path, self.unique))}")
        return "\n".join(lines)

    def _nothing(self) -> str:
        """Why there is no finding."""
        if not self.matching:
            return "no record matches: there is nothing to compare"
        if not self.others:
            return "there are no other records to compare with"
        if not self.compared:
            return "there is no field to compare"
        return "nothing is more frequent here than chance would have it"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _plain_finding(row: Finding) -> dict[str, Any]:
    low = high = value = None
    if isinstance(row.value, Interval):
        low, high = (None if math.isinf(end) else plain_number(end) for end in row.value)
    elif row.value is not UNDEFINED:
        value = row.value
    return {
        "field": format_path(row.path), "value": value, "low": low, "high": high, "here": row.here,
        "there": row.there, "share": row.share, "other_share": row.other_share,
        "is_missing": row.value is UNDEFINED, "expression": row.operation.written(),
        "same_as": [str(copy) for copy in row.same_as],
    }  # fmt: skip


# --- what is asked ---------------------------------------------------------------------------------------------------


class DifferenceAsked(OfFields[Difference]):
    """What the records of the question have more often than others.

    against: which others; None: all
    fields:  in which fields; None: those worth it
    limit:   of findings
    condition: that of the question, once it is known
    left:    fields that are left out because it is about them
    """

    __slots__ = __match_args__ = ("against", "fields", "limit", "condition", "left")
    name = "difference"

    against: Operation | None
    limit: int
    condition: Operation | None
    left: tuple[Path, ...]

    def __init__(
        self,
        against: Operation | None = None,
        fields: Sequence[PathLike] | FacetFields | None = None,
        limit: int = FINDINGS,
        condition: Operation | None = None,
        left: tuple[Path, ...] = (),
    ) -> None:
        self._keep(against, named_fields(self.name, fields), limit_of(limit), condition, left)

    @property
    def others(self) -> Operation | None:
        return self.against

    def ready(self, question: Question, database: Database) -> Question:
        condition = question.operation
        if condition == EVERYTHING:
            raise QueryError(
                "a difference is that of some records from others, and the question is about all",
                remedy=Remedy(
                    "db.query('level == \"error\"').difference()", "say which: jitdb diff LOG 'status >= 500'"
                ),
            )
        against = None if self.against is None else database.condition(self.against)
        fields = chosen_fields(database, self.fields, condition)
        about = set(map(before_cast, [*condition.all_paths(), *(() if against is None else against.all_paths())]))
        left = tuple(path for path in (*fields.order, *fields.unique) if before_cast(path) in about)
        asked = self.changed(condition=condition, fields=fields.without(about), left=left)
        return question.changed(operation=EVERYTHING if against is None else or_(condition, against), summary=asked)

    @property
    def surveys(self) -> bool:
        return True

    def survey(self, view: View) -> Surveyed:
        from jitdb.operators.summaries.exploring.contrast import Surveyed, fewest_of

        held = view.held
        matching, total = len(held.matches), len(view.matches)
        least = fewest_of(matching) if view.is_whole else 0
        values = [view.opposed(path, held, least) for path in self.known.values]
        numbers = []
        for path in self.known.numbers:
            here, every = held.cells(path), view.cells(path)
            numbers.append((here, every.coarser(here.shift).without(here) if len(here.places) else every))
        return Surveyed(matching, total - matching, values, numbers)

    def settled(self, surveys: Sequence[Surveyed], window: Window) -> Settled:
        from jitdb.operators.summaries.exploring.contrast import candidates_of

        return candidates_of(self.known, surveys)

    def count(self, view: View, settled: Settled) -> NDArray[np.int64]:
        """How many records have which of the candidates: a bit each, and one for those that match."""
        return view.marked([(found.path, found.held) for found in settled.candidates])

    def result(self, counts: Sequence[NDArray[np.int64]], settled: Settled) -> Difference:
        from jitdb.operators.summaries.exploring.contrast import no_masks, told

        masks = sum(counts[1:], start=counts[0]) if counts else no_masks()
        findings, together = told(settled, masks, self.limit)
        return Difference(
            findings,
            settled.matching + settled.others,
            settled.matching,
            together,
            settled.compared,
            self.left,
            self.known.unique,
        )
