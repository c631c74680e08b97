"""`gt`, `gte`, `lt`, `lte` and `between`: the number, or time, is above or below another one, or from one to another.

They compare any field that holds numbers or times, given as a path, or `declared_time` or `declared_sequence`: what a
record declares in the fields that the database takes for these. The ancestor calls these `"timestamp"` and
`"sequence"`; a field that is itself called so, at the top of the record, is written as a tuple: `("timestamp",)`.
Records without a number there are in none of the answers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jitdb.common.arguments import is_list
from jitdb.common.paths import ANY, Path, single
from jitdb.common.times import time_of
from jitdb.common.values import NUMBER, UNDEFINED, kind_of, number_of
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.indexes.spec import Requirement
from jitdb.operators.nodes.equal import IsIn, equal
from jitdb.operators.nodes.field_ref import PathLike, as_path, as_single_path
from jitdb.operators.nodes.instants import Instant, day_of
from jitdb.operators.nodes.levels import CompareLevel, check_spelling, rank_of_name
from jitdb.operators.nodes.literals import plain_bound, plain_value
from jitdb.operators.nodes.operation import NOTHING, And, Answering, Core, Operation, Or, combine

if TYPE_CHECKING:
    from datetime import date

    from pyroaring import BitMap

    from jitdb.indexes.kinds.numbers import Comparison

#: What a field can be above or below of: a number; or a time, as text (RFC 3339), a datetime or a date.
Bound: TypeAlias = "float | str | date | Instant"

PlainBound: TypeAlias = "int | float | Instant"

DERIVED_INDEXES: Final = ("timestamp", "sequence")

FEW: Final = 32  # values that isin() asks for one by one, from the index that == has

_RELATIONS: Final[dict[Comparison, Callable[[Any, Any], bool]]] = {
    "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le,
}  # fmt: skip
_SIGNS: Final[dict[Comparison, str]] = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


class Declared:
    """A number that records declare, to be compared. Not a field: the database says which fields it is taken from.

    >>> (declared_time >= 1_600_000_000_000) & (declared_sequence < 10)
    and_(gte(1600000000000, 'timestamp'), lt(10, 'sequence'))
    """

    __slots__ = ("index", "name")

    def __init__(self, name: str, index: str) -> None:
        self.name = name
        self.index = index

    def __lt__(self, value: Bound) -> Operation:
        return _compare("lt", value, self)

    def __le__(self, value: Bound) -> Operation:
        return _compare("lte", value, self)

    def __gt__(self, value: Bound) -> Operation:
        return _compare("gt", value, self)

    def __ge__(self, value: Bound) -> Operation:
        return _compare("gte", value, self)

    def __repr__(self) -> str:
        return self.name


#: When a record was made: the field(s) that the database knows as `timestamp`, the earliest time in them.
declared_time: Final = Declared("declared_time", "timestamp")

#: Which record of its author it is: the field that the database knows as `sequence`.
declared_sequence: Final = Declared("declared_sequence", "sequence")


def gt(value: Bound, index: PathLike | Declared) -> Operation:
    """The records whose number, or time, is above `value`.

    >>> gt(1_600_000_000_000, "timestamp")
    gt(1600000000000, 'timestamp')
    """
    return _compare("gt", value, index)


def gte(value: Bound, index: PathLike | Declared) -> Operation:
    """The records whose number, or time, is `value` or above.

    >>> gte(10, "sequence")
    gte(10, 'sequence')
    """
    return _compare("gte", value, index)


def lt(value: Bound, index: PathLike | Declared) -> Operation:
    """The records whose number, or time, is below `value`.

    >>> lt(0, "value.content.vote.value")
    lt(0, 'value.content.vote.value')
    """
    return _compare("lt", value, index)


def lte(value: Bound, index: PathLike | Declared) -> Operation:
    """The records whose number, or time, is `value` or below.

    >>> lte(1.5, ("timestamp",))
    lte(1.5, ('timestamp',))
    """
    return _compare("lte", value, index)


def between(index: PathLike | Declared, low: Bound, high: Bound) -> Operation:
    """The records whose number, or time, is from `low` to `high`, both among them; none where `low` is above `high`.

    >>> between("value.sequence", 2, 3)
    between('value.sequence', 2, 3)
    >>> between(declared_time, "2026-11-01", "2026-11-02")
    between('timestamp', '2026-11-01T00:00:00Z', '2026-11-02T23:59:59.999999999Z')
    """
    if all(isinstance(end, str) and rank_of_name(end) is not None for end in (low, high)):
        path = as_single_path("between", index)
        return combine(And, (_compare("gte", low, path), _compare("lte", high, path)))
    ends = plain_bound(low), _last(high)
    if isinstance(ends[0], Instant) != isinstance(ends[1], Instant):
        raise QueryError(f"the ends of between() are two numbers or two times, not {ends[0]!r} and {ends[1]!r}")
    name = _index("between", index, ends[0])
    return Between(name if isinstance(name, str) else single(name, "a field of between()"), *ends)


def _compare(op: Comparison, value: object, index: object) -> Operation:
    if isinstance(value, str) and isinstance(index, (int, float)):
        raise QueryError(f"the number comes first, then the index: {op}({shown(index)}, {shown(value)})")
    if isinstance(value, str) and rank_of_name(value) is not None and not _is_declared(index):
        return CompareLevel(as_path(op, index), op, value)
    check_spelling(value)
    bound = _last(value) if op in ("gt", "lte") else plain_bound(value)
    return Compare(_index(op, index, bound), op, bound)


def _last(value: Any) -> PlainBound:
    """What is above, or up to, what a user says: a date alone is the whole day."""
    day = day_of(value)
    return plain_bound(value) if day is None else day[1]


def equal_or_within(path: Path, value: Any) -> Operation:
    """What `==` asks: whether the field holds this value; of a date alone, whether it is a time of that day.

    >>> equal_or_within(("date",), "2015-12-01")
    between('date', '2015-12-01T00:00:00Z', '2015-12-01T23:59:59.999999999Z')
    """
    day = None if ANY in path else day_of(value)  # of several values the column knows the extremes only
    return equal(path, value) if day is None else Between(path, *day)


def isin(path: PathLike, values: Iterable[Any]) -> Operation:
    """The records whose field holds one of `values`; of none, no records. A date alone is its day, as in `==`.

    >>> isin("value.content.type", ["post", "about"])
    or_(equal('value.content.type', 'post'), equal('value.content.type', 'about'))
    >>> isin("user.id", range(100)) == isin("user.id", reversed(range(100)))
    True
    """
    keys = as_path("isin", path)
    if not is_list(values):
        raise QueryError(f"isin() takes a list of values, not {shown(values)}")
    given = list(values)
    if len(given) <= FEW:
        return combine(Or, tuple(equal_or_within(keys, value) for value in given)) if given else NOTHING
    others = [] if ANY in keys else [value for value in given if value is UNDEFINED or day_of(value) is not None]
    rest = plain_value([value for value in given if value is not UNDEFINED and (ANY in keys or day_of(value) is None)])
    parts = [equal_or_within(keys, value) for value in others]
    return combine(Or, (*([IsIn(keys, rest)] if rest else []), *parts))


def _is_declared(index: object) -> bool:
    """Whether it stands for what the database derives."""
    return isinstance(index, Declared) or (isinstance(index, str) and index in DERIVED_INDEXES)


def _index(caller: str, index: object, bound: PlainBound) -> str | Path:
    """What the operator compares: the name of an index that the database derives, or a path. Raises QueryError."""
    name = index.index if isinstance(index, Declared) else index
    if not isinstance(name, str) or not _is_declared(name):
        return as_path(caller, name)
    if name == "sequence" and isinstance(bound, Instant):
        raise QueryError(f"a sequence is a number, and {bound!r} a time")
    return name


class Range(Operation):
    """The number, or where the bounds are Instants the time, is within these bounds.

    `index` is the name "timestamp" or "sequence" of an index that the database derives, or the path of a
    field: `"timestamp"` is the derived index, `("timestamp",)` the field of that name.
    """

    __slots__ = ()
    names_value = True

    index: str | Path

    @property
    def bounds(self) -> tuple[tuple[Comparison, PlainBound], ...]:
        """What it is above, what it is below. They are all numbers, or all times."""
        raise NotImplementedError

    @property
    def is_of_times(self) -> bool:
        """Whether it is compared with times."""
        return isinstance(self.bounds[0][1], Instant)

    @property
    def compared(self) -> tuple[str | Path, bool]:
        return self.index, self.is_of_times

    @property
    def paths(self) -> tuple[Path, ...]:
        return () if isinstance(self.index, str) else (self.index,)

    def holds(self, value: Any) -> bool:
        number = time_of(value) if self.is_of_times else number_of(value)
        return kind_of(number) == NUMBER and all(
            _RELATIONS[op](number, bound.time if isinstance(bound, Instant) else bound) for op, bound in self.bounds
        )

    def need(self, core: Core) -> Requirement:
        ((op, bound), *_) = self.bounds
        # Any number is above a bound if the largest is; of one number, it is the smallest too.
        largest = not isinstance(self.index, str) and ANY in self.index and op in ("gt", "gte")
        return Requirement(core.compared(self.index, bound, largest)[0])

    def answer(self, asked: Answering) -> BitMap:
        return asked.in_column(*((op, asked.core.compared(self.index, bound)[1]) for op, bound in self.bounds))


class Compare(Range):
    """The number, or time, is above (gt, gte) or below (lt, lte) `value`."""

    __slots__ = __match_args__ = ("index", "op", "value")
    arguments = ("value", "index")

    op: Comparison
    value: PlainBound

    @property
    def bounds(self) -> tuple[tuple[Comparison, PlainBound], ...]:
        return ((self.op, self.value),)

    @property
    def signs(self) -> tuple[str, str]:  # type: ignore[override]
        return f"{{1}} {_SIGNS[self.op]} {{0}}", ""

    def of_elements(self) -> Operation | None:
        return None if isinstance(self.index, str) else self.changed(index=(*self.index, ANY))


class Between(Range):
    """The number, or time, is from `low` to `high`. A path leads to one: columns have the least of several only."""

    __slots__ = __match_args__ = arguments = ("index", "low", "high")
    op = "between"

    low: PlainBound
    high: PlainBound

    @property
    def bounds(self) -> tuple[tuple[Comparison, PlainBound], ...]:
        return ("gte", self.low), ("lte", self.high)
