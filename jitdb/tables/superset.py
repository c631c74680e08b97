"""What a condition on columns says of records: operations, each true of all records that a library's own test may keep.

A library's conditions are of cells, and jitdb's operations of what records hold. They are not the same: a column of
doubles has the nearest of an integer beyond 2**53, text in a column may be another value as JSON, and libraries differ
in NaN and null. So an operation that stands for a condition is true of at least the records whose row the condition
keeps. The library tests these rows again, and the answer is its own. What no operation stands for keeps all rows.

A condition and its opposite keep different rows, and none those where it is null. Of each condition both are known, so
that `not` is to swap them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeGuard

import pyarrow as pa

from jitdb.common.times import as_text
from jitdb.errors import QueryError
from jitdb.operators.nodes.compare import gt, gte, lt, lte
from jitdb.operators.nodes.equal import absent, equal, includes
from jitdb.operators.nodes.operation import NOTHING, Operation, and_, not_, or_
from jitdb.operators.nodes.text_match import contains, ends_with, starts_with

if TYPE_CHECKING:
    from jitdb.engine.reading.arrow_tables import KnownColumn

_EXACT: Final = 2.0**53  # integers below are doubles
_MOST: Final = 1000  # values of a list that are asked for one by one
_REPLACED: Final = "\ufffd"  # stands in columns for bytes that are no UTF-8
_STEPS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # nanoseconds


class Time(NamedTuple):
    """A literal that is a time: so many units since 1970, UTC."""

    ticks: int
    unit: str


Literal: TypeAlias = "bool | int | float | str | bytes | Time"


class Kept(NamedTuple):
    """The records that may be kept by a condition, and by its opposite; None: any."""

    true: Operation | None = None
    false: Operation | None = None

    def __and__(self, other: Kept) -> Kept:
        return Kept(_both(self.true, other.true), _either(self.false, other.false))

    def __or__(self, other: Kept) -> Kept:
        return Kept(_either(self.true, other.true), _both(self.false, other.false))

    def __invert__(self) -> Kept:
        return Kept(self.false, self.true)


ANY: Final = Kept()


def _both(one: Operation | None, other: Operation | None) -> Operation | None:
    return and_(one, other) if one is not None and other is not None else one if other is None else other


def _either(one: Operation | None, other: Operation | None) -> Operation | None:
    if one is None or other is None:
        return None
    return or_(one, other) if NOTHING not in (one, other) else other if one == NOTHING else one


def one_of(one: Kept, other: Kept) -> Kept:
    """The condition is one of these, whichever."""
    return Kept(_either(one.true, other.true), _either(one.false, other.false))


def _of_plain_fields(make: Callable[..., Kept]) -> Callable[..., Kept]:
    """Any record, where the column is not of one value a record as it stands there, or no question can be made."""

    @wraps(make)
    def made(column: KnownColumn, *arguments: Any) -> Kept:
        if not all(isinstance(step, (str, int)) for step in column.path):
            return ANY
        try:
            return make(column, *arguments)
        except QueryError:
            return ANY

    return made


# --- conditions ------------------------------------------------------------------------------------------------------


@_of_plain_fields
def compared(column: KnownColumn, sign: str, value: Literal) -> Kept:
    """`column sign value`; the sign is one of == != < <= > >=."""
    if sign == "!=":
        return ~compared(column, "==", value)
    kind = column.type
    if sign == "==":
        return _equal(column, value)
    if pa.types.is_timestamp(kind) and isinstance(value, Time):
        return _above_or_below(column, sign, value, _as_it_is if _is_as_fine(kind, value) else _widened_time)
    if is_number(kind) and _is_finite(value):
        return _above_or_below(column, sign, value, _as_it_is if _is_exact(kind, value) else _widened)
    return ANY


def _equal(column: KnownColumn, value: Literal) -> Kept:
    kind, path = column.type, column.path
    if pa.types.is_timestamp(kind) and isinstance(value, Time):
        within = compared(column, ">=", value) & compared(column, "<=", value)
        return within if _is_as_fine(kind, value) else within._replace(false=None)
    if is_number(kind) and _is_finite(value):
        found = equal(path, value)
        if _is_exact(kind, value):
            return Kept(found, not_(found))
        return Kept(and_(gte(_widened(value, -1), path), lte(_widened(value, 1), path)), not_(found))
    if isinstance(value, bool):
        fits = pa.types.is_boolean(kind)
    elif isinstance(value, str):
        fits = pa.types.is_string(kind) and column.is_as_it_stands and _REPLACED not in value
    else:
        fits = isinstance(value, bytes) and pa.types.is_binary(kind)
    if not fits:
        return ANY
    found = equal(path, value)
    return Kept(found, not_(found))


def _above_or_below(column: KnownColumn, sign: str, value: Any, moved: Callable[[Any, int], Any]) -> Kept:
    """moved: the value, or where cells are only near to what records hold, one that is lower (-1) or higher (1)."""
    path = column.path
    above, below = (gte if sign in (">=", "<") else gt), (lte if sign in ("<=", ">") else lt)
    if moved is not _as_it_is:
        above, below = gte, lte
    high, low = above(_bound(moved(value, -1)), path), below(_bound(moved(value, 1)), path)
    if column.has_nan:  # libraries differ in whether NaN is above all numbers
        nan = equal(path, math.nan)
        high, low = or_(high, nan), or_(low, nan)
    return Kept(high, low) if sign in (">", ">=") else Kept(low, high)


def is_in(column: KnownColumn, values: Sequence[Literal | None]) -> Kept:
    """The cell is one of these, which null is not."""
    found = [value for value in values if value is not None]
    if len(found) > _MOST or any(isinstance(each, Time) and not _is_as_fine(column.type, each) for each in found):
        return ANY
    return reduce(Kept.__or__, (compared(column, "==", value) for value in found), Kept(NOTHING, None))


@_of_plain_fields
def is_null(column: KnownColumn) -> Kept:
    missing = absent(column.path)
    return Kept(or_(missing, equal(column.path, None)) if column.has_null else missing, not_(missing))


@_of_plain_fields
def is_nan(column: KnownColumn) -> Kept:
    if not pa.types.is_float64(column.type):
        return ANY
    found = equal(column.path, math.nan)
    return Kept(found, not_(found)) if column.has_nan else Kept(NOTHING, None)


@_of_plain_fields
def is_true(column: KnownColumn) -> Kept:
    return _equal(column, True) if pa.types.is_boolean(column.type) else ANY


_TEXT: Final = {"contains": contains, "starts_with": starts_with, "ends_with": ends_with}


@_of_plain_fields
def holds_text(column: KnownColumn, how: str, text: str) -> Kept:
    """The text of the cell contains, starts_with or ends_with this one."""
    if not (pa.types.is_string(column.type) and column.is_as_it_stands) or not text or _REPLACED in text:
        return ANY
    found = _TEXT[how](column.path, text)
    return Kept(found, not_(found))


@_of_plain_fields
def holds_element(column: KnownColumn, value: Literal) -> Kept:
    """The cell is a list with this in it."""
    if not pa.types.is_list(column.type) or isinstance(value, Time):
        return ANY
    kind = column.type.value_type
    if isinstance(value, bool):
        fits = pa.types.is_boolean(kind)
    elif isinstance(value, str):
        fits = pa.types.is_string(kind) and column.is_as_it_stands and _REPLACED not in value
    else:
        fits = is_number(kind) and _is_finite(value) and _is_exact(kind, value)
    return Kept(includes(column.path, value), None) if fits else ANY


# --- types and numbers -----------------------------------------------------------------------------------------------


def is_time_within(kind: pa.DataType, unit: str) -> bool:
    """Whether the column has times, which are whole numbers of these units, too."""
    return bool(pa.types.is_timestamp(kind) and _STEPS[unit] <= _STEPS[kind.unit])


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_int64(kind) or pa.types.is_uint64(kind) or pa.types.is_float64(kind))


def _is_finite(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_exact(kind: pa.DataType, value: int | float) -> bool:
    """Whether a cell is to the value as the record's number is, however the library compares them: as doubles, too."""
    if isinstance(value, int) and not pa.types.is_float64(kind):
        return True
    return abs(value) < _EXACT


def _is_as_fine(kind: pa.DataType, value: Time) -> bool:
    """Whether the time is told as finely as the column's. If not, some libraries cut the column's, and some do not."""
    return is_time_within(kind, value.unit)


def _as_it_is(value: Any, _: int) -> Any:
    return value


def _bound(value: Any) -> Any:
    return as_text(value.ticks * _STEPS[value.unit]) if isinstance(value, Time) else value


def _widened_time(value: Time, way: int) -> Time:
    return value._replace(ticks=value.ticks + way)


def _widened(value: int | float, way: int) -> float:
    """A double further that way than any number whose nearest double is the value's."""
    return math.nextafter(math.nextafter(float(value), way * math.inf), way * math.inf)
