"""What of a question is left for one log, once the fields are known that all its records share.

Such a log is often not to be opened at all: nothing in it can match.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jitdb.common.times import time_of
from jitdb.common.values import NUMBER, UNDEFINED, kind_of, value_at, value_key
from jitdb.errors import QueryError
from jitdb.logset.members.finding import PATH
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.operations import (
    Absent,
    And,
    Compare,
    Equal,
    FieldOperation,
    Includes,
    Not,
    Offsets,
    Operation,
    Or,
    Predicate,
    Seqs,
    StartsWith,
    TextMatch,
    combine,
)
from jitdb.operators.nodes.texts import holds_text
from jitdb.operators.question import EVERYTHING
from jitdb.operators.sets import Members, MembersOfLogs

NOTHING: Final = ~EVERYTHING


def narrowed(operation: Operation, fields: Mapping[str, Any]) -> Operation:
    """The operation for records that all have these fields; NOTHING where it is true of none of them.

    Raises QueryError for places in a log: a set of logs has none.
    """
    if isinstance(operation, Not):
        below = narrowed(operation.arg, fields)
        return EVERYTHING if below == NOTHING else ~below
    children = operation.children()
    if not children:
        return _leaf(operation, fields)
    parts = [narrowed(child, fields) for child in children]
    absorbing, neutral = (NOTHING, EVERYTHING) if isinstance(operation, And) else (EVERYTHING, NOTHING)
    if absorbing in parts:
        return absorbing
    rest = tuple(part for part in parts if part != neutral)
    return combine(And if isinstance(operation, And) else Or, rest) if rest else neutral


def _leaf(operation: Operation, fields: Mapping[str, Any]) -> Operation:
    if isinstance(operation, MembersOfLogs):
        return operation.parts.get(fields[PATH], NOTHING)
    if isinstance(operation, Seqs | Offsets | Members):
        raise QueryError(
            f"{operation.op}() names places in one log, and this asks several", remedy="ask that log: jitdb.open()"
        )
    if not operation.paths or operation.paths[0][0] not in fields:
        return operation
    if isinstance(operation, FieldOperation) and operation.field.seek is not None:
        return operation
    return EVERYTHING if _holds(operation, value_at(dict(fields), operation.paths[0])) else NOTHING


def _holds(operation: Operation, value: Any) -> bool:
    """Whether it is true of a record whose field has this value, which is text, an integer or None."""
    if isinstance(operation, Absent):
        return value is UNDEFINED
    if isinstance(operation, Predicate):
        return value is not UNDEFINED and bool(operation.fn(value))
    if isinstance(operation, Equal | Includes):
        return value is not UNDEFINED and value_key(value) == operation.key
    if isinstance(operation, StartsWith):
        return isinstance(value, str) and isinstance(operation.prefix, str) and value.startswith(operation.prefix)
    if isinstance(operation, TextMatch):
        return holds_text(operation.op, operation.value, operation.ignore_case, value)
    if isinstance(operation, Compare):
        if isinstance(operation.value, Instant):
            time = time_of(value)
            return time is not None and _COMPARED[operation.op](time, operation.value.time)
        return kind_of(value) == NUMBER and _COMPARED[operation.op](value, operation.value)
    raise QueryError(f"{operation!r} cannot be asked of a field that names of folders hold")


_COMPARED: Final = {
    "gt": lambda left, right: left > right,
    "gte": lambda left, right: left >= right,
    "lt": lambda left, right: left < right,
    "lte": lambda left, right: left <= right,
}
