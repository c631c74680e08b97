"""Operations as the text that `parse_expression` reads."""

from __future__ import annotations

from typing import Any

from jitdb.errors import QueryError
from jitdb.operators.nodes.instants import instant_of
from jitdb.operators.nodes.literals import not_an_operation, plain_value, written_value
from jitdb.operators.nodes.operation import Operation


def format_expression(operation: Operation) -> str:
    """The text of an operation, for `parse_expression`; QueryError where it holds a function.

    >>> from jitdb.operators import absent, and_, equal, gt, not_, or_
    >>> format_expression(and_(equal("value.content.type", "post"), gt(10, "value.sequence")))
    "value.content.type == 'post' and value.sequence > 10"
    >>> format_expression(not_(or_(absent("a"), equal(("a.b", "c"), None))))
    'not (absent(a) or ["a.b"].c == None)'
    """
    refuse_functions(operation, "cannot be written as text")
    return operation.written()


def format_value(value: Any) -> str:
    """A value as expressions write it; times as text, arrays as lists. Raises QueryError for what no field can hold.

    >>> from datetime import date
    >>> print(format_value('a"b'), format_value(date(2026, 11, 1)), format_value((1, None)))
    'a"b' '2026-11-01T00:00:00Z' [1, None]
    """
    if isinstance(value, (set, frozenset)):
        value = list(value)
    if not isinstance(value, str) and (instant := instant_of(value)) is not None:
        return repr(instant)
    if hasattr(value, "tolist"):  # of NumPy, pandas
        value = value.tolist()
    return written_value(plain_value(value))


def refuse_functions(operation: object, lacks: str) -> None:
    """Raises QueryError for what is no operation, or holds a function: it `lacks` what was asked for."""
    if not isinstance(operation, Operation):
        raise QueryError(f"what is no operation {lacks}: {not_an_operation(operation)}")
    for leaf in operation.leaves():
        if leaf.function is not None:
            what, remedy = leaf.function
            raise QueryError(f"{what} {lacks}: {leaf!r}", remedy=remedy)
