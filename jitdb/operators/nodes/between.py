"""`between`: the number, or time, is neither below one end nor above the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitdb.common.paths import single
from jitdb.common.values import value_key
from jitdb.errors import QueryError
from jitdb.operators.nodes.compare import Bound, Declared, PlainBound, Range, as_index, written_bound
from jitdb.operators.nodes.describe import describe_bound
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.literals import plain_bound
from jitdb.operators.nodes.operation import Identity, Operation

if TYPE_CHECKING:
    from jitdb.indexes.kinds.numbers import Comparison


def between(index: PathLike | Declared, low: Bound, high: Bound) -> Operation:
    """The records whose number, or time, is from `low` to `high`, both among them; none where `low` is above `high`.

    >>> between("value.sequence", 2, 3)
    between('value.sequence', 2, 3)
    >>> from jitdb.operators import declared_time
    >>> between(declared_time, "2026-11-01", "2026-11-02")
    between('timestamp', '2026-11-01T00:00:00Z', '2026-11-02T00:00:00Z')
    """
    ends = plain_bound(low), plain_bound(high)
    if isinstance(ends[0], Instant) != isinstance(ends[1], Instant):
        raise QueryError(f"the ends of between() are two numbers or two times, not {ends[0]!r} and {ends[1]!r}")
    name = as_index("between", index, ends[0])
    return Between(name if isinstance(name, str) else single(name, "a field of between()"), *ends)


class Between(Range):
    """The number, or time, is from `low` to `high`. A path leads to one: columns have the least of several only."""

    __slots__ = __match_args__ = ("index", "low", "high")
    op = "between"

    low: PlainBound
    high: PlainBound

    def _identify(self) -> Identity:
        ends = [bound.time if isinstance(bound, Instant) else bound for bound in (self.low, self.high)]
        return ("between", self.index, self.is_of_times, *map(value_key, ends))

    @property
    def bounds(self) -> tuple[tuple[Comparison, PlainBound], ...]:
        return ("gte", self.low), ("lte", self.high)

    def __repr__(self) -> str:
        return f"between({self._described_index()}, {describe_bound(self.low)}, {describe_bound(self.high)})"

    def written(self) -> str:
        return f"between({self._written_index()}, {written_bound(self.low)}, {written_bound(self.high)})"

    def of_elements(self) -> None:
        return None
