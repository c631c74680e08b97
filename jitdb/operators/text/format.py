"""Operations as the text that `parse_expression` reads."""

from __future__ import annotations

import math
from typing import Any, Final

from jitdb.common.paths import Path, format_path
from jitdb.common.values import EXTENSION, kind_of
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.describe import describe_path, describe_value, not_an_operation
from jitdb.operators.nodes.instants import Instant, instant_of
from jitdb.operators.nodes.literals import plain_value
from jitdb.operators.nodes.operations import (
    And,
    Compare,
    Equal,
    FieldOperation,
    Includes,
    Not,
    Offsets,
    Operation,
    Or,
    Seqs,
    StartsWith,
    TextMatch,
)

_SIGNS: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def format_expression(operation: Operation) -> str:
    """The text of an operation, for `parse_expression`; QueryError where it holds a function.

    >>> from jitdb.operators import absent, and_, equal, gt, not_, or_
    >>> format_expression(and_(equal("value.content.type", "post"), gt(10, "value.sequence")))
    "value.content.type == 'post' and value.sequence > 10"
    >>> format_expression(not_(or_(absent("a"), equal(("a.b", "c"), None))))
    'not (absent(a) or ["a.b"].c == None)'
    """
    refuse_functions(operation, "cannot be written as text")
    match operation:
        case Or(args) | And(args):
            return f" {operation.op} ".join(_inside(arg, type(operation)) for arg in args)
        case Not(arg=Equal() as arg) if _plain(arg):
            return f"{_field(arg.field.path)} != {_literal(arg.value)}"
        case Not(arg=Includes() as arg) if _plain(arg):
            return f"{_literal(arg.value)} not in {_field(arg.field.path)}"
        case Not(arg):
            return f"not {_inside(arg, Not)}"
        case Equal(field, value) if _plain(operation):
            return f"{_field(field.path)} == {_literal(value)}"
        case Includes(field, value) if _plain(operation):
            return f"{_literal(value)} in {_field(field.path)}"
        case FieldOperation(field=field):
            arguments = [_field(field.path)]
            arguments += [_literal(operation.value)] if isinstance(operation, (Equal, Includes)) else []
            if isinstance(operation, Includes) and operation.pluck is not None:
                arguments.append(f"pluck={describe_path(operation.pluck)}")
            arguments += [f"{name}={value!r}" for name, value in field.options.given().items()]
            return f"{operation.op}({', '.join(arguments)})"
        case StartsWith(path, prefix):
            return f"starts_with({_field(path)}, {prefix!r})"
        case TextMatch(op, path, value, ignore_case):
            return f"{_field(path)} {'i' if ignore_case else ''}{op} {value!r}"
        case Compare(op, index, value):
            subject = f'index("{index}")' if isinstance(index, str) else _field(index)
            return f"{subject} {_SIGNS[op]} {repr(value) if isinstance(value, Instant) else _literal(value)}"
        case Seqs() | Offsets():
            return f"{operation.op}({', '.join(map(str, operation))})"
    return "everything()"


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
    return _literal(plain_value(value))


def refuse_functions(operation: object, lacks: str) -> None:
    """Raises QueryError for what is no operation, or holds a function: it `lacks` what was asked for."""
    if not isinstance(operation, Operation):
        raise QueryError(f"what is no operation {lacks}: {not_an_operation(operation)}")
    if operation.function is not None:
        what, remedy = operation.function
        raise QueryError(f"{what} {lacks}: {operation!r}", remedy=remedy)


def _inside(operation: Operation, outer: type[Operation]) -> str:
    text = format_expression(operation)
    binds_looser = isinstance(operation, Or) or (isinstance(operation, And) and outer is not Or)
    return f"({text})" if binds_looser else text


def _plain(operation: FieldOperation) -> bool:
    """Whether it can be written with a sign: no options, no pluck, no function."""
    if operation.field.path is None or operation.field.options.given():
        return False
    if not isinstance(operation, Includes):
        return True
    # Of `["x"] in ["y"]` the first is the field.
    is_doubtful = isinstance(operation.value, list) and format_path(operation.field.path).startswith("[")
    return operation.pluck is None and not is_doubtful


def _field(path: Path | None) -> str:
    assert path is not None  # one with a function is refused
    return format_path(path)


def _literal(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value!r}")'
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(item)}" for key, item in value.items()) + "}"
    if kind_of(value) == EXTENSION:
        raise QueryError(f"an extension value cannot be written as text: {shown(value)}")
    return describe_value(value)
