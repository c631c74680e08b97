"""How many different values a field has: in all records, or in each group."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.paths import Path
from jitdb.display.parts import Display
from jitdb.display.sheet import Sheet
from jitdb.operators.nodes.field_ref import PathLike, as_path, as_single_path
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
from jitdb.operators.summaries.summary import Ranked, View, charted
from jitdb.operators.summaries.value_counts import added

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.operators.summaries.summary import ValuesIn

_NAMES: Final = ("distinct", "count")


class DistinctCount(NamedTuple):
    """How many different values a group has.

    value: of the field that it was asked by, or a tuple of several
    count: of its records that have a value
    start: of the step, where it was asked by time
    """

    value: Any
    count: int  # type: ignore[assignment]  # not what tuples call so
    distinct: int
    start: datetime | None = None


class DistinctCounts(GroupRows[DistinctCount]):
    """How many different values a field has in each group: see GroupRows.

    missing: records that lack the field, too
    """

    __slots__ = ()

    def sheet(self) -> Sheet:
        return self.grouped(_NAMES, [[row.distinct, row.count] for row in self], None if len(self) == 1 else 0)

    def _needed(self) -> tuple[Path, ...]:
        return (self.path, *self.by)

    def _display(self) -> Display:
        """A chart, where it is by time alone."""
        if not self.every or self.by:
            return super()._display()
        return charted(start_texts(self.starts), [("distinct", [row.distinct for row in self])], self.sheet())


class DistinctAsked(GroupsAsked[DistinctCounts]):
    """How many different values a field has."""

    __slots__ = __match_args__ = ("path", "by", "limit", "every", "tz", "order")
    name = "count_distinct"

    def __init__(
        self,
        path: PathLike,
        by: By = None,
        limit: int | None = None,
        every: Every = None,
        tz: str | None = None,
        order: str | None = None,
    ) -> None:
        fields, step, most, zone = self._grouped(by, every, limit, tz)
        field = as_path(self.name, path) if self._is_whole(fields, step) else as_single_path(self.name, path)
        self._keep(field, fields, most, step, zone, order_of(order, _NAMES, fields))

    @staticmethod
    def _is_whole(by: object, every: object) -> bool:
        """Whether all records are one group: its values are counted as value_counts() does, however many they are."""
        return not by and every is None

    @property
    def values_of(self) -> tuple[Path, ...]:
        return (*self.by, self.path)

    def count(self, view: View, settled: Settled) -> Any:
        return view.ranked((self.path,), 1) if self._is_whole(self.by, self.every) else super().count(view, settled)

    def part(self, view: View, grouping: Grouping) -> Part:
        import numpy as np

        found, total = view.values_in(self.path, grouping.of), len(view.matches)
        missing = total - found.others - int(found.counts.sum())
        counts = np.append(found.counts, np.zeros(len(grouping) - len(found.counts), np.int64))
        return Part(grouping.steps, grouping.places, counts, found, total, missing)

    def summed(
        self, parts: Sequence[Part], to: Sequence[NDArray[np.int64]], groups: int
    ) -> Sequence[tuple[int, int]]:  # fmt: skip
        """How many records, and how many values, each has."""
        import numpy as np

        from jitdb.common.sorting import each_once

        counts, distinct, known = np.zeros(groups, np.int64), np.zeros(groups, np.int64), dict[bytes, int]()
        for part, numbers in zip(parts, to, strict=True):
            np.add.at(counts, numbers, part.counts)
        if len(parts) == 1 and len(parts[0].places) <= groups:  # each pair is there once
            np.add.at(distinct, to[0][: len(parts[0].measured.distinct)], parts[0].measured.distinct)
            return list(zip(counts.tolist(), distinct.tolist(), strict=True))
        pairs = [np.empty((2, 0), np.int64)]
        for part, numbers in zip(parts, to, strict=True):
            held: ValuesIn = part.measured
            own, values = held.pairs()
            if held.keys is not None:
                values = np.array([known.setdefault(key, len(known)) for key in held.keys], np.int64)[values]
            pairs.append(np.stack([numbers[own], values]))
        own, values = np.concatenate(pairs, axis=1)
        size = int(values.max(initial=0)) + 1
        distinct = np.bincount(each_once(own * size + values) // size, minlength=groups)
        return list(zip(counts.tolist(), distinct.tolist(), strict=True))

    def weights(self, found: Any) -> Sequence[int]:
        return [count if self.weighed_by == "count" else distinct for count, distinct in found]

    def result(self, counts: Sequence[Any], settled: Settled) -> DistinctCounts:
        if self._is_whole(self.by, self.every):
            whole: Ranked = added(counts, 1)
            row = DistinctCount(None, whole.total - whole.missing, whole.distinct)
            return DistinctCounts((row,), whole.total, whole.missing, self.path, (), 1, "")
        rows = tuple(
            DistinctCount(value, count, distinct, start)
            for value, (count, distinct), start in self.rows_of(counts, settled)
        )
        return DistinctCounts(rows, *self.about(counts, settled))
